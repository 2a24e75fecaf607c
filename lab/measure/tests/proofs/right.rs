//! Gates and assertions.

use proptest::prelude::*;
use shoal_lab_measure::{Assertion, AssertionError, Gate, Gates, Test as _, Throughput, with_curve};
use shoal_lab_plan::{SummaryRow, Verify};

use crate::model::Model;
use crate::support::*;

fn gates(model: &mut Model) -> (Vec<shoal_lab_measure::GateResult>, Vec<SummaryRow>) {
    let sizes = [64, 512, 1518];
    let each = sizes.map(|size| Gate { name: format!("{size} B"), traffic: Box::new(both(size)) });
    let all = Gates::of(each.into());
    run(model, strict(1), |r| {
        let results = all.run(r).unwrap();
        let rows = all.rows(r, &results);
        (results, rows)
    })
}

#[test]
fn a_sound_device_passes_all_gates_and_each_frame_was_looked_at() {
    let mut model = Model::of(10_000);
    let (results, rows) = gates(&mut model);
    assert!(results.iter().all(|r| r.passed() && r.frames == 1_000), "{results:?}");
    assert_eq!(rows.iter().map(|r| r.values[0]).sum::<f64>(), 0.0);
    assert!(model.trials.iter().all(|t| t.verify == Verify::All));
}

#[test]
fn a_single_lost_frame_fails_its_gate_and_the_others_are_still_tried() {
    let mut model = Model { disturbed: [2, 3, 4].into(), ..Model::of(10_000) };
    let (results, rows) = gates(&mut model);
    assert_eq!(
        results.iter().map(shoal_lab_measure::GateResult::passed).collect::<Vec<_>>(),
        [true, false, true]
    );
    assert_eq!(results[1].wrong, ["14 lost"]);
    assert_eq!(rows[1].note, "14 lost");
}

#[test]
fn duplicates_and_corrupt_frames_fail_gates() {
    let (results, _) = gates(&mut Model { twice: 2, corrupt: 1, ..Model::of(10_000) });
    assert!(results.iter().all(|r| r.wrong == ["4 duplicated", "2 corrupt"]), "{results:?}");
}

#[test]
fn a_silent_device_fails_all_gates() {
    let (results, _) = gates(&mut Model { dies_at: 1, ..Model::of(10_000) });
    assert!(results.iter().all(|r| r.wrong == ["1000 lost"]), "{results:?}");
}

#[test]
fn frames_of_an_earlier_trial_fail_a_gate() {
    let (results, _) = gates(&mut Model { stale: (1..9).collect(), ..Model::of(10_000) });
    assert_eq!(results[0].wrong, ["3 of an earlier trial"]);
}

fn rows() -> Vec<SummaryRow> {
    let case = shoal_lab_measure::Case { dut: "shoal".into(), frame: "64".into(), ..case() };
    let other = shoal_lab_measure::Case { dut: "linux-route".into(), ..case.clone() };
    let loss = case.row("loss", "loss", "%", vec![20.0]);
    vec![
        case.row("throughput", "throughput", "fps/dir", vec![210e3, 190e3, 230e3]),
        other.row("throughput", "throughput", "fps/dir", vec![100e3]),
        with_curve(loss, vec![(100e3, 0.0), (200e3, 20.0)], "offered fps/dir", "loss %"),
        case.row("pdv", "mean |IPDV|", "us", vec![3.0]),
    ]
}

fn holds(text: &str) -> Result<Vec<bool>, AssertionError> {
    let checked = Assertion::parse(text)?.check(&rows())?;
    Ok(checked.iter().map(|c| c.holds).collect())
}

#[test]
fn assertions_are_about_statistics_of_all_rows_of_their_name() {
    assert_eq!(holds("throughput_median>=200k"), Ok(vec![true, false]));
    assert_eq!(holds("throughput >= 200k"), Ok(vec![true, false]));
    assert_eq!(holds("throughput_min[dut=shoal]>=200k"), Ok(vec![false]));
    assert_eq!(holds("throughput_max[dut=shoal,frame=64] < 0.24M"), Ok(vec![true]));
    assert_eq!(holds("throughput_n[dut=shoal]==3"), Ok(vec![true]));
    assert_eq!(holds("mean_ipdv<=3"), Ok(vec![true]));
}

#[test]
fn assertions_are_about_points_of_a_curve() {
    assert_eq!(holds("loss@100k==0"), Ok(vec![true]));
    assert_eq!(holds("loss[dut=shoal]@200000 != 0"), Ok(vec![true]));
    let error = holds("loss@150k==0").unwrap_err().to_string();
    assert!(error.contains("not measured at 150000; the nearest point is"), "{error}");
}

#[test]
fn what_is_unknown_is_told_with_the_nearest_name() {
    let says = |text: &str| holds(text).unwrap_err().to_string();
    assert_eq!(
        says("thruput_median>=1"),
        "nothing is called `thruput_median`; the nearest is `throughput_median`"
    );
    assert_eq!(says("throughput[dat=shoal]>=1"), "rows have no `dat`; the nearest is `dut`");
    assert_eq!(says("throughput=>1x"), "`1x` is no number; write 200000, 200k or 1.5M");
    assert!(says("throughput").contains("no operator"));
    assert!(says("throughput[dut]>=1").contains("no filter"));
    assert!(says("throughput[dut=vpp]>=1").contains("no row"));
    assert!(says("throughput_sd[dut=linux-route]<1").contains("too few values"));
}

#[test]
fn a_failed_assertion_says_where_and_what_it_found() {
    let checked = Assertion::parse("throughput>=200k").unwrap().check(&rows()).unwrap();
    assert_eq!(checked[1].to_string(), "FAILS: throughput>=200k (linux-route route 64 bi: 100000)");
}

#[test]
fn results_of_a_real_test_can_be_asserted() {
    let test = Throughput { most: Some(1_024), ..Throughput::default() };
    let report = run(&mut Model::of(700), strict(2), |r| test.run(r, &both(64))).unwrap();
    let checked = Assertion::parse("throughput_median==700").unwrap().check(&report.rows).unwrap();
    assert!(checked[0].holds);
}

proptest! {
    #[test]
    fn whatever_is_written_is_understood_or_refused(text in ".{0,40}") {
        if let Ok(assertion) = Assertion::parse(&text) {
            let _ = assertion.check(&rows());
        }
    }
}
