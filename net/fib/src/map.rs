//! Entries of one prefix length by network: hash tables that grow by pieces.
//!
//! One large hash table would double at once: at a million entries that takes tens of milliseconds of the main thread
//! and, for a moment, three times the memory. So a table is cut into 64 when it gets large, and each piece grows by
//! itself. Growing asks the budget first, and can be refused before anything was changed.

use std::collections::HashMap;
use std::hash::BuildHasher;

use shoal_infra::budget::{self, NoMemory};

use crate::address::{Bits, Keyed};
use crate::table::Slot;

/// Pieces of a large table.
const PIECES: usize = 64;
/// Entries at which a table is cut.
const CUT: usize = 1 << 13;

type Piece<A> = HashMap<A, Slot, Keyed>;

/// The entries of one length.
pub(crate) struct Map<A> {
    keyed: Keyed,
    /// None, one, or [`PIECES`].
    pieces: Vec<Piece<A>>,
    /// Bytes taken of the budget.
    bytes: usize,
}

/// Places of a hash table of this capacity: what the standard library's takes.
fn places(capacity: usize) -> usize {
    match capacity {
        0 => 0,
        1..4 => 4,
        4..8 => 8,
        _ => (capacity * 8 / 7).next_power_of_two(),
    }
}

/// Bytes of a piece with so many places.
fn bytes_of<A>(places: usize) -> usize {
    // A hash table keeps one byte of its own per place.
    places * (size_of::<(A, Slot)>() + 1)
}

impl<A: Bits> Map<A> {
    pub fn new(keyed: Keyed) -> Self {
        Map { keyed, pieces: Vec::new(), bytes: 0 }
    }

    fn at(&self, addr: A) -> usize {
        if self.pieces.len() <= 1 {
            return 0;
        }
        // The table itself uses the lowest and the highest bits.
        (self.keyed.hash_one(addr) >> 40) as usize % PIECES
    }

    pub fn get(&self, addr: A) -> Option<&Slot> {
        self.pieces.get(self.at(addr))?.get(&addr)
    }

    pub fn get_mut(&mut self, addr: A) -> Option<&mut Slot> {
        let at = self.at(addr);
        self.pieces.get_mut(at)?.get_mut(&addr)
    }

    /// Makes room for one entry more, so that the next [`insert`](Self::insert) of this address allocates nothing.
    pub fn reserve(&mut self, addr: A) -> Result<(), NoMemory> {
        if self.pieces.is_empty() {
            self.pieces.push(HashMap::with_hasher(self.keyed.clone()));
        }
        if self.pieces.len() == 1 && self.len() >= CUT {
            self.cut()?;
        }
        let at = self.at(addr);
        let Some(piece) = self.pieces.get_mut(at) else { return Ok(()) };
        if piece.len() < piece.capacity() {
            return Ok(());
        }
        // Full of entries, or of what deleted ones leave behind. That is all gone when it has grown.
        let old = places(piece.capacity().max(piece.len()));
        let new = places(piece.len() + 1).max(old * 2);
        match budget::take(bytes_of::<A>(new)) {
            Ok(()) if piece.try_reserve(1).is_ok() => {
                // What it was made of before is known by the sum alone.
                self.settle(bytes_of::<A>(new));
                Ok(())
            }
            Ok(()) => {
                budget::give_back(bytes_of::<A>(new));
                Err(budget::refused())
            }
            Err(refused) => {
                // The entries may still fit when they are put in afresh.
                let all: Vec<(A, Slot)> = piece.drain().collect();
                piece.extend(all);
                if piece.len() < piece.capacity() { Ok(()) } else { Err(refused) }
            }
        }
    }

    /// Counts anew what the pieces take, of which `new` was just taken.
    fn settle(&mut self, new: usize) {
        let now: usize = self.pieces.iter().map(|p| bytes_of::<A>(places(p.capacity()))).sum();
        let held = self.bytes + new;
        // Pieces with deleted entries look smaller than they are; they are never counted for less than before.
        let now = now.max(self.bytes).min(held);
        budget::give_back(held - now);
        self.bytes = now;
    }

    /// Cuts the one piece into many.
    fn cut(&mut self) -> Result<(), NoMemory> {
        let each = CUT / PIECES * 2;
        let bytes = PIECES * bytes_of::<A>(places(each));
        budget::take(bytes)?;
        let mut pieces: Vec<Piece<A>> = Vec::new();
        for _ in 0..PIECES {
            let mut piece = HashMap::with_hasher(self.keyed.clone());
            if piece.try_reserve(each).is_err() {
                budget::give_back(bytes);
                return Err(budget::refused());
            }
            pieces.push(piece);
        }
        for (addr, slot) in std::mem::replace(&mut self.pieces, pieces).into_iter().flatten() {
            self.insert(addr, slot);
        }
        budget::give_back(self.bytes);
        self.bytes = bytes;
        Ok(())
    }

    pub fn insert(&mut self, addr: A, slot: Slot) {
        let at = self.at(addr);
        if let Some(piece) = self.pieces.get_mut(at) {
            piece.insert(addr, slot);
        }
    }

    pub fn remove(&mut self, addr: A) {
        let at = self.at(addr);
        if let Some(piece) = self.pieces.get_mut(at) {
            piece.remove(&addr);
        }
    }

    pub fn len(&self) -> usize {
        self.pieces.iter().map(HashMap::len).sum()
    }

    /// Cheaper than asking for the length.
    pub fn is_empty(&self) -> bool {
        self.pieces.iter().all(HashMap::is_empty)
    }

    pub fn iter(&self) -> impl Iterator<Item = (A, &Slot)> {
        self.pieces.iter().flatten().map(|(addr, slot)| (*addr, slot))
    }

    /// Bytes it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<A> Drop for Map<A> {
    fn drop(&mut self) {
        budget::give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Source;
    use crate::list::ListId;
    use crate::table::Contribution;

    fn slot(n: u32) -> Slot {
        Slot::new(Contribution { source: Source::Cli, list: ListId(n) })
    }

    #[test]
    fn it_keeps_what_was_put_in_across_cuts_and_deletions() {
        let mut map: Map<u32> = Map::new(Keyed::default());
        let mut model: BTreeMap<u32, u32> = BTreeMap::new();
        let mut rng = 7u32;
        for n in 0..60_000u32 {
            rng = rng.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let addr = rng >> 8 & 0xfff_ff00;
            map.reserve(addr).unwrap();
            map.insert(addr, slot(n));
            model.insert(addr, n);
            if n % 3 == 0 {
                let first = *model.keys().next().unwrap();
                model.remove(&first);
                map.remove(first);
            }
        }
        assert_eq!(map.len(), model.len());
        let mut all: Vec<(u32, u32)> = map.iter().map(|(a, s)| (a, s.best().list.0)).collect();
        all.sort_unstable();
        assert!(all.iter().copied().eq(model.iter().map(|(a, n)| (*a, *n))));
        let held = map.pieces.iter().map(|p| bytes_of::<u32>(places(p.capacity()))).sum::<usize>();
        assert!(map.bytes() >= held && map.bytes() < held * 2, "{} {held}", map.bytes());
    }

    #[test]
    fn places_are_those_of_the_standard_library() {
        for n in [1usize, 3, 4, 7, 8, 14, 15, 100, 5_000, 100_000] {
            let map: Piece<u32> = HashMap::with_capacity_and_hasher(n, Keyed::default());
            let places = places(map.capacity());
            let full = if places <= 8 { places - 1 } else { places / 8 * 7 };
            assert_eq!((places.is_power_of_two(), full), (true, map.capacity()), "{n}");
        }
    }
}
