//! Writing: each thing as soon as it is known, so that a power cut costs one line.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use shoal_lab_plan::{Delays, SummaryRow, TrialLine, Verdict};

use super::{Bench, HistogramOf, Record, SampleLine, SummaryEntry, hgrm, summary};
use crate::ReportError;
use crate::number;

/// A results folder that is being written.
pub struct Folder {
    path: PathBuf,
    trials: Appended,
    samples: Appended,
}

impl Folder {
    /// Makes `results/<date>-<name>` of `record`'s name and beginning, with a number at its end if it is there already.
    ///
    /// # Errors
    ///
    /// If it cannot be made.
    pub fn create(results: &Path, record: &Record) -> Result<Self, ReportError> {
        let base = format!("{}-{}", number::date(record.began), file_word(&record.name));
        fs::create_dir_all(results).map_err(|e| ReportError::write(results, e))?;
        for attempt in 1.. {
            let name = if attempt == 1 { base.clone() } else { format!("{base}-{attempt}") };
            let path = results.join(name);
            match fs::create_dir(&path) {
                Ok(()) => {
                    let folder = Self::open(&path)?;
                    folder.record(record)?;
                    return Ok(folder);
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(ReportError::write(&path, e)),
            }
        }
        unreachable!("the loop ends only by returning")
    }

    /// Opens one to go on with it. A half line that an interruption left is taken away.
    ///
    /// # Errors
    ///
    /// If its files cannot be written.
    pub fn open(path: &Path) -> Result<Self, ReportError> {
        let mut samples = Appended::open(path.join("samples.csv"))?;
        if samples.length == 0 {
            samples.append(&csv_line(None)?)?;
        }
        Ok(Folder { trials: Appended::open(path.join("trials.jsonl"))?, samples, path: path.into() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a trial and hands it to the system before it returns.
    ///
    /// # Errors
    ///
    /// If it cannot be written, a full disk for instance. The file then ends with the trial before.
    pub fn trial(&mut self, trial: &TrialLine) -> Result<(), ReportError> {
        self.trials.append(&(json("a trial", &finite(trial.clone()), false)? + "\n"))
    }

    /// Appends a sample.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn sample(&mut self, sample: &SampleLine) -> Result<(), ReportError> {
        self.samples.append(&csv_line(Some(sample))?)
    }

    /// Writes `record.json`, in one step: a reader sees the old or the new.
    ///
    /// # Errors
    ///
    /// If it cannot be written; the old one is still there then.
    pub fn record(&self, record: &Record) -> Result<(), ReportError> {
        let mut record = record.clone();
        // As in trials: JSON has no NaN, and what has one could not be read again.
        for value in record.host.load.iter_mut().chain([&mut record.began]) {
            mend(value);
        }
        record.self_tests.iter_mut().for_each(|test| mend(&mut test.most));
        write_whole(&self.path.join("record.json"), &json("the record", &record, true)?)
    }

    /// Writes delays (nanoseconds and how often, rising) into `hist/`.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn histogram(&self, of: &HistogramOf, counts: &[(u64, u64)]) -> Result<PathBuf, ReportError> {
        let name = [of.test.as_str(), &of.dut, &of.transport, &of.case, &of.run.to_string()]
            .map(file_word)
            .join("_");
        let file = self.path.join("hist").join(format!("{name}.hgrm"));
        write_whole(&file, &hgrm::write(of, counts))?;
        Ok(file)
    }

    /// As [`histogram`](Self::histogram), of a stream's delays: all frames', or the tagged ones' that arrived.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn delays(&self, of: &HistogramOf, delays: &Delays) -> Result<PathBuf, ReportError> {
        if !delays.histogram.is_empty() {
            return self.histogram(of, &delays.histogram);
        }
        let mut counts = BTreeMap::new();
        for delay in delays.tags.iter().flatten() {
            *counts.entry(*delay).or_insert(0_u64) += 1;
        }
        self.histogram(of, &counts.into_iter().collect::<Vec<_>>())
    }

    /// Writes what a device printed into `device/`.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn device_output(&self, device: &str, output: &str) -> Result<(), ReportError> {
        write_whole(&self.path.join("device").join(file_word(device) + ".txt"), output)
    }

