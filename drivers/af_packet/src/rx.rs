//! `af-packet-input`: frames from the kernel's ring into buffers.
//! **af-packet-input** -> ethernet-input | ip4-input | a superpath, as the interface says

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_buffer::{Buffer, Cache, FRAME_SIZE};
use shoal_derive::ErrorCounters;
use shoal_graph::{FrameCx, NodeIndex, RxQueue};
use shoal_interface::SwIfIndex;
use shoal_link::{Intake, Layer, NotIp, Refused};
use shoal_vnet::{VnetHdr, insert_tag};

use crate::port::Port;
use crate::{RingFault, RingVersion, RxFrame, RxRing};

/// Name of the input node all host interfaces run under.
pub(crate) const NODE: &str = "af-packet-input";

/// Empty polls after which the socket is asked whether something is wrong with it.
const CHECK_WHEN_IDLE: u32 = 64;
/// Polls after which the kernel's statistics are read, also under load.
const STATS_EVERY: u32 = 1024;

/// Why a frame does not become a packet.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// no buffer free
    NoBuffer,
    /// frame cut short by the ring
    Truncated,
    /// vnet header does not fit its frame
    BadOffload,
    /// received on an interface that is down
    AdminDown,
    /// not an IP packet
    NotIp,
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::NoBuffer => Error::NoBuffer,
            Refused::BadOffload => Error::BadOffload,
        }
    }
}

/// One receive queue of one host interface.
pub(crate) struct HostRx {
    port: Arc<Port>,
    ring: RxRing,
    version: RingVersion,
    number: u32,
    layer: Layer,
    polls: u32,
    empty: u32,
    missed: u64,
    offered: u64,
    freezes: u64,
    gone: bool,
}

impl HostRx {
    pub(crate) fn new(port: Arc<Port>, ring: RxRing, number: u32, layer: Layer) -> Self {
        let (polls, empty, missed, offered, freezes, gone) = (0, 0, 0, 0, 0, false);
        let version = ring.version();
        HostRx { port, ring, version, number, layer, polls, empty, missed, offered, freezes, gone }
    }

    /// Takes what is there, up to a frame's worth; tells how many frames left the ring.
    fn receive(&mut self, cx: &mut FrameCx<'_>) -> usize {
        let Some(mut rx) = self.ring.next() else { return 0 };
        let (interface, version) = (self.port.index(), self.version);
        let mut intake = Intake::begin(cx, &self.port.interfaces, interface, self.layer);
        let mut taken = 0;
        loop {
            taken += 1;
            let received =
                if intake.is_up() { packet(cx.cache(), interface, &rx) } else { Err(Error::AdminDown) };
            match received {
                Ok(mut buffer) => {
                    if intake.is_traced() {
                        let mut pkt = cx.cache().packet(&mut buffer);
                        let line = Trace::of(&rx, version, (interface, self.number), intake.next());
                        cx.begin_trace(&mut pkt, line);
                    }
                    if let Err(NotIp(buffer)) = intake.take(cx, buffer) {
                        cx.drop(buffer, Error::NotIp);
                    }
                }
                Err(error) => refuse(cx, interface, error),
            }
            if taken == FRAME_SIZE {
                break;
            }
            match self.ring.next() {
                Some(more) => rx = more,
                None => break,
            }
        }
        intake.finish(cx);
        taken
    }

    /// Reads and clears an error of the socket, which would otherwise wake the thread for ever.
    #[cold]
    fn check(&mut self) {
        let Some(fault) = self.ring.take_fault() else { return };
        self.port.facts.faults.fetch_add(1, Ordering::Relaxed);
        // What becomes of the interface is the control plane's business: it watches the kernel's announcements.
        self.gone |= fault == RingFault::Gone;
    }

