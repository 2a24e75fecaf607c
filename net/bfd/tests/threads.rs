//! Sessions that are up: which thread sees to them, what happens when workers come and go, what strangers can do to them.

use super::*;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use shoal_graph::{FrameCx, NoError, NoNext, RxQueue};
use shoal_testkit::PacketInjector;

/// Peers have these addresses: 10.0.0.10 and so on.
const FIRST: u8 = 10;

/// A router with sessions to neighbours on one link, which answer.
struct Crowd {
    bed: Bed,
    keys: Vec<SessionKey>,
    auth: Option<Auth>,
    sequence: u32,
}

fn peer(n: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, FIRST + n as u8)
}

impl Crowd {
    fn new(sessions: usize) -> Crowd {
        Crowd::signed(sessions, None)
    }

    fn signed(sessions: usize, auth: Option<Auth>) -> Crowd {
        let mut bed = bed();
        if let Some(auth) = auth {
            bed.bfd.set_key(auth.conf_key, auth.key.kind, auth.key.secret()).unwrap();
        }
        let key = |n| SessionKey { peer: peer(n).into(), ..bed.key };
        let keys: Vec<SessionKey> = (0..sessions).map(key).collect();
        for (n, key) in keys.iter().enumerate() {
            bed.router.set_neighbour(&bed.port, peer(n), PEER_MAC);
            bed.bfd.add(*key, parameters(50_000), auth.map(|auth| (auth.conf_key, auth.key_id))).unwrap();
        }
        bed.router.advance(Duration::from_millis(20));
        let mut crowd = Crowd { bed, keys, auth, sequence: 1 };
        for state in [State::Init, State::Up, State::Up] {
            crowd.all_say(state);
            crowd.bed.router.run();
        }
        assert!(crowd.states().iter().all(|state| *state == State::Up), "{:?}", crowd.states());
        crowd.bed.router.advance(Duration::from_millis(20));
        // Each has been asked about its times, and has answered.
        crowd.say_all(State::Up, Bits::FINAL);
        crowd.bed.router.run();
        crowd.bed.port.received();
        crowd.bed.events.borrow_mut().clear();
        crowd
    }

    fn states(&self) -> Vec<State> {
        self.keys.iter().map(|key| self.bed.bfd.state_of(*key).unwrap()).collect()
    }

    /// What a peer sends.
    fn frame(&mut self, n: usize, state: State, bits: u8) -> Vec<u8> {
        let control = ControlPacket {
            state,
            bits: Bits(bits),
            detect_mult: 3,
            my_discr: 1000 + n as u32,
            your_discr: self.bed.bfd.info(self.keys[n]).unwrap().session.discr,
            desired_min_tx: 50_000,
            required_min_rx: 50_000,
            ..ControlPacket::default()
        };
        let bytes = control.write(self.auth.as_ref().map(|auth| (&auth.key, auth.key_id, self.sequence)));
        self.wrap(n, 255, &bytes)
    }

    fn wrap(&self, n: usize, ttl: u8, bytes: &[u8]) -> Vec<u8> {
        let frame = PacketBuilder::ethernet(PEER_MAC, self.bed.port.mac()).ip4(peer(n), US).ttl(ttl);
        frame.udp(50_000, 3784).payload(bytes).build()
    }

    fn frames(&mut self, state: State, bits: u8) -> Vec<Vec<u8>> {
        self.sequence += 1;
        (0..self.keys.len()).map(|n| self.frame(n, state, bits)).collect()
    }

    fn say_all(&mut self, state: State, bits: u8) {
        let frames = self.frames(state, bits);
        self.bed.router.send_all(&self.bed.port, frames);
    }

    fn all_say(&mut self, state: State) {
        self.say_all(state, 0);
    }

    /// How many control packets each peer has been sent since the last look.
    fn heard(&mut self) -> Vec<usize> {
        let mut counts = vec![0; self.keys.len()];
        for frame in self.bed.port.received() {
            if frame[12..14] == [8, 0] && frame[23] == 17 && frame[36..38] == 3784u16.to_be_bytes() {
                let control = ControlPacket::read(&frame[42..]).unwrap();
                assert_eq!((control.state, control.desired_min_tx, frame[22]), (State::Up, 50_000, 255));
                assert_eq!(shoal_wire::checksum::checksum(&frame[14..34]), 0);
                counts[usize::from(frame[33] - FIRST)] += 1;
            }
        }
        counts
    }

