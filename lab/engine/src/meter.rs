//! Delays of one stream's frames: when each was sent is kept, what it took when it comes is counted.
//!
//! Two ways of keeping, as the trial asks. *Tags* are some frames, evenly spread, each delay of which is told. For *all*
//! frames the moments of sending lie in a ring that is as long as frames are waited for, and delays go into a histogram of
//! three digits. Memory for both is there before the first frame is sent.

use hdrhistogram::Histogram;
use shoal_lab_plan::{Delays, Pace, Stamps, Stream};

use crate::jitter::{Jitter, WindowedAverage};
use crate::timeline::{NEVER, Timeline, nanoseconds};

/// Longest delay that a histogram tells apart: an hour.
const LONGEST: u64 = 3_600_000_000_000;
/// Frames come so much later than they are waited for: stamps are kept for this long, too.
const SLACK: u64 = 250_000_000;
/// Bytes of a histogram of three digits up to [`LONGEST`].
const HISTOGRAM: u64 = 34 * 1024 * 8;

/// A histogram's values that fit nowhere else are counted at its end.
pub(crate) fn histogram() -> Histogram<u64> {
    // The bounds are constants that the crate takes.
    Histogram::new_with_bounds(1, LONGEST, 3).unwrap_or_else(|_| unreachable!("constant bounds"))
}

/// In a [`Ring`]: the frame has come, and the rest is its delay.
const CAME: u64 = 1 << 63;

/// Moments at which frames were sent, by sequence; of frames that came, their delays.
#[derive(Debug)]
struct Ring {
    moments: Vec<u64>,
    mask: u64,
    next: u64,
}

impl Ring {
    fn length(timeline: &Timeline, patience: u64) -> u64 {
        timeline.most_in(patience.saturating_add(SLACK)).next_power_of_two()
    }

    fn new(length: u64) -> Self {
        Ring { moments: vec![NEVER; length as usize], mask: length - 1, next: 0 }
    }

    #[inline]
    fn sent(&mut self, sequence: u64, now: u64) {
        if let Some(moment) = self.moments.get_mut((sequence & self.mask) as usize) {
            *moment = now;
        }
        self.next = sequence + 1;
    }

    /// What is known of a frame; nothing if so many were sent since that it was forgotten.
    #[inline]
    fn slot(&self, sequence: u64) -> Option<u64> {
        if self.next.saturating_sub(sequence) > self.moments.len() as u64 {
            return None;
        }
        self.moments.get((sequence & self.mask) as usize).copied()
    }

    /// When a frame that has not come was sent.
    #[inline]
    fn moment(&self, sequence: u64) -> Option<u64> {
        self.slot(sequence).filter(|slot| slot & CAME == 0)
    }

    /// A frame came.
    #[inline]
    fn came(&mut self, sequence: u64, delay: u64) {
        if let Some(slot) = self.moments.get_mut((sequence & self.mask) as usize) {
            *slot = delay | CAME;
        }
    }

    /// The delay of a frame that has come.
    #[inline]
    fn delay(&self, sequence: u64) -> Option<u64> {
        let slot = self.slot(sequence).filter(|slot| sequence < self.next && *slot != NEVER)?;
        (slot & CAME != 0).then_some(slot & !CAME)
    }
}

/// Frames whose delay is told one by one.
#[derive(Debug, Default)]
struct Tags {
    /// Their numbers, rising.
    sequences: Vec<u64>,
    moments: Vec<u64>,
    delays: Vec<u64>,
    /// The first that was not sent.
    sending: usize,
    /// Where the next is expected to come.
    coming: usize,
}

impl Tags {
    #[inline]
    fn sent(&mut self, sequence: u64, now: u64) {
        if self.sequences.get(self.sending) == Some(&sequence) {
            if let Some(moment) = self.moments.get_mut(self.sending) {
                *moment = now;
            }
            self.sending += 1;
        }
    }

    /// Which tag a frame is.
    #[inline]
    fn find(&mut self, sequence: u64) -> Option<usize> {
        let is_between = |at: usize| {
            at.checked_sub(1).and_then(|before| self.sequences.get(before)).is_none_or(|s| *s < sequence)
                && self.sequences.get(at).is_none_or(|s| *s >= sequence)
        };
        // Most frames lie between the tag that came last and the next.
        if !is_between(self.coming) {
            self.coming = self.sequences.partition_point(|s| *s < sequence);
        }
        (self.sequences.get(self.coming) == Some(&sequence)).then_some(self.coming)
    }
}

