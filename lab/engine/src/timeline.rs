//! When each frame of a stream is due: integers from the first to the last, so that nothing drifts.
//!
//! A pace is cut into *segments* of one rate. Within a segment, frame k is due at `start + k * seconds * 10^9 / frames`
//! nanoseconds; the whole part and the remainder of one step are added for each frame, so a frame costs two additions, and
//! the sum is the exact quotient, rounded up: no frame is sent before it is due.

use std::time::Duration;

use shoal_lab_plan::{Pace, Rate};

/// Moment of a frame that never comes.
pub(crate) const NEVER: u64 = u64::MAX;
const SECOND: u128 = 1_000_000_000;

/// Frames at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    /// When the first is due, in nanoseconds since the trial's start.
    start: u64,
    /// Their pace; all at once if none.
    rate: Option<Rate>,
    /// How many, at least one.
    frames: u64,
    /// The first's sequence number.
    first: u64,
}

/// Where segments come from.
#[derive(Clone, Debug)]
enum Plan {
    /// In order of time.
    Listed(Vec<Segment>),
    /// Bursts that follow each other with the same distance, of which there may be millions.
    Repeated { like: Segment, times: u64, period: u64 },
    /// Bursts as fast as the port takes them: each begins so long after the last frame of the one before.
    Chained { frames: u64, times: u64, gap: u64, after: u64 },
}

/// The moments of one stream's frames.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    plan: Plan,
    total: u64,
    /// When the next frame is due.
    next: u64,
    /// The next frame's number.
    sequence: u64,
    /// Frames of the segment in hand that follow the next one.
    left: u64,
    /// The segment's number.
    at: u64,
    exact: Exact,
}

/// A moment as whole nanoseconds and a fraction of one, and the step from frame to frame.
#[derive(Clone, Copy, Debug, Default)]
struct Exact {
    whole: u64,
    part: u64,
    step: u64,
    step_part: u64,
    parts: u64,
}

impl Exact {
    fn new(start: u64, rate: Option<Rate>) -> Self {
        let Some(rate) = rate.filter(|rate| rate.frames > 0) else {
            return Exact { whole: start, parts: 1, ..Exact::default() };
        };
        let span = u128::from(rate.seconds.max(1)) * SECOND;
        let frames = u128::from(rate.frames);
        let narrow = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
        Exact {
            whole: start,
            part: 0,
            step: narrow(span / frames),
            step_part: narrow(span % frames),
            parts: rate.frames,
        }
    }

    #[inline]
    fn step(&mut self) {
        self.whole = self.whole.saturating_add(self.step);
        // A sum below 2^65 would need more than 9 * 10^18 frames a second.
        self.part = self.part.saturating_add(self.step_part);
        if self.part >= self.parts {
            self.part -= self.parts;
            self.whole = self.whole.saturating_add(1);
        }
    }

    /// The first whole nanosecond that is not before it.
    #[inline]
    fn moment(&self) -> u64 {
        self.whole.saturating_add(u64::from(self.part > 0))
    }
}

/// Nanoseconds of a duration; 584 years are as good as for ever.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// How long `frames` frames take at `rate`, rounded up.
fn span(frames: u64, rate: Rate) -> u64 {
    if rate.frames == 0 {
        return NEVER;
    }
    let time = u128::from(frames) * u128::from(rate.seconds.max(1)) * SECOND;
    u64::try_from(time.div_ceil(u128::from(rate.frames))).unwrap_or(NEVER)
}

impl Timeline {
    /// The moments of `pace` in a trial of `duration`.
    pub(crate) fn new(pace: &Pace, duration: Duration) -> Self {
        let end = nanoseconds(duration);
        let plan = match pace {
            Pace::Steady { rate, after } => listed(&[(nanoseconds(*after), *rate)], end),
            Pace::Steps { steps } => {
                let steps: Vec<_> = steps.iter().map(|step| (nanoseconds(step.at), step.rate)).collect();
                listed(&steps, end)
            }
            Pace::Bursts { frames, bursts, rate, gap, after } => {
                let (after, gap, times) = (nanoseconds(*after), nanoseconds(*gap), (*bursts).max(1));
                match rate {
                    _ if *frames == 0 => Plan::Listed(Vec::new()),
                    Some(rate) if rate.frames == 0 => Plan::Listed(Vec::new()),
                    Some(rate) => Plan::Repeated {
                        like: Segment { start: after, rate: Some(*rate), frames: *frames, first: 0 },
                        times,
                        period: span(*frames, *rate).saturating_add(gap),
                    },
                    None => Plan::Chained { frames: *frames, times, gap, after },
                }
            }
        };
        let total = match &plan {
            Plan::Listed(segments) => segments.last().map_or(0, |last| last.first + last.frames),
            Plan::Repeated { like, times, .. } => like.frames.saturating_mul(*times),
            Plan::Chained { frames, times, .. } => frames.saturating_mul(*times),
        };
        let exact = Exact::default();
        let mut line = Timeline { plan, total, next: NEVER, sequence: 0, left: 0, at: 0, exact };
        line.enter(0);
        line
    }