    fn by_thread(&self) -> Vec<(usize, usize)> {
        self.bed.bfd.given_away().unwrap().into_iter().filter(|(_, held)| *held > 0).collect()
    }
}

#[test]
fn sessions_that_are_up_are_the_workers_and_move_when_these_come_and_go() {
    let mut crowd = Crowd::new(30);
    assert_eq!(crowd.by_thread(), [(0, 30)], "without workers the main thread forwards");
    for step in 0..40 {
        match step {
            5 | 10 | 20 => drop(crowd.bed.router.graph().add_worker(None).unwrap()),
            15 => crowd.bed.router.graph().remove_worker(1).unwrap(),
            25 => crowd.bed.router.graph().stop_workers().unwrap(),
            _ => {}
        }
        let want = match step {
            0..5 | 25.. => vec![(0, 30)],
            5..10 => vec![(1, 30)],
            15..20 => vec![(2, 30)],
            _ => vec![(1, 15), (2, 15)],
        };
        assert_eq!(crowd.by_thread(), want, "step {step}");
        crowd.bed.router.advance(Duration::from_millis(50));
        let heard = crowd.heard();
        assert!(heard.iter().all(|n| (1..=2).contains(n)), "step {step}: {heard:?}");
        crowd.all_say(State::Up);
    }
    assert!(crowd.bed.events.borrow().is_empty(), "{:?}", crowd.bed.events.borrow());
    // Their times are those of the worker's packets.
    let session = &crowd.bed.bfd.list()[7].session;
    let now = crowd.bed.bfd.clock();
    assert!(session.last_rx.unwrap() <= now && session.last_tx.unwrap() + 60 * MS > now);
    let counts = crowd.bed.bfd.list()[7].counts;
    assert!(counts[0].0 >= 40 && counts[1].0 >= 40, "{counts:?}");
    // The peers fall silent: all are down in time.
    crowd.bed.router.graph().add_worker(None).unwrap();
    crowd.bed.router.advance(Duration::from_millis(145));
    assert!(crowd.bed.events.borrow().is_empty());
    crowd.bed.router.advance(Duration::from_millis(10));
    assert_eq!(*crowd.bed.events.borrow(), [State::Down; 30]);
    assert!(crowd.by_thread().is_empty(), "the main thread sees to what is down");
    let is_down =
        |info: &shoal_bfd::SessionInfo| info.session.diag == Diag::EXPIRED && info.session.remote.discr == 0;
    assert!(crowd.bed.bfd.list().iter().all(is_down));
}

/// Runs the workers alone: the main thread is busy with something else.
fn workers_alone(crowd: &Crowd, injector: &PacketInjector, time: Duration) {
    let graph = crowd.bed.router.graph();
    graph.clock().advance(time);
    while injector.waiting() > 0 {
        graph.wake(1);
        std::thread::yield_now();
    }
    for _ in 0..3 {
        graph.barrier(Duration::from_secs(10)).unwrap();
    }
}

#[test]
fn a_main_thread_that_is_away_for_a_while_costs_no_session_and_delays_no_packet() {
    let mut crowd = Crowd::new(20);
    crowd.bed.router.graph().add_worker(None).unwrap();
    crowd.bed.router.run();
    let injector = PacketInjector::new(&crowd.bed.router, &crowd.bed.port, 1);
    let mut sent = vec![0; 20];
    for _ in 0..40 {
        for frame in crowd.frames(State::Up, 0) {
            injector.give(frame);
        }
        workers_alone(&crowd, &injector, Duration::from_millis(25));
        sent.iter_mut().zip(crowd.heard()).for_each(|(all, now)| *all += now);
    }
    // A second at 75 to 100 percent of 50 ms.
    assert!(sent.iter().all(|n| (18..=27).contains(n)), "{sent:?}");
    crowd.bed.router.run();
    assert!(crowd.bed.events.borrow().is_empty());
    assert_eq!(crowd.by_thread(), [(1, 20)]);
}

