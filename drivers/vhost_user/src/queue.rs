//! This end of a split virtqueue (virtio 1.2, 2.7): chains are taken, filled or read, and given back in order.
//!
//! What a guest writes is read once, checked, and not looked at again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering, fence};

use shoal_buffer::FRAME_SIZE;
use shoal_link::EventFd;

use crate::call::Call;
use crate::features::{EVENT_IDX, Features, INDIRECT_DESC, MRG_RXBUF};
use crate::memory::{GuestMemory, Piece};
use crate::vring::{Desc, Vring};

/// Most descriptors that are looked at for one packet; those that lead to a table count, too.
pub const MOST_DESCS: usize = 512;
/// Most bytes of a frame: 64 KiB and two tags.
pub const MOST_BYTES: u32 = 65_535 + 14 + 8;
/// Pieces that are kept until packets are handed on.
const ROOM: usize = 1024;
/// Most chains for one packet to the guest: 64 KiB in buffers of 256 bytes.
const MOST_CHAINS: usize = 256;

/// In the guest's flags: it does not want to be woken.
const NO_INTERRUPT: u16 = 1;
/// In our flags: this end does not want to be woken.
const NO_NOTIFY: u16 = 1;

/// What a guest wrote cannot be: the ring cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RingFault {
    /// More chains than entries.
    #[error("{0} chains given in a ring of {1}")]
    Index(u16, u16),
    /// A chain that begins at no descriptor.
    #[error("chain at descriptor {0} in a ring of {1}")]
    Head(u16, u16),
    /// A chain for packets to the guest that makes no sense.
    #[error("chain at descriptor {0} makes no sense")]
    Chain(u16),
}

/// A chain that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BadChain;

/// Which way a chain is used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChainAccess {
    Read,
    Write,
}

/// What the data plane noticed in a ring, for `show vhost-user` and for the control plane, which stops it.
#[derive(Debug, Default)]
pub struct Progress {
    /// The next chain to take.
    pub next: AtomicU16,
    /// How often the guest was woken.
    pub calls: AtomicU64,
    /// How often it woke this end.
    pub kicks: AtomicU64,
    /// Chains that made no sense.
    pub bad: AtomicU64,
}

/// One ring in use.
pub struct Queue {
    ring: Vring,
    features: Features,
    /// The next chain to take.
    next: u16,
    /// Chains given back in all, also those the guest was not shown yet.
    used: u16,
    /// Of those, the ones it was shown when it was last asked whether to wake it.
    shown: u16,
    /// The guest was never woken.
    fresh: bool,
    /// There was more than could be taken.
    more: bool,
    call: Call,
    kick: Option<EventFd>,
    progress: Arc<Progress>,
}

impl Queue {
    /// A ring from chain `base` on.
    pub fn new(
        ring: Vring,
        features: Features,
        base: u16,
        call: Call,
        kick: Option<EventFd>,
        progress: Arc<Progress>,
    ) -> Self {
        progress.next.store(base, Ordering::Relaxed);
        // What was given back before this end came is known to the ring only.
        let used = ring.used_index();
        ring.set_used_flags(if features.has(EVENT_IDX) { 0 } else { NO_NOTIFY });
        Queue {
            ring,
            features,
            next: base,
            used,
            shown: used,
            fresh: true,
            more: false,
            call,
            kick,
            progress,
        }
    }

    /// The features it is used with.
    #[inline(always)]
    pub fn features(&self) -> Features {
        self.features
    }

    /// The guest's memory.
    #[inline(always)]
    pub fn memory(&self) -> &GuestMemory {
        self.ring.memory()
    }

    /// What the guest wakes this end by.
    pub fn kick(&self) -> Option<&EventFd> {
        self.kick.as_ref()
    }

    /// What was noticed.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// Chains that wait.
    #[inline(always)]
    fn ready(&self) -> Result<u16, RingFault> {
        let ready = self.ring.avail_index().wrapping_sub(self.next);
        if ready > self.ring.size() { Err(RingFault::Index(ready, self.ring.size())) } else { Ok(ready) }
    }

    #[inline(always)]
    fn head(&self, index: u16) -> Result<u16, RingFault> {
        let head = self.ring.avail_entry(index);
        if head >= self.ring.size() { Err(RingFault::Head(head, self.ring.size())) } else { Ok(head) }
    }

