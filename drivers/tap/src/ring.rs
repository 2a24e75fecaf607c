//! What both rings of a queue pair do alike: give chains to the kernel, see which come back, wake it.
//!
//! The kernel is trusted to move frames, not to be right: each number it writes is checked where it is read, and a wrong
//! one is a count, never an access. Flags alone tell whether a side wants to be woken (virtio 1.2, 2.7.7 without
//! `VIRTIO_F_EVENT_IDX`): with an event index a ring that is polled would still call now and then.

use std::sync::atomic::{Ordering, fence};

use shoal_link::EventFd;

use crate::vring::{QUIET, Vring};

/// Bytes in front of each frame: [`shoal_vnet::VnetHdr`], and how many buffers the frame is in (virtio 1.2, 5.1.6).
pub(crate) const HEADER: usize = 12;
/// Longest frame: 64 KiB, and what may be in front of it.
pub(crate) const LONGEST: usize = 65_535 + 64;
/// Bytes of a slot in a ring of usual size: a buffer's worth, the header, and a stride that is an odd number of cache lines.
const SLOT: usize = 2112;
/// Entries of a ring unless the operator says otherwise, as VPP's.
pub(crate) const RING_SIZE: u16 = 256;

/// Bytes of each slot of a ring. A frame that does not fit into a whole ring would wait in the host's queue for ever, and
/// all others behind it: so slots of very small rings are larger.
pub(crate) fn slot_bytes(size: u16) -> usize {
    let least = (HEADER + LONGEST).div_ceil(usize::from(size.max(1)));
    least.next_multiple_of(64).max(SLOT)
}

/// What the kernel gave back makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("used ring entry that makes no sense")]
pub(crate) struct Malformed;

/// One ring.
pub(crate) struct Ring {
    pub(crate) vring: Vring,
    kick: EventFd,
    /// Chains given in all, also those the kernel was not shown yet.
    given: u16,
    /// Of those, the ones it was shown.
    shown: u16,
    /// Chains taken back in all.
    seen: u16,
    /// The kernel's index cannot be: nothing more is read.
    broken: bool,
}

impl Ring {
    /// A ring that nothing was given in. It does not want to be woken.
    pub(crate) fn new(vring: Vring, kick: EventFd) -> Self {
        vring.set_avail_flags(QUIET);
        Ring { vring, kick, given: 0, shown: 0, seen: 0, broken: false }
    }

    /// What wakes the kernel.
    pub(crate) fn kick(&self) -> &EventFd {
        &self.kick
    }

    /// Whether nothing more comes back.
    #[inline(always)]
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Gives a chain.
    #[inline(always)]
    pub(crate) fn give(&mut self, head: u16) {
        self.vring.set_avail_entry(self.given, head);
        self.given = self.given.wrapping_add(1);
    }

    /// Shows the kernel what was given, and wakes it if it wants that; tells whether it did.
    #[inline(always)]
    pub(crate) fn show(&mut self) -> bool {
        if self.given == self.shown {
            return false;
        }
        self.shown = self.given;
        self.vring.set_avail_index(self.given);
        // virtio 1.2, 2.7.13.4.1: the index must be seen before the kernel's wish is looked at.
        fence(Ordering::SeqCst);
        let wanted = self.vring.used_flags() & QUIET == 0;
        if wanted {
            wake(&self.kick);
        }
        wanted
    }

    /// How many chains have come back that were not taken.
    ///
    /// # Errors
    /// More than were given. It is reported once; the ring is of no use from then on.
    #[inline(always)]
    pub(crate) fn ready(&mut self) -> Result<u16, Malformed> {
        if self.broken {
            return Ok(0);
        }
        let ready = self.vring.used_index().wrapping_sub(self.seen);
        if ready > self.shown.wrapping_sub(self.seen) {
            self.broken = true;
            return Err(Malformed);
        }
        Ok(ready)
    }

    /// Takes a chain that has come back: its head, which may be anything, and what was written to it.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> (u32, u32) {
        let entry = self.vring.used_entry(self.seen);
        self.seen = self.seen.wrapping_add(1);
        entry
    }

    /// Head of the chain that comes `ahead` of the next one: a guess, for loading it early.
    #[inline(always)]
    pub(crate) fn peek(&self, ahead: u16) -> u32 {
        self.vring.used_entry(self.seen.wrapping_add(ahead)).0
    }

    /// Asks to be woken; tells whether there is something to take already.
    pub(crate) fn arm(&self) -> bool {
        self.vring.set_avail_flags(0);
        fence(Ordering::SeqCst);
        !self.broken && self.vring.used_index() != self.seen
    }

    /// Takes that back.
    pub(crate) fn disarm(&self) {
        self.vring.set_avail_flags(QUIET);
    }
}

/// Wakes the kernel, which, other than a stranger, leaves the descriptor as it is: one call does.
#[cold]
fn wake(kick: &EventFd) {
    // Full: it is awake long since.
    let _ = nix::unistd::write(kick, &1_u64.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_frame_fits_into_a_ring_of_any_size() {
        for log2 in 0..=15 {
            let size = 1 << log2;
            assert!(usize::from(size) * slot_bytes(size) >= HEADER + LONGEST, "{size}");
            assert!(slot_bytes(size).is_multiple_of(64));
        }
        assert_eq!(slot_bytes(RING_SIZE), SLOT);
    }
}
