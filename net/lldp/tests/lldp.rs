//! Neighbours that speak, fall silent, leave or lie.

use std::rc::Rc;
use std::time::Duration;

use shoal_lldp::pdu::{OwnAnnouncement, read};
use shoal_lldp::{Lldp, MODULE, OnInterface, Settings};
use shoal_module::Running;
use shoal_module::cli::{Args, CliError, Output, Run};
use shoal_testkit::{PacketBuilder, Port, Rng, Router, STACK};
use shoal_wire::{EtherType, MacAddress};

const PEER: [u8; 6] = [2, 0, 0, 0, 0, 9];
const TO: [u8; 6] = [1, 0x80, 0xc2, 0, 0, 0x0e];

fn router() -> (Router, Port) {
    let mut modules = STACK.to_vec();
    modules.push(&MODULE);
    let mut router = Router::new(&modules);
    let port = router.pg(0);
    (router, port)
}

fn run(router: &Router, command: &str, items: &str) -> Result<Output, CliError> {
    let command = MODULE.commands.iter().find(|c| c.syntax.starts_with(command)).unwrap();
    let start = Args::new(Rc::clone(router.control()), items);
    let args = items.split_whitespace().fold(start, |args, item| match item.split_once('=') {
        Some((name, text)) => args.with(name.to_owned().leak(), text, 0..0),
        None => args.with_word(item.to_owned().leak(), 0..0),
    });
    let Run::Now(handler) = command.run else { panic!("answers later") };
    handler(router.control(), &args)
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    PacketBuilder::ethernet(PEER, TO).ether_type(EtherType::LLDP).payload(bytes).build()
}

fn says(ttl: u16) -> Vec<u8> {
    let management = (None, None, 1, &[][..]);
    let own = OwnAnnouncement {
        mac: MacAddress(PEER),
        port: "eth0",
        ttl,
        description: "",
        system: "peer",
        management,
    };
    frame(&own.bytes())
}

/// The PDUs a port has sent.
fn sent(port: &Port) -> Vec<Vec<u8>> {
    port.received().into_iter().filter(|frame| frame[12..14] == [0x88, 0xcc]).collect()
}

fn enable(router: &mut Router, port: &Port) {
    router.get::<Lldp>().enable(port.index(), OnInterface::default()).unwrap();
    router.run();
}

#[test]
fn it_says_who_it_is_at_once_then_each_interval_and_good_bye() {
    let (mut router, port) = router();
    router.advance(Duration::from_secs(100));
    assert_eq!(sent(&port).len(), 0, "it is off");
    run(&router, "set lldp", "system-name=edge1 tx-hold=5 tx-interval=10").unwrap();
    run(&router, "set interface", "interface=pg0 port-desc=uplink mgmt-ip4=10.0.0.1").unwrap();
    router.run();
    let first = sent(&port).pop().unwrap();
    assert_eq!((first[..6].to_vec(), first[6..12].to_vec()), (TO.to_vec(), port.mac().0.to_vec()));
    let own = read(&first[14..]).unwrap();
    assert_eq!((own.chassis.chassis(), own.port.port(), own.ttl), (port.mac().to_string(), "pg0".into(), 51));
    assert!(["edge1", "uplink"].iter().all(|word| first.windows(word.len()).any(|w| w == word.as_bytes())));
    router.advance(Duration::from_secs(35));
    assert_eq!(sent(&port).len(), 3);
    // A port that comes up speaks soon.
    router.interfaces().set_admin(port.index(), false).unwrap();
    router.advance(Duration::from_secs(20));
    assert_eq!(sent(&port).len(), 0);
    router.interfaces().set_admin(port.index(), true).unwrap();
    router.advance(Duration::from_secs(1));
    assert_eq!(sent(&port).len(), 1);
    run(&router, "set interface", "interface=pg0 disable").unwrap();
    router.run();
    assert_eq!(read(&sent(&port).pop().unwrap()[14..]).unwrap().ttl, 0);
    router.advance(Duration::from_secs(100));
    assert_eq!(sent(&port).len(), 0);
}