    /// Shows `take` the pieces of a chain until it has enough, which it says by `false`.
    #[inline(always)]
    fn walk(&self, head: u16, way: ChainAccess, mut take: impl FnMut(Piece) -> bool) -> Result<(), BadChain> {
        let memory = self.ring.memory();
        let mut left = MOST_DESCS;
        // A table of descriptors in the guest's memory; none while the ring's own are followed.
        let mut table: Option<(u64, u32)> = None;
        let mut index = head;
        loop {
            left = left.checked_sub(1).ok_or(BadChain)?;
            let desc = match table {
                None if index < self.ring.size() => self.ring.desc(index),
                Some((addr, count)) if u32::from(index) < count => indirect(memory, addr, index)?,
                _ => return Err(BadChain),
            };
            if desc.flags & Desc::INDIRECT != 0 {
                // virtio 1.2, 2.7.5.3.1: no table in a table, and nothing behind one.
                let legal =
                    self.features.has(INDIRECT_DESC) && table.is_none() && desc.flags & Desc::NEXT == 0;
                if !legal || desc.len == 0 || !desc.len.is_multiple_of(Desc::BYTES as u32) {
                    return Err(BadChain);
                }
                (table, index) = (Some((desc.addr, desc.len / Desc::BYTES as u32)), 0);
                continue;
            }
            if (desc.flags & Desc::WRITE != 0) != (way == ChainAccess::Write) {
                return Err(BadChain);
            }
            let (mut addr, mut len) = (desc.addr, desc.len);
            while len > 0 {
                let piece = memory.piece(addr, len).ok_or(BadChain)?;
                if !take(piece) {
                    return Ok(());
                }
                addr = addr.wrapping_add(u64::from(piece.len));
                len -= piece.len;
            }
            if desc.flags & Desc::NEXT == 0 {
                return Ok(());
            }
            index = desc.next;
        }
    }

    /// Shows the guest what was given back and wakes it if it wants that.
    #[inline(always)]
    fn show(&mut self) {
        self.ring.set_used_index(self.used);
        self.progress.next.store(self.next, Ordering::Relaxed);
        // virtio 1.2, 2.7.7.2: the index must be seen before the guest's wish is looked at.
        fence(Ordering::SeqCst);
        let old = std::mem::replace(&mut self.shown, self.used);
        let wanted = if self.features.has(EVENT_IDX) {
            // Whether the index the guest waits for has been passed.
            let event = self.ring.used_event();
            self.used.wrapping_sub(event).wrapping_sub(1) < self.used.wrapping_sub(old)
        } else {
            self.ring.avail_flags() & NO_INTERRUPT == 0
        };
        if wanted || self.fresh {
            self.fresh = false;
            self.progress.calls.fetch_add(1, Ordering::Relaxed);
            self.call.kick();
        }
    }

    /// Asks the guest to wake this end; tells whether there is something to take already.
    pub fn arm(&self) -> bool {
        if self.features.has(EVENT_IDX) {
            self.ring.set_avail_event(self.next);
        } else {
            self.ring.set_used_flags(0);
        }
        fence(Ordering::SeqCst);
        self.more || self.ring.avail_index() != self.next
    }

    /// Takes that back: this end looks for itself.
    pub fn disarm(&self) {
        self.progress.kicks.fetch_add(1, Ordering::Relaxed);
        if !self.features.has(EVENT_IDX) {
            self.ring.set_used_flags(NO_NOTIFY);
        }
        if let Some(kick) = &self.kick {
            kick.drain();
        }
    }

