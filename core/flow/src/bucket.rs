//! A bucket of the index: one cache line with the tags and numbers of twelve flows.

use shoal_infra::equal_bytes;

/// Flows of a bucket.
pub(crate) const PLACES: usize = 12;
/// A bit for each place.
const ALL: u32 = (1 << PLACES) - 1;
/// The tag of a place without a flow.
const FREE: u8 = 0;

/// Tags, then the number of flows whose first bucket this is and that are in their second, then the flows' numbers.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Bucket {
    /// Bytes 0 to 11: tags of the places, 0 of a free one. Bytes 12 to 15: how many are away.
    head: [u64; 2],
    flows: [u32; PLACES],
}

const _: () = assert!(size_of::<Bucket>() == 64);

/// The tag of a hash: never that of a free place.
#[inline(always)]
pub(crate) fn tag_of(hash: u64) -> u8 {
    ((hash >> 56) as u8).max(FREE + 1)
}

impl Bucket {
    pub(crate) const EMPTY: Bucket = Bucket { head: [0; 2], flows: [0; PLACES] };

    /// An empty one, of which so many flows are away.
    pub(crate) fn with_away(away: u32) -> Self {
        Bucket { head: [0, u64::from(away) << 32], ..Bucket::EMPTY }
    }

    /// The places with a tag, a bit for each.
    #[inline(always)]
    pub(crate) fn matches(&self, tag: u8) -> u32 {
        equal_bytes(self.head, tag) & ALL
    }

    /// The places in use, a bit for each.
    #[inline(always)]
    pub(crate) fn used(&self) -> u32 {
        !self.matches(FREE) & ALL
    }

    /// The flow at a place; any number if it is free.
    #[inline(always)]
    pub(crate) fn flow(&self, place: u32) -> u32 {
        self.flows.get(place as usize).copied().unwrap_or(u32::MAX)
    }

    /// The tag at a place.
    pub(crate) fn tag(&self, place: u32) -> u8 {
        self.head.get(place as usize / 8).map_or(FREE, |word| (word >> (place % 8 * 8)) as u8)
    }

    /// The place of a flow with this tag.
    pub(crate) fn place_of(&self, tag: u8, flow: u32) -> Option<u32> {
        SetBits(self.matches(tag)).find(|&place| self.flow(place) == flow)
    }

    /// Puts a flow into a free place; false when there is none.
    pub(crate) fn put(&mut self, tag: u8, flow: u32) -> bool {
        let free = self.matches(FREE);
        if free == 0 {
            return false;
        }
        self.set(free.trailing_zeros(), tag, flow);
        true
    }

    /// Puts a flow into a place, whatever is there.
    pub(crate) fn set(&mut self, place: u32, tag: u8, flow: u32) {
        if let (Some(word), Some(slot)) =
            (self.head.get_mut(place as usize / 8), self.flows.get_mut(place as usize))
        {
            let shift = place % 8 * 8;
            *word = *word & !(0xff << shift) | u64::from(tag) << shift;
            *slot = flow;
        }
    }

    /// Frees a place.
    pub(crate) fn clear(&mut self, place: u32) {
        self.set(place, FREE, 0);
    }

    /// How many flows whose first bucket this is are in their second: at most so many, since a bucket that is split cannot
    /// tell which half they belong to.
    #[inline(always)]
    pub(crate) fn away(&self) -> u32 {
        let [_, high] = self.head;
        (high >> 32) as u32
    }

    pub(crate) fn one_more_away(&mut self) {
        let [_, high] = &mut self.head;
        *high += 1 << 32;
    }

    pub(crate) fn one_less_away(&mut self) {
        debug_assert!(self.away() > 0, "a flow was away that was not counted");
        let [_, high] = &mut self.head;
        *high = high.saturating_sub(1 << 32);
    }
}

/// The numbers of the bits that are set, by rising number.
pub(crate) struct SetBits(pub(crate) u32);

impl Iterator for SetBits {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_twelve_flows_and_no_more() {
        let mut bucket = Bucket::with_away(3);
        for flow in 0..12 {
            assert!(bucket.put(tag_of(u64::from(flow) << 56), flow + 100));
        }
        assert!(!bucket.put(1, 1));
        assert_eq!((bucket.used(), bucket.away()), (0xfff, 3));
        // Tags 0 and 1 are the same: 0 is no tag.
        assert_eq!(bucket.matches(1), 0b11);
        assert_eq!((bucket.place_of(1, 101), bucket.place_of(11, 111)), (Some(1), Some(11)));
        assert_eq!(bucket.place_of(2, 101), None);
        bucket.clear(9);
        assert_eq!((bucket.used(), bucket.tag(8), bucket.tag(9)), (0xdff, 8, 0));
        bucket.one_more_away();
        bucket.one_less_away();
        assert_eq!((bucket.away(), bucket.flow(11)), (3, 111));
        assert!(bucket.put(255, 7) && bucket.place_of(255, 7) == Some(9));
    }
}
