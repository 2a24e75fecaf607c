//! Recovery and reset return the times that were set.

use std::time::Duration;

use shoal_lab_engine::{Behaviour, Control, Stalls};
use shoal_lab_measure::{Recovery, RecoveryRun, ResetRun, ResetTest, Resets, TrialProcedure};
use shoal_lab_plan::{DeviceError, Reset};

use crate::device;
use crate::stage::*;

const THROUGHPUT: u64 = 4_000;

fn recovery(behaviour: Behaviour) -> RecoveryRun {
    let test =
        Recovery { throughput: THROUGHPUT, most_rate: 10_000, overload: seconds(2), after: seconds(4) };
    run(behaviour, strict(), |r| test.measure(r, &both())).unwrap().values[0]
}

#[test]
fn recovery_is_the_time_for_which_loss_goes_on() {
    for millis in [1_u64, 70, 1_250, 3_333] {
        let time = ms(millis);
        // It loses all that comes; the last lost frame was sent at most 1 / 2,200 s before the end.
        let dead = Behaviour { dead: Some((seconds(2), time)), ..device::of(THROUGHPUT, 20) };
        let found = recovery(dead);
        near(found.seconds, time.as_secs_f64() - 0.5 / 2_200.0, 0.5 / 2_200.0 + 1e-8);
        assert!(!found.never_overloaded && !found.never_recovered, "{found:?}");
        // It stands still with a full queue, which goes on losing until the first of it is gone.
        let stalls = Stalls { first: seconds(2), every: None, length: time };
        let found = recovery(Behaviour { stalls: Some(stalls), ..device::of(THROUGHPUT, 2) });
        near(found.seconds, time.as_secs_f64(), 1.0 / 2_200.0 + 1.0 / THROUGHPUT as f64);
    }
}

#[test]
fn a_device_with_a_full_queue_stops_losing_at_once() {
    let found = recovery(device::of(THROUGHPUT, 200));
    assert_eq!((found.seconds, found.never_overloaded, found.never_recovered), (0.0, false, false));
}

#[test]
fn a_device_that_carries_the_overload_and_one_that_never_recovers_are_told() {
    assert!(recovery(device::of(5_000, 20)).never_overloaded);
    let dead = Behaviour { dead: Some((seconds(2), seconds(60))), ..device::of(THROUGHPUT, 20) };
    assert!(recovery(dead).never_recovered);
}

const RATE: u64 = 2_000;
const TEST: ResetTest = ResetTest {
    rate: RATE,
    kind: Reset::Crash,
    at: Duration::from_secs(1),
    duration: Duration::from_secs(6),
};

/// Really restarts when it is told: it is dead for some time from then on.
struct Device {
    control: Control,
    back: Behaviour,
    time: Duration,
    begun: u32,
}

impl Resets for Device {
    fn begin(&mut self, _kind: Reset) {
        // The engine asks ten times a second, so that the moment is the one that was asked for.
        self.control.behave(Behaviour { dead: Some((TEST.at, self.time)), ..self.back.clone() });
        self.begun += 1;
    }

    fn finish(&mut self) -> Result<(), DeviceError> {
        self.control.behave(self.back.clone());
        Ok(())
    }
}

fn reset(back: Behaviour, time: Duration) -> Vec<ResetRun> {
    let (mut engine, control) = controlled(back.clone());
    let mut device = Device { control, back, time, begun: 0 };
    let conduct = TrialProcedure { runs: 2, ..strict() };
    let found = over(&mut engine, conduct, |r| TEST.measure(r, &both(), &mut device)).0.unwrap();
    assert_eq!(device.begun, 2);
    found.values
}

#[test]
fn a_reset_takes_the_set_time_by_loss_and_by_stamps_and_they_agree() {
    for micros in [3_000, 250_000, 1_234_500, 4_000_000] {
        let time = Duration::from_micros(micros);
        for found in reset(Behaviour::default(), time) {
            near(found.by_loss, time.as_secs_f64(), 1.0 / RATE as f64 + 1e-9);
            // From a frame before to a frame after.
            near(found.by_stamps, time.as_secs_f64() + 0.5 / RATE as f64, 0.5 / RATE as f64 + 1e-8);
            assert!(found.agree && !found.never_resumed, "{found:?}");
        }
    }
}

#[test]
fn a_delay_does_not_make_a_reset_longer() {
    let slow = Behaviour { delay: ms(40), ..device::of(10_000, 100) };
    for found in reset(slow, ms(500)) {
        near(found.by_loss, 0.5, 1.0 / RATE as f64 + 1e-9);
        near(found.by_stamps, 0.5, 1.0 / RATE as f64 + 1e-8);
        assert!(found.agree);
    }
}

#[test]
fn loss_beside_the_reset_makes_both_ways_disagree() {
    let lossy = Behaviour { loss: 0.05, ..Behaviour::default() };
    for found in reset(lossy, ms(500)) {
        assert!(!found.agree && found.by_loss > found.by_stamps + 0.1, "{found:?}");
    }
}

#[test]
fn a_device_that_does_not_come_back_is_told_so() {
    let found = reset(Behaviour::default(), seconds(60));
    assert!(found.iter().all(|run| run.never_resumed && (run.by_loss - 5.0).abs() < 1e-3), "{found:?}");
    // No frame came after the reset, so there is no time by stamps that could agree.
    assert!(found.iter().all(|run| !run.agree), "{found:?}");
}
