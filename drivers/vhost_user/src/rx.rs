//! `vhost-user-input`: packets that guests sent, into buffers.
//! **vhost-user-input** -> ethernet-input | a superpath, as the interface says

use std::cell::Cell;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use shoal_buffer::{Buffer, Cache, DATA_SIZE, Frame, Packet};
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::clock::Time;
use shoal_graph::{FrameCx, RxQueue};
use shoal_interface::SwIfIndex;
use shoal_vnet::{Gso, GsoKind, SegmentList, VNET_HDR_LEN, VnetHdr};
use zerocopy::FromBytes as _;

use crate::features::{CSUM, Features, HOST_ECN, HOST_TSO4, HOST_TSO6};
use crate::port::Port;
use crate::queue::{FoundPackets, MOST_BYTES, Queue, Reader};

/// Name of the input node all interfaces run under.
pub(crate) const NODE: &str = "vhost-user-input";

/// Buffers of the longest packet.
const MOST_SEGMENTS: usize = (MOST_BYTES as usize).div_ceil(DATA_SIZE);
/// In a vnet header's flags: the checksum is left to this end. A guest may say nothing else.
const NEEDS_CSUM: u8 = 1;

/// Why what a guest sent does not become a packet.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// no available buffer
    NoBuffer,
    /// chain that makes no sense: outside the guest's memory, empty, too long or endless
    BadChain,
    /// vnet header does not fit its frame
    BadOffload,
    /// ring index that cannot be, connection ended
    #[severity(warn)]
    BadRing,
    /// received on an interface that is down
    AdminDown,
    /// received by a ring that is not enabled
    NotEnabled,
}

/// One receive queue of one interface.
pub(crate) struct VhostRx {
    port: Arc<Port>,
    number: u32,
    /// None while there is no guest.
    queue: Option<Queue>,
    /// Otherwise packets are taken and dropped.
    enabled: bool,
    /// The guest has written what cannot be: nothing more is read, until the control plane takes this queue away.
    broken: bool,
    found: FoundPackets,
    /// The guest was asked to wake this queue.
    armed: Cell<bool>,
}

/// What `show trace` says of a received packet.
#[derive(TraceLine)]
#[line("vhost-user: hw_if_index {interface} next-index {next} vring {ring} len {len}")]
struct Trace {
    interface: u32,
    next: u32,
    ring: u32,
    len: usize,
}

impl VhostRx {
    pub(crate) fn new(port: Arc<Port>, number: u32, queue: Option<Queue>, enabled: bool) -> Self {
        let (broken, armed) = (false, Cell::new(false));
        VhostRx { port, number, queue, enabled, broken, found: FoundPackets::default(), armed }
    }

    #[cold]
    fn set_broken(&mut self, cx: &FrameCx<'_>) -> usize {
        cx.count(Error::BadRing, 1);
        cx.counters().rx_error.add(cx.thread(), self.port.index().0 as usize, 1);
        self.port.set_broken();
        self.broken = true;
        0
    }

    #[cold]
    fn count_lost(&self, cx: &FrameCx<'_>, lost: usize, why: Error) {
        let (thread, at) = (cx.thread(), self.port.index().0 as usize);
        match why {
            Error::NoBuffer => cx.counters().rx_no_buf.add(thread, at, lost as u64),
            Error::AdminDown | Error::NotEnabled => {}
            _ => cx.counters().rx_error.add(thread, at, lost as u64),
        }
        cx.count(why, lost as u64);
    }
}

impl RxQueue for VhostRx {
    fn poll(&mut self, cx: &mut FrameCx<'_>) -> usize {
        let Some(queue) = self.queue.as_mut().filter(|_| !self.broken) else { return 0 };
        if self.armed.replace(false) {
            queue.disarm();
        }
        if queue.find(&mut self.found).is_err() {
            return self.set_broken(cx);
        }
        if self.found.is_empty() {
            return 0;
        }
        let interface = self.port.index();
        let data = *self.port.interfaces.get(interface, cx.guard());
        let traced = cx.wants_trace();
        let next = data.rx_next(traced);
        let found = self.found.len() + self.found.bad();
        let mut frame = cx.blank();
        let wanted = if data.is_up() && self.enabled { self.found.len() } else { 0 };
        let got = cx.cache().alloc(&mut frame, wanted);
        let filled = fill(cx.cache(), &mut frame, queue, &self.found, interface);
        queue.release(&self.found);
        if filled.lost > 0 {
            cx.free_empty(&mut frame);
        }
        let down = if self.enabled { Error::AdminDown } else { Error::NotEnabled };
        for (lost, why) in [
            (self.found.bad(), Error::BadChain),
            (wanted - got + filled.no_buffer(), Error::NoBuffer),
            (filled.bad, Error::BadOffload),
            (self.found.len() - wanted, down),
        ] {
            if lost > 0 {
                self.count_lost(cx, lost, why);
            }
        }
        let packets = frame.len() as u64;
        cx.counters().rx.add(cx.thread(), interface.0 as usize, packets, filled.bytes);
        if traced {
            let memory = cx.memory();
            for i in 0..frame.len() {
                if let Some(mut pkt) = frame.packet(memory, i) {
                    let (next, ring, len) = (next.number(), self.number * 2 + 1, pkt.len());
                    cx.begin_trace(&mut pkt, Trace { interface: interface.0, next, ring, len });
                }
            }
        }
        cx.forward(next, frame);
        found
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.queue.as_ref().filter(|_| !self.broken)?.kick()?.as_fd())
    }

    /// Asked before the thread goes to sleep, and only then.
    fn deadline(&self, now: Time) -> Option<Time> {
        let queue = self.queue.as_ref().filter(|_| !self.broken)?;
        self.armed.set(true);
        queue.arm().then_some(now)
    }

    fn is_parked(&self) -> bool {
        self.queue.is_none() || self.broken
    }
}

