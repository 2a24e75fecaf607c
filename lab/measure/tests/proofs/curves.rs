//! Frame loss, MRR, the load test, soak, NDR by ndr_bench, sweeps.

use std::time::Duration;

use shoal_lab_measure::{
    ForwardingRate, FrameLoss, LoadTest, MeasureError, Mrr, NdrBench, Report, Soak, Steps, Sweep, Test as _,
    Throughput, TrialProcedure,
};

use shoal_lab_plan::Trust;

use crate::model::Model;
use crate::support::*;

fn near(value: f64, wanted: f64, within: f64) -> bool {
    (value - wanted).abs() <= within * wanted.abs()
}

#[test]
fn loss_is_what_exceeds_the_capacity() {
    let test = FrameLoss { most: Some(1_000_000), ..FrameLoss::default() };
    let result = run(&mut Model::of(750_000), strict(2), |r| test.measure(r, &both(64))).unwrap();
    let curve = result.curve();
    // RFC 2544 26.3: 100, 90, 80, 70 and 60 %; the last two lose nothing.
    let rates: Vec<u64> = curve.iter().map(|p| p.0).collect();
    assert_eq!(rates, [600_000, 700_000, 800_000, 900_000, 1_000_000]);
    assert_eq!((curve[0].2, curve[1].2), (0.0, 0.0));
    assert!(near(curve[2].2, 6.25, 1e-6) && near(curve[4].2, 25.0, 1e-6), "{curve:?}");
    assert_eq!(result.peak().unwrap().1, 750_000.0);
}

#[test]
fn the_forwarding_rate_is_told_with_the_load_at_which_it_was_seen() {
    let test = ForwardingRate { most: Some(1_000_000) };
    let report = run(&mut Model::of(750_000), strict(2), |r| test.run(r, &both(64))).unwrap();
    let [rate, load] = report.rows.as_slice() else { panic!("{:?}", report.rows) };
    assert_eq!((rate.test.as_str(), rate.metric.as_str()), ("forwarding-rate", "forwarding rate"));
    assert_eq!(rate.values, [750_000.0; 2]);
    assert!(load.values.iter().all(|offered| *offered >= 800_000.0), "{load:?}");
    assert!(rate.note.contains("seen at an offered load of"), "{}", rate.note);
    assert!(!rate.trust.contains(&Trust::Ceiling));
}

#[test]
fn a_load_that_loses_nothing_makes_the_forwarding_rate_at_least() {
    let test = ForwardingRate { most: Some(1_000_000) };
    let report = run(&mut Model::of(2_000_000), strict(1), |r| test.run(r, &both(64))).unwrap();
    assert_eq!((report.rows[0].values[0], report.rows[1].values[0]), (1_000_000.0, 1_000_000.0));
    assert!(report.rows.iter().all(|row| row.trust.contains(&Trust::Ceiling)), "{:?}", report.rows);
}

#[test]
fn random_loss_is_found_within_its_deviation() {
    let mut model = Model { loss: 0.01, ..Model::default() };
    let test = FrameLoss { steps: Steps::Listed(vec![100_000]), most: None };
    let result = run(&mut model, strict(1), |r| test.measure(r, &both(64))).unwrap();
    // 200,000 frames: 1 % with a deviation of 0.022 %; five of them.
    assert!((result.runs.values[0][0].loss[2] - 1.0).abs() < 0.11, "{result:?}");
}

#[test]
fn listed_rates_are_measured_as_listed_and_a_rate_of_0_is_refused() {
    let rates = |steps| {
        let test = FrameLoss { steps, most: None };
        run(&mut Model::of(1_000_000), strict(1), |r| test.measure(r, &both(64)))
            .map(|result| result.curve().iter().map(|p| p.0).collect::<Vec<_>>())
    };
    assert_eq!(rates(Steps::Range(100, 300, 100)).unwrap(), [100, 200, 300]);
    assert_eq!(rates(Steps::Range(300, 150, 100)).unwrap(), [200, 300]);
    assert!(matches!(rates(Steps::Listed(vec![5, 0])), Err(MeasureError::Setting { .. })));
    assert!(rates(Steps::Listed(Vec::new())).is_err());
}

#[test]
fn the_loss_row_has_the_highest_offers_loss_and_the_curve() {
    let test = FrameLoss { steps: Steps::Listed(vec![50_000, 100_000]), most: None };
    let report = run(&mut Model::of(80_000), strict(3), |r| test.run(r, &both(64))).unwrap();
    assert!(near(report.rows[0].values[0], 20.0, 1e-6));
    assert_eq!(report.rows[0].curve[0], (50_000.0, 0.0));
    assert_eq!(report.rows[1].curve, [(50_000.0, 50_000.0), (100_000.0, 80_000.0)]);
}

#[test]
fn the_maximum_receive_rate_is_the_capacity_for_each_direction() {
    let test = Mrr { rate: Some(10_000_000), ..Mrr::default() };
    let report = run(&mut Model::of(3_000_000), strict(1), |r| test.run(r, &both(64))).unwrap();
    assert_eq!(report.rows[0].values, [3_000_000.0; 10]);
    assert_eq!(report.rows[0].unit, "fps/dir");
}

#[test]
fn trials_of_a_second_are_short_however_long_others_would_be() {
    let long = shoal_lab_measure::Preset::Strict.conduct();
    let test = Mrr { rate: Some(10_000_000), trials: 20, ..Mrr::default() };
    let report = run(&mut Model::of(3_000_000), long, |r| test.run(r, &both(64))).unwrap();
    assert_eq!(report.rows[0].trust, [Trust::ShortTrials]);
}