    /// Finds up to a frame's worth of packets of the guest. Afterwards they are to be copied, and given back with
    /// [`Queue::release`].
    ///
    /// # Errors
    /// Nothing in the ring can be believed any more.
    #[inline]
    pub fn find(&mut self, found: &mut FoundPackets) -> Result<(), RingFault> {
        found.clear();
        let ready = self.ready()?;
        self.more = false;
        let header = self.features.header_len();
        while found.taken < ready {
            if usize::from(found.taken) >= FRAME_SIZE || found.used + MOST_DESCS > ROOM {
                self.more = true;
                break;
            }
            let index = self.next.wrapping_add(found.taken);
            let head = self.head(index)?;
            let ahead = index.wrapping_add(8);
            self.ring.prefetch(self.ring.avail_entry(ahead));
            let (start, mut bytes) = (found.used, 0_u32);
            let walked = self.walk(head, ChainAccess::Read, |piece| {
                bytes = bytes.saturating_add(piece.len);
                found.piece(piece)
            });
            found.head(head);
            let fits = bytes > header && bytes <= header + MOST_BYTES;
            if walked.is_ok() && fits && found.used - start < MOST_DESCS {
                if let Some(first) = found.pieces.get(start) {
                    self.memory().prefetch(*first);
                }
                found.packet_from(start, bytes);
            } else {
                found.used = start;
                found.bad += 1;
                self.progress.bad.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Gives back the chains of what was found.
    #[inline]
    pub fn release(&mut self, found: &FoundPackets) {
        for head in found.heads.iter().take(usize::from(found.taken)) {
            self.ring.set_used_entry(self.used, *head, 0);
            self.used = self.used.wrapping_add(1);
        }
        self.next = self.next.wrapping_add(found.taken);
        self.show();
    }
}

#[inline(always)]
fn indirect(memory: &GuestMemory, table: u64, index: u16) -> Result<Desc, BadChain> {
    let at = table.wrapping_add(u64::from(index) * Desc::BYTES as u64);
    let piece = memory.piece(at, Desc::BYTES as u32).ok_or(BadChain)?;
    let mut bytes = [0; Desc::BYTES];
    // A table may be at any address, so its words cannot be atomics. What is copied out is read once, and private from then on.
    // A descriptor across two regions is in neither.
    memory.copy_out(piece, 0, bytes.get_mut(..piece.len as usize).ok_or(BadChain)?).ok_or(BadChain)?;
    if piece.len as usize == Desc::BYTES { Ok(Desc::of(bytes)) } else { Err(BadChain) }
}

/// Packets found in a ring, as pieces of the guest's memory.
pub struct FoundPackets {
    pieces: Box<[Piece; ROOM]>,
    used: usize,
    heads: Box<[u16; FRAME_SIZE]>,
    /// Where each packet begins in `pieces`, where it ends, and its bytes with its vnet header.
    packets: Box<[(u16, u16, u32); FRAME_SIZE]>,
    count: usize,
    /// Chains to give back, also those that make no sense.
    taken: u16,
    bad: usize,
}

impl Default for FoundPackets {
    fn default() -> Self {
        FoundPackets {
            pieces: Box::new([Piece::default(); ROOM]),
            used: 0,
            heads: Box::new([0; FRAME_SIZE]),
            packets: Box::new([(0, 0, 0); FRAME_SIZE]),
            count: 0,
            taken: 0,
            bad: 0,
        }
    }
}

impl FoundPackets {
    /// How many packets.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether nothing was found.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// How many chains make no sense.
    pub fn bad(&self) -> usize {
        self.bad
    }

    /// A packet, vnet header and all.
    #[inline(always)]
    pub fn packet(&self, i: usize) -> (&[Piece], u32) {
        let (start, end, bytes) = self.packets.get(i).copied().unwrap_or_default();
        (self.pieces.get(usize::from(start)..usize::from(end)).unwrap_or_default(), bytes)
    }

    fn clear(&mut self) {
        (self.used, self.count, self.taken, self.bad) = (0, 0, 0, 0);
    }

    /// Adds a piece; `false` when there is no room.
    #[inline(always)]
    fn piece(&mut self, piece: Piece) -> bool {
        // One more than a packet may have: so one that has too many shows.
        let Some(slot) = self.pieces.get_mut(self.used) else { return false };
        *slot = piece;
        self.used += 1;
        true
    }

    #[inline(always)]
    fn head(&mut self, head: u16) {
        if let Some(slot) = self.heads.get_mut(usize::from(self.taken)) {
            *slot = head;
            self.taken += 1;
        }
    }

    #[inline(always)]
    fn packet_from(&mut self, start: usize, bytes: u32) {
        if let Some(slot) = self.packets.get_mut(self.count) {
            *slot = (start as u16, self.used as u16, bytes);
            self.count += 1;
        }
    }
}

/// Reads pieces of a guest's memory one after the other.
pub struct Reader<'a> {
    memory: &'a GuestMemory,
    pieces: &'a [Piece],
    /// Bytes of the first of them that were read.
    skip: u32,
}

impl<'a> Reader<'a> {
    /// From the first byte of these on.
    #[inline(always)]
    pub fn new(memory: &'a GuestMemory, pieces: &'a [Piece]) -> Self {
        Reader { memory, pieces, skip: 0 }
    }

    /// The next bytes; `None` when there are fewer.
    #[inline(always)]
    #[must_use]
    pub fn read(&mut self, mut to: &mut [u8]) -> Option<()> {
        while !to.is_empty() {
            let piece = *self.pieces.first()?;
            let there = piece.len - self.skip;
            let n = to.len().min(there as usize);
            let (now, rest) = to.split_at_mut_checked(n)?;
            self.memory.copy_out(piece, self.skip, now)?;
            to = rest;
            self.skip += n as u32;
            if self.skip == piece.len {
                (self.pieces, self.skip) = (self.pieces.get(1..)?, 0);
            }
        }
        Some(())
    }
}

/// Why a packet does not go to the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The guest has given too few buffers.
    Full,
    /// Its buffers are too short, and packets may not go over several.
    TooLong,
    /// Nothing in the ring can be believed any more.
    Lie,
}

/// Sends packets to the guest by one ring.
pub struct Sender {
    queue: Queue,
    /// Chains that wait.
    ready: u16,
    pieces: Box<[Piece; MOST_DESCS]>,
    /// Head of each chain of a packet, and its bytes.
    chains: Box<[(u16, u32); MOST_CHAINS]>,
}

impl Sender {
    /// By this ring.
    pub fn new(queue: Queue) -> Self {
        let pieces = Box::new([Piece::default(); MOST_DESCS]);
        Sender { queue, ready: 0, pieces, chains: Box::new([(0, 0); MOST_CHAINS]) }
    }

