//! What the proofs share: streams, traffic, a journal that keeps all, time that passes at once.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use shoal_lab_measure::{
    Case, Journal, MeasureError, Offer, Preset, Progress, Runner, Time, Traffic, TrialProcedure,
};
use shoal_lab_plan::{Checksums, Side, Stream, Tag, TrialLine};

use crate::model::Model;

pub fn stream(name: &str, from: Side, size: usize, offer: &Offer) -> Stream {
    Stream {
        name: name.into(),
        from,
        frame: vec![0; size - 4],
        changes: Vec::new(),
        checksums: Checksums::default(),
        tag: Tag::None,
        pace: offer.pace.clone(),
        stamps: offer.stamps,
        expected: true,
        answers: None,
    }
}

/// One stream of each side.
pub struct Plain {
    pub size: usize,
    pub sides: Vec<Side>,
}

pub fn both(size: usize) -> Plain {
    Plain { size, sides: Side::BOTH.to_vec() }
}

pub fn forward(size: usize) -> Plain {
    Plain { size, sides: vec![Side::Left] }
}

impl Traffic for Plain {
    fn streams(&self, offer: &Offer) -> Result<Vec<Stream>, MeasureError> {
        Ok(self.sides.iter().map(|side| stream("plain", *side, self.size, offer)).collect())
    }

    fn size(&self) -> u32 {
        self.size as u32
    }

    fn sides(&self) -> Vec<Side> {
        self.sides.clone()
    }
}

#[derive(Default)]
pub struct Kept {
    pub lines: Vec<TrialLine>,
    pub remarks: Vec<String>,
    /// After so many trials the disk is full.
    pub room: Option<usize>,
    /// Progress is interrupted after so many calls.
    pub patience: Option<usize>,
    pub calls: usize,
}

impl Journal for Kept {
    fn trial(&mut self, line: &TrialLine) -> io::Result<()> {
        if self.room.is_some_and(|room| self.lines.len() >= room) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.lines.push(line.clone());
        Ok(())
    }

    fn progress(&mut self, _now: &Progress<'_>) -> bool {
        self.calls += 1;
        self.patience.is_none_or(|p| self.calls <= p)
    }

    fn remark(&mut self, text: &str) {
        self.remarks.push(text.into());
    }
}

/// Passes when it is waited for, and while trials of a [`Model`] run.
#[derive(Default)]
pub struct NoTime {
    pub waited: Duration,
    pub spent: Rc<Cell<Duration>>,
}

impl Time for NoTime {
    fn now(&self) -> f64 {
        self.passed().as_secs_f64()
    }

    fn passed(&self) -> Duration {
        self.waited + self.spent.get()
    }

    fn rest(&mut self, length: Duration) {
        self.waited += length;
    }
}

pub fn case() -> Case {
    Case {
        dut: "model".into(),
        workers: 1,
        ip: "4".into(),
        frame: "64".into(),
        direction: "bi".into(),
        transport: "synthetic".into(),
        scenario: "route".into(),
        ..Case::default()
    }
}

/// Strict, but short and not often.
pub fn strict(runs: u32) -> TrialProcedure {
    TrialProcedure { runs, duration: Duration::from_secs(1), ..Preset::Strict.conduct() }
}

/// Runs `test` over `model` and gives what it gave, and the journal.
pub fn over<T>(
    model: &mut Model,
    conduct: TrialProcedure,
    test: impl FnOnce(&mut Runner<'_>) -> T,
) -> (T, Kept) {
    let spent = model.spent.clone();
    let (mut kept, mut time) = (Kept::default(), NoTime { spent, ..NoTime::default() });
    let value = {
        let mut runner = Runner::new(model, &mut kept, &mut time, case(), conduct).unwrap();
        test(&mut runner)
    };
    (value, kept)
}

/// The same, and only what it gave.
pub fn run<T>(model: &mut Model, conduct: TrialProcedure, test: impl FnOnce(&mut Runner<'_>) -> T) -> T {
    over(model, conduct, test).0
}
