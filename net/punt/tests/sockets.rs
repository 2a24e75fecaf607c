//! Packets to programs' sockets, and packets from them.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use shoal_buffer::Packet;
use shoal_fib::Family;
use shoal_graph::{Cx, NextNodes, NoError, PacketNode};
use shoal_message::Retval;
use shoal_module::api::ApiPart;
use shoal_module::{Control, InitError, Module};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_punt::api::PUNT;
use shoal_punt::{L4, Punt, PuntClass, PuntError, PuntReason, Registered, RegistrationState, open_socket};
use shoal_testkit::{ApiAsker, PEER, PEER_MAC, PacketBuilder, Port, Rng, Router, STACK};
use shoal_wire::{IpProtocol, MacAddress};

const OK: Retval = Retval(0);
const FAR: MacAddress = MacAddress([2, 0xbb, 0, 0, 0, 2]);
static PARTS: &[&ApiPart] = &[&PUNT];

/// A feature that punts all that is injected into it.
struct Punter(PuntReason);

#[derive(Clone, Copy)]
struct ToDispatch;

impl NextNodes for ToDispatch {
    const NAMES: &'static [&'static str] = &["punt-dispatch"];

    fn edge(self) -> shoal_graph::Edge {
        shoal_graph::Edge(1)
    }
}

impl PacketNode for Punter {
    const NAME: &'static str = "punter";
    type Next = ToDispatch;
    type Error = NoError;
    type Trace = String;

    fn packet(&self, pkt: &mut Packet<'_>, _: &mut Cx<'_, Self>) -> Result<ToDispatch, NoError> {
        self.0.mark(pkt);
        Ok(ToDispatch)
    }
}

static PUNTER: Module = Module { name: "punter", init, ..Module::NONE };

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let reasons = control.get::<shoal_punt::Reasons>()?;
    let add = |name| reasons.add("punter", name).map_err(|e| InitError::Other(e.to_string()));
    add("test-never")?;
    control.graph()?.add_packet(Punter(add("test-reason")?))?;
    Ok(())
}

/// A folder of its own, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("shoal-punt-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A client's socket.
    fn client(&self, name: &str) -> UnixDatagram {
        let socket = UnixDatagram::bind(self.path(name)).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn router(folder: &Folder) -> (Router, Port, Port) {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_punt::MODULE, &PUNTER]);
    let mut router = Router::new(&modules);
    let (a, b) = (router.pg(0), router.pg(1));
    router.set_address(&a, "10.0.0.1/24");
    router.set_address(&b, "10.0.1.1/24");
    router.set_neighbour(&a, PEER, PEER_MAC);
    router.set_neighbour(&b, [10, 0, 1, 2].into(), FAR);
    let ip6 = router.get::<shoal_ip6::Ip6>();
    ip6.add_address(a.index(), "2001:db8::1/64".parse().unwrap()).unwrap();
    let neighbours = router.get::<shoal_ip6_nd::Neighbours>();
    let peer = "2001:db8::2".parse().unwrap();
    neighbours.set((a.index(), peer), PEER_MAC, Origin::Static, FibEntry::Wanted).unwrap();
    router.advance(Duration::from_secs(10));
    drop((a.received(), b.received()));
    open_socket(router.control(), &folder.path("router")).unwrap();
    (router, a, b)
}

fn udp(a: &Port, family: Family, port: u16) -> Vec<u8> {
    let packet = PacketBuilder::ethernet(PEER_MAC, a.mac());
    let packet = match family {
        Family::Ip4 => packet.ip4(PEER, [10, 0, 0, 1]),
        Family::Ip6 => packet.ip6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 2], [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]),
    };
    packet.udp(1000, port).payload(b"hello").build()
}

fn received(socket: &UnixDatagram) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 70_000];
    let n = socket.recv(&mut bytes).ok()?;
    bytes.truncate(n);
    Some(bytes)
}

/// Sends as a program, and waits until the router has looked at it.
fn say(
    router: &mut Router,
    client: &UnixDatagram,
    folder: &Folder,
    (interface, action): (u32, u32),
    packet: &[u8],
) {
    let bytes = [&interface.to_ne_bytes()[..], &action.to_ne_bytes(), packet].concat();
    say_bytes(router, client, folder, &bytes);
}

const RX: [&str; 7] = [
    "Socket RX",
    "Socket RX error",
    "short or long message",
    "unsupported action",
    "no such interface",
    "packet to be routed is none of its family",
    "buffer allocation failure",
];

fn taken(router: &Router) -> u64 {
    RX.iter().map(|what| router.error("punt-socket-rx", what)).sum()
}

fn say_bytes(router: &mut Router, client: &UnixDatagram, folder: &Folder, bytes: &[u8]) {
    let before = taken(router);
    client.send_to(bytes, folder.path("router")).unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while taken(router) == before && Instant::now() < until {
        router.run();
    }
    assert_eq!(taken(router), before + 1);
}