/// What became of packets that were found.
#[derive(Default)]
struct RxOutcome {
    bytes: u64,
    /// Packets that are empty now.
    lost: usize,
    /// Of those, the ones whose vnet header made no sense.
    bad: usize,
}

impl RxOutcome {
    fn no_buffer(&self) -> usize {
        self.lost - self.bad
    }
}

/// Copies what was found into the buffers of a frame.
#[inline(always)]
fn fill(
    cache: &mut Cache,
    frame: &mut Frame,
    queue: &Queue,
    found: &FoundPackets,
    interface: SwIfIndex,
) -> RxOutcome {
    let (memory, features, mut filled) = (cache.memory(), queue.features(), RxOutcome::default());
    let header = features.header_len();
    for i in 0..frame.len() {
        memory.prefetch(frame, i + 4);
        let Some(mut pkt) = frame.packet(memory, i) else { continue };
        pkt.meta_mut().rx = interface;
        let (pieces, bytes) = found.packet(i);
        let mut reader = Reader::new(queue.memory(), pieces);
        let mut vnet = [0; 12];
        let len = bytes.saturating_sub(header) as usize;
        let read = vnet.get_mut(..header as usize).and_then(|to| reader.read(to));
        debug_assert!(read.is_some(), "there are more bytes than these");
        if len > DATA_SIZE {
            if fill_chain(cache, pkt.reborrow(), &mut reader, len).is_none() {
                filled.lost += 1;
                continue;
            }
        } else {
            let read = pkt.put(len).and_then(|to| reader.read(to));
            debug_assert!(read.is_some(), "a buffer is as long, and so many bytes were found");
        }
        let plain = vnet[0] & NEEDS_CSUM == 0 && vnet[1] == 0;
        if !plain && owes(pkt.reborrow(), vnet, features).is_none() {
            let _ = pkt.truncate(0);
            filled.bad += 1;
            filled.lost += 1;
            continue;
        }
        filled.bytes += len as u64;
    }
    filled
}

/// Writes what a packet owes into its metadata; `None` when its vnet header makes no sense, or promises what was not
/// agreed on.
#[inline(never)]
fn owes(mut pkt: Packet<'_>, vnet: [u8; 12], features: Features) -> Option<()> {
    let mut vnet = VnetHdr::read_from_bytes(vnet.get(..VNET_HDR_LEN)?).ok()?;
    vnet.flags &= NEEDS_CSUM;
    let offload = {
        let list = SegmentList::of(&pkt)?;
        vnet.validate(list.as_slice()).ok()?
    };
    let agreed = match offload.gso {
        None => features.has(CSUM),
        Some(Gso { kind, ecn, .. }) => {
            let kind = match kind {
                GsoKind::Tcp4 => features.has(HOST_TSO4),
                GsoKind::Tcp6 => features.has(HOST_TSO6),
                GsoKind::Udp => false,
            };
            kind && (!ecn || features.has(HOST_ECN))
        }
    };
    if agreed { offload.store(&mut pkt).ok() } else { None }
}

/// Copies a packet of more than a buffer holds into a chain of buffers; `None`, and the packet is empty, when there are
/// too few.
#[inline(never)]
fn fill_chain(cache: &mut Cache, mut pkt: Packet<'_>, reader: &mut Reader<'_>, len: usize) -> Option<()> {
    let mut rest: [Option<Buffer>; MOST_SEGMENTS] = [const { None }; MOST_SEGMENTS];
    let mut whole = true;
    let more = (len - DATA_SIZE).div_ceil(DATA_SIZE);
    for slot in rest.iter_mut().take(more) {
        *slot = cache.alloc_one();
        whole &= slot.is_some();
    }
    if !whole {
        rest.into_iter().flatten().for_each(|buffer| cache.free(buffer));
        return None;
    }
    let read = pkt.put(DATA_SIZE).and_then(|to| reader.read(to));
    debug_assert!(read.is_some(), "so many bytes were found");
    let mut left = len - DATA_SIZE;
    for buffer in rest.iter_mut().flatten() {
        let n = left.min(DATA_SIZE);
        let read = cache.packet(buffer).put(n).and_then(|to| reader.read(to));
        debug_assert!(read.is_some(), "so many bytes were found");
        left -= n;
    }
    // From the last to the first: what is added goes behind a packet's end, to which the whole chain is walked.
    let mut tail: Option<Buffer> = None;
    for mut buffer in rest.into_iter().rev().flatten() {
        if let Some(tail) = tail.take() {
            cache.append(&mut cache.packet(&mut buffer), tail).ok()?;
        }
        tail = Some(buffer);
    }
    if let Some(tail) = tail {
        cache.append(&mut pkt, tail).ok()?;
    }
    Some(())
}
