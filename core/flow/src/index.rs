//! The index: buckets, each flow in one of two, growing by a bucket at a time.
//!
//! With n buckets, 2^l <= n < 2^(l+1), a part of the hash names the bucket of its last l+1 bits, if there is such a bucket
//! already, else that of its last l bits. Growing adds the next bucket and moves to it what belongs there from the one bucket it
//! is split from (Litwin: Linear hashing, VLDB 1980). Two parts of the hash name two buckets, so buckets that are not split yet,
//! on which twice as many flows fall, do not overflow: their flows find room in the other one.

use shoal_infra::StableVec;

use crate::bucket::{Bucket, PLACES, SetBits, tag_of};

/// Buckets of an empty index: a page.
pub(crate) const FEWEST: usize = 64;
/// Most flows that are moved for one that finds no room: one to its other bucket, or to the place of one there that is moved on.
/// Not more: the second goes to a bucket with room, so no way leads back to where it began.
const MOVES: u32 = 2;
/// Bits of the hash that name a bucket, of each of two parts.
const PART: u32 = 28;

/// Knows flows by number.
pub(crate) trait Hashes {
    fn hash(&self, flow: u32) -> u64;
    /// Its hash will be asked for.
    fn prefetch(&self, flow: u32);
}

/// Buckets. A flow is a number here.
#[derive(Debug)]
pub(crate) struct Index {
    buckets: StableVec<Bucket>,
    /// The last l bits.
    mask: usize,
    /// Flows for each bucket, beyond which it grows.
    fill: usize,
}

/// Flows for each bucket, on average, beyond which an index grows whose flows have entries of this size beside the value.
///
/// With nine, a quarter of the flows is in the second bucket half-way between two doublings; with four hardly one is, and fewer
/// tags are equal by chance. It is as low as 64 bytes for each flow allow, and no lower than it pays.
pub(crate) const fn fill_for(entry: usize) -> usize {
    let share = 63_usize.saturating_sub(entry);
    let mut fill = 4;
    while fill < 9 && size_of::<Bucket>() > share * fill {
        fill += 1;
    }
    fill
}

/// How many buckets so many flows need.
pub(crate) fn buckets_for(flows: usize, fill: usize) -> usize {
    flows.div_ceil(fill).max(FEWEST)
}

impl Index {
    /// An empty index that may grow for so many flows.
    pub(crate) fn new(flows: usize, fill: usize) -> std::io::Result<Self> {
        let mut buckets = StableVec::with_capacity(buckets_for(flows, fill))?;
        for _ in 0..FEWEST {
            buckets.push(Bucket::EMPTY);
        }
        Ok(Index { buckets, mask: FEWEST - 1, fill })
    }

    /// How many buckets there are.
    pub(crate) fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Gets memory for all buckets it may have.
    pub(crate) fn populate(&mut self, flows: usize) -> std::io::Result<()> {
        self.buckets.populate(buckets_for(flows, self.fill))
    }

    #[inline(always)]
    fn named(&self, part: u64) -> usize {
        let wide = part as usize & (self.mask << 1 | 1);
        if wide < self.buckets.len() { wide } else { part as usize & self.mask }
    }

    #[inline(always)]
    pub(crate) fn first(&self, hash: u64) -> usize {
        self.named(hash)
    }

    #[inline(always)]
    pub(crate) fn second(&self, hash: u64) -> usize {
        self.named(hash >> PART)
    }

    #[inline(always)]
    pub(crate) fn bucket(&self, at: usize) -> Option<&Bucket> {
        self.buckets.get(at)
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, at: usize) {
        self.buckets.prefetch(at);
    }

