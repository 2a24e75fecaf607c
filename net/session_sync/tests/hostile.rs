//! What a stranger, a liar or a broken link can do: nothing but be counted.

use std::net::IpAddr;

use shoal_nat::tuple::TCP;
use shoal_session_sync::wire::{HEADER, Header, Kind, LONGEST, RecordOp, write_record};
use shoal_session_sync::{Key, Peer, RoleSource};
use shoal_testkit::{PacketBuilder, Rng};
use shoal_wire::MacAddress;

use crate::common::{ACK, KEY, Pair, link, pair, tuple};

const WORLD: (&str, u16) = ("198.51.100.7", 80);

/// A datagram to the second router, from an address.
fn send(pair: &mut Pair, from: IpAddr, data: &[u8]) {
    let side = &mut pair.sides[1];
    let frame = PacketBuilder::ethernet(MacAddress([2, 0xfe, 0, 0, 0, 2]), side.link.mac());
    let frame = match (from, link(pair.is_ip6, 2)) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => frame.ip4(src, dst),
        (IpAddr::V6(src), IpAddr::V6(dst)) => frame.ip6(src, dst),
        _ => panic!("two families"),
    };
    let frame = frame.udp(Peer::PORT, Peer::PORT).payload(data).build();
    let port = side.link.clone();
    side.router.send(&port, frame);
}

/// Datagrams in frames of the link.
fn data(is_ip6: bool, frame: &[u8]) -> Vec<u8> {
    frame[14 + if is_ip6 { 40 } else { 20 } + 8..].to_vec()
}

fn header(kind: Kind, (sender, receiver): (u64, u64)) -> Header {
    Header { kind, is_active: true, sender, receiver, sequence: 1, ack: 1, behind: 0 }
}

#[test]
fn datagrams_without_the_key_are_counted_and_change_nothing() {
    for is_ip6 in [false, true] {
        let mut pair = pair(is_ip6);
        let mut seen = Vec::new();
        pair.sides[0].connect(tuple(("10.0.0.2", 6000), WORLD)).unwrap();
        pair.advance_by(20, &mut |from, frame| {
            if from == 0 {
                seen.push(data(is_ip6, &frame));
            }
            vec![frame]
        });
        let before = pair.sides[1].sync().view();
        let real = seen.iter().find(|datagram| datagram[3] == 2).expect("data was sent").clone();
        let (mut rng, mut wrong) = (Rng::new(Rng::seed(31)), 0);
        for _ in 0..300 {
            let mut datagram = real.clone();
            let at = 16 + rng.below(datagram.len() - 16);
            datagram[at] ^= 1 << rng.below(8);
            send(&mut pair, link(is_ip6, 1), &datagram);
            wrong += 1;
        }
        let after = &pair.sides[1];
        let old = after.router.error(
            if is_ip6 { "session-sync6-input" } else { "session-sync4-input" },
            "of an association that is over",
        );
        assert_eq!(after.counter("not-authentic") + old, wrong);
        assert!(after.counter("not-authentic") > 200);
        assert_eq!(after.sessions().len(), 1);
        assert_eq!(after.sync().view().up.is_some(), before.up.is_some());
    }
}

#[test]
fn what_is_replayed_or_cut_off_makes_no_session_and_keeps_no_dead_router_alive() {
    let mut pair = pair(false);
    let mut seen = Vec::new();
    let flow = tuple(("10.0.0.2", 6000), WORLD);
    pair.sides[0].connect(flow).unwrap();
    pair.advance_by(500, &mut |from, frame| {
        if from == 0 {
            seen.push(data(false, &frame));
        }
        vec![frame]
    });
    pair.sides[0].nat().clear_sessions().unwrap();
    pair.advance(20);
    assert_eq!(pair.sides[1].sessions().len(), 0);
    for datagram in &seen {
        for length in [0, 1, HEADER - 1, HEADER, datagram.len() - 1, datagram.len()] {
            send(&mut pair, link(false, 1), &datagram[..length.min(datagram.len())]);
        }
        send(&mut pair, link(false, 1), &[&datagram[..], &[0; LONGEST]].concat());
    }
    assert_eq!(pair.sides[1].sessions().len(), 0, "the session has ended");
    assert!(pair.sides[1].counter("replayed") > 0);
    // The first router is dead; a recording of it does not hide that.
    for _ in 0..30 {
        pair.sides[1].router.advance(std::time::Duration::from_millis(100));
        for datagram in &seen {
            send(&mut pair, link(false, 1), datagram);
        }
    }
    assert!(pair.sides[1].sync().view().up.is_none());
    assert_eq!(pair.sides[1].counter("peer-silent"), 1);
    assert!(pair.sides[1].counter("datagrams-sent") < 400, "strangers are answered seldom");
    pair.sides[1].link.received();
    // The real one comes back.
    pair.advance(1500);
    assert!(pair.is_up());
}

