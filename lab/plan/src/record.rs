//! Lines and rows of a results folder.

use serde::{Deserialize, Serialize};

use crate::{Outcome, Trust, Verdict};

/// One trial in `trials.jsonl`, also an invalid one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialLine {
    /// `throughput`, `loss`, `latency`.
    pub test: String,
    /// The device.
    pub dut: String,
    /// What was the same for all trials of a result: `ip4 64 B bi, 1 worker`.
    pub case: String,
    /// Which repetition, from 1.
    pub run: u32,
    /// Which step of the search, from 1; which retry, if any, is told by equal steps.
    pub step: u32,
    /// Frames a second and direction.
    pub rate: f64,
    /// The bracket of the search after this trial, if it is one.
    pub bracket: Option<(u64, u64)>,
    /// What the numbers mean.
    pub verdict: Verdict,
    /// The numbers.
    pub outcome: Outcome,
    /// When it began, in seconds since 1970.
    pub began: f64,
}

/// One result: a row of `summary.csv`, with the columns of the published figures and what makes it trustworthy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SummaryRow {
    /// `throughput`, `latency`, `loadtest`.
    pub test: String,
    /// The device.
    pub dut: String,
    /// Its version.
    pub version: String,
    /// The wire.
    pub transport: String,
    /// Its workers or processors.
    pub workers: u16,
    /// `route`, `bridge`.
    pub scenario: String,
    /// `4`, `6`, or `4+6`.
    pub ip: String,
    /// With FCS; of a mix, its name: `imix:bench`.
    pub frame: String,
    /// `fwd`, `rev`, `bi`.
    pub direction: String,
    /// What else told it apart from other rows: `10 %`, `flows=1000`. Empty if nothing.
    pub variant: String,
    /// `throughput`, `TL`, `PDV`, `loss`.
    pub metric: String,
    /// `fps/dir`, `us`, `%`.
    pub unit: String,
    /// Each run's value.
    pub values: Vec<f64>,
    /// Points of a curve, for tests that have one: x and y, x first named in `axes`.
    pub curve: Vec<(f64, f64)>,
    /// What x and y of the curve are.
    pub axes: Option<(String, String)>,
    /// What is to be known when reading it.
    pub trust: Vec<Trust>,
    /// The bar of [`Trust`] in words: `at least`, `not a measurement`. Empty if none.
    pub note: String,
}
