//! Packets on bytes, the state machine with lost packets, sessions through a whole router, bad input, messages, saved configuration.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::time::Duration;

use shoal_bfd::api::API;
use shoal_bfd::{
    Auth, AuthType, Bfd, BfdError, Bits, ControlPacket, Diag, Echo, EchoWish, Hop, Invalid, Key, Parameters,
    Refused, Section, Session, SessionKey, State,
};
use shoal_fib::{Fib, FibIndex, Path, Source};
use shoal_module::Running;
use shoal_testkit::{PEER, PEER_MAC, PacketBuilder, Port, Rng, Router, STACK, US, api, fuzz_all_nodes};
use shoal_wire::{IpPrefix, MacAddress};

mod threads;

/// Another neighbour.
const SECOND: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
const MS: u64 = 1_000_000;

fn parameters(interval: u32) -> Parameters {
    Parameters { desired_min_tx: interval, required_min_rx: interval, detect_mult: 3 }
}

fn sha1(kind: AuthType) -> Key {
    Key::new(kind, b"a secret").unwrap()
}

#[test]
fn a_control_packet_has_these_bytes() {
    let control = ControlPacket {
        diag: Diag::EXPIRED,
        state: State::Up,
        bits: Bits(Bits::POLL),
        detect_mult: 3,
        my_discr: 0x0102_0304,
        your_discr: 0x0506_0708,
        desired_min_tx: 50_000,
        required_min_rx: 60_000,
        required_min_echo_rx: 1,
    };
    let bytes = control.write(None);
    let want = [0x21, 0xe0, 3, 24, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0xc3, 0x50, 0, 0, 0xea, 0x60, 0, 0, 0, 1];
    assert_eq!(bytes, want);
    assert_eq!(ControlPacket::read(&bytes), Ok(control));
    let key = sha1(AuthType::KeyedSha1);
    let signed = control.write(Some((&key, 9, 77)));
    assert_eq!((signed.len(), signed[1] & Bits::AUTH, signed[3]), (52, Bits::AUTH, 52));
    assert_eq!(signed[24..32], [4, 28, 9, 0, 0, 0, 0, 77]);
    assert_eq!(Section::read(&signed), Some(Section { kind: 4, key_id: 9, sequence: 77 }));
    assert!(Section::is_of(&signed, &key));
    for at in 0..signed.len() {
        let mut bad = signed.clone();
        bad[at] ^= 1;
        assert!(!Section::is_of(&bad, &key), "byte {at}");
    }
}

#[test]
fn what_is_wrong_with_a_packet_is_named_and_no_bytes_do_harm() {
    let good =
        ControlPacket { detect_mult: 3, my_discr: 1, your_discr: 2, ..ControlPacket::default() }.write(None);
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        ControlPacket::read(&bytes).unwrap_err()
    };
    assert_eq!(with(0, 0x40), Invalid::Version);
    assert_eq!(with(3, 23), Invalid::Length);
    assert_eq!(with(3, 25), Invalid::Length);
    assert_eq!(with(2, 0), Invalid::DetectMulti);
    assert_eq!(with(1, Bits::MULTIPOINT), Invalid::MultiPoint);
    assert_eq!(with(7, 0), Invalid::MyDisc);
    let init = ControlPacket { state: State::Init, detect_mult: 3, my_discr: 1, ..ControlPacket::default() };
    assert_eq!(ControlPacket::read(&init.write(None)), Err(Invalid::YourDisc));
    let mut rng = Rng::new(5);
    for _ in 0..20_000 {
        let len = rng.below(70);
        let bytes: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
        let _ = (ControlPacket::read(&bytes), Section::read(&bytes));
        let _ = Echo::read(&bytes, &sha1(AuthType::KeyedSha1));
    }
}

#[test]
fn an_echo_packet_is_known_by_its_sender_alone() {
    let (ours, theirs) = (sha1(AuthType::KeyedSha1), Key::new(AuthType::KeyedSha1, b"other").unwrap());
    let echo = Echo { discr: 7, expires: 99 };
    let bytes = echo.write(&ours);
    assert_eq!((Echo::read(&bytes, &ours), Echo::read(&bytes, &theirs)), (Some(echo), None));
    for at in 0..bytes.len() {
        let mut bad = bytes;
        bad[at] ^= 0x80;
        assert_eq!(Echo::read(&bad, &ours), None);
    }
}

