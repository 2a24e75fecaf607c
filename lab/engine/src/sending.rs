//! What is sent: the streams of one port in order of their frames' moments.

use std::collections::VecDeque;

use shoal_lab_frame::{Program, retuple};
use shoal_lab_plan::{Order, Side};

use crate::flow::FlowTable;
use crate::loop_times::LoopTimes;
use crate::port::{PortError, Transport};
use crate::reception::Reception;
use crate::sides::at_mut;
use crate::timeline::{NEVER, Timeline};

/// Frames that may be with a port and not yet accepted; no port keeps as many.
const MOST_PENDING: usize = 4096;

/// A stream as it is sent.
pub(crate) struct Sender {
    /// Its place in the trial.
    pub(crate) stream: usize,
    pub(crate) timeline: Timeline,
    pub(crate) program: Program,
    pub(crate) answers: Option<Order>,
}

/// A frame that was written and that the port has not yet taken.
#[derive(Clone, Copy)]
struct Pending {
    stream: usize,
    sequence: u64,
    due: u64,
}

/// All streams of one port.
pub(crate) struct Sending {
    side: Side,
    pub(crate) senders: Vec<Sender>,
    pending: VecDeque<Pending>,
    burst: usize,
    /// When the last frame was taken, since the start.
    pub(crate) last: Option<u64>,
}

impl Sending {
    pub(crate) fn new(side: Side, senders: Vec<Sender>, burst: u32) -> Sending {
        let burst = (burst.max(1) as usize).min(MOST_PENDING);
        Sending { side, senders, pending: VecDeque::with_capacity(MOST_PENDING), burst, last: None }
    }

    /// When the next frame is due, since the start; [`NEVER`] after the last.
    pub(crate) fn next_due(&self) -> u64 {
        self.senders.iter().map(|sender| sender.timeline.next_due()).min().unwrap_or(NEVER)
    }

    /// Whether all was sent and taken.
    pub(crate) fn is_done(&self) -> bool {
        self.pending.is_empty() && self.next_due() == NEVER
    }

    /// Whether the port has frames that it did not take yet.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Nothing more is to be sent.
    pub(crate) fn give_up(&mut self) {
        self.senders.clear();
    }

    /// Writes what is due at `now`, since the start, a burst at most; returns how many frames that were.
    pub(crate) fn write<T: Transport>(
        &mut self,
        port: &mut T,
        now: u64,
        flows: Option<&FlowTable>,
    ) -> Result<usize, PortError> {
        let mut sum = 0;
        while sum < self.burst && self.pending.len() < MOST_PENDING {
            // The stream whose frame is due first, and until when it is the first.
            let (mut first, mut second) = ((NEVER, 0), NEVER);
            for (i, sender) in self.senders.iter().enumerate() {
                let due = sender.timeline.next_due();
                if due < first.0 {
                    second = first.0;
                    first = (due, i);
                } else {
                    second = second.min(due);
                }
            }
            let (due, i) = first;
            let Some(sender) = self.senders.get_mut(i).filter(|_| due <= now) else { break };
            let until = now.min(second);
            let room = self.burst - sum;
            let Sender { stream, timeline, program, answers } = sender;
            let (length, stream, answers) = (program.len(), *stream, *answers);
            let wanted = timeline.due_until(until, room);
            let pending = &mut self.pending;
            let taken = port.send(length, wanted, &mut |frame| {
                let sequence = timeline.sequence();
                program.write(sequence, frame);
                if let Some(tuple) = answers.zip(flows).and_then(|(order, t)| t.answer(order, sequence)) {
                    retuple(frame, &tuple);
                }
                pending.push_back(Pending { stream, sequence, due: timeline.next_due() });
                timeline.advance(now);
            })?;
            sum += taken;
            if taken < wanted {
                break;
            }
        }
        Ok(sum)
    }

    /// Gives what was written to the wire; what it takes counts as sent at `now()`.
    pub(crate) fn flush<T: Transport>(
        &mut self,
        port: &mut T,
        now: impl Fn() -> u64,
        start: u64,
        reception: &mut Reception,
        looks: &mut LoopTimes,
    ) -> Result<(), PortError> {
        let before = now();
        let flushed = port.flush()?;
        if flushed.accepted > 0 {
            let after = now();
            looks.call(after.saturating_sub(before));
            self.accept(flushed.accepted, after, start, reception, looks);
        }
        if flushed.refused > 0 {
            // Frames are taken in order, so what was refused is the first that is left, or the next.
            let next = self.pending.front().map(|pending| pending.stream);
            let stream = next.or_else(|| self.senders.first().map(|sender| sender.stream));
            if let Some(account) = stream.and_then(|stream| reception.accounts.get_mut(stream)) {
                account.counts.retries += flushed.refused;
            }
        }
        Ok(())
    }

    /// The port took the next `count` frames.
    fn accept(
        &mut self,
        count: usize,
        now: u64,
        start: u64,
        reception: &mut Reception,
        looks: &mut LoopTimes,
    ) {
        let since_start = now.saturating_sub(start);
        looks.burst(count as u32);
        for _ in 0..count {
            let Some(Pending { stream, sequence, due }) = self.pending.pop_front() else { break };
            looks.late(since_start.saturating_sub(due));
            if let Some(account) = reception.accounts.get_mut(stream) {
                account.sent(sequence, now);
            }
            at_mut(&mut reception.flowed, self.side).sent += 1;
        }
        self.last = Some(since_start);
    }
}
