//! What a program writes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests may fail this way")]

use crate::support;

use proptest::prelude::*;
use shoal_lab_frame::{FrameClassifier, Look, Program};
use shoal_lab_plan::{Change, Digit, Order, Side, Tag, Variable, Write};
use support::*;

fn written(program: &mut Program, sequence: u64) -> Vec<u8> {
    let mut frame = vec![0xee; program.len() + 3];
    program.write(sequence, &mut frame);
    assert_eq!(frame.split_off(program.len()), [0xee; 3], "bytes behind the frame were written");
    frame
}

fn any_change(places: std::ops::Range<u16>) -> impl Strategy<Value = Change> {
    let order =
        prop_oneof![Just(Order::Rising), Just(Order::Falling), Just(Order::Random), Just(Order::Permutation)];
    let width = prop_oneof![Just(1_u8), Just(2), Just(4), Just(8)];
    let write = (places, width, any::<i64>(), -9_i8..9, prop_oneof![Just(u64::MAX), any::<u64>()]).prop_map(
        |(offset, width, add, shift, mask)| Write { add, shift, mask, ..Write::whole(offset, width) },
    );
    (order, any::<u32>(), any::<u32>(), 1_u64..1000, any::<u64>(), prop::collection::vec(write, 1..3))
        .prop_map(|(order, a, b, step, seed, writes)| {
            let (min, max) = (u64::from(a.min(b)), u64::from(a.max(b)));
            let variable = Variable { order, min, max, first: min, step, list: Vec::new(), seed };
            Change { variable, writes }
        })
}

/// Clear of MACs, EtherType, lengths, protocol and both checksums: bytes that a change may touch.
fn clear(write: &Write, forbidden: &[std::ops::Range<u16>]) -> bool {
    let end = write.offset + u16::from(write.width);
    forbidden.iter().all(|f| end <= f.start || write.offset >= f.end)
}

