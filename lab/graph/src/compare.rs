//! Two runs side by side.

use std::fmt::Write;
use std::path::Path;

use crate::Result;
use crate::results::{Measurement, Results};

/// The scenario that both are given as ratios to.
pub const RULER: &str = "ruler-fused";

/// Compares two files.
pub fn files(a: &Path, b: &Path) -> Result<String> {
    Ok(compare(&Results::read(a)?, &Results::read(b)?))
}

/// A line for each scenario of both runs. A ratio above 1 means that `b` takes more.
pub fn compare(a: &Results, b: &Results) -> String {
    let mut text = format!(
        "{:14} {:>24} {:>24} {:>24} {:>24}\n",
        "B / A", "clocks min", "clocks median", "instructions", "clocks min / ruler"
    );
    for old in &a.scenarios {
        let Some(new) = b.find(&old.name) else {
            let _ = writeln!(text, "{:14} only in A", old.name);
            continue;
        };
        let per_ruler = |run: &Results, m: &Measurement| {
            run.find(RULER).filter(|r| r.clocks_min > 0.0).map(|r| m.clocks_min / r.clocks_min)
        };
        let _ = writeln!(
            text,
            "{:14} {:>24} {:>24} {:>24} {:>24}",
            old.name,
            pair(Some(old.clocks_min), Some(new.clocks_min)),
            pair(Some(old.clocks_median), Some(new.clocks_median)),
            pair(old.instructions, new.instructions),
            pair(per_ruler(a, old), per_ruler(b, new)),
        );
    }
    for new in b.scenarios.iter().filter(|s| a.find(&s.name).is_none()) {
        let _ = writeln!(text, "{:14} only in B", new.name);
    }
    if a.machine.processor != b.machine.processor {
        let (a, b) = (&a.machine.processor, &b.machine.processor);
        let _ = writeln!(text, "different processors, clocks do not compare: {a} and {b}");
    }
    for (name, run) in [("A", a), ("B", b)] {
        let disturbed: Vec<&str> =
            run.scenarios.iter().filter(|s| s.disturbed).map(|s| s.name.as_str()).collect();
        if !disturbed.is_empty() {
            let _ = writeln!(text, "{name} had no undisturbed window in: {}", disturbed.join(", "));
        }
    }
    text
}

/// `1.020 (50.0 -> 51.0)`.
fn pair(a: Option<f64>, b: Option<f64>) -> String {
    match (a, b) {
        (Some(a), Some(b)) if a > 0.0 => format!("{:.3} ({a:.1} -> {b:.1})", b / a),
        _ => "-".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(scenarios: &[(&str, f64, Option<f64>)]) -> Results {
        let scenario = |(name, clocks, instructions): &(&str, f64, Option<f64>)| Measurement {
            name: (*name).into(),
            clocks_min: *clocks,
            clocks_median: *clocks * 2.0,
            instructions: *instructions,
            ..Measurement::default()
        };
        Results { scenarios: scenarios.iter().map(scenario).collect(), ..Results::default() }
    }

    #[test]
    fn ratios_are_of_the_second_run_to_the_first() {
        let a = run(&[(RULER, 10.0, None), ("ip4-1", 30.0, Some(100.0))]);
        let b = run(&[(RULER, 20.0, None), ("ip4-1", 45.0, Some(90.0))]);
        let text = compare(&a, &b);
        let line = text.lines().find(|l| l.starts_with("ip4-1 ")).unwrap();
        assert!(line.contains("1.500 (30.0 -> 45.0)"), "{line}");
        assert!(line.contains("1.500 (60.0 -> 90.0)"), "{line}");
        assert!(line.contains("0.900 (100.0 -> 90.0)"), "{line}");
        // The machine was half as fast: per ruler it is an improvement.
        assert!(line.contains("0.750 (3.0 -> 2.2)"), "{line}");
    }

    #[test]
    fn scenarios_of_one_run_only_are_named() {
        let text = compare(&run(&[("old", 1.0, None)]), &run(&[("new", 1.0, None)]));
        assert!(
            text.contains("old            only in A") && text.contains("new            only in B"),
            "{text}"
        );
    }

    #[test]
    fn what_was_not_counted_has_no_ratio() {
        let text = compare(&run(&[("x", 1.0, None)]), &run(&[("x", 1.0, Some(5.0))]));
        assert!(text.lines().nth(1).unwrap().contains(" - "), "{text}");
    }

    #[test]
    fn a_run_without_quiet_windows_is_named() {
        let mut b = run(&[("x", 1.0, None)]);
        b.scenarios[0].disturbed = true;
        assert!(compare(&run(&[("x", 1.0, None)]), &b).contains("B had no undisturbed window in: x"));
    }
}
