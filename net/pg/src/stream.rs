//! Streams: what a generator sends, how fast and how often.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use shoal_buffer::{FRAME_SIZE, Flags};
use shoal_graph::clock::Time;
use shoal_interface::SwIfIndex;

use crate::data::{Blueprint, Order};

/// Bytes of the packets of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// The shortest, in bytes.
    pub least: usize,
    /// The longest, in bytes.
    pub most: usize,
    /// How sizes change from packet to packet.
    pub order: Order,
}

/// Where the bytes of a stream come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A description.
    Blueprint(Blueprint),
    /// These packets, in order, and again from the first.
    Packets(Vec<Vec<u8>>),
}

/// A stream to be made.
#[derive(Clone, Debug)]
pub struct StreamSpec {
    /// Its name; a stream of the same name is replaced.
    pub name: String,
    /// Packets after which it stops, 0 for no limit. `None`: each packet of [`Source::Packets`] once, else no limit.
    pub limit: Option<u64>,
    /// Packets per second, 0 for as fast as possible.
    pub rate: f64,
    /// Sizes of described packets; `None` is 64 bytes, or more if the description is longer.
    pub size: Option<Size>,
    /// Most packets at once, 1 to 256.
    pub maxframe: usize,
    /// The worker it runs on, 0 for the first, modulo the number of workers; the main thread if there are none.
    pub worker: Option<usize>,
    /// The interface that receives the packets; `None` makes one with the stream's number.
    pub interface: Option<SwIfIndex>,
    /// The interface the packets name as their sending one.
    pub tx_interface: SwIfIndex,
    /// The node they enter; `None` is the interface's.
    pub node: Option<String>,
    /// Flags of each packet. [`Flags::L4_CHECKSUM_OFFLOAD`] leaves the checksum to the sending interface.
    pub flags: Flags,
    /// Payload bytes of each piece, for [`Flags::GSO`].
    pub gso_size: u16,
    /// The bytes.
    pub source: Source,
}

impl StreamSpec {
    /// A stream with everything but its name and bytes as VPP has it by default.
    pub fn new(name: impl Into<String>, source: Source) -> Self {
        StreamSpec {
            name: name.into(),
            limit: None,
            rate: 0.0,
            size: None,
            maxframe: FRAME_SIZE,
            worker: None,
            interface: None,
            tx_interface: SwIfIndex::NONE,
            node: None,
            flags: Flags::default(),
            gso_size: 0,
            source,
        }
    }
}

/// What the control plane and the thread that runs a stream share. Written with every frame, so no other stream is on its
/// cache lines.
#[repr(align(128))]
pub(crate) struct Shared {
    enabled: AtomicBool,
    sent: AtomicU64,
    /// Which start of the stream this is, so that its queue restarts.
    start: AtomicU64,
    pub(crate) limit: AtomicU64,
    rate: AtomicU64,
    pub(crate) maxframe: AtomicU64,
    /// When a paced stream has its next packets ready, in nanoseconds of the clock.
    due: AtomicU64,
}

impl Shared {
    pub(crate) fn new(limit: u64, rate: f64, maxframe: usize) -> Self {
        Shared {
            enabled: AtomicBool::new(false),
            sent: AtomicU64::new(0),
            start: AtomicU64::new(0),
            limit: AtomicU64::new(limit),
            rate: AtomicU64::new(rate.to_bits()),
            maxframe: AtomicU64::new(maxframe as u64),
            due: AtomicU64::new(0),
        }
    }

