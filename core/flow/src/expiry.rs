//! Time, and the end of flows that have no packets.

use shoal_infra::Step;

use crate::entry::{Armed, Handle};
use crate::key::FlowKey;
use crate::table::FlowTable;

/// A moment, in ticks of the caller's choice that count upwards: a second, or a tenth, suits flows.
///
/// A flow keeps 28 bits of it. A table whose clock stands still for 2^27 ticks, which are four years of seconds, may
/// let flows live for a second timeout.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Tick(pub u64);

/// Which of a table's sixteen timeouts a flow has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeout(u8);

impl Timeout {
    /// How many there are.
    pub const ALL: usize = 16;

    /// One of them, by its number below 16. Of a larger number, its last four bits are taken.
    pub const fn new(number: u8) -> Self {
        Timeout(number & 15)
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// Bits of a stamp that name the timeout; the others count ticks.
const TIMEOUT_BITS: u32 = 4;
const TICKS: u32 = u32::MAX >> TIMEOUT_BITS;
/// Ticks that a stamp may be ahead of the latest tick the table was told.
const AHEAD: u32 = 1 << 24;

/// The tick of a flow's last packet, without its upper bits, and its timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamp(u32);

impl Stamp {
    #[inline(always)]
    pub(crate) fn new(timeout: Timeout, now: Tick) -> Self {
        Stamp((now.0 as u32) << TIMEOUT_BITS | u32::from(timeout.0))
    }

    /// The same timeout, at another tick.
    #[inline(always)]
    pub(crate) fn at(self, now: Tick) -> Self {
        Stamp::new(self.timeout(), now)
    }

    /// Whether it is of this tick, as far as stamps tell ticks apart.
    #[inline(always)]
    pub(crate) fn is_at(self, now: Tick) -> bool {
        ((now.0 as u32) << TIMEOUT_BITS ^ self.0) >> TIMEOUT_BITS == 0
    }

    #[inline(always)]
    pub(crate) fn timeout(self) -> Timeout {
        Timeout::new(self.0 as u8)
    }

    /// A free entry keeps a number here.
    pub(crate) fn of_number(number: u32) -> Self {
        Stamp(number)
    }

    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// Ticks from it to `now`; 0 if it is ahead.
    #[inline(always)]
    pub(crate) fn age(self, now: Tick) -> u32 {
        let age = (now.0 as u32).wrapping_sub(self.0 >> TIMEOUT_BITS) & TICKS;
        if age > TICKS - AHEAD { 0 } else { age }
    }

    /// The whole tick, of which `now` is not far.
    fn tick(self, now: Tick) -> u64 {
        let age = (now.0 as u32).wrapping_sub(self.0 >> TIMEOUT_BITS) & TICKS;
        if age > TICKS - AHEAD {
            return now.0.saturating_add(u64::from(TICKS - age) + 1);
        }
        now.0.saturating_sub(u64::from(age))
    }
}

/// How long flows live without a packet.
#[derive(Clone, Debug)]
pub(crate) struct Timeouts([u32; Timeout::ALL]);

impl Timeouts {
    /// The longest: half of what stamps can tell apart.
    pub(crate) const LONGEST: u32 = TICKS / 2;
    const NEVER: u32 = u32::MAX;

    pub(crate) fn never() -> Self {
        Timeouts([Timeouts::NEVER; Timeout::ALL])
    }

    pub(crate) fn set(&mut self, timeout: Timeout, ticks: u32) {
        if let Some(slot) = self.0.get_mut(usize::from(timeout.0)) {
            *slot = ticks;
        }
    }

    /// One that is too long, if there is.
    pub(crate) fn too_long(&self) -> Option<u32> {
        self.0.iter().copied().find(|&ticks| ticks > Timeouts::LONGEST && ticks != Timeouts::NEVER)
    }

    /// When a flow ends that has no more packets.
    #[inline(always)]
    pub(crate) fn deadline(&self, stamp: Stamp, now: Tick) -> u64 {
        match self.0.get(usize::from(stamp.timeout().0)) {
            Some(&ticks) if ticks != Timeouts::NEVER => stamp.tick(now).saturating_add(u64::from(ticks)),
            _ => u64::MAX,
        }
    }
}

/// What a call of [`FlowTable::expire`] or [`FlowTable::sweep`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Expired {
    /// Flows that are gone.
    pub removed: usize,
    /// Whether nothing is left to do. If not, the same call goes on where this one ended.
    pub done: bool,
}

impl<K: FlowKey, V: Copy> FlowTable<K, V> {
    /// Ends flows that had no packet for as long as their timeout is, and gives what was kept of each to `gone`.
    ///
    /// Looks at no more than `most` timers: of those that are due by `now` some may be left, which the next call goes on
    /// with. A timer whose flow had packets is put to its new time, which is a look, too. Call it often, with as many as the
    /// thread has time for: of a million flows a look took 15 to 300 clocks (Zen 4), more where the flow ended, which reads a few
    /// lines of memory.
    pub fn expire(&mut self, now: Tick, most: usize, mut gone: impl FnMut(&K, V)) -> Expired {
        self.now = self.now.max(now);
        let mut removed = 0;
        for _ in 0..most {
            let mut armed = Armed { entries: &mut self.entries, timeouts: &self.timeouts, now: self.now };
            match self.wheel.step(&mut armed, now.0) {
                Step::Moved => {}
                Step::Reached => return Expired { removed, done: true },
                Step::Due(flow) => {
                    if let Some((key, value)) = self.take(flow) {
                        removed += 1;
                        gone(&key, value);
                    }
                }
            }
        }
        Expired { removed, done: false }
    }