#[test]
fn packets_to_a_port_go_to_the_socket_that_wants_them() {
    let folder = Folder::new();
    let (mut router, a, _) = router(&folder);
    let punt = router.get::<Punt>();
    for family in Family::ALL {
        let what = PuntClass::Udp(family, 1234);
        let client = folder.client(&format!("client-{family}"));
        router.send(&a, udp(&a, family, 1234));
        assert_eq!(received(&client), None, "it is not registered yet");
        punt.register(what, &folder.path(&format!("client-{family}"))).unwrap();
        let frame = udp(&a, family, 1234);
        router.send(&a, &frame);
        let bytes = received(&client).unwrap();
        assert_eq!(bytes[..4], a.index().0.to_ne_bytes());
        assert_eq!(bytes[4..8], [0; 4]);
        assert_eq!(bytes[8..], frame, "{family}");
        router.send(&a, udp(&a, family, 1235));
        assert_eq!(received(&client), None, "another port");
        let node = format!("{family}-udp-punt-socket");
        assert_eq!((router.error(&node, "Socket TX"), router.error(&node, "Socket TX error")), (1, 0));
        punt.deregister(what).unwrap();
        punt.deregister(what).unwrap();
        router.send(&a, &frame);
        assert_eq!(received(&client), None);
    }
    assert_eq!(router.buffers_in_use(), 0);
}

#[test]
fn protocols_and_reasons_have_sockets_too() {
    let folder = Folder::new();
    let (mut router, a, _) = router(&folder);
    let (punt, client) = (router.get::<Punt>(), folder.client("client"));
    punt.register(PuntClass::Protocol(Family::Ip4, 89), &folder.path("client")).unwrap();
    let ospf = PacketBuilder::ethernet(PEER_MAC, a.mac()).ip4(PEER, [10, 0, 0, 1]);
    let ospf = ospf.protocol(IpProtocol(89)).payload(b"hello").build();
    router.send(&a, &ospf);
    assert_eq!(received(&client).unwrap()[8..], ospf);
    let reason = punt.reasons().find("test-reason").unwrap();
    router.inject("punter", a.index(), &udp(&a, Family::Ip4, 7)[14..]);
    router.run();
    assert_eq!(router.error("punt-dispatch", "No registrations"), 1, "{:?}", router.errors());
    punt.register(PuntClass::Exception(reason.0), &folder.path("client")).unwrap();
    router.inject("punter", a.index(), &udp(&a, Family::Ip4, 7)[14..]);
    router.run();
    let bytes = received(&client).unwrap();
    assert_eq!(bytes[22..], udp(&a, Family::Ip4, 7)[14..]);
    assert_eq!(bytes[8..22], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0], "it has no link header");
    assert_eq!(punt.reasons().count(reason).0, 2);
    punt.deregister(PuntClass::Exception(reason.0)).unwrap();
    router.inject("punter", a.index(), &udp(&a, Family::Ip4, 7)[14..]);
    router.run();
    assert_eq!((received(&client), router.error("punt-dispatch", "No registrations")), (None, 2));
}

#[test]
fn what_a_program_sends_leaves_by_the_interface_or_is_routed() {
    let folder = Folder::new();
    let (mut router, a, b) = router(&folder);
    let client = folder.client("client");
    let frame =
        PacketBuilder::ethernet([2, 1, 1, 1, 1, 1], FAR).ip4([1, 2, 3, 4], [5, 6, 7, 8]).udp(1, 2).build();
    say(&mut router, &client, &folder, (b.index().0, 0), &frame);
    assert_eq!(b.received_one(), frame, "as it is");
    let packet = &PacketBuilder::ethernet(PEER_MAC, FAR).ip4(PEER, [10, 0, 1, 2]).udp(1, 2).build()[14..];
    say(&mut router, &client, &folder, (a.index().0, 1), packet);
    let out = b.received_one();
    assert_eq!((&out[..6], &out[14..]), (&FAR.0[..], packet), "the router's own: its TTL stays");
    let six = PacketBuilder::ethernet(PEER_MAC, FAR)
        .ip6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 2], [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1])
        .icmp6_echo_request(1, 1)
        .build();
    say(&mut router, &client, &folder, (a.index().0, 2), &six[14..]);
    assert_eq!(router.error("punt-socket-rx", "Socket RX"), 3);
}

