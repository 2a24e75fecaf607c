//! How a queue of a plugin's device wakes the thread that sleeps: tried before it is believed.
//!
//! A descriptor may tell of nothing, or of what is not there, and devices hold interrupts back for some time after the one
//! before. So the thread looks once in a millisecond, too, until the descriptor has reported packets, and for a while
//! after each packet and each report. One that goes on telling of nothing is left alone for a second. A wrong one costs
//! a millisecond that way, and neither a packet nor a processor.

use std::cell::Cell;
use std::time::Duration;

use shoal_graph::clock::Time;

use crate::sys::Arm;

/// Longest sleep on a descriptor that is not believed.
const LOOK: Duration = Duration::from_millis(1);
/// For how long after a packet it is looked as often: more than devices hold interrupts back.
const SETTLE: Duration = Duration::from_millis(20);
/// For how long after a word of a packet that is not there: it may be behind. A driver of TAPs finds none before a signal
/// has come to some other thread.
const BEHIND: Duration = Duration::from_millis(200);
/// Times in sequence that it tells of nothing before it is left alone.
const EMPTY: u32 = 32;
/// For how long.
const ALONE: Duration = Duration::from_secs(1);
/// Times in sequence that packets come without a word of it before it is believed no more.
const MISSED: u32 = 8;

/// What was done before a sleep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Before {
    /// Nothing: there was none.
    #[default]
    Awake,
    /// The descriptor tells of packets.
    Armed,
    /// The plugin says there are packets already.
    Packets,
    /// Nothing tells of packets.
    Deaf,
}

/// What a sleep came to, if it is to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SleepOutcome {
    /// The descriptor reported packets.
    Interrupt,
    /// The descriptor, or the plugin, reported packets and there were none.
    Empty,
    /// As often as that in sequence: it is left alone now.
    Enough,
    /// There were packets and it reported none.
    Missed,
}

/// What is known of a queue's descriptor.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    before: Cell<Before>,
    believed: bool,
    empty: u32,
    missed: u32,
    /// Until when it is left alone.
    alone: Time,
    /// Until when it is looked often all the same.
    settled: Time,
    /// Until when packets are those that it reported in vain.
    told_until: Time,
}

impl Wake {
    /// Before a sleep: when the queue must be looked at again at the latest; `None` leaves it to the descriptor, or, when
    /// that is not [waited on](Self::is_armed), to the runtime.
    pub(crate) fn before_sleep(&self, now: Time, arm: impl FnOnce() -> Arm) -> Option<Time> {
        if self.before.get() == Before::Awake {
            self.before.set(if now < self.alone { Before::Deaf } else { arm().into() });
        }
        match self.before.get() {
            Before::Awake | Before::Deaf => None,
            Before::Packets => Some(now),
            Before::Armed if self.believed && now >= self.settled => None,
            Before::Armed => Some(now.after(LOOK)),
        }
    }

    /// Whether the descriptor has reported packets lately.
    pub(crate) fn is_believed(&self) -> bool {
        self.believed
    }

    /// Whether the descriptor is waited on.
    pub(crate) fn is_armed(&self) -> bool {
        matches!(self.before.get(), Before::Armed | Before::Packets)
    }

    /// The sleep is over: what was done before it.
    #[inline]
    pub(crate) fn after_sleep(&self) -> Before {
        self.before.take()
    }

    /// Packets came.
    #[inline]
    pub(crate) fn packets(&mut self, now: Time) {
        self.settled = now.after(SETTLE);
    }

    /// Whether the queue had packets after a sleep, and whether the descriptor was readable.
    pub(crate) fn judge(
        &mut self,
        before: Before,
        told: bool,
        packets: bool,
        now: Time,
    ) -> Option<SleepOutcome> {
        match (before, told, packets) {
            (Before::Awake | Before::Deaf, ..) | (Before::Armed, false, false) => None,
            (Before::Packets, _, true) => {
                self.empty = 0;
                None
            }
            (Before::Armed, true, true) => {
                (self.believed, self.empty, self.missed) = (true, 0, 0);
                Some(SleepOutcome::Interrupt)
            }
            // It has reported them already, before they could be found.
            (Before::Armed, false, true) if self.empty > 0 && now <= self.told_until => {
                self.empty = 0;
                None
            }
            (Before::Armed, false, true) => {
                self.missed = self.missed.saturating_add(1);
                self.believed &= self.missed < MISSED;
                Some(SleepOutcome::Missed)
            }
            (Before::Armed, true, false) | (Before::Packets, _, false) => {
                self.told_until = now.after(BEHIND);
                self.settled = self.told_until;
                self.empty += 1;
                if self.empty < EMPTY {
                    return Some(SleepOutcome::Empty);
                }
                (self.believed, self.empty) = (false, 0);
                self.alone = now.after(ALONE);
                Some(SleepOutcome::Enough)
            }
        }
    }
}

