//! What became of one stream's frames.

use std::time::Duration;

use shoal_lab_plan::{Counts, FCS, Gap, Side, Stream, StreamOutcome, Tag};

use crate::meter::Meter;
use crate::sequence::{Arrival, Sequences};
use crate::timeline::Timeline;

/// The longest time without a frame.
#[derive(Clone, Copy, Debug, Default)]
struct Silence {
    from: u64,
    to: u64,
    /// Sequence numbers that were expected in it.
    first: u64,
    last: u64,
}

/// One stream's account.
#[derive(Debug)]
pub(crate) struct Account {
    /// Where its frames should arrive.
    pub(crate) arrives: Side,
    pub(crate) counts: Counts,
    name: String,
    size: u32,
    expected: bool,
    is_numbered: bool,
    sequences: Sequences,
    meter: Option<Meter>,
    /// Later than this is late.
    timeout: Option<u64>,
    /// When the last frame came, since the start.
    last: Option<u64>,
    silence: Silence,
}

impl Account {
    pub(crate) fn new(
        stream: &Stream,
        timeline: &Timeline,
        meter: Option<Meter>,
        timeout: Option<Duration>,
    ) -> Account {
        let is_numbered = matches!(stream.tag, Tag::Signed { .. });
        let requested = timeline.total();
        Account {
            arrives: stream.from.other(),
            counts: Counts { requested, ..Counts::default() },
            name: stream.name.clone(),
            size: stream.frame.len() as u32 + FCS,
            expected: stream.expected,
            is_numbered,
            sequences: Sequences::new(if is_numbered { requested } else { 0 }),
            meter,
            timeout: timeout.map(crate::timeline::nanoseconds),
            last: None,
            silence: Silence::default(),
        }
    }

    /// Frame `sequence` was taken by the port at `now`.
    #[inline]
    pub(crate) fn sent(&mut self, sequence: u64, now: u64) {
        self.counts.sent += 1;
        if let Some(meter) = &mut self.meter {
            meter.sent(sequence, now);
        }
    }

    /// A frame with number `sequence` came where it should; whether it counts as received.
    #[inline]
    pub(crate) fn came(&mut self, sequence: u64, length: usize, now: u64, since_start: u64) -> bool {
        let expected = self.sequences.expected();
        match self.sequences.take(sequence) {
            Arrival::InOrder => {}
            Arrival::Reordered => self.counts.reordered += 1,
            Arrival::Again => {
                self.counts.duplicates += 1;
                return false;
            }
            // A number that was never given is as good as a payload that was changed.
            Arrival::Impossible => {
                self.counts.corrupt += 1;
                return false;
            }
        }
        if let (Some(timeout), Some(meter)) = (self.timeout, &self.meter)
            && meter.age(sequence, now).is_none_or(|age| age > timeout)
        {
            self.counts.late += 1;
            return false;
        }
        if let Some(meter) = &mut self.meter {
            meter.came(sequence, now, since_start);
        }
        if let Some(before) = self.last
            && since_start.saturating_sub(before) > self.silence.to - self.silence.from
        {
            self.silence = Silence { from: before, to: since_start, first: expected, last: sequence };
        }
        self.last = Some(since_start);
        self.received(length);
        true
    }

    /// A frame without a number came where it should.
    #[inline]
    pub(crate) fn came_unnumbered(&mut self, length: usize, since_start: u64) {
        if let Some(before) = self.last
            && since_start.saturating_sub(before) > self.silence.to - self.silence.from
        {
            self.silence = Silence { from: before, to: since_start, ..Silence::default() };
        }
        self.last = Some(since_start);
        self.received(length);
    }

    #[inline]
    fn received(&mut self, length: usize) {
        self.counts.received += 1;
        self.counts.bytes += length as u64 + u64::from(FCS);
    }

    /// Whether frame `sequence` has come.
    pub(crate) fn is_missing(&self, sequence: u64) -> bool {
        self.is_numbered && self.sequences.missing(sequence, sequence + 1) == 1
    }

    /// How many of the frames from number `from` up to, not including, `to` have not come where they should. None of a stream
    /// whose frames are not expected, or have no numbers.
    pub(crate) fn missing(&self, from: u64, to: u64) -> u64 {
        if self.is_numbered && self.expected { self.sequences.missing(from, to) } else { 0 }
    }

    /// Whether its frames have numbers.
    pub(crate) fn is_numbered(&self) -> bool {
        self.is_numbered
    }

    /// All of it. `uncertainty` is how long a frame may have lain before it was seen.
    pub(crate) fn outcome(&self, timeline: &Timeline, uncertainty: u64) -> StreamOutcome {
        let Silence { from, to, first, last } = self.silence;
        let gap = (to > from).then(|| Gap {
            from: Duration::from_nanos(from),
            to: Duration::from_nanos(to),
            lost: self.sequences.missing(first, last),
        });
        let last_lost = self.sequences.last_missing(self.counts.sent).filter(|_| self.is_numbered);
        StreamOutcome {
            name: self.name.clone(),
            from: Some(self.arrives.other()),
            size: self.size,
            expected: self.expected,
            counts: self.counts,
            delays: self.meter.as_ref().and_then(|meter| meter.outcome(uncertainty)),
            gap,
            last_lost: last_lost.and_then(|sequence| timeline.due(sequence)).map(Duration::from_nanos),
        }
    }
}