    /// The next flow whose timer is due, for a feature that decides itself whether it ends: by another flow's packets, say. Its
    /// timer does not run any more: [`remove`](FlowTable::remove) it, or [`restart`](Self::restart) it.
    ///
    /// Takes a look off `most` for each timer, as [`expire`](Self::expire) does; `None` when nothing is due, or no look is left.
    pub fn next_due(&mut self, now: Tick, most: &mut usize) -> Option<Handle> {
        self.now = self.now.max(now);
        while let Some(left) = most.checked_sub(1) {
            *most = left;
            let mut armed = Armed { entries: &mut self.entries, timeouts: &self.timeouts, now: self.now };
            match self.wheel.step(&mut armed, now.0) {
                Step::Moved => {}
                Step::Reached => return None,
                Step::Due(flow) => return self.handle_at(flow),
            }
        }
        None
    }

    /// Starts the timer of a flow that [`next_due`](Self::next_due) gave: its last packet came at `last`.
    pub fn restart(&mut self, handle: Handle, last: Tick) {
        if !self.touch(handle, last) {
            return;
        }
        let mut armed = Armed { entries: &mut self.entries, timeouts: &self.timeouts, now: self.now };
        self.wheel.stop(&mut armed, handle.index);
        self.wheel.start(&mut armed, handle.index);
    }

    /// Ticks since a flow's last packet, if it is still there.
    #[inline(always)]
    pub fn age(&self, handle: Handle, now: Tick) -> Option<u32> {
        let entry = self.entries.get(handle.index as usize)?;
        (entry.generation == handle.generation).then(|| entry.stamp.age(now))
    }

    /// No flow ends before this tick, or later by less than its timeout; `None` without flows. A thread need not wake earlier.
    pub fn next_expiry(&self) -> Option<Tick> {
        self.wheel.next_event().map(Tick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_tells_its_tick_however_often_it_went_round() {
        for now in [0, 1, (1 << 28) - 1, 1 << 28, (1 << 40) + 5, u64::MAX >> 1] {
            for back in [0, 1, 1000, 1 << 27] {
                let Some(then) = u64::checked_sub(now, back) else { continue };
                let stamp = Stamp::new(Timeout::new(9), Tick(then));
                assert_eq!((stamp.tick(Tick(now)), stamp.timeout().number()), (then, 9), "{now} - {back}");
                assert_eq!(stamp.is_at(Tick(now)), back == 0, "{now} - {back}");
            }
            for ahead in [1, 1000, (1 << 24) - 1] {
                assert_eq!(Stamp::new(Timeout::new(0), Tick(now + ahead)).tick(Tick(now)), now + ahead);
            }
        }
    }
}
