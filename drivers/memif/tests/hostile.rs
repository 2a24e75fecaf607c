//! Peers made by hand that say and write what no peer should: whatever it is, the router goes on.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use crate::support;

use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_lite::future::{block_on, poll_once};
use proptest::prelude::*;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::MemfdFlags;
use shoal_memif::*;
use shoal_testkit::Router;
use support::hand::*;
use support::*;

fn desc(length: u32, offset: u32) -> Desc {
    Desc { flags: 0, region: 0, length, offset }
}

#[test]
fn a_slave_by_hand_is_served() {
    let mut bed = bed("hand", Role::Master);
    let slave = bed.become_slave();
    // To the router's own address, in two parts: it answers.
    let mac = bed.router.interfaces().data(bed.end).unwrap().mac();
    let ping =
        shoal_wire::Packet::ethernet(HOST, mac).ip4([10, 9, 0, 2], [10, 9, 0, 1]).icmp_echo_request(1, 2);
    let bytes = ping.payload_len(40).build();
    let (first, second) = bytes.split_at(30);
    slave.regions.copy_in(0, BUFFERS, first).unwrap();
    slave.regions.copy_in(0, BUFFERS + BUFFER, second).unwrap();
    slave.s2m.set_desc(0, Desc { flags: Desc::NEXT, ..desc(30, BUFFERS) });
    slave.s2m.set_desc(1, desc(second.len() as u32, BUFFERS + BUFFER));
    for slot in 0..SIZE {
        slave.m2s.set_desc(slot, desc(BUFFER, BUFFERS + BUFFER * u32::from(SIZE + slot)));
    }
    slave.m2s.set_head(SIZE);
    // Half of it first: nothing happens.
    slave.s2m.set_head(1);
    bed.router.run();
    assert_eq!((slave.s2m.tail(), bed.router.if_counter("/if/rx", bed.end)), (0, 0));
    slave.s2m.set_head(2);
    bed.router.run();
    assert_eq!((slave.s2m.tail(), bed.router.if_counter("/if/rx", bed.end)), (2, 1));
    let replied = (0..slave.m2s.tail()).any(|slot| slave.m2s.desc(slot).length as usize == bytes.len());
    assert!(replied, "{:?}", bed.router.errors());
}

#[test]
fn words_out_of_order_or_without_sense_end_the_connection_in_words() {
    let (_region, memory) = Region::create(REGION).unwrap();
    let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let unsealed = rustix::fs::memfd_create("unsealed", MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&unsealed, REGION as u64).unwrap();
    let null: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
    let (memory, event, null) = (memory.as_fd(), event.as_fd(), null.as_fd());
    let ring = AddRing { s2m: true, index: 0, region: 0, offset: 0, log2: LOG2, private_header: 0 };
    let add = Message::AddRing;
    let region = |index, size| Message::AddRegion { index, size };
    let connect = Message::Connect { name: String::new() };
    let whole = REGION as u64;
    type Words<'a> = Vec<(Message, Option<BorrowedFd<'a>>)>;
    let cases: Vec<(Words<'_>, &str)> = vec![
        (vec![(region(1, whole), Some(memory))], "region 1, must be 0"),
        (vec![(region(0, whole), None)], "region without a descriptor"),
        (vec![(region(0, whole + 1), Some(memory))], "in a file of"),
        (vec![(region(0, u64::MAX), Some(memory))], "must be from 1 to"),
        (vec![(region(0, whole), Some(unsealed.as_fd()))], "sealed against shrinking"),
        (vec![(region(0, 1), Some(null))], "sealed against shrinking"),
        (vec![(add(AddRing { index: 1, ..ring }), Some(event))], "ring 1, must be 0"),
        (vec![(add(ring), None)], "without an interrupt's descriptor"),
        (vec![(add(ring), Some(null))], "no eventfd"),
        (vec![(add(AddRing { private_header: 8, ..ring }), Some(event))], "private headers"),
        (vec![(add(ring), Some(event)), (connect.clone(), None)], "outside its region"),
        (
            vec![
                (region(0, whole), Some(memory)),
                (add(AddRing { log2: 15, ..ring }), Some(event)),
                (connect.clone(), None),
            ],
            "at most 2^14",
        ),
        (
            vec![
                (region(0, whole), Some(memory)),
                (add(AddRing { offset: 4, ..ring }), Some(event)),
                (connect.clone(), None),
            ],
            "multiple of 8",
        ),
        (
            vec![(region(0, whole), Some(memory)), (add(ring), Some(event)), (connect.clone(), None)],
            "without its cookie",
        ),
        (vec![(Message::Ack, None)], "unexpected ack"),
        (vec![(Bed::init(), None)], "unexpected init"),
    ];
    let mut bed = bed("order", Role::Master);
    for (words, text) in cases {
        bed.connect();
        bed.say(&Bed::init(), None);
        for (message, fd) in words {
            bed.say(&message, fd);
        }
        let said = bed.end_text();
        assert!(said.contains(text), "{said}, not {text}");
        assert!(matches!(bed.hear(), Err(LinkError::Closed)));
    }
    // Without an init, or with one that is none of ours.
    bed.connect();
    bed.say(&connect, None);
    assert!(bed.end_text().contains("unexpected connect, not init"));
    bed.connect();
    let mut late = Init { version: 0x0100, id: 0, mode: 0, secret: [0; 24], name: String::new() };
    bed.say(&Message::Init(late.clone()), None);
    assert!(bed.end_text().contains("protocol version 0x0100"));
    (late.version, late.mode) = (VERSION, 2);
    bed.connect();
    bed.say(&Message::Init(late), None);
    assert!(bed.end_text().contains("mode another, must be ethernet"));
    // Who says nothing does not stay.
    bed.connect();
    bed.hear().unwrap();
    bed.router.advance(Duration::from_secs(11));
    assert!(bed.end_text().contains("no message came"));
}