    #[cold]
    fn read_stats(&mut self, cx: &FrameCx<'_>) {
        let Ok(stats) = self.ring.stats() else { return };
        let missed = stats.drops - self.missed;
        if missed > 0 {
            cx.counters().rx_miss.add(cx.thread(), self.port.index().0 as usize, missed);
        }
        let facts = &self.port.facts;
        facts.missed.fetch_add(missed, Ordering::Relaxed);
        facts.offered.fetch_add(stats.packets - self.offered, Ordering::Relaxed);
        facts.freezes.fetch_add(stats.freezes - self.freezes, Ordering::Relaxed);
        (self.missed, self.offered, self.freezes) = (stats.drops, stats.packets, stats.freezes);
    }
}

/// One frame as a packet.
#[inline]
fn packet(cache: &mut Cache, interface: SwIfIndex, rx: &RxFrame<'_>) -> Result<Buffer, Error> {
    if rx.is_truncated() {
        return Err(Error::Truncated);
    }
    let mut buffer = shoal_link::packet(cache, interface, rx.bytes, rx.vnet)?;
    let tagged =
        rx.vlan.is_none_or(|tag| insert_tag(&mut cache.packet(&mut buffer), tag.tpid, tag.tci).is_some());
    if tagged {
        return Ok(buffer);
    }
    cache.free(buffer);
    Err(Error::BadOffload)
}

#[cold]
fn refuse(cx: &FrameCx<'_>, interface: SwIfIndex, error: Error) {
    let (thread, at) = (cx.thread(), interface.0 as usize);
    match error {
        Error::NoBuffer => cx.counters().rx_no_buf.add(thread, at, 1),
        Error::Truncated | Error::BadOffload | Error::NotIp => cx.counters().rx_error.add(thread, at, 1),
        Error::AdminDown => {}
    }
    cx.count(error, 1);
}

impl RxQueue for HostRx {
    fn poll(&mut self, cx: &mut FrameCx<'_>) -> usize {
        if self.gone {
            return 0;
        }
        let taken = self.receive(cx);
        self.polls = self.polls.wrapping_add(1);
        if taken > 0 {
            self.empty = 0;
            if self.polls.is_multiple_of(STATS_EVERY) {
                self.read_stats(cx);
            }
        } else {
            self.empty = self.empty.wrapping_add(1);
            if self.empty.is_multiple_of(CHECK_WHEN_IDLE) {
                self.check();
                self.read_stats(cx);
            }
        }
        taken
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.gone).then(|| self.ring.fd())
    }

    fn is_parked(&self) -> bool {
        self.gone
    }
}

/// What `show trace` says of a received frame, in VPP's layout.
struct Trace {
    version: RingVersion,
    interface: SwIfIndex,
    queue: u32,
    next: NodeIndex,
    wire_len: u32,
    captured: usize,
    vlan: Option<crate::VlanTag>,
    vnet: VnetHdr,
}

impl Trace {
    fn of(
        rx: &RxFrame<'_>,
        version: RingVersion,
        (interface, queue): (SwIfIndex, u32),
        next: NodeIndex,
    ) -> Self {
        let (wire_len, captured, vlan, vnet) = (rx.wire_len, rx.bytes.len(), rx.vlan, rx.vnet);
        Trace { version, interface, queue, next, wire_len, captured, vlan, vnet }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trace { version, interface, queue, next, wire_len, captured, vlan, vnet } = self;
        writeln!(f, "af_packet: hw_if_index {interface} rx-queue {queue} next-index {}", next.number())?;
        writeln!(f, "  tpacket{version}_hdr:")?;
        write!(f, "    len {wire_len} snaplen {captured}")?;
        if let Some(tag) = vlan {
            write!(f, " vlan {} vlan_tpid 0x{:04x}", tag.tci & 0xfff, tag.tpid)?;
        }
        let (hdr_len, gso_size) = (vnet.hdr_len.get(), vnet.gso_size.get());
        let (start, offset) = (vnet.csum_start.get(), vnet.csum_offset.get());
        writeln!(f, "\n  vnet-hdr:")?;
        writeln!(f, "    flags 0x{:02x} gso_type 0x{:02x} hdr_len {hdr_len}", vnet.flags, vnet.gso_type)?;
        write!(f, "    gso_size {gso_size} csum_start {start} csum_offset {offset}")
    }
}
