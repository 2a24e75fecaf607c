//! Frames that teach a bridge addresses, and that ask for them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests may fail this way")]

use std::collections::HashSet;

use shoal_lab_frame::{LearningTraffic, MOST_ADDRESSES, Macs, Program, Traffic};
use shoal_lab_plan::{Addresses, Family, Pace, Rate, Side, Stream};

fn traffic(family: Family, size: u32) -> LearningTraffic {
    let addresses = Addresses::default();
    let macs = Macs::new(&addresses, None, None);
    LearningTraffic { traffic: Traffic::new(family, size, addresses, macs), at: Side::Left }
}

/// Destination and source of each frame.
fn macs(stream: &Stream, seed: u64) -> Vec<([u8; 6], [u8; 6])> {
    let Pace::Bursts { frames, bursts: 1, .. } = stream.pace else { panic!("{:?}", stream.pace) };
    let mut program = Program::new(stream, 0, 1, seed).unwrap();
    let mut frame = vec![0; program.len()];
    let mut all = Vec::new();
    for sequence in 0..frames {
        program.write(sequence, &mut frame);
        all.push((frame[..6].try_into().unwrap(), frame[6..12].try_into().unwrap()));
    }
    all
}

#[test]
fn each_address_is_taught_once_and_asked_for_once_by_another_of_them() {
    let rate = Rate::per_second(1000);
    for (family, size) in [(Family::Ip4, 64), (Family::Ip6, 84)] {
        let traffic = traffic(family, size);
        // The seed of the trial is another from run to run; what was taught is what is asked for.
        let taught: Vec<[u8; 6]> =
            macs(&traffic.learn(500, rate).unwrap(), 1).iter().map(|(_, source)| *source).collect();
        assert_eq!(taught.iter().collect::<HashSet<_>>().len(), 500);
        assert_eq!(taught[7], LearningTraffic::address(7));
        let streams = traffic.ask(500, rate).unwrap();
        let [ask, through] = streams.as_slice() else { panic!("{streams:?}") };
        let asked = macs(ask, 2);
        assert_eq!(asked.iter().map(|(to, _)| *to).collect::<Vec<_>>(), taught);
        assert!(asked.iter().all(|(to, from)| to != from && taught.contains(from)));
        assert!(!ask.expected && through.expected);
        let right = Addresses::default().right.tester_mac;
        let through = macs(through, 2);
        assert_eq!((through.len(), through[0]), (50, (right, taught[0])));
        assert!(!taught.contains(&right) && !taught.contains(&Addresses::default().left.tester_mac));
    }
}

#[test]
fn a_larger_number_has_the_smaller_ones_addresses_and_more() {
    let rate = Rate::per_second(1);
    let sources = |n| -> Vec<[u8; 6]> {
        macs(&traffic(Family::Ip4, 64).learn(n, rate).unwrap(), 1).into_iter().map(|(_, from)| from).collect()
    };
    assert_eq!(sources(9)[..5], sources(5)[..]);
}

#[test]
fn numbers_that_cannot_be_are_refused_with_the_nearest() {
    let error = |n| traffic(Family::Ip4, 64).learn(n, Rate::per_second(1)).unwrap_err().to_string();
    assert!(error(0).contains('1'), "{}", error(0));
    assert!(error(MOST_ADDRESSES + 1).contains(&MOST_ADDRESSES.to_string()), "{}", error(MOST_ADDRESSES + 1));
}

#[test]
fn a_single_address_is_asked_for_by_itself() {
    let streams = traffic(Family::Ip4, 64).ask(1, Rate::per_second(1)).unwrap();
    let own = LearningTraffic::address(0);
    assert_eq!((macs(&streams[0], 1), macs(&streams[1], 1).len()), (vec![(own, own)], 1));
}

#[test]
fn broadcasts_go_to_all_and_are_expected() {
    for (family, size, mac) in [(Family::Ip4, 64, [0xff; 6]), (Family::Ip6, 84, [0x33, 0x33, 0, 0, 0, 1])] {
        let all = Traffic { networks: [4; 2], ..traffic(family, size).traffic }.all_broadcast();
        let streams = all.streams(Rate::per_second(10)).unwrap();
        assert_eq!(streams.len(), 2);
        for stream in streams {
            assert!(stream.expected && stream.frame.starts_with(&mac) && stream.changes.is_empty());
        }
    }
}