    /// Writes `bench.json`: clocks a packet by node.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn bench(&self, bench: &Bench) -> Result<(), ReportError> {
        write_whole(&self.path.join("bench.json"), &(json("clocks a packet", bench, true)? + "\n"))
    }

    /// Writes `summary.csv` and `summary.json`.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn summary(&self, record: &Record, rows: &[SummaryRow]) -> Result<(), ReportError> {
        let entries: Vec<_> = rows.iter().cloned().map(SummaryEntry::of).collect();
        write_whole(&self.path.join("summary.json"), &json("the summary", &entries, true)?)?;
        write_whole(&self.path.join("summary.csv"), &summary::csv(record, rows))
    }
}

/// JSON has no NaN, and a line with one could not be read again: what is not finite becomes 0.
fn finite(mut trial: TrialLine) -> TrialLine {
    mend(&mut trial.rate);
    mend(&mut trial.began);
    mend(&mut trial.outcome.stolen);
    if let Verdict::Fail(loss) = &mut trial.verdict {
        mend(loss);
    }
    for delays in trial.outcome.streams.iter_mut().filter_map(|s| s.delays.as_mut()) {
        mend(&mut delays.mean);
        mend(&mut delays.jitter);
        mend(&mut delays.trex_average);
    }
    trial
}

fn mend(value: &mut f64) {
    if !value.is_finite() {
        *value = 0.0;
    }
}

/// A file of lines that is only appended to.
struct Appended {
    file: File,
    path: PathBuf,
    length: u64,
}

impl Appended {
    fn open(path: PathBuf) -> Result<Self, ReportError> {
        let fail = |e| ReportError::write(&path, e);
        let file = OpenOptions::new().create(true).read(true).append(true).open(&path).map_err(fail)?;
        // A device or pipe has no length, and no half line to mend.
        let is_file = file.metadata().map_err(fail)?.is_file();
        let text = if is_file { fs::read(&path).map_err(fail)? } else { Vec::new() };
        let length = text.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1) as u64;
        if length < text.len() as u64 {
            file.set_len(length).map_err(fail)?;
        }
        Ok(Appended { file, path, length })
    }

    fn append(&mut self, line: &str) -> Result<(), ReportError> {
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.flush());
        if let Err(e) = written {
            // Half a line may be there: it goes, so that the file stays valid.
            let _may_fail_too = self.file.set_len(self.length);
            let _at_its_end = self.file.seek(SeekFrom::End(0));
            return Err(ReportError::write(&self.path, e));
        }
        self.length += line.len() as u64;
        Ok(())
    }
}

/// Writes beside it and renames, so that no reader gets half a file.
pub fn write_whole(path: &Path, text: &str) -> Result<(), ReportError> {
    let fail = |e| ReportError::write(path, e);
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(fail)?;
    }
    if fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        // A device or pipe (/dev/stdout) is written to, never replaced.
        return fs::write(path, text).map_err(fail);
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    written.map_err(|e| {
        let _nothing_left = fs::remove_file(&beside);
        fail(e)
    })
}

/// A name as part of a file's name: letters, digits, dots and dashes; at most 80 characters.
pub fn file_word(name: &str) -> String {
    let word: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '-' })
        .take(80)
        .collect();
    let word = word.trim_matches(['.', '-']);
    if word.is_empty() { "unnamed".into() } else { word.into() }
}

fn json(what: &'static str, value: &impl Serialize, pretty: bool) -> Result<String, ReportError> {
    let text = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    text.map_err(|e| ReportError::Form { what, reason: e.to_string() })
}

fn csv_line(sample: Option<&SampleLine>) -> Result<String, ReportError> {
    let form = |reason: String| ReportError::Form { what: "a sample", reason };
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    // The heading comes with the first row; a row alone is what follows it.
    writer.serialize(sample.unwrap_or(&SampleLine::default())).map_err(|e| form(e.to_string()))?;
    let bytes = writer.into_inner().map_err(|e| form(e.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|e| form(e.to_string()))?;
    let (heading, row) = text.split_once('\n').unwrap_or((&text, ""));
    Ok(if sample.is_some() { row.to_owned() } else { format!("{heading}\n") })
}
