//! `memif-input`: packets out of shared memory into buffers.
//! **memif-input** -> ethernet-input | ip4-input | ip6-input | a superpath, as the interface says

use std::cell::Cell;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_buffer::{Cache, DATA_SIZE, Frame, Packet};
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::clock::Time;
use shoal_graph::{FrameCx, NodeIndex, RxQueue};
use shoal_interface::SwIfIndex;

use crate::consumer::{Consumer, Found};
use crate::port::Port;
use crate::region::Regions;
use crate::ring::Desc;

/// Name of the input node all memifs run under.
pub(crate) const NODE: &str = "memif-input";

/// Why something in a ring does not become a packet.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// buffer allocation failed
    NoBuffer,
    /// not ip packet
    NotIp,
    /// bad descriptor: outside its region, empty or too long
    BadDescriptor,
    /// ring index that cannot be, connection ended
    #[severity(warn)]
    BadIndex,
    /// received on an interface that is down
    AdminDown,
}

/// What packets begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// An Ethernet header.
    Ethernet,
    /// An IP header; where IPv6 goes.
    Ip { ip6: NodeIndex },
}

/// One receive queue of one memif.
pub(crate) struct MemifRx {
    port: Arc<Port>,
    number: u32,
    layer: Layer,
    /// None while there is no peer.
    consumer: Option<Consumer>,
    found: Found,
    /// The peer was asked to wake this queue.
    armed: Cell<bool>,
}

/// What `show trace` says of a received packet, in VPP's layout.
#[derive(TraceLine)]
#[line("memif: hw_if_index {interface} next-index {next}")]
#[line("  slot: ring {ring}")]
struct Trace {
    interface: u32,
    next: u32,
    ring: u32,
}

impl MemifRx {
    pub(crate) fn new(port: Arc<Port>, number: u32, layer: Layer, consumer: Option<Consumer>) -> Self {
        MemifRx { port, number, layer, consumer, found: Found::default(), armed: Cell::new(false) }
    }

    /// The peer has written what cannot be: nothing more is read from it.
    #[cold]
    fn broken(&mut self, cx: &FrameCx<'_>) -> usize {
        cx.count(Error::BadIndex, 1);
        cx.counters().rx_error.add(cx.thread(), self.port.index().0 as usize, 1);
        self.port.set_broken();
        self.consumer = None;
        0
    }

    #[cold]
    fn disarm(&mut self) {
        self.armed.set(false);
        self.port.facts.interrupts.fetch_add(1, Ordering::Relaxed);
        if let Some(consumer) = &self.consumer {
            consumer.disarm();
        }
    }

    #[cold]
    fn count_lost(&self, cx: &FrameCx<'_>, lost: usize, why: Error) {
        let (thread, at) = (cx.thread(), self.port.index().0 as usize);
        match why {
            Error::NoBuffer => cx.counters().rx_no_buf.add(thread, at, lost as u64),
            Error::AdminDown => {}
            _ => cx.counters().rx_error.add(thread, at, lost as u64),
        }
        if why == Error::BadDescriptor {
            self.port.facts.bad.fetch_add(lost as u64, Ordering::Relaxed);
        }
        // A packet that was dropped is counted where drops are.
        if why != Error::NotIp {
            cx.count(why, lost as u64);
        }
    }
}

impl RxQueue for MemifRx {
    fn poll(&mut self, cx: &mut FrameCx<'_>) -> usize {
        if self.armed.get() {
            self.disarm();
        }
        let Some(consumer) = &mut self.consumer else { return 0 };
        if consumer.find(&mut self.found).is_err() {
            return self.broken(cx);
        }
        if self.found.is_empty() {
            return 0;
        }
        let interface = self.port.index();
        let data = *self.port.interfaces.get(interface, cx.guard());
        let traced = cx.wants_trace();
        let next = data.rx_next(traced);
        if self.found.bad() > 0 {
            self.count_lost(cx, self.found.bad(), Error::BadDescriptor);
        }
        let found = self.found.len() + self.found.bad();
        let mut frame = cx.blank();
        let wanted = if data.is_up() { self.found.len() } else { 0 };
        let got = cx.cache().alloc(&mut frame, wanted);
        let Some(consumer) = &mut self.consumer else { return 0 };
        let filled = fill(cx.cache(), &mut frame, consumer.regions(), &self.found, interface);
        consumer.release(&self.found);
        let lost = (wanted - got) + filled.failed;
        if filled.failed > 0 {
            cx.free_empty(&mut frame);
        }
        if lost > 0 {
            self.count_lost(cx, lost, Error::NoBuffer);
        }
        if wanted < self.found.len() {
            self.count_lost(cx, self.found.len(), Error::AdminDown);
        }
        let packets = frame.len() as u64;
        cx.counters().rx.add(cx.thread(), interface.0 as usize, packets, filled.bytes);
        if traced {
            let memory = cx.memory();
            for i in 0..frame.len() {
                if let Some(mut pkt) = frame.packet(memory, i) {
                    let line = Trace { interface: interface.0, next: next.number(), ring: self.number };
                    cx.begin_trace(&mut pkt, line);
                }
            }
        }
        match self.layer {
            Layer::Ethernet => cx.forward(next, frame),
            Layer::Ip { ip6 } => {
                part(cx, frame, next, ip6, |cx, lost| self.count_lost(cx, lost, Error::NotIp));
            }
        }
        found
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.consumer.as_ref().map(|consumer| consumer.event().as_fd())
    }