proptest! {
    #[test]
    fn checksums_on_ip4_are_right_after_any_changes(
        changes in prop::collection::vec(any_change(18..91), 0..5), frames in 1_u64..40, payload in 50_usize..80,
    ) {
        let end = 42 + payload as u16;
        let fixed = [20..22, 23..26, 38..42, 42..60, end..100];
        let changes: Vec<Change> = changes.into_iter()
            .filter(|c| c.writes.iter().all(|w| clear(w, &fixed))).collect();
        let mut program = Program::new(&stream(udp4(payload), Tag::Signed { offset: 42 }, changes), 3, 9, 1).unwrap();
        for sequence in 0..frames {
            let frame = written(&mut program, sequence);
            let (right, found) = ip4_checksums(&frame);
            prop_assert_eq!(right, found);
            let (right, found) = udp_checksums(&frame);
            prop_assert_eq!(right, found);
        }
    }

    #[test]
    fn checksums_on_ip6_are_right_after_any_changes(
        changes in prop::collection::vec(any_change(22..111), 0..5), frames in 1_u64..40, payload in 50_usize..80,
    ) {
        let end = 62 + payload as u16;
        let fixed = [58..62, 62..80, end..130];
        let changes: Vec<Change> = changes.into_iter()
            .filter(|c| c.writes.iter().all(|w| clear(w, &fixed))).collect();
        let mut program = Program::new(&stream(udp6(payload), Tag::Signed { offset: 62 }, changes), 3, 9, 1).unwrap();
        for sequence in 0..frames {
            let (right, found) = udp_checksums(&written(&mut program, sequence));
            prop_assert_eq!(right, found);
        }
    }

    #[test]
    fn each_written_frame_is_recognised_with_its_number(
        sequence in 0_u64..1 << 48, id: u16, ports in any_change(34..35), ip6: bool, right: bool,
    ) {
        let (frame, offset) = if ip6 { (udp6(30), 62) } else { (udp4(30), 42) };
        let changes = vec![Change { writes: vec![Write::whole(offset - 8, 2)], ..ports }];
        let mut sent = stream(frame, Tag::Signed { offset }, changes);
        sent.from = if right { Side::Right } else { Side::Left };
        let mut program = Program::new(&sent, 0, id, 1).unwrap();
        let frame = written(&mut program, sequence);
        let trial = trial(id, vec![sent.clone()]);
        let recogniser = FrameClassifier::new(&trial);
        prop_assert_eq!(recogniser.look(&frame), Look::Signed { trial: id, stream: 0, from: sent.from, sequence });
        prop_assert_eq!(recogniser.check(&frame, 0), Ok(()));
    }

    #[test]
    fn any_stream_is_written_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..100), kind in 0..4_usize, tag in 0..3_usize, offset in 0_u16..110,
        changes in prop::collection::vec(any_change(0..110), 0..4), cut in 0_usize..100, frames: u64,
    ) {
        let mut frame = [udp4(30), udp6(30), bytes.clone(), udp4(60)][kind].clone();
        for (to, from) in frame.iter_mut().skip(12 + cut).zip(&bytes) {
            *to = *from;
        }
        let tag = [Tag::Signed { offset }, Tag::Plain { offset }, Tag::None][tag];
        let sent = stream(frame.clone(), tag, changes);
        let recogniser = FrameClassifier::new(&trial(1, vec![sent.clone()]));
        if let Ok(mut program) = Program::new(&sent, 0, 1, 1) {
            for sequence in [0, 1, frames, frames.wrapping_add(1), u64::MAX] {
                let frame = written(&mut program, sequence);
                recogniser.look(&frame);
                let _ = recogniser.check(&frame, 0);
            }
        }
    }

    #[test]
    fn a_frame_is_the_same_whether_gone_to_or_written_in_order(
        changes in prop::collection::vec(any_change(60..84), 1..4), at in 0_u64..200,
    ) {
        let sent = stream(udp4(50), Tag::Signed { offset: 42 }, changes);
        let mut walking = Program::new(&sent, 0, 1, 77).unwrap();
        let mut jumping = walking.clone();
        for sequence in 0..at {
            written(&mut walking, sequence);
        }
        jumping.skip_to(at);
        prop_assert_eq!(written(&mut walking, at), written(&mut jumping, at));
    }
}

#[test]
fn a_udp_checksum_of_zero_on_ip4_is_sent_as_all_ones() {
    let mut zeros = 0;
    let ports = change(Order::Rising, 0, 65_535, vec![Write::whole(34, 2)]);
    let mut program = Program::new(&stream(udp4(18), Tag::None, vec![ports]), 0, 0, 0).unwrap();
    for sequence in 0..65_536 {
        let frame = written(&mut program, sequence);
        assert_ne!(frame[40..42], [0, 0], "port {sequence}");
        zeros += u32::from(frame[40..42] == [255, 255]);
    }
    // Of all 65,536 sums one or two come to zero.
    assert!((1..=2).contains(&zeros), "{zeros}");
}

#[test]
fn a_field_that_lies_across_the_header_and_its_payload_keeps_both_checksums() {
    // From the last two bytes of the destination address to both of the source port.
    let across = change(Order::Random, 0, u64::from(u32::MAX), vec![Write::whole(32, 4)]);
    let mut program = Program::new(&stream(udp4(18), Tag::None, vec![across]), 0, 0, 0).unwrap();
    for sequence in 0..100 {
        let frame = written(&mut program, sequence);
        assert_eq!(ip4_checksums(&frame).0, ip4_checksums(&frame).1);
        assert_eq!(udp_checksums(&frame).0, udp_checksums(&frame).1);
    }
}

#[test]
fn bits_outside_of_the_mask_stay_as_in_the_first_frame() {
    let masked = Write { mask: 0x0f0, shift: 4, ..Write::whole(40, 2) };
    let sent = stream(udp4(18), Tag::None, vec![change(Order::Rising, 0, 15, vec![masked])]);
    let mut sent = sent;
    sent.checksums.l4 = false;
    sent.frame[40..42].copy_from_slice(&[0xab, 0xcd]);
    let mut program = Program::new(&sent, 0, 0, 0).unwrap();
    assert_eq!(written(&mut program, 0)[40..42], [0xab, 0x0d]);
    assert_eq!(written(&mut program, 10)[40..42], [0xab, 0xad]);
}