/// Two sessions and a link between them that loses packets.
struct Pair {
    ends: [Session; 2],
    now: u64,
    rng: Rng,
    lost: usize,
    changes: Vec<(usize, State)>,
}

impl Pair {
    fn new(seed: u64, interval: u32) -> Pair {
        let end = |discr| Session::new(discr, parameters(interval), None, 1, 0);
        Pair { ends: [end(1), end(2)], now: 0, rng: Rng::new(seed), lost: 0, changes: Vec::new() }
    }

    fn deliver(&mut self, from: usize, bits: u8) {
        let bytes = self.ends[from].sent(bits, self.now, 0.5);
        if self.rng.below(100) < self.lost {
            return;
        }
        let control = ControlPacket::read(&bytes).unwrap();
        let to = 1 - from;
        let Ok(todo) = self.ends[to].receive(&control, &bytes, self.now) else { return };
        self.note(to, todo.changed);
        if let Some(bits) = todo.send {
            self.deliver(to, bits);
        }
    }

    fn note(&mut self, end: usize, changed: bool) {
        if changed {
            self.changes.push((end, self.ends[end].state));
        }
    }

    fn run(&mut self, time: u64) {
        let until = self.now + time;
        while let Some((at, end)) =
            (0..2).filter_map(|end| self.ends[end].deadline().map(|at| (at.max(self.now), end))).min()
        {
            if at > until {
                break;
            }
            self.now = at;
            let todo = self.ends[end].due(at, 0.5);
            self.note(end, todo.changed);
            if let Some(bits) = todo.send {
                self.deliver(end, bits);
            }
            assert!(
                self.ends[end].deadline().is_none_or(|next| next > at),
                "something is done when it is due"
            );
        }
        self.now = until;
    }

    fn states(&self) -> [State; 2] {
        [self.ends[0].state, self.ends[1].state]
    }
}

#[test]
fn two_sessions_come_up_stay_up_with_some_loss_and_go_down_in_their_time_without_packets() {
    for seed in 0..40 {
        let mut pair = Pair::new(seed, 50_000);
        pair.run(3_000 * MS);
        assert_eq!(pair.states(), [State::Up; 2], "seed {seed}");
        assert_eq!(pair.ends[0].detection(), Some(150 * MS));
        pair.changes.clear();
        // One packet of three may be lost at a time; five percent lose three in a row hardly ever in a second.
        pair.lost = 3;
        pair.run(1_000 * MS);
        pair.lost = 100;
        let begun = pair.now;
        pair.run(151 * MS + 50 * MS);
        assert_eq!(pair.states(), [State::Down; 2], "seed {seed}");
        assert!(pair.now - begun <= 201 * MS);
        assert_eq!(pair.ends[0].diag, Diag::EXPIRED);
        assert_eq!(pair.ends[0].remote.discr, 0, "nothing is known of the other end");
        pair.lost = 0;
        pair.run(4_000 * MS);
        assert_eq!(pair.states(), [State::Up; 2], "they come up again");
    }
}

#[test]
fn new_times_are_asked_for_and_count_when_the_other_end_knows() {
    let mut pair = Pair::new(1, 100_000);
    pair.run(3_000 * MS);
    pair.ends[0].modify(parameters(300_000), pair.now);
    assert_eq!(pair.ends[0].control(0).bits.0 & Bits::POLL, Bits::POLL);
    assert_eq!(pair.ends[0].interval(), 100 * MS, "a longer time does not count yet");
    pair.run(500 * MS);
    assert_eq!(pair.ends[0].interval(), 300 * MS);
    assert_eq!(pair.ends[1].detection(), Some(900 * MS));
    pair.ends[0].modify(parameters(20_000), pair.now);
    assert_eq!(
        pair.ends[0].interval(),
        100 * MS,
        "a shorter one counts at once, as far as the other end can receive"
    );
    pair.run(2_000 * MS);
    assert_eq!(pair.states(), [State::Up; 2]);
}

