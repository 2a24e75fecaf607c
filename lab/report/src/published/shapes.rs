//! Shapes: ratios of figures of one machine, which compare with the same ratios of another.

use shoal_lab_plan::SummaryRow;

use super::{Family, family_of};
use crate::statistics::{Statistics, median_of};

/// A shape: ours, and what was published.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// What is divided by what, for people.
    pub what: String,
    /// Ours; two measured figures' ratio, or a dispersion in percent.
    pub ours: f64,
    /// What was published, with its conditions.
    pub published: &'static str,
    /// Where.
    pub source: &'static str,
    /// What is to be known of ours: other wires, shared cores.
    pub caution: String,
}

/// Shapes of the sources that rows of throughput can show: kind, published value, source.
const VECTOR_TO_LINUX_4: (&str, &str) = ("9.6 (1.2 GHz), 9.3 (3.2 GHz)", "000/002, IPv4, 1 core");
const VECTOR_TO_LINUX_6: (&str, &str) = ("8.9 (1.2 GHz), 8.6 (3.2 GHz)", "000/002, IPv6, 1 core");
const SIX_TO_FOUR_VECTOR: (&str, &str) = ("0.89 to 0.92", "000/002, VPP, 1 worker on the card's node");
const SIX_TO_FOUR_LINUX: (&str, &str) = ("0.96 to 0.98", "000/002, Linux, 1 core");
const TWO_WORKERS: (&str, &str) = ("2.00 to 2.04", "000/002, VPP");
const DISPERSION: (&str, &str) = ("below 1", "000/002, VPP, isolated cores, 20 runs");
const NAT_TO_PLAIN: (&str, &str) = ("0.54", "004, VPP, single flow");

/// Shapes that throughput rows of one campaign show.
pub fn shapes(rows: &[SummaryRow]) -> Vec<Shape> {
    let rows: Vec<&SummaryRow> = rows
        .iter()
        .filter(|r| r.metric == "throughput" && median_of(&r.values).is_some_and(|m| m > 0.0))
        .collect();
    let mut found = Vec::new();
    for a in &rows {
        for b in &rows {
            found.extend(ratio(a, b));
        }
    }
    found.extend(rows.iter().filter_map(|row| dispersion(row)));
    found
}

/// How far apart the runs are, in percent of their median.
fn dispersion(row: &SummaryRow) -> Option<Shape> {
    if family_of(&row.dut, &row.scenario) != Some(Family::Vector) {
        return None;
    }
    let what = format!(
        "{}: dispersion in %, {} IPv{}, {} B, workers: {}",
        row.dut, row.scenario, row.ip, row.frame, row.workers
    );
    let ours = Statistics::of(&row.values).dispersion?;
    let (published, source) = DISPERSION;
    Some(Shape { what, ours, published, source, caution: caution(row, row) })
}

fn ratio(a: &SummaryRow, b: &SummaryRow) -> Option<Shape> {
    let (fa, fb) = (family_of(&a.dut, &a.scenario)?, family_of(&b.dut, &b.scenario)?);
    let same_way = a.direction == b.direction && a.variant == b.variant && a.scenario == b.scenario;
    let same_device = a.dut == b.dut && a.version == b.version && a.transport == b.transport;
    let (what, (published, source)) = if fa == Family::Vector
        && fb == Family::Linux
        && same_way
        && (&a.frame, &a.ip) == (&b.frame, &b.ip)
        && (a.workers, b.workers) == (1, 1)
    {
        let known = match (a.ip.as_str(), a.frame.as_str()) {
            ("4", "64") => VECTOR_TO_LINUX_4,
            ("6", "84") => VECTOR_TO_LINUX_6,
            _ => ("none for this frame", ""),
        };
        (format!("{} / {}, {} IPv{}, {} B, one core", a.dut, b.dut, a.scenario, a.ip, a.frame), known)
    } else if same_device
        && same_way
        && a.workers == b.workers
        && a.ip == "6"
        && b.ip == "4"
        && smallest(a, b)
    {
        let known = if fa == Family::Vector { SIX_TO_FOUR_VECTOR } else { SIX_TO_FOUR_LINUX };
        (format!("{}: IPv6 {} B / IPv4 {} B, workers: {}", a.dut, a.frame, b.frame, a.workers), known)
    } else if same_device
        && same_way
        && fa == Family::Vector
        && (&a.frame, &a.ip) == (&b.frame, &b.ip)
        && (a.workers, b.workers) == (2, 1)
    {
        (format!("{}: 2 workers / 1, IPv{}, {} B", a.dut, a.ip, a.frame), TWO_WORKERS)
    } else if same_device
        && fa == Family::Vector
        && (&a.frame, &a.ip, &a.direction) == (&b.frame, &b.ip, &b.direction)
        && a.workers == b.workers
        && (a.scenario.as_str(), b.scenario.as_str()) == ("snat", "route")
    {
        (format!("{}: NAT / none, {} B", a.dut, a.frame), NAT_TO_PLAIN)
    } else {
        return None;
    };
    let ours = median_of(&a.values)? / median_of(&b.values)?;
    Some(Shape { what, ours, published, source, caution: caution(a, b) })
}

/// The paper's pair: 64 B of IPv4 and 84 B of IPv6 carry the same payload; otherwise equal frames.
fn smallest(six: &SummaryRow, four: &SummaryRow) -> bool {
    six.frame == four.frame || (six.frame == "84" && four.frame == "64")
}

fn caution(a: &SummaryRow, b: &SummaryRow) -> String {
    let mut found = Vec::new();
    if a.transport != b.transport {
        found.push(format!("different wires: {} and {}", a.transport, b.transport));
    }
    for mark in [shoal_lab_plan::Trust::TesterBound, shoal_lab_plan::Trust::SharedCore] {
        if a.trust.contains(&mark) || b.trust.contains(&mark) {
            found.push(match mark {
                shoal_lab_plan::Trust::TesterBound => "tester-bound".to_owned(),
                _ => "tester and device share a core".to_owned(),
            });
        }
    }
    found.join("; ")
}