#[test]
fn indices_that_cannot_be_end_the_connection() {
    let mut bed = bed("index", Role::Master);
    for head in [SIZE + 1, 0x8000, u16::MAX] {
        let slave = bed.become_slave();
        slave.s2m.set_head(head);
        assert!(bed.sent_away().contains("cannot be"));
        // The other direction is looked at when there is something to send.
        let slave = bed.become_slave();
        slave.m2s.set_head(head);
        let (host, packet) = (bed.host.clone(), bed.packet(20));
        bed.router.send(&host, packet);
        assert!(bed.sent_away().contains("cannot be"));
        // A descriptor to write to that is nowhere.
        let slave = bed.become_slave();
        slave.m2s.set_desc(0, desc(2048, REGION as u32 - 100));
        slave.m2s.set_head(1);
        let (host, packet) = (bed.host.clone(), bed.packet(2000));
        bed.router.send(&host, packet);
        assert!(bed.sent_away().contains("cannot be"));
        // A chain without an end.
        let slave = bed.become_slave();
        (0..SIZE).for_each(|slot| slave.s2m.set_desc(slot, Desc { flags: 1, ..desc(1, BUFFERS) }));
        slave.s2m.set_head(SIZE);
        assert!(bed.sent_away().contains("cannot be"));
    }
    assert_eq!(bed.router.error("memif-input", "ring index that cannot be, connection ended"), 6);
}

#[test]
fn descriptors_that_cannot_be_are_counted_and_the_good_ones_taken() {
    let mut bed = bed("descs", Role::Master);
    let slave = bed.become_slave();
    let bad = [
        desc(0, BUFFERS),
        desc(u32::MAX, BUFFERS),
        desc(1, u32::MAX),
        desc(2, REGION as u32 - 1),
        Desc { region: 1, ..desc(60, BUFFERS) },
        Desc { region: u16::MAX, ..desc(60, BUFFERS) },
    ];
    for (slot, desc) in (0..).zip(bad) {
        slave.s2m.set_desc(slot, desc);
    }
    slave.s2m.set_desc(6, desc(60, BUFFERS));
    // A chain with a bad part, in the midst of it.
    slave.s2m.set_desc(7, Desc { flags: 1, ..desc(60, BUFFERS) });
    slave.s2m.set_desc(8, Desc { flags: 1, ..desc(60, u32::MAX) });
    slave.s2m.set_desc(9, desc(60, BUFFERS));
    slave.s2m.set_head(10);
    bed.router.run();
    assert_eq!(slave.s2m.tail(), 10);
    assert_eq!(bed.router.if_counter("/if/rx", bed.end), 1);
    assert_eq!(bed.router.error("memif-input", "bad descriptor: outside its region, empty or too long"), 7);
    assert_eq!(bed.router.if_counter("/if/rx-error", bed.end), 7);
    assert!(is_up(&bed.router, bed.end));
}