    /// Frames in all.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// When the next frame is due, in nanoseconds since the trial's start; [`NEVER`] after the last.
    #[inline]
    pub(crate) fn next_due(&self) -> u64 {
        self.next
    }

    /// The next frame's number.
    #[inline]
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Frames of the segment in hand that are due at `until`, at most `most`.
    #[inline]
    pub(crate) fn due_until(&self, until: u64, most: usize) -> usize {
        let (mut exact, mut next, mut count) = (self.exact, self.next, 0);
        while count < most && next <= until && count as u64 <= self.left {
            exact.step();
            next = exact.moment();
            count += 1;
        }
        count
    }

    /// The next frame is sent at `now`: on to the one after it.
    #[inline]
    pub(crate) fn advance(&mut self, now: u64) {
        self.sequence += 1;
        if self.left > 0 {
            self.left -= 1;
            self.exact.step();
            self.next = self.exact.moment();
        } else {
            self.at += 1;
            self.enter(now);
        }
    }

    /// The segment in hand begins.
    fn enter(&mut self, now: u64) {
        let Some(segment) = self.segment(self.at, now) else {
            self.next = NEVER;
            return;
        };
        self.exact = Exact::new(segment.start, segment.rate);
        self.left = segment.frames - 1;
        self.next = self.exact.moment();
    }

    fn segment(&self, at: u64, now: u64) -> Option<Segment> {
        match &self.plan {
            Plan::Listed(segments) => segments.get(usize::try_from(at).ok()?).copied(),
            Plan::Repeated { like, times, period } => (at < *times).then(|| Segment {
                start: like.start.saturating_add(period.saturating_mul(at)),
                first: like.frames * at,
                ..*like
            }),
            Plan::Chained { frames, times, gap, after } => (at < *times).then(|| Segment {
                start: if at == 0 { *after } else { now.saturating_add(*gap) },
                rate: None,
                frames: *frames,
                first: frames * at,
            }),
        }
    }

    /// When frame `sequence` is due; none if that depends on how fast the port is.
    pub(crate) fn due(&self, sequence: u64) -> Option<u64> {
        let segment = match &self.plan {
            Plan::Listed(segments) => {
                let after = segments.partition_point(|segment| segment.first <= sequence);
                *segments.get(after.checked_sub(1)?)?
            }
            Plan::Repeated { like, .. } => self.segment(sequence / like.frames, 0)?,
            Plan::Chained { .. } => return None,
        };
        let rate = segment.rate?;
        Some(segment.start.saturating_add(span(sequence - segment.first, rate)))
    }

    /// When the first frame is due, and when the last one's time ends; none of the second if that depends on how fast the
    /// port is.
    pub(crate) fn extent(&self, duration: Duration) -> Option<(u64, Option<u64>)> {
        let end = nanoseconds(duration);
        match &self.plan {
            Plan::Listed(segments) => Some((segments.first()?.start, Some(end))),
            Plan::Repeated { like, times, period } => {
                let last = like.start.saturating_add(period.saturating_mul(times - 1));
                Some((like.start, Some(last.saturating_add(span(like.frames, like.rate?)))))
            }
            Plan::Chained { after, .. } => Some((*after, None)),
        }
    }

    /// Most frames that are due in any `nanoseconds`.
    pub(crate) fn most_in(&self, nanoseconds: u64) -> u64 {
        let most = match &self.plan {
            Plan::Listed(segments) => {
                // Neighbours of different rates: the sum is at most what the faster would send.
                let rates = segments.iter().filter_map(|segment| segment.rate);
                rates.map(|rate| rate.frames_in(nanoseconds).saturating_add(1)).max().unwrap_or(0)
            }
            Plan::Repeated { like, .. } => like.rate.map_or(0, |rate| rate.frames_in(nanoseconds) + 1),
            Plan::Chained { .. } => self.total,
        };
        most.min(self.total)
    }
}