#[test]
fn neighbours_are_known_until_their_time_is_over_or_they_leave() {
    let (mut router, port) = router();
    router.send(&port, says(120));
    assert_eq!(router.error("ethernet-input", "unknown ethernet type"), 1, "nothing listens until it is on");
    enable(&mut router, &port);
    router.send(&port, says(120));
    router.advance(Duration::from_secs(1));
    let shown = run(&router, "show", "").unwrap().to_text();
    assert_eq!(
        shown,
        "Local interface           Peer chassis ID           Remote port ID                 Last heard      Last sent  Status    \n\
         pg0                       02:00:00:00:00:09         eth0                             1.0s ago       1.0s ago  active    \n"
    );
    let detail = run(&router, "show", "detail").unwrap().to_text();
    assert!(
        detail.contains("Local Interface name: pg0\n") && detail.contains("02:00:00:00:00:09(MAC address)"),
        "{detail}"
    );
    router.advance(Duration::from_secs(118));
    assert!(router.get::<Lldp>().list()[0].heard.is_some());
    router.advance(Duration::from_secs(2));
    assert!(router.get::<Lldp>().list()[0].heard.is_none());
    router.send(&port, says(120));
    router.send(&port, says(0));
    router.run();
    assert!(router.get::<Lldp>().list()[0].heard.is_none(), "it has left");
    router.send(&port, says(120));
    router.interfaces().set_admin(port.index(), false).unwrap();
    assert!(router.get::<Lldp>().list()[0].heard.is_none(), "the cable is gone");
}

#[test]
fn bad_frames_are_counted_and_change_nothing() {
    let (mut router, port) = router();
    enable(&mut router, &port);
    let other = router.pg(1);
    router.send(&other, says(120));
    assert_eq!(router.error("lldp-input", "lldp packets received on disabled interfaces"), 1);
    router.send(&port, frame(&[2, 7, 4, 1, 2, 3, 4, 5, 6]));
    assert_eq!(router.error("lldp-input", "lldp packets with bad TLVs"), 1);
    let mut rng = Rng::new(Rng::seed(1));
    for _ in 0..2000 {
        let len = rng.below(200);
        let mut bytes = rng.bytes(len);
        if rng.one_in(2) {
            bytes = says(9)[14..].to_vec();
            let at = rng.below(bytes.len());
            bytes[at] = rng.next_u64() as u8;
        }
        router.send(&port, frame(&bytes));
    }
    router.interfaces().delete(port.index()).unwrap();
    assert!(router.get::<Lldp>().list().is_empty());
    assert_eq!(router.buffers_in_use(), 0);
}

#[test]
fn what_cannot_be_is_refused_and_the_configuration_is_rebuilt() {
    let (router, port) = router();
    let error = |items: &str| match run(&router, "set lldp", items).unwrap_err() {
        CliError::Argument { message, nearest, .. } => {
            format!("{message} -> {}", nearest.unwrap_or_default())
        }
        CliError::Failed(why) => panic!("{why}"),
    };
    assert_eq!(error("tx-hold=101"), "invalid tx-hold `101' (out of range <1,100>) -> 100");
    assert_eq!(error("tx-interval=0"), "invalid tx-interval `0' (out of range <1,3600>) -> 1");
    let lldp = router.get::<Lldp>();
    assert_eq!(lldp.settings(), Settings::default());
    let loopback = router.interfaces().create_loopback(None, None).unwrap();
    let refused = lldp.enable(loopback, OnInterface::default()).unwrap_err().to_string();
    assert_eq!(refused, "loop0 is a loopback, so its link has no other end");
    assert!(lldp.enable(shoal_interface::SwIfIndex(0), OnInterface::default()).is_err());
    let long = OnInterface { description: "x".repeat(300), ..OnInterface::default() };
    assert_eq!(
        lldp.enable(port.index(), long).unwrap_err().to_string(),
        "the description is longer than 255 bytes"
    );
    run(&router, "set lldp", "system-name=edge1 tx-hold=7").unwrap();
    run(&router, "set interface", "interface=pg0 port-desc=up-link mgmt-ip6=2001:db8::1 mgmt-oid=1234")
        .unwrap();
    let mut running = Running::default();
    (MODULE.running)(router.control(), &mut running);
    let lines: String = running.pieces().collect();
    assert_eq!(
        lines,
        "# settings\nset interface lldp pg0 port-desc up-link mgmt-ip6 2001:db8::1 mgmt-oid 1234\n\
         set lldp system-name edge1 tx-hold 7\n"
    );
}

#[test]
fn declared_messages_are_those_of_vpp() {
    shoal_testkit::api::same_as_vpp(&[&shoal_lldp::LLDP]);
}

#[test]
fn random_messages_do_no_harm() {
    let (mut router, _port) = router();
    shoal_testkit::api::random_bytes_do_no_harm(&mut router, &[&shoal_lldp::LLDP], 300);
}
