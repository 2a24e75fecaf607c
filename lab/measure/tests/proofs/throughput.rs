use std::collections::BTreeSet;

use proptest::prelude::*;
use shoal_lab_measure::{
    Bound, MeasureError, Precision, Preset, Search, Test as _, Throughput, TrialProcedure,
};
use shoal_lab_plan::{Side, Trust, Verdict};

use crate::model::Model;
use crate::support::*;

fn found(model: &mut Model, conduct: TrialProcedure, most: u64) -> shoal_lab_measure::ThroughputResult {
    let test = Throughput { most: Some(most), ..Throughput::default() };
    run(model, conduct, |r| test.measure(r, &both(64))).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_device_of_capacity_c_has_throughput_c_within_e(c in 1_000_u64..8_000_000, e in 1_u64..5_000) {
        let conduct = TrialProcedure { precision: Precision::Absolute(e), ..strict(1) };
        let value = found(&mut Model::of(c), conduct, 8_000_000).values[0] as u64;
        prop_assert!(value <= c && c - value < e, "{value} of {c} within {e}");
    }

    #[test]
    fn a_relative_e_is_kept_too(c in 1_000_u64..8_000_000) {
        let conduct = TrialProcedure { precision: Precision::Relative(0.005), ..strict(1) };
        let value = found(&mut Model::of(c), conduct, 8_000_000).values[0];
        prop_assert!(value <= c as f64 && value >= c as f64 * 0.995 - 1.0, "{value} of {c}");
    }
}

#[test]
fn each_run_has_its_value_and_its_trials_are_numbered() {
    let test = Throughput { most: Some(1_024), ..Throughput::default() };
    let mut model = Model::of(700);
    let (result, kept) = over(&mut model, strict(3), |r| test.measure(r, &both(64)));
    assert_eq!(result.unwrap().values, [700.0; 3]);
    assert_eq!(kept.lines.len(), 30);
    let second: Vec<u32> = kept.lines.iter().filter(|l| l.run == 2).map(|l| l.step).collect();
    assert_eq!(second, (1..=10).collect::<Vec<u32>>());
    assert_eq!(kept.lines[0].bracket, Some((512, 1_024)));
    assert_eq!(kept.lines[1].bracket, Some((512, 768)));
    let ids: BTreeSet<u16> = model.trials.iter().map(|t| t.id).collect();
    assert_eq!(ids.len(), 30);
    let lines = serde_json::to_string(&kept.lines[0]).unwrap();
    assert!(lines.contains("\"throughput\""));
}

#[test]
fn disturbed_trials_are_tried_again_and_all_kept() {
    let mut model = Model { disturbed: [1, 2, 5].into(), ..Model::of(700) };
    let test = Throughput { most: Some(1_024), ..Throughput::default() };
    let (result, kept) = over(&mut model, strict(1), |r| {
        let result = test.measure(r, &both(64));
        (result.unwrap().values, r.marks())
    });
    assert_eq!(result.0, [700.0]);
    assert!(!result.1.disturbed);
    assert_eq!(kept.lines.len(), 13);
    let steps: Vec<u32> = kept.lines.iter().take(4).map(|l| l.step).collect();
    assert_eq!(steps, [1, 1, 1, 2]);
    assert!(matches!(kept.lines[0].verdict, Verdict::Disturbed(_)));
    assert_eq!(kept.lines[0].bracket, Some((0, 1_024)));
}

#[test]
fn trials_disturbed_beyond_their_retries_are_told_in_the_result() {
    let mut model = Model { disturbed: [1, 2, 3].into(), ..Model::of(700) };
    let test = Throughput { most: Some(1_024), ..Throughput::default() };
    let report = run(&mut model, strict(1), |r| test.run(r, &both(64))).unwrap();
    assert!(report.rows[0].trust.contains(&Trust::Disturbed));
    assert_eq!(report.rows[0].values, [511.0]);
}