/// The delays of one stream.
#[derive(Debug)]
pub(crate) struct Meter {
    ring: Option<Ring>,
    tags: Option<Tags>,
    /// Delays, and their differences upward and downward, if all are counted.
    histograms: Option<Box<[Histogram<u64>; 3]>>,
    count: u64,
    min: u64,
    max: u64,
    sum: u128,
    negative: u64,
    jitter: Jitter,
    average: WindowedAverage,
}

/// Tags that do not fit the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyTags {
    pub(crate) asked: u32,
    pub(crate) most: u64,
}

impl Meter {
    /// What `stream` needs of memory, in bytes.
    pub(crate) fn bytes(stream: &Stream, timeline: &Timeline, patience: u64, is_timed: bool) -> u64 {
        let ring = 8 * Ring::length(timeline, patience);
        match stream.stamps {
            Stamps::None if is_timed => ring,
            Stamps::None => 0,
            Stamps::Even { count, .. } => 24 * u64::from(count) + if is_timed { ring } else { 0 },
            Stamps::All => ring + 3 * HISTOGRAM,
        }
    }

    /// For `stream`, whose frames are waited for for `patience` nanoseconds; `is_timed` if frames that come late are to be
    /// told. None: the caller does not want to know.
    ///
    /// # Errors
    ///
    /// More tags than frames.
    pub(crate) fn new(
        stream: &Stream,
        timeline: &Timeline,
        patience: u64,
        is_timed: bool,
        duration: u64,
    ) -> Result<Option<Meter>, TooManyTags> {
        let is_all = stream.stamps == Stamps::All;
        let tags = match stream.stamps {
            Stamps::Even { after, count } => {
                let sequences = tags(stream, timeline, nanoseconds(after), count, duration)?;
                let blank = vec![NEVER; sequences.len()];
                Some(Tags { moments: blank.clone(), delays: blank, sequences, ..Tags::default() })
            }
            Stamps::None | Stamps::All => None,
        };
        if !is_all && !is_timed && tags.is_none() {
            return Ok(None);
        }
        let ring = (is_all || is_timed).then(|| Ring::new(Ring::length(timeline, patience)));
        Ok(Some(Meter {
            ring,
            tags,
            histograms: is_all.then(|| Box::new([histogram(), histogram(), histogram()])),
            count: 0,
            min: NEVER,
            max: 0,
            sum: 0,
            negative: 0,
            jitter: Jitter::default(),
            average: WindowedAverage::default(),
        }))
    }

    /// Frame `sequence` was taken by the port at `now`.
    #[inline]
    pub(crate) fn sent(&mut self, sequence: u64, now: u64) {
        if let Some(tags) = &mut self.tags {
            tags.sent(sequence, now);
        }
        if let Some(ring) = &mut self.ring {
            ring.sent(sequence, now);
        }
    }

    /// How long frame `sequence` was under way when it came at `now`, if it is known of all frames.
    #[inline]
    pub(crate) fn age(&self, sequence: u64, now: u64) -> Option<u64> {
        self.ring.as_ref()?.moment(sequence).map(|sent| now.saturating_sub(sent))
    }

    /// Frame `sequence` came for the first time, at `now`; `since_start` for the average's windows.
    #[inline]
    pub(crate) fn came(&mut self, sequence: u64, now: u64, since_start: u64) {
        let tag = match &mut self.tags {
            None => None,
            Some(tags) => match tags.find(sequence) {
                Some(tag) => Some(tag),
                None => return,
            },
        };
        let sent = match (tag, &self.tags, &self.ring) {
            (Some(tag), Some(tags), _) => tags.moments.get(tag).copied(),
            (_, _, Some(ring)) if self.histograms.is_some() => ring.moment(sequence),
            _ => None,
        };
        let Some(sent) = sent.filter(|sent| *sent != NEVER) else { return };
        self.negative += u64::from(now < sent);
        let delay = now.saturating_sub(sent);
        if let Some((tag, tags)) = tag.zip(self.tags.as_mut())
            && let Some(slot) = tags.delays.get_mut(tag)
        {
            *slot = delay;
        }
        self.add(sequence, delay, since_start);
    }

