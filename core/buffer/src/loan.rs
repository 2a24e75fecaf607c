//! Buffers in the hands of somebody outside: a kernel or a device that was given their memory.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::memory::FIRST;
use crate::{BUFFER_SIZE, Buffer, Cache, Memory, Meta, Packet, Part, Pool, STRIDE};

/// A device finds memory in one piece only inside of such a page, so no buffer across its end is lent.
const PAGE: usize = 2 << 20;

/// A book of the buffers that one borrower has, each named by its address: the offset of its first byte from the start of
/// the [`Part`] of memory that the borrower knows.
///
/// Lending takes the token; what the borrower gives back is looked up here and becomes a token again only if it is in the
/// book. So whatever a borrower says, no buffer gets a second token. While a buffer is lent, the router neither reads
/// nor writes it; when it comes back its header line is rebuilt, so the borrower may have written anywhere in it.
///
/// The code that makes a borrower able to write (a system call, and therefore `unsafe`) promises that it leaves a
/// buffer alone before the buffer is taken back here, or [`Loans::settle`] is called. A book that is dropped without it
/// keeps its buffers: a lost buffer does less harm than one that two threads write.
pub struct Loans {
    pool: Arc<Pool>,
    memory: Memory,
    /// Bytes of memory that the borrower knows.
    end: usize,
    /// One bit for each buffer in these: whether it is lent.
    lent: Box<[u64]>,
    count: usize,
}

/// What [`Loans::lend_fresh`] found.
#[derive(Debug)]
pub enum Fresh {
    /// A buffer, which is lent: its address.
    Lent(u64),
    /// A buffer that the borrower cannot be given: an empty packet.
    Outside(Buffer),
}

impl Loans {
    /// An empty book for a borrower that knows this part of memory. Buffers go back to `pool` in the end.
    pub fn new(pool: &Arc<Pool>, part: Part) -> Self {
        let end = part.len();
        let lent = vec![0; (end / STRIDE).div_ceil(64)].into();
        Loans { pool: Arc::clone(pool), memory: pool.memory(), end, lent, count: 0 }
    }

    /// How many buffers are lent.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether none is.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The place in the book of the buffer that starts at `address`; `None` where no buffer starts that can be lent.
    #[inline]
    fn place(&self, address: usize) -> Option<usize> {
        let offset = address.checked_sub(FIRST)?;
        let last = address.checked_add(BUFFER_SIZE - 1)?;
        let whole = offset % STRIDE == 0 && last < self.end && address / PAGE == last / PAGE;
        whole.then_some(offset / STRIDE)
    }

    /// Marks a buffer as lent, or as not; whether it was the other way round before.
    #[inline]
    fn mark(&mut self, place: usize, lent: bool) -> bool {
        let Some(word) = self.lent.get_mut(place / 64) else { return false };
        let bit = 1 << (place % 64);
        if (*word & bit != 0) == lent {
            return false;
        }
        *word ^= bit;
        self.count = if lent { self.count + 1 } else { self.count - 1 };
        true
    }

    /// Whether the borrower can be given this buffer.
    #[inline]
    pub fn covers(&self, buffer: &Buffer) -> bool {
        self.place(buffer.number() as usize * 64).is_some()
    }

    /// Of how many segments a packet consists, if the borrower can be given all of them: none is empty, and none is shared
    /// with other packets.
    pub fn covers_all(&self, pkt: &Packet<'_>) -> Option<usize> {
        if pkt.is_shared() {
            return None;
        }
        let base = self.memory.at(0).as_ptr().addr();
        let mut count = 0;
        for segment in pkt.segments() {
            let offset = segment.as_ptr().addr().checked_sub(base + FIRST)?;
            self.place(FIRST + offset / STRIDE * STRIDE).filter(|_| !segment.is_empty())?;
            count += 1;
        }
        Some(count)
    }

    /// Lends a packet of one segment; its buffer's address.
    ///
    /// # Errors
    /// It comes back when it has more segments, or the borrower does not know its memory.
    #[inline]
    pub fn lend(&mut self, buffer: Buffer) -> Result<u64, Buffer> {
        let address = buffer.number() as usize * 64;
        // SAFETY: the token is ours, and the view is gone with this line.
        let chained = unsafe { Packet::new(self.memory, self.memory.at(buffer.number())) }.is_chained();
        match self.place(address) {
            Some(place) if !chained && self.mark(place, true) => {
                buffer.into_index();
                Ok(address as u64)
            }
            _ => Err(buffer),
        }
    }

    /// Lends a free buffer of a cache, without a look into its memory; `None` when there is none.
    #[inline]
    pub fn lend_fresh(&mut self, cache: &mut Cache) -> Option<Fresh> {
        let index = cache.take_index()?;
        let address = index.get() as usize * 64;
        if self.place(address).is_some_and(|place| self.mark(place, true)) {
            return Some(Fresh::Lent(address as u64));
        }
        Some(Fresh::Outside(self.token(index)))
    }

    /// An empty packet, of an index that was just taken from its one place.
    #[inline]
    fn token(&self, index: NonZeroU32) -> Buffer {
        // SAFETY: the caller has taken the index from its one place.
        *unsafe { self.memory.meta(index.get()) } = Meta::fresh();
        Buffer::from_index(index)
    }

    /// Strikes out the buffer that starts at `address`; its index.
    #[inline]
    fn strike(&mut self, address: u64) -> Option<NonZeroU32> {
        let address = usize::try_from(address).ok()?;
        let place = self.place(address)?;
        if !self.mark(place, false) {
            return None;
        }
        NonZeroU32::new((address / 64) as u32)
    }

    /// The borrower gives a buffer back, as an empty packet over whatever bytes it wrote; `None`, and nothing changes, when
    /// it does not have the buffer that starts there.
    #[inline]
    pub fn take_back(&mut self, address: u64) -> Option<Buffer> {
        let index = self.strike(address)?;
        Some(self.token(index))
    }

    /// The borrower gives a buffer back that is not needed: it goes to a cache. Otherwise as [`Loans::take_back`].
    #[inline]
    pub fn give_back(&mut self, address: u64, cache: &mut Cache) -> Option<()> {
        let index = self.strike(address)?;
        cache.give_index(index.get());
        Some(())
    }

    /// Starts loading the header line and the first data line of the buffer at `address`; any number does no harm.
    #[inline]
    pub fn prefetch(&self, address: u64) {
        self.memory.prefetch_slot((address / 64) as u32);
    }

    /// Where the buffer starts that the byte at `address` lies in, whether it is lent or not.
    #[inline]
    pub fn start_of(address: u64) -> u64 {
        let (first, stride) = (FIRST as u64, STRIDE as u64);
        address.saturating_sub(first) / stride * stride + first
    }

    /// This book, and an empty one without memory in its place.
    #[must_use]
    pub fn take(&mut self) -> Loans {
        let empty = Loans::new(&self.pool, Part::NONE);
        std::mem::replace(self, empty)
    }

    /// The borrower is gone, or has promised to leave all buffers alone: they go back to the pool. Tells how many.
    pub fn settle(mut self) -> usize {
        let words = std::mem::take(&mut self.lent);
        let lent = words.iter().enumerate().flat_map(|(at, word)| {
            (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| at * 64 + bit)
        });
        self.pool.give(lent.map(|place| ((FIRST + place * STRIDE) / 64) as u32));
        self.count
    }
}