#[test]
fn frames_of_an_earlier_trial_invalidate_one_and_it_is_tried_again() {
    let mut model = Model { stale: [1].into(), ..Model::of(700) };
    let (result, kept) = over(&mut model, strict(1), |r| {
        Throughput { most: Some(1_024), ..Throughput::default() }.measure(r, &both(64))
    });
    assert_eq!(result.unwrap().values, [700.0]);
    assert!(matches!(kept.lines[0].verdict, Verdict::Invalid(_)));
}

#[test]
fn a_tester_that_cannot_keep_the_rate_gives_at_least() {
    let mut model = Model { tester_most: 300, ..Model::of(700) };
    let test = Throughput { most: Some(1_024), ..Throughput::default() };
    let (report, kept) = over(&mut model, strict(2), |r| test.run(r, &both(64)).unwrap());
    let row = &report.rows[0];
    assert!(row.values.iter().all(|v| (299.0..=300.0).contains(v)), "{:?}", row.values);
    assert!(row.note.contains("at least (tester limit)"), "{}", row.note);
    assert!(row.trust.contains(&Trust::TesterBound));
    let most_of_second = kept.lines.iter().filter(|l| l.run == 2).map(|l| l.rate as u64).max();
    assert!(most_of_second < Some(301), "the limit caps later runs: {most_of_second:?}");
}

#[test]
fn a_device_slower_than_the_tester_is_not_marked() {
    let mut model = Model { tester_most: 900, ..Model::of(300) };
    let test = Throughput { most: Some(1_024), ..Throughput::default() };
    let result = run(&mut model, strict(1), |r| test.measure(r, &both(64))).unwrap();
    assert_eq!((result.values[0], result.runs.values[0].bound), (300.0, Bound::Device));
}

#[test]
fn siitperfs_rule_tells_the_last_rate_tried_and_no_limit() {
    let conduct = TrialProcedure { siitperf: true, ..strict(1) };
    let mut model = Model { tester_most: 300, ..Model::of(700) };
    let test = Throughput { most: Some(1_024), ..Throughput::default() };
    let report = run(&mut model, conduct, |r| test.run(r, &both(64))).unwrap();
    assert!(!report.rows[0].note.contains("at least"), "{}", report.rows[0].note);
    assert_eq!(report.rows[0].values.len(), 1);
    let last = model.trials.last().unwrap().streams[0].pace.clone();
    let shoal_lab_plan::Pace::Steady { rate, .. } = last else { panic!() };
    assert!((report.rows[0].values[0] - rate.fps()).abs() < 1e-9);
}

#[test]
fn an_upper_end_that_passes_is_at_least() {
    let test = Throughput { most: Some(1_024), ..Throughput::default() };
    let report = run(&mut Model::of(5_000), strict(1), |r| test.run(r, &both(64))).unwrap();
    assert!(report.rows[0].trust.contains(&Trust::Ceiling));
    assert!(report.rows[0].note.contains("at least"));
}

#[test]
fn few_short_runs_on_virtual_links_are_marked_and_many_long_ones_are_not() {
    let test = Throughput { most: Some(1_024), ..Throughput::default() };
    let mut model = Model { is_virtual: true, ..Model::of(700) };
    let row = &run(&mut model, strict(3), |r| test.run(r, &both(64))).unwrap().rows[0];
    assert_eq!(row.trust, [Trust::VirtualLink, Trust::FewRuns, Trust::ShortTrials]);
    let row =
        &run(&mut Model::of(700), Preset::Strict.conduct(), |r| test.run(r, &both(64))).unwrap().rows[0];
    assert_eq!((row.values.len(), row.trust.len()), (20, 0), "{:?}", row.trust);
}

#[test]
fn a_rate_above_nine_tenths_of_the_self_test_is_the_testers() {
    let test = Throughput { most: Some(1_024), ..Throughput::default() };
    let row = run(&mut Model::of(700), strict(1), |r| {
        r.self_test = Some(710);
        test.run(r, &both(64)).unwrap().rows.remove(0)
    });
    assert!(row.trust.contains(&Trust::TesterBound));
}

