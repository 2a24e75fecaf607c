//! The thesis's two streams: a heavy one that loads the device, and a light one whose delay is measured.
//!
//! T-Rex puts a header of 16 bytes at the end of latency frames. Here both streams have the lab's signed tag of 18 bytes at
//! the end instead: it says the same (stream, number) and more, and stamps are kept at the tester.

use std::net::Ipv4Addr;
use std::time::Duration;

use shoal_lab_plan::{Checksums, Pace, Rate, SMALLEST, Side, Stamps, Stream, Tag};

use crate::error::FrameError;
use crate::loadtest::counting;
use crate::packet::{Macs, Packet, payload_of};
use crate::tag::SIGNED_LEN;
use crate::traffic::Direction;

/// Frames a second of the latency stream.
pub const LATENCY_PPS: u64 = 5000;
/// Source addresses of the heavy stream when forwarding.
pub const FORWARDING_SOURCES: u64 = 255;
/// Source addresses of the heavy stream through a NAT.
pub const NAT_SOURCES: u64 = 65_535;

const LEFT: Ipv4Addr = Ipv4Addr::new(16, 0, 0, 1);
const RIGHT: Ipv4Addr = Ipv4Addr::new(48, 0, 0, 1);
/// Where the heavy stream's sources begin, at either side: its answers are no part of the test.
const HEAVY_SOURCE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Ethernet, IPv4, UDP.
const HEADERS: usize = 42;

/// What the thesis's streams depend on.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadAndLatencyTraffic {
    /// Bytes of a heavy frame, with FCS.
    pub size: u32,
    /// Different sources of the heavy stream: its `cache_size`.
    pub sources: u64,
    /// Frames a second of the latency stream, however heavy the other is; 0: no such stream.
    pub latency_pps: u64,
    /// Left to right, or mirrored on both sides.
    pub direction: Direction,
    /// Ethernet addresses.
    pub macs: Macs,
}

impl LoadAndLatencyTraffic {
    /// The streams, the heavy ones at `rate` frames a second and direction.
    ///
    /// # Errors
    ///
    /// A size that does not hold headers and tag, sources that do not fit behind 10.0.0.1.
    pub fn streams(&self, rate: Rate) -> Result<Vec<Stream>, FrameError> {
        FrameError::within("the number of sources", self.sources, 1, (1 << 24) - 2)?;
        let mut streams = Vec::new();
        for from in self.direction.sides() {
            let way = if *from == Side::Left { "forward" } else { "reverse" };
            let mut heavy = self.stream(*from, self.size, (1025, 12), rate)?;
            heavy.name = format!("{way} heavy");
            heavy.changes.push(counting(26, HEAVY_SOURCE, self.sources));
            streams.push(heavy);
            if self.latency_pps > 0 {
                let rate = Rate::per_second(self.latency_pps);
                let mut latency = self.stream(*from, SMALLEST, (1234, 1234), rate)?;
                latency.name = format!("{way} latency");
                latency.stamps = Stamps::All;
                streams.push(latency);
            }
        }
        Ok(streams)
    }

    fn stream(&self, from: Side, size: u32, ports: (u16, u16), rate: Rate) -> Result<Stream, FrameError> {
        let length = payload_of("a frame", size, HEADERS, SIGNED_LEN, SMALLEST)?;
        let (source, destination) = if from == Side::Left { (LEFT, RIGHT) } else { (RIGHT, LEFT) };
        let frame = Packet {
            macs: (self.macs.destination(from), self.macs.source(from)),
            ends: (source.into(), destination.into()),
            ttl: 64,
            id: 1,
            extensions: &[],
            ports,
            payload: &vec![b'x'; length],
        }
        .frame()?;
        let tag = Tag::Signed { offset: (frame.len() - SIGNED_LEN) as u16 };
        Ok(Stream {
            name: String::new(),
            from,
            frame,
            changes: Vec::new(),
            checksums: Checksums { ip4: true, l4: true },
            tag,
            pace: Pace::Steady { rate, after: Duration::ZERO },
            stamps: Stamps::None,
            expected: true,
            answers: None,
        })
    }
}