impl From<Arm> for Before {
    fn from(arm: Arm) -> Self {
        match arm {
            Arm::Armed => Before::Armed,
            Arm::Packets => Before::Packets,
            Arm::Cannot => Before::Deaf,
        }
    }
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A sleep on an armed descriptor.
    fn sleep(wake: &mut Wake, now: u64, told: bool, packets: bool) -> (Option<Time>, Option<SleepOutcome>) {
        let until = wake.before_sleep(Time(now), || Arm::Armed);
        let before = wake.after_sleep();
        if packets {
            wake.packets(Time(now));
        }
        (until, wake.judge(before, told, packets, Time(now)))
    }

    #[test]
    fn a_descriptor_is_believed_when_it_has_told_of_packets() {
        let mut wake = Wake::default();
        let often = |now: u64| Some(Time(now + MS));
        assert_eq!(sleep(&mut wake, 5, false, false), (often(5), None));
        assert!(!wake.is_believed());
        assert_eq!(sleep(&mut wake, 100 * MS, true, true), (often(100 * MS), Some(SleepOutcome::Interrupt)));
        assert!(wake.is_believed());
        // The device may hold the next interrupt back.
        assert_eq!(sleep(&mut wake, 119 * MS, false, false).0, often(119 * MS));
        assert_eq!(sleep(&mut wake, 120 * MS, false, false).0, None);
        // A packet that it tells of before it can be found.
        assert_eq!(sleep(&mut wake, 500 * MS, true, false), (None, Some(SleepOutcome::Empty)));
        assert_eq!(sleep(&mut wake, 501 * MS, false, true), (often(501 * MS), None));
        // The one after that was not reported.
        assert_eq!(sleep(&mut wake, 550 * MS, false, true), (None, Some(SleepOutcome::Missed)));
        assert_eq!(sleep(&mut wake, 600 * MS, true, true).1, Some(SleepOutcome::Interrupt));
        // However often.
        for n in 0..20 {
            assert_eq!(sleep(&mut wake, (610 + n) * MS, true, false).1, Some(SleepOutcome::Empty), "{n}");
            assert_eq!(sleep(&mut wake, (611 + n) * MS, false, true).1, None, "{n}");
            assert!(wake.is_believed());
        }
        // But not for ever.
        assert_eq!(sleep(&mut wake, 650 * MS, true, false).1, Some(SleepOutcome::Empty));
        assert_eq!(sleep(&mut wake, 900 * MS, false, true).1, Some(SleepOutcome::Missed));
        assert_eq!(sleep(&mut wake, 910 * MS, true, true).1, Some(SleepOutcome::Interrupt));
        // Packets without a word of it, again and again.
        for n in 0..8 {
            let now = (1000 + 100 * n) * MS;
            assert_eq!(sleep(&mut wake, now, false, true), (None, Some(SleepOutcome::Missed)), "{n}");
        }
        assert_eq!(sleep(&mut wake, 9000 * MS, false, false).0, often(9000 * MS));
        assert_eq!(sleep(&mut wake, 9001 * MS, true, true).1, Some(SleepOutcome::Interrupt));
        assert_eq!(sleep(&mut wake, 9999 * MS, false, false).0, None);
    }

    #[test]
    fn one_that_tells_of_nothing_is_left_alone_for_a_second() {
        let mut wake = Wake::default();
        for round in 0..3 {
            let now = (10 + 2000 * round) * MS;
            for _ in 0..31 {
                assert_eq!(sleep(&mut wake, now, true, false).1, Some(SleepOutcome::Empty));
            }
            assert_eq!(sleep(&mut wake, now, true, false).1, Some(SleepOutcome::Enough));
            let asked = |now: u64| {
                let until = wake.before_sleep(Time(now), || panic!("it is left alone"));
                (until, wake.is_armed(), wake.after_sleep())
            };
            assert_eq!(asked(now), (None, false, Before::Deaf));
            assert_eq!(asked(now + 999 * MS), (None, false, Before::Deaf));
        }
        // A packet between makes it honest again.
        for n in 0..200 {
            let came = sleep(&mut wake, 9000 * MS, true, n % 31 == 30).1;
            assert_ne!(came, Some(SleepOutcome::Enough));
        }
    }

    #[test]
    fn a_plugin_that_promises_packets_and_has_none_is_left_alone_too() {
        let mut wake = Wake::default();
        let mut promised = |packets| {
            assert_eq!(wake.before_sleep(Time(7), || Arm::Packets), Some(Time(7)));
            let before = wake.after_sleep();
            wake.judge(before, false, packets, Time(7))
        };
        assert_eq!(promised(true), None);
        for _ in 0..31 {
            assert_eq!(promised(false), Some(SleepOutcome::Empty));
        }
        assert_eq!(promised(false), Some(SleepOutcome::Enough));
    }

    #[test]
    fn what_cannot_be_armed_is_polled_once_a_sleep_and_never_waited_for() {
        let mut wake = Wake::default();
        assert_eq!(wake.before_sleep(Time(7), || Arm::Cannot), None);
        assert_eq!(wake.before_sleep(Time(7), || panic!("it was asked")), None);
        assert!(!wake.is_armed());
        let before = wake.after_sleep();
        assert_eq!(wake.judge(before, false, true, Time(7)), None);
        assert_eq!(wake.after_sleep(), Before::Awake);
    }
}
