//! What a campaign tells: to the results folder, at once, and to the screen.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use shoal_lab_measure::{Journal, Progress};
use shoal_lab_plan::TrialLine;
use shoal_lab_report::{Folder, HistogramOf, SampleLine};

use crate::view::View;

/// Keeps and shows.
pub struct Kept<'a> {
    /// The results folder.
    pub folder: &'a mut Folder,
    /// The screen.
    pub view: &'a mut View,
    /// The wire.
    pub transport: String,
    /// Frames that arrived in all trials since this was made.
    pub delivered: u64,
    /// Their bytes, with FCS.
    pub bytes: u64,
    /// When frames were sent: from and to, in seconds since 1970.
    pub windows: Vec<(f64, f64)>,
    /// How long a trial waits before it sends.
    pub start_delay: Duration,
}

impl<'a> Kept<'a> {
    /// Nothing delivered yet.
    pub fn new(folder: &'a mut Folder, view: &'a mut View, transport: &str) -> Self {
        Kept {
            folder,
            view,
            transport: transport.into(),
            delivered: 0,
            bytes: 0,
            windows: Vec::new(),
            start_delay: Duration::ZERO,
        }
    }
}

impl Journal for Kept<'_> {
    fn trial(&mut self, line: &TrialLine) -> io::Result<()> {
        let other = |error: shoal_lab_report::ReportError| io::Error::other(error.to_string());
        self.folder.trial(line).map_err(other)?;
        for sample in &line.outcome.samples {
            let sample = SampleLine::of(&line.test, &line.dut, &self.transport, &line.case, line.run, sample);
            self.folder.sample(&sample).map_err(other)?;
        }
        let counts = delays(line);
        if !counts.is_empty() {
            let of = HistogramOf {
                test: line.test.clone(),
                dut: line.dut.clone(),
                transport: self.transport.clone(),
                case: line.case.clone(),
                run: line.run,
            };
            self.folder.histogram(&of, &counts).map_err(other)?;
        }
        let from = line.began + self.start_delay.as_secs_f64();
        self.windows.push((from, from + line.outcome.took.as_secs_f64()));
        self.delivered += line.outcome.streams.iter().map(|s| s.counts.received).sum::<u64>();
        self.bytes += line.outcome.streams.iter().map(|s| s.counts.bytes).sum::<u64>();
        self.view.trial(line);
        Ok(())
    }

    fn progress(&mut self, now: &Progress<'_>) -> bool {
        self.view.progress(now.so_far)
    }

    fn remark(&mut self, text: &str) {
        self.view.note(text);
    }
}

/// Delays of all streams of a trial in nanoseconds, and how often each was seen.
fn delays(line: &TrialLine) -> Vec<(u64, u64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for delays in line.outcome.streams.iter().filter_map(|s| s.delays.as_ref()) {
        for tag in delays.tags.iter().flatten() {
            *counts.entry(*tag).or_default() += 1;
        }
        for (value, count) in &delays.histogram {
            *counts.entry(*value).or_default() += count;
        }
    }
    counts.into_iter().collect()
}
