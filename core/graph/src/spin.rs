//! How long a thread without packets goes on looking before it rests: as long as looking pays.
//!
//! To look costs what it lasts; to sleep and be woken costs some tens of microseconds, of the processor and of the
//! thread that wakes it. So a thread looks for about as long as one sleep costs, if packets have come within that
//! lately, and sleeps at once if they have not. Polling that finds nothing is tried again now and then, because a load
//! may grow.

use std::time::Duration;

use crate::clock::Time;

/// How long a thread looks on, at most.
pub(crate) const SPIN_TIME: Duration = Duration::from_micros(50);
/// The same in empty rounds: a clock that stands still ends no time.
const SPIN_ROUNDS: u32 = 10_000;
/// How many looks in vain are forgiven to one that has paid often.
const MOST_CREDIT: u8 = 8;
/// What a look that paid adds.
const HIT_CREDIT: u8 = 2;
/// Without credit, one rest in so many begins with a look.
const TRY_EVERY: u8 = 16;

/// Whether a thread should look again, by what became of earlier looks.
#[derive(Debug)]
pub(crate) struct Spin {
    /// Rounds without packets since the last that had some.
    empty: u32,
    /// When there was something to do last.
    worked_at: Time,
    /// Whether this time the thread looks on before it rests.
    looks: bool,
    credit: u8,
    /// Rests since the last look without credit.
    untried: u8,
}

impl Default for Spin {
    fn default() -> Self {
        Spin { empty: 0, worked_at: Time::default(), looks: true, credit: MOST_CREDIT, untried: 0 }
    }
}

impl Spin {
    /// A round had something to do.
    #[inline(always)]
    pub(crate) fn worked(&mut self, now: Time) {
        if self.empty > 0 {
            self.found();
        }
        self.worked_at = now;
    }

    /// Packets came after empty rounds: while the thread looked, or after it had gone to rest.
    #[inline(never)]
    fn found(&mut self) {
        self.empty = 0;
        if self.looks {
            self.credit = (self.credit + HIT_CREDIT).min(MOST_CREDIT);
        }
        self.untried = (self.untried + 1) % TRY_EVERY;
        self.looks = self.credit > 0 || self.untried == 0;
    }

    /// A round had nothing to do.
    #[inline(always)]
    pub(crate) fn idled(&mut self) {
        self.empty = self.empty.saturating_add(1);
    }

    /// Whether to look again at once.
    #[inline(always)]
    pub(crate) fn goes_on(&mut self, now: Time) -> bool {
        if !self.looks {
            return false;
        }
        if self.empty < SPIN_ROUNDS && now.since(self.worked_at) <= SPIN_TIME {
            return true;
        }
        self.gave_up();
        false
    }

    /// The look was in vain; there is no second one before something has come.
    #[cold]
    fn gave_up(&mut self) {
        self.looks = false;
        self.credit = self.credit.saturating_sub(1);
    }

    /// Restarts, as with packets that came just now: a queue has come, or waits in another way than before.
    pub(crate) fn restart(&mut self, now: Time) {
        *self = Spin { worked_at: now, ..Spin::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread whose packets come `gap` microseconds after the last: for how long it looks, in percent of that.
    fn share(spin: &mut Spin, now: &mut Time, gap: u64, packets: u32) -> u64 {
        let mut looked = 0;
        for _ in 0..packets {
            spin.worked(*now);
            let mut resting = false;
            for _ in 0..gap {
                *now = now.after(Duration::from_micros(1));
                spin.idled();
                resting |= !spin.goes_on(*now);
                looked += u64::from(!resting);
            }
        }
        looked * 100 / (gap * u64::from(packets))
    }

    #[test]
    fn packets_that_come_soon_are_looked_for_all_the_time() {
        let (mut spin, mut now) = (Spin::default(), Time::default());
        assert_eq!(share(&mut spin, &mut now, 40, 1000), 100);
    }

    #[test]
    fn packets_that_come_late_are_not_looked_for() {
        let (mut spin, mut now) = (Spin::default(), Time::default());
        share(&mut spin, &mut now, 100, 20);
        let share = share(&mut spin, &mut now, 100, 1600);
        assert!((1..=4).contains(&share), "{share} percent: one look of 50 in 16 gaps of 100 microseconds");
    }

    #[test]
    fn a_load_that_grows_is_found_out() {
        let (mut spin, mut now) = (Spin::default(), Time::default());
        share(&mut spin, &mut now, 1000, 100);
        share(&mut spin, &mut now, 10, u32::from(TRY_EVERY) + 1);
        assert_eq!(share(&mut spin, &mut now, 10, 100), 100);
    }

    #[test]
    fn a_pause_under_load_does_not_end_looking() {
        let (mut spin, mut now) = (Spin::default(), Time::default());
        for _ in 0..100 {
            share(&mut spin, &mut now, 10, 10);
            share(&mut spin, &mut now, 500, 1);
            spin.worked(now);
            spin.idled();
            assert!(spin.goes_on(now), "one look in vain of eleven");
        }
    }

    #[test]
    fn a_clock_that_stands_still_does_not_make_it_look_for_ever() {
        let mut spin = Spin::default();
        spin.worked(Time::default());
        let rounds = (0..SPIN_ROUNDS * 2)
            .take_while(|_| {
                spin.idled();
                spin.goes_on(Time::default())
            })
            .count();
        assert_eq!(rounds as u32, SPIN_ROUNDS - 1);
    }
}
