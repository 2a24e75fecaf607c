//! `virtio-input`: frames that the host's programs sent, into buffers. VPP's name for it, whose TAPs are virtio
//! devices; it is what operators trace.
//! **virtio-input** -> ethernet-input | ip4-input (tun) | a superpath, as the interface says

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_buffer::{Buffer, Cache, FRAME_SIZE};
use shoal_derive::ErrorCounters;
use shoal_graph::clock::Time;
use shoal_graph::{FrameCx, NodeIndex, RxQueue};
use shoal_interface::SwIfIndex;
use shoal_link::{Intake, Layer, NotIp, Refused};
use shoal_vnet::VnetHdr;

use crate::pair::Receiver;
use crate::port::Port;
use crate::ring::{LONGEST, Malformed};
use crate::rx_ring::RxRing;
use crate::{RecvError, TapQueue};

/// Name of the input node all TAPs run under.
pub(crate) const NODE: &str = "virtio-input";

/// For the longest frame the host sends, and one byte by which a longer one shows.
const STORE: usize = LONGEST + 1;

/// Why a frame does not become a packet.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// no buffer free
    NoBuffer,
    /// frame longer than 64 KiB
    Truncated,
    /// vnet header does not fit its frame
    BadOffload,
    /// received on an interface that is down
    AdminDown,
    /// not an IP packet
    NotIp,
    /// read failed
    #[severity(warn)]
    Read,
    /// used ring entry that makes no sense
    #[severity(warn)]
    Malformed,
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::NoBuffer => Error::NoBuffer,
            Refused::BadOffload => Error::BadOffload,
        }
    }
}

/// One receive queue of one TAP.
pub(crate) struct TapRx {
    port: Arc<Port>,
    source: Source,
    number: u32,
    layer: Layer,
}

/// Where frames are taken from.
enum Source {
    /// By system calls.
    Calls {
        queue: TapQueue,
        /// Where the kernel writes a frame before its length, and so its number of buffers, is known.
        store: Box<[u8]>,
    },
    /// By vhost-net.
    Ring(Box<RxRing>),
}

impl TapRx {
    pub(crate) fn new(port: Arc<Port>, from: Receiver, number: u32, layer: Layer) -> Self {
        let source = match from {
            Receiver::Calls(queue) => Source::Calls { queue, store: vec![0; STORE].into() },
            Receiver::Ring(ring) => Source::Ring(ring),
        };
        TapRx { port, source, number, layer }
    }

    /// The next frame, in the store or in the ring: its header and length, or `None` when there is none.
    #[inline(always)]
    fn read(&mut self, cx: &FrameCx<'_>) -> Option<Result<(VnetHdr, usize), Error>> {
        if let Source::Ring(ring) = &mut self.source {
            return Some(ring.next_frame()?.map_err(|Malformed| Error::Malformed));
        }
        self.call(cx)
    }

    fn call(&mut self, cx: &FrameCx<'_>) -> Option<Result<(VnetHdr, usize), Error>> {
        let Source::Calls { queue, store } = &mut self.source else { return None };
        match queue.recv([&mut **store]) {
            Ok(received) if received.truncated => Some(Err(Error::Truncated)),
            Ok(received) => Some(Ok((received.vnet, received.len))),
            Err(RecvError::Empty | RecvError::Down) => None,
            Err(RecvError::Gone) => {
                self.port.set_gone();
                None
            }
            Err(_) => {
                cx.count(Error::Read, 1);
                None
            }
        }
    }

    /// The frame that was read as a packet.
    #[inline(always)]
    fn packet(
        &self,
        cache: &mut Cache,
        interface: SwIfIndex,
        (vnet, len): (VnetHdr, usize),
    ) -> Result<Buffer, Error> {
        match &self.source {
            Source::Ring(ring) => Ok(ring.packet(cache, interface, (vnet, len))?),
            Source::Calls { store, .. } => {
                let bytes = store.get(..len).unwrap_or_default();
                Ok(shoal_link::packet(cache, interface, bytes, vnet)?)
            }
        }
    }