/// A router that is a slave has all memory itself: a master may write to it, too.
fn become_master(bed: &mut Bed) -> Slave {
    let listener = bed.listener.clone().unwrap();
    let weak = std::rc::Rc::downgrade(&listener);
    let hello = Message::Hello(Hello {
        name: "hand".into(),
        versions: (VERSION, VERSION),
        max_region: 255,
        max_m2s_ring: 0,
        max_s2m_ring: 0,
        max_log2: LOG2,
    });
    let deadline = Instant::now() + PATIENCE;
    bed.link = Some(loop {
        bed.router.advance(Duration::from_millis(100));
        if let Some(stream) = block_on(poll_once(Listener::accept(&weak))) {
            // Many cases in a row leave descriptors faster than a busy machine closes them; a router that waited in vain
            // meanwhile has closed its end and connects again.
            let link = stream
                .unwrap()
                .and_then(Link::of)
                .and_then(|link| link.try_send(&hello, None).map(|()| link));
            match link {
                Ok(link) => break link,
                Err(error) if matches!(error.kind(), ErrorKind::ResourceBusy | ErrorKind::BrokenPipe) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert!(Instant::now() < deadline, "no peer connects");
    });
    let (mut region, mut rings) = (None, Vec::new());
    loop {
        match bed.hear().unwrap() {
            (Message::AddRegion { size, .. }, Some(fd)) => region = Some(Region::open(&fd, size).unwrap()),
            (Message::AddRing(ring), Some(_)) => rings.push(ring),
            (Message::Init(_), None) => {}
            (Message::Connect { .. }, None) => break,
            other => panic!("{other:?}"),
        }
        bed.say(&Message::Ack, None);
    }
    let regions = Arc::new(Regions::new(vec![region.unwrap()]));
    let ring = |s2m| {
        let AddRing { region, offset, log2, .. } = *rings.iter().find(|r| r.s2m == s2m).unwrap();
        RingMemory::new(&regions, RingPlace { region, offset, log2 }).unwrap()
    };
    let (s2m, m2s) = (ring(true), ring(false));
    // As DPDK's masters do before they say that they are connected.
    for ring in [&s2m, &m2s] {
        ring.set_head(0);
        ring.set_tail(0);
    }
    bed.say(&Message::Connected { name: "hand0".into() }, None);
    let end = bed.end;
    assert!(run_until(&mut [&mut bed.router], |routers| is_up(routers[0], end)));
    Slave { regions, s2m, m2s, m2s_event: None }
}

#[test]
fn a_master_that_lies_is_found_out_or_harmless() {
    let mut bed = bed("master", Role::Slave);
    let master = become_master(&mut bed);
    assert_eq!((master.m2s.head(), master.m2s.tail(), master.m2s.size()), (SIZE, 0, SIZE));
    // Where packets are is the slave's business: what the master writes there does not matter.
    let place = master.m2s.desc(0);
    master.m2s.set_desc(0, Desc { region: 77, offset: u32::MAX, ..desc(60, 0) });
    master.m2s.set_desc(1, desc(u32::MAX, 0));
    master.m2s.set_tail(2);
    bed.router.run();
    assert_eq!(bed.router.if_counter("/if/rx", bed.end), 1);
    assert_eq!(bed.router.if_counter("/if/rx-error", bed.end), 1);
    assert_eq!((master.m2s.head(), master.m2s.desc(SIZE)), (SIZE + 2, place));
    master.m2s.set_tail(SIZE + 3);
    assert!(bed.sent_away().contains("cannot be"));
    let master = become_master(&mut bed);
    master.s2m.set_tail(5);
    let (host, packet) = (bed.host.clone(), bed.packet(20));
    bed.router.send(&host, packet);
    assert!(bed.sent_away().contains("cannot be"));
}

/// What a peer does to memory between two rounds of the router.
#[derive(Clone, Debug)]
enum Scribble {
    Head(bool, u16),
    Tail(bool, u16),
    Flags(bool, bool),
    Desc(bool, u16, u16, u16, u32, u32),
    Bytes(u32, Vec<u8>),
    Advance(u16),
    Give(u16),
    Send(u16),
}

fn scribble() -> impl Strategy<Value = Scribble> {
    let near = prop_oneof![0..40_u16, any::<u16>()];
    let length = prop_oneof![0..2048_u32, Just(u32::MAX), any::<u32>()];
    let offset = prop_oneof![BUFFERS..REGION as u32, 0..8192_u32, any::<u32>()];
    prop_oneof![
        1 => (any::<bool>(), near.clone()).prop_map(|(s2m, n)| Scribble::Head(s2m, n)),
        1 => (any::<bool>(), near).prop_map(|(s2m, n)| Scribble::Tail(s2m, n)),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(s2m, on)| Scribble::Flags(s2m, on)),
        8 => (any::<bool>(), 0..SIZE, 0..3_u16, 0..2_u16, length, offset)
            .prop_map(|(s2m, slot, flags, region, len, at)| Scribble::Desc(s2m, slot, flags, region, len, at)),
        4 => (0..REGION as u32 - 128, prop::collection::vec(any::<u8>(), 1..128))
            .prop_map(|(at, bytes)| Scribble::Bytes(at, bytes)),
        8 => (1..=SIZE).prop_map(Scribble::Advance),
        4 => (1..=SIZE).prop_map(Scribble::Give),
        4 => (1..3000_u16).prop_map(Scribble::Send),
    ]
}

fn play(bed: &mut Bed, peer: &Slave, role: Role, scribbles: Vec<Scribble>) {
    let ring = |s2m: bool| if s2m { &peer.s2m } else { &peer.m2s };
    for scribble in scribbles {
        match scribble {
            Scribble::Head(s2m, n) => ring(s2m).set_head(n),
            Scribble::Tail(s2m, n) => ring(s2m).set_tail(n),
            Scribble::Flags(s2m, on) => ring(s2m).set_interrupts(on),
            Scribble::Desc(s2m, slot, flags, region, length, offset) => {
                ring(s2m).set_desc(slot, Desc { flags, region, length, offset });
            }
            Scribble::Bytes(at, bytes) => drop(peer.regions.copy_in(0, at, &bytes)),
            Scribble::Advance(n) if role == Role::Master => {
                peer.s2m.set_head(peer.s2m.tail().wrapping_add(n.min(SIZE)));
            }
            Scribble::Advance(n) => {
                peer.m2s.set_tail(peer.m2s.tail().wrapping_add(n).min(peer.m2s.head()));
            }
            Scribble::Give(n) if role == Role::Master => {
                peer.m2s.set_head(peer.m2s.tail().wrapping_add(n.min(SIZE)));
            }
            Scribble::Give(_) => peer.s2m.set_tail(peer.s2m.head()),
            Scribble::Send(len) => {
                let (host, packet) = (bed.host.clone(), bed.packet(len.into()));
                bed.router.send(&host, packet);
            }
        }
        bed.router.run();
        if !is_up(&bed.router, bed.end) {
            break;
        }
    }
    bed.host.received();
    // Over, one way or another.
    bed.link = None;
    let end = bed.end;
    assert!(run_until(&mut [&mut bed.router], |routers| !is_up(routers[0], end)));
    assert_eq!(bed.router.buffers_in_use(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_slave_may_scribble_as_it_likes(scribbles in prop::collection::vec(scribble(), 1..120)) {
        let mut bed = bed("scribble", Role::Master);
        let slave = bed.become_slave();
        play(&mut bed, &slave, Role::Master, scribbles);
    }

    #[test]
    fn a_master_may_scribble_as_it_likes(scribbles in prop::collection::vec(scribble(), 1..120)) {
        let mut bed = bed("scribbler", Role::Slave);
        let master = become_master(&mut bed);
        play(&mut bed, &master, Role::Slave, scribbles);
    }

    #[test]
    fn bytes_are_a_message_or_refused_and_said_again_alike(bytes in prop::collection::vec(any::<u8>(), 0..140), kind in 0..10_u16) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_chunk_mut::<2>() {
            *first = kind.to_le_bytes();
        }
        if let Ok(message) = Message::decode(&bytes) {
            // Texts are cleaned and cut on their way in, so from the second time on nothing changes.
            let again = Message::decode(&message.encode()).unwrap();
            prop_assert_eq!(Message::decode(&again.encode()).unwrap(), again);
        }
    }
}

#[test]
fn a_flood_of_connections_is_bounded() {
    let mut bed = bed("flood", Role::Master);
    let mut links = Vec::new();
    for _ in 0..300 {
        // The kernel's queue of those that wait is short: the router takes them meanwhile.
        match Link::connect(&bed.place) {
            Ok(link) => links.push(link),
            Err(_) => bed.router.run(),
        }
    }
    let place = bed.place.clone();
    let taken = |router: &Router| router.get::<Memifs>().sockets().iter().map(|s| s.peers).max().unwrap();
    assert!(run_until(&mut [&mut bed.router], |routers| taken(routers[0]) > 0));
    assert!(taken(&bed.router) <= 17);
    // They time out, and a good one is served.
    drop(links);
    bed.router.advance(Duration::from_secs(11));
    assert!(run_until(&mut [&mut bed.router], |routers| taken(routers[0]) == 0), "{place}");
    // Those that still waited in the kernel's queue come first, and may be too many.
    loop {
        bed.connect();
        if bed.hear().is_ok() {
            break;
        }
    }
    bed.link = None;
    assert!(run_until(&mut [&mut bed.router], |routers| taken(routers[0]) == 0), "{place}");
    bed.become_slave();
}
