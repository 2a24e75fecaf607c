//! What is the same for all trials of a result, and the rows made of it.

use std::time::Duration;

use shoal_lab_plan::{SummaryRow, TesterFacts, Trust};

/// What is the same for all trials of a result. Words are those of [`SummaryRow`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// The device.
    pub dut: String,
    /// Its version.
    pub version: String,
    /// The wire.
    pub transport: String,
    /// Its workers.
    pub workers: u16,
    /// `route`, `bridge`.
    pub scenario: String,
    /// `4`, `6`.
    pub ip: String,
    /// Bytes with FCS, or the name of a mix.
    pub frame: String,
    /// `fwd`, `rev`, `bi`.
    pub direction: String,
    /// What else tells it apart; empty if nothing.
    pub variant: String,
    /// Tester and device share a processor.
    pub shared_core: bool,
}

impl Case {
    /// `ip4 64 B bi, 1 worker, memif, flows=1000`.
    pub fn spoken(&self) -> String {
        let bytes = if self.frame.chars().all(|c| c.is_ascii_digit()) { " B" } else { "" };
        let workers = if self.workers == 1 { "worker" } else { "workers" };
        let mut text = format!(
            "ip{} {}{bytes} {}, {} {workers}, {}",
            self.ip, self.frame, self.direction, self.workers, self.transport
        );
        if !self.variant.is_empty() {
            text.push_str(", ");
            text.push_str(&self.variant);
        }
        text
    }

    /// A row of it, without trust marks.
    pub fn row(&self, test: &str, metric: &str, unit: &str, values: Vec<f64>) -> SummaryRow {
        SummaryRow {
            test: test.into(),
            dut: self.dut.clone(),
            version: self.version.clone(),
            transport: self.transport.clone(),
            workers: self.workers,
            scenario: self.scenario.clone(),
            ip: self.ip.clone(),
            frame: self.frame.clone(),
            direction: self.direction.clone(),
            variant: self.variant.clone(),
            metric: metric.into(),
            unit: unit.into(),
            values,
            curve: Vec::new(),
            axes: None,
            trust: Vec::new(),
            note: String::new(),
        }
    }
}

/// A row that is a curve: one value, its highest y, and the points.
pub fn with_curve(mut row: SummaryRow, points: Vec<(f64, f64)>, x: &str, y: &str) -> SummaryRow {
    row.curve = points;
    row.axes = Some((x.into(), y.into()));
    row
}

/// Adds a mark once; marks stay in their order.
pub fn mark(row: &mut SummaryRow, trust: Trust) {
    if !row.trust.contains(&trust) {
        row.trust.push(trust);
        row.trust.sort();
    }
}

/// Adds words to a row's note.
pub fn note(row: &mut SummaryRow, words: &str) {
    if row.note.split("; ").any(|known| known == words) {
        return;
    }
    if !row.note.is_empty() {
        row.note.push_str("; ");
    }
    row.note.push_str(words);
}

/// What was noticed in the trials of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Marks {
    /// Trials stayed disturbed beyond their retries.
    pub disturbed: bool,
    /// Others had more of the processors than they may, in trials that count all the same; the most, as a share of a trial.
    pub taken: f64,
    /// Trials stayed invalid beyond their retries.
    pub invalid: bool,
    /// In trials that were no steps of a search, the tester could not keep the rate.
    pub tester: bool,
    /// The shortest trial that frames flowed in steadily; bursts and fillings are as long as they have to be.
    pub shortest: Option<Duration>,
    /// Frames that came more than once.
    pub duplicates: u64,
    /// Frames that came after a later one.
    pub reordered: u64,
}

/// Marks that follow from how it was measured: few runs, short trials, virtual links, shared processors; and from `marks`.
pub fn judge(row: &mut SummaryRow, case: &Case, facts: &TesterFacts, marks: Marks) {
    // RFC 8219 7: at least 20 repetitions.
    if row.values.len() < 20 {
        mark(row, Trust::FewRuns);
    }
    // RFC 2544 24: at least 60 seconds.
    if marks.shortest.is_some_and(|length| length < Duration::from_mins(1)) {
        mark(row, Trust::ShortTrials);
    }
    if facts.link.is_virtual {
        mark(row, Trust::VirtualLink);
    }
    if case.shared_core {
        mark(row, Trust::SharedCore);
    }
    if marks.disturbed {
        mark(row, Trust::Disturbed);
    }
    if marks.taken > 0.0 {
        let percent = (marks.taken * 100.0).round();
        note(row, &format!("disturbed: others took up to {percent} % of a processor during trials"));
    }
    if marks.invalid {
        mark(row, Trust::Invalid);
    }
    if marks.tester {
        mark(row, Trust::TesterBound);
        note(row, "the tester could not keep the rate in some trials");
    }
    for (count, what) in [(marks.duplicates, "duplicated"), (marks.reordered, "reordered")] {
        if count > 0 {
            note(row, &format!("{count} frames {what}"));
        }
    }
}

/// Marks a rate, in frames a second and direction, that comes near what the tester itself can do without a device (lab.md 3.4).
pub fn judge_rate(row: &mut SummaryRow, rate: f64, self_test: Option<u64>) {
    let Some(limit) = self_test.map(|l| l as f64) else { return };
    if rate > limit {
        mark(row, Trust::Invalid);
        note(row, "above the self-test, which cannot be: run the self-test again");
    }
    if rate > 0.9 * limit {
        mark(row, Trust::TesterBound);
        note(row, "above 90 % of the self-test");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_near_the_self_tests_is_the_testers() {
        let mut row = Case::default().row("throughput", "throughput", "fps/dir", vec![91.0]);
        judge_rate(&mut row, 90.0, Some(100));
        assert!(row.trust.is_empty());
        judge_rate(&mut row, 91.0, Some(100));
        assert_eq!(row.trust, [Trust::TesterBound]);
        judge_rate(&mut row, 101.0, Some(100));
        assert!(row.trust.contains(&Trust::Invalid) && row.note.contains("cannot be"));
    }

    #[test]
    fn a_case_is_spoken_in_a_line() {
        let case = Case {
            workers: 1,
            ip: "4".into(),
            frame: "64".into(),
            direction: "bi".into(),
            transport: "memif".into(),
            variant: "flows=1000".into(),
            ..Case::default()
        };
        assert_eq!(case.spoken(), "ip4 64 B bi, 1 worker, memif, flows=1000");
    }
}
