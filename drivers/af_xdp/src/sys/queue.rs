//! One queue of an interface with packet memory of its own: its four rings, and the owner of each frame.
//!
//! Packet memory is cut into frames of [`CHUNK`] bytes. The first belong to the receiving half, the others to the
//! transmitting one; the halves share nothing else and may be on different threads. Each half knows which of its frames
//! the kernel has: an address that comes back without having been given away, or lies elsewhere, is counted and left alone.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use shoal_link::IfIndex;

use super::ring::{Consumer, Desc, Layout, Producer};
use super::rx_rings::RxRings;
use super::socket::{RingKind, XskSocket, XskStats};
use crate::Error;
use shoal_shm::{Mapping, Populate};

/// Bytes of a frame: the largest chunk the kernel takes, a page.
pub(crate) const CHUNK: usize = 4096;
/// What the kernel leaves free in front of a received frame (`XDP_PACKET_HEADROOM`).
const KERNEL_HEADROOM: usize = 256;
/// Longest frame that fits one chunk when it is received.
pub(crate) const LONGEST_SINGLE: usize = CHUNK - KERNEL_HEADROOM;
/// Longest frame in several chunks: a superframe, with its headers.
pub(crate) const LONGEST: usize = 18 * LONGEST_SINGLE;
/// Calls in a row that may ask the kernel to go on sending.
const MOST_KICKS: usize = 64;

/// Who copies between the driver and packet memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copying {
    /// No copies if the driver can, else the kernel copies.
    #[default]
    Auto,
    /// The kernel (`no-zero-copy`).
    Copy,
    /// No copies, or the interface is refused (`zero-copy`).
    ZeroCopy,
}

/// Where packets are while the kernel has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketMemory {
    /// In the router's buffers if that is possible, else as [`PacketMemory::Own`].
    #[default]
    Auto,
    /// In the router's buffers, or the interface is refused (`pool-memory`).
    Pool,
    /// In memory of the queue's own, from and to which they are copied (`own-memory`).
    Own,
}

/// How a thread drives the driver instead of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyPoll {
    /// Microseconds that a look may take.
    pub usecs: u32,
    /// Frames that it may bring.
    pub budget: u32,
}

/// How a queue is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XskConfig {
    /// Entries of the receive ring, a power of two.
    pub rx_size: u32,
    /// Entries of the transmit ring, a power of two.
    pub tx_size: u32,
    /// Who copies.
    pub copying: Copying,
    /// Where packets are while the kernel has them.
    pub memory: PacketMemory,
    /// Frames in several chunks.
    pub multi_buffer: bool,
    /// Busy polling, if wanted.
    pub busy_poll: Option<BusyPoll>,
}

impl Default for XskConfig {
    /// VPP's sizes: four frames' worth.
    fn default() -> Self {
        let (copying, memory) = (Copying::default(), PacketMemory::default());
        XskConfig { rx_size: 1024, tx_size: 1024, copying, memory, multi_buffer: false, busy_poll: None }
    }
}

/// What the halves of a queue share. The socket is closed before its packet memory, `M`, goes.
pub(super) struct Shared<M: ?Sized> {
    pub(super) socket: XskSocket,
    /// Frames wait in the transmit ring for somebody to ask the kernel again.
    pub(super) stuck: AtomicBool,
    pub(super) memory: M,
}