#[test]
fn a_session_that_is_switched_off_is_down_at_the_other_end_and_takes_nothing() {
    let mut pair = Pair::new(1, 100_000);
    pair.run(3_000 * MS);
    assert!(pair.ends[0].set_admin(false, pair.now).changed);
    pair.run(60 * MS);
    assert_eq!(pair.states(), [State::AdminDown, State::Down]);
    assert_eq!(pair.ends[1].diag, Diag::NEIGHBOR_DOWN);
    let bytes = pair.ends[1].sent(0, pair.now, 0.5);
    let control = ControlPacket::read(&bytes).unwrap();
    assert_eq!(pair.ends[0].receive(&control, &bytes, pair.now), Err(Refused::AdminDown));
    assert!(pair.ends[0].set_admin(true, pair.now).changed);
    pair.run(4_000 * MS);
    assert_eq!(pair.states(), [State::Up; 2]);
}

#[test]
fn signed_sessions_take_signed_packets_in_order_alone() {
    for kind in [AuthType::KeyedSha1, AuthType::MeticulousKeyedSha1] {
        let auth = Auth { conf_key: 1, key: sha1(kind), key_id: 7 };
        let mut pair = Pair::new(3, 100_000);
        pair.ends.iter_mut().for_each(|end| end.set_auth(Some(auth)));
        pair.run(3_000 * MS);
        assert_eq!(pair.states(), [State::Up; 2]);
        let old = pair.ends[0].sent(0, pair.now, 0.5);
        let read = |bytes: &[u8]| ControlPacket::read(bytes).unwrap();
        pair.ends[1].receive(&read(&old), &old, pair.now).unwrap();
        let again = pair.ends[1].receive(&read(&old), &old, pair.now).is_ok();
        assert_eq!(again, kind == AuthType::KeyedSha1, "a packet that is repeated");
        let plain = pair.ends[0].control(0).write(None);
        assert_eq!(pair.ends[1].receive(&read(&plain), &plain, pair.now), Err(Refused::Verification));
        let forged = pair.ends[0].control(0).write(Some((&Key::new(kind, b"guess").unwrap(), 7, 99)));
        assert_eq!(pair.ends[1].receive(&read(&forged), &forged, pair.now), Err(Refused::Verification));
        // A change that waits for the other end.
        pair.ends[1].next_auth = Some(None);
        pair.ends[0].set_auth(None);
        pair.run(1_000 * MS);
        assert_eq!((pair.states(), pair.ends[1].auth), ([State::Up; 2], None));
    }
}

struct Bed {
    router: Router,
    port: Port,
    /// Where others are.
    lan: Port,
    bfd: Rc<Bfd>,
    key: SessionKey,
    events: Rc<RefCell<Vec<State>>>,
}

fn bed() -> Bed {
    let mut modules = STACK.to_vec();
    modules.push(&shoal_bfd::MODULE);
    let mut router = Router::new(&modules);
    let port = router.pg(0);
    router.set_address(&port, "10.0.0.1/24");
    router.set_neighbour(&port, PEER, PEER_MAC);
    let lan = router.pg(1);
    router.set_address(&lan, "10.9.0.1/24");
    router.set_neighbour(&port, SECOND, MacAddress([2, 0xcc, 0, 0, 0, 3]));
    router.advance(Duration::from_secs(3));
    port.received();
    let bfd = router.get::<Bfd>();
    let key = SessionKey { hop: Hop::Single(port.index()), local: US.into(), peer: PEER.into() };
    let events: Rc<RefCell<Vec<State>>> = Rc::default();
    let heard = Rc::clone(&events);
    bfd.observe(move |_, session| heard.borrow_mut().push(session.state));
    Bed { router, port, lan, bfd, key, events }
}

