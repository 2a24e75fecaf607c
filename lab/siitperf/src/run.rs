//! One run of a program: trials, and the lines that scripts look for.

use std::fmt::Write;

use shoal_lab_plan::{Outcome, Side, Tester, TesterError, Trial, Watch};

use crate::args::{Args, Program};
use crate::conf::Conf;
use crate::error::InputError;
use crate::figures::{latency, variation};
use crate::phases::{Options, Phases};

/// How a run ended, and all that it prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// 0: done; 1: the test is invalid, the state table was not filled, or the tester failed (the original's code for all of
    /// them); 2: configuration or command line are wrong; 130: interrupted.
    pub code: u8,
    /// What is printed.
    pub text: String,
}

/// Runs `program` with the arguments behind its name and the text of `siitperf.conf`.
///
/// Frames are signed unless `options` say otherwise, so duplicates and frames of an earlier trial do not count as received.
pub fn run(
    program: Program,
    args: &[String],
    conf: &str,
    options: &Options,
    tester: &mut dyn Tester,
    watch: &mut dyn Watch,
) -> Finished {
    let mut text = String::new();
    let code = match prepare(program, args, conf, options) {
        Ok((conf, args, phases)) => {
            for note in &conf.notes {
                line(&mut text, &format!("Info: {note}."));
            }
            let mut run = Run { program, args, conf, text: &mut text };
            run.phases(&phases, tester, watch)
        }
        Err(error) => {
            line(&mut text, &format!("Input Error: {error}."));
            2
        }
    };
    Finished { code, text }
}

fn prepare(
    program: Program,
    args: &[String],
    conf: &str,
    options: &Options,
) -> Result<(Conf, Args, Phases), InputError> {
    let conf: Conf = conf.parse()?;
    let args = Args::parse(program, args, &conf)?;
    let phases = Phases::new(program, &args, &conf, options)?;
    Ok((conf, args, phases))
}

struct Run<'a> {
    program: Program,
    args: Args,
    conf: Conf,
    text: &'a mut String,
}

impl Run<'_> {
    fn phases(&mut self, phases: &Phases, tester: &mut dyn Tester, watch: &mut dyn Watch) -> u8 {
        if let Some(trial) = &phases.preliminary {
            let initiator = if self.conf.stateful == 2 { Side::Right } else { Side::Left };
            match tester.run(trial, watch) {
                Ok(outcome) => {
                    if let Some(code) = self.preliminary(trial, &outcome, initiator) {
                        return code;
                    }
                }
                Err(error) => return self.failed(&error),
            }
        }
        let Some(trial) = &phases.test else { return 0 };
        match tester.run(trial, watch) {
            Ok(outcome) => self.test(trial, &outcome),
            Err(error) => self.failed(&error),
        }
    }

    /// Prints the preliminary phase; a code if the run ends with it.
    fn preliminary(&mut self, trial: &Trial, outcome: &Outcome, initiator: Side) -> Option<u8> {
        if !self.had_its_processor(trial, outcome) || !self.sent_in_time("Preliminary", trial, outcome) {
            return Some(1);
        }
        self.counts("Preliminary", outcome, initiator);
        let wanted = self.args.stateful.map_or(0, |s| s.entries);
        let found = outcome.learnt.as_ref().map_or(0, |l| l.tuples);
        if found < wanted {
            self.line(&format!("Error: Failed to fill state table: {found} of {wanted} entries."));
            return Some(1);
        }
        self.line("Info: The state table is filled.");
        None
    }

    fn test(&mut self, trial: &Trial, outcome: &Outcome) -> u8 {
        let [forward, reverse] = self.conf.active;
        let active: Vec<(&str, Side)> = [(forward, "Forward", Side::Left), (reverse, "Reverse", Side::Right)]
            .into_iter()
            .filter(|(active, ..)| *active)
            .map(|(_, name, side)| (name, side))
            .collect();
        if !self.had_its_processor(trial, outcome) {
            return 1;
        }
        for (name, _) in &active {
            if !self.sent_in_time(name, trial, outcome) {
                return 1;
            }
        }
        for (name, side) in active {
            self.counts(name, outcome, side);
            match self.program {
                Program::Tp => {}
                Program::Lat => {
                    if let Some(figures) = latency(outcome, side, &self.args) {
                        self.line(&format!("{name} TL: {:.6}", figures.typical));
                        self.line(&format!("{name} WCL: {:.6}", figures.worst));
                        if figures.lost > 0 {
                            self.line(&format!("Info: {name} tagged frames lost: {}", figures.lost));
                        }
                    }
                }
                Program::Pdv if self.args.frame_timeout > 0 => {}
                Program::Pdv => {
                    if let Some(value) = variation(outcome, side, &self.args) {
                        self.line(&format!("{name} PDV: {value:.6}"));
                    }
                }
            }
        }
        0
    }

    /// The original's author measured on a host of its own. Where others have the processors, what is printed would be theirs.
    fn had_its_processor(&mut self, trial: &Trial, outcome: &Outcome) -> bool {
        let taken = outcome.processors.as_ref().filter(|p| p.taken() > trial.most_taken);
        if let Some(processors) = taken {
            self.line(&format!("Error: {}: the test is invalid.", processors.words()));
        }
        taken.is_none()
    }

    /// The original's rule: one look at the end. Nothing else of that direction is printed if it took too long.
    fn sent_in_time(&mut self, name: &str, trial: &Trial, outcome: &Outcome) -> bool {
        let (took, limit) = (outcome.took.as_secs_f64(), outcome.planned.as_secs_f64() * trial.tolerance);
        self.line(&format!("Info: {name} sending took {took:.10} s."));
        if took > limit {
            self.line(&format!("{name} sending took longer than {limit:.10} s: the test is invalid."));
        }
        took <= limit
    }

    fn counts(&mut self, name: &str, outcome: &Outcome, from: Side) {
        let counts = outcome.direction(from);
        self.line(&format!("{name} frames sent: {}", counts.sent));
        self.line(&format!("{name} frames received: {}", counts.received));
        let [left, right] = outcome.ports;
        let arriving = if from == Side::Left { right } else { left };
        for (what, count) in [
            ("duplicates", counts.duplicates),
            ("corrupt frames", counts.corrupt),
            ("stray frames", counts.stray),
            ("frames later than the frame timeout", counts.late),
            ("frames of an earlier trial", arriving.stale),
            ("frames lost by the tester itself", arriving.lost_receiving),
        ] {
            if count > 0 {
                self.line(&format!("Info: {name} {what}: {count}"));
            }
        }
    }

    fn failed(&mut self, error: &TesterError) -> u8 {
        self.line(&format!("Error: {error}."));
        if matches!(error, TesterError::Interrupted) { 130 } else { 1 }
    }

    fn line(&mut self, line_text: &str) {
        line(self.text, line_text);
    }
}

fn line(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}