impl<M: ?Sized> Shared<M> {
    /// Asks again for the packets that did not get through.
    pub(super) fn unstick(&self) {
        if self.stuck.load(Ordering::Relaxed) {
            self.stuck.store(false, Ordering::Relaxed);
            let full = [libc::EAGAIN, libc::EBUSY, libc::ENOBUFS, libc::EINTR];
            if self.socket.wake_tx().is_err_and(|e| full.contains(&e)) {
                self.stuck.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Lets the kernel see what is in the transmit ring, and wakes it if it sleeps. `reclaim` takes back what was sent.
    pub(super) fn send(&self, ring: &Producer, mut reclaim: impl FnMut()) -> Kick {
        ring.publish();
        if !ring.needs_wakeup() {
            return Kick::Done;
        }
        let mut waiting = ring.waiting();
        for _ in 0..MOST_KICKS {
            match self.socket.wake_tx() {
                Ok(()) if ring.waiting() == 0 => return Kick::Done,
                // A call sends so many and says that there are more; or the device is full.
                Ok(()) | Err(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR) => {
                    let left = ring.waiting();
                    if left == 0 {
                        return Kick::Done;
                    }
                    reclaim();
                    if left == waiting {
                        break;
                    }
                    waiting = left;
                }
                Err(libc::ENETDOWN) => return Kick::Down,
                Err(libc::ENXIO | libc::ENODEV | libc::EBADF) => return Kick::Gone,
                Err(_) => break,
            }
        }
        self.stuck.store(true, Ordering::Relaxed);
        Kick::Later
    }
}

/// The control plane's view of a queue. The socket is open as long as it is kept.
#[derive(Clone)]
pub(crate) struct XskHandle(pub(super) Arc<Shared<dyn Send + Sync>>);

impl XskHandle {
    /// The kernel's counters.
    pub(crate) fn stats(&self) -> Result<XskStats, Error> {
        self.0.socket.stats()
    }
}

impl AsFd for XskHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.socket.fd()
    }
}

/// A queue's rings with where their parts lie: to receive, to send, of free frames and of sent ones.
pub(super) type Rings = [(Mapping, Layout); 4];

/// Makes the rings of a socket that has its memory, and ties it to a queue; whether the driver does not copy.
pub(super) fn tie(
    socket: &XskSocket,
    ifindex: IfIndex,
    queue: u32,
    config: &XskConfig,
) -> Result<(Rings, bool), Error> {
    let fill = socket.ring(RingKind::Fill, 2 * config.rx_size)?;
    let completion = socket.ring(RingKind::Completion, config.tx_size)?;
    let rx = socket.ring(RingKind::Rx, config.rx_size)?;
    let tx = socket.ring(RingKind::Tx, config.tx_size)?;
    if let Some(BusyPoll { usecs, budget }) = config.busy_poll {
        socket.busy_poll(usecs, budget)?;
    }
    socket.set_budget(config.tx_size);
    let copying = match config.copying {
        Copying::Auto => 0,
        Copying::Copy => libc::XDP_COPY,
        Copying::ZeroCopy => libc::XDP_ZEROCOPY,
    };
    let pieces = if config.multi_buffer { libc::XDP_USE_SG } else { 0 };
    socket.bind(ifindex, queue, libc::XDP_USE_NEED_WAKEUP | copying | pieces)?;
    Ok(([rx, tx, fill, completion], socket.is_zero_copy()?))
}

/// Opens a queue with packet memory of its own: both its halves.
pub(crate) fn open(ifindex: IfIndex, queue: u32, config: &XskConfig) -> Result<(XskRx, XskTx), Error> {
    let socket = XskSocket::open()?;
    // Twice the ring: as many may wait to be filled as wait to be read.
    let (rx_frames, tx_frames) = (2 * config.rx_size as usize, config.tx_size as usize);
    let memory = Mapping::anonymous((rx_frames + tx_frames) * CHUNK, Populate::Now)
        .map_err(Error::os("mmap(packet memory)"))?;
    socket.register(&memory, CHUNK as u32).map_err(locked)?;
    let (rings, zero_copy) = tie(&socket, ifindex, queue, config)?;
    let shared = Arc::new(Shared { socket, stuck: AtomicBool::new(false), memory });
    Ok(halves(shared, rings, config, zero_copy))
}

/// Both halves over memory and rings.
fn halves(
    shared: Arc<Shared<Mapping>>,
    [rx, tx, fill, completion]: Rings,
    config: &XskConfig,
    zero_copy: bool,
) -> (XskRx, XskTx) {
    let (rx_frames, tx_frames) = (2 * config.rx_size as usize, config.tx_size as usize);
    let mut receiving = XskRx {
        rings: RxRings::new([rx, fill], config, zero_copy, &shared),
        kernels: vec![false; rx_frames].into(),
        hand: None,
        long: vec![0; if config.multi_buffer { LONGEST } else { 0 }].into(),
    };
    (0..rx_frames).for_each(|frame| receiving.give(frame));
    receiving.rings.fill.publish();
    let transmitting = XskTx {
        ring: Producer::new(tx.0, tx.1),
        frames: TxFrames {
            completion: Consumer::new(completion.0, completion.1),
            first: rx_frames,
            free: (0..tx_frames).rev().map(|frame| frame as u32).collect(),
            kernels: vec![false; tx_frames].into(),
            malformed: 0,
        },
        pieces: config.multi_buffer,
        shared,
    };
    (receiving, transmitting)
}

/// Says what a refusal of memory means.
pub(super) fn locked(error: Error) -> Error {
    match error {
        Error::Os { source, .. } if source.raw_os_error() == Some(libc::ENOBUFS) => {
            Error::Os { what: "XDP_UMEM_REG, more memory than `ulimit -l' allows to lock", source }
        }
        other => other,
    }
}

/// A received frame. It is in the router's hand until the next one is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RxFrame<'a> {
    pub(crate) bytes: &'a [u8],
    /// Pieces it came in.
    pub(crate) pieces: u32,
}