#[test]
fn hostile_datagrams_are_counted_and_go_nowhere() {
    let folder = Folder::new();
    let (mut router, a, b) = router(&folder);
    let (client, index) = (folder.client("client"), a.index().0);
    let packet = udp(&a, Family::Ip4, 9)[14..].to_vec();
    let mut lying = packet.clone();
    lying[2] = 0xff;
    let mut headless = packet.clone();
    headless[0] = 0x41;
    for (interface, action, bytes, what) in [
        (index, 1, &packet[..19], "short or long message"),
        (index, 0, &[][..], "short or long message"),
        (index, 3, &packet[..], "unsupported action"),
        (index, u32::MAX, &packet, "unsupported action"),
        (77, 0, &packet, "no such interface"),
        (u32::MAX, 1, &packet, "no such interface"),
        (index, 2, &packet, "packet to be routed is none of its family"),
        (index, 1, &lying, "packet to be routed is none of its family"),
        (index, 1, &headless, "packet to be routed is none of its family"),
    ] {
        let before = router.error("punt-socket-rx", what);
        say(&mut router, &client, &folder, (interface, action), bytes);
        assert_eq!(router.error("punt-socket-rx", what), before + 1, "{action} {}", bytes.len());
    }
    say_bytes(&mut router, &client, &folder, &[]);
    say_bytes(&mut router, &client, &folder, &[1; 7]);
    say_bytes(&mut router, &client, &folder, &vec![0; 66_000]);
    let mut rng = Rng::new(Rng::seed(3));
    for _ in 0..200 {
        let len = 8 + rng.below(100);
        let mut bytes = rng.bytes(len);
        bytes[..4].copy_from_slice(&index.to_ne_bytes());
        bytes[4..8].copy_from_slice(&(rng.below(3) as u32).to_ne_bytes());
        bytes[8.min(len - 1)] = [0x45, 0x60, 0x4f][rng.below(3)];
        say_bytes(&mut router, &client, &folder, &bytes);
    }
    drop((a.received(), b.received()));
}

#[test]
fn a_program_that_is_slow_or_gone_loses_packets_and_nothing_else() {
    let folder = Folder::new();
    let (mut router, a, _) = router(&folder);
    let punt = router.get::<Punt>();
    let (what, path) = (PuntClass::Udp(Family::Ip4, 1234), folder.path("client"));
    let frame = udp(&a, Family::Ip4, 1234);
    let node = "ip4-udp-punt-socket";
    // It may come later than its registration.
    punt.register(what, &path).unwrap();
    router.send(&a, &frame);
    assert_eq!(router.error(node, "Socket TX error"), 1);
    let client = folder.client("client");
    // The kernel keeps some; the rest is dropped, and no thread waits.
    router.send_all(&a, vec![&frame; 2000]);
    let (sent, lost) = (router.error(node, "Socket TX"), router.error(node, "Socket TX error"));
    let congested = router.error(node, "punted packets for sockets, too many at a time");
    assert!(sent > 0 && lost > 1 && sent + lost + congested == 2001, "{sent} {lost} {congested}");
    while received(&client).is_some() {}
    router.send(&a, &frame);
    assert!(received(&client).is_some());
    // It has gone, and is forgotten after a minute.
    drop(client);
    std::fs::remove_file(&path).unwrap();
    router.send(&a, &frame);
    router.advance(Duration::from_secs(30));
    router.send(&a, &frame);
    assert_eq!(punt.sockets().list().len(), 1, "it may come back");
    router.advance(Duration::from_secs(31));
    router.send(&a, &frame);
    assert!(punt.sockets().list().is_empty());
    assert_eq!(router.buffers_in_use(), 0);
}

fn punt_l4(af: u8, protocol: u8, port: u16) -> Vec<u8> {
    [&[0, 0, 0, 0, af, protocol][..], &port.to_be_bytes()].concat()
}

fn register(client: &ApiAsker<'_>, version: u32, punt: &[u8], path: &str) -> (Retval, String) {
    let mut bytes = [&version.to_be_bytes()[..], punt, path.as_bytes()].concat();
    bytes.resize(4 + 8 + 108, 0);
    let row = client.ask("punt_socket_register", &bytes).remove(0);
    let name = String::from_utf8(row[4..].to_vec()).unwrap();
    (Retval(i32::from_be_bytes([row[0], row[1], row[2], row[3]])), name.trim_end_matches('\0').to_owned())
}

