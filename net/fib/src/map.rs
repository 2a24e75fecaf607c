//! Entries of one prefix length by network: hash tables that grow by pieces.
//!
//! One large hash table would move all of its entries at once: at a million that takes tens of milliseconds of the main
//! thread and, for a moment, twice the memory. So a table is cut into 256 when it gets large, and each piece grows by
//! itself, by a quarter. Growing asks the budget first, and can be refused before anything was changed.
//!
//! A place is an address and the 32 bits that an entry is (see [`Slot`](crate::slot::Slot)), 8 bytes for IPv4: what is
//! looked for is nearly always in the first cache line that is looked at. Places follow each other in the order of
//! what the addresses hash to, but for those that had to move on because theirs was taken. That order is the same whether
//! the table is cut or not, so that a walk can be told by where it stands, and entries that stay are met once however
//! much the table grows meanwhile.

use std::hash::BuildHasher;

use shoal_infra::budget::{self, NoMemory};
use shoal_infra::prefetch_read;

use crate::address::{Bits, Keyed};

/// Uppermost bits of a hash that choose one of the pieces of a large table.
const PIECE_BITS: u32 = 8;
/// Pieces of a large table.
const PIECES: usize = 1 << PIECE_BITS;
/// Entries at which a table is cut.
const CUT: usize = 1 << 14;

/// The entries of one length.
pub(crate) struct Map<A: Bits> {
    keyed: Keyed,
    /// None, one, or [`PIECES`].
    pieces: Vec<Piece<A>>,
    /// Bytes taken of the budget.
    bytes: usize,
}

/// A hash table with linear probing. Of its places a quarter is always empty.
struct Piece<A: Bits> {
    places: Vec<A::Place>,
    used: usize,
    /// Bits of a hash that chose the piece and so choose no place in it.
    skip: u32,
}

/// Places that a walk looks at before others are let in.
const AT_A_TIME: usize = 64;

/// How many of so many places may be used.
fn most(places: usize) -> usize {
    places - places / 4
}

/// How many places a piece gets when those it has are not enough.
fn more(places: usize) -> usize {
    if places < 64 { (places * 2).max(4) } else { places + places / 4 }
}

/// Bytes of so many places.
fn bytes_of<A: Bits>(places: usize) -> usize {
    places * size_of::<A::Place>()
}

/// `places` empty places.
fn empty<A: Bits>(places: usize) -> Result<Vec<A::Place>, NoMemory> {
    let mut all = Vec::new();
    all.try_reserve_exact(places).map_err(|_| budget::refused())?;
    all.resize(places, A::EMPTY);
    Ok(all)
}

impl<A: Bits> Piece<A> {
    /// The place that a hash stands for.
    fn home(&self, hash: u64) -> usize {
        (((hash << self.skip >> 32) * self.places.len() as u64) >> 32) as usize
    }

    fn after(&self, at: usize) -> usize {
        if at + 1 >= self.places.len() { 0 } else { at + 1 }
    }

    /// Where an address is, or the place where it would be put; `None` when there are no places.
    fn find(&self, addr: A, hash: u64) -> Option<Result<usize, usize>> {
        let mut at = self.home(hash);
        loop {
            let (there, word) = A::read(self.places.get(at)?);
            if word == 0 {
                return Some(Err(at));
            }
            if there == addr {
                return Some(Ok(at));
            }
            at = self.after(at);
        }
    }

    fn put(&mut self, addr: A, hash: u64, word: u32) {
        let (at, new) = match self.find(addr, hash) {
            Some(Ok(at)) => (at, 0),
            Some(Err(at)) => (at, 1),
            None => return,
        };
        if let Some(place) = self.places.get_mut(at) {
            *place = addr.place(word);
            self.used += new;
        }
    }

    /// Takes an entry out; those that had to move on because of it move back.
    fn remove(&mut self, addr: A, hash: u64, keyed: &Keyed) {
        let Some(Ok(mut hole)) = self.find(addr, hash) else { return };
        let places = self.places.len();
        let distance = |from: usize, to: usize| if to >= from { to - from } else { to + places - from };
        let mut at = hole;
        loop {
            at = self.after(at);
            let Some(next) = self.places.get(at).copied() else { break };
            let (there, word) = A::read(&next);
            if word == 0 {
                break;
            }
            let home = self.home(keyed.hash_one(there));
            if distance(home, at) >= distance(hole, at) {
                if let Some(place) = self.places.get_mut(hole) {
                    *place = next;
                }
                hole = at;
            }
        }
        if let Some(place) = self.places.get_mut(hole) {
            *place = A::EMPTY;
        }
        self.used -= 1;
    }

