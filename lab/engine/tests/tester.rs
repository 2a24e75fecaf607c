//! What the tester says of itself, in simulated time: its ceiling, its stalls, how late it was.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support;

use std::time::Duration;

use shoal_lab_engine::{Behaviour, Engine, SelfTest, SimulatedClock, SyntheticPort, self_test};
use shoal_lab_plan::*;
use support::*;

#[test]
fn the_self_test_finds_the_capacity_that_was_set() {
    for capacity in [10_007, 123_457, 400_000] {
        let device = Behaviour { capacity: Some(capacity), queue: 64, ..Behaviour::default() };
        let mut engine = Engine::simulated(Behaviour { delay: Duration::from_micros(9), ..device });
        let mut test = SelfTest::quick(both(64, 1));
        (test.most, test.duration) = (500_000, ms(500));
        let ceiling = self_test(&mut engine, &test, &mut Unwatched).unwrap();
        // A queue of 64 carries so much more for half a second.
        let most = capacity + 64 * 2;
        assert!(
            ceiling.rate <= most && ceiling.rate as f64 > most as f64 * 0.989,
            "{capacity}: {}",
            ceiling.rate
        );
        assert!(!ceiling.is_more);
        let floor = 9_000 + 1_000_000_000 / capacity;
        assert!(
            ceiling.floor.iter().all(|d| d.min >= floor && d.min <= floor + 1),
            "{:?}",
            ceiling.floor[0].min
        );
    }
}

#[test]
fn a_tester_that_reaches_the_upper_end_says_that_it_could_do_more() {
    let mut engine = Engine::simulated(Behaviour::default());
    let mut test = SelfTest::quick(both(64, 1));
    (test.most, test.duration) = (50_000, ms(100));
    let ceiling = self_test(&mut engine, &test, &mut Unwatched).unwrap();
    assert_eq!((ceiling.rate, ceiling.is_more, ceiling.trials), (50_000, true, 2));
}

/// Holds the engine up at each word, and once for longer.
struct Holder {
    clock: SimulatedClock,
    words: u32,
}

impl Watch for Holder {
    fn progress(&mut self, so_far: &Sample) -> bool {
        if so_far.at > Duration::ZERO {
            self.words += 1;
            self.clock.advance(if self.words == 4 { 700_000 } else { 300_000 });
        }
        true
    }
}

#[test]
fn each_stall_is_told_with_its_length_and_frames_are_as_late_as_it_was_long() {
    let clock = SimulatedClock::new();
    let [left, right] = SyntheticPort::pair(Behaviour::default(), clock.clone());
    let mut engine = Engine::new(left, right, clock.clone());
    let mut trial = trial(1, both(64, 100_000), ms(1000));
    (trial.burst, trial.timeout) = (16, ms(200));
    let mut holder = Holder { clock, words: 0 };
    let outcome = engine.trial(&trial, &mut holder).unwrap();
    assert_eq!(outcome.stall_count, u64::from(holder.words));
    assert_eq!(outcome.stalls.len() as u64, outcome.stall_count);
    assert_eq!(outcome.longest_stall, Duration::from_micros(700));
    let lengths: Vec<_> = outcome.stalls.iter().map(|s| s.length.as_micros()).collect();
    assert_eq!(lengths[..5], [300, 300, 300, 700, 300]);
    // The frame that was due with the word was sent before it; the next was due 10 us into the stall.
    assert_eq!((outcome.lateness.max, outcome.lateness.most_burst), (Duration::from_micros(690), 16));
    // 200 of 200,000 frames may be later: of nine stalls of 300 us and one of 700 us those of more than 240 us.
    let p999 = outcome.lateness.p999.as_micros();
    assert!((225..255).contains(&p999), "{p999}");
    assert_eq!(Verdict::of(&trial, &outcome, 1024), Verdict::Pass);
}

#[test]
fn a_tester_that_is_held_up_at_the_end_is_told_from_a_device_that_loses() {
    let clock = SimulatedClock::new();
    let [left, right] = SyntheticPort::pair(Behaviour::default(), clock.clone());
    struct AtEnd(SimulatedClock);
    impl Watch for AtEnd {
        fn progress(&mut self, so_far: &Sample) -> bool {
            if so_far.at == ms(900) {
                self.0.advance(150_000_000);
            }
            true
        }
    }
    let mut engine = Engine::new(left, right, clock.clone());
    let trial = trial(1, both(64, 10_000), ms(1000));
    let outcome = engine.trial(&trial, &mut AtEnd(clock)).unwrap();
    assert_eq!(outcome.direction(Side::Left).lost(), 0);
    assert!(outcome.took > ms(1000));
    assert!(matches!(Verdict::of(&trial, &outcome, 1024), Verdict::Disturbed(_)));
}

#[test]
fn facts_are_those_of_the_ports() {
    let engine = Engine::simulated(Behaviour::default());
    let facts = engine.facts();
    assert_eq!((facts.transport.as_str(), facts.most_frame), ("synthetic", 65_539));
    assert!(facts.smallest_ring > 0 && facts.link == Link::default());
}
