//! The memory of one ring: a header of two cache lines, and descriptors.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 4 | cookie |
//! | 4 | 2 | flags |
//! | 6 | 2 | head |
//! | 64 | 2 | tail |
//! | 128 | 16 each | descriptors |

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use shoal_shm::{PlaceError, Words};

use crate::region::Regions;

/// What a ring begins with.
const COOKIE: u32 = 0x3E3_1F20;
const DESCS_AT: usize = 128;
const DESC_BYTES: usize = 16;
/// Half words of the header, and which of them are what.
const HEADER: usize = DESCS_AT / 2;
const COOKIE_LOW: usize = 0;
const COOKIE_HIGH: usize = 1;
const FLAGS: usize = 2;
const HEAD: usize = 3;
const TAIL: usize = 32;

/// In a ring's flags: its consumer does not want to be woken.
const MASK_INT: u16 = 1;
/// Most descriptors of a ring, as a power of two.
pub(crate) const MOST_LOG2: u8 = 14;

/// Bytes that a ring of so many descriptors takes.
pub const fn ring_bytes(log2: u8) -> usize {
    DESCS_AT + (DESC_BYTES << log2)
}

/// A descriptor: where a packet, or a part of one, lies. What a peer wrote into it may be anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Desc {
    /// [`Desc::NEXT`].
    pub flags: u16,
    /// Which region.
    pub region: u16,
    /// Bytes: of the packet, or that would fit.
    pub length: u32,
    /// Where in the region.
    pub offset: u32,
}

impl Desc {
    /// In `flags`: the packet goes on in the next descriptor.
    pub const NEXT: u16 = 1;
}

/// Where a ring lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPlace {
    /// Which region.
    pub region: u16,
    /// Where in it.
    pub offset: u32,
    /// How many descriptors, as a power of two.
    pub log2: u8,
}

/// A ring that cannot be at its announced place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RingPlaceError {
    /// Too many descriptors.
    #[error("ring of 2^{0} descriptors, at most 2^14")]
    Size(u8),
    /// Not at a multiple of 8.
    #[error("ring at offset {0}, must be a multiple of 8")]
    Align(u32),
    /// Outside its region.
    #[error("ring outside its region")]
    Outside,
}

/// A ring in shared memory. It stays mapped as long as this lives.
///
/// Everything here is atomic words: two threads that wrote at once would disturb each other's packets, and nothing else.
pub struct RingMemory {
    header: Words<AtomicU16, HEADER>,
    /// Flags and region, length, offset, metadata.
    descs: Words<AtomicU32, 4>,
    mask: u16,
    regions: Arc<Regions>,
}

impl RingMemory {
    /// The ring at a place, if it is all there.
    ///
    /// # Errors
    /// It cannot be there.
    pub fn new(regions: &Arc<Regions>, place: RingPlace) -> Result<Self, RingPlaceError> {
        let RingPlace { region, offset, log2 } = place;
        if log2 > MOST_LOG2 {
            return Err(RingPlaceError::Size(log2));
        }
        if !offset.is_multiple_of(8) {
            return Err(RingPlaceError::Align(offset));
        }
        let memory = regions.get(region).ok_or(RingPlaceError::Outside)?;
        let wrong = |e| match e {
            PlaceError::Align => RingPlaceError::Align(offset),
            PlaceError::Outside | PlaceError::Count(_) => RingPlaceError::Outside,
        };
        let (at, count) = (offset as usize, 1 << log2);
        Ok(RingMemory {
            header: Words::new(memory, at, 1).map_err(wrong)?,
            descs: Words::new(memory, at + DESCS_AT, count).map_err(wrong)?,
            mask: (1 << log2) - 1,
            regions: Arc::clone(regions),
        })
    }

    /// The memory it lies in, and its packets.
    #[inline(always)]
    pub fn regions(&self) -> &Arc<Regions> {
        &self.regions
    }

    /// How many descriptors it has.
    #[inline(always)]
    pub fn size(&self) -> u16 {
        self.mask + 1
    }

    /// The number of a descriptor, counted over all rounds, within one round.
    #[inline(always)]
    pub fn slot(&self, index: u16) -> u16 {
        index & self.mask
    }

    #[inline(always)]
    fn header(&self) -> &[AtomicU16; HEADER] {
        self.header.at(0)
    }

    /// Writes the header of an empty ring.
    pub fn format(&self) {
        let header = self.header();
        header[COOKIE_LOW].store(COOKIE as u16, Ordering::Relaxed);
        header[COOKIE_HIGH].store((COOKIE >> 16) as u16, Ordering::Relaxed);
        header[FLAGS].store(0, Ordering::Relaxed);
        header[HEAD].store(0, Ordering::Relaxed);
        header[TAIL].store(0, Ordering::Release);
    }

