//! What a thread tells of its sessions while another router is to know them.

use std::collections::VecDeque;

use shoal_graph::clock::Time;

use super::ring::{RingSender, Told};

/// Sessions that have begun and wait for a second packet, of each thread.
const FRESH: usize = 1 << 16;
/// A session is looked at so long after its begin, and once more later.
const FIRST_LOOK: u64 = 100_000_000;
const SECOND_LOOK: u64 = 2_000_000_000;

/// What a thread has of all this: nothing, while no other router is to know its sessions.
#[derive(Debug)]
pub struct Tap<R> {
    ring: Option<RingSender<R>>,
    /// Sessions by handle, and when they began: those to be looked at first, and those to be looked at once more.
    fresh: VecDeque<(u64, Time)>,
    later: VecDeque<(u64, Time)>,
    /// The walk under way, and the place where it goes on.
    pub(super) walk: (u32, u32),
    /// When it began.
    pub(super) walk_began: Time,
    /// The last walk that has told of all sessions.
    pub(super) told_all: u32,
    /// Places whose session the other router has named since it began to tell of all of its sessions.
    pub(super) named: Option<Vec<u64>>,
    /// Where the sweep of others goes on.
    pub(super) sweep: u32,
    /// Places of sessions for which the ring had no room.
    late: Vec<u64>,
}

impl<R> Default for Tap<R> {
    fn default() -> Self {
        let (fresh, later) = (VecDeque::new(), VecDeque::new());
        Tap {
            ring: None,
            fresh,
            later,
            walk: (0, 0),
            walk_began: Time(0),
            told_all: 0,
            named: None,
            sweep: 0,
            late: Vec::new(),
        }
    }
}

impl<R> Tap<R> {
    /// Tells by this ring from now on, or no more; sessions have numbers below `most`.
    pub(super) fn set(&mut self, ring: Option<RingSender<R>>, most: u32) {
        *self = Tap::default();
        if ring.is_some() {
            // Threads that forward do not allocate.
            (self.fresh, self.later) = (VecDeque::with_capacity(FRESH), VecDeque::with_capacity(FRESH));
            self.late = vec![0; most as usize / 64 + 1];
        }
        self.ring = ring;
    }

    /// Whether anything is told.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.ring.is_some()
    }

    /// The session of a place is as this says; whether it was told. If not, it is told when there is room.
    pub fn put(&mut self, place: u32, record: R) -> bool {
        let Some(ring) = &mut self.ring else { return false };
        let is_told = ring.tell(Told::Put(record));
        if !is_told {
            match self.late.get_mut(place as usize / 64) {
                Some(word) => {
                    *word |= 1 << (place % 64);
                    ring.shared().late();
                }
                None => ring.shared().lost(),
            }
        }
        is_told
    }

    /// A session has ended.
    pub fn gone(&mut self, record: R) {
        if let Some(ring) = &mut self.ring
            && !ring.tell(Told::Gone(record))
        {
            ring.shared().lost();
        }
    }

    /// Room for so many events that a walk may use.
    pub(super) fn room(&self) -> usize {
        self.ring.as_ref().map_or(0, RingSender::room)
    }

    /// Up to `most` places of sessions that are late, which are not from now on.
    pub(super) fn take_late(&mut self, most: usize) -> Vec<u32> {
        let Some(ring) = self.ring.as_ref().filter(|ring| ring.shared().is_late()) else {
            return Vec::new();
        };
        let mut places = Vec::new();
        for (at, word) in self.late.iter_mut().enumerate().filter(|(_, word)| **word != 0) {
            while *word != 0 {
                if places.len() == most {
                    return places;
                }
                places.push(at as u32 * 64 + word.trailing_zeros());
                *word &= *word - 1;
            }
        }
        ring.shared().caught_up();
        places
    }

    /// A session has begun, and is reported when it has a second packet. Without room for it the walk finds it.
    pub fn began(&mut self, handle: u64, now: Time) {
        if self.ring.is_some() && self.fresh.len() < FRESH {
            self.fresh.push_back((handle, now));
        }
    }

    pub(super) fn walked(&mut self, walk: u32) -> bool {
        self.ring.as_mut().is_none_or(|ring| ring.tell(Told::Walked(walk)))
    }

    /// The next session whose time to be looked at has come, and whether it is for the first time.
    pub(super) fn due(&mut self, now: Time) -> Option<(u64, Time, bool)> {
        let is_due = |entry: Option<&(u64, Time)>, wait: u64| {
            entry.is_some_and(|(_, began)| now.0.saturating_sub(began.0) >= wait)
        };
        if is_due(self.fresh.front(), FIRST_LOOK) {
            return self.fresh.pop_front().map(|(handle, began)| (handle, began, true));
        }
        if is_due(self.later.front(), SECOND_LOOK) {
            return self.later.pop_front().map(|(handle, began)| (handle, began, false));
        }
        None
    }

    /// Looks at a session once more.
    pub(super) fn look_later(&mut self, handle: u64, began: Time) {
        if self.later.len() < FRESH {
            self.later.push_back((handle, began));
        }
    }

    /// The other router has named the session of a place.
    pub(super) fn name(&mut self, place: u32) {
        let Some(named) = &mut self.named else { return };
        let word = place as usize / 64;
        if word >= named.len() {
            named.resize(word + 1, 0);
        }
        if let Some(word) = named.get_mut(word) {
            *word |= 1 << (place % 64);
        }
    }

    /// Whether it has, or nothing is asked about it.
    pub(super) fn is_named(&self, place: u32) -> bool {
        let Some(named) = &self.named else { return true };
        named.get(place as usize / 64).is_some_and(|word| word & 1 << (place % 64) != 0)
    }
}
