//! Tests that look at each second: soak finds the bad ones, the load test's ramp gives the rates of its closed form.

use std::time::Duration;

use shoal_lab_engine::{Behaviour, Stalls};
use shoal_lab_measure::{LoadRun, LoadTest, Soak, SoakResult};

use crate::device;
use crate::stage::*;

fn soak(behaviour: Behaviour, rate: u64, time: u64) -> SoakResult {
    let test = Soak { rate, duration: seconds(time) };
    run(behaviour, strict(), |r| test.measure(r, &both())).unwrap()
}

fn stalling(first: u64, every: Option<u64>, length: u64, queue: usize) -> Behaviour {
    let stalls = Stalls { first: ms(first), every: every.map(ms), length: ms(length) };
    Behaviour { stalls: Some(stalls), ..device::of(4_000, queue) }
}

/// Numbers of the seconds, from 1, in which frames went missing.
fn bad_seconds(found: &SoakResult) -> Vec<u64> {
    let mut before = 0.0;
    let mut bad = Vec::new();
    for (at, missing) in &found.missing {
        if *missing > before {
            bad.push(at.round() as u64);
        }
        before = *missing;
    }
    bad
}

#[test]
fn soak_finds_the_seconds_of_stalls() {
    // Stalls of 50 ms from 3.2 s on, every 4 s: 50 frames come, 20 of which are kept.
    let found = soak(stalling(3_200, Some(4_000), 50, 20), 1_000, 20);
    assert_eq!((found.seconds, found.bad, bad_seconds(&found)), (20, 5, vec![4, 8, 12, 16, 20]));
    near(found.loss, 5.0 * 30.0 / 20_000.0, 5.1 / 20_000.0);
}

#[test]
fn a_stall_over_a_seconds_end_makes_two_bad_ones() {
    let found = soak(stalling(2_900, None, 200, 20), 1_000, 6);
    assert_eq!((found.bad, bad_seconds(&found)), (2, vec![3, 4]));
}

#[test]
fn a_stall_that_the_queue_holds_is_no_bad_second() {
    let found = soak(stalling(1_500, Some(2_000), 100, 200), 1_000, 10);
    assert_eq!((found.bad, found.loss), (0, 0.0));
}

#[test]
fn frames_under_way_do_not_hide_bad_seconds() {
    // 300 frames are always under way, more than are lost in all.
    let slow = Behaviour { delay: ms(300), ..stalling(3_200, Some(4_000), 50, 20) };
    let found = soak(slow, 1_000, 20);
    assert_eq!((found.bad, bad_seconds(&found)), (5, vec![4, 8, 12, 16, 20]));
}

#[test]
fn below_the_capacity_no_second_is_bad_and_above_it_all_are() {
    assert_eq!(soak(device::of(2_000, 2), 1_900, 10).bad, 0);
    assert_eq!(soak(device::of(2_000, 2), 2_010, 10).bad, 10);
    let slow = Behaviour { delay: ms(20), jitter: ms(5), ..device::of(2_000, 2) };
    assert_eq!(soak(slow, 1_900, 10).bad, 0);
}

fn ramp(behaviour: Behaviour, test: LoadTest) -> LoadRun {
    run(behaviour, strict(), |r| test.measure(r, &both())).unwrap().values.remove(0)
}

const RAMP: LoadTest = LoadTest {
    warm_up_rate: 100,
    warm_up: Duration::from_secs(2),
    target: Some(4_100),
    ramp: Duration::from_secs(8),
    hold: Duration::from_secs(2),
    flood: false,
};

/// Frames a second and direction that are sent and received in each second: the ramp's rate in pieces of 100 ms, cut off at
/// the capacity.
fn closed_form(test: &LoadTest, capacity: f64) -> Vec<(f64, f64)> {
    let (low, high) = (test.warm_up_rate as f64, test.target.unwrap() as f64);
    let pieces = test.ramp.as_millis() as u64 / 100;
    let total = (test.warm_up + test.ramp + test.hold).as_millis() as u64 / 100;
    let warm = test.warm_up.as_millis() as u64 / 100;
    let rate = |piece: u64| match piece {
        p if p < warm => low,
        p => low + (high - low) * (p - warm + 1).min(pieces) as f64 / pieces as f64,
    };
    let second = |s: u64| {
        let pieces = (10 * s..10 * s + 10).map(rate);
        let sum = |most: f64| pieces.clone().map(|r| r.min(most)).sum::<f64>() / 10.0;
        (sum(f64::INFINITY), sum(capacity))
    };
    (0..total / 10).map(second).collect()
}

#[test]
fn the_ramp_follows_its_line_and_gives_the_rates_of_the_closed_form() {
    for c in [2_349, 1_201, 3_999] {
        let found = ramp(device::of(c, 2), RAMP);
        let wanted = closed_form(&RAMP, c as f64);
        for (second, (sent, received)) in found.seconds.iter().zip(&wanted) {
            // Each piece of 100 ms begins with a whole frame, and the queue takes one more in each direction.
            near(second.sent, 2.0 * sent, 20.0);
            near(second.received, 2.0 * received, 20.0);
        }
        near(found.max_rate, 2.0 * c as f64, 4.0);
        let first_lossy = wanted.iter().find(|(sent, received)| (sent - received) / sent > 0.001).unwrap();
        near(found.ok_rate, 2.0 * first_lossy.1, 20.0);
        // With the first the second in which loss begins has less than the most.
        assert!(c != 2_349 || found.ok_rate < found.max_rate - 50.0, "{found:?}");
        // Layer 1: 84 bytes a frame of both directions, of twice 10 Gbit/s.
        near(found.max_line_rate, 100.0 * found.max_rate * 84.0 * 8.0 / 2e10, 1e-9);
    }
}

#[test]
fn a_ramp_without_loss_is_ok_to_its_end() {
    let found = ramp(Behaviour::default(), RAMP);
    assert_eq!((found.ok_rate, found.max_rate), (8_200.0, 8_200.0));
}

#[test]
fn a_device_that_loses_by_chance_all_the_time_is_ok_to_the_first_second() {
    let found = ramp(Behaviour { loss: 0.05, ..Behaviour::default() }, RAMP);
    near(found.ok_rate, 200.0 * 0.95, 30.0);
    near(found.max_rate, 8_200.0 * 0.95, 5.0 * (8_200.0_f64 * 0.0475).sqrt());
}

#[test]
fn a_flood_gives_the_capacity() {
    let found = ramp(device::of(2_345, 2), LoadTest { flood: true, ramp: seconds(3), ..RAMP });
    near(found.max_rate, 2.0 * 2_345.0, 4.0);
}
