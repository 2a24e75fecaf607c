//! A frame: up to 256 packets bound for one node.

use std::num::NonZeroU32;
use std::ops::Range;

use crate::token::lost;
use crate::{Buffer, Packet};

/// Most packets a frame holds.
pub const FRAME_SIZE: usize = 256;

/// How far ahead of the packet in hand headers are prefetched.
const AHEAD: usize = 4;

/// Up to [`FRAME_SIZE`] buffer tokens, in order.
///
/// Tokens still inside when a frame is dropped go to the [`lost`](crate::lost) list.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Frame {
    slots: [u32; FRAME_SIZE],
    len: usize,
}

impl Default for Frame {
    fn default() -> Self {
        Frame { slots: [0; FRAME_SIZE], len: 0 }
    }
}

impl Frame {
    /// An empty frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Packets inside, at most [`FRAME_SIZE`].
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no packet is inside.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether there is no room for another packet.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.len == FRAME_SIZE
    }

    /// Room left.
    #[inline(always)]
    pub fn room(&self) -> usize {
        FRAME_SIZE - self.len
    }

    /// The index in slot `i`.
    #[inline(always)]
    pub(crate) fn index(&self, i: usize) -> Option<u32> {
        if i < self.len { self.slots.get(i).copied() } else { None }
    }

    /// The valid indices, for the cache.
    #[inline(always)]
    pub(crate) fn indices(&self) -> &[u32] {
        self.slots.get(..self.len).unwrap_or_default()
    }

    /// Adds indices taken from their one place; the caller has checked [`Frame::room`].
    #[inline(always)]
    pub(crate) fn extend(&mut self, indices: &[u32]) {
        if let Some(to) = self.slots.get_mut(self.len..self.len + indices.len()) {
            to.copy_from_slice(indices);
            self.len += indices.len();
        }
    }

    /// Forgets the tokens; the caller has moved them.
    #[inline(always)]
    pub(crate) fn forget(&mut self) {
        self.len = 0;
    }

    /// Adds a packet at the end, or hands it back when the frame is full.
    #[inline(always)]
    pub fn push(&mut self, buffer: Buffer) -> Result<(), Buffer> {
        match self.slots.get_mut(self.len) {
            Some(slot) => {
                *slot = buffer.into_index();
                self.len += 1;
                Ok(())
            }
            None => Err(buffer),
        }
    }

    /// Takes the last packet out.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Buffer> {
        let last = self.len.checked_sub(1)?;
        let index = NonZeroU32::new(*self.slots.get(last)?)?;
        self.len = last;
        Some(Buffer::from_index(index))
    }

    /// Moves all packets of `from` behind those of `self`, as far as there is room; tells how many moved.
    #[inline(always)]
    pub fn append(&mut self, from: &mut Frame) -> usize {
        let n = self.room().min(from.len);
        self.append_front(from, n)
    }

    /// Moves the first `n` packets of `from` to the end of `self`; the rest keep their order.
    fn append_front(&mut self, from: &mut Frame, n: usize) -> usize {
        self.extend(from.slots.get(..n).unwrap_or_default());
        from.slots.copy_within(n..from.len, 0);
        from.len -= n;
        n
    }

    /// Parts the frame: packets are moved on in order, run by run, into other frames.
    #[inline(always)]
    pub fn split(&mut self) -> Split<'_> {
        let len = std::mem::take(&mut self.len);
        Split { frame: self, at: 0, len }
    }

    /// Takes the packets out one by one, from the first on.
    pub fn drain(&mut self) -> impl Iterator<Item = Buffer> + '_ {
        let len = self.len;
        self.len = 0;
        Drain { frame: self, at: 0, len }
    }

    /// Shows every packet to `f`, in order, with the headers of those to come on their way into the cache.
    #[inline(always)]
    pub fn each(&mut self, memory: crate::Memory, mut f: impl FnMut(usize, &mut Packet<'_>)) {
        let n = self.len.min(FRAME_SIZE);
        for k in 0..AHEAD {
            memory.prefetch_slot(self.slots.get(k).copied().unwrap_or(0));
        }
        for i in 0..n {
            // Past the end lie old indices: asking for their memory does no harm, and looking first would cost more.
            memory.prefetch_slot(self.slots.get((i + AHEAD) % FRAME_SIZE).copied().unwrap_or(0));
            if let Some(index) = self.slots.get(i) {
                // SAFETY: slot `i` is before the end, the frame is borrowed mutably, and this view is gone before the
                // next is made.
                f(i, &mut unsafe { memory.packet_at(*index) });
            }
        }
    }

    /// As [`Frame::each`], from packet `from` on and until `f` refuses one, which is not done then; tells where it
    /// stopped.
    #[inline(always)]
    pub fn each_while(
        &mut self,
        memory: crate::Memory,
        from: usize,
        mut f: impl FnMut(usize, &mut Packet<'_>) -> bool,
    ) -> usize {
        let n = self.len.min(FRAME_SIZE);
        for k in from..from + AHEAD {
            memory.prefetch_slot(self.slots.get(k % FRAME_SIZE).copied().unwrap_or(0));
        }
        for i in from..n {
            // As in `each`.
            memory.prefetch_slot(self.slots.get((i + AHEAD) % FRAME_SIZE).copied().unwrap_or(0));
            if let Some(index) = self.slots.get(i)
                // SAFETY: as in `each`.
                && !f(i, &mut unsafe { memory.packet_at(*index) })
            {
                return i;
            }
        }
        n
    }

    /// Starts loading the headers of the first `n` packets, for [`Frame::each_of`].
    #[inline(always)]
    pub fn prefetch_first(&self, memory: crate::Memory, n: usize) {
        for index in self.slots.iter().take(n.min(self.len)) {
            memory.prefetch_slot(*index);
        }
    }

    /// Shows some packets to `f`, in order. With `AHEAD`, the headers of as many behind them are then on their way into
    /// the cache.
    #[inline(always)]
    pub fn each_of<const AHEAD: bool>(
        &mut self,
        memory: crate::Memory,
        some: Range<usize>,
        mut f: impl FnMut(usize, &mut Packet<'_>),
    ) {
        let n = some.len();
        for i in some.start..some.end.min(self.len.min(FRAME_SIZE)) {
            if AHEAD {
                // As in `each`.
                memory.prefetch_slot(self.slots.get((i + n) % FRAME_SIZE).copied().unwrap_or(0));
            }
            if let Some(index) = self.slots.get(i) {
                // SAFETY: as in `each`.
                f(i, &mut unsafe { memory.packet_at(*index) });
            }
        }
    }

    /// A view of packet `i`.
    #[inline(always)]
    pub fn packet(&mut self, memory: crate::Memory, i: usize) -> Option<Packet<'_>> {
        memory.packet(self, i)
    }
}

/// A frame being parted, see [`Frame::split`]. What is left when it is dropped is lost, visibly.
pub struct Split<'a> {
    frame: &'a mut Frame,
    at: usize,
    len: usize,
}

