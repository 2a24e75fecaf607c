//! T-Rex's eight load tests: four sets of frames, each one way or both ways.
//!
//! Frames are as T-Rex's bench profile makes them with Scapy's defaults: UDP from port 53 to 53, IP ID 1, TTL 64, payload of
//! `x`. Two addresses count upwards together. The profile mends the IPv4 checksum only, so the UDP checksum is that of the
//! first pair and wrong for all others; a device must not mind.

use std::net::Ipv4Addr;
use std::str::FromStr;
use std::time::Duration;

use shoal_lab_plan::{Change, Checksums, Order, Pace, Rate, Side, Stamps, Stream, Tag, Variable, Write};

use crate::error::FrameError;
use crate::mix::Mix;
use crate::packet::{Macs, Packet, payload_of};
use crate::tag::{PLAIN_LEN, SIGNED_LEN};
use crate::traffic::{Direction, Form};

/// First source forwards, and first destination in reverse.
const LEFT: Ipv4Addr = Ipv4Addr::new(16, 0, 0, 0);
/// First destination forwards, and first source in reverse.
const RIGHT: Ipv4Addr = Ipv4Addr::new(48, 0, 0, 0);
/// Pairs of addresses of `var2`.
const PAIRS: u64 = 65_536;
/// Scapy's port for UDP, both ways.
const DNS: u16 = 53;
/// Between the starts of a mix's streams, in nanoseconds.
const START_GAP: u64 = 100;
/// Ethernet, IPv4, UDP.
const HEADERS: usize = 42;

/// One of the four sets of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadTest {
    /// 65,536 flows of 1,514 bytes.
    Var2Large,
    /// 65,536 flows of each of a mix's sizes.
    Var2Imix,
    /// 65,536 flows of 64 bytes.
    Var2Small,
    /// One flow of 64 bytes.
    OneFlow,
}

impl LoadTest {
    /// All four.
    pub const ALL: [LoadTest; 4] =
        [LoadTest::Var2Large, LoadTest::Var2Imix, LoadTest::Var2Small, LoadTest::OneFlow];

    /// As the published results name it.
    pub const fn name(self) -> &'static str {
        match self {
            LoadTest::Var2Large => "var2-1514b",
            LoadTest::Var2Imix => "var2-imix",
            LoadTest::Var2Small => "var2-64b",
            LoadTest::OneFlow => "64b",
        }
    }
}

impl FromStr for LoadTest {
    type Err = FrameError;

    fn from_str(name: &str) -> Result<Self, FrameError> {
        let found = Self::ALL.into_iter().find(|test| test.name() == name);
        found.ok_or_else(|| FrameError::unknown("load test", name, &Self::ALL.map(LoadTest::name)))
    }
}

/// What the streams of a load test depend on.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadTraffic {
    /// Which.
    pub test: LoadTest,
    /// The mix of [`LoadTest::Var2Imix`].
    pub mix: Mix,
    /// Left to right (`uni`) or both ways (`bi`).
    pub direction: Direction,
    /// `Own`: our tag takes the place of the last 18 `x`, of a frame too small for that the last 8, unnumbered. `Plain`:
    /// T-Rex's bytes.
    pub form: Form,
    /// UDP checksums are right, unlike T-Rex's.
    pub fix_l4: bool,
    /// Ethernet addresses.
    pub macs: Macs,
}

impl LoadTraffic {
    /// The streams at `rate` frames a second and direction over all sizes, split in the mix's exact shares.
    ///
    /// # Errors
    ///
    /// A mix with a size too small for a UDP packet, or too large.
    pub fn streams(&self, rate: Rate) -> Result<Vec<Stream>, FrameError> {
        let mix = match self.test {
            LoadTest::Var2Large => Mix::single(1514),
            LoadTest::Var2Imix => self.mix.clone(),
            LoadTest::Var2Small | LoadTest::OneFlow => Mix::single(64),
        };
        let mut streams = Vec::new();
        for from in self.direction.sides() {
            for (number, (share, size)) in (0..).zip(&mix.parts) {
                let mut stream = self.stream(*from, *size)?;
                let after = Duration::from_nanos(number * START_GAP);
                stream.pace = Pace::Steady { rate: rate.share(*share, mix.whole()), after };
                streams.push(stream);
            }
        }
        Ok(streams)
    }

    fn stream(&self, from: Side, size: u32) -> Result<Stream, FrameError> {
        // The profile's smallest is 60, which a NIC would fill up to 64.
        let length = payload_of("a load test's frame", size, HEADERS, PLAIN_LEN, 0)?;
        let payload = vec![b'x'; length];
        let (source, destination) = if from == Side::Left { (LEFT, RIGHT) } else { (RIGHT, LEFT) };
        let frame = Packet {
            macs: (self.macs.destination(from), self.macs.source(from)),
            ends: (source.into(), destination.into()),
            ttl: 64,
            id: 1,
            extensions: &[],
            ports: (DNS, DNS),
            payload: &payload,
        }
        .frame()?;
        let behind = |bytes: usize| (HEADERS + length - bytes) as u16;
        let tag = match self.form {
            Form::Plain => Tag::None,
            Form::Own if length < SIGNED_LEN => Tag::Plain { offset: behind(PLAIN_LEN) },
            Form::Own => Tag::Signed { offset: behind(SIGNED_LEN) },
        };
        let changes = if self.test == LoadTest::OneFlow {
            Vec::new()
        } else {
            vec![counting(26, source, PAIRS), counting(30, destination, PAIRS)]
        };
        let way = if from == Side::Left { "forward" } else { "reverse" };
        Ok(Stream {
            name: format!("{way} {size} B"),
            from,
            frame,
            changes,
            checksums: Checksums { ip4: true, l4: self.fix_l4 },
            tag,
            pace: Pace::Steady { rate: Rate::ZERO, after: Duration::ZERO },
            stamps: Stamps::None,
            expected: true,
            answers: None,
        })
    }
}

/// An IPv4 address at `offset` that takes `count` values upwards from `first` on.
pub(crate) fn counting(offset: u16, first: Ipv4Addr, count: u64) -> Change {
    let min = u64::from(u32::from(first));
    let max = min + count.saturating_sub(1);
    let variable =
        Variable { order: Order::Rising, min, max, first: min, step: 1, list: Vec::new(), seed: 0 };
    Change { variable, writes: vec![Write::whole(offset, 4)] }
}
