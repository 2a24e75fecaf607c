//! A bfdd that asks for sessions over TCP: what the router makes of it, what it tells, restarts, bad input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::time::{Duration, Instant};

use shoal_bfd::{Bfd, Hop, Parameters, SessionKey, State};
use shoal_bfd_dataplane::{Dataplane, Meeting};
use shoal_lcp::{DaemonAddress, ListenError};
use shoal_module::Running;
use shoal_testkit::{Router, STACK};

const ADD: u16 = 2;
const DELETE: u16 = 3;
const MULTI_HOP: u32 = 1;
const ECHO: u32 = 1 << 3;
const PASSIVE: u32 = 1 << 5;
const SHUTDOWN: u32 = 1 << 6;

struct Bed {
    router: Router,
    plane: Rc<Dataplane>,
    bfd: Rc<Bfd>,
    at: SocketAddr,
}

fn address(at: &str) -> DaemonAddress {
    DaemonAddress { at: at.parse().unwrap(), netns: None }
}

fn bed() -> Bed {
    let mut modules = STACK.to_vec();
    modules.extend([
        &shoal_mfib::MODULE,
        &shoal_lcp::MODULE,
        &shoal_bfd::MODULE,
        &shoal_bfd_dataplane::MODULE,
    ]);
    let router = Router::new(&modules);
    let plane = router.get::<Dataplane>();
    let at = plane.meet(&Meeting::Listen(address("127.0.0.1:0"))).unwrap();
    Bed { bfd: router.get(), router, plane, at }
}

/// A session of the first version.
fn session(kind: u16, discr: u32, flags: u32, peer: &str, interface: &str) -> Vec<u8> {
    let mut out = vec![1, 0];
    out.extend(kind.to_be_bytes());
    out.extend([0, 0, 0, 140]);
    out.extend(flags.to_be_bytes());
    let address = |text: &str| {
        let mut all = [0; 16];
        match text.parse::<IpAddr>().unwrap() {
            IpAddr::V4(ip4) => all[..4].copy_from_slice(&ip4.octets()),
            IpAddr::V6(ip6) => all = ip6.octets(),
        }
        all
    };
    out.extend(address("10.0.0.1"));
    out.extend(address(peer));
    for number in [discr, 200_000, 300_000, 0, 0, 0] {
        out.extend(number.to_be_bytes());
    }
    out.extend([254, 5, 0, 0]);
    out.extend(7_u32.to_be_bytes());
    let mut name = [0; 64];
    name[..interface.len()].copy_from_slice(interface.as_bytes());
    out.extend(name);
    out
}

fn multi(kind: u16, discr: u32, peer: &str) -> Vec<u8> {
    session(kind, discr, MULTI_HOP, peer, "")
}

fn key(peer: &str) -> SessionKey {
    SessionKey { hop: Hop::Multi, local: "10.0.0.1".parse().unwrap(), peer: peer.parse().unwrap() }
}

impl Bed {
    fn connect(&mut self) -> TcpStream {
        let before = self.router.counter("/bfd/dataplane/connections");
        let bfdd = TcpStream::connect(self.at).unwrap();
        bfdd.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        self.until(|bed| bed.router.counter("/bfd/dataplane/connections") > before);
        bfdd
    }

