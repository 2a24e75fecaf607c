//! Devices that do wrong: each has its verdict or its error, and none costs a search of hours.

use shoal_lab_engine::Behaviour;
use shoal_lab_measure::{MeasureError, Report, Test as _, Throughput, TrialProcedure};
use shoal_lab_plan::{TrialLine, Trust, Verdict, Verify};

use crate::device;
use crate::stage::*;

const TEST: Throughput = Throughput { most: Some(8_000), frame_timeout: None, most_loss: 0.0 };

fn searched(behaviour: Behaviour) -> (Result<Report, MeasureError>, Vec<TrialLine>) {
    over(&mut engine(behaviour), strict(), |r| TEST.run(r, &both()))
}

#[test]
fn duplicates_repair_nothing_and_are_told() {
    let (report, lines) = searched(Behaviour { duplicates: 0.02, ..device::of(3_001, 2) });
    let row = report.unwrap().rows.remove(0);
    assert_eq!(row.values, [3_001.0]);
    let counted: u64 = lines.iter().flat_map(|l| &l.outcome.streams).map(|s| s.counts.duplicates).sum();
    assert!(counted > 100 && row.note.contains(&format!("{counted} frames duplicated")), "{}", row.note);
}

#[test]
fn reordered_frames_are_not_lost_and_are_told() {
    let behaviour = Behaviour { reordered: 0.02, hold: ms(3), ..device::of(3_001, 2) };
    let (report, lines) = searched(behaviour);
    let row = report.unwrap().rows.remove(0);
    assert_eq!(row.values, [3_001.0]);
    let counted: u64 = lines.iter().flat_map(|l| &l.outcome.streams).map(|s| s.counts.reordered).sum();
    assert!(counted > 100 && row.note.contains(&format!("{counted} frames reordered")), "{}", row.note);
}

#[test]
fn a_device_that_corrupts_frames_cannot_be_trusted_and_is_soon_given_up() {
    let (result, lines) = searched(Behaviour { corrupt: 0.5, corrupt_at: 20, ..Behaviour::default() });
    let error = result.unwrap_err();
    assert!(matches!(error, MeasureError::Untrusted(_)), "{error}");
    assert!(error.to_string().contains("arrived corrupt"), "{error}");
    // A step and a slow trial, each with two retries.
    assert_eq!(lines.len(), 6);
    assert!(lines.iter().all(|l| matches!(l.verdict, Verdict::Invalid(_))));
}

#[test]
fn seldom_damage_makes_its_trials_invalid_and_marks_the_result() {
    // Some eight frames of the first trial are damaged and found, none of the slow one's 200.
    let conduct = TrialProcedure { verify: Verify::All, retries: 1, ..strict() };
    let behaviour = Behaviour { corrupt: 0.0005, ..device::of(7_000, 2) };
    let (report, lines) = over(&mut engine(behaviour), conduct, |r| TEST.run(r, &both()));
    let row = report.unwrap().rows.remove(0);
    assert!(matches!(lines[0].verdict, Verdict::Invalid(_)), "{:?}", lines[0].verdict);
    assert!(row.trust.contains(&Trust::Invalid) && row.values[0] < 7_000.0, "{row:?}");
}

#[test]
fn a_device_that_sends_some_frames_back_cannot_be_trusted() {
    let (result, lines) = searched(Behaviour { looped: 0.3, ..Behaviour::default() });
    let error = result.unwrap_err().to_string();
    assert!(error.contains("where, or as, they should not"), "{error}");
    assert_eq!(lines.len(), 6);
}

#[test]
fn a_loop_and_a_dead_device_answer_nothing() {
    for behaviour in [
        Behaviour { looped: 1.0, ..Behaviour::default() },
        Behaviour { loss: 1.0, ..Behaviour::default() },
        Behaviour { dead: Some((seconds(0), seconds(1_000))), ..Behaviour::default() },
    ] {
        let (result, lines) = searched(behaviour);
        let error = result.unwrap_err();
        assert!(matches!(error, MeasureError::Silent { where_to: "anywhere", .. }), "{error}");
        assert!(lines.len() <= 6, "{} trials", lines.len());
    }
}

#[test]
fn a_device_that_dies_in_a_trial_leaves_the_runs_before() {
    let (mut engine, control) = controlled(device::of(3_001, 2));
    let dead = |from| Behaviour { dead: Some((from, seconds(1_000))), ..device::of(3_001, 2) };
    // Two runs of 13 trials; it dies in the middle of the 30th and stays dead.
    let after = |trial: usize| match trial {
        29 => control.behave(dead(ms(700))),
        30 => control.behave(dead(ms(0))),
        _ => {}
    };
    let kept = Kept { after: Some(Box::new(after)), ..Kept::default() };
    let conduct = TrialProcedure { runs: 20, ..strict() };
    let (result, lines) = watched(&mut engine, conduct, kept, |r| TEST.measure(r, &both()));
    let result = result.unwrap();
    assert_eq!(result.values, [3_001.0, 3_001.0]);
    assert!(matches!(result.runs.ended, Some(MeasureError::Silent { .. })), "{:?}", result.runs.ended);
    assert!(lines.len() <= 33, "{} trials", lines.len());
    let died = &lines[29].outcome.streams[0];
    assert!(matches!(lines[29].verdict, Verdict::Fail(_)) && died.counts.received > 0, "{died:?}");
    near(died.counts.received as f64, lines[29].rate.min(3_001.0) * 0.7, 2.0);
}

#[test]
fn what_comes_of_an_earlier_trial_is_nobodys_and_cannot_be_trusted() {
    // Some frames of each trial are held for longer than is waited for them.
    let behaviour = Behaviour { reordered: 0.01, hold: ms(2_800), ..device::of(3_001, 2) };
    let (report, lines) = searched(behaviour);
    assert!(lines.iter().any(|l| l.outcome.ports.iter().any(|p| p.stale > 0)));
    assert!(
        lines.iter().filter(|l| l.outcome.ports.iter().any(|p| p.stale > 0)).all(|l| !l.verdict.passed())
    );
    let error = report.unwrap_err();
    assert!(matches!(error, MeasureError::Untrusted(_)), "{error}");
    assert!(error.to_string().contains("of an earlier trial"), "{error}");
    assert!(lines.len() <= 12, "{} trials", lines.len());
}