#[test]
fn packets_that_waited_while_their_thread_was_stopped_count() {
    let mut crowd = Crowd::new(3);
    for _ in 0..10 {
        for frame in crowd.frames(State::Up, 0) {
            crowd.bed.router.inject("ethernet-input", crowd.bed.port.index(), &frame);
        }
        // The thread runs again, and finds its clock before its packets.
        crowd.bed.router.graph().clock().advance(Duration::from_millis(200));
        crowd.bed.router.run();
    }
    assert!(crowd.bed.events.borrow().is_empty(), "{:?}", crowd.bed.events.borrow());
}

/// A receive queue that keeps its thread.
struct Stuck(Arc<AtomicBool>);

impl RxQueue for Stuck {
    fn poll(&mut self, _: &mut FrameCx<'_>) -> usize {
        while self.0.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        0
    }
}

#[test]
fn sessions_of_a_thread_that_does_not_move_are_the_main_threads_until_it_does() {
    let mut crowd = Crowd::new(5);
    let graph = Rc::clone(crowd.bed.router.graph());
    graph.add_worker(None).unwrap();
    let stuck = Arc::new(AtomicBool::new(false));
    let node = graph.add_input::<NoNext, NoError>("test-stuck").unwrap();
    graph.add_queue("stuck", 0, node, Some(1), Box::new(Stuck(Arc::clone(&stuck)))).unwrap();
    crowd.bed.router.run();
    assert_eq!(crowd.by_thread(), [(1, 5)]);
    stuck.store(true, Ordering::Relaxed);
    graph.wake(1);
    let processes = crowd.bed.router.control().processes().unwrap();
    let mut heard = Vec::new();
    for _ in 0..20 {
        for frame in crowd.frames(State::Up, 0) {
            crowd.bed.router.inject("ethernet-input", crowd.bed.port.index(), &frame);
        }
        graph.clock().advance(Duration::from_millis(50));
        graph.round();
        while processes.run_until_idle() || graph.round().worked {}
        heard.push(crowd.heard());
    }
    assert!(heard[10..].iter().all(|all| all.iter().all(|n| (1..=2).contains(n))), "{heard:?}");
    assert!(crowd.bed.events.borrow().is_empty());
    stuck.store(false, Ordering::Relaxed);
    for _ in 0..30 {
        crowd.bed.router.advance(Duration::from_millis(50));
        crowd.all_say(State::Up);
    }
    assert_eq!(crowd.by_thread(), [(1, 5)]);
    assert!(crowd.bed.events.borrow().is_empty());
}

#[test]
fn a_flood_of_strangers_is_bounded_and_costs_no_session() {
    let mut crowd = Crowd::new(4);
    crowd.bed.router.graph().add_worker(None).unwrap();
    crowd.bed.router.run();
    let injector = PacketInjector::new(&crowd.bed.router, &crowd.bed.port, 1);
    let stranger = ControlPacket { detect_mult: 3, my_discr: 5, ..ControlPacket::default() };
    let unknown = ControlPacket { your_discr: 0xdead_beef, state: State::Up, ..stranger };
    let (first, second) =
        (crowd.wrap(90, 255, &stranger.write(None)), crowd.wrap(91, 255, &unknown.write(None)));
    for _ in 0..20 {
        for _ in 0..500 {
            injector.give(first.clone());
            injector.give(second.clone());
        }
        for frame in crowd.frames(State::Up, 0) {
            injector.give(frame);
        }
        workers_alone(&crowd, &injector, Duration::from_millis(25));
    }
    // One of the peers says that it is down, in the midst of it.
    let down = crowd.frame(2, State::Down, 0);
    injector.give(down);
    workers_alone(&crowd, &injector, Duration::from_millis(1));
    let no_session = crowd.bed.router.counter("/bfd/dropped/no-session");
    assert_eq!(no_session, 20_000, "without the main thread");
    crowd.bed.router.run();
    assert_eq!(*crowd.bed.events.borrow(), [State::Down], "the peer is heard, and nothing else has happened");
    assert_eq!(crowd.states(), [State::Up, State::Up, State::Down, State::Up]);
    // A session that was made just now, and is not known to all threads: the main thread looks at some.
    let key = SessionKey { peer: peer(80).into(), ..crowd.bed.key };
    crowd.bed.bfd.add(key, parameters(50_000), None).unwrap();
    for _ in 0..3000 {
        injector.give(first.clone());
    }
    workers_alone(&crowd, &injector, Duration::from_millis(1));
    let congested = crowd.bed.router.error("bfd-udp4-input", "not looked at, too many at a time");
    assert!((1900..=2000).contains(&congested), "{congested}");
    crowd.bed.router.run();
    assert_eq!(crowd.bed.router.counter("/bfd/dropped/no-session") + congested, 23_000);
}

