//! One queue of an interface whose packet memory is the router's buffers: what is received lies in a buffer where a
//! packet's data lie, and what is sent is read from there. Only the kernel copies, and only if the driver cannot do
//! without.
//!
//! All memory that buffers are in when the queue is opened is registered, and each buffer is a chunk: the kernel leaves
//! [`DATA_OFFSET`] bytes free in front of what it receives. Buffers are lent to the kernel by the books of the two halves
//! ([`Loans`]); an address that comes back without being in the book is counted and left alone.
//!
//! The receiving half exchanges: for each buffer that comes with a frame a free one takes its place, so the kernel always
//! has as many as at first. Where the free one lies in memory that is not registered, because the pool has grown since, the
//! frame is copied into it, and the kernel gets back what it had. The transmitting half keeps a few buffers to copy packets
//! into that lie there.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use shoal_buffer::{Buffer, Cache, DATA_OFFSET, DATA_SIZE, Fresh, HEADROOM, Loans, Packet, Pool};
use shoal_link::IfIndex;

use super::queue::{Kick, Rings, Shared, TxRefused, XskConfig, locked, tie};
use super::release::Ended;
use super::ring::{Consumer, Desc, Producer};
use super::rx_rings::RxRings;
use super::socket::XskSocket;
use crate::Error;

/// Longest frame in one buffer.
pub(crate) const LONGEST_BUFFER: usize = DATA_SIZE;
/// Most buffers of a frame that is sent: the kernel takes 17.
const MOST_PIECES: usize = 16;
/// Most buffers of a frame that is received: a superframe, with its headers.
const MOST_RECEIVED: usize = 34;
/// Longest frame in several buffers, each way.
pub(crate) const LONGEST_CHAIN: usize = MOST_PIECES * DATA_SIZE;
/// Buffers that the transmitting half keeps to copy into.
const STOCK: usize = 64;
/// How many frames ahead of the one in hand a buffer is prefetched: with as many lent as a ring has entries, it was last
/// touched long ago.
const AHEAD: u32 = 4;
/// In an address, the offset of the data lies above that of the chunk (`XSK_UNALIGNED_BUF_OFFSET_SHIFT`).
const SHIFT: u32 = libc::XSK_UNALIGNED_BUF_OFFSET_SHIFT as u32;

/// The buffer that an address names, and the offset of the data in it.
fn parts(address: u64) -> (u64, usize) {
    (address & libc::XSK_UNALIGNED_BUF_ADDR_MASK, (address >> SHIFT) as usize)
}

/// Opens a queue on the pool's buffers: both its halves.
///
/// # Errors
/// [`Error::NoSharing`] when it is the memory that does not do, so that memory of the queue's own may.
pub(crate) fn open(
    ifindex: IfIndex,
    queue: u32,
    config: &XskConfig,
    pool: &Arc<Pool>,
) -> Result<(LentRx, LentTx), Error> {
    let socket = XskSocket::open()?;
    make_room(pool, 2 * config.rx_size as usize + STOCK);
    let part = pool.part().map_err(Error::os("buffer memory")).map_err(no_sharing)?;
    socket.register_buffers(&part).map_err(locked).map_err(no_sharing)?;
    let probe = XskSocket::open()?;
    let (rings, zero_copy) = tie(&socket, ifindex, queue, config)?;
    let ended = Ended::new(probe, (ifindex, queue), zero_copy, pool);
    let shared = Arc::new(Shared { socket, stuck: AtomicBool::new(false), memory: ended });
    if zero_copy && !part.is_huge() {
        let why =
            "the driver copies nothing and wants each buffer in one piece of memory: reserve pages of 2 MB";
        return Err(Error::NoSharing(why.into()));
    }
    let [loans, tx_loans] = [0, 1].map(|_| Loans::new(pool, part));
    let (mut rx, mut tx) = halves(shared, rings, config, [loans, tx_loans]);
    let mut cache = pool.cache();
    // A driver that does not copy takes a ring's worth into its own ring at once.
    let wanted = config.rx_size as usize * if zero_copy { 2 } else { 1 };
    let lent = rx.fill_up(&mut cache, wanted);
    if lent < wanted || !tx.fill_up(&mut cache) {
        let why = format!("{wanted} buffers are to be lent for each queue, {lent} are free");
        return Err(Error::NoSharing(why));
    }
    Ok((rx, tx))
}

