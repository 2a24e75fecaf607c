//! `af_xdp-input`: frames from the kernel's ring into buffers.
//! **af_xdp-input** -> ethernet-input | a superpath, as the interface says

use std::fmt;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use shoal_buffer::{Buffer, Cache, FRAME_SIZE};
use shoal_derive::ErrorCounters;
use shoal_graph::clock::Time;
use shoal_graph::{FrameCx, NodeIndex, RxQueue};
use shoal_interface::SwIfIndex;
use shoal_link::{Intake, Layer, NotIp, Refused};
use shoal_vnet::VnetHdr;

use crate::port::Port;
use crate::queue_memory::Rx;
use crate::sys::lent::NotReceived;
use crate::sys::queue::{Malformed, RxFrame};
use crate::{XskStats, open_checksum};

/// Name of the input node all AF_XDP interfaces run under.
pub(crate) const NODE: &str = "af_xdp-input";

/// Empty polls after which the kernel's statistics are read.
const STATS_WHEN_IDLE: u32 = 64;
/// Polls after which they are read, also under load.
const STATS_EVERY: u32 = 1024;

/// When the kernel is asked again to send what it did not send at once.
const ASK_AGAIN: Duration = Duration::from_micros(100);

/// Why a frame does not become a packet.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// no buffer free
    NoBuffer,
    /// descriptor makes no sense
    #[severity(warn)]
    Malformed,
    /// checksum offsets do not fit the frame
    BadOffload,
    /// received on an interface that is down
    AdminDown,
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::NoBuffer => Error::NoBuffer,
            Refused::BadOffload => Error::BadOffload,
        }
    }
}

impl From<NotReceived> for Error {
    fn from(why: NotReceived) -> Self {
        match why {
            NotReceived::Malformed => Error::Malformed,
            NotReceived::NoBuffer => Error::NoBuffer,
        }
    }
}

/// Whether senders may leave checksums open: those of virtual interfaces do, and generic mode hides who it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Senders {
    /// What comes was on a wire.
    Finish,
    /// Checksums may be open.
    LeaveOpen,
}

/// One receive queue of one interface.
pub(crate) struct XdpRx {
    port: Arc<Port>,
    queue: Rx,
    number: u32,
    senders: Senders,
    polls: u32,
    empty: u32,
    /// What the kernel had counted when it was last asked.
    stats: XskStats,
    malformed: u64,
}

impl XdpRx {
    pub(crate) fn new(port: Arc<Port>, queue: Rx, number: u32, senders: Senders) -> Self {
        let (polls, empty, stats, malformed) = (0, 0, XskStats::default(), 0);
        XdpRx { port, queue, number, senders, polls, empty, stats, malformed }
    }

    /// Takes what is there, up to a frame's worth; tells how many frames left the ring.
    fn receive(&mut self, cx: &mut FrameCx<'_>) -> usize {
        if !self.queue.is_ready() {
            return 0;
        }
        let interface = self.port.index();
        let mtu = usize::from(self.port.interfaces.get(interface, cx.guard()).mtu);
        let mut intake = Intake::begin(cx, &self.port.interfaces, interface, Layer::Ethernet);
        let (up, as_received) = (intake.is_up(), (interface, self.senders, mtu));
        let mut taken = 0;
        while taken < FRAME_SIZE {
            let next = match &mut self.queue {
                Rx::Own(queue) => queue.next().map(|frame| match frame {
                    Ok(frame) if up => packet(cx.cache(), &frame, as_received),
                    Ok(_) => Err(Error::AdminDown),
                    Err(Malformed::Descriptor) => Err(Error::Malformed),
                }),
                Rx::Lent(queue) => queue.next(cx.cache()).map(|got| {
                    let (buffer, pieces) = got?;
                    if !up {
                        cx.cache().free(buffer);
                        return Err(Error::AdminDown);
                    }
                    complete(cx.cache(), buffer, pieces, as_received)
                }),
            };
            let Some(received) = next else { break };
            taken += 1;
            match received {
                Ok(Received { mut buffer, pieces, vnet }) => {
                    if intake.is_traced() {
                        let mut pkt = cx.cache().packet(&mut buffer);
                        let (queue, next, len) = (self.number, intake.next(), pkt.len());
                        cx.begin_trace(&mut pkt, Trace { interface, queue, next, len, pieces, vnet });
                    }
                    if let Err(NotIp(buffer)) = intake.take(cx, buffer) {
                        cx.cache().free(buffer);
                    }
                }
                Err(error) => refuse(cx, interface, error),
            }
        }
        intake.finish(cx);
        taken
    }

