//! How frames are known again.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests may fail this way")]

use crate::support;

use proptest::prelude::*;
use shoal_lab_frame::{FrameClassifier, FrameFault, Look, Program, Tuple, retuple};
use shoal_lab_plan::{Side, Stream, Tag};
use support::*;

const SIGNED4: Tag = Tag::Signed { offset: 42 };

fn first(stream: &Stream, index: u8, trial: u16) -> Vec<u8> {
    let mut program = Program::new(stream, index, trial, 1).unwrap();
    let mut frame = vec![0; program.len()];
    program.write(5, &mut frame);
    frame
}

fn signed(frame: Vec<u8>) -> (Vec<u8>, FrameClassifier) {
    let sent = stream(frame, SIGNED4, Vec::new());
    (first(&sent, 0, 7), FrameClassifier::new(&trial(7, vec![sent])))
}

const OURS: Look = Look::Signed { trial: 7, stream: 0, from: Side::Left, sequence: 5 };

#[test]
fn a_tag_is_found_behind_vlan_tags_that_a_device_added() {
    let (frame, recogniser) = signed(udp4(30));
    for tags in 1..=2 {
        let mut tagged = frame.clone();
        for _ in 0..tags {
            tagged.splice(12..12, [0x81, 0, 0, 100]);
        }
        assert_eq!(recogniser.look(&tagged), OURS);
        assert_eq!(recogniser.check(&tagged, 0), Ok(()));
    }
}

#[test]
fn a_tag_is_found_when_a_device_took_the_vlan_tag_away() {
    let mut tagged = udp4(30);
    tagged.splice(12..12, [0x81, 0, 0, 100]);
    let sent = stream(tagged, Tag::Signed { offset: 46 }, Vec::new());
    let mut frame = first(&sent, 0, 7);
    frame.drain(12..16);
    let recogniser = FrameClassifier::new(&trial(7, vec![sent]));
    assert_eq!(recogniser.look(&frame), OURS);
    assert_eq!(recogniser.check(&frame, 0), Ok(()));
}

#[test]
fn a_tag_is_found_after_translation_to_ip6() {
    let (frame, recogniser) = signed(udp4(18));
    let mut translated = udp6(18);
    translated[62..].copy_from_slice(&frame[42..]);
    assert_eq!(recogniser.look(&translated), OURS);
    let (right, _) = udp_checksums(&translated);
    translated[60..62].copy_from_slice(&right.to_be_bytes());
    assert_eq!(recogniser.check(&translated, 0), Ok(()));
}

#[test]
fn frames_without_a_trial_are_other() {
    let (_, recogniser) = signed(udp4(18));
    assert_eq!(recogniser.look(&udp4(18)), Look::Other);
    assert_eq!(recogniser.look(&[]), Look::Other);
    let mut arp = vec![0xff; 12];
    arp.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    arp.resize(60, 0);
    assert_eq!(recogniser.look(&arp), Look::Other);
}

#[test]
fn a_frame_of_another_trial_tells_so() {
    let sent = stream(udp4(18), SIGNED4, Vec::new());
    let recogniser = FrameClassifier::new(&trial(8, vec![sent.clone()]));
    assert_eq!(recogniser.look(&first(&sent, 0, 7)), OURS);
}

#[test]
fn plain_frames_are_taken_for_the_stream_they_are_most_like() {
    let plain = |frame, offset, from| {
        let mut sent = stream(frame, Tag::Plain { offset }, Vec::new());
        sent.from = from;
        sent
    };
    let mut reverse = udp4(18);
    let ends: Vec<u8> = reverse[26..34].to_vec();
    reverse[26..30].copy_from_slice(&ends[4..]);
    reverse[30..34].copy_from_slice(&ends[..4]);
    let streams = vec![
        plain(udp4(18), 42, Side::Left),
        plain(udp6(18), 62, Side::Left),
        plain(udp4(100), 42, Side::Left),
        plain(reverse, 42, Side::Right),
    ];
    let trial = trial(0, streams.clone());
    let recogniser = FrameClassifier::new(&trial);
    for (number, sent) in (0..).zip(&streams) {
        assert_eq!(recogniser.look(&first(sent, number, 0)), Look::Plain { stream: number });
    }
    // A translated source does not confuse: what arrives at the left was sent at the right.
    let mut frame = first(&streams[0], 0, 0);
    frame[26..34].fill(9);
    let left = FrameClassifier::arriving_at(&trial, Side::Left);
    assert_eq!(left.look(&frame), Look::Plain { stream: 3 });
}