#[test]
fn packets_with_wrong_signatures_ttl_or_addresses_keep_no_session_up_and_take_none_down() {
    let key = sha1(AuthType::MeticulousKeyedSha1);
    let (auth, other) = (Auth { conf_key: 1, key, key_id: 7 }, Key::new(key.kind, b"guess").unwrap());
    for forge in 0..4 {
        let mut crowd = Crowd::signed(3, Some(auth));
        crowd.bed.router.graph().add_worker(None).unwrap();
        crowd.bed.router.run();
        let injector = PacketInjector::new(&crowd.bed.router, &crowd.bed.port, 1);
        let old = crowd.frame(0, State::Up, 0);
        for _ in 0..5 {
            let mut frames = crowd.frames(State::Up, 0);
            // The first session's peer is cut off, and another station speaks for it, and says so or that it is down.
            let good = frames[0].clone();
            let mut down = crowd.frame(0, State::Down, 0);
            match forge {
                // Another secret.
                0 => {
                    let wrong = Some((&other, 7, crowd.sequence));
                    for frame in [&mut frames[0], &mut down] {
                        let control = ControlPacket::read(&frame[42..]).unwrap();
                        *frame = crowd.wrap(0, 255, &control.write(wrong));
                    }
                }
                // From behind a router.
                1 => {
                    frames[0] = crowd.wrap(0, 254, &good[42..]);
                    down = crowd.wrap(0, 254, &down[42..]);
                }
                // From another address.
                2 => {
                    frames[0] = crowd.wrap(5, 255, &good[42..]);
                    down = crowd.wrap(5, 255, &down[42..]);
                }
                // A packet of before.
                _ => (frames[0], down) = (old.clone(), old.clone()),
            }
            frames.push(down);
            for frame in frames {
                injector.give(frame);
            }
            workers_alone(&crowd, &injector, Duration::from_millis(20));
            crowd.bed.router.run();
        }
        assert!(
            crowd.bed.events.borrow().is_empty(),
            "{forge}: none is taken down: {:?}",
            crowd.bed.events.borrow()
        );
        for _ in 0..8 {
            for frame in crowd.frames(State::Up, 0).into_iter().skip(1) {
                injector.give(frame);
            }
            workers_alone(&crowd, &injector, Duration::from_millis(20));
            crowd.bed.router.run();
        }
        assert_eq!(crowd.states(), [State::Down, State::Up, State::Up], "{forge}: none is kept up");
        let router = &crowd.bed.router;
        let counted = match forge {
            1 => router.error("bfd-udp4-input", "ttl"),
            2 => router.counter("/bfd/dropped/address-mismatch"),
            _ => router.counter("/bfd/dropped/failed-verification"),
        };
        assert!(counted >= 8, "{forge}: {counted}");
    }
}

#[test]
fn signed_packets_of_a_worker_are_in_order_and_right() {
    let key = sha1(AuthType::MeticulousKeyedSha1);
    let mut crowd = Crowd::signed(1, Some(Auth { conf_key: 1, key, key_id: 7 }));
    crowd.bed.router.graph().add_worker(None).unwrap();
    let mut last = None;
    for _ in 0..20 {
        crowd.bed.router.advance(Duration::from_millis(50));
        for frame in crowd.bed.port.received().into_iter().filter(|frame| frame[23] == 17) {
            assert!(Section::is_of(&frame[42..], &key));
            let sequence = Section::read(&frame[42..]).unwrap().sequence;
            assert!(last.is_none_or(|last| sequence == last + 1), "{sequence} after {last:?}");
            last = Some(sequence);
        }
        crowd.all_say(State::Up);
    }
    assert!(last.is_some() && crowd.bed.events.borrow().is_empty());
}