/// Something wrong with what the kernel gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// An address or length outside of its frame, or a frame that we have; or more pieces than there may be.
    Descriptor,
}

/// The receiving half.
pub(crate) struct XskRx {
    pub(crate) rings: RxRings<Mapping>,
    /// Which frames the kernel has.
    kernels: Box<[bool]>,
    /// The frame in hand, which goes back when the next one is asked for.
    hand: Option<usize>,
    /// Where frames in several pieces are put together.
    long: Box<[u8]>,
}

impl XskRx {
    /// Gives a frame to the kernel. The ring has room for all frames there are.
    #[inline]
    fn give(&mut self, frame: usize) {
        let given = self.rings.fill.put_address((frame * CHUNK) as u64);
        if let Some(kernels) = self.kernels.get_mut(frame) {
            *kernels = given;
        }
    }

    /// Takes a frame back from the kernel: which it is, where its bytes begin.
    #[inline]
    fn take_back(&mut self, desc: Desc) -> Option<(usize, usize)> {
        let start = usize::try_from(desc.addr).ok()?;
        let (frame, offset) = (start / CHUNK, start % CHUNK);
        let kernels = self.kernels.get_mut(frame).filter(|kernels| **kernels)?;
        *kernels = false;
        if offset + desc.len as usize > CHUNK {
            // It is ours again all the same.
            self.give(frame);
            return None;
        }
        Some((frame, start))
    }

    /// The next frame, or `None` when there is none.
    // Not `Iterator`: the frame borrows the queue, so that it cannot return to the kernel under it.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Result<RxFrame<'_>, Malformed>> {
        if let Some(frame) = self.hand.take() {
            self.give(frame);
        }
        let desc = self.rings.ring.take()?;
        let Some((frame, start)) = self.take_back(desc) else {
            self.rings.malformed += 1;
            return Some(Err(Malformed::Descriptor));
        };
        if desc.options & libc::XDP_PKT_CONTD != 0 {
            return Some(self.next_long(desc, frame, start));
        }
        self.hand = Some(frame);
        // SAFETY: the kernel has given this frame back (`take_back`), and gets it again only through `give`, which
        // takes `&mut self`, which the returned frame keeps borrowed; it is of our half, so no other code has it.
        let bytes = unsafe { self.rings.shared.memory.bytes(start, desc.len as usize) }.unwrap_or_default();
        Some(Ok(RxFrame { bytes, pieces: 1 }))
    }

    /// A frame whose first piece is this: put together.
    #[cold]
    fn next_long(&mut self, first: Desc, frame: usize, start: usize) -> Result<RxFrame<'_>, Malformed> {
        let (mut len, mut pieces, mut whole) = (0, 0, true);
        let mut piece = Some((first, frame, start));
        while let Some((desc, frame, start)) = piece {
            pieces += 1;
            let end = len + desc.len as usize;
            // SAFETY: as in `next`; the slice ends before the frame is given away.
            let bytes = unsafe { self.rings.shared.memory.bytes(start, desc.len as usize) };
            match self.long.get_mut(len..end).zip(bytes) {
                Some((to, bytes)) => to.copy_from_slice(bytes),
                None => whole = false,
            }
            len = if whole { end } else { len };
            self.give(frame);
            if desc.options & libc::XDP_PKT_CONTD == 0 {
                break;
            }
            piece = loop {
                // The kernel shows a frame with all its pieces. If it does not, what is there is not a frame.
                let Some(more) = self.rings.ring.take() else {
                    whole = false;
                    break None;
                };
                if let Some((frame, start)) = self.take_back(more) {
                    break Some((more, frame, start));
                }
                whole = false;
                if more.options & libc::XDP_PKT_CONTD == 0 {
                    break None;
                }
            };
        }
        self.rings.malformed += u64::from(!whole);
        let bytes = self.long.get(..len).filter(|_| whole).ok_or(Malformed::Descriptor)?;
        Ok(RxFrame { bytes, pieces })
    }

    /// Lets the kernel see what was read and what is free, and wakes it if it sleeps.
    pub(crate) fn flush(&mut self) {
        if let Some(frame) = self.hand.take() {
            self.give(frame);
        }
        self.rings.flush();
    }
}

/// A frame is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TxRefused {
    /// All frames are with the kernel.
    Full,
    /// Longer than frames can be.
    TooLong,
}

/// What came of asking the kernel to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kick {
    /// It does.
    Done,
    /// It goes on when it can; what waits is sent later.
    Later,
    /// The interface is down.
    Down,
    /// The interface is gone.
    Gone,
}

