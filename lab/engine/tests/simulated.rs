//! The tester against a device that says what it did, in simulated time.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support;

use std::time::Duration;

use shoal_lab_engine::{Behaviour, BehaviourCounts, Engine, EngineError, Stalls};
use shoal_lab_plan::*;
use support::*;

fn run(behaviour: Behaviour, trial: &Trial) -> (Outcome, [BehaviourCounts; 2]) {
    let mut engine = Engine::simulated(behaviour);
    let outcome = engine.trial(trial, &mut Unwatched).unwrap();
    (outcome, engine.told())
}

#[test]
fn a_wire_loses_nothing_and_takes_no_time() {
    let mut trial = trial(1, both(64, 100_003), ms(1000));
    trial.streams.iter_mut().for_each(|s| s.stamps = Stamps::All);
    let (outcome, told) = run(Behaviour::default(), &trial);
    for (stream, told) in outcome.streams.iter().zip(told) {
        let counts = Counts {
            requested: 100_003,
            sent: 100_003,
            received: 100_003,
            bytes: 64 * 100_003,
            ..Counts::default()
        };
        assert_eq!(stream.counts, counts);
        assert_eq!((told.taken, told.delivered), (100_003, 100_003));
        let delays = stream.delays.as_ref().unwrap();
        assert_eq!((delays.count, delays.min, delays.max, delays.mean), (100_003, 0, 0, 0.0));
        assert_eq!(stream.last_lost, None);
    }
    assert_eq!(outcome.ports, [Tally::default(); 2]);
    assert_eq!(Verdict::of(&trial, &outcome, 1024), Verdict::Pass);
}

#[test]
fn exactly_the_due_frames_are_sent_at_odd_rates_within_10_ppm() {
    for fps in [997, 1_000, 99_991, 1_000_003] {
        let mut trial = trial(1, vec![stream(Side::Left, 64, fps)], Duration::from_secs(10));
        trial.verify = Verify::Some;
        let (outcome, told) = run(Behaviour::default(), &trial);
        assert_eq!((outcome.streams[0].counts.sent, told[0].taken), (fps * 10, fps * 10));
        // The last is sent one frame's time before the end.
        let took = outcome.took.as_secs_f64() + 1.0 / fps as f64;
        assert!((took / 10.0 - 1.0).abs() < 10e-6, "{fps}: {took}");
        assert_eq!(outcome.lateness.max, Duration::ZERO);
        assert_eq!(outcome.planned, Duration::from_secs(10));
    }
}

#[test]
fn what_is_lost_doubled_and_overtaken_is_counted_to_the_frame() {
    let behaviour = Behaviour {
        loss: 0.013,
        duplicates: 0.02,
        reordered: 0.01,
        hold: Duration::from_micros(35),
        delay: Duration::from_micros(50),
        ..Behaviour::default()
    };
    for seed in 1..4 {
        let trial = trial(7, both(96, 200_000), ms(500));
        let (outcome, told) = run(Behaviour { seed, ..behaviour.clone() }, &trial);
        for (stream, told) in outcome.streams.iter().zip(told) {
            let Counts { sent, received, duplicates, reordered, corrupt, stray, late, .. } = stream.counts;
            assert_eq!((sent, received), (100_000, told.delivered), "seed {seed}");
            assert_eq!(stream.counts.lost(), told.lost);
            assert_eq!((duplicates, reordered), (told.duplicated, told.reordered));
            assert_eq!((corrupt, stray, late), (0, 0, 0));
            // 4 standard deviations of the binomial distribution.
            let expected = 1300.0;
            assert!((told.lost as f64 - expected).abs() < 4.0 * (expected * 0.987_f64).sqrt(), "{told:?}");
            assert!(told.reordered > 500 && told.duplicated > 1500, "{told:?}");
        }
    }
}

#[test]
fn damaged_frames_are_found_and_do_not_count_as_received() {
    for (corrupt_at, size) in [(0, 128), (60, 128), (0, 64), (100, 128)] {
        let behaviour = Behaviour { corrupt: 0.01, corrupt_at, ..Behaviour::default() };
        let trial = trial(1, both(size, 50_000), ms(1000));
        let (outcome, told) = run(behaviour, &trial);
        for (stream, told) in outcome.streams.iter().zip(told) {
            assert!(told.corrupted > 300);
            assert_eq!(stream.counts.corrupt, told.corrupted, "byte {corrupt_at} of {size}");
            assert_eq!(stream.counts.lost(), told.corrupted);
        }
        assert!(matches!(Verdict::of(&trial, &outcome, 1024), Verdict::Invalid(_)));
    }
}