#[test]
fn what_is_changed_of_a_session_that_a_worker_has_counts_at_once() {
    let mut crowd = Crowd::new(2);
    crowd.bed.router.graph().add_worker(None).unwrap();
    crowd.bed.router.run();
    let (first, second) = (crowd.keys[0], crowd.keys[1]);
    // Other parameters: the other end is asked, and the worker has it again when that has answered.
    crowd.bed.bfd.modify(first, Parameters { detect_mult: 9, ..parameters(40_000) }).unwrap();
    assert_eq!(crowd.by_thread(), [(1, 1)]);
    crowd.bed.router.advance(Duration::from_millis(1));
    let is_poll = |frame: &Vec<u8>| frame[23] == 17 && frame[43] & Bits::POLL != 0 && frame[44] == 9;
    assert!(crowd.bed.port.received().iter().any(is_poll));
    crowd.say_all(State::Up, Bits::FINAL);
    assert_eq!(crowd.by_thread(), [(1, 2)]);
    crowd.bed.bfd.set_tos(8);
    crowd.bed.router.advance(Duration::from_millis(60));
    let sent = crowd.bed.port.received();
    assert!(sent.iter().filter(|frame| frame[23] == 17).count() >= 2);
    assert!(sent.iter().filter(|frame| frame[23] == 17).all(|frame| frame[15] == 8), "the type of service");
    // Switched off: the worker sends nothing more.
    crowd.bed.bfd.set_admin(first, false).unwrap();
    crowd.bed.bfd.del(second).unwrap();
    crowd.bed.router.advance(Duration::from_millis(200));
    let sent = crowd.bed.port.received();
    let states: Vec<u8> = sent.iter().filter(|frame| frame[23] == 17).map(|frame| frame[43] >> 6).collect();
    assert!(!states.is_empty() && states.iter().all(|state| *state == 0), "{states:?}");
    assert_eq!(crowd.bed.events.borrow()[..], [State::AdminDown]);
    assert!(crowd.by_thread().is_empty());
}

#[test]
fn echo_packets_are_sent_and_taken_by_workers() {
    let addresses = watch_by_echoes(|crowd| {
        crowd.bed.bfd.set_echo_source(Some(crowd.bed.port.index())).unwrap();
    });
    // Next to 10.0.0.1 is no host's address.
    assert_eq!(addresses, BTreeSet::from([[10, 0, 0, 3]]));
}

#[test]
fn sessions_that_wish_for_echo_packets_have_them_without_a_source_for_all() {
    let wish = EchoWish { min_tx: 40_000, min_rx: 70_000 };
    let set = |crowd: &Crowd, wish| {
        for info in crowd.bed.bfd.list() {
            crowd.bed.bfd.set_echo_wish(info.key, wish).unwrap();
        }
    };
    let addresses = watch_by_echoes(|crowd| {
        set(crowd, Some(wish));
        let said = crowd.bed.bfd.list().into_iter().map(|info| info.session.control(0).required_min_echo_rx);
        assert!(said.eq([70_000; 2]));
        let none = EchoWish { min_tx: 0, ..wish };
        let first = crowd.bed.bfd.list()[0].key;
        assert_eq!(crowd.bed.bfd.set_echo_wish(first, Some(none)), Err(BfdError::Zero("echo-min-tx")));
        // It is taken back and said again.
        set(crowd, None);
        assert!(crowd.bed.bfd.list().iter().all(|info| !info.session.can_echo));
        set(crowd, Some(wish));
    });
    assert_eq!(addresses, BTreeSet::from([[10, 0, 0, 3]]));
}