impl Bed {
    /// Control packets that leave within a time; they are as they should be.
    fn sent(&mut self, time: Duration) -> Vec<ControlPacket> {
        let mut all = Vec::new();
        for _ in 0..time.as_millis() / 10 {
            self.router.advance(Duration::from_millis(10));
            // The router speaks other protocols, too.
            let is_bfd = |frame: &Vec<u8>| frame[12..14] == [8, 0] && frame[23] == 17;
            for frame in self.port.received().into_iter().filter(is_bfd) {
                let (ip, udp) = (&frame[14..34], &frame[34..42]);
                assert_eq!((ip[1], ip[8], ip[9]), (192, 255, 17), "CS6, TTL 255, UDP");
                assert_eq!((&ip[12..16], &ip[16..20]), (&US.octets()[..], &PEER.octets()[..]));
                assert_eq!(udp[2..4], 3784u16.to_be_bytes());
                assert!(u16::from_be_bytes([udp[0], udp[1]]) >= 49_152);
                all.push(ControlPacket::read(&frame[42..]).unwrap());
            }
        }
        all
    }

    fn receive(&mut self, control: ControlPacket, ttl: u8) {
        let frame = PacketBuilder::ethernet(PEER_MAC, self.port.mac()).ip4(PEER, US).ttl(ttl);
        let frame = frame.udp(50_000, 3784).payload(&control.write(None)).build();
        self.router.send(&self.port, frame);
        self.router.run();
    }

    fn peers_packet(&self, state: State) -> ControlPacket {
        ControlPacket {
            state,
            detect_mult: 3,
            my_discr: 99,
            your_discr: self.bfd.list()[0].session.discr,
            desired_min_tx: 50_000,
            required_min_rx: 50_000,
            ..ControlPacket::default()
        }
    }

    fn route(prefix: &str) -> IpPrefix {
        prefix.parse().unwrap()
    }

    /// The station that a packet is sent to.
    fn leads(&mut self, to: [u8; 4]) -> Option<[u8; 6]> {
        let frame = PacketBuilder::ethernet(PEER_MAC, self.lan.mac()).ip4([10, 9, 0, 9], to);
        self.router.send(&self.lan, frame.udp(1, 2).build());
        let left = self.port.received().into_iter().find(|frame| frame[30..34] == to);
        left.map(|frame| frame[..6].try_into().unwrap())
    }

    /// Whether a route with one way is used.
    fn forwards(&mut self) -> bool {
        self.leads([198, 51, 100, 9]) == Some(PEER_MAC.0)
    }

    /// Whether a route with two ways uses the better one, which is watched.
    fn uses_first(&mut self) -> bool {
        match self.leads([203, 0, 113, 9]) {
            Some(mac) => mac == PEER_MAC.0,
            None => panic!("the route leads nowhere"),
        }
    }
}

#[test]
fn a_session_comes_up_its_next_hop_is_used_and_goes_down_in_time() {
    let mut bed = bed();
    let path = |to: IpAddr| Path::next_hop(to, bed.port.index());
    let fib = bed.router.get::<Fib>();
    fib.add(FibIndex::DEFAULT, Bed::route("198.51.100.0/24"), Source::Cli, &[path(PEER.into())]).unwrap();
    let second = Path { preference: 1, ..path(SECOND.into()) };
    let two = [path(PEER.into()), second];
    fib.add(FibIndex::DEFAULT, Bed::route("203.0.113.0/24"), Source::Cli, &two).unwrap();
    assert!(bed.forwards() && bed.uses_first());
    bed.bfd.add(bed.key, parameters(50_000), None).unwrap();
    assert!(!bed.forwards(), "a route without another way leads nowhere");
    assert!(!bed.uses_first(), "a next hop whose session is not up is avoided");
    let slow = bed.sent(Duration::from_secs(3));
    assert!((3..=4).contains(&slow.len()), "one a second: {}", slow.len());
    assert!(slow.iter().all(|c| c.state == State::Down && c.desired_min_tx == 1_000_000));
    bed.receive(bed.peers_packet(State::Init), 255);
    assert_eq!(*bed.events.borrow(), [State::Up]);
    assert!(bed.forwards() && bed.uses_first());
    for _ in 0..10 {
        assert!(!bed.sent(Duration::from_millis(50)).is_empty());
        bed.receive(bed.peers_packet(State::Up), 255);
    }
    assert_eq!(bed.events.borrow().len(), 1, "it stays up");
    bed.sent(Duration::from_millis(140));
    assert_eq!(bed.events.borrow().len(), 1);
    bed.sent(Duration::from_millis(30));
    assert_eq!(*bed.events.borrow(), [State::Up, State::Down]);
    assert!(!bed.forwards() && !bed.uses_first());
    bed.bfd.del(bed.key).unwrap();
    assert!(bed.forwards() && bed.uses_first(), "without a session it is used");
}