    #[inline(always)]
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Acquire)
    }

    /// Starts the stream from its first packet.
    pub(crate) fn enable(&self, now: Time) {
        self.sent.store(0, Ordering::Relaxed);
        self.start.fetch_add(1, Ordering::Relaxed);
        self.due.store(now.0, Ordering::Relaxed);
        self.enabled.store(true, Ordering::Release);
    }

    pub(crate) fn disable(&self) {
        self.enabled.store(false, Ordering::Release);
    }

    pub(crate) fn start(&self) -> u64 {
        self.start.load(Ordering::Relaxed)
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn rate(&self) -> f64 {
        f64::from_bits(self.rate.load(Ordering::Relaxed))
    }

    pub(crate) fn set_rate(&self, rate: f64) {
        self.rate.store(rate.to_bits(), Ordering::Relaxed);
        self.due.store(0, Ordering::Relaxed);
    }

    /// Packets it may still send.
    #[inline(always)]
    pub(crate) fn left(&self) -> u64 {
        match self.limit.load(Ordering::Relaxed) {
            0 => u64::MAX,
            limit => limit.saturating_sub(self.sent()),
        }
    }

    /// Counts sent packets and ends the stream at its limit.
    #[inline(always)]
    pub(crate) fn add(&self, packets: u64) {
        self.sent.store(self.sent() + packets, Ordering::Relaxed);
        if self.left() == 0 {
            self.disable();
        }
    }

    pub(crate) fn due(&self) -> Time {
        Time(self.due.load(Ordering::Relaxed))
    }

    pub(crate) fn set_due(&self, due: Time) {
        self.due.store(due.0, Ordering::Relaxed);
    }

    /// When it has something to do; `None` while it is stopped.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.is_enabled().then(|| self.due())
    }
}

/// The pace of a stream: how many packets are due.
#[derive(Default)]
pub(crate) struct Pace {
    last: Time,
    /// Packets earned and not sent.
    credit: f64,
}

/// How long a fast stream waits at most, so that it sends bursts instead of single packets.
const QUANTUM: Duration = Duration::from_micros(100);
/// Longest pause a stream makes good for.
const MOST_CREDIT_SECONDS: f64 = 0.1;

impl Pace {
    pub(crate) fn begin(now: Time) -> Self {
        Pace { last: now, credit: 0.0 }
    }

    /// How many packets are due at a rate, up to `most`; takes them from the credit.
    pub(crate) fn take(&mut self, now: Time, rate: f64, most: u64) -> u64 {
        self.credit += now.since(self.last).as_secs_f64() * rate;
        self.credit = self.credit.min((rate * MOST_CREDIT_SECONDS).max(1.0) + 1.0);
        self.last = now;
        // A clock of whole nanoseconds may fall short of a packet by less than a millionth.
        let due = ((self.credit + 1e-6) as u64).min(most);
        self.credit = (self.credit - due as f64).max(0.0);
        due
    }

    /// When the next burst is due.
    pub(crate) fn next(&self, rate: f64) -> Time {
        let burst = (rate * QUANTUM.as_secs_f64()).clamp(1.0, FRAME_SIZE as f64);
        let wait = ((burst - self.credit).max(0.0) / rate * 1e9).ceil();
        self.last.after(Duration::from_nanos(wait.clamp(1.0, 1e18) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_kept_to_the_packet() {
        for rate in [1.0, 3.0, 10.0, 1e4, 1e6] {
            let (mut pace, mut now, mut sent) = (Pace::begin(Time(0)), Time(0), 0);
            while now < Time(2_000_000_000) {
                now = pace.next(rate).min(Time(2_000_000_000));
                sent += pace.take(now, rate, 256);
            }
            assert_eq!(sent, (2.0 * rate) as u64, "{rate} packets per second");
        }
    }

    #[test]
    fn a_long_pause_is_not_made_good_for() {
        let mut pace = Pace::begin(Time(0));
        assert!(pace.take(Time(3_600_000_000_000), 1000.0, u64::MAX) <= 101);
    }

    #[test]
    fn a_limit_ends_the_stream() {
        let shared = Shared::new(3, 0.0, 256);
        shared.enable(Time(5));
        shared.add(2);
        assert_eq!((shared.left(), shared.is_enabled()), (1, true));
        shared.add(1);
        assert_eq!((shared.left(), shared.is_enabled()), (0, false));
    }
}
