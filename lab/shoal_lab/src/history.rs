//! What this machine gave on other days: a file for each machine beside the results folders, for looking at. No gate stands on it.

use std::path::{Path, PathBuf};

use shoal_lab_plan::SummaryRow;
use shoal_lab_report::{
    HistoryLine, Record, ReportError, Results, append_history, history_file, read_history,
};

use crate::replay;

/// Results that are kept, the most telling first, since a plot has room for a few lines only: tests and metrics.
const KEPT: [(&str, &str); 5] = [
    ("mrr", "MRR"),
    (replay::TEST, "ratio to the ruler"),
    (replay::TEST, "instructions"),
    (replay::TEST, "clocks"),
    ("revisions", "MRR ratio"),
];

/// Appends a campaign's figures to the history of its machine, in the folder that holds its results folder.
///
/// # Errors
///
/// If the file cannot be written.
pub fn append(results: &Path, record: &Record, rows: &[SummaryRow]) -> Result<PathBuf, ReportError> {
    let all = Results { record: record.clone(), rows: kept(rows), ..Results::default() };
    append_history(results, &all)
}

fn kept(rows: &[SummaryRow]) -> Vec<SummaryRow> {
    let place =
        |row: &SummaryRow| KEPT.iter().position(|(test, metric)| row.test == *test && row.metric == *metric);
    let mut kept: Vec<(usize, &SummaryRow)> =
        rows.iter().filter_map(|row| Some((place(row)?, row))).collect();
    kept.sort_by_key(|(place, _)| *place);
    kept.into_iter().map(|(_, row)| row.clone()).collect()
}

/// The histories that belong to these folders: of each machine once, from the folder that holds the results folder.
///
/// # Errors
///
/// If there is one that cannot be read.
pub fn of(folders: &[Results]) -> Result<Vec<HistoryLine>, ReportError> {
    let mut files: Vec<PathBuf> = Vec::new();
    for results in folders.iter().filter(|r| !r.record.host.fingerprint.is_empty()) {
        // A folder that is named `x` lies in the current one.
        let holder = results.path.parent().filter(|p| *p != Path::new("")).unwrap_or(Path::new("."));
        let file = history_file(holder, &results.record.host.fingerprint);
        if !files.contains(&file) {
            files.push(file);
        }
    }
    let mut all = Vec::new();
    for file in files {
        all.extend(read_history(&file)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_lab_measure as measure;

    fn row(test: &str, metric: &str, value: f64) -> SummaryRow {
        let case = measure::Case { dut: "shoal".into(), ..measure::Case::default() };
        case.row(test, metric, "x", vec![value])
    }

    #[test]
    fn telling_figures_are_kept_and_nodes_and_gates_are_not() {
        let rows = [
            row("gates", "wrong", 0.0),
            row(replay::TEST, "clocks", 30.0),
            row(replay::TEST, "node clocks", 25.0),
            row(replay::TEST, "ratio to the ruler", 1.5),
            row("mrr", "MRR", 1e6),
        ];
        let kept: Vec<String> = kept(&rows).into_iter().map(|r| r.metric).collect();
        assert_eq!(kept, ["MRR", "ratio to the ruler", "clocks"]);
    }

    #[test]
    fn what_is_appended_is_found_from_the_results_folder() {
        let here = tempfile::tempdir().unwrap();
        let mut record = Record { name: "ci".into(), ..Record::default() };
        record.host.fingerprint = "0123abcd".into();
        let file = append(here.path(), &record, &[row("mrr", "MRR", 1e6)]).unwrap();
        std::fs::write(&file, std::fs::read_to_string(&file).unwrap() + "{\"began\":").unwrap();
        append(here.path(), &record, &[row("mrr", "MRR", 2e6)]).unwrap();
        let folder = |name: &str| Results {
            path: here.path().join(name),
            record: record.clone(),
            ..Results::default()
        };
        // Two folders of one machine: its lines come once, the torn one not at all.
        let medians: Vec<f64> = of(&[folder("a"), folder("b")]).unwrap().iter().map(|l| l.median).collect();
        assert_eq!(medians, [1e6, 2e6]);
        let elsewhere = Results { path: "/nowhere/x".into(), ..folder("a") };
        assert!(of(&[elsewhere, Results::default()]).unwrap().is_empty());
    }
}
