//! Delays in HdrHistogram's percentile text form (`.hgrm`), which its plotters read.
//!
//! Columns are value, percentile, count so far and `1 / (1 - percentile)`; lines with `#` are remarks. Ours name what was
//! measured in remarks of their own. Values are microseconds.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// Lines for each halving of the distance to 100 %.
const TICKS: f64 = 5.0;

/// Whose delays.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HistogramOf {
    /// `latency`, `pdv`; `selftest` for the floor.
    pub test: String,
    /// The device; `loopback` for the floor.
    pub dut: String,
    /// The wire: delays over different wires do not share a plot.
    pub transport: String,
    /// As in [`TrialLine::case`](shoal_lab_plan::TrialLine).
    pub case: String,
    /// Which repetition, from 1.
    pub run: u32,
}

/// A histogram that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Whose delays.
    pub of: HistogramOf,
    /// Rising.
    pub points: Vec<PercentilePoint>,
}

/// A line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PercentilePoint {
    /// Microseconds.
    pub us: f64,
    /// 0 to 1.
    pub share: f64,
    /// Values so far.
    pub count: u64,
}

/// The text of `counts`: value in nanoseconds and how often, rising.
pub fn write(of: &HistogramOf, counts: &[(u64, u64)]) -> String {
    let mut text = String::new();
    for (name, value) in [
        ("Test", &of.test),
        ("Dut", &of.dut),
        ("Wire", &of.transport),
        ("Case", &of.case),
        ("Run", &of.run.to_string()),
    ] {
        let _ = writeln!(text, "#[{name} = {}]", value.replace(['\n', '\r'], " "));
    }
    let _ = writeln!(
        text,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let total: u64 = counts.iter().map(|(_, n)| n).sum();
    let mut level = 0.0_f64;
    let mut sum = 0;
    let mut rest = counts.iter().filter(|(_, n)| *n > 0);
    let mut value = 0;
    while sum < total {
        while (sum as f64) < level / 100.0 * total as f64 || sum == 0 {
            let Some((v, n)) = rest.next() else { break };
            (value, sum) = (*v, sum + n);
        }
        if sum >= total {
            break;
        }
        let share = level / 100.0;
        let _ = writeln!(
            text,
            "{:>12.3} {share:>2.12} {sum:>10} {:>14.2}",
            value as f64 / 1e3,
            1.0 / (1.0 - share)
        );
        let halvings = (100.0 / (100.0 - level)).log2().floor() as i32 + 1;
        level += 100.0 / (TICKS * 2.0_f64.powi(halvings));
    }
    if total > 0 {
        let _ = writeln!(text, "{:>12.3} {:>2.12} {total:>10}", value as f64 / 1e3, 1.0);
    }
    text.push_str(&footer(counts, total));
    text
}

fn footer(counts: &[(u64, u64)], total: u64) -> String {
    let n = total.max(1) as f64;
    let mean = counts.iter().map(|(v, c)| *v as f64 * *c as f64).sum::<f64>() / n;
    let variance = counts.iter().map(|(v, c)| (*v as f64 - mean).powi(2) * *c as f64).sum::<f64>() / n;
    let max = counts.iter().filter(|(_, c)| *c > 0).map(|(v, _)| *v).max().unwrap_or(0);
    format!(
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]\n#[Max     = {:>12.3}, Total count    = {total:>12}]\n",
        mean / 1e3,
        variance.sqrt() / 1e3,
        max as f64 / 1e3
    )
}

/// Reads the form, ours or another program's. Lines that are neither remarks nor four or three numbers are left out.
pub fn read(text: &str) -> Histogram {
    let mut histogram = Histogram::default();
    for line in text.lines() {
        if let Some(remark) = line.strip_prefix("#[").and_then(|l| l.strip_suffix(']')) {
            if let Some((name, value)) = remark.split_once(" = ") {
                match name {
                    "Test" => histogram.of.test = value.into(),
                    "Dut" => histogram.of.dut = value.into(),
                    "Wire" => histogram.of.transport = value.into(),
                    "Case" => histogram.of.case = value.into(),
                    "Run" => histogram.of.run = value.parse().unwrap_or(0),
                    _ => {}
                }
            }
            continue;
        }
        let mut columns = line.split_whitespace();
        let us = columns.next().and_then(|c| c.parse().ok());
        let share = columns.next().and_then(|c| c.parse().ok());
        let count = columns.next().and_then(|c| c.parse().ok());
        if let (Some(us), Some(share), Some(count)) = (us, share, count) {
            histogram.points.push(PercentilePoint { us, share, count });
        }
    }
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of() -> HistogramOf {
        HistogramOf {
            test: "latency".into(),
            dut: "shoal".into(),
            transport: "memif".into(),
            case: "ip4 64 B bi".into(),
            run: 3,
        }
    }

    #[test]
    fn what_is_written_is_read_again_with_its_name() {
        let counts: Vec<(u64, u64)> = (1..=1000).map(|v| (v * 1000, 1)).collect();
        let read = read(&write(&of(), &counts));
        assert_eq!(read.of, of());
        let last = read.points.last().unwrap();
        assert_eq!((last.us, last.share, last.count), (1000.0, 1.0, 1000));
        let half = read.points.iter().find(|p| (p.share - 0.5).abs() < 1e-9).unwrap();
        assert!((half.us - 500.0).abs() < 1e-9, "{half:?}");
        assert!(read.points.windows(2).all(|w| w[0].us <= w[1].us && w[0].share < w[1].share));
    }

    #[test]
    fn the_tail_is_halved_five_lines_at_a_time_as_hdr_histogram_does() {
        let counts: Vec<(u64, u64)> = (1..=100_000).map(|v| (v, 1)).collect();
        let shares: Vec<f64> = read(&write(&of(), &counts)).points.iter().map(|p| p.share).take(12).collect();
        let wanted = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.775];
        for (found, wanted) in shares.iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-9, "{shares:?}");
        }
    }

    #[test]
    fn no_delays_and_nonsense_are_no_points() {
        assert!(read(&write(&of(), &[])).points.is_empty());
        assert!(read(&write(&of(), &[(5, 0)])).points.is_empty());
        assert!(read("hello\n1 2\n\n#[x]\nNaN").points.is_empty());
    }

    #[test]
    fn one_delay_is_its_own_maximum() {
        let read = read(&write(&of(), &[(1500, 1)]));
        assert_eq!(read.points, [PercentilePoint { us: 1.5, share: 1.0, count: 1 }]);
    }
}
