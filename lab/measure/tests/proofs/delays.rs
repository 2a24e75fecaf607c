//! Latency and delay variation against closed forms.

use std::time::Duration;

use shoal_lab_measure::{
    DelayVariation, Latency, LatencyUnderLoad, MeasureError, SelfTest, Test as _, TrafficFrom,
};
use shoal_lab_plan::{Side, Stamps};

use crate::model::Model;
use crate::support::*;

/// Frame k is delayed by (k mod 1000) + 1 microseconds: uniformly from 1 to 1000.
fn sawtooth() -> Model {
    Model { delay: Box::new(|k| Some((k % 1000 + 1) * 1_000)), ..Model::default() }
}

const SECONDS: Latency =
    Latency { rate: 100_000, duration: Duration::from_secs(2), delay: Duration::from_secs(1), tags: 10_000 };

#[test]
fn typical_and_worst_case_latency_are_those_of_the_closed_form() {
    // One frame in ten is tagged: delays 1, 11, 21, ... 991 us, each a hundred times and in each direction.
    let result = run(&mut sawtooth(), strict(3), |r| SECONDS.measure(r, &both(64))).unwrap();
    assert_eq!(result.runs.values.len(), 3);
    let run = &result.runs.values[0];
    assert_eq!((run.typical, run.worst, run.min), (496.0, 991.0, 1.0));
    assert_eq!((run.mean, run.lost, run.delays.len()), (496.0, 0, 20_000));
}

#[test]
fn a_constant_delay_is_told_everywhere() {
    let report = run(&mut Model::default(), strict(2), |r| SECONDS.run(r, &both(64))).unwrap();
    for metric in ["TL", "WCL", "mean latency", "min latency"] {
        let row = report.rows.iter().find(|r| r.metric == metric).unwrap();
        assert_eq!((row.values.as_slice(), row.unit.as_str()), ([10.0; 2].as_slice(), "us"), "{metric}");
    }
    assert_eq!(report.rows[0].curve.first(), Some(&(1.0, 10.0)));
    assert!(report.rows[0].note.contains("0 tags lost"));
}

#[test]
fn a_lost_tag_counts_as_the_penalty_and_is_told() {
    // Of 10,000 tags 20 are lost, 0.2 %: the 99.9th percentile is the penalty of 1 s and the timeout of 2 s.
    let mut model = Model { delay: Box::new(|k| (k % 5_000 != 0).then_some(5_000)), ..Model::default() };
    let result = run(&mut model, strict(1), |r| SECONDS.measure(r, &forward(64))).unwrap();
    let run = &result.runs.values[0];
    assert_eq!((run.lost, run.typical, run.worst), (20, 5.0, 3_000_000.0));
    assert_eq!(run.mean, 5.0);
}

#[test]
fn more_tags_than_frames_are_refused_with_the_number_that_fits() {
    let test = Latency { tags: 100_001, ..SECONDS };
    let error = run(&mut sawtooth(), strict(1), |r| test.measure(r, &both(64))).unwrap_err();
    assert_eq!(error.to_string(), "tags is 100001; 1 to 100000 frames can be tagged at this rate and length");
    let test = Latency { delay: Duration::from_secs(2), ..SECONDS };
    assert!(run(&mut sawtooth(), strict(1), |r| test.measure(r, &both(64))).is_err());
}

#[test]
fn traffic_that_cannot_be_tagged_is_an_error_and_no_zero() {
    let untagged = TrafficFrom {
        size: 64,
        sides: vec![Side::Left],
        make: |offer: &shoal_lab_measure::Offer| {
            let mut one = stream("plain", Side::Left, 64, offer);
            one.stamps = Stamps::None;
            Ok(vec![one])
        },
    };
    let result = run(&mut sawtooth(), strict(1), |r| SECONDS.measure(r, &untagged));
    assert!(matches!(result, Err(MeasureError::Traffic(_))));
}

#[test]
fn delay_variation_is_that_of_the_closed_form() {
    // D99.9 is 999 us, the smallest 1 us. Neighbours differ by +1 us, and once in a thousand by -999 us.
    let test = DelayVariation { rate: 100_000, duration: Duration::from_secs(1) };
    let result = run(&mut sawtooth(), strict(2), |r| test.measure(r, &both(64))).unwrap();
    let run = &result.runs.values[0];
    assert_eq!((run.pdv, run.ipdv_min, run.ipdv_median, run.ipdv_max), (998.0, -999.0, 1.0, 1.0));
    // 99 falls of 999 us and 99,900 steps of 1 us.
    let mean = (99.0 * 999.0 + 99_900.0) / 99_999.0;
    assert!((run.ipdv_mean - mean).abs() < 1e-9, "{} {mean}", run.ipdv_mean);
}

#[test]
fn lost_frames_enter_the_variation_with_their_penalty() {
    // A loss of 1 % puts the 99.9th percentile among the lost: 1 s and the timeout of 2 s.
    let mut model = Model { loss: 0.01, ..Model::default() };
    let test = DelayVariation { rate: 10_000, duration: Duration::from_secs(1) };
    let result = run(&mut model, strict(1), |r| test.measure(r, &forward(64))).unwrap();
    assert!((result.runs.values[0].pdv - (3_000_000.0 - 10.0)).abs() < 1e-6, "{result:?}");
    assert!(result.runs.values[0].lost > 0);
}

#[test]
fn the_self_test_gives_the_testers_ceiling_and_floor() {
    let mut model = Model { tester_most: 600_000, ..Model::default() };
    let test = run(&mut model, strict(1), |r| SelfTest::measure(r, &both(64), 1_000_000)).unwrap();
    // Its tolerance of 10 ppm lets the model's tester pass a little above.
    assert!(test.rate.abs_diff(600_000) <= 60, "{test:?}");
    assert_eq!((test.floor, test.floor_p999), (10.0, 10.0));
}

#[test]
fn a_rate_that_the_tester_cannot_keep_marks_the_latency() {
    let mut model = Model { tester_most: 50_000, ..Model::default() };
    let report = run(&mut model, strict(1), |r| SECONDS.run(r, &both(64))).unwrap();
    assert!(report.rows[0].trust.contains(&shoal_lab_plan::Trust::TesterBound));
}

#[test]
fn the_thesis_tells_heavy_and_latency_loss_apart() {
    let traffic = TrafficFrom {
        size: 1518,
        sides: vec![Side::Left],
        make: |offer: &shoal_lab_measure::Offer| {
            let heavy = stream("heavy", Side::Left, 1518, offer);
            let mut latency = stream("latency", Side::Left, 64, &shoal_lab_measure::Offer::steady(5_000));
            latency.stamps = Stamps::All;
            Ok(vec![heavy, latency])
        },
    };
    let test =
        LatencyUnderLoad { duration: Duration::from_secs(2), repetitions: 3, ..LatencyUnderLoad::at(81_274) };
    let result = run(&mut Model::of(80_000), strict(1), |r| test.measure(r, &traffic)).unwrap();
    let run = &result.values[0];
    assert!(run.heavy_loss > 1.5 && run.latency_loss == 0.0 && run.loss < run.heavy_loss, "{run:?}");
    assert_eq!((run.mean, run.frames), (10.0, 170_000));
}
