//! Timers by the million: insert, cancel and expire each cost a constant number of steps.
//!
//! Eleven levels of 64 slots cover all 64 bits of a tick. A timer is on the level of the highest
//! bits in which its deadline differs from now, so level 0 holds single ticks of the current group
//! of 64, level 1 the groups of 64 of the current 4,096, and so on. When time reaches a slot of a
//! higher level, its timers move down. One word per level says which slots are used, so empty
//! stretches of time cost nothing.

use std::fmt;

use crate::pool::{Handle, Pool, PoolFull};

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 11;
/// The list of timers whose deadline had passed when they were inserted.
const DUE: usize = LEVELS * SLOTS;

/// Timers that carry a `T` each. The caller says what a tick is.
pub struct TimerWheel<T> {
    now: u64,
    timers: Pool<Timer<T>>,
    /// First timer of each slot, level by level, then of the due list.
    heads: Vec<Link<T>>,
    /// Which slots of a level have timers.
    used: [u64; LEVELS],
}

type Link<T> = Option<Handle<Timer<T>>>;

struct Timer<T> {
    deadline: u64,
    list: usize,
    previous: Link<T>,
    next: Link<T>,
    value: T,
}

/// Names one timer; names nothing once it expired or was cancelled.
pub struct TimerHandle<T>(Handle<Timer<T>>);

impl<T> TimerWheel<T> {
    /// A wheel without timers, at tick `now`.
    pub fn new(now: u64) -> Self {
        TimerWheel { now, timers: Pool::new(), heads: vec![None; DUE + 1], used: [0; LEVELS] }
    }

    /// Starts a timer that expires when the wheel reaches `deadline`, or at the next
    /// [`advance`](Self::advance) when that has passed.
    pub fn insert(&mut self, deadline: u64, value: T) -> Result<TimerHandle<T>, PoolFull> {
        let handle = self.timers.insert(Timer { deadline, list: DUE, previous: None, next: None, value })?;
        self.link(handle, deadline);
        Ok(TimerHandle(handle))
    }

    /// Stops a timer; gives back what it carried unless it expired or was cancelled before.
    pub fn cancel(&mut self, timer: TimerHandle<T>) -> Option<T> {
        self.unlink(timer.0);
        self.timers.remove(timer.0).map(|timer| timer.value)
    }

    /// Moves a timer to another deadline; false when it is gone.
    pub fn restart(&mut self, timer: TimerHandle<T>, deadline: u64) -> bool {
        self.unlink(timer.0);
        match self.timers.get_mut(timer.0) {
            Some(entry) => entry.deadline = deadline,
            None => return false,
        }
        self.link(timer.0, deadline);
        true
    }

    /// Moves time to `to` and gives what expired to `expire`, by rising deadline except for timers
    /// that were inserted late. Time does not go back.
    pub fn advance(&mut self, to: u64, mut expire: impl FnMut(T)) {
        self.empty(DUE, &mut expire);
        while let Some((start, list)) = self.next_slot().filter(|&(start, _)| start <= to) {
            self.now = start;
            self.empty(list, &mut expire);
        }
        self.now = self.now.max(to);
    }

    /// No timer expires before this tick; it is exact for the current group of 64. `None` without
    /// timers. Sleep no longer than until then.
    pub fn next_event(&self) -> Option<u64> {
        match self.heads.get(DUE) {
            Some(Some(_)) => Some(self.now),
            _ => self.next_slot().map(|(start, _)| start),
        }
    }

    /// The current tick.
    pub fn now(&self) -> u64 {
        self.now
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

    /// The used slot that time reaches first, and when. All slots of a level lie before those of
    /// the level above, and used ones lie after now.
    fn next_slot(&self) -> Option<(u64, usize)> {
        let level = self.used.iter().position(|&used| used != 0)?;
        let slot = self.used.get(level)?.trailing_zeros();
        let shift = BITS * level as u32;
        let above = u64::MAX.checked_shl(shift + BITS).unwrap_or(0);
        let start = (self.now & above) | (u64::from(slot) << shift);
        Some((start, level * SLOTS + slot as usize))
    }

    /// Empties a list whose time has come: timers expire or move to a lower level.
    fn empty(&mut self, list: usize, expire: &mut impl FnMut(T)) {
        while let Some(handle) = self.heads.get(list).copied().flatten() {
            self.unlink(handle);
            match self.timers.get(handle).map(|timer| timer.deadline) {
                Some(deadline) if deadline > self.now => self.link(handle, deadline),
                _ => {
                    if let Some(timer) = self.timers.remove(handle) {
                        expire(timer.value);
                    }
                }
            }
        }
    }

    fn list_of(&self, deadline: u64) -> usize {
        if deadline <= self.now {
            return DUE;
        }
        let level = (deadline ^ self.now).ilog2() / BITS;
        let slot = (deadline >> (BITS * level)) as usize % SLOTS;
        level as usize * SLOTS + slot
    }

    /// Puts a timer that is in no list into the one for `deadline`.
    fn link(&mut self, handle: Handle<Timer<T>>, deadline: u64) {
        let list = self.list_of(deadline);
        let next = match self.heads.get_mut(list) {
            Some(head) => head.replace(handle),
            None => None,
        };
        if let Some(next) = next.and_then(|next| self.timers.get_mut(next)) {
            next.previous = Some(handle);
        }
        if let Some(timer) = self.timers.get_mut(handle) {
            (timer.list, timer.previous, timer.next) = (list, None, next);
        }
        if let Some(used) = self.used.get_mut(list / SLOTS) {
            *used |= 1 << (list % SLOTS);
        }
    }

    /// Takes a timer out of its list; does nothing when it is gone.
    fn unlink(&mut self, handle: Handle<Timer<T>>) {
        let Some(timer) = self.timers.get(handle) else {
            return;
        };
        let (list, previous, next) = (timer.list, timer.previous, timer.next);
        if let Some(next) = next.and_then(|next| self.timers.get_mut(next)) {
            next.previous = previous;
        }
        if let Some(previous) = previous.and_then(|previous| self.timers.get_mut(previous)) {
            previous.next = next;
            return;
        }
        if let Some(head) = self.heads.get_mut(list) {
            *head = next;
        }
        if next.is_none()
            && let Some(used) = self.used.get_mut(list / SLOTS)
        {
            *used &= !(1 << (list % SLOTS));
        }
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
            .field("now", &self.now)
            .field("timers", &self.len())
            .finish_non_exhaustive()
    }
}
