//! One transmit queue: frames gathered from their segments and handed to the kernel by the batch.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;

use shoal_vnet::{VNET_HDR_LEN, VnetHdr};
use zerocopy::FromZeros as _;

use super::socket::{PacketSocket, Receive};
use shoal_link::IfIndex;

use crate::Error;

/// Segments of one frame at most; `UIO_MAXIOV` is 1024 and one goes to the vnet header.
const MAX_SEGMENTS: usize = 1023;

/// How a [`TxQueue`] is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxConfig {
    /// Frames in a batch, 1 to 1024.
    pub batch: usize,
    /// Bytes that may wait in the interface's queue before the kernel says "full".
    pub send_buffer: usize,
    /// Whether frames pass the interface's queueing discipline (`tc`).
    pub qdisc: Qdisc,
}

/// Whether the kernel's queueing discipline is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Qdisc {
    /// As every program: `tc` shapes and counts, and a full device makes frames wait.
    #[default]
    Use,
    /// `PACKET_QDISC_BYPASS`: less work per frame, but a full device drops.
    Bypass,
}

impl Default for TxConfig {
    /// 256 frames a batch, 4 MiB of send buffer (64 superframes), through the queueing discipline.
    fn default() -> Self {
        Self { batch: 256, send_buffer: 4 << 20, qdisc: Qdisc::Use }
    }
}

/// What became of a batch; the fields add up to the frames that were in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxReport {
    /// Taken by the kernel.
    pub sent: usize,
    /// Not sent because the queue was full (EAGAIN, ENOBUFS).
    pub queue_full: usize,
    /// Longer than the interface's MTU allows (EMSGSIZE).
    pub too_big: usize,
    /// Refused for what they are (EINVAL: shorter than a header, or a wrong vnet header).
    pub invalid: usize,
    /// The interface is down (ENETDOWN).
    pub down: usize,
    /// The interface has been deleted (ENXIO, ENODEV).
    pub gone: usize,
    /// Any other error.
    pub other: usize,
}

/// The batch cannot take this frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TxRefused {
    /// Send the batch, then push again.
    #[error("the batch is full")]
    BatchFull,
    /// More segments than a system call takes: it can never be sent.
    #[error("a frame of {0} segments; at most {MAX_SEGMENTS} can be sent")]
    TooManySegments(usize),
}

/// One transmit queue of an interface. It allocates when it is opened and never again.
///
/// ```no_run
/// # use shoal_af_packet::{TxConfig, TxQueue};
/// # use shoal_link::Link;
/// # use shoal_vnet::VnetHdr;
/// # let (frame, head, tail) = ([0u8; 60], [0u8; 66], [0u8; 1448]);
/// let mut queue = TxQueue::open(Link::by_name("eth1")?.index, &TxConfig::default())?;
/// let mut batch = queue.batch();
/// batch.push(VnetHdr::default(), [&frame[..]]).ok();
/// batch.push(VnetHdr::default(), [&head[..], &tail[..]]).ok();
/// let report = batch.send();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TxQueue {
    socket: PacketSocket,
    vnet: Box<[VnetHdr]>,
    iov: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
}

// SAFETY: the raw pointers in `iov` and `messages` are written and dereferenced only inside `TxBatch`,
// which borrows the queue; between batches they are stale and never followed, on any thread.
unsafe impl Send for TxQueue {}

impl TxQueue {
    /// Opens a queue in the network namespace of the calling thread.
    pub fn open(ifindex: IfIndex, config: &TxConfig) -> Result<Self, Error> {
        if !(1..=1024).contains(&config.batch) {
            let (what, rule) = ("transmit batch", "from 1 to 1024");
            return Err(Error::Config { what, value: config.batch as u64, rule });
        }
        let socket = PacketSocket::open()?;
        socket.set(libc::PACKET_VNET_HDR, &1i32, "PACKET_VNET_HDR")?;
        if config.qdisc == Qdisc::Bypass {
            socket.set(libc::PACKET_QDISC_BYPASS, &1i32, "PACKET_QDISC_BYPASS")?;
        }
        let bytes = i32::try_from(config.send_buffer / 2).unwrap_or(i32::MAX);
        socket.set_buffer(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, bytes)?;
        socket.bind(ifindex, Receive::Nothing)?;
        let empty = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        // SAFETY: an all-zero mmsghdr is valid: null pointers with zero lengths.
        let message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        Ok(Self {
            socket,
            vnet: vec![VnetHdr::new_zeroed(); config.batch].into(),
            // A chain of 64 KiB is 33 segments of 2 KiB: room for one in eight to be such a chain, and for
            // at least one of the longest.
            iov: vec![empty; (config.batch * 6).max(MAX_SEGMENTS + 1)].into(),
            messages: vec![message; config.batch].into(),
        })
    }