#[test]
fn a_device_that_answers_nothing_ends_the_search_at_once() {
    let mut model = Model { dies_at: 1, ..Model::of(700) };
    let test = Throughput { most: Some(8_000_000), ..Throughput::default() };
    let error = run(&mut model, strict(20), |r| test.measure(r, &both(64))).unwrap_err();
    assert!(error.to_string().starts_with("the device answers nothing"), "{error}");
    assert_eq!(model.trials.len(), 2);
}

#[test]
fn a_device_deaf_in_one_direction_is_told_so() {
    let mut model = Model { deaf: Some(Side::Right), ..Model::of(700) };
    let test = Throughput { most: Some(1_024), ..Throughput::default() };
    let error = run(&mut model, strict(1), |r| test.measure(r, &both(64))).unwrap_err();
    assert!(matches!(error, MeasureError::Silent { where_to: "on the left", .. }), "{error}");
    let one_way = run(&mut model, strict(1), |r| test.measure(r, &forward(64))).unwrap();
    assert_eq!(one_way.values, [700.0]);
}

#[test]
fn a_device_that_dies_in_the_middle_leaves_the_runs_before() {
    let mut model = Model { dies_at: 25, ..Model::of(700) };
    let test = Throughput { most: Some(1_024), ..Throughput::default() };
    let result = run(&mut model, strict(10), |r| test.measure(r, &both(64))).unwrap();
    assert_eq!(result.values, [700.0, 700.0]);
    assert!(matches!(result.runs.ended, Some(MeasureError::Silent { .. })));
}

#[test]
fn an_interruption_keeps_what_was_found() {
    let mut model = Model { interrupted_at: 25, ..Model::of(700) };
    let test = Throughput { most: Some(1_024), ..Throughput::default() };
    let report = run(&mut model, strict(10), |r| test.run(r, &both(64))).unwrap();
    assert_eq!(report.rows[0].values, [700.0, 700.0]);
    assert!(matches!(report.ended, Some(MeasureError::Interrupted)));
}

#[test]
fn an_interruption_is_noticed_while_resting() {
    let (mut kept, mut time) = (Kept { patience: Some(20), ..Kept::default() }, NoTime::default());
    let mut model = Model::of(700);
    let mut runner =
        shoal_lab_measure::Runner::new(&mut model, &mut kept, &mut time, case(), strict(1)).unwrap();
    let test = Throughput { most: Some(1_024), ..Throughput::default() };
    assert!(matches!(test.measure(&mut runner, &both(64)), Err(MeasureError::Interrupted)));
    assert_eq!(kept.lines.len(), 1);
}

#[test]
fn a_resumed_campaign_takes_the_recorded_trials_and_goes_on() {
    let test = Throughput { most: Some(1_024), ..Throughput::default() };
    let mut first = Model { interrupted_at: 16, ..Model::of(700) };
    let (_, kept) = over(&mut first, strict(2), |r| test.measure(r, &both(64)).unwrap().values);
    let mut second = Model::of(700);
    let lines = kept.lines;
    let values = run(&mut second, strict(2), |r| {
        r.resume(lines);
        test.measure(r, &both(64)).unwrap().values
    });
    assert_eq!(values, [700.0, 700.0]);
    assert_eq!(second.trials.len(), 20 - 15);
}

#[test]
fn a_full_disk_ends_the_test_with_an_error() {
    let (mut kept, mut time) = (Kept { room: Some(3), ..Kept::default() }, NoTime::default());
    let mut model = Model::of(700);
    let mut runner =
        shoal_lab_measure::Runner::new(&mut model, &mut kept, &mut time, case(), strict(1)).unwrap();
    let test = Throughput { most: Some(1_024), ..Throughput::default() };
    let error = test.measure(&mut runner, &both(64)).unwrap_err();
    assert!(matches!(error, MeasureError::Journal(_)));
    assert_eq!(kept.lines.len(), 3);
}

