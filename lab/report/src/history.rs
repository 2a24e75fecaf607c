//! Medians of campaigns over time, a file for each machine. It is for looking at, no gate stands on it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shoal_lab_plan::Trust;

use crate::ReportError;
use crate::results::{Results, file_word};
use crate::statistics::median_of;

/// A line of a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryLine {
    /// Seconds since 1970.
    pub began: f64,
    /// The campaign.
    pub name: String,
    /// The lab's revision.
    pub commit: String,
    /// Test, device, wire, scenario, IP, frame, direction, variant, metric and workers, in one line.
    pub what: String,
    /// Its unit.
    pub unit: String,
    /// Of the runs.
    pub median: f64,
    /// The same as a share of what the tester reached alone that day, which cancels much of the host's drift.
    pub of_self_test: Option<f64>,
    /// How far to trust it.
    pub trust: Vec<Trust>,
}

/// Where the history of a machine is.
pub fn history_file(folder: &Path, fingerprint: &str) -> PathBuf {
    folder.join(format!("history-{}.jsonl", file_word(fingerprint)))
}

/// Appends a campaign's medians and gives the file.
///
/// # Errors
///
/// If it cannot be written.
pub fn append_history(folder: &Path, results: &Results) -> Result<PathBuf, ReportError> {
    let file = history_file(folder, &results.record.host.fingerprint);
    let mut text = String::new();
    for row in &results.rows {
        let Some(median) = median_of(&row.values) else { continue };
        let tests = &results.record.self_tests;
        let alone = tests.iter().find(|t| t.is_of(row) && t.most > 0.0);
        let parts: Vec<&str> = [
            &row.test,
            &row.dut,
            &row.transport,
            &row.scenario,
            &row.ip,
            &row.frame,
            &row.direction,
            &row.variant,
            &row.metric,
        ]
        .into_iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
        let line = HistoryLine {
            began: if results.record.began.is_finite() { results.record.began } else { 0.0 },
            name: results.record.name.clone(),
            commit: results.record.commit.clone(),
            what: format!("{} {}", parts.join(" "), row.workers),
            unit: row.unit.clone(),
            median,
            of_self_test: alone.filter(|_| row.unit == "fps/dir").map(|t| median / t.most),
            trust: row.trust.clone(),
        };
        let json = serde_json::to_string(&line)
            .map_err(|e| ReportError::Form { what: "a history", reason: e.to_string() })?;
        text.push_str(&json);
        text.push('\n');
    }
    let fail = |e| ReportError::write(&file, e);
    fs::create_dir_all(folder).map_err(fail)?;
    // Half a line that an interruption left ends here, so that it takes no whole one with it.
    if fs::read(&file).is_ok_and(|bytes| bytes.last().is_some_and(|b| *b != b'\n')) {
        text.insert(0, '\n');
    }
    let mut out = OpenOptions::new().create(true).append(true).open(&file).map_err(fail)?;
    out.write_all(text.as_bytes()).map_err(fail)?;
    Ok(file)
}

/// Reads a history. Lines that are none (half of one, where a write was torn) are left out.
///
/// # Errors
///
/// If there is a file and it cannot be read.
pub fn read_history(file: &Path) -> Result<Vec<HistoryLine>, ReportError> {
    match fs::read(file) {
        // A torn write may end within a letter.
        Ok(bytes) => {
            Ok(bytes.split(|b| *b == b'\n').filter_map(|l| serde_json::from_slice(l).ok()).collect())
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(ReportError::read(file, e)),
    }
}
