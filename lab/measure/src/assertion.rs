//! Assertions about results: `throughput_median>=200k`, `loss@100k==0`, `TL_p99[frame=64,dut=shoal]<50`.
//!
//! `METRIC[_STATISTIC][FILTERS][@X] OPERATOR VALUE`. The metric is a row's, in small letters, with `_` for whatever is
//! no letter or digit; the default statistic is `median`. `@X` takes the curve's value at X instead. Values may end in
//! k, M or G. An assertion holds if it holds in every row it is about.

use std::fmt;

use shoal_lab_plan::SummaryRow;
use thiserror::Error;

use crate::nearest;
use crate::statistics::Spread;

const STATISTICS: [&str; 9] = ["median", "mean", "min", "max", "sd", "dispersion", "p1", "p99", "n"];
const FIELDS: [&str; 9] =
    ["test", "dut", "transport", "workers", "scenario", "ip", "frame", "direction", "variant"];
/// Longer operators first: `>=` begins with `>`.
const OPERATORS: [(&str, Operator); 6] = [
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    ("==", Operator::Equal),
    ("!=", Operator::Unequal),
    (">", Operator::More),
    ("<", Operator::Less),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    AtLeast,
    AtMost,
    Equal,
    Unequal,
    More,
    Less,
}

impl Operator {
    #[expect(clippy::float_cmp, reason = "a plan that says == means it")]
    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Operator::AtLeast => value >= limit,
            Operator::AtMost => value <= limit,
            Operator::Equal => value == limit,
            Operator::Unequal => value != limit,
            Operator::More => value > limit,
            Operator::Less => value < limit,
        }
    }
}

/// An assertion that was understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    text: String,
    name: String,
    filters: Vec<(String, String)>,
    at: Option<f64>,
    operator: Operator,
    limit: f64,
}

/// Why an assertion cannot be understood or applied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AssertionError {
    /// No operator.
    #[error("`{0}` has no operator; it may be >=, <=, ==, !=, > or <")]
    Operator(String),
    /// Not a number.
    #[error("`{0}` is no number; write 200000, 200k or 1.5M")]
    Number(String),
    /// A bracket or what is in it.
    #[error("`{0}` is no filter; write [dut=shoal,frame=64]")]
    Filter(String),
    /// An unknown field of a row.
    #[error("rows have no `{wrong}`; the nearest is `{nearest}`")]
    Field {
        /// As written.
        wrong: String,
        /// What is known.
        nearest: String,
    },
    /// An unknown metric.
    #[error("nothing is called `{wrong}`; the nearest is `{nearest}`")]
    Metric {
        /// As written.
        wrong: String,
        /// What is known.
        nearest: String,
    },
    /// The filters leave no row.
    #[error("`{0}` is about no row: none of this name passes its filters")]
    NoRow(String),
    /// A curve has no such point.
    #[error("`{metric}` was not measured at {at}; the nearest point is {nearest}")]
    Point {
        /// The metric.
        metric: String,
        /// As written.
        at: String,
        /// What was measured.
        nearest: String,
    },
    /// The row has too few values for the statistic.
    #[error("`{0}` has too few values to tell its {1}")]
    TooFew(String, String),
}

/// Whether an assertion holds in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The assertion as written.
    pub assertion: String,
    /// What the row is of.
    pub row: String,
    /// What was compared.
    pub value: f64,
    /// Whether it holds.
    pub holds: bool,
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.holds { "holds" } else { "FAILS" };
        write!(f, "{word}: {} ({}: {})", self.assertion, self.row, self.value)
    }
}

/// The name an assertion knows a metric by.
pub fn metric_name(metric: &str) -> String {
    let spaced: String =
        metric.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join("_")
}

impl Assertion {
    /// Reads one.
    ///
    /// # Errors
    ///
    /// What cannot be understood.
    pub fn parse(text: &str) -> Result<Assertion, AssertionError> {
        // A filter's `=` is no operator, so that the operator is looked for after the closing bracket.
        let (head, tail) = text.split_at(text.find(']').map_or(0, |i| i + 1));
        let found = tail.char_indices().find_map(|(i, _)| {
            OPERATORS.iter().find(|(op, _)| tail.get(i..).is_some_and(|t| t.starts_with(op))).map(|o| (i, o))
        });
        let Some((at, (symbol, operator))) = found else {
            return Err(AssertionError::Operator(text.trim().into()));
        };
        let left = format!("{head}{}", tail.get(..at).unwrap_or(""));
        let limit = number(tail.get(at + symbol.len()..).unwrap_or(""))?;
        let (left, point) = match left.rsplit_once('@') {
            Some((left, point)) => (left.to_string(), Some(number(point)?)),
            None => (left, None),
        };
        let (name, filters) = match left.split_once('[') {
            Some((name, rest)) => {
                let inside =
                    rest.trim().strip_suffix(']').ok_or_else(|| AssertionError::Filter(rest.into()))?;
                (name.to_string(), inside.split(',').map(filter).collect::<Result<_, _>>()?)
            }
            None => (left, Vec::new()),
        };
        Ok(Assertion {
            text: text.trim().into(),
            name: metric_name(&name),
            filters,
            at: point,
            operator: *operator,
            limit,
        })
    }