#[test]
fn digits_count_through_all_combinations_of_two_fields() {
    // Three source ports from 1000 on, and five destination ports from 50 on: 15 tuples.
    let digit =
        |offset, add, divide, of| Write { add, digit: Some(Digit { divide, of }), ..Write::whole(offset, 2) };
    for order in [Order::Rising, Order::Falling, Order::Permutation] {
        let writes = vec![digit(34, 1000, 1, 3), digit(36, 50, 3, 5)];
        let sent = stream(udp4(18), Tag::None, vec![change(order, 0, 14, writes)]);
        let mut program = Program::new(&sent, 0, 0, 0).unwrap();
        let mut seen: Vec<[u8; 4]> =
            (0..15).map(|s| written(&mut program, s)[34..38].try_into().unwrap()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 15, "{order:?}");
        assert_eq!(seen.first(), Some(&[3, 232, 0, 50]));
        assert_eq!(seen.last(), Some(&[3, 234, 0, 54]));
    }
}

#[test]
fn a_wrong_transport_checksum_stays_if_it_is_not_to_follow() {
    let addresses = change(Order::Rising, 0, 99, vec![Write::whole(28, 2)]);
    let mut sent = stream(udp4(18), Tag::None, vec![addresses]);
    sent.checksums.l4 = false;
    sent.frame[40..42].copy_from_slice(&[0x12, 0x34]);
    let mut program = Program::new(&sent, 0, 0, 0).unwrap();
    let frame = written(&mut program, 5);
    assert_eq!(frame[40..42], [0x12, 0x34]);
    assert_eq!(ip4_checksums(&frame).0, ip4_checksums(&frame).1);
}

#[test]
fn what_does_not_fit_is_refused_with_the_nearest_that_does() {
    let refused = |frame: Vec<u8>, tag, write: Option<Write>| {
        let changes = write.into_iter().map(|w| change(Order::Rising, 0, 9, vec![w])).collect();
        Program::new(&stream(frame, tag, changes), 0, 0, 0).unwrap_err().to_string()
    };
    let fine = udp4(18);
    assert!(refused(fine.clone(), Tag::Signed { offset: 43 }, None).contains("last offset is 42"));
    assert!(refused(fine.clone(), Tag::Plain { offset: 53 }, None).contains("last offset is 52"));
    assert!(refused(fine.clone(), Tag::None, Some(Write::whole(59, 2))).contains("last offset is 58"));
    assert!(refused(fine.clone(), Tag::None, Some(Write::whole(34, 3))).contains("nearest is 2"));
    assert!(
        refused(fine.clone(), Tag::None, Some(Write::whole(38, 4))).contains("nearest free offset is 42")
    );
    assert!(refused(fine.clone(), Tag::Signed { offset: 36 }, None).contains("nearest free offset is 42"));
    assert!(refused(vec![0; 13], Tag::None, None).contains("nearest size is 64"));
    let no_digit = Write { digit: Some(Digit { divide: 1, of: 0 }), ..Write::whole(34, 2) };
    assert!(refused(fine.clone(), Tag::None, Some(no_digit)).contains("at least 1"));
    let index = Program::new(&stream(fine, Tag::None, Vec::new()), 128, 0, 0).unwrap_err().to_string();
    assert!(index.contains("the largest is 127"));
}

#[test]
fn a_place_too_small_for_the_frame_is_left_alone() {
    let mut program = Program::new(&stream(udp4(18), Tag::None, Vec::new()), 0, 0, 0).unwrap();
    let mut short = [0xee; 59];
    program.write(0, &mut short);
    assert_eq!(short, [0xee; 59]);
}
