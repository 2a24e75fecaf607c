//! Assertions and gates for programs that gather tests: JUnit XML and TAP.

use std::fmt::Write as _;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde::{Deserialize, Serialize};

use crate::ReportError;

/// An assertion or gate, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Which kind: `gates`, `assertions`; a suite of JUnit's.
    pub suite: String,
    /// As it was written: `throughput_median>=200k`.
    pub name: String,
    /// What came of it.
    pub outcome: CheckOutcome,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// What came of a check; the text is for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind", content = "text")]
pub enum CheckOutcome {
    /// It holds.
    Passed(String),
    /// It does not.
    Failed(String),
    /// It could not be looked at: device or privilege missing.
    Skipped(String),
    /// Looking at it went wrong.
    Error(String),
}

/// The checks as JUnit XML.
///
/// # Errors
///
/// If the XML cannot be written.
pub fn junit(name: &str, checks: &[Check]) -> Result<String, ReportError> {
    let mut report = Report::new(name);
    let mut suites: Vec<&str> = Vec::new();
    for check in checks {
        if !suites.contains(&check.suite.as_str()) {
            suites.push(&check.suite);
        }
    }
    for suite in suites {
        let mut out = TestSuite::new(suite);
        for check in checks.iter().filter(|c| c.suite == suite) {
            out.add_test_case(case(check));
        }
        report.add_test_suite(out);
    }
    report.to_string().map_err(|e| ReportError::Form { what: "JUnit XML", reason: e.to_string() })
}

fn case(check: &Check) -> TestCase {
    let with = |mut status: TestCaseStatus, text: &str| {
        status.set_message(text);
        status
    };
    let status = match &check.outcome {
        CheckOutcome::Passed(_) => TestCaseStatus::success(),
        CheckOutcome::Failed(text) => with(TestCaseStatus::non_success(NonSuccessKind::Failure), text),
        CheckOutcome::Error(text) => with(TestCaseStatus::non_success(NonSuccessKind::Error), text),
        CheckOutcome::Skipped(text) => with(TestCaseStatus::skipped(), text),
    };
    let mut case = TestCase::new(check.name.as_str(), status);
    case.set_classname(check.suite.as_str());
    let seconds = if check.seconds.is_finite() { check.seconds.clamp(0.0, 1e9) } else { 0.0 };
    case.set_time(Duration::from_secs_f64(seconds));
    if let CheckOutcome::Passed(text) = &check.outcome {
        case.set_system_out(text.as_str());
    }
    case
}

/// The checks in the Test Anything Protocol, version 13.
pub fn tap(checks: &[Check]) -> String {
    let mut out = format!("TAP version 13\n1..{}\n", checks.len());
    for (at, check) in checks.iter().enumerate() {
        // A `#` begins a directive and a line's end a new test: neither may come from a name.
        let clean = |text: &str| text.replace(['\n', '\r'], " ").replace('#', "\\#");
        let name = format!("{} - {}: {}", at + 1, clean(&check.suite), clean(&check.name));
        let (word, text, skip) = match &check.outcome {
            CheckOutcome::Passed(text) => ("ok", text, false),
            CheckOutcome::Failed(text) | CheckOutcome::Error(text) => ("not ok", text, false),
            CheckOutcome::Skipped(text) => ("ok", text, true),
        };
        let _ = if skip {
            writeln!(out, "{word} {name} # SKIP {}", clean(text))
        } else {
            writeln!(out, "{word} {name}")
        };
        for line in text.lines().filter(|_| !skip) {
            let _ = writeln!(out, "# {line}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks() -> Vec<Check> {
        let check = |suite: &str, name: &str, outcome| Check {
            suite: suite.into(),
            name: name.into(),
            outcome,
            seconds: 1.5,
        };
        vec![
            check("gates", "64 B IPv4", CheckOutcome::Passed("1000 of 1000".into())),
            check(
                "assertions",
                "throughput_median>=200k",
                CheckOutcome::Failed("it is 150k <& \"low\"".into()),
            ),
            check("gates", "vpp # 1\nok 9", CheckOutcome::Skipped("no vpp".into())),
            check("gates", "x", CheckOutcome::Error("died".into())),
        ]
    }

    #[test]
    fn junit_counts_failures_errors_and_skips_and_escapes() {
        let xml = junit("ci", &checks()).unwrap();
        assert!(xml.contains(r#"tests="4" skipped="1" failures="1" errors="1""#), "{xml}");
        assert!(
            xml.contains("throughput_median&gt;=200k") && xml.contains("&lt;&amp; &quot;low&quot;"),
            "{xml}"
        );
        assert!(xml.contains("<skipped message=\"no vpp\""), "{xml}");
    }

    #[test]
    fn tap_has_a_line_a_check_whatever_its_name() {
        let tap = tap(&checks());
        let results: Vec<&str> =
            tap.lines().filter(|l| l.starts_with("ok") || l.starts_with("not ok")).collect();
        assert_eq!(results.len(), 4, "{tap}");
        assert!(tap.starts_with("TAP version 13\n1..4\nok 1 - gates: 64 B IPv4\n# 1000 of 1000\n"), "{tap}");
        assert!(
            tap.contains("not ok 2 - assertions") && tap.contains("vpp \\# 1 ok 9 # SKIP no vpp"),
            "{tap}"
        );
    }

    #[test]
    fn no_checks_are_a_plan_of_none() {
        assert_eq!(tap(&[]), "TAP version 13\n1..0\n");
        assert!(junit("ci", &[]).unwrap().contains("tests=\"0\""));
    }
}
