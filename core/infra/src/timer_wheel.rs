//! Timers by the million: insert, cancel and expire each cost a constant number of steps.
//!
//! A [`Wheel`](crate::wheel) together with a pool that keeps the timers. What has a table of its own keeps the wheel's
//! links there instead, and saves 40 bytes for each.

use std::fmt;

use crate::pool::{Handle, Pool, PoolFull};
use crate::wheel::{Links, Step, Timers, Wheel};

/// Timers that carry a `T` each. The caller says what a tick is.
pub struct TimerWheel<T> {
    wheel: Wheel,
    timers: Pool<Timer<T>>,
}

struct Timer<T> {
    deadline: u64,
    links: Links,
    value: T,
}

impl<T> Timers for Pool<Timer<T>> {
    fn links(&mut self, timer: u32) -> Option<&mut Links> {
        let handle = self.handle_at(timer)?;
        self.get_mut(handle).map(|timer| &mut timer.links)
    }

    fn deadline(&self, timer: u32) -> u64 {
        self.handle_at(timer).and_then(|handle| self.get(handle)).map_or(0, |timer| timer.deadline)
    }
}

/// Names one timer; names nothing once it expired or was cancelled.
pub struct TimerHandle<T>(Handle<Timer<T>>);

impl<T> TimerWheel<T> {
    /// A wheel without timers, at tick `now`.
    pub fn new(now: u64) -> Self {
        // The wheel knows timers by 31 bits.
        TimerWheel { wheel: Wheel::new(now), timers: Pool::with_limit(1 << 31) }
    }

    /// Starts a timer that expires when the wheel reaches `deadline`, or at the next
    /// [`advance`](Self::advance) when that has passed.
    pub fn insert(&mut self, deadline: u64, value: T) -> Result<TimerHandle<T>, PoolFull> {
        let handle = self.timers.insert(Timer { deadline, links: Links::STOPPED, value })?;
        self.wheel.start(&mut self.timers, handle.index());
        Ok(TimerHandle(handle))
    }

    /// Stops a timer; gives back what it carried unless it expired or was cancelled before.
    pub fn cancel(&mut self, timer: TimerHandle<T>) -> Option<T> {
        self.timers.get(timer.0)?;
        self.wheel.stop(&mut self.timers, timer.0.index());
        self.timers.remove(timer.0).map(|timer| timer.value)
    }

    /// Moves a timer to another deadline; false when it is gone. A later deadline costs a store: the timer is moved when
    /// the earlier one comes.
    pub fn restart(&mut self, timer: TimerHandle<T>, deadline: u64) -> bool {
        let Some(entry) = self.timers.get_mut(timer.0) else { return false };
        let earlier = deadline < entry.deadline;
        entry.deadline = deadline;
        if earlier {
            self.wheel.stop(&mut self.timers, timer.0.index());
            self.wheel.start(&mut self.timers, timer.0.index());
        }
        true
    }

    /// Moves time to `to` and gives what expired to `expire`, by rising deadline except for timers
    /// that were inserted late. Time does not go back.
    pub fn advance(&mut self, to: u64, mut expire: impl FnMut(T)) {
        while !self.advance_some(to, usize::MAX, &mut expire) {}
    }

    /// As [`advance`](Self::advance), but looks at no more than `most` timers; false when some are left, for another call.
    pub fn advance_some(&mut self, to: u64, most: usize, mut expire: impl FnMut(T)) -> bool {
        for _ in 0..most {
            match self.wheel.step(&mut self.timers, to) {
                Step::Due(timer) => {
                    let expired = self.timers.handle_at(timer).and_then(|handle| self.timers.remove(handle));
                    if let Some(timer) = expired {
                        expire(timer.value);
                    }
                }
                Step::Moved => {}
                Step::Reached => return true,
            }
        }
        false
    }

    /// No timer expires before this tick; it is exact for the current group of 64, but for timers that were put off.
    /// `None` without timers. Sleep no longer than until then.
    pub fn next_event(&self) -> Option<u64> {
        self.wheel.next_event()
    }

    /// The current tick.
    pub fn now(&self) -> u64 {
        self.wheel.now()
    }

    /// How many timers run.
    pub fn len(&self) -> usize {
        self.timers.len()
    }

    /// Whether no timer runs.
    pub fn is_empty(&self) -> bool {
        self.timers.is_empty()
    }

    /// What a timer carries.
    pub fn get(&self, timer: TimerHandle<T>) -> Option<&T> {
        self.timers.get(timer.0).map(|timer| &timer.value)
    }
}

impl<T> Clone for TimerHandle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TimerHandle<T> {}

impl<T> fmt::Debug for TimerHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "timer {:?}", self.0)
    }
}

impl<T> fmt::Debug for TimerWheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerWheel")
            .field("now", &self.now())
            .field("timers", &self.len())
            .finish_non_exhaustive()
    }
}