#[test]
fn a_neighbour_that_is_not_known_is_asked_for_although_its_session_is_down() {
    let mut bed = bed();
    let peer = Ipv4Addr::new(10, 0, 0, 77);
    let key = SessionKey { peer: peer.into(), ..bed.key };
    bed.bfd.add(key, parameters(50_000), None).unwrap();
    let asks = |bed: &mut Bed| {
        bed.router.advance(Duration::from_secs(2));
        let is_arp = |frame: &Vec<u8>| frame[12..14] == [8, 6] && frame[38..42] == peer.octets();
        bed.port.received().iter().any(is_arp)
    };
    assert!(asks(&mut bed));
    // A route to it, by which nothing goes: the session's packets ask all the same.
    let fib = bed.router.get::<Fib>();
    let path = Path::next_hop(IpAddr::V4(peer), bed.port.index());
    fib.add(FibIndex::DEFAULT, Bed::route("10.0.0.77/32"), Source::Cli, &[path]).unwrap();
    assert!(asks(&mut bed));
    bed.router.set_neighbour(&bed.port, peer, PEER_MAC);
    bed.router.advance(Duration::from_secs(2));
    let dropped = bed.router.error("ip4-local", "ip4 source lookup miss");
    let is_bfd = |frame: &Vec<u8>| frame[12..14] == [8, 0] && frame[30..34] == peer.octets();
    assert!(bed.port.received().iter().any(is_bfd));
    // What it sends is taken.
    let control = ControlPacket { my_discr: 9, ..bed.peers_packet(State::Down) };
    let control = ControlPacket { your_discr: 0, ..control };
    let frame = PacketBuilder::ethernet(PEER_MAC, bed.port.mac()).ip4(peer, US).ttl(255);
    bed.router.send(&bed.port, frame.udp(50_000, 3784).payload(&control.write(None)).build());
    assert_eq!(bed.router.error("ip4-local", "ip4 source lookup miss"), dropped);
    assert_eq!(bed.events.borrow().last(), Some(&State::Init));
}

#[test]
fn packets_of_strangers_are_dropped_and_counted() {
    let mut bed = bed();
    bed.bfd.add(bed.key, parameters(50_000), None).unwrap();
    bed.receive(bed.peers_packet(State::Init), 254);
    assert_eq!(bed.router.error("bfd-udp4-input", "ttl"), 1);
    bed.receive(ControlPacket { your_discr: 12345, ..bed.peers_packet(State::Init) }, 255);
    assert_eq!(bed.router.counter("/bfd/dropped/no-session"), 1);
    let discr = bed.bfd.list()[0].session.discr;
    let other = SessionKey { peer: SECOND.into(), ..bed.key };
    bed.bfd.add(other, parameters(50_000), None).unwrap();
    let of_other = bed.bfd.list()[1].session.discr;
    assert_ne!(discr, of_other);
    bed.receive(ControlPacket { your_discr: of_other, ..bed.peers_packet(State::Init) }, 255);
    assert_eq!(bed.router.counter("/bfd/dropped/address-mismatch"), 1);
    assert!(bed.events.borrow().is_empty());
    let frame = PacketBuilder::ethernet(PEER_MAC, bed.port.mac()).ip4(PEER, US).ttl(255);
    bed.router.send(&bed.port, frame.udp(50_000, 3785).payload(&[7; 20]).build());
    bed.router.run();
    assert_eq!(bed.router.counter("/bfd/dropped/echo"), 1);
}