/// The frames of a transmitting half, and the owner of each.
struct TxFrames {
    completion: Consumer,
    /// The first of them.
    first: usize,
    /// Those that are ours, counted from the first.
    free: Vec<u32>,
    /// Which of them the kernel has.
    kernels: Box<[bool]>,
    malformed: u64,
}

impl TxFrames {
    /// Takes frames back that were sent.
    fn reclaim(&mut self) {
        let start = (self.first * CHUNK) as u64;
        while let Some(addr) = self.completion.take_address() {
            let frame = addr.checked_sub(start).map(|offset| offset / CHUNK as u64);
            let frame = frame.and_then(|frame| usize::try_from(frame).ok());
            match frame.and_then(|frame| Some((frame, self.kernels.get_mut(frame).filter(|k| **k)?))) {
                Some((frame, kernels)) => {
                    *kernels = false;
                    self.free.push(frame as u32);
                }
                None => self.malformed += 1,
            }
        }
        self.completion.publish();
    }
}

/// The transmitting half.
pub(crate) struct XskTx {
    ring: Producer,
    frames: TxFrames,
    pieces: bool,
    // Dropped last: the socket lives as long as its rings.
    shared: Arc<Shared<Mapping>>,
}

impl XskTx {
    /// Free frames, after those that were sent have come back if there are fewer than that.
    #[inline]
    fn room(&mut self, frames: usize) -> bool {
        if self.frames.free.len() < frames {
            self.frames.reclaim();
        }
        self.frames.free.len() >= frames && self.ring.room(frames as u32) as usize >= frames
    }

    /// Writes up to a chunk into a free frame with `fill`, which tells how many bytes they are, and puts it into the ring.
    #[inline]
    fn put(&mut self, options: u32, fill: impl FnOnce(&mut [u8]) -> Option<usize>) -> Option<()> {
        let frame = *self.frames.free.last()?;
        let start = (self.frames.first + frame as usize) * CHUNK;
        // SAFETY: a free frame of our half is not the kernel's, and only we have it; the slice ends with this function.
        let chunk = unsafe { self.shared.memory.bytes_mut(start, CHUNK) }?;
        let len = fill(chunk).filter(|len| *len <= CHUNK)?;
        if !self.ring.put(Desc { addr: start as u64, len: len as u32, options }) {
            return None;
        }
        self.frames.free.pop();
        if let Some(kernels) = self.frames.kernels.get_mut(frame as usize) {
            *kernels = true;
        }
        Some(())
    }

    /// Adds a frame of `len` bytes in segments.
    ///
    /// # Errors
    /// Nothing is added then.
    pub(crate) fn push<'a>(
        &mut self,
        len: usize,
        segments: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), TxRefused> {
        if len > CHUNK && !(self.pieces && len <= LONGEST) {
            return Err(TxRefused::TooLong);
        }
        let chunks = len.div_ceil(CHUNK).max(1);
        if !self.room(chunks) {
            return Err(TxRefused::Full);
        }
        let (mut segments, mut rest): (_, &[u8]) = (segments, &[]);
        for chunk in 1..=chunks {
            let options = if chunk < chunks { libc::XDP_PKT_CONTD } else { 0 };
            let put = self.put(options, |frame| {
                let mut at = 0;
                while at < frame.len() {
                    if rest.is_empty() {
                        match segments.next() {
                            Some(segment) => rest = segment,
                            None => break,
                        }
                    }
                    let n = rest.len().min(frame.len() - at);
                    let (now, later) = rest.split_at_checked(n)?;
                    frame.get_mut(at..at + n)?.copy_from_slice(now);
                    at += n;
                    rest = later;
                }
                Some(at)
            });
            put.ok_or(TxRefused::Full)?;
        }
        Ok(())
    }

    /// Adds a frame that `fill` writes, which tells its length.
    ///
    /// # Errors
    /// There is no free frame, or `fill` made none.
    pub(crate) fn push_with(
        &mut self,
        fill: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Result<(), TxRefused> {
        if !self.room(1) {
            return Err(TxRefused::Full);
        }
        self.put(0, fill).ok_or(TxRefused::TooLong)
    }

    /// Lets the kernel see what was added, and wakes it if it sleeps.
    pub(crate) fn send(&mut self) -> Kick {
        let XskTx { ring, frames, shared, .. } = self;
        shared.send(ring, || frames.reclaim())
    }

    /// Descriptors and indices that made no sense; always 0 with a sane kernel.
    pub(crate) fn malformed(&self) -> u64 {
        self.frames.malformed + self.ring.faults() + self.frames.completion.faults()
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
