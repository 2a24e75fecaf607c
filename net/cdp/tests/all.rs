//! Neighbours that speak, fall silent, or lie.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

use std::time::Duration;

use shoal_cdp::pdu::{GROUP, OwnAnnouncement, read};
use shoal_cdp::{CDP, Cdp, MODULE};
use shoal_module::Running;
use shoal_testkit::api::{random_bytes_do_no_harm, same_as_vpp};
use shoal_testkit::{ApiAsker, Port, Rng, Router, STACK, fuzz_all_nodes};

const PEER: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn router() -> (Router, Port) {
    let mut modules = STACK.to_vec();
    modules.push(&MODULE);
    let mut router = Router::new(&modules);
    let port = router.pg(0);
    (router, port)
}

/// A frame with these bytes behind its length, as long as the wire wants it.
fn frame(bytes: &[u8]) -> Vec<u8> {
    let mut frame = [&GROUP.0[..], &PEER, &(bytes.len() as u16).to_be_bytes(), bytes].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

fn says(device: &str) -> Vec<u8> {
    frame(&OwnAnnouncement { device, port: "Gi0/1", version: "v" }.bytes())
}

/// The PDUs that a port has sent.
fn sent(port: &Port) -> Vec<Vec<u8>> {
    port.received().into_iter().filter(|frame| frame[..6] == GROUP.0).collect()
}

#[test]
fn it_says_who_it_is_on_all_ports_at_once_each_minute_and_when_one_comes_up() {
    let (mut router, port) = router();
    let other = router.pg(1);
    let cdp = router.get::<Cdp>();
    router.advance(Duration::from_secs(200));
    assert_eq!(sent(&port).len(), 0, "it is off");
    assert!(cdp.enable(true));
    router.run();
    let first = sent(&port).pop().unwrap();
    assert_eq!(usize::from(u16::from_be_bytes([first[12], first[13]])), first.len() - 14);
    let own = read(&first[22..]).unwrap();
    assert_eq!((own.port.to_string(), own.ttl, sent(&other).len()), ("pg0".into(), 180, 1));
    router.advance(Duration::from_secs(125));
    assert_eq!(sent(&port).len(), 2);
    router.interfaces().set_admin(port.index(), false).unwrap();
    router.advance(Duration::from_secs(10));
    router.interfaces().set_admin(port.index(), true).unwrap();
    router.advance(Duration::from_secs(1));
    assert_eq!(sent(&port).len(), 1);
    assert!(cdp.enable(false));
    router.advance(Duration::from_secs(200));
    assert_eq!(sent(&port).len(), 0);
}

#[test]
fn neighbours_are_known_until_their_time_is_over_or_the_port_goes_down() {
    let (mut router, port) = router();
    let cdp = router.get::<Cdp>();
    router.send(&port, says("switch1"));
    assert_eq!(
        router.error("ethernet-input", "802.3 frame without a type"),
        1,
        "nothing listens until it is on"
    );
    cdp.enable(true);
    router.send(&port, says("switch1"));
    let look = cdp.list().pop().unwrap();
    assert_eq!((look.index, look.neighbor.device.to_string()), (port.index(), "switch1".into()));
    assert_eq!(look.neighbor.port.to_string(), "Gi0/1");
    router.send(&port, says("switch2"));
    assert_eq!(cdp.list().len(), 1);
    router.advance(Duration::from_secs(179));
    assert_eq!(cdp.list().len(), 1);
    router.advance(Duration::from_secs(2));
    assert!(cdp.list().is_empty());
    router.send(&port, says("switch1"));
    router.interfaces().set_admin(port.index(), false).unwrap();
    assert!(cdp.list().is_empty());
    router.interfaces().set_admin(port.index(), true).unwrap();
    router.send(&port, says("switch1"));
    cdp.enable(false);
    assert!(cdp.list().is_empty());
    router.send(&port, says("switch1"));
    assert_eq!(router.error("cdp-input", "cdp packets received on disabled interfaces"), 1);
    drop(port.received());
}

#[test]
fn what_is_wrong_with_a_pdu_is_counted() {
    let (mut router, port) = router();
    router.get::<Cdp>().enable(true);
    let good = OwnAnnouncement { device: "a", port: "b", version: "c" }.bytes();
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    for bytes in [with(8, 3), with(13, 7), good[..9].to_vec(), good[..20].to_vec()] {
        router.send(&port, frame(&bytes));
    }
    let count = |what| router.error("cdp-input", what);
    assert_eq!(count("cdp packets with bad protocol versions"), 1);
    assert_eq!(count("cdp packets with bad checksums"), 2);
    assert_eq!(count("cdp packets with bad TLVs"), 1);
    assert!(router.get::<Cdp>().list().is_empty());
    drop(port.received());
}

#[test]
fn nothing_does_harm() {
    same_as_vpp(&[&CDP]);
    let (mut router, port) = router();
    {
        let parts = [&CDP];
        let asker = ApiAsker::new(router.control(), &parts);
        assert_eq!(asker.retval("cdp_enable_disable", &[1]).0, 0);
    }
    let cdp = router.get::<Cdp>();
    assert!(cdp.is_enabled());
    let mut running = Running::default();
    (MODULE.running)(router.control(), &mut running);
    assert_eq!(running.pieces().collect::<String>(), "# policies\ncdp enable\n");
    let mut rng = Rng::new(Rng::seed(8));
    let good = says("a neighbour");
    for _ in 0..3_000 {
        let mut bytes = good.clone();
        for _ in 0..rng.below(4) {
            let at = rng.below(bytes.len());
            bytes[at] = rng.next_u64() as u8;
        }
        bytes.truncate(14 + rng.below(bytes.len()));
        router.send(&port, bytes);
    }
    random_bytes_do_no_harm(&mut router, &[&CDP], 100);
    router.may_hold(4096);
    fuzz_all_nodes(&mut router, Rng::seed(9), 500);
    router.advance(Duration::from_mins(1));
    router.may_hold(0);
    drop(port.received());
}
