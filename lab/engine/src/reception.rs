//! What comes: each frame is known again, checked if it is its turn, and entered into its stream's account.

use shoal_lab_frame::{FrameClassifier, Look, Program, Tuple};
use shoal_lab_plan::{Learnt, Order, Side, Tally, Trial, Verify};

use crate::account::Account;
use crate::flow::FlowTable;
use crate::sides::{at, at_mut};

/// One frame in so many is looked at whole.
const SOME: u32 = 64;

/// Flows that are learnt or answered in this trial.
pub(crate) struct Learning {
    pub(crate) table: FlowTable,
    /// The side that learns, if one does.
    pub(crate) at: Option<Side>,
    pub(crate) learnt: Learnt,
    /// Of each stream, the frames once more, to see what was sent with a number.
    pub(crate) again: Vec<Program>,
    pub(crate) answers: Vec<Option<Order>>,
    scratch: Vec<u8>,
}

impl Learning {
    pub(crate) fn new(table: FlowTable, trial: &Trial, again: Vec<Program>) -> Learning {
        let longest = again.iter().map(Program::len).max().unwrap_or(0);
        Learning {
            table,
            at: trial.learn.map(|(side, _)| side),
            learnt: Learnt::default(),
            again,
            answers: trial.streams.iter().map(|s| s.answers.map(|a| a.order)).collect(),
            scratch: vec![0; longest],
        }
    }

    /// The tuple that frame `sequence` of a stream was sent with.
    fn original(&mut self, stream: usize, sequence: u64) -> Option<Tuple> {
        let program = self.again.get_mut(stream)?;
        program.write(sequence, &mut self.scratch);
        Tuple::of(self.scratch.get(..program.len())?)
    }

    /// A frame came at `side`; whether its addresses are what they should be.
    fn came(&mut self, side: Side, stream: usize, sequence: Option<u64>, frame: &[u8]) -> bool {
        let Some(arrived) = Tuple::of(frame) else { return true };
        if let Some(Some(order)) = self.answers.get(stream) {
            return sequence.is_none_or(|n| self.table.check(*order, n, &arrived, &mut self.learnt));
        }
        if self.at == Some(side) {
            // A frame without a number does not say what it was sent with: it can be answered and not be checked.
            let original = sequence.and_then(|sequence| self.original(stream, sequence)).unwrap_or(arrived);
            let wrong = self.learnt.not_unique + self.learnt.not_stable;
            self.table.learn(&original, &arrived, &mut self.learnt);
            return self.learnt.not_unique + self.learnt.not_stable == wrong;
        }
        // Frames of the initiator over what was learnt before.
        let original = sequence.and_then(|sequence| self.original(stream, sequence));
        original.is_none_or(|original| self.table.is_stable(&original, &arrived, &mut self.learnt))
    }

    /// Flows of stream `stream` whose frames were sent and of which none came.
    pub(crate) fn never_answered(&mut self, stream: usize, account: &Account) -> Vec<Tuple> {
        let mut silent = Vec::new();
        for sequence in 0..account.counts.sent {
            if account.is_missing(sequence)
                && let Some(original) = self.original(stream, sequence)
                && !self.table.has(&original)
            {
                silent.push(original);
            }
        }
        silent
    }
}

/// Sums over all streams that one side sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flowed {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) bytes: u64,
}

/// Everything that is entered while frames come.
pub(crate) struct Reception {
    pub(crate) accounts: Vec<Account>,
    pub(crate) tallies: [Tally; 2],
    pub(crate) flowed: [Flowed; 2],
    pub(crate) learning: Option<Learning>,
    recognisers: [FrameClassifier; 2],
    trial: u16,
    every: u32,
    turn: u32,
}

impl Reception {
    pub(crate) fn new(trial: &Trial, accounts: Vec<Account>, learning: Option<Learning>) -> Reception {
        Reception {
            accounts,
            tallies: [Tally::default(); 2],
            flowed: [Flowed::default(); 2],
            learning,
            recognisers: Side::BOTH.map(|side| FrameClassifier::arriving_at(trial, side)),
            trial: trial.id,
            every: if trial.verify == Verify::All { 1 } else { SOME },
            turn: 0,
        }
    }

    /// A frame came at `side`, at `now` of the clock.
    #[inline]
    pub(crate) fn take(&mut self, side: Side, frame: &[u8], now: u64, since_start: u64) {
        let recogniser = at(&self.recognisers, side);
        let tally = at_mut(&mut self.tallies, side);
        let (stream, sequence, from) = match recogniser.look(frame) {
            Look::Signed { trial, .. } if trial != self.trial => {
                tally.stale += 1;
                return;
            }
            Look::Signed { stream, from, sequence, .. } => (usize::from(stream), Some(sequence), Some(from)),
            Look::Plain { stream } => (usize::from(stream), None, None),
            Look::Other => {
                tally.other += 1;
                return;
            }
        };
        let Some(account) = self.accounts.get_mut(stream) else {
            tally.other += 1;
            return;
        };
        self.turn += 1;
        let is_turn = self.turn >= self.every;
        if is_turn {
            self.turn = 0;
            let wrong_side = from.is_some_and(|from| from != account.arrives.other());
            // What was damaged has not arrived: nothing that it says of itself can be believed.
            if wrong_side || recogniser.check(frame, stream).is_err() {
                account.counts.corrupt += 1;
                return;
            }
        }
        if account.arrives != side {
            account.counts.stray += 1;
            return;
        }
        if let Some(learning) = &mut self.learning
            && (is_turn || learning.at.is_some())
            && !learning.came(side, stream, sequence, frame)
        {
            account.counts.stray += 1;
            return;
        }
        let is_new = match sequence {
            Some(sequence) if account.is_numbered() => account.came(sequence, frame.len(), now, since_start),
            Some(_) | None => {
                account.came_unnumbered(frame.len(), since_start);
                true
            }
        };
        if is_new {
            let sum = at_mut(&mut self.flowed, side.other());
            sum.received += 1;
            sum.bytes += frame.len() as u64 + u64::from(shoal_lab_plan::FCS);
        }
    }
}

/// Whether answers of `trial` or its learning need flows.
pub(crate) fn is_stateful(trial: &Trial) -> bool {
    trial.learn.is_some() || trial.streams.iter().any(|stream| stream.answers.is_some())
}