#[test]
fn one_frame_in_64_is_looked_at_unless_all_are_wanted() {
    let behaviour = Behaviour { corrupt: 1.0, ..Behaviour::default() };
    let mut trial = trial(1, vec![stream(Side::Left, 128, 64_000)], ms(1000));
    trial.verify = Verify::Some;
    let (outcome, _) = run(behaviour, &trial);
    assert_eq!((outcome.streams[0].counts.corrupt, outcome.streams[0].counts.received), (1000, 63_000));
}

#[test]
fn frames_that_come_back_to_the_sender_are_strays() {
    let behaviour = Behaviour { looped: 0.1, ..Behaviour::default() };
    let trial = trial(1, both(64, 10_000), ms(1000));
    let (outcome, told) = run(behaviour, &trial);
    for (stream, told) in outcome.streams.iter().zip(told) {
        assert!(told.looped > 800);
        assert_eq!((stream.counts.stray, stream.counts.lost()), (told.looped, told.looped));
    }
}

#[test]
fn a_devices_capacity_is_where_loss_begins() {
    let device = || Behaviour { capacity: Some(123_457), queue: 32, ..Behaviour::default() };
    let lost = |fps| run(device(), &trial(1, both(64, fps), ms(2000))).0.direction(Side::Left).lost();
    assert_eq!(lost(123_457), 0);
    assert_eq!(lost(100_000), 0);
    let over = lost(123_600);
    // What is offered beyond, less what the queue holds at the end.
    assert_eq!(over, 2 * (123_600 - 123_457) - 31);
}

#[test]
fn a_burst_that_fits_the_queue_passes_and_one_frame_more_does_not() {
    let device = || Behaviour { capacity: Some(1000), queue: 200, ..Behaviour::default() };
    let burst = |frames| {
        let mut one = stream(Side::Left, 64, 1);
        one.pace = Pace::Bursts { frames, bursts: 1, rate: None, gap: Duration::ZERO, after: Duration::ZERO };
        let trial = trial(1, vec![one], ms(10));
        run(device(), &trial).0.streams[0].counts
    };
    assert_eq!((burst(200).sent, burst(200).lost()), (200, 0));
    assert_eq!(burst(201).lost(), 1);
}

#[test]
fn the_delay_of_a_device_that_delays_is_what_is_measured() {
    for micros in [0, 1, 7, 90, 1500, 40_000] {
        let delay = Duration::from_micros(micros);
        let mut all = trial(1, both(64, 10_000), ms(1000));
        all.streams.iter_mut().for_each(|s| s.stamps = Stamps::All);
        let device = Behaviour { delay, ..Behaviour::default() };
        let (outcome, _) = run(device.clone(), &all);
        let (ns, delays) = (micros * 1000, outcome.streams[0].delays.as_ref().unwrap());
        assert_eq!((delays.min, delays.max, delays.mean), (ns, ns, ns as f64));
        assert_eq!(delays.histogram, [(ns, 10_000)]);
        assert_eq!(delays.variation, [(0, 9_999)]);
        let mut even = trial(1, both(64, 10_000), ms(1000));
        even.streams.iter_mut().for_each(|s| s.stamps = Stamps::Even { after: ms(400), count: 600 });
        let (outcome, _) = run(device, &even);
        assert_eq!(outcome.streams[1].delays.as_ref().unwrap().tags, vec![Some(ns); 600]);
    }
}

#[test]
fn jitter_is_uniform_where_the_device_makes_it_so() {
    let (delay, jitter) = (Duration::from_micros(100), Duration::from_micros(50));
    let mut trial = trial(1, vec![stream(Side::Left, 64, 100_000)], ms(1000));
    trial.streams[0].stamps = Stamps::All;
    let (outcome, told) = run(Behaviour { delay, jitter, ..Behaviour::default() }, &trial);
    let delays = outcome.streams[0].delays.as_ref().unwrap();
    assert!(delays.min >= 100_000 && delays.max <= 150_000);
    // The mean of 100,000 draws has a standard deviation of 46 ns.
    assert!((delays.mean - 125_000.0).abs() < 250.0, "{}", delays.mean);
    assert_eq!(outcome.streams[0].counts.reordered, told[0].reordered);
    assert!(told[0].reordered > 10_000);
    // RFC 3393: all neighbours, also those that overtook each other.
    assert_eq!(delays.variation.iter().map(|(_, n)| n).sum::<u64>(), 99_999);
    assert!(delays.variation.first().unwrap().0 < -48_000 && delays.variation.last().unwrap().0 > 48_000);
}

#[test]
fn a_frame_that_is_later_than_the_frame_timeout_is_lost() {
    let device = Behaviour { reordered: 0.05, hold: ms(11), ..Behaviour::default() };
    let mut trial = trial(1, vec![stream(Side::Left, 64, 20_000)], ms(1000));
    trial.frame_timeout = Some(ms(10));
    let (outcome, _) = run(device.clone(), &trial);
    let counts = outcome.streams[0].counts;
    assert!(counts.late > 800 && counts.late == counts.lost(), "{counts:?}");
    trial.frame_timeout = Some(ms(12));
    let counts = run(device, &trial).0.streams[0].counts;
    assert_eq!((counts.late, counts.lost()), (0, 0));
}

