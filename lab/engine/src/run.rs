//! One trial from its first moment to its last: the loop that looks, sends, and waits.
//!
//! Each pass reads both ports, then sends what is due, at most a burst a port. A pass reads the clock four times, and once more
//! where frames are sent, and allocates nothing. On a real clock it never sleeps; on a simulated one it goes to the next moment
//! at which anything can happen.

use std::time::Duration;

use shoal_lab_plan::{Sample, Side, Trial, Watch};

use crate::account::Account;
use crate::clock::Clock;
use crate::error::EngineError;
use crate::loop_times::LoopTimes;
use crate::port::{PortError, Transport};
use crate::reception::Reception;
use crate::sending::Sending;
use crate::sides::at_mut;
use crate::timeline::{NEVER, nanoseconds};

/// Frames that are taken from a port before the other one is looked at.
const TAKE: usize = 64;
/// Between two reports to the observer.
const PROGRESS: u64 = 100_000_000;

/// What sending may take beyond the trial's time: a tenth and a second. Who cannot keep the rate is told so, and does not
/// hold up a search for hours.
fn patience_of_sending(end: u64) -> u64 {
    end.saturating_add(end / 10).saturating_add(1_000_000_000)
}

/// A trial that runs.
pub(crate) struct Run<'a, T, C> {
    pub(crate) trial: &'a Trial,
    pub(crate) clock: C,
    pub(crate) ports: &'a mut [T; 2],
    pub(crate) sendings: [Sending; 2],
    pub(crate) reception: Reception,
    pub(crate) looks: LoopTimes,
    pub(crate) samples: Vec<Sample>,
    /// For each sample, the frames that each stream had sent by then.
    pub(crate) marks: Vec<u64>,
    /// When the last frame's time ends, since the start.
    pub(crate) end: u64,
}

/// Moments of the loop, in nanoseconds of the clock or, where it says so, since the start.
struct Moments {
    start: u64,
    /// Until when frames are taken; known when sending has ended.
    last: u64,
    /// Since the start.
    sampled: u64,
    told: u64,
}