    fn iter(&self) -> impl Iterator<Item = (A, u32)> {
        self.places.iter().map(A::read).filter(|(_, word)| *word != 0)
    }

    /// The same entries in `places` places.
    fn moved(&self, places: usize, keyed: &Keyed) -> Result<Self, NoMemory> {
        let mut piece = Piece { places: empty::<A>(places)?, used: 0, skip: self.skip };
        for (addr, word) in self.iter() {
            piece.put(addr, keyed.hash_one(addr), word);
        }
        Ok(piece)
    }
}

impl<A: Bits> Map<A> {
    pub fn new(keyed: Keyed) -> Self {
        Map { keyed, pieces: Vec::new(), bytes: 0 }
    }

    fn at(&self, hash: u64) -> usize {
        // A place in the piece is chosen by the bits behind.
        if self.pieces.len() <= 1 { 0 } else { (hash >> 56) as usize % PIECES }
    }

    fn piece(&self, addr: A) -> Option<(&Piece<A>, u64)> {
        let hash = self.keyed.hash_one(addr);
        Some((self.pieces.get(self.at(hash))?, hash))
    }

    /// Fetches the line where an address would be.
    pub fn prefetch(&self, addr: A) {
        if let Some((piece, hash)) = self.piece(addr)
            && let Some(place) = piece.places.get(piece.home(hash))
        {
            prefetch_read(place);
        }
    }

    /// An entry's word, which is never 0.
    pub fn get(&self, addr: A) -> Option<u32> {
        let (piece, hash) = self.piece(addr)?;
        let place = piece.places.get(piece.find(addr, hash)?.ok()?)?;
        Some(A::read(place).1)
    }

    /// Makes room for one entry more, so that the next [`put`](Self::put) of this address allocates nothing.
    pub fn reserve(&mut self, addr: A) -> Result<(), NoMemory> {
        if self.pieces.is_empty() {
            self.pieces.push(Piece { places: Vec::new(), used: 0, skip: 0 });
        }
        if self.pieces.len() == 1 && self.len() >= CUT {
            self.cut()?;
        }
        let at = self.at(self.keyed.hash_one(addr));
        let Some(piece) = self.pieces.get_mut(at) else { return Ok(()) };
        let (old, used) = (piece.places.len(), piece.used);
        if used < most(old) {
            return Ok(());
        }
        let new = more(old);
        budget::take(bytes_of::<A>(new))?;
        match piece.moved(new, &self.keyed) {
            Ok(moved) => {
                *piece = moved;
                budget::give_back(bytes_of::<A>(old));
                self.bytes += bytes_of::<A>(new - old);
                Ok(())
            }
            Err(refused) => {
                budget::give_back(bytes_of::<A>(new));
                Err(refused)
            }
        }
    }

    /// Cuts the one piece into many.
    fn cut(&mut self) -> Result<(), NoMemory> {
        let whole = self.pieces.first();
        let mut counts = [0usize; PIECES];
        for (addr, _) in whole.iter().flat_map(|piece| piece.iter()) {
            if let Some(count) = counts.get_mut((self.keyed.hash_one(addr) >> 56) as usize % PIECES) {
                *count += 1;
            }
        }
        let places = counts.map(|count| (count * 3 / 2).max(8));
        let bytes = bytes_of::<A>(places.iter().sum());
        budget::take(bytes)?;
        let pieces =
            places.into_iter().map(|n| Ok(Piece { places: empty::<A>(n)?, used: 0, skip: PIECE_BITS }));
        let pieces = pieces.collect::<Result<Vec<Piece<A>>, NoMemory>>();
        let pieces = pieces.inspect_err(|_| budget::give_back(bytes))?;
        for whole in std::mem::replace(&mut self.pieces, pieces) {
            whole.iter().for_each(|(addr, word)| self.put(addr, word));
        }
        budget::give_back(self.bytes);
        self.bytes = bytes;
        Ok(())
    }

    /// Changes an entry, or adds one that room was made for.
    pub fn put(&mut self, addr: A, word: u32) {
        let hash = self.keyed.hash_one(addr);
        let at = self.at(hash);
        if let Some(piece) = self.pieces.get_mut(at) {
            piece.put(addr, hash, word);
        }
    }

    pub fn remove(&mut self, addr: A) {
        let hash = self.keyed.hash_one(addr);
        let at = self.at(hash);
        if let Some(piece) = self.pieces.get_mut(at) {
            piece.remove(addr, hash, &self.keyed);
        }
    }

