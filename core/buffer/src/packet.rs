//! A borrowed view of one packet.

use std::marker::PhantomData;
use std::ptr::NonNull;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::meta::Link;
use crate::slot::{SCRATCH, SLOTS};
use crate::{Buffer, DATA_OFFSET, DATA_SIZE, Flags, HEADROOM, Memory, Meta, SwIfIndex};

/// One packet, seen by a node: its metadata, its scratch line and its bytes.
///
/// The view borrows the token or frame that owns the packet. Byte access is to the first segment unless a
/// method says otherwise.
pub struct Packet<'a> {
    p: NonNull<u8>,
    memory: Memory,
    owner: PhantomData<&'a mut u8>,
}

/// Some of a packet's segments are shared with other packets, so they are read only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared;

impl Packet<'_> {
    /// # Safety
    /// `p` is the start of a buffer whose one place the caller holds mutably for as long as the view lives.
    #[inline(always)]
    pub(crate) unsafe fn new(memory: Memory, p: NonNull<u8>) -> Self {
        Packet { p, memory, owner: PhantomData }
    }

    /// The same view, to be given away: to a function that is rarely called and not inlined. A view whose address
    /// such a function is given lives in memory from then on, on the common path too.
    #[inline(always)]
    pub fn reborrow(&mut self) -> Packet<'_> {
        Packet { p: self.p, memory: self.memory, owner: PhantomData }
    }

    /// The header line.
    #[inline(always)]
    pub fn meta(&self) -> &Meta {
        // SAFETY: the view has the only access to the buffer; the header line is aligned and initialised.
        unsafe { self.p.cast().as_ref() }
    }

    /// The header line, for changes.
    #[inline(always)]
    pub fn meta_mut(&mut self) -> &mut Meta {
        // SAFETY: as in `meta`, and the view is borrowed mutably.
        unsafe { self.p.cast().as_mut() }
    }

    /// The bytes of the first segment.
    #[inline(always)]
    pub fn data(&self) -> &[u8] {
        let meta = self.meta();
        let start = (DATA_OFFSET as isize + isize::from(meta.current)).cast_unsigned();
        // SAFETY: `current` and `length` are private to this crate, which keeps
        // -HEADROOM <= current and current + length <= DATA_SIZE; the bytes are initialised (mapped zero).
        unsafe { std::slice::from_raw_parts(self.p.add(start).as_ptr(), usize::from(meta.length)) }
    }

    /// The bytes of the first segment, for changes.
    #[inline(always)]
    pub fn data_mut(&mut self) -> &mut [u8] {
        let meta = self.meta();
        let start = (DATA_OFFSET as isize + isize::from(meta.current)).cast_unsigned();
        // SAFETY: as in `data`, and the view is borrowed mutably; the bytes do not overlap the header line.
        unsafe { std::slice::from_raw_parts_mut(self.p.add(start).as_ptr(), usize::from(meta.length)) }
    }

    /// The whole memory of the first segment, headroom included: [`HEADROOM`] + [`DATA_SIZE`] bytes, of which the
    /// packet's begin at [`Packet::headroom`]. For those who move the front themselves.
    #[inline(always)]
    pub fn area_mut(&mut self) -> &mut [u8] {
        // SAFETY: the area follows the two lines of the buffer and is part of its stride; its bytes are initialised, and
        // the view is borrowed mutably.
        unsafe {
            std::slice::from_raw_parts_mut(self.p.add(DATA_OFFSET - HEADROOM).as_ptr(), HEADROOM + DATA_SIZE)
        }
    }

    /// The header at the front of the packet, or `None` when it is shorter.
    #[inline(always)]
    pub fn header<T: FromBytes + KnownLayout + Immutable + Unaligned>(&self) -> Option<&T> {
        T::ref_from_prefix(self.data()).ok().map(|(header, _)| header)
    }

    /// The header at the front of the packet, for changes.
    #[inline(always)]
    pub fn header_mut<T: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned>(
        &mut self,
    ) -> Option<&mut T> {
        T::mut_from_prefix(self.data_mut()).ok().map(|(header, _)| header)
    }

    /// The header at byte `at` of the first segment.
    #[inline(always)]
    pub fn header_at<T: FromBytes + KnownLayout + Immutable + Unaligned>(&self, at: usize) -> Option<&T> {
        T::ref_from_prefix(self.data().get(at..)?).ok().map(|(header, _)| header)
    }

    /// What one node says to the next, seen as `T`: [`SCRATCH`](crate::slot::SCRATCH) bytes. Whatever ran before may have
    /// left anything there, so write before you read. What has to last longer is kept in a [slot](crate::slot).
    #[inline(always)]
    pub fn scratch<T: FromBytes + IntoBytes + KnownLayout + Immutable>(&mut self) -> &mut T {
        const { assert!(size_of::<T>() <= SCRATCH && align_of::<T>() <= SCRATCH, "scratch is half a line") }
        // SAFETY: the second line belongs to the buffer, is aligned to 64 and holds 64 initialised bytes, and
        // every bit pattern is a `T` and every `T` is bytes.
        unsafe { self.p.add(64).cast::<T>().as_mut() }
    }

    /// The whole scratch line, slots of features included: for code that is shown packets as memory.
    #[inline(always)]
    pub fn scratch_line(&mut self) -> &mut [u64; 8] {
        // SAFETY: the second line belongs to the buffer, is aligned to 64 and holds 64 initialised bytes; the view is
        // borrowed mutably.
        unsafe { self.p.add(64).cast::<[u64; 8]>().as_mut() }
    }

    /// The part of the scratch line that features have claimed.
    #[inline(always)]
    pub(crate) fn slots(&self) -> &[u8; SLOTS] {
        // SAFETY: as in `scratch_line`, and what is behind the scratch is in the line.
        unsafe { self.p.add(64 + SCRATCH).cast::<[u8; SLOTS]>().as_ref() }
    }

    /// The same, for changes.
    #[inline(always)]
    pub(crate) fn slots_mut(&mut self) -> &mut [u8; SLOTS] {
        // SAFETY: as in `slots`, and the view is borrowed mutably.
        unsafe { self.p.add(64 + SCRATCH).cast::<[u8; SLOTS]>().as_mut() }
    }

    /// Bytes in the first segment.
    #[inline(always)]
    pub fn segment_len(&self) -> usize {
        usize::from(self.meta().length)
    }

    /// Bytes in the whole packet.
    #[inline(always)]
    pub fn len(&self) -> usize {
        let meta = self.meta();
        usize::from(meta.length) + meta.rest as usize
    }

    /// Whether the packet holds no byte.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the packet lies in more than one buffer.
    #[inline(always)]
    pub fn is_chained(&self) -> bool {
        !self.meta().next.is_none()
    }

    /// Whether some of its segments are shared with other packets: see [`Cache::share`](crate::Cache::share).
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.is_chained() && self.end_of_own().next.is_shared()
    }

    /// The header of the last segment that is the packet's own.
    #[inline]
    pub(crate) fn end_of_own(&self) -> &Meta {
        let mut meta = self.meta();
        while let Some(next) = meta.next.to_own() {
            // SAFETY: an own link of this packet's chain, and the packet is borrowed.
            meta = unsafe { self.memory.at(next.get()).cast::<Meta>().as_ref() };
        }
        meta
    }

    /// The same, for changes.
    #[inline]
    pub(crate) fn end_of_own_mut(&mut self) -> &mut Meta {
        let mut p = self.p;
        loop {
            // SAFETY: the first segment, or one behind an own link of this packet's chain; the packet is borrowed mutably,
            // and the reference before this one is not used any more.
            let meta: &mut Meta = unsafe { p.cast().as_mut() };
            match meta.next.to_own() {
                Some(next) => p = self.memory.at(next.get()),
                None => return meta,
            }
        }
    }

    /// Bytes that can still be put in front.
    #[inline(always)]
    pub fn headroom(&self) -> usize {
        (HEADROOM as isize + isize::from(self.meta().current)).cast_unsigned()
    }

    /// Moves the front past the next `n` bytes; `None`, and nothing changes, when there are fewer in the first
    /// segment.
    #[inline(always)]
    #[must_use]
    pub fn pull(&mut self, n: usize) -> Option<()> {
        let meta = self.meta_mut();
        if n > usize::from(meta.length) {
            return None;
        }
        meta.current += n as i16;
        meta.length -= n as u16;
        Some(())
    }

    /// Takes the header at the front off and returns it; `None`, and nothing changes, when the first segment is
    /// shorter.
    #[inline(always)]
    pub fn pull_header<T: FromBytes + KnownLayout + Immutable + Unaligned + Copy>(&mut self) -> Option<T> {
        let header = *self.header::<T>()?;
        let meta = self.meta_mut();
        meta.current += size_of::<T>() as i16;
        meta.length -= size_of::<T>() as u16;
        Some(header)
    }

    /// Moves the front back by `n` bytes, over what lies there (an old header, or nothing in particular);
    /// `None`, and nothing changes, when the headroom is smaller.
    #[inline(always)]
    #[must_use]
    pub fn push(&mut self, n: usize) -> Option<()> {
        if n > self.headroom() {
            return None;
        }
        let meta = self.meta_mut();
        meta.current -= n as i16;
        meta.length += n as u16;
        Some(())
    }

    /// Offset of the front, as [`Meta::l3`] and [`Meta::l4`] count.
    #[inline(always)]
    pub fn current(&self) -> i16 {
        self.meta().current
    }

    /// Moves the front to an offset taken earlier with [`Packet::current`]; `None`, and nothing changes, when it
    /// is not inside the buffer or behind the end.
    #[inline(always)]
    #[must_use]
    pub fn rewind_to(&mut self, current: i16) -> Option<()> {
        let back = isize::from(self.meta().current) - isize::from(current);
        if back >= 0 { self.push(back.cast_unsigned()) } else { self.pull(back.unsigned_abs()) }
    }

    /// Bytes that fit behind the end of the first segment.
    pub fn tailroom(&self) -> usize {
        let meta = self.meta();
        (DATA_SIZE as isize - isize::from(meta.current)).cast_unsigned() - usize::from(meta.length)
    }

    /// Lengthens the first segment by `n` bytes of unspecified content; `None` when they do not fit or the packet
    /// is chained.
    #[must_use]
    pub fn put(&mut self, n: usize) -> Option<&mut [u8]> {
        if n > self.tailroom() || self.is_chained() {
            return None;
        }
        let old = self.segment_len();
        self.meta_mut().length += n as u16;
        self.data_mut().get_mut(old..)
    }

    /// Cuts the packet to `len` bytes; later segments stay chained but may become empty. `None` when it is shorter.
    /// Segments that are shared are as they were for others.
    #[must_use]
    pub fn truncate(&mut self, len: usize) -> Option<()> {
        let (total, mut left) = (self.len(), len);
        if len > total {
            return None;
        }
        self.segments_mut().each(|segment| {
            let keep = left.min(usize::from(segment.length));
            segment.length = keep as u16;
            left -= keep;
        });
        let first = self.segment_len();
        self.meta_mut().rest = (len - first) as u32;
        Some(())
    }

    /// As [`truncate`](Self::truncate), and nothing is done to a packet of this length, as most are.
    #[must_use]
    #[inline(always)]
    pub fn trim_to(&mut self, len: usize) -> Option<()> {
        if self.len() == len { Some(()) } else { self.truncate(len) }
    }

    /// Replaces the packet's bytes. `None`, and the packet is as before, when they do not fit in the first segment.
    #[must_use]
    pub fn set_data(&mut self, bytes: &[u8]) -> Option<()> {
        if bytes.len() > DATA_SIZE || self.is_chained() {
            return None;
        }
        let meta = self.meta_mut();
        meta.current = 0;
        meta.length = bytes.len() as u16;
        self.data_mut().copy_from_slice(bytes);
        Some(())
    }

    /// Puts bytes at an offset into a fresh buffer, or as near to its front as they fit.
    pub(crate) fn set_data_at(&mut self, current: i16, bytes: &[u8]) -> Option<()> {
        let room = (HEADROOM + DATA_SIZE).checked_sub(bytes.len())?;
        let earliest = -(HEADROOM as i16);
        let meta = self.meta_mut();
        meta.current = current.clamp(earliest, earliest + room as i16);
        meta.length = bytes.len() as u16;
        self.data_mut().copy_from_slice(bytes);
        Some(())
    }

    /// Adds a buffer, with whatever is chained to it, behind the packet's last byte.
    ///
    /// # Errors
    /// It comes back when the packet's last segment is shared, as nothing can be hung on it: see
    /// [`Cache::append`](crate::Cache::append).
    pub fn append_segment(&mut self, buffer: Buffer) -> Result<(), Buffer> {
        let memory = self.memory;
        let last = self.end_of_own_mut();
        if last.next.is_shared() {
            return Err(buffer);
        }
        let index = buffer.into_index();
        last.next = Link::own(index);
        // SAFETY: the token was just given up to this packet, and nothing else refers to its buffer.
        let added = unsafe { memory.meta(index) };
        let bytes = u32::from(added.length) + added.rest;
        self.meta_mut().rest += bytes;
        Ok(())
    }

    /// Takes off everything behind the first segment.
    ///
    /// # Errors
    /// That is shared, and so cannot be a packet: [`Cache::make_own`](crate::Cache::make_own) first. Nothing changes.
    pub fn take_rest(&mut self) -> Result<Option<Buffer>, Shared> {
        let memory = self.memory;
        let meta = self.meta_mut();
        if meta.next.is_shared() {
            return Err(Shared);
        }
        let bytes = std::mem::take(&mut meta.rest);
        let Some(index) = std::mem::take(&mut meta.next).index() else { return Ok(None) };
        // SAFETY: the link was just taken off this packet's chain, and is nowhere else.
        let first = unsafe { memory.meta(index.get()) };
        // It was in the middle of a chain, where this length is not kept.
        first.rest = bytes.saturating_sub(u32::from(first.length));
        Ok(Some(Buffer::from_index(index)))
    }

    /// The segments' bytes, in order.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> + '_ {
        let (memory, mut next, mut left) = (self.memory, Some(self.p), self.len());
        std::iter::from_fn(move || {
            let p = next?;
            // SAFETY: every link of the chain belongs to this packet, borrowed for as long as the iterator; by shared ones
            // it is only read, which is all that is done here.
            let view = unsafe { Packet::<'_>::new(memory, p) };
            next = view.meta().next.index().map(|n| memory.at(n.get()));
            // A shared segment may be longer than what this packet has of it.
            let len = view.segment_len().min(left);
            left -= len;
            let start = view.data().as_ptr();
            // SAFETY: the first bytes of `view`, whose lifetime is the packet's.
            Some(unsafe { std::slice::from_raw_parts(start, len) })
        })
    }

    /// A walk over the segments for changes. It ends where they are shared.
    pub fn segments_mut(&mut self) -> SegmentsMut<'_> {
        SegmentsMut { memory: self.memory, next: Some(self.p), owner: PhantomData }
    }

    /// Copies up to `to.len()` bytes from the front of the packet, over segment boundaries; tells how many.
    pub fn copy_to(&self, to: &mut [u8]) -> usize {
        let mut done = 0;
        for segment in self.segments() {
            let n = segment.len().min(to.len() - done);
            if let (Some(to), Some(from)) = (to.get_mut(done..done + n), segment.get(..n)) {
                to.copy_from_slice(from);
            }
            done += n;
            if done == to.len() {
                break;
            }
        }
        done
    }

    /// Copies up to `to.len()` bytes from byte `at` of the packet on, over segment boundaries; tells how many.
    pub fn copy_at(&self, at: usize, to: &mut [u8]) -> usize {
        let (mut skip, mut done) = (at, 0);
        for segment in self.segments() {
            let from = segment.get(skip..).unwrap_or_default();
            skip = skip.saturating_sub(segment.len());
            let n = from.len().min(to.len() - done);
            if let (Some(to), Some(from)) = (to.get_mut(done..done + n), from.get(..n)) {
                to.copy_from_slice(from);
            }
            done += n;
            if done == to.len() {
                break;
            }
        }
        done
    }

    /// All bytes, for display and capture. Allocates.
    pub fn to_vec(&self) -> Vec<u8> {
        self.segments().flatten().copied().collect()
    }

    /// The receiving interface.
    #[inline(always)]
    pub fn rx(&self) -> SwIfIndex {
        self.meta().rx
    }

    /// The sending interface.
    #[inline(always)]
    pub fn tx(&self) -> SwIfIndex {
        self.meta().tx
    }

    /// The packet's flags.
    #[inline(always)]
    pub fn flags(&self) -> Flags {
        self.meta().flags
    }

    /// The buffer's number, for display.
    pub fn number(&self) -> u32 {
        let base = self.memory.at(0).as_ptr().addr();
        ((self.p.as_ptr().addr() - base) / 64) as u32
    }
}

/// One segment of a chain: its bytes and their count.
pub struct SegmentsMut<'a> {
    memory: Memory,
    next: Option<NonNull<u8>>,
    owner: PhantomData<&'a mut u8>,
}

impl SegmentsMut<'_> {
    fn each(mut self, mut f: impl FnMut(&mut Meta)) {
        while let Some(p) = self.next {
            // SAFETY: every own link of the chain belongs to the packet this walk borrows mutably; shared ones are not
            // followed.
            let meta = unsafe { p.cast::<Meta>().as_mut() };
            self.next = meta.next.to_own().map(|n| self.memory.at(n.get()));
            f(meta);
        }
    }

    /// The next segment's bytes.
    pub fn next_segment(&mut self) -> Option<&mut [u8]> {
        let p = self.next?;
        // SAFETY: as in `each`.
        let mut view = unsafe { Packet::<'_>::new(self.memory, p) };
        self.next = view.meta().next.to_own().map(|n| self.memory.at(n.get()));
        let (start, len) = (view.data_mut().as_mut_ptr(), view.segment_len());
        // SAFETY: the bytes of `view`; the walk is borrowed mutably while they are used.
        Some(unsafe { std::slice::from_raw_parts_mut(start, len) })
    }
}