impl Split<'_> {
    /// Packets not moved yet.
    #[inline(always)]
    pub fn left(&self) -> usize {
        self.len - self.at
    }

    /// Moves up to `n` packets to the end of `to`, as far as it has room; tells how many.
    #[inline(always)]
    pub fn move_to(&mut self, to: &mut Frame, n: usize) -> usize {
        let n = n.min(self.left()).min(to.room());
        to.extend(self.frame.slots.get(self.at..self.at + n).unwrap_or_default());
        self.at += n;
        n
    }
}

impl Drop for Split<'_> {
    fn drop(&mut self) {
        if self.at < self.len {
            lost::add(self.frame.slots.get(self.at..self.len).unwrap_or_default());
        }
    }
}

struct Drain<'a> {
    frame: &'a mut Frame,
    at: usize,
    len: usize,
}

impl Iterator for Drain<'_> {
    type Item = Buffer;

    fn next(&mut self) -> Option<Buffer> {
        if self.at == self.len {
            return None;
        }
        let index = NonZeroU32::new(*self.frame.slots.get(self.at)?)?;
        self.at += 1;
        Some(Buffer::from_index(index))
    }
}

impl Drop for Drain<'_> {
    fn drop(&mut self) {
        if self.at < self.len {
            lost::add(self.frame.slots.get(self.at..self.len).unwrap_or_default());
        }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        if self.len > 0 {
            lost::add(self.indices());
        }
    }
}