fn no_sharing(error: Error) -> Error {
    Error::NoSharing(error.to_string())
}

/// Grows the pool if it would be short after so many were taken; what does not come is missed later.
fn make_room(pool: &Pool, wanted: usize) {
    let stats = pool.stats();
    if stats.available < wanted + stats.total / 4
        && let Err(e) = pool.grow(wanted)
    {
        tracing::warn!("buffer pool cannot grow: {e}");
    }
}

/// Both halves over rings, with empty books.
fn halves(
    shared: Arc<Shared<Ended>>,
    [rx, tx, fill, completion]: Rings,
    config: &XskConfig,
    [loans, tx_loans]: [Loans; 2],
) -> (LentRx, LentTx) {
    let zero_copy = shared.memory.is_zero_copy();
    let receiving = LentRx { rings: RxRings::new([rx, fill], config, zero_copy, &shared), loans };
    let transmitting = LentTx {
        ring: Producer::new(tx.0, tx.1),
        sent: Sent {
            completion: Consumer::new(completion.0, completion.1),
            loans: tx_loans,
            stock: Vec::with_capacity(STOCK),
            malformed: 0,
        },
        blanks: Vec::with_capacity(MOST_PIECES),
        most: config.tx_size as usize,
        pieces: config.multi_buffer,
        shared,
    };
    (receiving, transmitting)
}

/// Why a frame does not become a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotReceived {
    /// An address or length outside of its buffer, or a buffer that the kernel does not have; or too many pieces, or the
    /// last is missing.
    Malformed,
    /// No buffer is free to take its place.
    NoBuffer,
}

/// The receiving half.
pub(crate) struct LentRx {
    pub(crate) rings: RxRings<Ended>,
    loans: Loans,
}

impl LentRx {
    /// Lends up to `count` free buffers; tells how many.
    fn fill_up(&mut self, cache: &mut Cache, count: usize) -> usize {
        let mut outside = Vec::new();
        while self.loans.len() < count {
            match self.loans.lend_fresh(cache) {
                Some(Fresh::Lent(address)) => self.give(address, cache),
                Some(Fresh::Outside(buffer)) => outside.push(buffer),
                None => break,
            }
        }
        for buffer in outside {
            cache.free(buffer);
        }
        self.rings.flush();
        self.loans.len()
    }

    /// Gives a buffer that is in the book to the kernel. The ring has room for all that are lent, or its indices make no
    /// sense: then the buffer is not given.
    #[inline]
    fn give(&mut self, address: u64, cache: &mut Cache) {
        if !self.rings.fill.put_address(address) {
            self.loans.give_back(address, cache);
        }
    }

    /// Gives a buffer back to the kernel that just came from there.
    fn return_to_kernel(&mut self, buffer: Buffer, cache: &mut Cache) {
        match self.loans.lend(buffer) {
            Ok(address) => self.give(address, cache),
            Err(buffer) => cache.free(buffer),
        }
    }

    /// One piece as a packet; another buffer has taken its place with the kernel.
    #[inline]
    fn exchange(&mut self, desc: Desc, cache: &mut Cache) -> Result<Buffer, NotReceived> {
        let (address, offset) = parts(desc.addr);
        let Some(mut buffer) = self.loans.take_back(address) else {
            self.rings.malformed += 1;
            return Err(NotReceived::Malformed);
        };
        if lay(&mut cache.packet(&mut buffer), offset, desc.len as usize).is_none() {
            self.rings.malformed += 1;
            self.return_to_kernel(buffer, cache);
            return Err(NotReceived::Malformed);
        }
        match self.loans.lend_fresh(cache) {
            Some(Fresh::Lent(address)) => {
                self.give(address, cache);
                Ok(buffer)
            }
            Some(Fresh::Outside(fresh)) => self.copy_out(buffer, fresh, cache),
            None => {
                self.return_to_kernel(buffer, cache);
                Err(NotReceived::NoBuffer)
            }
        }
    }

