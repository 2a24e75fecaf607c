//! Back-to-back, burst gaps, recovery, reset.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use proptest::prelude::*;
use shoal_lab_measure::{
    BackToBack, BurstGap, MeasureError, Recovery, ResetTest, Resets, Test as _, TrafficFrom,
};
use shoal_lab_plan::{DeviceError, Reset, Side, Trust};

use crate::model::Model;
use crate::support::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn back_to_back_and_its_correction_return_the_buffer(buffer in 100_u64..20_000, tenth in 1_u64..9) {
        let (most, capacity) = (1_000_000, tenth * 100_000);
        let test = BackToBack { repetitions: 2, ..BackToBack::rfc9004(most, capacity as f64) };
        let mut model = Model { buffer, ..Model::of(capacity) };
        let result = run(&mut model, strict(1), |r| test.measure(r, &forward(64))).unwrap();
        // RFC 9004 6.4: what remains after taking off what was forwarded meanwhile is the buffer.
        let frames = result.corrected * most as f64;
        prop_assert!((frames - buffer as f64).abs() <= 1.0, "{frames} of {buffer}");
    }
}

#[test]
fn the_longest_burst_is_told_when_no_burst_is_lost() {
    let test = BackToBack {
        repetitions: 1,
        longest: Duration::from_millis(1),
        ..BackToBack::rfc9004(1_000_000, 9e5)
    };
    let report = run(&mut Model::default(), strict(1), |r| test.run(r, &forward(64))).unwrap();
    assert_eq!(report.rows[0].values, [1_000.0]);
    assert_eq!(report.rows[1].values, [1_000.0]);
    assert!((report.rows[2].values[0] - 100.0).abs() < 1e-9, "{:?}", report.rows[2]);
    assert!(!report.rows[0].trust.contains(&Trust::ShortTrials), "a burst is as short as it is");
    assert!(report.rows[0].trust.contains(&Trust::Ceiling));
}

#[test]
fn sizes_forwarded_at_the_highest_rate_have_no_back_to_back_result() {
    let test = BackToBack::rfc9004(1_000_000, 1e6);
    let error = run(&mut Model::default(), strict(1), |r| test.measure(r, &forward(64))).unwrap_err();
    assert!(error.to_string().contains("RFC 9004"), "{error}");
}

#[test]
fn the_smallest_gap_is_the_time_that_the_buffer_needs_to_empty() {
    let mut model = Model { buffer: 240, ..Model::of(100_000) };
    let test = BurstGap { bursts: vec![16, 256, 1024], ..BurstGap::rfc2544(1_000_000) };
    let result = run(&mut model, strict(1), |r| test.measure(r, &forward(64))).unwrap();
    let gaps: Vec<Option<u128>> = result.values[0].iter().map(|g| g.gap.map(|t| t.as_micros())).collect();
    // In the long run each burst's rest has to leave in its gap: 15 frames in 150 us, 231 in 2,310 us, 922 never fit.
    assert_eq!(gaps, [Some(150), Some(2_310), None]);
}

#[test]
fn recovery_is_the_time_until_the_last_loss() {
    let minute = Duration::from_mins(1);
    let mut model = Model { recovers_in: Duration::from_millis(1_250), ..Model::of(100_000) };
    let test = Recovery { overload: minute, after: minute, ..Recovery::rfc2544(100_000, 1_000_000) };
    let result = run(&mut model, strict(3), |r| test.measure(r, &both(64))).unwrap();
    for run in &result.values {
        assert!((run.seconds - 1.25).abs() < 1e-6 && !run.never_recovered, "{run:?}");
    }
    let trial = &model.trials[0];
    let shoal_lab_plan::Pace::Steps { steps } = &trial.streams[0].pace else { panic!() };
    assert_eq!((steps[0].rate.fps(), steps[1].rate.fps(), steps[1].at), (110_000.0, 55_000.0, minute));
}

#[test]
fn a_device_that_stops_losing_at_once_has_recovered_in_no_time() {
    let test = Recovery::rfc2544(100_000, 1_000_000);
    let report = run(&mut Model::of(100_000), strict(2), |r| test.run(r, &both(64))).unwrap();
    assert_eq!(report.rows[0].values, [0.0, 0.0]);
    assert!(report.rows[0].note.contains("loss stopped at once"), "{}", report.rows[0].note);
    let report = run(&mut Model::of(200_000), strict(1), |r| test.run(r, &both(64))).unwrap();
    assert!(report.rows[0].note.contains("nothing was lost during the overload"));
}