    /// The features the ring is used with.
    pub fn features(&self) -> Features {
        self.queue.features
    }

    /// Looks at what the guest has given.
    ///
    /// # Errors
    /// Nothing in the ring can be believed any more.
    #[inline(always)]
    pub fn begin(&mut self) -> Result<(), RingFault> {
        self.ready = self.queue.ready()?;
        Ok(())
    }

    /// Collects chains with room for `need` bytes; tells how many chains and pieces.
    #[inline(always)]
    fn collect(&mut self, need: u32) -> Result<(u16, usize), Refusal> {
        let most = if self.queue.features.has(MRG_RXBUF) { MOST_CHAINS as u16 } else { 1 };
        let (mut chains, mut used, mut room) = (0_u16, 0, 0_u32);
        while room < need {
            if chains == self.ready {
                return Err(Refusal::Full);
            }
            if chains == most {
                return Err(Refusal::TooLong);
            }
            let head = self.queue.head(self.queue.next.wrapping_add(chains)).map_err(|_| Refusal::Lie)?;
            let before = room;
            let pieces = &mut self.pieces;
            let walked = self.queue.walk(head, ChainAccess::Write, |mut piece| {
                piece.len = piece.len.min(need - room);
                let Some(slot) = pieces.get_mut(used) else { return false };
                *slot = piece;
                used += 1;
                room += piece.len;
                room < need
            });
            // A chain without room would be taken for a packet without end.
            if walked.is_err() || room == before {
                return Err(Refusal::Lie);
            }
            if let Some(slot) = self.chains.get_mut(usize::from(chains)) {
                *slot = (head, room - before);
            }
            chains += 1;
        }
        Ok((chains, used))
    }

    /// Writes a packet behind its vnet header of ten bytes. The guest sees it after [`Sender::show`].
    ///
    /// # Errors
    /// There is no room for it; nothing is taken then.
    #[inline(always)]
    pub fn send<'a>(
        &mut self,
        vnet: &[u8; 10],
        len: usize,
        segments: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), Refusal> {
        let header = self.queue.features.header_len();
        if len > MOST_BYTES as usize {
            return Err(Refusal::TooLong);
        }
        let need = header + len as u32;
        let (chains, pieces) = self.collect(need)?;
        let mut front = [0; 12];
        // virtio 1.2, 5.1.6.4.1: 1 when buffers are not merged.
        let [a, b] = chains.to_le_bytes();
        let [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9] = *vnet;
        front.copy_from_slice(&[f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, a, b]);
        let front = front.get(..header as usize).unwrap_or_default();
        let memory = self.queue.ring.memory();
        let mut pieces = self.pieces.get(..pieces).unwrap_or_default().iter();
        let (mut piece, mut skip) = (pieces.next().copied().unwrap_or_default(), 0);
        // The two have lifetimes of their own.
        let front: &[u8] = front;
        for mut bytes in std::iter::once(front).chain(segments.map(|s| -> &[u8] { s })) {
            while !bytes.is_empty() {
                if skip == piece.len {
                    // As many bytes were collected as there are: what is left over then is nothing.
                    let Some(next) = pieces.next() else { break };
                    (piece, skip) = (*next, 0);
                }
                let n = bytes.len().min((piece.len - skip) as usize);
                let Some((now, rest)) = bytes.split_at_checked(n) else { break };
                let copied = memory.copy_in(piece, skip, now);
                debug_assert!(copied.is_some(), "it was checked");
                (bytes, skip) = (rest, skip + n as u32);
            }
        }
        for (head, len) in self.chains.iter().take(usize::from(chains)) {
            self.queue.ring.set_used_entry(self.queue.used, *head, *len);
            self.queue.used = self.queue.used.wrapping_add(1);
        }
        self.queue.next = self.queue.next.wrapping_add(chains);
        self.ready -= chains;
        Ok(())
    }

    /// Shows the guest all that was sent, and wakes it if it wants that.
    #[inline(always)]
    pub fn show(&mut self) {
        if self.queue.used != self.queue.shown {
            self.queue.show();
        }
    }
}