#[test]
fn frames_without_a_tag_are_known_by_their_kind_and_strangers_are_not() {
    let recogniser = FrameClassifier::new(&trial(0, vec![stream(udp4(18), Tag::None, Vec::new())]));
    assert_eq!(recogniser.look(&udp4(18)), Look::Plain { stream: 0 });
    let mut tcp = udp4(18);
    tcp[23] = 6;
    assert_eq!(recogniser.look(&tcp), Look::Other);
    assert_eq!(recogniser.look(&[0; 60]), Look::Other);
}

#[test]
fn each_kind_of_damage_is_named() {
    let (good, recogniser) = signed(udp4(30));
    let after = |damage: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = good.clone();
        damage(&mut frame);
        recogniser.check(&frame, 0)
    };
    assert_eq!(after(&|_| ()), Ok(()));
    assert!(matches!(after(&|f| f[22] = 9), Err(FrameFault::Ip4Checksum { .. })));
    assert!(matches!(after(&|f| f[40] ^= 1), Err(FrameFault::L4Checksum { .. })));
    assert!(matches!(after(&|f| f.truncate(50)), Err(FrameFault::NoPacket(50))));
    assert!(matches!(after(&|f| f[45] ^= 1), Err(FrameFault::L4Checksum { .. })));
    let shorter = after(&|f| {
        f[17] -= 1;
        let right = {
            f[24..26].fill(0);
            plain_checksum(&f[14..34])
        };
        f[24..26].copy_from_slice(&right.to_be_bytes());
    });
    assert_eq!(shorter, Err(FrameFault::Length { sent: 38, found: 37 }));
    let damaged = after(&|f| {
        f[70] = 0;
        let right = udp_checksums(f).0;
        f[40..42].copy_from_slice(&right.to_be_bytes());
    });
    assert_eq!(damaged, Err(FrameFault::Payload { at: 28, sent: 28, found: 0 }));
    assert_eq!(after(&|f| f[23] = 6), Err(FrameFault::Protocol { sent: 17, found: 6 }));
    assert_eq!(recogniser.check(&good, 3), Err(FrameFault::Stream(3)));
}

#[test]
fn a_checksum_that_was_sent_wrong_is_not_held_against_the_device() {
    let mut sent = stream(udp4(18), SIGNED4, Vec::new());
    sent.checksums.l4 = false;
    let recogniser = FrameClassifier::new(&trial(7, vec![sent.clone()]));
    assert_eq!(recogniser.check(&first(&sent, 0, 7), 0), Ok(()));
}

#[test]
fn frames_without_ip_are_compared_behind_their_macs() {
    let mut raw = vec![1; 14];
    raw[12..14].copy_from_slice(&[0x88, 0xb5]);
    raw.resize(60, 3);
    let recogniser = FrameClassifier::new(&trial(0, vec![stream(raw.clone(), Tag::None, Vec::new())]));
    raw[..12].fill(7);
    assert_eq!(recogniser.look(&raw), Look::Plain { stream: 0 });
    assert_eq!(recogniser.check(&raw, 0), Ok(()));
    raw[59] = 4;
    assert_eq!(recogniser.check(&raw, 0), Err(FrameFault::Payload { at: 59, sent: 3, found: 4 }));
    raw.push(0);
    assert_eq!(recogniser.check(&raw, 0), Err(FrameFault::Length { sent: 60, found: 61 }));
}