    /// Asked before the thread goes to sleep, and only then.
    fn deadline(&self, now: Time) -> Option<Time> {
        let consumer = self.consumer.as_ref()?;
        self.armed.set(true);
        consumer.arm().then_some(now)
    }

    fn is_parked(&self) -> bool {
        self.consumer.is_none()
    }
}

/// What became of packets that were found.
#[derive(Default)]
struct RxOutcome {
    bytes: u64,
    /// Packets for whose parts there were too few buffers: empty now.
    failed: usize,
}

/// Copies what was found into the buffers of a frame.
#[inline(always)]
fn fill(
    cache: &mut Cache,
    frame: &mut Frame,
    regions: &Regions,
    found: &Found,
    interface: SwIfIndex,
) -> RxOutcome {
    let (memory, mut filled) = (cache.memory(), RxOutcome::default());
    for i in 0..frame.len() {
        memory.prefetch(frame, i + 4);
        let Some(mut pkt) = frame.packet(memory, i) else { continue };
        pkt.meta_mut().rx = interface;
        match found.packet(i) {
            [part] if part.length as usize <= DATA_SIZE => {
                if let Some(to) = pkt.put(part.length as usize)
                    && regions.copy_out(part.region, part.offset, to).is_some()
                {
                    filled.bytes += u64::from(part.length);
                }
            }
            parts => match fill_parts(cache, pkt.reborrow(), regions, parts) {
                Some(bytes) => filled.bytes += bytes,
                None => filled.failed += 1,
            },
        }
    }
    filled
}

/// Copies a packet of several parts, or of more than a buffer holds, into a chain of buffers; `None`, and the packet is
/// empty, when there are too few.
#[inline(never)]
fn fill_parts(cache: &mut Cache, mut pkt: Packet<'_>, regions: &Regions, parts: &[Desc]) -> Option<u64> {
    let mut bytes = 0;
    let mut tail = None;
    // Room in the segment that is being filled.
    let mut room = DATA_SIZE;
    for part in parts {
        let (mut offset, mut left) = (part.offset, part.length as usize);
        while left > 0 {
            if room == 0 {
                let added = tail.take().map_or(Ok(()), |full| cache.append(&mut pkt, full));
                let Some(fresh) = added.ok().and_then(|()| cache.alloc_one()) else {
                    let _ = pkt.truncate(0);
                    return None;
                };
                (tail, room) = (Some(fresh), DATA_SIZE);
            }
            let n = left.min(room);
            let copied = match &mut tail {
                None => pkt.put(n).and_then(|to| regions.copy_out(part.region, offset, to)),
                Some(buffer) => {
                    cache.packet(buffer).put(n).and_then(|to| regions.copy_out(part.region, offset, to))
                }
            };
            debug_assert!(copied.is_some(), "it was checked, and there is room");
            (offset, left, room) = (offset.wrapping_add(n as u32), left - n, room - n);
            bytes += n as u64;
        }
    }
    if let Some(last) = tail {
        cache.append(&mut pkt, last).ok()?;
    }
    Some(bytes)
}

/// Sends IPv4 and IPv6 each to its own node. `lost` counts what is neither.
fn part(
    cx: &mut FrameCx<'_>,
    mut frame: Box<Frame>,
    ip4: NodeIndex,
    ip6: NodeIndex,
    lost: impl Fn(&FrameCx<'_>, usize),
) {
    let (mut four, mut six, mut neither) = (cx.blank(), cx.blank(), 0);
    for mut buffer in frame.drain() {
        let version = cx.cache().packet(&mut buffer).data().first().map(|b| b >> 4);
        let to = match version {
            Some(4) => &mut four,
            Some(6) => &mut six,
            _ => {
                neither += 1;
                cx.drop(buffer, Error::NotIp);
                continue;
            }
        };
        // All of one frame have room in another.
        if let Err(buffer) = to.push(buffer) {
            cx.cache().free(buffer);
        }
    }
    cx.recycle(frame);
    cx.forward(ip4, four);
    cx.forward(ip6, six);
    if neither > 0 {
        lost(cx, neither);
    }
}
