//! `NAME-input` of a driver NAME: packets that a plugin copies into buffers.
//! **NAME-input** -> ethernet-input | a superpath, as the interface says

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use shoal_buffer::{Buffer, Cache, DATA_SIZE, Frame};
use shoal_derive::ErrorCounters;
use shoal_graph::clock::Time;
use shoal_graph::{FrameCx, NodeIndex, RxQueue};
use shoal_interface::SwIfIndex;
use shoal_link::{Intake, Layer, NotIp};
use shoal_vnet::{SegmentList, VnetHdr};

use super::port::Port;
use super::wake::{Before, SleepOutcome, Wake};
use crate::sys::{Driver, Filled, RxHandle, Slots};

/// Why a packet does not come in.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// no buffer free
    NoBuffer,
    /// the plugin gave a length that is none
    BadLength,
    /// checksum or segment offsets do not fit the packet
    BadOffload,
    /// the plugin ended in the middle of a packet
    Unfinished,
    /// received on an interface that is down
    AdminDown,
    /// the device woke its thread for packets
    #[severity(info)]
    Interrupt,
    /// the device woke its thread for nothing
    #[severity(info)]
    EmptyInterrupt,
}

/// One receive queue of one device.
pub(crate) struct DeviceRx {
    port: Arc<Port>,
    handle: RxHandle,
    number: u32,
    slots: Slots,
    /// Empty buffers on their way to the plugin; none between two polls.
    empty: Box<Frame>,
    wake: Wake,
    /// The thread it was polled by.
    thread: usize,
    /// Of what the device says it has missed, what was counted: by its first queue, whose thread owns the counter.
    missed: u64,
}

/// A packet in the making.
#[derive(Default)]
struct Open {
    head: Option<Buffer>,
    vnet: VnetHdr,
    wrong: Option<Error>,
}

impl DeviceRx {
    pub(crate) fn new(port: Arc<Port>, handle: RxHandle, number: u32) -> Self {
        let (slots, empty) = (Slots::new(), Box::new(Frame::new()));
        DeviceRx { port, handle, number, slots, empty, wake: Wake::default(), thread: 0, missed: 0 }
    }

    /// After a sleep: whether the descriptor tells of packets.
    #[cold]
    fn disarm(&self, before: Before) -> bool {
        if before == Before::Deaf {
            return false;
        }
        let told = self.port.wait(self.number).is_some_and(is_readable);
        self.handle.disarm(self.thread);
        told
    }

    /// After a sleep, when packets were looked for.
    #[cold]
    fn judge(&mut self, cx: &FrameCx<'_>, before: Before, told: bool, packets: bool) {
        let Some(came) = self.wake.judge(before, told, packets, cx.now()) else { return };
        self.port.count_wake(self.number, came);
        match came {
            SleepOutcome::Interrupt => cx.count(Error::Interrupt, 1),
            SleepOutcome::Empty | SleepOutcome::Enough => cx.count(Error::EmptyInterrupt, 1),
            SleepOutcome::Missed => {}
        }
    }

    /// Packets that the plugin has, as many as there are buffers for.
    fn receive(&mut self, cx: &mut FrameCx<'_>, wanted: usize) -> usize {
        let interface = self.port.index();
        let mut intake = Intake::begin(cx, &self.port.interfaces, interface, Layer::Ethernet);
        cx.cache().alloc(&mut self.empty, wanted);
        let memory = cx.memory();
        let queue = (&mut self.handle, self.thread);
        let (used, lost) = self.slots.receive(queue, &mut self.empty, memory);
        refuse(cx, interface, Error::NoBuffer, lost);
        let (mut open, mut taken, mut at) = (Open::default(), 0, 0);
        let tokens = self.empty.drain();
        for buffer in tokens {
            let filled = if at < used { self.slots.filled(at) } else { None };
            at += 1;
            let Some(filled) = filled else {
                cx.cache().free(buffer);
                continue;
            };
            open.add(cx.cache(), buffer, &filled);
            if filled.more {
                continue;
            }
            taken += 1;
            let up = intake.is_up();
            match std::mem::take(&mut open).close(cx.cache(), interface, up) {
                Ok(mut buffer) => {
                    if intake.is_traced() {
                        let mut pkt = cx.cache().packet(&mut buffer);
                        let trace = Trace {
                            driver: Arc::clone(&self.port.driver),
                            interface,
                            queue: self.number,
                            next: intake.next(),
                            len: pkt.len(),
                            vnet: filled.vnet,
                        };
                        cx.begin_trace(&mut pkt, trace);
                    }
                    // Every packet has a link layer here: none comes back.
                    if let Err(NotIp(buffer)) = intake.take(cx, buffer) {
                        cx.cache().free(buffer);
                    }
                }
                Err(error) => refuse(cx, interface, error, 1),
            }
        }
        if let Some(buffer) = open.head {
            cx.cache().free(buffer);
            refuse(cx, interface, Error::Unfinished, 1);
        }
        intake.finish(cx);
        taken
    }
}