fn tuple4(source: u32, destination: u32, ports: (u16, u16)) -> Tuple {
    Tuple {
        source: std::net::Ipv4Addr::from(source).into(),
        destination: std::net::Ipv4Addr::from(destination).into(),
        source_port: ports.0,
        destination_port: ports.1,
        protocol: 17,
    }
}

proptest! {
    #[test]
    fn a_written_tuple_is_read_again_and_checksums_stay_right(source: u32, destination: u32, a: u16, b: u16) {
        let mut frame = first(&stream(udp4(18), SIGNED4, Vec::new()), 0, 7);
        let tuple = tuple4(source, destination, (a, b));
        prop_assert!(retuple(&mut frame, &tuple));
        prop_assert_eq!(Tuple::of(&frame), Some(tuple));
        prop_assert_eq!(ip4_checksums(&frame).0, ip4_checksums(&frame).1);
        prop_assert_eq!(udp_checksums(&frame).0, udp_checksums(&frame).1);
        prop_assert_eq!(tuple.reversed().reversed(), tuple);
    }

    #[test]
    fn tuples_of_ip6_are_written_and_read_too(source: u128, destination: u128, a: u16, b: u16) {
        let mut frame = first(&stream(udp6(18), Tag::Signed { offset: 62 }, Vec::new()), 0, 7);
        let (source, destination) = (std::net::Ipv6Addr::from(source), std::net::Ipv6Addr::from(destination));
        let tuple = Tuple {
            source: source.into(), destination: destination.into(), source_port: a, destination_port: b, protocol: 17,
        };
        prop_assert!(retuple(&mut frame, &tuple));
        prop_assert_eq!(Tuple::of(&frame), Some(tuple));
        prop_assert_eq!(udp_checksums(&frame).0, udp_checksums(&frame).1);
    }

    #[test]
    fn no_bytes_make_reading_fail_otherwise_than_by_saying_so(bytes in prop::collection::vec(any::<u8>(), 0..120), ip6: bool) {
        let (_, recogniser) = signed(udp4(18));
        let mut frame = if ip6 { udp6(18) } else { udp4(18) };
        let length = frame.len().min(bytes.len());
        frame[length..].reverse();
        frame[14..length.max(14)].copy_from_slice(&bytes[..length.max(14) - 14]);
        for frame in [&bytes, &frame] {
            recogniser.look(frame);
            let _ = recogniser.check(frame, 0);
            Tuple::of(frame);
            retuple(&mut frame.clone(), &tuple4(1, 2, (3, 4)));
        }
    }
}

#[test]
fn a_missing_udp_checksum_stays_missing() {
    let mut frame = udp4(18);
    assert!(retuple(&mut frame, &tuple4(1, 2, (3, 4))));
    assert_eq!(frame[40..42], [0, 0]);
}

#[test]
fn a_frame_of_the_other_family_is_left_alone() {
    let mut frame = udp6(18);
    assert!(!retuple(&mut frame, &tuple4(1, 2, (3, 4))));
    assert_eq!(frame, udp6(18));
    let mut fragment = udp4(18);
    fragment[20] = 0x20;
    assert!(!retuple(&mut fragment, &tuple4(1, 2, (3, 4))));
    assert_eq!(Tuple::of(&fragment), None);
    // Nor is a later fragment read: what stands behind its header are no ports.
    let mut later = udp4(18);
    later[21] = 1;
    assert_eq!(Tuple::of(&later), None);
}

#[test]
fn a_udp_checksum_that_comes_to_zero_is_all_ones() {
    let mut frame = first(&stream(udp4(18), SIGNED4, Vec::new()), 0, 7);
    let mut ones = 0;
    for port in 0..=u16::MAX {
        assert!(retuple(&mut frame, &tuple4(1, 2, (port, 4))));
        assert_ne!(frame[40..42], [0, 0], "port {port}");
        assert_eq!(udp_checksums(&frame).0, udp_checksums(&frame).1, "port {port}");
        ones += u32::from(frame[40..42] == [255, 255]);
    }
    // Of all 65,536 sums one or two come to zero.
    assert!((1..=2).contains(&ones), "{ones}");
}