    /// The free buffer is not one that the kernel knows: it gets the bytes, and the kernel its own again.
    #[cold]
    fn copy_out(
        &mut self,
        mut from: Buffer,
        mut to: Buffer,
        cache: &mut Cache,
    ) -> Result<Buffer, NotReceived> {
        let copied = cache.packet(&mut to).set_data(cache.packet(&mut from).data());
        self.return_to_kernel(from, cache);
        if copied.is_none() {
            // Longer than a buffer's data, because it begins in the headroom: no kernel does that.
            cache.free(to);
            self.rings.malformed += 1;
            return Err(NotReceived::Malformed);
        }
        Ok(to)
    }

    /// The next frame and how many pieces it came in, or `None` when there is none.
    #[inline]
    pub(crate) fn next(&mut self, cache: &mut Cache) -> Option<Result<(Buffer, u32), NotReceived>> {
        let desc = self.rings.ring.take()?;
        if let Some(address) = self.rings.ring.peek_address(AHEAD) {
            self.loans.prefetch(parts(address).0);
        }
        let first = self.exchange(desc, cache);
        if desc.options & libc::XDP_PKT_CONTD != 0 {
            return Some(self.next_long(first, cache));
        }
        Some(first.map(|buffer| (buffer, 1)))
    }

    /// A frame with this first piece and more: as a chain, or not at all.
    #[cold]
    fn next_long(
        &mut self,
        first: Result<Buffer, NotReceived>,
        cache: &mut Cache,
    ) -> Result<(Buffer, u32), NotReceived> {
        let mut frame = [const { None::<Buffer> }; MOST_RECEIVED];
        let mut wrong = None;
        let (mut pieces, mut piece, mut last) = (0, Some(first), false);
        while let Some(got) = piece {
            match (got, frame.get_mut(pieces)) {
                (Ok(buffer), Some(slot)) => *slot = Some(buffer),
                (Ok(buffer), None) => {
                    cache.free(buffer);
                    self.rings.malformed += u64::from(wrong.is_none());
                    wrong = Some(NotReceived::Malformed);
                }
                (Err(e), _) => wrong = wrong.or(Some(e)),
            }
            pieces += 1;
            if last {
                break;
            }
            // The kernel shows a frame with all its pieces. If it does not, what is there is not a frame.
            let Some(desc) = self.rings.ring.take() else {
                self.rings.malformed += 1;
                wrong = Some(NotReceived::Malformed);
                break;
            };
            last = desc.options & libc::XDP_PKT_CONTD == 0;
            piece = Some(self.exchange(desc, cache));
        }
        // From the last to the first: what is added goes behind a packet's end, which would be looked for each time.
        let mut chain = None::<Buffer>;
        for mut buffer in frame.into_iter().rev().flatten() {
            if let Some(rest) = chain.take() {
                let added = cache.append(&mut cache.packet(&mut buffer), rest);
                debug_assert!(added.is_ok(), "nothing of it is shared");
            }
            chain = Some(buffer);
        }
        match (chain, wrong) {
            (Some(chain), None) => Ok((chain, pieces as u32)),
            (chain, wrong) => {
                if let Some(chain) = chain {
                    cache.free(chain);
                }
                Err(wrong.unwrap_or(NotReceived::Malformed))
            }
        }
    }
}

impl Drop for LentRx {
    fn drop(&mut self) {
        // The kernel has them until the socket is closed, which happens when its last owner drops it.
        self.rings.shared.memory.keep_rx(self.loans.take());
    }
}

/// Makes an empty packet one of `len` bytes that begin `offset` bytes behind its buffer's start; `None` when they are not
/// where data can be.
#[inline]
fn lay(pkt: &mut Packet<'_>, offset: usize, len: usize) -> Option<()> {
    if offset == DATA_OFFSET {
        return pkt.put(len).map(drop);
    }
    let Some(back) = DATA_OFFSET.checked_sub(offset) else {
        let skip = offset - DATA_OFFSET;
        pkt.put(skip.checked_add(len)?)?;
        return pkt.pull(skip);
    };
    pkt.push(back)?;
    match len.checked_sub(back) {
        Some(more) => pkt.put(more).map(drop),
        None => pkt.truncate(len),
    }
}

