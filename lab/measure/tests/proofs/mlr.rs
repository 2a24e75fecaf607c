//! MLRsearch on models whose capacity is known, and beside the library of its authors.

use std::time::Duration;

use proptest::prelude::*;
use shoal_lab_measure::{Goal, GoalResult, MeasureError, MlrSearch, Test as _, TrialProcedure};
use shoal_lab_plan::Trust;

use crate::model::Model;
use crate::support::*;

/// The loss ratio of a device of capacity `c`.
fn loss(load: u64, c: f64) -> f64 {
    (1.0 - c / load as f64).max(0.0)
}

fn found(search: &MlrSearch, max: u64, c: f64) -> Vec<GoalResult> {
    search.search(max, &mut |load, _| Ok(loss(load, c))).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn ndr_and_pdr_of_a_steady_device_are_within_the_width(c in 10_000.0_f64..9_000_000.0) {
        let results = found(&MlrSearch::default(), 10_000_000, c);
        let (ndr, pdr) = (results[0], results[1]);
        prop_assert!(ndr.reached && pdr.reached);
        let lower = ndr.lower.unwrap() as f64;
        prop_assert!(lower <= c && lower >= c * 0.995 - 1.0, "{ndr:?}");
        prop_assert!((ndr.throughput - lower).abs() < 1e-6);
        // Up to a load of c / 0.995 only 0.5 % is lost; c is forwarded there.
        let lower = pdr.lower.unwrap() as f64;
        prop_assert!(lower <= c / 0.995 + 1.0 && lower >= c * 0.99, "{pdr:?}");
        prop_assert!(pdr.throughput <= c + 1.0 && pdr.throughput >= c * 0.99);
    }
}

#[test]
fn a_search_is_short() {
    let results = found(&MlrSearch::default(), 10_000_000, 3_141_592.0);
    // 21 halvings of 21 trials each would be 441.
    assert!(results[1].trials < 160, "{} trials", results[1].trials);
}

#[test]
fn single_unlucky_trials_cost_nothing() {
    // One trial in four loses frames at any load; half of them may.
    let mut trial = 0;
    let result = MlrSearch { goals: vec![Goal::csit(0.0)], ..MlrSearch::default() }
        .search(10_000_000, &mut |load, _| {
            trial += 1;
            Ok(if trial % 4 == 0 { 0.001 } else { 0.0_f64.max(loss(load, 2_000_000.0)) })
        })
        .unwrap();
    let lower = result[0].lower.unwrap();
    assert!((1_990_000..=2_000_000).contains(&lower), "{result:?}");
    // RFC 2544's goal does not put up with even one: what is carried counts as too much.
    let mut trial = 0;
    let strict = MlrSearch { goals: vec![Goal::rfc2544()], ..MlrSearch::default() };
    let result = strict
        .search(10_000_000, &mut |load, _| {
            trial += 1;
            Ok(if trial == 2 { 0.001 } else { loss(load, 2_000_000.0) })
        })
        .unwrap();
    assert!(result[0].upper.unwrap() <= 2_000_000, "{result:?}");
}

#[test]
fn a_device_that_carries_all_gives_at_least() {
    let (mut model, search) =
        (Model::of(20_000_000), MlrSearch { max: Some(9_000_000), ..MlrSearch::default() });
    let report = run(&mut model, TrialProcedure::default(), |r| search.run(r, &both(64))).unwrap();
    assert_eq!(report.rows[0].values, [9_000_000.0]);
    assert!(report.rows.iter().all(|r| r.trust.contains(&Trust::Ceiling) && r.note.contains("at least")));
}

#[test]
fn a_device_below_the_smallest_load_has_no_lower_bound() {
    let results = found(&MlrSearch::default(), 1_000_000, 500.0);
    assert_eq!((results[0].lower, results[0].upper, results[0].throughput), (None, Some(1_000), 0.0));
}

