//! Two campaigns side by side, and a machine's history.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use crate::support;

use shoal_lab_report::{Comparison, append_history, compare, history_file, read_history};
use support::{around, results, row};

#[test]
fn a_clear_difference_is_told_and_equal_runs_are_not_told_apart() {
    let mut other = row("linux-route", around(500.0, 20));
    other.transport = "tap".into();
    let a = results("a", vec![row("shoal", around(1000.0, 20)), other.clone()]);
    let b = results("b", vec![row("shoal", around(1100.0, 20)), other]);
    let found = compare(&a, &b);
    let shoal = &found.differences[0];
    assert_eq!((shoal.difference, shoal.judgement()), (Some(100.0), "differs"));
    assert!((shoal.percent.unwrap() - 100.0 * 100.0 / 1002.0).abs() < 1e-9);
    assert!(shoal.interval.unwrap().0 > 95.0 && shoal.p.unwrap() < 1e-6);
    assert_eq!(found.differences[1].judgement(), "not told apart");
    assert!(found.text().contains("different machines"), "no fingerprints are no same machine");
}

#[test]
fn below_five_runs_no_interval_is_given() {
    let found = compare(
        &results("a", vec![row("shoal", around(10.0, 4))]),
        &results("b", vec![row("shoal", around(99.0, 20))]),
    );
    assert_eq!((found.differences[0].interval, found.differences[0].judgement()), (None, "too few runs"));
}

#[test]
fn results_of_one_side_only_and_of_other_workers_are_not_compared() {
    let mut two = row("shoal", around(9.0, 6));
    two.workers = 2;
    let found = compare(&results("a", vec![row("shoal", around(1.0, 6))]), &results("b", vec![two]));
    assert!(found.differences.is_empty());
    assert_eq!(found.unmatched.len(), 2);
    assert!(found.text().contains("only in b: shoal, throughput"), "{}", found.text());
}

#[test]
fn zero_and_nothing_do_not_divide() {
    let found = compare(
        &results("a", vec![row("shoal", vec![0.0; 6]), row("x", vec![f64::NAN])]),
        &results("b", vec![row("shoal", vec![5.0; 6]), row("x", vec![1.0])]),
    );
    assert_eq!((found.differences[0].percent, found.differences[0].difference), (None, Some(5.0)));
    assert_eq!(found.differences[1].judgement(), "no figure");
    let json = found.json().unwrap();
    assert_eq!(serde_json::from_str::<Comparison>(&json).unwrap(), found);
}

#[test]
fn a_history_grows_by_campaign_and_survives_a_half_line() {
    let here = tempfile::tempdir().unwrap();
    let mut a = results("a", vec![row("shoal", around(759_000.0, 5)), row("none", Vec::new())]);
    a.record.host.fingerprint = "0123abcd".into();
    let file = append_history(here.path(), &a).unwrap();
    assert_eq!(file, history_file(here.path(), "0123abcd"));
    append_history(here.path(), &a).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text + "{\"began\":1").unwrap();
    let lines = read_history(&file).unwrap();
    assert_eq!(lines.len(), 2);
    assert!((lines[0].of_self_test.unwrap() - 0.1).abs() < 1e-3, "{:?}", lines[0]);
    assert!(read_history(&here.path().join("none")).unwrap().is_empty());
}

#[test]
fn a_torn_last_line_takes_no_later_campaign_with_it() {
    let here = tempfile::tempdir().unwrap();
    let mut a = results("first \u{e9}", vec![row("shoal", around(759_000.0, 5))]);
    let file = append_history(here.path(), &a).unwrap();
    // The power goes in the middle of a letter of two bytes.
    let whole = std::fs::read(&file).unwrap();
    let letter = whole.iter().position(|b| *b == 0xc3).unwrap();
    std::fs::write(&file, [&whole[..], &whole[..=letter]].concat()).unwrap();
    assert_eq!(read_history(&file).unwrap().len(), 1);
    a.record.name = "second".into();
    append_history(here.path(), &a).unwrap();
    append_history(here.path(), &a).unwrap();
    let names: Vec<String> = read_history(&file).unwrap().into_iter().map(|l| l.name).collect();
    assert_eq!(names, ["first \u{e9}", "second", "second"]);
}

#[test]
fn a_rate_is_told_as_a_share_of_the_self_test_with_the_same_ip() {
    let here = tempfile::tempdir().unwrap();
    let mut six = row("shoal", vec![500_000.0]);
    six.ip = "6".into();
    let mut a = results("a", vec![six]);
    a.record.self_tests[0].ip = "4".into();
    a.record.self_tests.push(shoal_lab_report::SelfTest {
        ip: "6".into(),
        most: 1e6,
        ..a.record.self_tests[0].clone()
    });
    let file = append_history(here.path(), &a).unwrap();
    assert_eq!(read_history(&file).unwrap()[0].of_self_test, Some(0.5));
}