#[test]
fn other_addresses_and_other_keys_are_not_listened_to() {
    let mut pair = pair(false);
    for side in &mut pair.sides {
        let mut peer = side.sync().peer().unwrap();
        peer.key = None;
        if side.link.mac().0[5] == 3 {
            peer.key = Key::from_hex(&KEY.replace("00", "ff"));
        }
        side.sync().set_peer(Some(peer)).unwrap();
    }
    pair.advance(3000);
    assert!(!pair.is_up());
    assert!(pair.sides.iter().all(|side| side.counter("not-authentic") > 5));
    send(&mut pair, link(false, 9), &[0; 64]);
    let strange = "from another address than the other router's";
    let mut hello = Vec::new();
    header(Kind::Hello, (1, 0)).write(&mut hello);
    send(&mut pair, link(false, 9), &hello);
    assert_eq!(pair.sides[1].router.error("session-sync4-input", strange), 1);
    assert_eq!(pair.sides[1].router.error("session-sync4-input", "malformed"), 1);
}

/// A peer that has the key, or needs none, and lies: what it says of the second router's sessions is checked, and bounded.
fn liar() -> (Pair, (u64, u64)) {
    let mut pair = pair(false);
    for side in &pair.sides {
        side.sync().set_peer(None).unwrap();
    }
    pair.advance(10);
    let peer = Peer { key: None, ..crate::common::peer(false, 2, 1) };
    pair.sides[1].sync().set_peer(Some(peer)).unwrap();
    pair.sides[1].sync().set_role(RoleSource::Standby).unwrap();
    pair.sides[1].router.run();
    pair.sides[1].link.received();
    let mut hello = Vec::new();
    header(Kind::Hello, (77, 0)).write(&mut hello);
    send(&mut pair, link(false, 1), &hello);
    let answers = pair.sides[1].link.received();
    let answer =
        answers.iter().map(|frame| Header::read(&data(false, frame)).unwrap()).find(|it| it.receiver == 77);
    let own = answer.expect("it answers").sender;
    let mut hello = Vec::new();
    header(Kind::Hello, (77, own)).write(&mut hello);
    send(&mut pair, link(false, 1), &hello);
    assert!(pair.sides[1].sync().view().up.is_some());
    (pair, (77, own))
}

fn say(pair: &mut Pair, numbers: (u64, u64), sequence: u64, records: &[u8]) {
    let mut datagram = Vec::new();
    Header { sequence, ..header(Kind::Data, numbers) }.write(&mut datagram);
    datagram.extend(records);
    send(pair, link(false, 1), &datagram);
}