    #[inline]
    fn add(&mut self, sequence: u64, delay: u64, since_start: u64) {
        self.count += 1;
        self.min = self.min.min(delay);
        self.max = self.max.max(delay);
        self.sum += u128::from(delay);
        self.jitter.add(delay);
        self.average.add(since_start, delay);
        let (Some(histograms), Some(ring)) = (&mut self.histograms, &mut self.ring) else { return };
        let [delays, rises, falls] = &mut **histograms;
        delays.saturating_record(delay);
        ring.came(sequence, delay);
        let mut differ = |before: u64, after: u64| {
            if after >= before {
                rises.saturating_record(after - before);
            } else {
                falls.saturating_record(before - after);
            }
        };
        // RFC 3393's selection: neighbours in the order of sending, with nothing lost between them. Whichever of the two comes
        // last finds the other; were only those taken that arrive one after the other, large differences would be missing.
        if let Some(before) = sequence.checked_sub(1).and_then(|before| ring.delay(before)) {
            differ(before, delay);
        }
        if let Some(after) = ring.delay(sequence + 1) {
            differ(delay, after);
        }
    }

    /// What came of it; none if only ages were asked for. `uncertainty` is that of the whole engine.
    pub(crate) fn outcome(&self, uncertainty: u64) -> Option<Delays> {
        if self.tags.is_none() && self.histograms.is_none() {
            return None;
        }
        let told = |delay: &u64| (*delay != NEVER).then_some(*delay);
        let histogram = |i: usize| self.histograms.as_ref().and_then(|all| all.get(i));
        let falls = histogram(2).map(|h| recorded(h, 0, NEVER)).unwrap_or_default();
        let rises = histogram(1).map(|h| recorded(h, 0, NEVER)).unwrap_or_default();
        let falling = falls.into_iter().rev().map(|(value, n)| (-(value as i64), n));
        let variation = falling.chain(rises.into_iter().map(|(value, n)| (value as i64, n))).collect();
        Some(Delays {
            count: self.count,
            min: if self.count == 0 { 0 } else { self.min },
            max: self.max,
            mean: if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 },
            negative: self.negative,
            tags: self.tags.as_ref().map(|t| t.delays.iter().map(told).collect()).unwrap_or_default(),
            histogram: histogram(0).map(|h| recorded(h, self.min, self.max)).unwrap_or_default(),
            variation,
            jitter: self.jitter.value(),
            trex_average: self.average.value(),
            uncertainty,
        })
    }
}

/// Values and how often, rising; a value is the middle of what the histogram does not tell apart, but within `min` and
/// `max`, which are known exactly.
fn recorded(histogram: &Histogram<u64>, min: u64, max: u64) -> Vec<(u64, u64)> {
    let value = |v: u64| {
        // Small values are exact.
        let middle = if histogram.equivalent_range(v) == 1 { v } else { histogram.median_equivalent(v) };
        middle.clamp(min, max.max(min))
    };
    histogram.iter_recorded().map(|v| (value(v.value_iterated_to()), v.count_at_value())).collect()
}

/// Tag i is frame `after * r + floor(i * r * (D - after) / count)` of a steady stream. Streams of other paces have no
/// single r: their frames after the first moment of tagging are shared out evenly by number.
fn tags(
    stream: &Stream,
    timeline: &Timeline,
    after: u64,
    count: u32,
    duration: u64,
) -> Result<Vec<u64>, TooManyTags> {
    let total = timeline.total();
    let too_many = |most| TooManyTags { asked: count, most };
    let first = match &stream.pace {
        Pace::Steady { rate, after: begin } => rate.frames_in(after.saturating_sub(nanoseconds(*begin))),
        Pace::Steps { .. } | Pace::Bursts { .. } => {
            let (mut low, mut high) = (0, total);
            while low < high {
                let middle = low + (high - low) / 2;
                let is_before = timeline.due(middle).is_none_or(|due| due < after);
                if is_before { low = middle + 1 } else { high = middle }
            }
            // Where dues are not known, all frames can be tagged.
            if timeline.due(0).is_none() { 0 } else { low }
        }
    };
    let room = total.saturating_sub(first);
    if u64::from(count) > room {
        return Err(too_many(room));
    }
    let spread = |i: u32| -> u64 {
        let offset = match &stream.pace {
            Pace::Steady { rate, after: begin } => {
                let span = duration.saturating_sub(after.max(nanoseconds(*begin)));
                u128::from(i) * u128::from(rate.frames) * u128::from(span)
                    / (u128::from(rate.seconds.max(1)) * 1_000_000_000 * u128::from(count))
            }
            Pace::Steps { .. } | Pace::Bursts { .. } => u128::from(i) * u128::from(room) / u128::from(count),
        };
        first + offset as u64
    };
    Ok((0..count).map(|i| spread(i).min(total - 1)).collect())
}

#[cfg(test)]
#[path = "meter_tests.rs"]
mod tests;