    pub fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.used).sum()
    }

    /// Cheaper than asking for the length.
    pub fn is_empty(&self) -> bool {
        self.pieces.iter().all(|piece| piece.used == 0)
    }

    pub fn iter(&self) -> impl Iterator<Item = (A, u32)> {
        self.pieces.iter().flat_map(Piece::iter)
    }

    /// Some entries of those that hash to `from` or above, and where to go on; `None` behind the last one.
    pub fn some(&self, from: u64, mut act: impl FnMut(A, u32)) -> Option<u64> {
        let at = self.at(from);
        let piece = self.pieces.get(at)?;
        let (places, start) = (piece.places.len(), piece.home(from));
        let next = (start + AT_A_TIME < places).then(|| {
            let first = (((start + AT_A_TIME) as u64) << 32).div_ceil(places as u64);
            (first << (32 - piece.skip)) | (at as u64) << 56
        });
        let end = start + AT_A_TIME.min(places - start);
        // What belongs here and had to move on lies before the next empty place.
        for n in start..start + places {
            let Some(place) = piece.places.get(if n < places { n } else { n - places }) else { break };
            let (addr, word) = A::read(place);
            if word == 0 {
                if n >= end {
                    break;
                }
                continue;
            }
            let hash = self.keyed.hash_one(addr);
            if hash >= from && next.is_none_or(|next| hash < next) {
                act(addr, word);
            }
        }
        let last = at + 1 >= self.pieces.len();
        next.or_else(|| (!last).then_some((at as u64 + 1) << 56))
    }

    /// Bytes it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<A: Bits> Drop for Map<A> {
    fn drop(&mut self) {
        budget::give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn keeps<A: Bits + Ord + std::fmt::Debug>(addr: impl Fn(u32) -> A) {
        let mut map: Map<A> = Map::new(Keyed::default());
        let mut model: BTreeMap<A, u32> = BTreeMap::new();
        let mut rng = 7u32;
        for n in 1..80_000u32 {
            rng = rng.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let addr = addr(rng);
            assert_eq!(map.get(addr), model.get(&addr).copied());
            map.reserve(addr).unwrap();
            map.put(addr, n);
            model.insert(addr, n);
            if n % 3 == 0 {
                let first = *model.keys().next().unwrap();
                model.remove(&first);
                map.remove(first);
                assert_eq!(map.get(first), None);
            }
            assert_eq!(map.is_empty(), model.is_empty());
        }
        assert_eq!(map.len(), model.len());
        let mut all: Vec<(A, u32)> = map.iter().collect();
        all.sort_unstable();
        assert!(all.iter().copied().eq(model.iter().map(|(a, n)| (*a, *n))));
        let held = map.pieces.iter().map(|p| bytes_of::<A>(p.places.len())).sum::<usize>();
        assert_eq!(map.bytes(), held);
        for addr in model.keys() {
            map.remove(*addr);
        }
        assert_eq!((map.len(), map.iter().count()), (0, 0));
    }

    #[test]
    fn it_keeps_what_was_put_in_across_cuts_and_deletions() {
        keeps(|n| n >> 8 & 0xf_ffff);
        keeps(|n| u128::from(n >> 8 & 0xf_ffff) << 80 | 7 << 100);
    }

    #[test]
    fn a_walk_meets_what_stays_once_while_the_table_grows_and_shrinks() {
        for (stay, come) in [(10u32, 50u32), (300, 40_000), (20_000, 60_000)] {
            let mut map: Map<u32> = Map::new(Keyed::default());
            let put = |map: &mut Map<u32>, n: u32| {
                map.reserve(n).unwrap();
                map.put(n, n + 1);
            };
            // Every other one of the first goes while the walk lasts.
            (0..stay * 2).for_each(|n| put(&mut map, n << 8));
            let (mut met, mut step) = (BTreeMap::new(), 0u32);
            let mut from = Some(0);
            while let Some(at) = from {
                from = map.some(at, |addr, word| {
                    assert_eq!(word, addr + 1);
                    *met.entry(addr).or_insert(0) += 1;
                });
                for _ in 0..=(come / 16) {
                    step += 1;
                    if step < come {
                        put(&mut map, 1 << 30 | step << 4);
                    }
                    if step < stay {
                        map.remove((step * 2 + 1) << 8);
                    }
                }
            }
            assert!((0..stay).all(|n| met.get(&((n * 2) << 8)) == Some(&1)), "{stay}");
            assert!(met.values().all(|times| *times == 1));
        }
    }

    #[test]
    fn an_entry_takes_few_bytes_whatever_the_number_of_entries() {
        let mut map: Map<u32> = Map::new(Keyed::default());
        for n in 0..200_000u32 {
            map.reserve(n << 8).unwrap();
            map.put(n << 8, 1);
            if n > 1_000 {
                let each = map.bytes() / (n as usize + 1);
                assert!((8..17).contains(&each), "{each} bytes each of {n}");
            }
        }
    }
}
