//! Others have the processors: such trials are tried again, and if that does not help there is no figure.

use shoal_lab_measure::{
    Gate, Gates, MeasureError, Mrr, Report, Test as _, Throughput, TrialProcedure, WhenDisturbed,
};
use shoal_lab_plan::{Trust, Verdict};

use crate::model::Model;
use crate::support::*;

const TEST: Throughput = Throughput { most: Some(1_024), most_loss: 0.0, frame_timeout: None };

fn taken_in(trials: &[usize]) -> Model {
    let trials = trials.to_vec();
    Model { taken: Box::new(move |n| trials.contains(&n)), ..Model::of(700) }
}

fn always() -> Model {
    Model { taken: Box::new(|_| true), ..Model::of(700) }
}

fn when(when_disturbed: WhenDisturbed) -> TrialProcedure {
    TrialProcedure { when_disturbed, ..strict(1) }
}

fn told(model: &mut Model, conduct: TrialProcedure) -> (Result<Report, MeasureError>, Kept) {
    over(model, conduct, |r| TEST.run(r, &both(64)))
}

#[test]
fn a_trial_beside_others_is_tried_again_and_a_quiet_one_counts() {
    let (report, kept) = told(&mut taken_in(&[1, 2, 5]), when(WhenDisturbed::Refuse));
    let row = report.unwrap().rows.remove(0);
    assert_eq!((row.values, row.trust.contains(&Trust::Disturbed)), (vec![700.0], false));
    // Ten steps, and three trials again.
    assert_eq!(kept.lines.len(), 13);
    let Verdict::Disturbed(why) = &kept.lines[0].verdict else { unreachable!("{:?}", kept.lines[0].verdict) };
    assert!(why.contains("spin (7) 50 %") && why.contains("shoal (5) waited 50 %"), "{why}");
}

#[test]
fn a_measurement_beside_others_is_refused_and_names_them() {
    let (report, kept) = told(&mut taken_in(&[4, 5, 6]), when(WhenDisturbed::Refuse));
    let error = report.unwrap_err();
    assert!(error.is_refusal());
    let words = error.to_string();
    assert!(words.contains("tried 3 times") && words.contains("spin (7) 50 %"), "{words}");
    assert!(words.contains("--when-disturbed mark"), "{words}");
    assert_eq!(kept.lines.len(), 6);
}

#[test]
fn a_refusal_leaves_no_figure_of_the_runs_before() {
    let mut model = Model { taken: Box::new(|n| n > 10), ..Model::of(700) };
    let (report, kept) = told(&mut model, TrialProcedure { runs: 3, ..when(WhenDisturbed::Refuse) });
    assert!(report.unwrap_err().is_refusal());
    assert_eq!(kept.lines.len(), 13);
}

#[test]
fn a_result_is_marked_where_that_was_asked_for_and_nothing_is_tried_again() {
    let (report, kept) = told(&mut always(), when(WhenDisturbed::Mark));
    let row = report.unwrap().rows.remove(0);
    assert_eq!((row.values.as_slice(), kept.lines.len()), ([700.0].as_slice(), 10));
    assert!(row.trust.contains(&Trust::Disturbed), "{:?}", row.trust);
    assert!(row.note.contains("others took up to 50 % of a processor"), "{}", row.note);
    assert!(kept.lines.iter().all(|l| !matches!(l.verdict, Verdict::Disturbed(_))));
}

#[test]
fn a_result_is_marked_after_its_tries_where_that_was_asked_for() {
    let (report, kept) = told(&mut always(), when(WhenDisturbed::Repeat));
    let row = report.unwrap().rows.remove(0);
    assert_eq!((row.values.as_slice(), kept.lines.len()), ([700.0].as_slice(), 30));
    assert!(row.trust.contains(&Trust::Disturbed), "{:?}", row.trust);
    let (report, kept) = told(&mut taken_in(&[1]), when(WhenDisturbed::Repeat));
    assert!(!report.unwrap().rows[0].trust.contains(&Trust::Disturbed));
    assert_eq!(kept.lines.len(), 11);
}

#[test]
fn overloads_are_refused_too() {
    let test = Mrr { rate: Some(1_000), trials: 2, ..Mrr::default() };
    let error = run(&mut always(), strict(1), |r| test.run(r, &both(64))).unwrap_err();
    assert!(error.is_refusal(), "{error}");
}

#[test]
fn gates_do_not_depend_on_who_has_the_processors() {
    let gate = Gate { name: "64".into(), traffic: Box::new(both(64)) };
    let gates = Gates { rate: 100, ..Gates::of(vec![gate]) };
    let results = run(&mut always(), strict(1), |r| gates.run(r)).unwrap();
    assert!(results[0].passed(), "{results:?}");
}

#[test]
fn what_the_hypervisor_takes_refuses_where_frames_are_lost() {
    let mut model = Model { stolen: 0.2, ..Model::of(700) };
    let error = told(&mut model, when(WhenDisturbed::Refuse)).0.unwrap_err();
    assert!(matches!(error, MeasureError::Stolen { tries: 3, .. }), "{error}");
    assert!(
        error.to_string().contains("The hypervisor")
            || error.to_string().contains("the hypervisor took 20.0 %")
    );
    let mut model = Model { stolen: 0.2, ..Model::of(2_000) };
    let report = told(&mut model, when(WhenDisturbed::Refuse)).0.unwrap();
    assert_eq!(report.rows[0].values, [1_023.0]);
}

#[test]
fn disturbed_trials_of_an_interrupted_campaign_are_run_again() {
    let (report, before) = told(&mut taken_in(&[2, 3, 4]), when(WhenDisturbed::Refuse));
    assert!(report.is_err());
    let mut model = Model::of(700);
    let (report, after) = over(&mut model, strict(1), |r| {
        r.resume(before.lines);
        TEST.run(r, &both(64))
    });
    assert_eq!(report.unwrap().rows[0].values, [700.0]);
    // The first step is known, nine are not.
    assert_eq!(after.lines.len(), 9);
}