#[test]
fn whatever_a_liar_says_sessions_stay_sound_and_memory_bounded() {
    let (mut pair, numbers) = liar();
    let seed = Rng::seed(32);
    let mut rng = Rng::new(seed);
    for sequence in 1..4000 {
        let mut records = Vec::new();
        for _ in 0..rng.below(20) {
            let op = match rng.below(40) {
                0 if sequence < 3000 => RecordOp::BeginAll,
                1 if sequence < 3000 => RecordOp::EndAll,
                2 => RecordOp::WantAll,
                3..=6 => RecordOp::Gone,
                _ => RecordOp::Put,
            };
            let feature = *rng.pick(&[1, 1, 2, 2, 0, 3, 15]);
            let mut session = match feature {
                1 => {
                    // Mostly of the shared address, so that it fits.
                    let mut bytes = rng.bytes(35);
                    (bytes[0], bytes[1], bytes[2]) = (
                        *rng.pick(&[0, 0, 1, 2, 255]),
                        *rng.pick(&[6, 17, 1, 47]),
                        *rng.pick(&[0, 0, 2, 4, 64, 255]),
                    );
                    bytes[17..21].copy_from_slice(&[10, 0, 0, 2 + rng.below(4) as u8]);
                    bytes[25] = 4;
                    bytes[29..33].copy_from_slice(&[203, 0, 113, 1]);
                    bytes[33] = 4 + rng.below(2) as u8;
                    bytes
                }
                2 => {
                    let mut bytes = rng.bytes(38);
                    (bytes[0], bytes[1]) = (*rng.pick(&[6, 17, 1]), rng.below(10) as u8);
                    bytes[22..26].fill(0);
                    bytes[26..30].copy_from_slice(&[203, 0, 113, 64]);
                    bytes[30] = 4;
                    bytes
                }
                _ => rng.bytes(10),
            };
            if rng.one_in(8) {
                session.truncate(rng.below(session.len()));
            }
            write_record(feature, op, &session, &mut records);
        }
        records.truncate(1336);
        if rng.one_in(50) {
            records = rng.bytes(200);
        }
        say(&mut pair, numbers, sequence, &records);
    }
    pair.sides[1].router.advance(std::time::Duration::from_millis(50));
    let (inside, outside): (std::collections::BTreeSet<_>, std::collections::BTreeSet<_>) = pair.sides[1]
        .sessions()
        .iter()
        .map(|record| {
            let session = record.session;
            let of =
                |tuple: shoal_nat::Tuple| (tuple.src, tuple.sport, tuple.dst, tuple.dport, session.protocol);
            (of(session.inside), of(session.outside.reversed()))
        })
        .unzip();
    let count = pair.sides[1].sessions().len();
    assert!(count > 100, "{count}: too few to show anything, seed {seed}");
    assert_eq!((inside.len(), outside.len()), (count, count), "no tuple is two sessions'");
    assert!(count <= 20_000);
    for session in pair.sides[1].sessions() {
        assert_eq!(session.session.outside.src, crate::common::ip("203.0.113.1"));
    }
    let of64 = pair.sides[1].nat64().sessions().unwrap();
    let hosts: std::collections::BTreeMap<_, _> = of64.iter().map(|it| (it.outside, it.inside)).collect();
    assert!(of64.iter().all(|it| hosts[&it.outside] == it.inside));
    pair.sides[1].router.advance(std::time::Duration::from_secs(1));
    assert!(pair.sides[1].counter("malformed") > 0);
    assert!(pair.sides[1].counter("nat44-ed/refused-malformed") > 0);
    assert!(pair.sides[1].sync().view().refused.len() <= 64);
}

#[test]
fn a_flood_is_bounded_and_counted_and_what_is_too_far_ahead_is_not_kept() {
    let (mut pair, numbers) = liar();
    for sequence in [3000, u64::MAX, u64::MAX - 1, 1026] {
        say(&mut pair, numbers, sequence, b"");
    }
    assert_eq!(pair.sides[1].counter("too-far-ahead"), 4);
    for sequence in 2..1500 {
        say(&mut pair, numbers, sequence, &[0x11, 1, 0]);
    }
    assert!(pair.sides[1].sync().view().early <= 1024);
    // In one go: more than wait for the main thread.
    let mut hello = Vec::new();
    header(Kind::Hello, (5, 0)).write(&mut hello);
    let frame = |data: &[u8]| {
        let frame = PacketBuilder::ethernet(MacAddress([2, 0xfe, 0, 0, 0, 2]), pair.sides[1].link.mac());
        let (IpAddr::V4(src), IpAddr::V4(dst)) = (link(false, 1), link(false, 2)) else { panic!("IPv4") };
        frame.ip4(src, dst).udp(Peer::PORT, Peer::PORT).payload(data).build()
    };
    let frames: Vec<Vec<u8>> = (0..200).map(|_| frame(&hello)).collect();
    let sent = pair.sides[1].counter("datagrams-sent");
    let port = pair.sides[1].link.clone();
    pair.sides[1].router.send_all(&port, frames);
    let congested = pair.sides[1].router.error("session-sync4-input", "not looked at, too many at a time");
    assert!(congested > 0, "{:?}", pair.sides[1].router.errors());
    assert!(pair.sides[1].counter("datagrams-sent") - sent <= 2, "strangers are answered once in a while");
    assert!(pair.sides[1].sync().view().up.is_some(), "and end no association");
    // An acknowledgement of what was never sent.
    let mut ack = Vec::new();
    Header { ack: u64::MAX, behind: u64::MAX, ..header(Kind::Ack, numbers) }.write(&mut ack);
    send(&mut pair, link(false, 1), &ack);
    assert_eq!(pair.sides[1].out(tuple(("10.0.0.2", 1), WORLD), TCP, ACK), None);
}