/// Has two sessions be watched by echo packets, which end at last; the addresses from which these are sent.
fn watch_by_echoes(begin: impl Fn(&Crowd)) -> BTreeSet<[u8; 4]> {
    let mut crowd = Crowd::new(2);
    let mut addresses = BTreeSet::new();
    crowd.bed.router.graph().add_worker(None).unwrap();
    begin(&crowd);
    let willing = |crowd: &mut Crowd, bits: u8| {
        for n in 0..2 {
            let mut frame = crowd.frame(n, State::Up, bits);
            frame[42 + 20..42 + 24].copy_from_slice(&50_000_u32.to_be_bytes());
            frame[40..42].fill(0);
            crowd.bed.router.send(&crowd.bed.port, frame);
        }
        crowd.bed.router.run();
    };
    willing(&mut crowd, 0);
    willing(&mut crowd, Bits::FINAL);
    assert_eq!(crowd.by_thread(), [(1, 2)]);
    let echoed = crowd.bed.bfd.list()[1].counts[2].0;
    for _ in 0..60 {
        crowd.bed.router.advance(Duration::from_millis(25));
        for mut frame in crowd.bed.port.received() {
            if frame[12..14] == [8, 0] && frame[36..38] == 3785u16.to_be_bytes() {
                addresses.insert(frame[26..30].try_into().unwrap());
                // As the neighbour's forwarding sends it back.
                let (to, from) = (crowd.bed.port.mac(), PEER_MAC);
                frame[..6].copy_from_slice(&to.0);
                frame[6..12].copy_from_slice(&from.0);
                crowd.bed.router.send(&crowd.bed.port, frame);
            }
        }
        if crowd.bed.router.now().0 % 500_000_000 < 25_000_000 {
            willing(&mut crowd, 0);
        }
    }
    assert!(crowd.bed.events.borrow().is_empty(), "{:?}", crowd.bed.bfd.list());
    let info = &crowd.bed.bfd.list()[1];
    assert!(info.session.echoing && info.counts[2].0 > echoed + 20, "{:?}", info.counts);
    assert_eq!(crowd.by_thread(), [(1, 2)]);
    // They come back no more.
    crowd.bed.router.advance(Duration::from_millis(160));
    assert_eq!(*crowd.bed.events.borrow(), [State::Down; 2]);
    assert!(crowd.bed.bfd.list().iter().all(|info| info.session.diag == Diag::ECHO_FAILED));
    addresses
}

#[test]
fn a_passive_session_waits_for_the_other_end_and_one_over_hops_for_packets_with_enough_left() {
    let mut bed = bed();
    bed.bfd.add(bed.key, parameters(50_000), None).unwrap();
    bed.bfd.set_passive(bed.key, true);
    assert!(bed.sent(Duration::from_secs(5)).is_empty());
    bed.receive(ControlPacket { your_discr: 0, ..bed.peers_packet(State::Down) }, 255);
    assert_eq!(*bed.events.borrow(), [State::Init]);
    assert!(!bed.sent(Duration::from_millis(100)).is_empty(), "it answers");
    bed.receive(bed.peers_packet(State::Up), 255);
    assert_eq!(bed.events.borrow().last(), Some(&State::Up));
    bed.sent(Duration::from_secs(1));
    assert_eq!(bed.events.borrow().last(), Some(&State::Down));
    assert!(bed.sent(Duration::from_secs(5)).is_empty(), "it waits again");
    bed.bfd.set_passive(bed.key, false);
    assert!(bed.sent(Duration::from_secs(2)).len() >= 2);

    let far = SessionKey { hop: Hop::Multi, ..bed.key };
    bed.bfd.add(far, parameters(50_000), None).unwrap();
    bed.bfd.set_least_ttl(far, 250);
    bed.events.borrow_mut().clear();
    let discr = bed.bfd.info(far).unwrap().session.discr;
    let say = |bed: &mut Bed, state: State, ttl: u8| {
        let control = ControlPacket { your_discr: discr, ..bed.peers_packet(state) };
        let frame = PacketBuilder::ethernet(PEER_MAC, bed.port.mac()).ip4(PEER, US).ttl(ttl);
        let frame = frame.udp(50_000, 4784).payload(&control.write(None)).build();
        bed.router.send(&bed.port, frame);
        bed.router.advance(Duration::from_millis(20));
    };
    say(&mut bed, State::Init, 249);
    assert!(bed.events.borrow().is_empty());
    assert_eq!(bed.router.counter("/bfd/dropped/ttl"), 1);
    say(&mut bed, State::Init, 250);
    say(&mut bed, State::Up, 255);
    assert_eq!(*bed.events.borrow(), [State::Up]);
    // It is up: packets with less keep it so no more, on whatever thread it is.
    for _ in 0..10 {
        say(&mut bed, State::Up, 249);
    }
    assert_eq!(*bed.events.borrow(), [State::Up, State::Down]);
    assert_eq!(bed.router.counter("/bfd/dropped/ttl"), 11);
}