#[test]
fn verified_losses_pass_if_one_repetition_does() {
    // Noise of 10 % fails half the trials just below the capacity; repetitions bring the result near it.
    let median = |verification: u32| {
        let conduct = TrialProcedure { loss_verification: verification, ..strict(9) };
        let mut model = Model { noise: 0.1, ..Model::of(1_000_000) };
        found(&mut model, conduct, 2_000_000).median()
    };
    let (strict, verified) = (median(0), median(10));
    assert!(strict < verified && verified > 985_000.0, "{strict} {verified}");
}

#[test]
fn a_loss_ratio_gives_the_partial_drop_rate() {
    let search = Search { most_loss: 0.005, ..Search::new(&strict(1), 2_000_000) };
    let found = run(&mut Model::of(1_000_000), strict(1), |r| search.run(r, &both(64))).unwrap();
    // Loss of 0.5 % is at capacity / 0.995.
    assert!(found.value.abs_diff(1_005_025) <= 1, "{found:?}");
}

#[test]
fn the_papers_campaign_is_estimated_as_it_took() {
    let test = Throughput { most: Some(8_000_000), ..Throughput::default() };
    let conduct = TrialProcedure { rest: std::time::Duration::from_secs(10), ..Preset::Strict.conduct() };
    let estimate = test.estimate(&conduct, 0);
    assert_eq!(estimate.trials, 460);
    assert_eq!(shoal_lab_measure::spoken(estimate.time), "9 h 27 min");
    let hour = std::time::Duration::from_hours(1);
    let error = estimate.within(hour).unwrap_err().to_string();
    assert!(error.contains("9 h 27 min") && error.contains("1 h 0 min"), "{error}");
}

#[test]
fn a_tester_limit_far_above_the_device_leaves_a_plain_result() {
    let mut model = Model { tester_most: 1_000_000, ..Model::of(300_000) };
    let test = Throughput { most: Some(8_000_000), ..Throughput::default() };
    let (report, kept) = over(&mut model, strict(2), |r| test.run(r, &both(64)).unwrap());
    let row = &report.rows[0];
    assert_eq!(row.values, [300_000.0; 2]);
    assert!(!row.trust.contains(&Trust::TesterBound) && row.note.is_empty(), "{row:?}");
    assert!(!kept.remarks.is_empty(), "people are told of the limit");
}

#[test]
fn a_rate_that_the_self_test_reached_is_tried_again_before_it_is_a_limit() {
    let value = |self_test| {
        let mut model = Model { late: [1].into(), ..Model::of(700) };
        let test = Throughput { most: Some(1_024), ..Throughput::default() };
        let result = run(&mut model, strict(1), |r| {
            r.self_test = self_test;
            test.run(r, &both(64))
        });
        let row = result.unwrap().rows.remove(0);
        (row.values[0], row.trust.contains(&Trust::TesterBound))
    };
    assert_eq!(value(Some(2_000)), (700.0, false));
    assert_eq!(value(None), (511.0, true), "nothing is known of the tester: its limit is taken as one");
}

#[test]
fn a_device_that_corrupts_all_ends_the_search_with_an_error() {
    let mut model = Model { corrupt: 5, ..Model::of(700) };
    let test = Throughput { most: Some(8_000_000), ..Throughput::default() };
    let error = run(&mut model, strict(20), |r| test.measure(r, &both(64))).unwrap_err().to_string();
    assert_eq!(error, "no trial could be trusted: even at 100 fps 10 frames arrived corrupt");
    assert_eq!(model.trials.len(), 6, "one step and one slow trial, each with two retries");
}

#[test]
fn duplicates_repair_nothing_and_are_told() {
    let mut model = Model { twice: 9, ..Model::of(700) };
    let test = Throughput { most: Some(1_024), ..Throughput::default() };
    let report = run(&mut model, strict(1), |r| test.run(r, &both(64))).unwrap();
    assert_eq!(report.rows[0].values, [700.0]);
    assert!(report.rows[0].note.contains("180 frames duplicated"), "{}", report.rows[0].note);
}