    /// Whether it begins as a ring does.
    pub fn is_formatted(&self) -> bool {
        let header = self.header();
        let (low, high) = (&header[COOKIE_LOW], &header[COOKIE_HIGH]);
        u32::from(low.load(Ordering::Relaxed)) | u32::from(high.load(Ordering::Relaxed)) << 16 == COOKIE
    }

    /// The flags as they are now.
    #[inline(always)]
    pub fn flags(&self) -> u16 {
        self.header()[FLAGS].load(Ordering::Relaxed)
    }

    /// Whether the consumer wants to be woken.
    #[inline(always)]
    pub fn wants_interrupts(&self) -> bool {
        self.flags() & MASK_INT == 0
    }

    /// Says whether this end, which takes packets out, wants to be woken.
    #[inline(always)]
    pub fn set_interrupts(&self, wanted: bool) {
        self.header()[FLAGS].store(if wanted { 0 } else { MASK_INT }, Ordering::Relaxed);
    }

    /// How many descriptors the slave has given in all.
    #[inline(always)]
    pub fn head(&self) -> u16 {
        self.header()[HEAD].load(Ordering::Acquire)
    }

    /// How many the master is done with.
    #[inline(always)]
    pub fn tail(&self) -> u16 {
        self.header()[TAIL].load(Ordering::Acquire)
    }

    /// Gives descriptors and what they speak of to the master.
    #[inline(always)]
    pub fn set_head(&self, head: u16) {
        self.header()[HEAD].store(head, Ordering::Release);
    }

    /// Gives them back to the slave.
    #[inline(always)]
    pub fn set_tail(&self, tail: u16) {
        self.header()[TAIL].store(tail, Ordering::Release);
    }

    /// A descriptor, each of its words read once.
    #[inline(always)]
    pub fn desc(&self, index: u16) -> Desc {
        let [first, length, offset, _] = self.descs.at(usize::from(index));
        let (first, length) = (first.load(Ordering::Relaxed), length.load(Ordering::Relaxed));
        let offset = offset.load(Ordering::Relaxed);
        Desc { flags: first as u16, region: (first >> 16) as u16, length, offset }
    }

    /// Writes a descriptor; its word of metadata becomes 0.
    #[inline(always)]
    pub fn set_desc(&self, index: u16, desc: Desc) {
        let [first, length, offset, metadata] = self.descs.at(usize::from(index));
        first.store(u32::from(desc.flags) | u32::from(desc.region) << 16, Ordering::Relaxed);
        length.store(desc.length, Ordering::Relaxed);
        offset.store(desc.offset, Ordering::Relaxed);
        metadata.store(0, Ordering::Relaxed);
    }

    /// Starts loading a descriptor.
    #[inline(always)]
    pub fn prefetch(&self, index: u16) {
        self.descs.prefetch(usize::from(index));
    }
}

#[cfg(target_endian = "big")]
compile_error!("descriptors are read as on little-endian machines");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Region;

    fn regions(len: usize) -> Arc<Regions> {
        Arc::new(Regions::new(vec![Region::create(len).unwrap().0]))
    }

    #[test]
    fn a_ring_lies_as_the_protocol_says() {
        let regions = regions(4096);
        let place = RingPlace { region: 0, offset: 0, log2: 2 };
        let ring = RingMemory::new(&regions, place).unwrap();
        ring.format();
        ring.set_head(0x1234);
        ring.set_tail(0x5678);
        ring.set_interrupts(false);
        ring.set_desc(5, Desc { flags: 1, region: 2, length: 3, offset: 4 });
        let mut bytes = [0; 192];
        regions.copy_out(0, 0, &mut bytes).unwrap();
        assert_eq!(bytes[..8], [0x20, 0x1f, 0xe3, 0x03, 1, 0, 0x34, 0x12]);
        assert_eq!(bytes[64..66], [0x78, 0x56]);
        // Descriptor 5 of a ring of 4 is in slot 1.
        assert_eq!(bytes[144..160], [1, 0, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(ring.desc(5), Desc { flags: 1, region: 2, length: 3, offset: 4 });
        assert!(ring.is_formatted() && !ring.wants_interrupts());
        assert_eq!((ring.head(), ring.tail(), ring.size()), (0x1234, 0x5678, 4));
    }

    #[test]
    fn a_ring_that_is_not_all_there_is_refused() {
        let regions = regions(128 + 64);
        let new = |region, offset, log2| RingMemory::new(&regions, RingPlace { region, offset, log2 }).err();
        assert_eq!(new(0, 0, 2), None);
        assert_eq!(new(0, 0, 3), Some(RingPlaceError::Outside));
        assert_eq!(new(0, 8, 2), Some(RingPlaceError::Outside));
        assert_eq!(new(1, 0, 2), Some(RingPlaceError::Outside));
        assert_eq!(new(0, 4, 1), Some(RingPlaceError::Align(4)));
        assert_eq!(new(0, 0, 15), Some(RingPlaceError::Size(15)));
        assert_eq!(new(0, u32::MAX - 7, 0), Some(RingPlaceError::Outside));
    }
}
