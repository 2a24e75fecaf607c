//! Reading back, also what an interrupted campaign left.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use shoal_lab_plan::{SummaryRow, TrialLine, Trust, Verdict};

use super::{Bench, Histogram, Record, SampleLine, SummaryEntry, hgrm};
use crate::ReportError;

/// A results folder that was read.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Where it is.
    pub path: PathBuf,
    /// Its record; mostly empty if there was none.
    pub record: Record,
    /// One a result.
    pub rows: Vec<SummaryRow>,
    /// All trials, in order.
    pub trials: Vec<TrialLine>,
    /// Pieces of time.
    pub samples: Vec<SampleLine>,
    /// Delays.
    pub histograms: Vec<Histogram>,
    /// Clocks a packet by node, if something was replayed.
    pub bench: Option<Bench>,
    /// What was missing or damaged, for the reader of the report.
    pub warnings: Vec<String>,
}

impl Results {
    /// Reads a folder. Missing parts and a half line at the end of a file are warnings.
    ///
    /// # Errors
    ///
    /// If it is no results folder, or a file in it is damaged elsewhere than at its end.
    pub fn read(path: &Path) -> Result<Self, ReportError> {
        let mut results = Results { path: path.into(), ..Results::default() };
        let record = path.join("record.json");
        let trials = path.join("trials.jsonl");
        if !record.exists() && !trials.exists() {
            return Err(ReportError::NoResults(path.into()));
        }
        match text(&record)? {
            Some(text) => {
                results.record =
                    serde_json::from_str(&text).map_err(|e| ReportError::content(&record, e.line(), e))?;
            }
            None => results.warnings.push("There is no record.json: machine and command are unknown.".into()),
        }
        if results.record.name.is_empty() {
            results.record.name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        }
        results.read_trials(&trials)?;
        results.read_samples(&path.join("samples.csv"))?;
        results.read_histograms(&path.join("hist"))?;
        results.read_summary(&path.join("summary.json"))?;
        let bench = path.join("bench.json");
        results.bench = bench.exists().then(|| Bench::read(&bench)).transpose()?;
        Ok(results)
    }

    fn read_trials(&mut self, file: &Path) -> Result<(), ReportError> {
        let Some(text) = text(file)? else { return Ok(()) };
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
            match serde_json::from_str(line) {
                Ok(trial) => self.trials.push(trial),
                Err(_) if at + 1 == lines.len() && !text.ends_with('\n') => {
                    self.warnings.push("The last line of trials.jsonl is cut off and left out.".into());
                }
                Err(e) => return Err(ReportError::content(file, at + 1, e)),
            }
        }
        Ok(())
    }

    fn read_samples(&mut self, file: &Path) -> Result<(), ReportError> {
        let Some(text) = text(file)? else { return Ok(()) };
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        if whole < text.len() {
            self.warnings.push("The last line of samples.csv is cut off and left out.".into());
        }
        let mut reader = csv::Reader::from_reader(text.get(..whole).unwrap_or_default().as_bytes());
        for (at, sample) in reader.deserialize().enumerate() {
            self.samples.push(sample.map_err(|e| ReportError::content(file, at + 2, e))?);
        }
        Ok(())
    }

    fn read_histograms(&mut self, folder: &Path) -> Result<(), ReportError> {
        let mut files: Vec<PathBuf> =
            fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        files.retain(|f| f.extension().is_some_and(|e| e == "hgrm"));
        files.sort();
        for file in files {
            let Some(text) = text(&file)? else { continue };
            let mut histogram = hgrm::read(&text);
            if histogram.of.dut.is_empty() {
                histogram.of.dut = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            }
            self.histograms.push(histogram);
        }
        Ok(())
    }

    fn read_summary(&mut self, file: &Path) -> Result<(), ReportError> {
        if let Some(text) = text(file)? {
            let entries: Vec<SummaryEntry> =
                serde_json::from_str(&text).map_err(|e| ReportError::content(file, e.line(), e))?;
            self.rows = entries.into_iter().map(|e| e.row).collect();
            return Ok(());
        }
        self.rows = from_trials(&self.trials);
        self.warnings.push(
            "There is no summary: the campaign did not end. Throughput is what passed so far, \
             read from the trials."
                .into(),
        );
        Ok(())
    }
}

/// Throughput so far: of each run the highest rate that passed.
fn from_trials(trials: &[TrialLine]) -> Vec<SummaryRow> {
    let mut best: BTreeMap<(&str, &str, &str), BTreeMap<u32, f64>> = BTreeMap::new();
    for trial in trials.iter().filter(|t| t.test == "throughput" && t.verdict == Verdict::Pass) {
        let runs = best.entry((&trial.test, &trial.dut, &trial.case)).or_default();
        let rate = runs.entry(trial.run).or_insert(0.0);
        *rate = rate.max(trial.rate);
    }
    let row = |((test, dut, case), runs): ((&str, &str, &str), BTreeMap<u32, f64>)| SummaryRow {
        test: test.into(),
        dut: dut.into(),
        version: String::new(),
        transport: String::new(),
        workers: 0,
        scenario: String::new(),
        ip: String::new(),
        frame: case.into(),
        direction: String::new(),
        variant: String::new(),
        metric: "throughput".into(),
        unit: "fps/dir".into(),
        values: runs.into_values().collect(),
        curve: Vec::new(),
        axes: None,
        trust: vec![Trust::FewRuns],
        note: "at least: interrupted".into(),
    };
    best.into_iter().map(row).collect()
}

/// None if there is no such file. Bytes that are no text (a torn write) are shown as such, not refused.
fn text(file: &Path) -> Result<Option<String>, ReportError> {
    match fs::read(file) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(ReportError::read(file, e)),
    }
}