#[test]
fn a_reset_is_seen_as_a_gap_and_as_loss_that_agree() {
    let device = Behaviour { dead: Some((ms(300), ms(123))), ..Behaviour::default() };
    let (outcome, told) = run(device, &trial(1, vec![stream(Side::Left, 64, 10_000)], ms(1000)));
    let gap = outcome.streams[0].gap.unwrap();
    // The last before it is frame 2,999, the first after it 4,230.
    assert_eq!((gap.from, gap.to), (Duration::from_micros(299_900), ms(423)));
    assert_eq!((gap.lost, outcome.streams[0].counts.lost(), told[0].dead), (1230, 1230, 1230));
    assert_eq!(outcome.streams[0].last_lost, Some(Duration::from_micros(422_900)));
}

#[test]
fn the_moment_of_the_last_loss_of_an_overload_is_known() {
    // 110 % for half a second, then 50 %: a full queue of 50 empties at once.
    let at = |s, fps| Step { at: s, rate: Rate::per_second(fps) };
    let mut one = stream(Side::Left, 64, 1);
    one.pace = Pace::Steps { steps: vec![at(Duration::ZERO, 110_000), at(ms(500), 50_000)] };
    let device = Behaviour { capacity: Some(100_000), queue: 50, ..Behaviour::default() };
    let (outcome, told) = run(device, &trial(1, vec![one], ms(1000)));
    assert_eq!(outcome.streams[0].counts.lost(), told[0].overrun);
    assert!(told[0].overrun > 4900);
    let last = outcome.streams[0].last_lost.unwrap();
    assert!(last < ms(500) && last > Duration::from_micros(499_800), "{last:?}");
}

#[test]
fn a_device_that_stands_still_delays_what_its_queue_holds_and_loses_the_rest() {
    let stalls = Stalls { first: ms(100), every: Some(ms(200)), length: ms(20) };
    let device = Behaviour { stalls: Some(stalls), queue: 150, ..Behaviour::default() };
    let mut trial = trial(1, vec![stream(Side::Left, 64, 10_000)], ms(1000));
    trial.streams[0].stamps = Stamps::All;
    let (outcome, told) = run(device, &trial);
    // Five stalls of 200 frames.
    assert_eq!((outcome.streams[0].counts.lost(), told[0].overrun), (250, 250));
    let delays = outcome.streams[0].delays.as_ref().unwrap();
    assert_eq!((delays.min, delays.max), (0, 20_000_000));
    let gap = outcome.streams[0].gap.unwrap();
    assert_eq!(gap.to.checked_sub(gap.from).unwrap(), Duration::from_micros(20_100));
}

#[test]
fn frames_of_an_earlier_trial_are_stale_and_nobodys() {
    let mut engine = Engine::simulated(Behaviour { delay: ms(300), ..Behaviour::default() });
    let mut first = trial(1, vec![stream(Side::Left, 64, 1000)], ms(1000));
    first.timeout = Duration::ZERO;
    let outcome = engine.trial(&first, &mut Unwatched).unwrap();
    assert_eq!(outcome.streams[0].counts.lost(), 299);
    let mut second = trial(2, vec![stream(Side::Left, 64, 1000)], ms(1000));
    second.start_delay = ms(100);
    let outcome = engine.trial(&second, &mut Unwatched).unwrap();
    // A third of them came before the second began.
    assert_eq!((outcome.ports[1].stale, outcome.streams[0].counts.received), (199, 1000));
    assert!(matches!(Verdict::of(&second, &outcome, 64), Verdict::Invalid(_)));
}

#[test]
fn several_streams_of_a_side_are_sent_in_order_of_time_and_told_apart() {
    let mut streams = vec![stream(Side::Left, 64, 28_000), stream(Side::Left, 570, 16_000)];
    streams.push(stream(Side::Left, 1518, 4_000));
    streams.push(stream(Side::Right, 64, 5_000));
    let (outcome, told) = run(Behaviour::default(), &trial(1, streams, ms(1000)));
    let received: Vec<_> = outcome.streams.iter().map(|s| s.counts.received).collect();
    assert_eq!(received, [28_000, 16_000, 4_000, 5_000]);
    assert_eq!((told[0].taken, told[0].reordered), (48_000, 0));
    assert_eq!(outcome.lateness.max, Duration::ZERO);
}