#[test]
fn a_device_that_does_not_recover_is_told_so() {
    let mut model = Model { recovers_in: Duration::from_hours(1), ..Model::of(100_000) };
    let test = Recovery::rfc2544(100_000, 1_000_000);
    let result = run(&mut model, strict(1), |r| test.measure(r, &both(64))).unwrap();
    assert!(result.values[0].never_recovered);
    let test = Recovery::rfc2544(100_000, 100_000);
    assert!(matches!(
        run(&mut Model::of(1), strict(1), |r| test.measure(r, &both(64))),
        Err(MeasureError::Setting { .. })
    ));
}

struct Restarted {
    reset: Rc<Cell<bool>>,
    begun: u32,
    finished: u32,
    fails: bool,
}

impl Resets for Restarted {
    fn begin(&mut self, kind: Reset) {
        assert_eq!(kind, Reset::Crash);
        self.reset.set(true);
        self.begun += 1;
    }

    fn finish(&mut self) -> Result<(), DeviceError> {
        self.finished += 1;
        if self.fails {
            return Err(DeviceError::Died { device: "model".into(), reason: "gone".into() });
        }
        Ok(())
    }
}

fn restarted(model: &Model) -> Restarted {
    Restarted { reset: model.reset.clone(), begun: 0, finished: 0, fails: false }
}

const RESET: ResetTest = ResetTest {
    rate: 10_000,
    kind: Reset::Crash,
    at: Duration::from_secs(1),
    duration: Duration::from_secs(10),
};

#[test]
fn a_reset_takes_the_time_that_was_set_by_loss_and_by_stamps() {
    let mut model = Model { dead_time: Duration::from_millis(2_500), ..Model::default() };
    let mut device = restarted(&model);
    let result = run(&mut model, strict(3), |r| RESET.measure(r, &both(64), &mut device)).unwrap();
    for run in &result.values {
        assert!((run.by_loss - 2.5).abs() < 1e-9 && (run.by_stamps - 2.5).abs() < 1e-9, "{run:?}");
        assert!(run.agree && !run.never_resumed);
    }
    assert_eq!((device.begun, device.finished), (3, 3));
}

#[test]
fn partial_forwarding_during_a_reset_is_flagged() {
    let mut model = Model { dead_time: Duration::from_millis(2_500), leak: 10, ..Model::default() };
    let mut device = restarted(&model);
    let result = run(&mut model, strict(1), |r| RESET.measure(r, &both(64), &mut device)).unwrap();
    assert!(!result.values[0].agree, "{result:?}");
    assert!(ResetTest::agree(1.0, 1.000_9, 1_000_000) && !ResetTest::agree(1.0, 1.002, 1_000_000));
    assert!(ResetTest::agree(1.0, 1.09, 100) && !ResetTest::agree(1.0, 1.11, 100));
}

#[test]
fn a_device_that_does_not_come_back_is_told_so() {
    let mut model = Model { dead_time: Duration::from_hours(1), ..Model::default() };
    let mut device = restarted(&model);
    let result = run(&mut model, strict(1), |r| {
        let result = RESET.measure(r, &both(64), &mut device).unwrap();
        RESET.rows(r, &result)
    });
    assert!(result[0].note.contains("did not resume"), "{}", result[0].note);
    assert_eq!(result[0].variant, "crash");
}

#[test]
fn a_device_that_cannot_be_reset_is_an_error() {
    let mut model = Model::default();
    let mut device = Restarted { fails: true, ..restarted(&model) };
    let result = run(&mut model, strict(1), |r| RESET.measure(r, &both(64), &mut device));
    assert!(matches!(result, Err(MeasureError::Device(_))));
}

#[test]
fn traffic_that_cannot_be_made_is_an_error() {
    let none = TrafficFrom {
        size: 64,
        sides: vec![Side::Left],
        make: |_: &shoal_lab_measure::Offer| Err(MeasureError::Traffic("no such ports".into())),
    };
    let error = run(&mut Model::default(), strict(1), |r| BackToBack::rfc9004(1_000, 1.0).measure(r, &none));
    assert_eq!(error.unwrap_err().to_string(), "traffic: no such ports");
}