#[test]
fn random_packets_do_no_harm() {
    let mut bed = bed();
    bed.router.may_hold(2000);
    fuzz_all_nodes(&mut bed.router, 9, 200);
}

#[test]
fn mistakes_change_nothing_and_sessions_go_with_their_interface() {
    let bed = bed();
    let bfd = &bed.bfd;
    let zero = Parameters { detect_mult: 0, ..parameters(1) };
    assert_eq!(bfd.add(bed.key, zero, None), Err(BfdError::Zero("detect-mult")));
    assert_eq!(bfd.add(bed.key, parameters(0), None), Err(BfdError::Zero("desired-min-tx")));
    let mixed = SessionKey { peer: "2001:db8::2".parse().unwrap(), ..bed.key };
    assert!(matches!(bfd.add(mixed, parameters(1), None), Err(BfdError::Addresses(..))));
    let nowhere = SessionKey { hop: Hop::Single(shoal_interface::SwIfIndex(99)), ..bed.key };
    assert!(matches!(bfd.add(nowhere, parameters(1), None), Err(BfdError::Interface(_))));
    assert_eq!(bfd.add(bed.key, parameters(1), Some((5, 1))), Err(BfdError::None), "no such key");
    assert!(bfd.list().is_empty());
    bfd.set_key(5, AuthType::KeyedSha1, b"x").unwrap();
    assert_eq!(bfd.set_key(6, AuthType::KeyedSha1, b""), Err(BfdError::Secret));
    assert_eq!(bfd.set_key(6, AuthType::KeyedSha1, &[1; 21]), Err(BfdError::Secret));
    bfd.add(bed.key, parameters(50_000), Some((5, 1))).unwrap();
    assert_eq!(bfd.add(bed.key, parameters(50_000), None), Err(BfdError::Exists));
    assert_eq!(
        (bfd.del_key(5), bfd.set_key(5, AuthType::KeyedSha1, b"y")),
        (Err(BfdError::InUse), Err(BfdError::InUse))
    );
    assert_eq!(bfd.del_key(6), Err(BfdError::None));
    bed.router.interfaces().delete(bed.port.index()).unwrap();
    assert!(bfd.list().is_empty());
    assert_eq!(*bed.events.borrow(), [State::AdminDown]);
    assert_eq!(bfd.modify(bed.key, parameters(1)), Err(BfdError::None));
    assert_eq!(bfd.del(bed.key), Err(BfdError::None));
    bfd.del_key(5).unwrap();
}

#[test]
fn messages_are_those_of_vpp_and_sessions_are_saved() {
    let bed = bed();
    api::same_as_vpp(&[&API]);
    bed.bfd.set_key(5, AuthType::MeticulousKeyedSha1, b"\x01\xff").unwrap();
    bed.bfd.add(bed.key, parameters(50_000), Some((5, 1))).unwrap();
    let far = SessionKey { hop: Hop::Multi, ..bed.key };
    bed.bfd.add(far, parameters(70_000), None).unwrap();
    bed.bfd.set_admin(far, false).unwrap();
    bed.bfd.set_echo_source(Some(bed.port.index())).unwrap();
    bed.bfd.set_tos(0);
    let mut running = Running::default();
    (shoal_bfd::MODULE.running)(bed.router.control(), &mut running);
    let text = running.pieces().collect::<String>();
    for line in [
        "bfd key set conf-key-id 5 type meticulous-keyed-sha1 secret 01ff\n",
        "bfd udp tos 0\n",
        "local-addr 10.0.0.1 peer-addr 10.0.0.2 desired-min-tx 50000 required-min-rx 50000 detect-mult 3 \
         conf-key-id 5 bfd-key-id 1\n",
        "bfd udp session add multihop local-addr 10.0.0.1 peer-addr 10.0.0.2 desired-min-tx 70000 \
         required-min-rx 70000 detect-mult 3\n",
        "bfd udp session set-flags admin down multihop local-addr 10.0.0.1 peer-addr 10.0.0.2\n",
        "bfd udp echo-source set interface pg0\n",
    ] {
        assert!(text.contains(line), "{line} is not in:\n{text}");
    }
}