    /// Runs the router until something is so; fails after ten seconds.
    fn until(&mut self, so: impl Fn(&Bed) -> bool) {
        let begun = Instant::now();
        while !so(self) {
            assert!(
                begun.elapsed() < Duration::from_secs(10),
                "it does not become so: {:?}",
                self.plane.state()
            );
            self.router.run();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sends a message and waits until it has been read.
    fn send(&mut self, bfdd: &mut TcpStream, message: &[u8]) {
        let before = self.router.counter("/bfd/dataplane/messages");
        bfdd.write_all(message).unwrap();
        self.until(|bed| bed.router.counter("/bfd/dataplane/messages") > before);
    }

    /// The next message: its type, its number, what is behind its header.
    fn told(&mut self, bfdd: &mut TcpStream) -> (u16, u16, Vec<u8>) {
        let (mut bytes, begun) = (Vec::new(), Instant::now());
        loop {
            assert!(begun.elapsed() < Duration::from_secs(10), "bfdd is told nothing more: {bytes:?}");
            self.router.run();
            let mut one = [0];
            if bfdd.read(&mut one).is_ok_and(|n| n == 1) {
                bytes.push(one[0]);
            }
            let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            if bytes.len() >= 8 && bytes.len() == usize::from(word(6)) {
                return (word(2), word(4), bytes.split_off(8));
            }
        }
    }
}

#[test]
fn a_session_is_made_changed_and_deleted_as_bfdd_says() {
    let mut bed = bed();
    let mut bfdd = bed.connect();
    bed.send(&mut bfdd, &multi(ADD, 0x0102_0304, "10.9.0.2"));
    let info = bed.bfd.info(key("10.9.0.2")).unwrap();
    let Parameters { desired_min_tx, required_min_rx, detect_mult } = info.session.parameters;
    assert_eq!((desired_min_tx, required_min_rx, detect_mult), (200_000, 300_000, 5));
    assert_eq!((info.session.discr, info.session.state), (0x0102_0304, State::Down));
    let state = bed.plane.state();
    assert_eq!((state.sessions, state.waiting, state.up), (1, 0, 0));
    // It is no configuration; where bfdd connects to is.
    let mut running = Running::default();
    for module in [&shoal_bfd::MODULE, &shoal_bfd_dataplane::MODULE] {
        (module.running)(bed.router.control(), &mut running);
    }
    let text = running.pieces().collect::<String>();
    assert!(!text.contains("10.9.0.2"), "{text}");
    assert!(text.contains(&format!("bfd dataplane listen {}", bed.at)), "{text}");
    // Switched off: bfdd is told.
    bed.send(&mut bfdd, &session(ADD, 0x0102_0304, MULTI_HOP | SHUTDOWN, "10.9.0.2", ""));
    let (kind, id, change) = bed.told(&mut bfdd);
    assert_eq!((kind, id, &change[..4], change[24]), (4, 0, &[1, 2, 3, 4][..], 0));
    assert_eq!(bed.bfd.info(key("10.9.0.2")).unwrap().session.state, State::AdminDown);
    bed.send(&mut bfdd, &multi(DELETE, 0x0102_0304, "10.9.0.2"));
    assert!(bed.bfd.info(key("10.9.0.2")).is_none());
    assert_eq!(bed.plane.state().sessions, 0);
}

#[test]
fn passive_sessions_and_the_lowest_ttl_are_as_bfdd_says() {
    let mut bed = bed();
    let mut bfdd = bed.connect();
    let mut asks = |bed: &mut Bed, flags: u32, ttl: u8| {
        let mut message = session(ADD, 3, MULTI_HOP | flags, "10.9.0.2", "");
        message[8 + 60] = ttl;
        bed.send(&mut bfdd, &message);
        let info = bed.bfd.info(key("10.9.0.2")).unwrap();
        (info.session.is_passive, info.least_ttl)
    };
    assert_eq!(asks(&mut bed, PASSIVE, 254), (true, 254));
    let sent = |bed: &mut Bed| {
        bed.router.advance(Duration::from_secs(3));
        bed.bfd.info(key("10.9.0.2")).unwrap().session.last_tx.is_some()
    };
    assert!(!sent(&mut bed), "it waits for the other end");
    assert_eq!(asks(&mut bed, 0, 200), (false, 200));
    assert!(sent(&mut bed));
    assert_eq!(asks(&mut bed, PASSIVE, 1), (true, 1));
}

#[test]
fn echo_packets_are_as_bfdd_says_but_not_over_several_hops() {
    let mut bed = bed();
    let mut bfdd = bed.connect();
    let mut asks = |bed: &mut Bed, flags: u32, times: [u32; 2]| {
        let mut message = session(ADD, 3, MULTI_HOP | flags, "10.9.0.2", "");
        for (n, time) in times.into_iter().enumerate() {
            message[8 + 48 + 4 * n..][..4].copy_from_slice(&time.to_be_bytes());
        }
        bed.send(&mut bfdd, &message);
        bed.bfd.info(key("10.9.0.2")).unwrap().session.echo_wish
    };
    assert_eq!(asks(&mut bed, ECHO, [60_000, 70_000]), None);
    assert_eq!(asks(&mut bed, ECHO, [0, 70_000]), None);
    assert_eq!(bed.router.counter("/bfd/dataplane/refused"), 1);
}

#[test]
fn counters_and_echoes_are_answered_by_number() {
    let mut bed = bed();
    let mut bfdd = bed.connect();
    bed.send(&mut bfdd, &multi(ADD, 9, "10.9.0.2"));
    bed.send(&mut bfdd, &[1, 0, 0, 5, 0x12, 0x34, 0, 12, 0, 0, 0, 9]);
    let (kind, id, counters) = bed.told(&mut bfdd);
    assert_eq!((kind, id, counters.len(), &counters[..4]), (6, 0x1234, 72, &[0, 0, 0, 9][..]));
    let mut echo = vec![2, 0, 0, 0, 0, 7, 0, 24];
    echo.extend([0xab; 16]);
    bed.send(&mut bfdd, &echo);
    assert_eq!(bed.told(&mut bfdd), (1, 7, vec![0xab; 16]));
}

#[test]
fn sessions_last_while_bfdd_is_started_again_and_go_if_it_does_not_ask_again() {
    let mut bed = bed();
    let mut bfdd = bed.connect();
    bed.send(&mut bfdd, &multi(ADD, 1, "10.9.0.2"));
    bed.send(&mut bfdd, &multi(ADD, 2, "10.9.0.3"));
    drop(bfdd);
    bed.until(|bed| bed.plane.state().connected.is_none());
    let mut bfdd = bed.connect();
    // Another number: it is the same session on the wire.
    bed.send(&mut bfdd, &multi(ADD, 77, "10.9.0.2"));
    assert_eq!(bed.bfd.info(key("10.9.0.2")).unwrap().session.discr, 1);
    assert_eq!(bed.plane.state().sessions, 2);
    bed.router.advance(Duration::from_secs(61));
    bed.until(|bed| bed.plane.state().sessions == 1);
    assert!(bed.bfd.info(key("10.9.0.2")).is_some());
    assert!(bed.bfd.info(key("10.9.0.3")).is_none());
    bed.send(&mut bfdd, &session(ADD, 77, MULTI_HOP | SHUTDOWN, "10.9.0.2", ""));
    assert_eq!(bed.told(&mut bfdd).2[..4], [0, 0, 0, 77]);
    bed.plane.stop();
    assert!(bed.bfd.list().is_empty());
}

#[test]
fn a_session_of_the_operator_is_shown_to_bfdd_and_not_touched() {
    let mut bed = bed();
    let parameters = Parameters { desired_min_tx: 100_000, required_min_rx: 100_000, detect_mult: 3 };
    bed.bfd.add(key("10.9.0.2"), parameters, None).unwrap();
    let mut bfdd = bed.connect();
    bed.send(&mut bfdd, &session(ADD, 5, MULTI_HOP | SHUTDOWN, "10.9.0.2", ""));
    let info = bed.bfd.info(key("10.9.0.2")).unwrap();
    assert_eq!((info.session.parameters, info.session.state), (parameters, State::Down));
    bed.bfd.set_admin(key("10.9.0.2"), false).unwrap();
    assert_eq!(bed.told(&mut bfdd).2[..4], [0, 0, 0, 5]);
    bed.send(&mut bfdd, &multi(DELETE, 5, "10.9.0.2"));
    assert!(bed.bfd.info(key("10.9.0.2")).is_some());
}

#[test]
fn a_session_by_an_interface_without_an_image_waits() {
    let mut bed = bed();
    let mut bfdd = bed.connect();
    bed.send(&mut bfdd, &session(ADD, 5, 0, "10.9.0.2", "e7"));
    let state = bed.plane.state();
    assert_eq!((state.sessions, state.waiting), (1, 1));
    assert!(bed.bfd.list().is_empty());
}

#[test]
fn what_is_no_message_ends_the_connection_and_what_is_no_session_is_counted() {
    let mut bed = bed();
    let mut bfdd = bed.connect();
    // A second one is turned away.
    let mut other = TcpStream::connect(bed.at).unwrap();
    bed.until(|bed| bed.router.counter("/bfd/dataplane/connections-turned-away") == 1);
    assert_eq!(other.read(&mut [0; 8]).unwrap(), 0);
    // Without a peer; with no time between packets.
    bed.send(&mut bfdd, &multi(ADD, 5, "0.0.0.0"));
    let mut no_time = multi(ADD, 6, "10.9.0.2");
    no_time[8 + 40..8 + 44].fill(0);
    bed.send(&mut bfdd, &no_time);
    bed.send(&mut bfdd, &[1, 0, 0, 2, 0, 0, 0, 8]);
    bed.send(&mut bfdd, &[1, 0, 0, 99, 0, 0, 0, 8]);
    assert_eq!(bed.router.counter("/bfd/dataplane/malformed"), 2);
    assert_eq!(bed.router.counter("/bfd/dataplane/refused"), 1);
    assert!(bed.bfd.list().is_empty());
    bfdd.write_all(&[9, 0, 0, 2, 0, 0, 0, 8]).unwrap();
    bed.until(|bed| bed.plane.state().connected.is_none());
}

#[test]
fn the_router_connects_to_a_bfdd_that_waits_for_it_again_and_again() {
    let mut bed = bed();
    let waits = TcpListener::bind("127.0.0.1:0").unwrap();
    waits.set_nonblocking(true).unwrap();
    let at = waits.local_addr().unwrap().to_string();
    bed.plane.meet(&Meeting::Connect(address(&at))).unwrap();
    for round in 1..3 {
        bed.until(|bed| bed.plane.state().connected.is_some());
        let (mut bfdd, _) = waits.accept().unwrap();
        bfdd.set_nonblocking(false).unwrap();
        bed.send(&mut bfdd, &multi(ADD, round, "10.9.0.2"));
        assert_eq!(bed.bfd.info(key("10.9.0.2")).unwrap().session.discr, 1);
        drop(bfdd);
        bed.until(|bed| bed.plane.state().connected.is_none());
        bed.router.advance(Duration::from_secs(2));
    }
    bed.plane.stop();
    assert!(bed.bfd.list().is_empty());
}

#[test]
fn only_this_machine_may_connect() {
    let bed = bed();
    let far = || address("192.0.2.1:50700");
    for far in [Meeting::Listen(far()), Meeting::Connect(far())] {
        assert!(matches!(bed.plane.meet(&far), Err(ListenError::NotLoopback(_))));
    }
    assert_eq!(bed.plane.meeting().unwrap().address().at, bed.at);
}