#[test]
fn a_tester_that_offers_less_than_it_should_gives_a_receive_rate_of_at_least() {
    let mut model = Model { tester_most: 2_000_000, ..Model::default() };
    let test = Mrr { rate: Some(4_000_000), ..Mrr::default() };
    let report = run(&mut model, strict(1), |r| test.run(r, &both(64))).unwrap();
    // All frames arrive, in twice the time.
    assert!(near(report.rows[0].values[0], 2_000_000.0, 1e-6), "{:?}", report.rows[0].values);
    assert!(report.rows[0].note.contains("at least"), "{}", report.rows[0].note);
}

#[test]
fn a_ramp_finds_the_highest_rate_and_where_loss_begins() {
    let test = LoadTest { target: Some(1_000_000), ..LoadTest::default() };
    let report = run(&mut Model::of(600_000), strict(1), |r| test.run(r, &both(64))).unwrap();
    let value = |metric: &str| report.rows.iter().find(|r| r.metric == metric).unwrap().values[0];
    assert!(near(value("max_pps"), 1_200_000.0, 1e-6));
    assert!(near(value("ok_pps"), 1_200_000.0, 0.005), "{}", value("ok_pps"));
    // 600,000 frames of 84 bytes on the wire: 4.032 % of 10 Gbit/s.
    assert!(near(value("max_lr"), 4.032, 1e-4), "{}", value("max_lr"));
    assert_eq!(report.rows[0].curve.len(), 480);
}

#[test]
fn a_flood_offers_the_target_all_the_time() {
    let test = LoadTest {
        target: Some(1_000_000),
        ramp: Duration::from_secs(10),
        flood: true,
        ..LoadTest::default()
    };
    let mut model = Model::of(600_000);
    let report = run(&mut model, strict(1), |r| test.run(r, &forward(64))).unwrap();
    assert_eq!(report.rows[0].values, [600_000.0]);
    assert!(report.rows[0].note.contains("flood"));
    assert_eq!(model.trials[0].streams[0].pace, shoal_lab_measure::Offer::steady(1_000_000).pace);
}

#[test]
fn a_soak_at_95_percent_of_the_capacity_has_no_bad_second_and_above_it_all_are() {
    let bad = |rate| {
        let test = Soak { rate, duration: Duration::from_mins(10) };
        run(&mut Model::of(100_000), strict(1), |r| test.measure(r, &both(64))).unwrap().bad
    };
    assert_eq!(bad(95_000), 0);
    assert_eq!(bad(101_000), 600);
}

#[test]
fn ndr_bench_ends_within_its_error_of_the_capacity() {
    for optimised in [false, true] {
        let test = NdrBench { most: Some(1_000_000), optimised, ..NdrBench::default() };
        let result = run(&mut Model::of(640_000), strict(1), |r| test.measure(r, &both(64))).unwrap();
        let run = &result.values[0];
        assert!(run.rate <= 641_000.0 && run.rate >= 630_000.0, "{run:?}");
        assert!(near(run.first_loss, 36.0, 1e-3));
    }
}

#[test]
fn ndr_bench_needs_fewer_steps_when_the_first_loss_tells_where_to_look() {
    let steps = |optimised| {
        let test = NdrBench { most: Some(1_000_000), optimised, ..NdrBench::default() };
        run(&mut Model::of(620_000), strict(1), |r| test.measure(r, &both(64))).unwrap().values[0].steps
    };
    assert!(steps(true) < steps(false), "{} {}", steps(true), steps(false));
}

#[test]
fn ndr_bench_fails_steps_whose_delay_is_above_the_ceiling() {
    let rate = |ceiling| {
        let test = NdrBench { most: Some(10_000), latency_ceiling: Some(ceiling), ..NdrBench::default() };
        run(&mut Model::of(20_000), strict(1), |r| test.measure(r, &both(64))).unwrap().values[0].rate
    };
    assert_eq!(rate(Duration::from_micros(10)), 10_000.0);
    assert_eq!(rate(Duration::from_micros(9)), 0.0);
}

#[test]
fn a_sweep_has_rows_of_each_point_and_a_curve_over_them() {
    let sweep = Sweep::decades("flows", 1_000);
    let test = Throughput { most: Some(1_000_000), ..Throughput::default() };
    let mut model = Model::of(500_000);
    let report = run(&mut model, TrialProcedure { runs: 3, ..strict(3) }, |r| {
        let mut seen = 0;
        sweep.run(r, &mut |_, runner| {
            seen += 1;
            if seen == 4 { Err(MeasureError::Interrupted) } else { test.run(runner, &both(64)) }
        })
    })
    .unwrap();
    assert!(matches!(report.ended, Some(MeasureError::Interrupted)));
    let variants: Vec<&str> = report.rows.iter().map(|r| r.variant.as_str()).collect();
    assert_eq!(variants, ["flows=1", "flows=10", "flows=100", "over flows"]);
    let curve = &report.rows[3].curve;
    assert_eq!(curve, &[(1.0, 500_000.0), (10.0, 500_000.0), (100.0, 500_000.0)]);
}

#[test]
fn a_sweep_whose_first_point_fails_is_an_error() {
    let mut fails = |_: u64, _: &mut shoal_lab_measure::Runner<'_>| -> Result<Report, MeasureError> {
        Err(MeasureError::Traffic("no".into()))
    };
    let result = run(&mut Model::of(1), strict(1), |r| Sweep::decades("routes", 10).run(r, &mut fails));
    assert!(matches!(result, Err(MeasureError::Traffic(_))));
}