#[test]
fn samples_add_up_to_what_was_sent_and_received() {
    let mut trial = trial(1, both(64, 10_001), ms(950));
    trial.sample_every = Some(ms(100));
    let (outcome, _) = run(Behaviour { delay: ms(50), ..Behaviour::default() }, &trial);
    let sent: u64 = outcome.samples.iter().map(|s| s.sent[0]).sum();
    let received: u64 = outcome.samples.iter().map(|s| s.received[1]).sum();
    assert_eq!((sent, received), (outcome.streams[0].counts.sent, outcome.streams[1].counts.received));
    assert_eq!((outcome.samples[0].at, outcome.samples[0].sent[0]), (ms(100), 1001));
    let bytes: u64 = outcome.samples.iter().map(|s| s.bytes[0]).sum();
    assert_eq!(bytes, 64 * received);
}

#[test]
fn samples_tell_which_of_their_frames_never_came() {
    let mut trial = trial(1, both(64, 1_000), ms(1000));
    trial.sample_every = Some(ms(100));
    let device = Behaviour { loss: 0.05, delay: ms(150), ..Behaviour::default() };
    let (outcome, told) = run(device, &trial);
    for side in [0, 1] {
        let lost: u64 = outcome.samples.iter().map(|s| s.lost[side]).sum();
        assert_eq!(lost, told[side].lost);
        assert!(outcome.samples.iter().all(|s| s.lost[side] <= s.sent[side]));
    }
    // The frames under way at a sample's end are not lost.
    trial.id = 2;
    let (outcome, _) = run(Behaviour { delay: ms(150), ..Behaviour::default() }, &trial);
    assert!(outcome.samples.iter().all(|s| s.lost == [0, 0]), "{:?}", outcome.samples);
}

#[test]
fn frames_without_numbers_are_counted() {
    let mut plain = stream(Side::Left, 84, 1000);
    plain.tag = Tag::Plain { offset: 42 };
    plain.frame[42..50].copy_from_slice(b"IDENTIFY");
    plain.checksums.l4 = true;
    let mut bare = stream(Side::Right, 200, 500);
    bare.tag = Tag::None;
    let device = Behaviour { loss: 0.1, ..Behaviour::default() };
    let mut trial = trial(1, vec![plain, bare], ms(1000));
    trial.verify = Verify::Some;
    let (outcome, told) = run(device, &trial);
    for (stream, told) in outcome.streams.iter().zip(told) {
        assert_eq!((stream.counts.received, stream.counts.lost()), (told.delivered, told.lost));
    }
}

struct Stopper(u32);

impl Watch for Stopper {
    fn progress(&mut self, so_far: &Sample) -> bool {
        self.0 -= u32::from(so_far.at > Duration::ZERO);
        self.0 > 0
    }
}

#[test]
fn whoever_watches_can_end_it() {
    let mut engine = Engine::simulated(Behaviour::default());
    let trial = trial(1, both(64, 1000), Duration::from_hours(1));
    let ended = Tester::run(&mut engine, &trial, &mut Stopper(3));
    assert!(matches!(ended, Err(TesterError::Interrupted)));
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let mut engine = Engine::simulated(Behaviour::default()).with_memory(1 << 20);
    let mut refused = |trial: &Trial| engine.trial(trial, &mut Unwatched).unwrap_err();
    let hour = trial(1, vec![stream(Side::Left, 64, 1_000_000)], Duration::from_hours(1));
    let EngineError::Memory { frames, most, .. } = refused(&hour) else { unreachable!() };
    assert_eq!((frames, most), (3_600_000_000, 8 << 20));
    let many = trial(1, vec![stream(Side::Left, 64, 1); 65], ms(10));
    assert!(refused(&many).to_string().contains("65 streams"));
    let mut short = stream(Side::Left, 64, 1);
    short.frame.truncate(13);
    assert!(refused(&trial(1, vec![short], ms(10))).to_string().contains("17 bytes"));
    let mut outside = stream(Side::Left, 64, 1);
    outside.tag = Tag::Signed { offset: 43 };
    assert!(matches!(refused(&trial(1, vec![outside], ms(10))), EngineError::Frame { .. }));
    let mut tags = stream(Side::Left, 64, 10);
    tags.stamps = Stamps::Even { after: ms(0), count: 11 };
    assert!(refused(&trial(1, vec![tags], ms(1000))).to_string().contains("10 frames"));
    let mut answers = stream(Side::Right, 64, 10);
    answers.answers = Some(Answers { order: Order::Rising });
    assert!(matches!(refused(&trial(1, vec![answers], ms(10))), EngineError::NothingLearnt { .. }));
}

#[test]
fn the_same_trial_has_the_same_outcome() {
    let behaviour =
        Behaviour { loss: 0.1, jitter: ms(1), duplicates: 0.1, looped: 0.01, ..Behaviour::default() };
    let mut trial = trial(1, both(64, 20_000), ms(500));
    trial.streams.iter_mut().for_each(|s| s.stamps = Stamps::All);
    assert_eq!(run(behaviour.clone(), &trial), run(behaviour, &trial));
}