#[test]
fn a_search_out_of_time_tells_what_it_has() {
    let search = MlrSearch { most_time: Duration::from_secs(30), ..MlrSearch::default() };
    let results = found(&search, 10_000_000, 3_000_000.0);
    assert!(results.iter().any(|r| !r.reached));
}

#[test]
fn it_runs_over_a_tester_and_what_the_tester_cannot_send_is_lost() {
    let search = MlrSearch { max: Some(10_000_000), ..MlrSearch::default() };
    let mut model = Model { tester_most: 2_000_000, ..Model::of(5_000_000) };
    let (ndr, report) = run(&mut model, TrialProcedure::default(), |r| {
        let report = search.run(r, &both(64)).unwrap();
        (report.rows[0].values[0], report)
    });
    assert!((1_985_000.0..=2_000_300.0).contains(&ndr), "{ndr}");
    assert!(report.rows[0].trust.contains(&Trust::TesterBound));
}

#[test]
fn loads_and_goals_out_of_range_are_refused() {
    let search = MlrSearch { min: 5_000, ..MlrSearch::default() };
    let error = search.search(5_000, &mut |_, _| Ok(0.0)).unwrap_err().to_string();
    assert_eq!(error, "smallest load is 5000; it must be less than the largest, 5000");
    let search = MlrSearch { goals: vec![Goal::csit(2.0)], ..MlrSearch::default() };
    assert!(matches!(search.search(10_000, &mut |_, _| Ok(0.0)), Err(MeasureError::Setting { .. })));
}

/// The device of `tests/mlrsearch_oracle.py`: SplitMix64 gives each trial's capacity, up to `noise` below `c`.
struct Device {
    c: f64,
    noise: f64,
    state: u64,
}

impl Device {
    fn loss(&mut self, load: u64) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let unit = ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        loss(load, self.c * (1.0 - self.noise * unit))
    }
}

#[test]
fn the_authors_library_finds_the_same() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mlrsearch_oracle.py");
    let python = std::env::var("MLRSEARCH_PYTHON").unwrap_or_else(|_| "python3".into());
    let cases = [(3_141_592.0, 0.0), (812_743.0, 0.0), (9_999.0, 0.0), (2_000_000.0, 0.05), (500_000.0, 0.2)];
    for (c, noise) in cases {
        let answer = std::process::Command::new(&python)
            .arg(script)
            .args([c.to_string(), noise.to_string(), "7".into()])
            .output();
        let told = match answer {
            Ok(output) if output.status.code() == Some(77) => {
                println!(
                    "SKIP the_authors_library_finds_the_same: {python} has no MLRsearch 1.2.1; set MLRSEARCH_PYTHON"
                );
                return;
            }
            Ok(output) => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                output.stdout
            }
            Err(error) => {
                println!("SKIP the_authors_library_finds_the_same: {python}: {error}");
                return;
            }
        };
        // Each goal: [lower bound, conditional throughput].
        let theirs: Vec<(f64, f64)> = serde_json::from_slice(&told).unwrap();
        let mut device = Device { c, noise, state: 7 };
        let ours = MlrSearch { min: 1_000, ..MlrSearch::default() }
            .search(10_000_000, &mut |load, _| Ok(device.loss(load)))
            .unwrap();
        // A width of 0.5 % each; the noise's share of it moves the median of 21 trials by about a tenth of the noise.
        let within = 0.01 + noise / 5.0;
        for (own, (lower, throughput)) in ours.iter().zip(&theirs) {
            println!(
                "c {c} noise {noise} loss {}: lower {} / {lower:.0}, throughput {:.0} / {throughput:.0}",
                own.goal.loss_ratio,
                own.lower.unwrap(),
                own.throughput
            );
            let near = |a: f64, b: f64| (a - b).abs() <= within * b;
            assert!(near(own.lower.unwrap() as f64, *lower) && near(own.throughput, *throughput));
        }
    }
}