#[test]
fn clients_register_by_the_binary_api() {
    let folder = Folder::new();
    let (router, ..) = router(&folder);
    let client = ApiAsker::new(router.control(), PARTS);
    let ours = folder.path("router").display().to_string();
    let path = folder.path("client").display().to_string();
    assert_eq!(register(&client, 1, &punt_l4(0, 17, 1111), &path), (OK, ours.clone()));
    assert_eq!(register(&client, 1, &punt_l4(1, 17, 1111), &path).0, OK);
    let protocol = [0, 0, 0, 1, 0, 89, 0, 0];
    assert_eq!(register(&client, 1, &protocol, &path).0, OK);
    let exception = [0, 0, 0, 2, 0, 0, 0, 1];
    assert_eq!(register(&client, 1, &exception, &path).0, OK);
    let bad = Retval::UNSPECIFIED;
    assert_eq!(register(&client, 2, &punt_l4(0, 17, 1112), &path).0, bad, "of another version");
    assert_eq!(register(&client, 1, &punt_l4(0, 6, 1112), &path).0, bad, "TCP");
    assert_eq!(register(&client, 1, &punt_l4(0, 17, 65535), &path).0, bad, "all ports");
    assert_eq!(register(&client, 1, &punt_l4(0, 17, 1112), &ours).0, bad, "the router's own");
    assert_eq!(register(&client, 1, &punt_l4(0, 17, 1112), "").0, bad);
    assert_eq!(register(&client, 1, &punt_l4(0, 17, 1112), "relative").0, bad);
    assert_eq!(register(&client, 1, &[0, 0, 0, 1, 0, 1, 0, 0], &path).0, bad, "ICMP");
    assert_eq!(register(&client, 1, &[0, 0, 0, 2, 0, 0, 0, 99], &path).0, bad, "no such reason");
    let dump = |kind: u8| client.ask("punt_socket_dump", &[0, 0, 0, kind]);
    assert_eq!((dump(0).len(), dump(1).len(), dump(2).len()), (2, 1, 1));
    assert_eq!((&dump(0)[0][..8], &dump(1)[0][..8]), (&punt_l4(0, 17, 1111)[..], &protocol[..]));
    assert!(dump(2)[0][8..].starts_with(path.as_bytes()));
    for punt in [&punt_l4(0, 17, 1111)[..], &punt_l4(1, 17, 1111), &protocol, &exception] {
        for _ in 0..2 {
            assert_eq!(client.retval("punt_socket_deregister", punt), OK);
        }
    }
    assert_eq!(dump(0).len() + dump(1).len() + dump(2).len(), 0);
    let reasons = |name: &str| {
        let length = (name.len() as u32).to_be_bytes();
        client.ask("punt_reason_dump", &[&[0; 4][..], &length, name.as_bytes()].concat())
    };
    assert_eq!((reasons("").len(), reasons("nothing").len()), (2, 0));
    let one = reasons("test-reason").remove(0);
    assert_eq!((&one[..4], &one[8..]), (&[0, 0, 0, 1][..], &b"test-reason"[..]));
}

#[test]
fn ports_come_back_to_whom_they_belonged() {
    let folder = Folder::new();
    let (router, ..) = router(&folder);
    let punt = router.get::<Punt>();
    let (what, path) = (PuntClass::Udp(Family::Ip4, 1234), folder.path("client"));
    let all = Registered { family: Family::Ip4, l4: L4::AllUdp };
    let listeners = router.get::<shoal_ip::ListenerTable<shoal_ip4::Ip4Family>>().shared();
    punt.register(what, &path).unwrap();
    let socket = listeners.udp(1234);
    punt.set(all, RegistrationState::Punted).unwrap();
    assert_eq!(listeners.udp(1234), socket, "all ports but those of others");
    let one = Registered { family: Family::Ip4, l4: L4::Udp(1234) };
    assert!(matches!(punt.set(one, RegistrationState::Punted), Err(PuntError::Taken { .. })));
    punt.deregister(what).unwrap();
    assert_eq!(listeners.udp(1234), listeners.udp(1235));
    punt.register(what, &path).unwrap();
    assert_eq!(listeners.udp(1234), socket);
    punt.set(all, RegistrationState::NotPunted).unwrap();
    assert_eq!((listeners.udp(1234), listeners.udp(1235)), (socket, None));
    punt.deregister(what).unwrap();
    assert_eq!(listeners.udp(1234), None);
}

#[test]
fn without_a_socket_of_its_own_the_router_takes_no_program() {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_punt::MODULE]);
    let router = Router::new(&modules);
    let punt = router.get::<Punt>();
    let what = PuntClass::Udp(Family::Ip4, 1234);
    assert_eq!(punt.register(what, "/tmp/x".as_ref()), Err(PuntError::NotConfigured));
    assert_eq!(punt.deregister(what), Err(PuntError::NotConfigured));
    let folder = Folder::new();
    open_socket(router.control(), &folder.path("router")).unwrap();
    assert!(matches!(open_socket(router.control(), &folder.path("other")), Err(PuntError::Open(_))));
    std::fs::write(folder.path("file"), "").unwrap();
    let (file, modules) = (folder.path("file"), modules);
    let second = Router::new(&modules);
    assert!(matches!(open_socket(second.control(), &file), Err(PuntError::Socket(_))), "it is no socket");
    assert!(
        matches!(open_socket(second.control(), &folder.path("router")), Err(PuntError::Socket(_))),
        "in use"
    );
}
