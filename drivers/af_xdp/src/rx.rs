//! `af_xdp-input`: frames from the kernel's ring into buffers.
//! **af_xdp-input** -> ethernet-input | a superpath, as the interface says

use std::fmt;
use std::os::fd::{AsFd as _, AsRawFd as _, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_buffer::{Buffer, Cache, FRAME_SIZE};
use shoal_derive::ErrorCounters;
use shoal_graph::{FrameCx, NodeIndex, RxQueue};
use shoal_interface::SwIfIndex;
use shoal_link::{Intake, Layer, NotIp, Refused};
use shoal_vnet::VnetHdr;

use crate::port::Port;
use crate::sys::queue::{Malformed, RxFrame, XskRx};
use crate::{XskStats, open_checksum};

/// Name of the input node all AF_XDP interfaces run under.
pub(crate) const NODE: &str = "af_xdp-input";

/// Empty polls after which the kernel's statistics are read.
const STATS_WHEN_IDLE: u32 = 64;
/// Polls after which they are read, also under load.
const STATS_EVERY: u32 = 1024;

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
    queue: XskRx,
    number: u32,
    senders: Senders,
    polls: u32,
    empty: u32,
    /// What the kernel had counted when it was last asked.
    stats: XskStats,
    malformed: u64,
}

impl XdpRx {
    pub(crate) fn new(port: Arc<Port>, queue: XskRx, number: u32, senders: Senders) -> Self {
        let (polls, empty, stats, malformed) = (0, 0, XskStats::default(), 0);
        XdpRx { port, queue, number, senders, polls, empty, stats, malformed }
    }

    /// Takes what is there, up to a frame's worth; tells how many frames left the ring.
    fn receive(&mut self, cx: &mut FrameCx<'_>) -> usize {
        let Some(mut rx) = self.queue.next() else { return 0 };
        let interface = self.port.index();
        let mtu = usize::from(self.port.interfaces.get(interface, cx.guard()).mtu);
        let mut intake = Intake::begin(cx, &self.port.interfaces, interface, Layer::Ethernet);
        let mut taken = 0;
        loop {
            taken += 1;
            let received = match rx {
                Ok(frame) if intake.is_up() => packet(cx.cache(), interface, &frame, (self.senders, mtu)),
                Ok(_) => Err(Error::AdminDown),
                Err(Malformed::Descriptor) => Err(Error::Malformed),
            };
            match received {
                Ok((mut buffer, vnet)) => {
                    if intake.is_traced()
                        && let Ok(frame) = rx
                    {
                        let (queue, next, len) = (self.number, intake.next(), frame.bytes.len());
                        let line = Trace { interface, queue, next, len, pieces: frame.pieces, vnet };
                        let mut pkt = cx.cache().packet(&mut buffer);
                        cx.begin_trace(&mut pkt, line);
                    }
                    if let Err(NotIp(buffer)) = intake.take(cx, buffer) {
                        cx.cache().free(buffer);
                    }
                }
                Err(error) => refuse(cx, interface, error),
            }
            if taken == FRAME_SIZE {
                break;
            }
            match self.queue.next() {
                Some(more) => rx = more,
                None => break,
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

/// One frame as a packet, and what it owes.
#[inline]
fn packet(
    cache: &mut Cache,
    interface: SwIfIndex,
    frame: &RxFrame<'_>,
    (senders, mtu): (Senders, usize),
) -> Result<(Buffer, VnetHdr), Error> {
    let vnet = match senders {
        Senders::Finish => VnetHdr::default(),
        Senders::LeaveOpen => open_checksum::owed(frame.bytes, mtu),
    };
    Ok((shoal_link::packet(cache, interface, frame.bytes, vnet)?, vnet))
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

    fn wait_fd(&self) -> Option<RawFd> {
        Some(self.queue.as_fd().as_raw_fd())
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