    /// The flow that is the one, of those that may have this hash: those of the first bucket are asked before those of the second.
    /// Buckets are read where they are: what is copied to the stack and read at once in other sizes takes long.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let tag = tag_of(hash);
        let mut of = |bucket: &Bucket| {
            SetBits(bucket.matches(tag)).map(|place| bucket.flow(place)).find(|flow| is_it(*flow))
        };
        let first = self.bucket(self.first(hash))?;
        if let Some(flow) = of(first) {
            return Some(flow);
        }
        if first.away() == 0 {
            return None;
        }
        of(self.bucket(self.second(hash))?)
    }

    /// Puts a flow in; false when both buckets are full and so are the other buckets of all that is in them.
    pub(crate) fn insert(&mut self, hash: u64, flow: u32, flows: &impl Hashes) -> bool {
        let (first, second, tag) = (self.first(hash), self.second(hash), tag_of(hash));
        if self.put(first, tag, flow) {
            return true;
        }
        let stays = first == second || !self.put(second, tag, flow);
        if stays {
            let Some((at, place)) = self.make_room(first, second, flows) else { return false };
            self.change(at, |bucket| bucket.set(place, tag, flow));
            if at == first {
                return true;
            }
        }
        self.change(first, Bucket::one_more_away);
        true
    }

    /// Takes a flow out that was put in with this hash.
    pub(crate) fn remove(&mut self, hash: u64, flow: u32) {
        let (first, second, tag) = (self.first(hash), self.second(hash), tag_of(hash));
        if self.clear(first, tag, flow) {
            return;
        }
        if self.clear(second, tag, flow) {
            self.change(first, Bucket::one_less_away);
        } else {
            debug_assert!(false, "flow {flow} is not in the index");
        }
    }

    /// Whether so many flows are as many as there are to be before it grows.
    #[inline(always)]
    pub(crate) fn is_filled_by(&self, flows: usize) -> bool {
        flows >= self.fill * self.buckets.len()
    }

    /// Adds a bucket, if there may be one more.
    pub(crate) fn grow(&mut self, flows: &impl Hashes) {
        // With the last l+1 bits all in use, one bit more begins to count.
        let new = self.buckets.len();
        if new > (self.mask << 1 | 1) {
            self.mask = self.mask << 1 | 1;
        }
        let old = new & self.mask;
        let Some(bucket) = self.buckets.get(old).copied() else { return };
        for place in SetBits(bucket.used()) {
            flows.prefetch(bucket.flow(place));
        }
        // It is not known which half those belong to that are away, so both count them.
        let empty = Bucket::with_away(bucket.away());
        if self.buckets.push(empty).is_none() {
            return;
        }
        if let Some(bucket) = self.buckets.get_mut(old) {
            *bucket = empty;
        }
        for place in SetBits(bucket.used()) {
            let (flow, tag) = (bucket.flow(place), bucket.tag(place));
            let hash = flows.hash(flow);
            let first = self.first(hash);
            if first == old || first == new {
                self.put(first, tag, flow);
            } else if self.put(first, tag, flow) {
                // It was in its second bucket, and there is room in its first by now.
                self.change(first, Bucket::one_less_away);
            } else {
                self.put(self.second(hash), tag, flow);
            }
        }
    }

    /// Frees a place in one of two full buckets, by moving as few flows as it takes to their other buckets.
    #[cold]
    fn make_room(&mut self, first: usize, second: usize, flows: &impl Hashes) -> Option<(usize, u32)> {
        for moves in 1..=MOVES {
            for at in [first, second] {
                if let Some(place) = self.free_place(at, moves, flows) {
                    return Some((at, place));
                }
            }
        }
        None
    }

    /// Frees a place in a full bucket, by so many moves.
    fn free_place(&mut self, at: usize, moves: u32, flows: &impl Hashes) -> Option<u32> {
        let bucket = *self.bucket(at)?;
        (0..PLACES as u32).for_each(|place| flows.prefetch(bucket.flow(place)));
        for place in 0..PLACES as u32 {
            let (flow, tag) = (bucket.flow(place), bucket.tag(place));
            let hash = flows.hash(flow);
            let (home, other) = (self.first(hash), self.second(hash));
            let to = if home == at { other } else { home };
            if to == at {
                continue;
            }
            if moves == 1 {
                if !self.put(to, tag, flow) {
                    continue;
                }
            } else {
                let Some(there) = self.free_place(to, moves - 1, flows) else { continue };
                self.change(to, |bucket| bucket.set(there, tag, flow));
            }
            self.change(home, if home == at { Bucket::one_more_away } else { Bucket::one_less_away });
            self.change(at, |bucket| bucket.clear(place));
            return Some(place);
        }
        None
    }

    fn put(&mut self, at: usize, tag: u8, flow: u32) -> bool {
        self.buckets.get_mut(at).is_some_and(|bucket| bucket.put(tag, flow))
    }

    fn clear(&mut self, at: usize, tag: u8, flow: u32) -> bool {
        let Some(bucket) = self.buckets.get_mut(at) else { return false };
        let place = bucket.place_of(tag, flow);
        if let Some(place) = place {
            bucket.clear(place);
        }
        place.is_some()
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&mut Bucket)) {
        if let Some(bucket) = self.buckets.get_mut(at) {
            change(bucket);
        }
    }

    /// How many flows there are, and how many of them in their second bucket; fails if one is where it cannot be found.
    #[cfg(test)]
    pub(crate) fn check(&self, flows: &impl Hashes) -> (usize, usize) {
        let (mut here, mut away) = (0, vec![0_u32; self.buckets.len()]);
        for (at, bucket) in self.buckets.iter().enumerate() {
            for place in SetBits(bucket.used()) {
                let hash = flows.hash(bucket.flow(place));
                assert_eq!(bucket.tag(place), tag_of(hash));
                let (first, second) = (self.first(hash), self.second(hash));
                assert!(at == first || at == second, "a flow is in bucket {at}, not in {first} or {second}");
                here += 1;
                if at != first {
                    away[first] += 1;
                }
            }
        }
        for (at, bucket) in self.buckets.iter().enumerate() {
            assert!(bucket.away() >= away[at], "bucket {at} counts too few flows that are away");
        }
        (here, away.into_iter().sum::<u32>() as usize)
    }
}
