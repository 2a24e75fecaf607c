//! A timer wheel whose timers are kept elsewhere: by number, in whatever their owner keeps them in.
//!
//! Eleven levels of 64 slots cover all 64 bits of a tick. A timer is on the level of the highest
//! bits in which its deadline differs from now, so level 0 holds single ticks of the current group
//! of 64, level 1 the groups of 64 of the current 4,096, and so on. When time reaches a slot of a
//! higher level, its timers move down. One word per level says which slots are used, so empty
//! stretches of time cost nothing.
//!
//! The wheel keeps no deadlines: it asks for a timer's when the timer is started, and again when time reaches the slot it
//! was put in. So putting a deadline off is one store of the new one, and the timer moves when its old time comes
//! (*lazily*). Only a deadline that comes nearer needs a call of [`Wheel::stop`] and [`Wheel::start`].
//!
//! All work is done in steps of one timer, so a million timers of one tick need not be a pause of the thread that has them.

use std::fmt;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 11;
/// The list of timers whose deadline had passed when they were started.
const DUE: usize = LEVELS * SLOTS;

/// No timer, and no list.
const NONE: u32 = u32::MAX;
/// In `Links::previous`: this timer is the first of the list with the number in the other bits.
const FIRST: u32 = 1 << 31;

/// A timer's place in its list: 8 bytes, kept with the timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Links {
    previous: u32,
    next: u32,
}

impl Links {
    /// Those of a timer that does not run.
    pub const STOPPED: Links = Links { previous: NONE, next: NONE };

    /// Whether the timer runs.
    #[inline(always)]
    pub fn is_running(self) -> bool {
        self.previous != NONE
    }
}

impl Default for Links {
    fn default() -> Self {
        Links::STOPPED
    }
}

/// Where timers are kept, each by a number below 2^31.
pub trait Timers {
    /// The links of a timer; they begin as [`Links::STOPPED`]. `None` if there is no such timer: it must not run.
    fn links(&mut self, timer: u32) -> Option<&mut Links>;

    /// The tick at which a timer is due now.
    fn deadline(&self, timer: u32) -> u64;
}

/// What [`Wheel::step`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// This timer is due. It does not run any more.
    Due(u32),
    /// A timer was moved to where its deadline is.
    Moved,
    /// Nothing is left to do until the tick that was asked for.
    Reached,
}

/// Lists of timers by the time they are to be looked at.
pub struct Wheel {
    now: u64,
    /// First timer of each slot, level by level, then of the due list.
    heads: Box<[u32; DUE + 1]>,
    /// Which slots of a level have timers.
    used: [u64; LEVELS],
    /// The list that time has reached last: it is emptied before time goes on.
    reached: usize,
}

impl Wheel {
    /// What a wheel takes beside its timers' links, in bytes.
    pub const BYTES: usize = size_of::<Wheel>() + size_of::<[u32; DUE + 1]>();

    /// A wheel without timers, at tick `now`.
    pub fn new(now: u64) -> Self {
        Wheel { now, heads: Box::new([NONE; DUE + 1]), used: [0; LEVELS], reached: DUE }
    }

    /// The current tick.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// No timer is due before this tick; it is exact for the current group of 64, but for deadlines that were put off.
    /// `None` without timers. Sleep no longer than until then.
    pub fn next_event(&self) -> Option<u64> {
        if self.first(DUE) != NONE || self.first(self.reached) != NONE {
            return Some(self.now);
        }
        self.next_slot().map(|(start, _)| start.max(self.now))
    }

    /// Starts a timer that does not run: it is due when the wheel reaches its deadline, or at once when that has passed.
    #[inline]
    pub fn start(&mut self, timers: &mut impl Timers, timer: u32) {
        let deadline = timers.deadline(timer);
        let list = self.list_of(deadline);
        let next = self.first(list);
        let Some(links) = timers.links(timer) else { return };
        debug_assert!(!links.is_running(), "timer {timer} runs already");
        *links = Links { previous: FIRST | list as u32, next };
        if let Some(links) = timers.links(next) {
            links.previous = timer;
        }
        if let Some(head) = self.heads.get_mut(list) {
            *head = timer;
        }
        if let Some(used) = self.used.get_mut(list / SLOTS) {
            *used |= 1 << (list % SLOTS);
        }
    }

    /// Stops a timer; does nothing when it does not run.
    #[inline]
    pub fn stop(&mut self, timers: &mut impl Timers, timer: u32) {
        let Some(links) = timers.links(timer) else { return };
        let Links { previous, next } = std::mem::take(links);
        if previous == NONE {
            return;
        }
        if let Some(links) = timers.links(next) {
            links.previous = previous;
        }
        if previous & FIRST == 0 {
            if let Some(links) = timers.links(previous) {
                links.next = next;
            }
            return;
        }
        let list = (previous & !FIRST) as usize;
        if let Some(head) = self.heads.get_mut(list) {
            *head = next;
        }
        if next == NONE
            && let Some(used) = self.used.get_mut(list / SLOTS)
        {
            *used &= !(1 << (list % SLOTS));
        }
    }

    /// One step on the way to tick `to`: looks at one timer, at most. Time does not go back.
    ///
    /// Timers are due by rising tick, but for those that were started late. As long as steps are left, the wheel's time
    /// stands at the tick whose timers it looks at.
    #[inline]
    pub fn step(&mut self, timers: &mut impl Timers, to: u64) -> Step {
        let late = self.first(DUE);
        let timer = if late == NONE { self.first(self.reached) } else { late };
        let timer = if timer == NONE {
            let Some((start, list)) = self.next_slot().filter(|&(start, _)| start <= to) else {
                self.reached = DUE;
                self.now = self.now.max(to);
                return Step::Reached;
            };
            self.now = self.now.max(start);
            self.reached = list;
            self.first(list)
        } else {
            timer
        };
        self.stop(timers, timer);
        if timers.deadline(timer) <= self.now {
            return Step::Due(timer);
        }
        self.start(timers, timer);
        Step::Moved
    }

    #[inline(always)]
    fn first(&self, list: usize) -> u32 {
        self.heads.get(list).copied().unwrap_or(NONE)
    }

    /// The used slot that time reaches first, and when. All slots of a level lie before those of
    /// the level above, and used ones lie after now, but for the one that was reached last.
    fn next_slot(&self) -> Option<(u64, usize)> {
        let level = self.used.iter().position(|&used| used != 0)?;
        let slot = self.used.get(level)?.trailing_zeros();
        let shift = BITS * level as u32;
        let above = u64::MAX.checked_shl(shift + BITS).unwrap_or(0);
        let start = (self.now & above) | (u64::from(slot) << shift);
        Some((start, level * SLOTS + slot as usize))
    }

    #[inline(always)]
    fn list_of(&self, deadline: u64) -> usize {
        if deadline <= self.now {
            return DUE;
        }
        let level = (deadline ^ self.now).ilog2() / BITS;
        let slot = (deadline >> (BITS * level)) as usize % SLOTS;
        level as usize * SLOTS + slot
    }
}

impl fmt::Debug for Wheel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel").field("now", &self.now).finish_non_exhaustive()
    }
}