    /// Gives back what was read.
    #[inline(always)]
    fn finish(&mut self) {
        if let Source::Ring(ring) = &mut self.source
            && ring.finish()
        {
            self.port.rings.kicks.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[cold]
    fn refuse(&self, cx: &FrameCx<'_>, interface: SwIfIndex, error: Error) {
        let (thread, at) = (cx.thread(), interface.0 as usize);
        match error {
            Error::NoBuffer => cx.counters().rx_no_buf.add(thread, at, 1),
            Error::Truncated | Error::BadOffload | Error::NotIp => {
                cx.counters().rx_error.add(thread, at, 1);
                self.port.refused.fetch_add(1, Ordering::Relaxed);
            }
            Error::Malformed => {
                cx.counters().rx_error.add(thread, at, 1);
                self.port.rings.malformed.fetch_add(1, Ordering::Relaxed);
            }
            Error::AdminDown | Error::Read => {}
        }
        cx.count(error, 1);
    }
}

impl RxQueue for TapRx {
    fn poll(&mut self, cx: &mut FrameCx<'_>) -> usize {
        if self.port.is_gone() {
            return 0;
        }
        if let Source::Ring(ring) = &self.source
            && ring.disarm()
        {
            self.port.rings.interrupts.fetch_add(1, Ordering::Relaxed);
        }
        let Some(mut read) = self.read(cx) else { return 0 };
        let interface = self.port.index();
        let mut intake = Intake::begin(cx, &self.port.interfaces, interface, self.layer);
        let mut taken = 0;
        loop {
            taken += 1;
            let up = if intake.is_up() || read.is_err() { read } else { Err(Error::AdminDown) };
            match up.and_then(|read| self.packet(cx.cache(), interface, read)) {
                Ok(mut buffer) => {
                    if intake.is_traced()
                        && let Ok((vnet, len)) = read
                    {
                        let mut pkt = cx.cache().packet(&mut buffer);
                        let (queue, next) = (self.number, intake.next());
                        cx.begin_trace(&mut pkt, Trace { interface, queue, next, len, vnet });
                    }
                    if let Err(NotIp(buffer)) = intake.take(cx, buffer) {
                        cx.drop(buffer, Error::NotIp);
                    }
                }
                Err(error) => self.refuse(cx, interface, error),
            }
            if taken == FRAME_SIZE {
                break;
            }
            match self.read(cx) {
                Some(more) => read = more,
                None => break,
            }
        }
        intake.finish(cx);
        self.finish();
        taken
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        let fd = match &self.source {
            Source::Calls { queue, .. } => queue.fd(),
            Source::Ring(ring) => ring.wait_fd(),
        };
        (!self.is_parked()).then_some(fd)
    }

    /// Asked before the thread goes to sleep, and only then.
    fn deadline(&self, now: Time) -> Option<Time> {
        match &self.source {
            Source::Ring(ring) if !self.is_parked() => ring.arm().then_some(now),
            _ => None,
        }
    }

    fn is_parked(&self) -> bool {
        let broken = matches!(&self.source, Source::Ring(ring) if ring.is_broken());
        broken || self.port.is_gone()
    }
}

/// What `show trace` says of a received frame, in VPP's layout.
struct Trace {
    interface: SwIfIndex,
    queue: u32,
    next: NodeIndex,
    len: usize,
    vnet: VnetHdr,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trace { interface, queue, next, len, vnet } = self;
        let (hdr_len, gso_size) = (vnet.hdr_len.get(), vnet.gso_size.get());
        let (start, offset) = (vnet.csum_start.get(), vnet.csum_offset.get());
        writeln!(f, "virtio: hw_if_index {interface} next-index {} vring {queue} len {len}", next.number())?;
        write!(f, "  hdr: flags 0x{:02x} gso_type 0x{:02x} hdr_len {hdr_len} ", vnet.flags, vnet.gso_type)?;
        write!(f, "gso_size {gso_size} csum_start {start} csum_offset {offset}")
    }
}