impl Open {
    /// Adds a buffer that the plugin says it has filled.
    #[inline]
    fn add(&mut self, cache: &mut Cache, mut buffer: Buffer, filled: &Filled) {
        let first = self.head.is_none();
        if first {
            self.vnet = filled.vnet;
        }
        let length = filled.length;
        if length == 0 || length > DATA_SIZE || cache.packet(&mut buffer).put(length).is_none() {
            self.wrong = Some(Error::BadLength);
        }
        match &mut self.head {
            None => self.head = Some(buffer),
            // A walk along the chain; a frame of 9,000 bytes has five segments.
            Some(head) => {
                let added = cache.append(&mut cache.packet(head), buffer);
                debug_assert!(added.is_ok(), "what was just received shares nothing");
            }
        }
    }

    /// The packet with what it owes.
    #[inline]
    fn close(self, cache: &mut Cache, interface: SwIfIndex, up: bool) -> Result<Buffer, Error> {
        let Some(mut head) = self.head else { return Err(Error::BadLength) };
        let wrong = if up { self.wrong } else { Some(Error::AdminDown) };
        let owes = wrong.map_or_else(|| owe(cache, &mut head, self.vnet), Err);
        cache.packet(&mut head).meta_mut().rx = interface;
        match owes {
            Ok(()) => Ok(head),
            Err(error) => {
                cache.free(head);
                Err(error)
            }
        }
    }
}

/// Whether a sleep on it ends at once.
fn is_readable(fd: BorrowedFd<'_>) -> bool {
    poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], PollTimeout::ZERO).is_ok_and(|n| n > 0)
}

/// Writes what a packet owes into its metadata, if that can be.
#[inline]
fn owe(cache: &Cache, buffer: &mut Buffer, vnet: VnetHdr) -> Result<(), Error> {
    if vnet.flags == 0 && vnet.gso_type == 0 {
        return Ok(());
    }
    let mut pkt = cache.packet(buffer);
    let segments = SegmentList::of(&pkt).ok_or(Error::BadOffload)?;
    let offload = vnet.validate(segments.as_slice()).map_err(|_| Error::BadOffload)?;
    offload.store(&mut pkt).map_err(|_| Error::BadOffload)
}

fn refuse(cx: &FrameCx<'_>, interface: SwIfIndex, error: Error, n: u64) {
    if n == 0 {
        return;
    }
    let (thread, at) = (cx.thread(), interface.0 as usize);
    match error {
        Error::NoBuffer => cx.counters().rx_no_buf.add(thread, at, n),
        Error::AdminDown | Error::Interrupt | Error::EmptyInterrupt => {}
        _ => cx.counters().rx_error.add(thread, at, n),
    }
    cx.count(error, n);
}

impl RxQueue for DeviceRx {
    fn poll(&mut self, cx: &mut FrameCx<'_>) -> usize {
        self.thread = cx.thread();
        let before = self.wake.after_sleep();
        let told = before != Before::Awake && self.disarm(before);
        if !self.port.is_running() {
            return 0;
        }
        let missed = self.port.missed.load(Ordering::Relaxed);
        if self.number == 0 && missed > self.missed {
            cx.counters().rx_miss.add(cx.thread(), self.port.index().0 as usize, missed - self.missed);
            self.missed = missed;
        }
        let wanted = self.handle.poll(self.thread);
        if before != Before::Awake {
            self.judge(cx, before, told, wanted > 0);
        }
        if wanted == 0 {
            return 0;
        }
        self.wake.packets(cx.now());
        self.receive(cx, wanted)
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        if self.wake.is_armed() { self.port.wait(self.number) } else { None }
    }

    fn is_mute(&self) -> bool {
        !self.wake.is_believed() || self.port.wait(self.number).is_none()
    }

    /// Asked before the thread goes to sleep, and only then.
    fn deadline(&self, now: Time) -> Option<Time> {
        if !self.port.is_running() {
            return None;
        }
        self.port.wait(self.number)?;
        self.wake.before_sleep(now, || self.handle.arm(self.thread))
    }

    fn is_parked(&self) -> bool {
        !self.port.is_running()
    }
}

/// What `show trace` says of a received packet.
struct Trace {
    driver: Arc<Driver>,
    interface: SwIfIndex,
    queue: u32,
    next: NodeIndex,
    len: usize,
    vnet: VnetHdr,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trace { driver, interface, queue, next, len, vnet } = self;
        let (driver, next) = (&driver.name, next.number());
        write!(f, "{driver}: hw_if_index {interface} rx queue {queue} next-index {next} len {len}")?;
        let (start, offset) = (vnet.csum_start.get(), vnet.csum_offset.get());
        write!(f, "\n  checksum flags 0x{:02x} gso_type 0x{:02x} ", vnet.flags, vnet.gso_type)?;
        write!(f, "gso_size {} csum_start {start} csum_offset {offset}", vnet.gso_size.get())
    }
}