    /// Whether it holds, in each row it is about.
    ///
    /// # Errors
    ///
    /// If it is about nothing that was measured.
    pub fn check(&self, rows: &[SummaryRow]) -> Result<Vec<Checked>, AssertionError> {
        let names: Vec<String> = rows.iter().map(|r| metric_name(&r.metric)).collect();
        let (metric, statistic) = self.split(&names)?;
        let about: Vec<&SummaryRow> = rows
            .iter()
            .filter(|r| metric_name(&r.metric) == metric)
            .filter(|r| self.filters.iter().all(|(name, value)| field(r, name) == *value))
            .filter(|r| self.at.is_none() || !r.curve.is_empty())
            .collect();
        if about.is_empty() {
            return Err(AssertionError::NoRow(self.text.clone()));
        }
        about.into_iter().map(|row| self.check_row(row, &metric, statistic)).collect()
    }

    fn check_row(&self, row: &SummaryRow, metric: &str, statistic: &str) -> Result<Checked, AssertionError> {
        let value = match self.at {
            Some(at) => point(row, at, metric)?,
            None => statistic_of(&row.values, statistic)
                .ok_or_else(|| AssertionError::TooFew(metric.into(), statistic.into()))?,
        };
        let holds = self.operator.holds(value, self.limit);
        let parts = [&row.dut, &row.scenario, &row.frame, &row.direction, &row.variant];
        let words: Vec<&str> = parts.iter().map(|p| p.as_str()).filter(|p| !p.is_empty()).collect();
        Ok(Checked { assertion: self.text.clone(), row: words.join(" "), value, holds })
    }

    /// Which part of the name is the metric and which the statistic.
    fn split(&self, names: &[String]) -> Result<(String, &'static str), AssertionError> {
        if names.contains(&self.name) {
            return Ok((self.name.clone(), "median"));
        }
        for statistic in STATISTICS {
            let metric = self.name.strip_suffix(statistic).and_then(|m| m.strip_suffix('_'));
            if let Some(metric) = metric.filter(|m| names.iter().any(|n| n == m)) {
                return Ok((metric.into(), statistic));
            }
        }
        let mut known = names.to_vec();
        for name in names {
            known.extend(STATISTICS.iter().map(|s| format!("{name}_{s}")));
        }
        let nearest = nearest(&self.name, known.iter().map(String::as_str)).to_string();
        Err(AssertionError::Metric { wrong: self.name.clone(), nearest })
    }
}

fn number(text: &str) -> Result<f64, AssertionError> {
    let text = text.trim();
    let wrong = || AssertionError::Number(text.into());
    let (digits, factor) = match text.chars().last() {
        Some('k') => (text.strip_suffix('k'), 1e3),
        Some('M') => (text.strip_suffix('M'), 1e6),
        Some('G') => (text.strip_suffix('G'), 1e9),
        _ => (Some(text), 1.0),
    };
    let value: f64 = digits.and_then(|d| d.parse().ok()).ok_or_else(wrong)?;
    if value.is_finite() { Ok(value * factor) } else { Err(wrong()) }
}

fn filter(text: &str) -> Result<(String, String), AssertionError> {
    let (name, value) = text.split_once('=').ok_or_else(|| AssertionError::Filter(text.into()))?;
    let name = name.trim();
    if !FIELDS.contains(&name) {
        let nearest = nearest(name, FIELDS).to_string();
        return Err(AssertionError::Field { wrong: name.into(), nearest });
    }
    Ok((name.into(), value.trim().into()))
}

fn field(row: &SummaryRow, name: &str) -> String {
    match name {
        "test" => row.test.clone(),
        "dut" => row.dut.clone(),
        "transport" => row.transport.clone(),
        "workers" => row.workers.to_string(),
        "scenario" => row.scenario.clone(),
        "ip" => row.ip.clone(),
        "frame" => row.frame.clone(),
        "direction" => row.direction.clone(),
        _ => row.variant.clone(),
    }
}

fn point(row: &SummaryRow, at: f64, metric: &str) -> Result<f64, AssertionError> {
    let near = row.curve.iter().min_by(|a, b| (a.0 - at).abs().total_cmp(&(b.0 - at).abs()));
    match near {
        Some((x, y)) if (x - at).abs() <= 1e-9 * at.abs().max(1.0) => Ok(*y),
        _ => Err(AssertionError::Point {
            metric: metric.into(),
            at: at.to_string(),
            nearest: near.map_or_else(|| "none".into(), |(x, _)| x.to_string()),
        }),
    }
}

fn statistic_of(values: &[f64], name: &str) -> Option<f64> {
    let spread = Spread::of(values)?;
    match name {
        "mean" => Some(spread.mean),
        "min" => Some(spread.min),
        "max" => Some(spread.max),
        "sd" => spread.sd,
        "dispersion" => spread.dispersion,
        "p1" => Some(spread.p1),
        "p99" => Some(spread.p99),
        "n" => Some(spread.n as f64),
        _ => Some(spread.median),
    }
}