    #[cold]
    fn read_stats(&mut self, cx: &FrameCx<'_>) {
        let malformed = self.queue.malformed();
        self.port.malformed.fetch_add(malformed - self.malformed, Ordering::Relaxed);
        self.malformed = malformed;
        let Ok(stats) = self.queue.stats() else { return };
        let (thread, index) = (cx.thread(), self.port.index());
        let missed = stats.missed().saturating_sub(self.stats.missed());
        if missed > 0 {
            cx.counters().rx_miss.add(thread, index.0 as usize, missed);
        }
        self.port.counters.add(thread, index, &self.stats, &stats);
        self.stats = stats;
    }
}

/// A frame as a packet, how many pieces it came in, and what it owes.
struct Received {
    buffer: Buffer,
    pieces: u32,
    vnet: VnetHdr,
}

/// The interface, what its senders do, and its MTU.
type AsReceived = (SwIfIndex, Senders, usize);

/// What a frame owes of which this is the beginning.
#[inline]
fn owed(first: &[u8], total: usize, senders: Senders, mtu: usize) -> VnetHdr {
    match senders {
        Senders::Finish => VnetHdr::default(),
        Senders::LeaveOpen => open_checksum::owed(first, total, mtu),
    }
}

/// A frame in the queue's own memory as a packet.
#[inline]
fn packet(
    cache: &mut Cache,
    frame: &RxFrame<'_>,
    (interface, senders, mtu): AsReceived,
) -> Result<Received, Error> {
    let vnet = owed(frame.bytes, frame.bytes.len(), senders, mtu);
    let buffer = shoal_link::packet(cache, interface, frame.bytes, vnet)?;
    Ok(Received { buffer, pieces: frame.pieces, vnet })
}

/// A frame that lies in buffers already.
#[inline]
fn complete(
    cache: &mut Cache,
    mut buffer: Buffer,
    pieces: u32,
    (interface, senders, mtu): AsReceived,
) -> Result<Received, Error> {
    let mut pkt = cache.packet(&mut buffer);
    pkt.meta_mut().rx = interface;
    let vnet = owed(pkt.data(), pkt.len(), senders, mtu);
    // All that is checked lies in the first segment, or `store` refuses it.
    let stored = vnet.validate(&[pkt.data()]).ok().and_then(|offload| offload.store(&mut pkt).ok());
    if stored.is_none() {
        cache.free(buffer);
        return Err(Error::BadOffload);
    }
    Ok(Received { buffer, pieces, vnet })
}

#[cold]
fn refuse(cx: &FrameCx<'_>, interface: SwIfIndex, error: Error) {
    let (thread, at) = (cx.thread(), interface.0 as usize);
    match error {
        Error::NoBuffer => cx.counters().rx_no_buf.add(thread, at, 1),
        Error::Malformed | Error::BadOffload => cx.counters().rx_error.add(thread, at, 1),
        Error::AdminDown => {}
    }
    cx.count(error, 1);
}

impl RxQueue for XdpRx {
    fn poll(&mut self, cx: &mut FrameCx<'_>) -> usize {
        let taken = self.receive(cx);
        self.queue.flush();
        self.polls = self.polls.wrapping_add(1);
        if taken > 0 {
            self.empty = 0;
            if self.polls.is_multiple_of(STATS_EVERY) {
                self.read_stats(cx);
            }
        } else {
            self.empty = self.empty.wrapping_add(1);
            if self.empty.is_multiple_of(STATS_WHEN_IDLE) {
                self.read_stats(cx);
            }
        }
        taken
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.queue.as_fd())
    }

    /// No packet may come that would bring those along which the kernel did not send at once.
    fn deadline(&self, now: Time) -> Option<Time> {
        self.queue.is_stuck().then(|| now.after(ASK_AGAIN))
    }
}

/// What `show trace` says of a received frame.
struct Trace {
    interface: SwIfIndex,
    queue: u32,
    next: NodeIndex,
    len: usize,
    pieces: u32,
    vnet: VnetHdr,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trace { interface, queue, next, len, pieces, vnet } = self;
        write!(f, "af_xdp: {interface} ({queue}) next-node {} len {len}", next.number())?;
        if *pieces > 1 {
            write!(f, " pieces {pieces}")?;
        }
        if vnet.flags != 0 {
            write!(f, " open checksum at {}+{}", vnet.csum_start.get(), vnet.csum_offset.get())?;
        }
        Ok(())
    }
}