/// What the transmitting half has lent, and how it comes back.
struct Sent {
    completion: Consumer,
    loans: Loans,
    /// Free buffers that the kernel knows.
    stock: Vec<Buffer>,
    malformed: u64,
}

impl Sent {
    /// Takes buffers back that were sent.
    fn reclaim(&mut self, cache: &mut Cache) {
        while let Some(address) = self.completion.take_address() {
            let (address, _) = parts(address);
            let back = if self.stock.len() < STOCK {
                self.loans.take_back(address).map(|buffer| self.stock.push(buffer))
            } else {
                self.loans.give_back(address, cache)
            };
            self.malformed += u64::from(back.is_none());
        }
        self.completion.publish();
    }

    /// A free buffer that the kernel knows.
    fn blank(&mut self, cache: &mut Cache) -> Option<Buffer> {
        match cache.alloc_one() {
            Some(buffer) if self.loans.covers(&buffer) => return Some(buffer),
            Some(outside) => cache.free(outside),
            None => {}
        }
        self.stock.pop()
    }
}

/// The transmitting half.
pub(crate) struct LentTx {
    ring: Producer,
    sent: Sent,
    /// Where a packet is copied to, for a moment.
    blanks: Vec<Buffer>,
    /// Most buffers that are lent at a time.
    most: usize,
    pieces: bool,
    // Dropped last: the socket lives as long as its rings.
    shared: Arc<Shared<Ended>>,
}

/// What `push` says: the packet comes back when it is not taken.
pub(crate) type Pushed = Result<(), (TxRefused, Buffer)>;

impl LentTx {
    /// Puts buffers aside to copy into; whether there were enough.
    fn fill_up(&mut self, cache: &mut Cache) -> bool {
        let mut outside = Vec::new();
        while self.sent.stock.len() < STOCK {
            match cache.alloc_one() {
                Some(buffer) if self.sent.loans.covers(&buffer) => self.sent.stock.push(buffer),
                Some(buffer) => outside.push(buffer),
                None => break,
            }
        }
        for buffer in outside {
            cache.free(buffer);
        }
        self.sent.stock.len() == STOCK
    }

    /// Whether so many buffers can be lent, after those that were sent have come back if they are needed.
    #[inline]
    fn room(&mut self, buffers: usize, cache: &mut Cache) -> bool {
        if self.sent.loans.len() + buffers > self.most {
            self.sent.reclaim(cache);
        }
        self.sent.loans.len() + buffers <= self.most && self.ring.room(buffers as u32) as usize >= buffers
    }

    /// Lends one buffer and puts it into the ring, where there is room.
    #[inline]
    fn put(&mut self, mut buffer: Buffer, more: bool, cache: &mut Cache) -> Result<(), Buffer> {
        let pkt = cache.packet(&mut buffer);
        let (offset, len) = (DATA_OFFSET - HEADROOM + pkt.headroom(), pkt.segment_len() as u32);
        let address = self.sent.loans.lend(buffer)?;
        let options = if more { libc::XDP_PKT_CONTD } else { 0 };
        if !self.ring.put(Desc { addr: address | (offset as u64) << SHIFT, len, options }) {
            self.sent.loans.give_back(address, cache);
        }
        Ok(())
    }

    /// Adds a packet: its buffers themselves if the kernel knows them, else copies.
    ///
    /// # Errors
    /// It comes back; nothing is added then.
    #[inline]
    pub(crate) fn push(&mut self, mut buffer: Buffer, cache: &mut Cache) -> Pushed {
        let pkt = cache.packet(&mut buffer);
        let len = pkt.len();
        if len == 0 || pkt.is_chained() {
            return self.push_long(buffer, len, cache);
        }
        if !self.room(1, cache) {
            return Err((TxRefused::Full, buffer));
        }
        match self.put(buffer, false, cache) {
            Ok(()) => Ok(()),
            Err(outside) => self.push_copy(outside, len, cache),
        }
    }