    /// Starts a batch; `'a` is how long the segments must stay.
    pub fn batch<'a>(&mut self) -> TxBatch<'_, 'a> {
        TxBatch { queue: self, frames: 0, segments: 0, data: PhantomData }
    }

    /// For epoll: writable when the send buffer has room again.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }

    /// Whether the interface has been deleted or moved away.
    pub fn is_gone(&self) -> bool {
        self.socket.bound_to().is_none()
    }
}

impl AsFd for TxQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }
}

/// Frames on their way into one system call. Dropping it unsent sends nothing.
pub struct TxBatch<'q, 'a> {
    queue: &'q mut TxQueue,
    frames: usize,
    segments: usize,
    data: PhantomData<&'a [u8]>,
}

impl<'a> TxBatch<'_, 'a> {
    /// Frames in the batch.
    pub fn len(&self) -> usize {
        self.frames
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// Adds a frame: its vnet header (`VnetHdr::default()` when it owes nothing) and its segments in order.
    /// A refused frame leaves the batch as it was.
    pub fn push<I>(&mut self, vnet: VnetHdr, segments: I) -> Result<(), TxRefused>
    where
        I: IntoIterator<Item = &'a [u8]>,
    {
        let queue = &mut *self.queue;
        let (Some(slot), Some(message), Some(iov)) = (
            queue.vnet.get_mut(self.frames),
            queue.messages.get_mut(self.frames),
            queue.iov.get_mut(self.segments..),
        ) else {
            return Err(TxRefused::BatchFull);
        };
        let (mut used, mut segments) = (1, segments.into_iter());
        while let Some(segment) = segments.next() {
            let Some(entry) = iov.get_mut(used).filter(|_| used <= MAX_SEGMENTS) else {
                let count = used + segments.count();
                let hopeless = count > MAX_SEGMENTS;
                return Err(if hopeless { TxRefused::TooManySegments(count) } else { TxRefused::BatchFull });
            };
            *entry = libc::iovec { iov_base: segment.as_ptr().cast_mut().cast(), iov_len: segment.len() };
            used += 1;
        }
        let Some(first) = iov.first_mut() else { return Err(TxRefused::BatchFull) };
        *slot = vnet;
        *first = libc::iovec { iov_base: ptr::from_mut(slot).cast(), iov_len: VNET_HDR_LEN };
        message.msg_hdr.msg_iov = first;
        message.msg_hdr.msg_iovlen = used as _;
        self.frames += 1;
        self.segments += used;
        Ok(())
    }

    /// Hands the batch to the kernel, never waiting. Frames the kernel refuses for what they are (too big,
    /// invalid) are passed over; when the queue is full, or the interface down or gone, the rest is given
    /// up. Nothing is kept: whatever the report says, the caller frees all the buffers.
    pub fn send(mut self) -> TxReport {
        let mut report = TxReport::default();
        let mut at = 0;
        while at < self.frames {
            match self.call(at) {
                Ok(sent) => {
                    report.sent += sent;
                    at += sent;
                }
                Err(errno) => {
                    let rest = self.frames - at;
                    let (field, lost) = match errno {
                        libc::EINTR => continue,
                        libc::EMSGSIZE => (&mut report.too_big, 1),
                        libc::EINVAL => (&mut report.invalid, 1),
                        libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM => (&mut report.queue_full, rest),
                        libc::ENETDOWN => (&mut report.down, rest),
                        libc::ENXIO | libc::ENODEV => (&mut report.gone, rest),
                        _ => (&mut report.other, 1),
                    };
                    *field += lost;
                    at += lost;
                }
            }
        }
        report
    }

    /// One system call for the frames from `at`; how many went, at least one.
    fn call(&mut self, at: usize) -> Result<usize, i32> {
        let fd = self.queue.socket.fd().as_raw_fd();
        let Some(messages) = self.queue.messages.get_mut(at..self.frames) else { return Err(libc::EINVAL) };
        // SAFETY: `messages` holds initialised headers whose iovecs, in `queue.iov`, point at `queue.vnet`
        // and at segments that live for `'a`, longer than `self`. All these arrays are boxed and do not
        // move. The kernel writes only `msg_len`, in memory that we hold by `&mut`.
        let rc =
            unsafe { libc::sendmmsg(fd, messages.as_mut_ptr(), messages.len() as u32, libc::MSG_DONTWAIT) };
        match usize::try_from(rc) {
            Ok(0) => Err(libc::EIO),
            Ok(sent) => Ok(sent),
            Err(_) => Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)),
        }
    }
}