impl<T: Transport, C: Clock> Run<'_, T, C> {
    /// Runs it.
    pub(crate) fn run(&mut self, watch: &mut dyn Watch) -> Result<(), EngineError> {
        let start = self.arm(watch)?;
        let mut at = Moments { start, last: NEVER, sampled: 0, told: 0 };
        let mut before = self.clock.now();
        loop {
            let now = self.clock.now();
            let since = now.saturating_sub(start);
            let passed = now.saturating_sub(before);
            self.looks.pass(since, passed);
            before = now;
            let mut busy = self.receive(start)?;
            if busy {
                self.looks.found(passed);
            }
            busy |= self.send(start)?;
            if at.last == NEVER && self.sendings.iter().all(Sending::is_done) {
                at.last = self.drain_until();
            } else if at.last == NEVER && since > patience_of_sending(self.end) {
                self.sendings.iter_mut().for_each(Sending::give_up);
                at.last = since.saturating_add(nanoseconds(self.trial.timeout));
            }
            self.sample(&mut at, since);
            if since >= at.last {
                break;
            }
            if since >= at.told + PROGRESS {
                at.told = since;
                self.tell(watch, since)?;
            }
            if !busy {
                let next = self.next_moment(&at).saturating_add(start);
                before = before.saturating_add(self.clock.idle_until(next));
            }
        }
        let since = self.clock.now().saturating_sub(start);
        self.close_sample(&mut at, since);
        Ok(())
    }

    /// Waits until the start, and throws away what still comes of what was before.
    fn arm(&mut self, watch: &mut dyn Watch) -> Result<u64, EngineError> {
        let start = self.clock.now().saturating_add(nanoseconds(self.trial.start_delay));
        for port in self.ports.iter_mut() {
            port.begin(start);
        }
        let mut told = 0;
        loop {
            let now = self.clock.now();
            let mut count = 0;
            for port in self.ports.iter_mut() {
                count += port.receive(TAKE, &mut |_| ()).map_err(|e| EngineError::port(port, e))?;
            }
            if now >= start {
                return Ok(start);
            }
            if now >= told + PROGRESS {
                told = now;
                self.ports.iter_mut().for_each(Transport::tend);
                if !watch.progress(&Sample::default()) {
                    return Err(EngineError::Interrupted);
                }
            }
            if count == 0 {
                let event = self.ports.iter().filter_map(Transport::next_event).min().unwrap_or(start);
                self.clock.idle_until(event.clamp(now, start));
            }
        }
    }

    #[inline]
    fn receive(&mut self, start: u64) -> Result<bool, EngineError> {
        let (clock, reception, mut busy) = (&self.clock, &mut self.reception, false);
        for (side, port) in Side::BOTH.into_iter().zip(self.ports.iter_mut()) {
            // What lies in the ring when it is read has come by then, all of it at the same look.
            let mut look = None;
            let count = port
                .receive(TAKE, &mut |frame| {
                    let now = frame.stamp.unwrap_or_else(|| *look.get_or_insert_with(|| clock.now()));
                    reception.take(side, frame.bytes, now, now.saturating_sub(start));
                })
                .map_err(|e| EngineError::port(port, e))?;
            busy |= count > 0;
        }
        Ok(busy)
    }

    #[inline]
    fn send(&mut self, start: u64) -> Result<bool, EngineError> {
        let mut busy = false;
        for (sending, port) in self.sendings.iter_mut().zip(self.ports.iter_mut()) {
            let now = self.clock.now().saturating_sub(start);
            let flows = self.reception.learning.as_ref().map(|learning| &learning.table);
            let failed = |port: &T, e: PortError| EngineError::port(port, e);
            let mut written = 0;
            // What a port did not take is offered again before anything new is written.
            if !sending.has_pending() && sending.next_due() <= now {
                written = sending.write(port, now, flows).map_err(|e| failed(port, e))?;
                busy |= written > 0;
            }
            if written > 0 || sending.has_pending() {
                let clock = &self.clock;
                let (reception, looks) = (&mut self.reception, &mut self.looks);
                let flushed = sending.flush(port, || clock.now(), start, reception, looks);
                flushed.map_err(|e| failed(port, e))?;
            }
        }
        Ok(busy)
    }

    /// When taking ends, since the start: the timeout after the trial's time, or after the last frame if that was later.
    fn drain_until(&self) -> u64 {
        let sent = self.sendings.iter().filter_map(|sending| sending.last).max().unwrap_or(0);
        sent.max(self.end).saturating_add(nanoseconds(self.trial.timeout))
    }

    /// When something can happen next, since the start.
    fn next_moment(&self, at: &Moments) -> u64 {
        let due = self.sendings.iter().map(Sending::next_due).min().unwrap_or(NEVER);
        let event = self.ports.iter().filter_map(Transport::next_event).min();
        let event = event.map_or(NEVER, |moment| moment.saturating_sub(at.start));
        let sample = self.trial.sample_every.map_or(NEVER, |every| at.sampled + nanoseconds(every).max(1));
        due.min(event).min(sample).min(at.told + PROGRESS).min(at.last)
    }

    fn totals(&self, since: u64) -> Sample {
        let [left, right] = self.reception.flowed;
        Sample {
            at: Duration::from_nanos(since),
            sent: [left.sent, right.sent],
            received: [left.received, right.received],
            bytes: [left.bytes, right.bytes],
            lost: [0; 2],
        }
    }

    #[inline]
    fn sample(&mut self, at: &mut Moments, since: u64) {
        if let Some(every) = self.trial.sample_every
            && since >= at.sampled.saturating_add(nanoseconds(every).max(1))
        {
            self.close_sample(at, since);
        }
    }

    /// Enters what was added since the last sample. Until here they are sums.
    fn close_sample(&mut self, at: &mut Moments, since: u64) {
        if self.trial.sample_every.is_some()
            && since > at.sampled
            && self.samples.len() < self.samples.capacity()
        {
            at.sampled = since;
            self.samples.push(self.totals(since));
            self.marks.extend(self.reception.accounts.iter().map(|account| account.counts.sent));
        }
    }

    #[cold]
    fn tell(&mut self, watch: &mut dyn Watch, since: u64) -> Result<(), EngineError> {
        self.ports.iter_mut().for_each(Transport::tend);
        watch.at(Duration::from_nanos(since));
        if watch.progress(&self.totals(since)) { Ok(()) } else { Err(EngineError::Interrupted) }
    }
}

/// Sums at each moment become what was added in each piece; of the frames that were sent in it, those are lost that never came.
/// `marks` are the frames that each account had sent at each moment.
pub(crate) fn pieces(sums: &[Sample], marks: &[u64], accounts: &[Account]) -> Vec<Sample> {
    let mut before = Sample::default();
    let added = |now: [u64; 2], before: [u64; 2]| {
        let ([a, b], [c, d]) = (now, before);
        [a - c, b - d]
    };
    let none = vec![0; accounts.len()];
    let mut earlier = none.as_slice();
    let mut later = marks.chunks_exact(accounts.len().max(1));
    let piece = |sum: &Sample| {
        let mut piece = Sample {
            at: sum.at,
            sent: added(sum.sent, before.sent),
            received: added(sum.received, before.received),
            bytes: added(sum.bytes, before.bytes),
            lost: [0; 2],
        };
        let now = later.next().unwrap_or(earlier);
        for (account, (from, to)) in accounts.iter().zip(earlier.iter().zip(now)) {
            *at_mut(&mut piece.lost, account.arrives.other()) += account.missing(*from, *to);
        }
        (before, earlier) = (*sum, now);
        piece
    };
    sums.iter().map(piece).collect()
}