    /// A packet in several buffers, or of no bytes.
    #[cold]
    fn push_long(&mut self, mut buffer: Buffer, len: usize, cache: &mut Cache) -> Pushed {
        if len == 0 || (len > LONGEST_BUFFER && !(self.pieces && len <= LONGEST_CHAIN)) {
            return Err((TxRefused::TooLong, buffer));
        }
        let segments = self.sent.loans.covers_all(&cache.packet(&mut buffer));
        let most = if self.pieces { MOST_PIECES } else { 1 };
        let Some(segments) = segments.filter(|n| *n <= most) else {
            return self.push_copy(buffer, len, cache);
        };
        if !self.room(segments, cache) {
            return Err((TxRefused::Full, buffer));
        }
        let mut next = Some(buffer);
        while let Some(mut buffer) = next {
            // Nothing of it is shared, or it would not be covered.
            next = cache.packet(&mut buffer).take_rest().unwrap_or_default();
            if let Err(buffer) = self.put(buffer, next.is_some(), cache) {
                // Not so: all are known, and there is room.
                cache.free(buffer);
            }
        }
        Ok(())
    }

    /// A packet that the kernel cannot be given: the kernel gets a copy.
    #[cold]
    fn push_copy(&mut self, mut buffer: Buffer, len: usize, cache: &mut Cache) -> Pushed {
        let pieces = len.div_ceil(DATA_SIZE);
        if pieces > 1 && !self.pieces {
            return Err((TxRefused::TooLong, buffer));
        }
        let room = self.room(pieces, cache);
        while room && self.blanks.len() < pieces {
            match self.sent.blank(cache) {
                Some(blank) => self.blanks.push(blank),
                None => break,
            }
        }
        if self.blanks.len() < pieces {
            let mut blanks = std::mem::take(&mut self.blanks);
            for blank in blanks.drain(..) {
                self.keep(blank, cache);
            }
            self.blanks = blanks;
            return Err((TxRefused::Full, buffer));
        }
        let mut blanks = std::mem::take(&mut self.blanks);
        for (at, mut blank) in blanks.drain(..).enumerate() {
            let start = at * DATA_SIZE;
            let to = DATA_SIZE.min(len - start);
            if let Some(to) = cache.packet(&mut blank).put(to) {
                cache.packet(&mut buffer).copy_at(start, to);
            }
            if let Err(blank) = self.put(blank, at + 1 < pieces, cache) {
                cache.free(blank);
            }
        }
        self.blanks = blanks;
        cache.free(buffer);
        Ok(())
    }

    /// Keeps a buffer that the kernel knows, or frees it.
    fn keep(&mut self, buffer: Buffer, cache: &mut Cache) {
        if self.sent.stock.len() < STOCK {
            self.sent.stock.push(buffer);
        } else {
            cache.free(buffer);
        }
    }

    /// Lets the kernel see what was added, wakes it if it sleeps, and takes back what was sent.
    pub(crate) fn send(&mut self, cache: &mut Cache) -> Kick {
        let LentTx { ring, sent, shared, .. } = self;
        let kick = shared.send(ring, || sent.reclaim(cache));
        sent.reclaim(cache);
        kick
    }

    /// Descriptors and indices that made no sense; always 0 with a sane kernel.
    pub(crate) fn malformed(&self) -> u64 {
        self.sent.malformed + self.ring.faults() + self.sent.completion.faults()
    }
}

impl Drop for LentTx {
    fn drop(&mut self) {
        let mut cache = self.shared.memory.pool().cache();
        self.sent.reclaim(&mut cache);
        for buffer in self.sent.stock.drain(..).chain(self.blanks.drain(..)) {
            cache.free(buffer);
        }
        self.shared.memory.keep_tx(self.sent.loans.take());
    }
}

#[cfg(test)]
#[path = "lent_tests.rs"]
mod tests;
