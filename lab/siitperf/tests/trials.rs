//! The trials that are run for a configuration and a command line.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests may fail this way")]

use crate::support;

use std::collections::HashSet;
use std::time::Duration;

use shoal_lab_frame::{Program as Frames, Tuple};
use shoal_lab_plan::{Order, Pace, Rate, Side, Stamps, Stream, Trial};
use shoal_lab_siitperf::Program;
use support::*;

fn trials(program: Program, args: &str, conf: &str) -> Vec<Trial> {
    let mut tester = StandIn::new();
    let done = finish(program, args, conf, &mut tester);
    assert_eq!(done.code, 0, "{}", done.text);
    tester.trials
}

fn tuples(stream: &Stream, count: u64) -> HashSet<Tuple> {
    let mut program = Frames::new(stream, 0, 1, 1).unwrap();
    let mut frame = vec![0; program.len()];
    (0..count)
        .map(|sequence| {
            program.write(sequence, &mut frame);
            Tuple::of(&frame).unwrap()
        })
        .collect()
}

fn ends(stream: &Stream) -> String {
    let tuple = Tuple::of(&stream.frame).unwrap();
    format!("{} > {}", tuple.source, tuple.destination)
}

#[test]
fn a_translators_frames_go_to_the_virtual_addresses_and_the_background_to_the_real_ones() {
    let trial = trials(Program::Tp, "84 1000 60 2000 10 9", CONF).remove(0);
    let [forward, forward_background, reverse, reverse_background] = &trial.streams[..] else {
        panic!("{} streams", trial.streams.len())
    };
    assert_eq!(ends(forward), "2001:2::2 > 2001:2:0:1000::2");
    assert_eq!(ends(forward_background), "2001:2::2 > 2001:2:0:8000::2");
    assert_eq!(ends(reverse), "198.19.0.2 > 198.18.0.2");
    assert_eq!(ends(reverse_background), "2001:2:0:8000::2 > 2001:2::2");
    // IPv4 frames are 20 bytes shorter, and none has its FCS.
    assert_eq!(trial.streams.iter().map(|s| s.frame.len()).collect::<Vec<_>>(), [80, 80, 60, 80]);
    assert_eq!(forward.pace, Pace::Steady { rate: Rate::per_second(900), after: Duration::ZERO });
    assert_eq!(forward.frame[..12], [2, 0, 0, 0, 0, 10, 2, 0, 0, 0, 0, 1]);
    assert_eq!(reverse.frame[..12], [2, 11, 12, 13, 14, 15, 2, 0, 0, 0, 0, 2]);
}

#[test]
fn times_are_the_command_lines_and_the_start_is_the_originals() {
    let trial = trials(Program::Tp, "84 1000 60 1500 2 2", CONF).remove(0);
    let seconds = Duration::from_secs;
    assert_eq!(
        (trial.duration, trial.timeout, trial.start_delay),
        (seconds(60), Duration::from_millis(1500), seconds(2))
    );
    assert!((trial.tolerance - 1.000_01).abs() < 1e-12);
}

#[test]
fn latency_tags_the_first_stream_of_each_direction_and_variation_stamps_all() {
    let stamps = |program, args: &str| {
        let trial = trials(program, args, CONF).remove(0);
        trial.streams.iter().map(|s| s.stamps).collect::<Vec<_>>()
    };
    let tags = Stamps::Even { after: Duration::from_mins(1), count: 500 };
    assert_eq!(stamps(Program::Lat, "84 1000 120 2000 2 1 60 500"), [tags, Stamps::None, tags, Stamps::None]);
    assert_eq!(stamps(Program::Pdv, "84 1000 60 2000 2 1 0"), [Stamps::All; 4]);
    assert_eq!(stamps(Program::Tp, "84 1000 60 2000 2 2"), [Stamps::None; 2]);
}

#[test]
fn phase_one_sends_each_tuple_once_and_the_responder_learns_them() {
    let trials = trials(Program::Tp, "84 1000 1 2000 2 2 400 400 1000 500 1400", STATEFUL);
    let [first, test] = &trials[..] else { panic!("{} trials", trials.len()) };
    assert_eq!(first.learn, Some((Side::Right, 400)));
    assert_eq!((first.duration, first.timeout), (Duration::from_millis(400), Duration::from_millis(500)));
    assert_eq!(tuples(&first.streams[0], 400).len(), 400);
    assert!(
        matches!(first.streams[0].pace, Pace::Bursts { frames: 400, bursts: 1, rate: Some(r), .. } if r == Rate::per_second(1000))
    );
    // Phase 2 begins D = 1400 ms after phase 1 did, of which 900 have passed.
    assert_eq!(test.start_delay, Duration::from_millis(500));
    assert_ne!(first.id, test.id);
    assert_eq!(test.learn, None);
    assert_eq!(tuples(&test.streams[0], 4000), tuples(&first.streams[0], 400));
    assert_eq!(test.streams[1].answers.map(|a| a.order), Some(Order::Random));
}

#[test]
fn the_connection_setup_test_has_no_second_phase() {
    let conf = format!("{STATEFUL}\nForward 0\nReverse 0");
    let trials = trials(Program::Tp, "84 1000 1 2000 2 2 400 400 1000 500 1400", &conf);
    assert_eq!(trials.len(), 1);
}

#[test]
fn the_initiator_may_be_at_the_right() {
    let conf = STATEFUL.replace("Stateful 1", "Stateful 2").replace("Fwd-", "Rev-");
    let trials = trials(Program::Tp, "84 1000 1 2000 2 2 400 300 1000 500 1400", &conf);
    assert_eq!(trials[0].learn, Some((Side::Left, 300)));
    assert_eq!(trials[0].streams[0].from, Side::Right);
    assert_eq!(tuples(&trials[0].streams[0], 400).len(), 400);
    let answering: Vec<Side> =
        trials[1].streams.iter().filter(|s| s.answers.is_some()).map(|s| s.from).collect();
    assert_eq!(answering, [Side::Left]);
}

#[test]
fn addresses_are_enumerated_with_ports_or_alone() {
    let hosts = "IP-L-min 2\nIP-L-max 6\nIP-R-min 2\nIP-R-max 3\nIPv4-L-offset 2\nIPv4-R-offset 2\n";
    let both = format!("{STATEFUL}\nEnumerate-ips 3\n{hosts}");
    let trials_both = trials(Program::Tp, "84 1000 1 2000 2 2 4000 4000 1000 500 9000", &both);
    assert_eq!(tuples(&trials_both[0].streams[0], 4000).len(), 4000);
    let alone = format!("{}\nEnumerate-ips 1\n{hosts}", STATEFUL.replace("Enumerate-ports 3", ""));
    let trials_alone = trials(Program::Tp, "84 1000 1 2000 2 2 10 10 1000 500 9000", &alone);
    let seen = tuples(&trials_alone[0].streams[0], 10);
    assert_eq!(seen.len(), 10);
    assert_eq!(seen.iter().map(|t| t.source_port).collect::<HashSet<_>>(), HashSet::from([0xc020]));
}

#[test]
fn background_takes_its_share_of_the_preliminary_frames() {
    let trial = trials(Program::Tp, "84 1000 1 2000 4 3 401 300 1000 500 9000", STATEFUL).remove(0);
    let frames: Vec<u64> = trial
        .streams
        .iter()
        .map(|s| match s.pace {
            Pace::Bursts { frames, .. } => frames,
            _ => 0,
        })
        .collect();
    // N - N(n-m)/n = 401 - 100.
    assert_eq!(frames, [301, 100]);
}
