//! `summary.csv` and `summary.json`.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use shoal_lab_plan::{SummaryRow, Trust};

use super::Record;
use crate::statistics::Statistics;

/// A row of `summary.json`: the result, and the facts of its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SummaryEntry {
    /// The result.
    #[serde(flatten)]
    pub row: SummaryRow,
    /// Of its values.
    pub statistics: Statistics,
}

impl SummaryEntry {
    /// With its statistics. JSON has no NaN: values that are not finite are counted there and left out here.
    pub fn of(mut row: SummaryRow) -> Self {
        let statistics = Statistics::of(&row.values);
        row.values.retain(|v| v.is_finite());
        row.curve.retain(|(x, y)| x.is_finite() && y.is_finite());
        SummaryEntry { row, statistics }
    }
}

/// The heading: the columns of the published figures, then what makes ours trustworthy.
const HEADING: [&str; 23] = [
    "seed",
    "table",
    "dut",
    "config",
    "cores",
    "clock_ghz",
    "scenario",
    "frame_bytes",
    "direction",
    "metric",
    "value",
    "unit",
    "n",
    "median",
    "min",
    "max",
    "mean",
    "sd",
    "dispersion",
    "ci_low",
    "ci_high",
    "validity",
    "note",
];

/// The text of `summary.csv`: `seed` is the campaign's name, `table` the test, `value` the median.
pub fn csv(record: &Record, rows: &[SummaryRow]) -> String {
    let mut text = HEADING.join(",") + "\n";
    let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
    for row in rows {
        let s = Statistics::of(&row.values);
        let config = [row.transport.as_str(), &row.version, &row.variant];
        let fields = [
            record.name.clone(),
            row.test.clone(),
            row.dut.clone(),
            config.iter().filter(|c| !c.is_empty()).copied().collect::<Vec<_>>().join("; "),
            row.workers.to_string(),
            number(record.host.clock_ghz),
            format!("{} IPv{}", row.scenario, row.ip),
            row.frame.clone(),
            row.direction.clone(),
            row.metric.clone(),
            number(s.median),
            row.unit.clone(),
            s.n.to_string(),
            number(s.median),
            number(s.min),
            number(s.max),
            number(s.mean),
            number(s.sd),
            number(s.dispersion),
            number(s.ci.map(|c| c.0)),
            number(s.ci.map(|c| c.1)),
            row.trust.iter().map(|t| trust_word(*t)).collect::<Vec<_>>().join(" "),
            row.note.clone(),
        ];
        let line = fields.iter().map(|f| field(f)).collect::<Vec<_>>().join(",");
        let _ = writeln!(text, "{line}");
    }
    text
}

/// RFC 4180: in quotes if it has a separator, a quote or a line's end.
pub fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// As in JSON: `tester-bound`.
pub const fn trust_word(trust: Trust) -> &'static str {
    match trust {
        Trust::TesterBound => "tester-bound",
        Trust::Disturbed => "disturbed",
        Trust::Refused => "refused",
        Trust::Invalid => "invalid",
        Trust::VirtualLink => "virtual-link",
        Trust::FewRuns => "few-runs",
        Trust::ShortTrials => "short-trials",
        Trust::SharedCore => "shared-core",
        Trust::Ceiling => "ceiling",
    }
}
