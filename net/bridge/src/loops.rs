//! Stations that move too often: what packets note of moves, and what they tell the control plane.
//!
//! A move is rare, and only domains that watch for loops note it: in a table of fixed size, one word a station, shared by
//! all threads. Two stations that meet in a place count alone by turns; where a loop is, others are noted all the same.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use shoal_flow::Seed;
use shoal_graph::clock::Time;
use shoal_graph::process::Sender;
use shoal_infra::{StableArena, zeroable_struct};
use shoal_interface::SwIfIndex;

use crate::entry::Key;

/// Stations that are watched at a time.
const PLACES: usize = 4096;
/// How often a place is tried to be written while other threads write it.
const TRIES: usize = 8;

zeroable_struct! {
    /// One station.
    struct Place {
        /// [`MoveWord`] in one word.
        word: AtomicU64,
        /// Where the station was before it began to move.
        home: AtomicU32,
        unused: u32,
    }
}

/// What a word of a place says.
#[derive(Clone, Copy)]
struct MoveWord {
    /// Tells the station from others of the same place.
    tag: u32,
    /// The second, cut short.
    second: u16,
    /// Moves in that second, and whether the control plane knows.
    moves: u16,
}

/// The bit of [`MoveWord::moves`] that says that the control plane knows.
const REPORTED: u16 = 1 << 15;
/// Most moves that are told apart.
pub(crate) const MOST_MOVES: u16 = REPORTED - 1;

impl MoveWord {
    fn of(word: u64) -> Self {
        MoveWord { tag: (word >> 32) as u32, second: (word >> 16) as u16, moves: word as u16 }
    }

    fn word(self) -> u64 {
        u64::from(self.tag) << 32 | u64::from(self.second) << 16 | u64::from(self.moves)
    }
}

/// A station moved too often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LoopSeen {
    pub key: Key,
    /// Where it was.
    pub from: SwIfIndex,
    /// Where it was heard now.
    pub to: SwIfIndex,
}

/// The places. Clones are the same.
#[derive(Clone)]
pub(crate) struct LoopWatch {
    places: Arc<StableArena<Place>>,
    seed: Seed,
    tell: Sender<LoopSeen>,
}

impl LoopWatch {
    pub(crate) fn new(tell: Sender<LoopSeen>) -> io::Result<Self> {
        let places = Arc::new(StableArena::with_capacity(PLACES)?);
        Ok(LoopWatch { places, seed: Seed::random(), tell })
    }

    /// Notes a move; true when it is one too many, which the control plane learns once a second.
    pub(crate) fn moved(&self, seen: LoopSeen, most: u16, now: Time) -> bool {
        let hash = self.seed.hash(&[seen.key.0]);
        let Some(place) = self.places.get(hash as usize % PLACES) else { return false };
        // 0 is the tag of a place that was never used.
        let (tag, second) = ((hash >> 32) as u32 | 1, (now.0 / 1_000_000_000) as u16);
        for _ in 0..TRIES {
            let word = place.word.load(Ordering::Acquire);
            let was = MoveWord::of(word);
            let same = was.tag == tag;
            let goes_on = same && (was.second == second || was.second == second.wrapping_sub(1));
            if !goes_on {
                place.home.store(seen.from.0, Ordering::Relaxed);
            }
            let before = if same && was.second == second { was.moves } else { 0 };
            let moves = (before & MOST_MOVES).saturating_add(1).min(MOST_MOVES) | before & REPORTED;
            // The port where the station is at home is not the newer one.
            let away = seen.to.0 != place.home.load(Ordering::Relaxed);
            let tells = moves & REPORTED == 0 && moves >= most && away;
            let moves = if tells { moves | REPORTED } else { moves };
            let is = MoveWord { tag, second, moves }.word();
            if place.word.compare_exchange(word, is, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                // When it does not fit, other reports wait that are not looked at yet.
                return tells && self.tell.try_send(seen).is_ok();
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use shoal_graph::process::channel;
    use shoal_wire::MacAddress;

    use super::*;

    fn moves(watch: &LoopWatch, station: u8, ports: [u32; 2], at: u64) -> bool {
        let key = Key::new(MacAddress([2, 0, 0, 0, 0, station]), 1);
        let [from, to] = ports.map(SwIfIndex);
        watch.moved(LoopSeen { key, from, to }, 4, Time(at * 1_000_000_000))
    }

    #[test]
    fn moves_of_one_second_count_together_and_are_told_once() {
        let (tell, told) = channel(16);
        let watch = LoopWatch::new(tell).unwrap();
        let bounce = |at| (0..10).filter(|n| moves(&watch, 7, [1 + n % 2, 2 - n % 2], at)).count();
        assert_eq!([bounce(70), bounce(71), bounce(900)], [1, 1, 1]);
        assert_eq!(told.len(), 3);
        while let Ok(seen) = told.try_recv() {
            assert_eq!(seen.to, SwIfIndex(2), "never to where it was at home");
        }
        // Slow ones are no loop.
        assert!(!(100..200).any(|at| moves(&watch, 8, [1, 2], at)));
    }

    #[test]
    fn the_home_of_a_station_is_where_it_was_before_it_began_to_move() {
        let (tell, told) = channel(16);
        let watch = LoopWatch::new(tell).unwrap();
        assert!(!moves(&watch, 7, [3, 1], 5));
        for ports in [[1, 3], [3, 1], [1, 3], [3, 1], [1, 3]] {
            moves(&watch, 7, ports, 6);
        }
        assert_eq!(told.try_recv().unwrap().to, SwIfIndex(1));
        assert!(told.try_recv().is_err());
    }
}