/// Segments of rates that hold until the next begins or the trial ends: each has the whole frames of its time.
fn listed(steps: &[(u64, Rate)], end: u64) -> Plan {
    let mut segments = Vec::with_capacity(steps.len());
    let mut first = 0;
    for (i, (start, rate)) in steps.iter().enumerate() {
        let until = steps.get(i + 1).map_or(end, |(next, _)| (*next).min(end));
        let frames = rate.frames_in(until.saturating_sub(*start));
        if frames > 0 {
            segments.push(Segment { start: *start, rate: Some(*rate), frames, first });
            first += frames;
        }
    }
    Plan::Listed(segments)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shoal_lab_plan::Step;

    use super::*;

    fn steady(rate: Rate, seconds: u64) -> Timeline {
        Timeline::new(&Pace::Steady { rate, after: Duration::ZERO }, Duration::from_secs(seconds))
    }

    fn moments(line: &mut Timeline) -> Vec<u64> {
        let mut all = Vec::new();
        while line.next_due() != NEVER {
            all.push(line.next_due());
            line.advance(line.next_due());
        }
        all
    }

    #[test]
    fn exactly_the_frames_of_the_duration_are_due_at_odd_rates() {
        for rate in [999, 1_000, 1_001, 99_991, 100_003, 999_983, 1_000_003] {
            let mut line = steady(Rate::per_second(rate), 10);
            assert_eq!(line.total(), rate * 10);
            let (mut count, mut last) = (0, 0);
            while line.next_due() != NEVER {
                last = line.next_due();
                line.advance(last);
                count += 1;
            }
            assert_eq!(count, rate * 10);
            // The last is due one frame's time before the end, to the nanosecond.
            assert_eq!(last, (u128::from(rate * 10 - 1) * SECOND).div_ceil(u128::from(rate)) as u64);
        }
    }

    #[test]
    fn the_sum_of_steps_is_the_exact_quotient() {
        let rate = Rate { frames: 1_000_003, seconds: 7 };
        let mut line = steady(rate, 3);
        for k in 0..line.total() {
            let exact = (u128::from(k) * 7 * SECOND).div_ceil(1_000_003) as u64;
            assert_eq!(line.next_due(), exact, "frame {k}");
            assert_eq!(line.due(k), Some(exact));
            line.advance(exact);
        }
        assert_eq!(line.next_due(), NEVER);
    }

    #[test]
    fn a_step_holds_until_the_next_begins() {
        let at = |ms, fps| Step { at: Duration::from_millis(ms), rate: Rate::per_second(fps) };
        let pace = Pace::Steps { steps: vec![at(0, 1000), at(3, 0), at(5, 500)] };
        let mut line = Timeline::new(&pace, Duration::from_millis(10));
        let ms: Vec<_> = [0, 1, 2, 5, 7].iter().map(|ms| ms * 1_000_000).collect();
        assert_eq!(moments(&mut line), ms);
        assert_eq!(line.total(), 5);
        assert_eq!(line.due(3), Some(5_000_000));
    }

    #[test]
    fn bursts_have_their_gap_between_the_end_of_one_and_the_start_of_the_next() {
        let (gap, after) = (Duration::from_micros(10), Duration::from_micros(1));
        let pace = Pace::Bursts { frames: 2, bursts: 2, rate: Some(Rate::per_second(1_000_000)), gap, after };
        let mut line = Timeline::new(&pace, Duration::from_secs(1));
        assert_eq!(moments(&mut line), [1_000, 2_000, 13_000, 14_000]);
        assert_eq!(line.due(2), Some(13_000));
        assert_eq!(line.extent(Duration::from_secs(1)), Some((1_000, Some(15_000))));
    }

    #[test]
    fn bursts_without_a_rate_follow_what_the_port_took() {
        let gap = Duration::from_micros(10);
        let pace = Pace::Bursts { frames: 2, bursts: 2, rate: None, gap, after: Duration::ZERO };
        let mut line = Timeline::new(&pace, Duration::from_secs(1));
        assert_eq!(line.next_due(), 0);
        line.advance(70);
        assert_eq!(line.next_due(), 0);
        line.advance(5_000);
        assert_eq!(line.next_due(), 15_000);
        assert_eq!((line.due(1), line.total()), (None, 4));
    }

    #[test]
    fn nothing_is_due_at_a_rate_of_nothing() {
        assert_eq!((steady(Rate::ZERO, 10).total(), steady(Rate::ZERO, 10).next_due()), (0, NEVER));
        let late = Pace::Steady { rate: Rate::per_second(10), after: Duration::from_secs(2) };
        assert_eq!(Timeline::new(&late, Duration::from_secs(1)).total(), 0);
    }

    proptest! {
        #[test]
        fn no_frame_is_early_and_none_is_a_nanosecond_late(frames in 1u64..20_000, seconds in 1u64..50) {
            let rate = Rate { frames, seconds };
            let mut line = steady(rate, 2);
            prop_assert_eq!(line.total(), rate.frames_in(2_000_000_000));
            for (k, moment) in moments(&mut line).into_iter().enumerate() {
                let exact = k as u128 * u128::from(seconds) * SECOND;
                let late = u128::from(moment) * u128::from(frames);
                prop_assert!(late >= exact && late < exact + u128::from(frames));
            }
        }
    }
}
