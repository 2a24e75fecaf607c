//! Two campaigns compared, result by result.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use shoal_lab_plan::SummaryRow;

use crate::ReportError;
use crate::number;
use crate::results::Results;
use crate::statistics::{interval, mann_whitney, median_of, sorted};

/// All results that both campaigns have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The first campaign's name.
    pub a: String,
    /// The second's.
    pub b: String,
    /// Whether both were measured on machines with the same fingerprint.
    pub same_host: bool,
    /// The results, in the first's order.
    pub differences: Vec<Difference>,
    /// Results that only one has: which, and whose.
    pub unmatched: Vec<(String, String)>,
}

/// A result of both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// What was measured.
    pub what: String,
    /// Its unit.
    pub unit: String,
    /// Runs of both.
    pub n: (usize, usize),
    /// The first's median.
    pub a: Option<f64>,
    /// The second's.
    pub b: Option<f64>,
    /// Second less first.
    pub difference: Option<f64>,
    /// The same in percent of the first; absent if that is 0.
    pub percent: Option<f64>,
    /// 95 % bootstrap interval of the difference; absent below 5 runs on a side.
    pub interval: Option<(f64, f64)>,
    /// Mann-Whitney, two-sided.
    pub p: Option<f64>,
}

impl Difference {
    /// In words: whether the runs tell the two apart.
    pub fn judgement(&self) -> &'static str {
        match (self.interval, self.p) {
            (Some((low, high)), Some(p)) if p < 0.05 && (low > 0.0 || high < 0.0) => "differs",
            (Some(_), Some(_)) => "not told apart",
            (None, Some(_)) => "too few runs",
            _ => "no figure",
        }
    }
}

/// Compares two campaigns. Rows match on everything but version, values and trust.
pub fn compare(a: &Results, b: &Results) -> Comparison {
    let mut rest: Vec<&SummaryRow> = b.rows.iter().filter(|r| !r.values.is_empty()).collect();
    let mut found = Comparison {
        a: a.record.name.clone(),
        b: b.record.name.clone(),
        same_host: !a.record.host.fingerprint.is_empty()
            && a.record.host.fingerprint == b.record.host.fingerprint,
        ..Comparison::default()
    };
    for row in a.rows.iter().filter(|r| !r.values.is_empty()) {
        let Some(at) = rest.iter().position(|other| key(other) == key(row)) else {
            found.unmatched.push((what(row), found.a.clone()));
            continue;
        };
        found.differences.push(difference(row, rest.remove(at)));
    }
    found.unmatched.extend(rest.into_iter().map(|row| (what(row), found.b.clone())));
    found
}

fn key(row: &SummaryRow) -> ([&str; 10], u16) {
    let names = [
        &row.test,
        &row.dut,
        &row.transport,
        &row.scenario,
        &row.ip,
        &row.frame,
        &row.direction,
        &row.variant,
        &row.metric,
        &row.unit,
    ];
    (names.map(String::as_str), row.workers)
}

fn what(row: &SummaryRow) -> String {
    let parts = [
        row.dut.clone(),
        row.test.clone(),
        if row.metric == row.test { String::new() } else { row.metric.clone() },
        format!("{} IPv{}", row.scenario, row.ip),
        row.frame.clone(),
        row.direction.clone(),
        format!("workers: {}", row.workers),
        row.transport.clone(),
        row.variant.clone(),
    ];
    parts.iter().filter(|p| !p.is_empty()).cloned().collect::<Vec<_>>().join(", ")
}

fn difference(a: &SummaryRow, b: &SummaryRow) -> Difference {
    let (left, right) = (sorted(&a.values), sorted(&b.values));
    let (before, after) = (median_of(&left), median_of(&right));
    let difference = before.zip(after).map(|(x, y)| y - x);
    let enough = left.len() >= crate::statistics::FEW && right.len() >= crate::statistics::FEW;
    let ends = if enough {
        interval(&[&left, &right], |drawn| match drawn {
            [x, y] => Some(median_of(y)? - median_of(x)?),
            _ => None,
        })
    } else {
        None
    };
    Difference {
        what: what(a),
        unit: a.unit.clone(),
        n: (left.len(), right.len()),
        a: before,
        b: after,
        difference,
        percent: difference.zip(before.filter(|x| *x != 0.0)).map(|(d, x)| 100.0 * d / x.abs()),
        interval: ends,
        p: mann_whitney(&left, &right),
    }
}

impl Comparison {
    /// As lines for a terminal.
    pub fn text(&self) -> String {
        let mut out = format!("{} -> {}\n", self.a, self.b);
        if !self.same_host {
            out.push_str("different machines: only shapes compare, not these figures\n");
        }
        for d in &self.differences {
            let percent = d.percent.map_or_else(|| number::NONE.into(), |p| format!("{p:+.2} %"));
            let ends = d.interval.map_or_else(
                || "no interval (n < 5)".to_owned(),
                |(low, high)| format!("[{}, {}]", number::si(low), number::si(high)),
            );
            let p = d.p.map_or_else(|| number::NONE.into(), |p| format!("{p:.4}"));
            let _ = writeln!(
                out,
                "{:<14} {}: {} -> {} {}  {percent}  {ends}  p {p}  n {}/{}",
                d.judgement(),
                d.what,
                number::si_or_none(d.a),
                number::si_or_none(d.b),
                d.unit,
                d.n.0,
                d.n.1
            );
        }
        for (what, whose) in &self.unmatched {
            let _ = writeln!(out, "only in {whose}: {what}");
        }
        out
    }

    /// As JSON.
    ///
    /// # Errors
    ///
    /// If a value cannot be written.
    pub fn json(&self) -> Result<String, ReportError> {
        serde_json::to_string_pretty(self)
            .map_err(|e| ReportError::Form { what: "the comparison", reason: e.to_string() })
    }
}
