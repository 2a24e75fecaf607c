//! A frame from its parts: Ethernet, IPv4 or IPv6, UDP, payload, with right lengths and checksums.

use std::net::IpAddr;

use shoal_lab_plan::{Addresses, FCS, Side};

use crate::error::FrameError;
use crate::extension::{self, Extension};
use crate::layout::{IP4, IP6, Layout, UDP, put_word};
use crate::sum;

/// The largest frame that is built, with FCS: the largest of RFC 8219 section 4.
pub const LARGEST: u32 = 9216;

/// An Ethernet address.
pub type Mac = [u8; 6];

/// The Ethernet addresses on both links, left and right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Macs {
    /// The tester's.
    pub tester: [Mac; 2],
    /// The device's; a bridge or cross-connect has none.
    pub device: [Option<Mac>; 2],
}

impl Macs {
    /// The tester's of `addresses`, and the device's beside the left and the right port.
    pub fn new(addresses: &Addresses, left: Option<Mac>, right: Option<Mac>) -> Self {
        Macs { tester: [addresses.left.tester_mac, addresses.right.tester_mac], device: [left, right] }
    }

    /// Source of what `from` sends.
    pub fn source(&self, from: Side) -> Mac {
        let [left, right] = self.tester;
        if from == Side::Left { left } else { right }
    }

    /// Destination of what `from` sends: the device, or the tester's other port where the device has no address.
    pub fn destination(&self, from: Side) -> Mac {
        let [left, right] = self.device;
        let device = if from == Side::Left { left } else { right };
        device.unwrap_or_else(|| self.source(from.other()))
    }
}

/// A UDP packet in its frame.
#[derive(Clone, Debug)]
pub(crate) struct Packet<'a> {
    /// Destination, source.
    pub macs: (Mac, Mac),
    /// Source, destination; of one family.
    pub ends: (IpAddr, IpAddr),
    /// TTL or hop limit.
    pub ttl: u8,
    /// IPv4's identification.
    pub id: u16,
    /// IPv6's extension headers.
    pub extensions: &'a [Extension],
    /// Source, destination.
    pub ports: (u16, u16),
    pub payload: &'a [u8],
}

impl Packet<'_> {
    /// Bytes of headers before the payload.
    pub(crate) fn overhead(is_ip4: bool, extensions: &[Extension]) -> usize {
        14 + if is_ip4 { 20 } else { 40 + extension::length(extensions) } + 8
    }

    /// The frame, without FCS.
    ///
    /// # Errors
    ///
    /// Addresses of two families; extension headers on IPv4.
    pub(crate) fn frame(&self) -> Result<Vec<u8>, FrameError> {
        let together = |what: &str, with: &str, nearest: &str| FrameError::Together {
            what: what.to_owned(),
            with: with.to_owned(),
            nearest: nearest.to_owned(),
        };
        let mut frame = Vec::with_capacity(LARGEST as usize);
        frame.extend(self.macs.0);
        frame.extend(self.macs.1);
        let udp = 8 + self.payload.len();
        match self.ends {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                if !self.extensions.is_empty() {
                    return Err(together("an extension header", "IPv4", "use IPv6"));
                }
                frame.extend(IP4.to_be_bytes());
                frame.extend([0x45, 0]);
                frame.extend(((20 + udp) as u16).to_be_bytes());
                frame.extend(self.id.to_be_bytes());
                frame.extend([0, 0, self.ttl, UDP, 0, 0]);
                frame.extend(source.octets());
                frame.extend(destination.octets());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let (first, headers) = extension::bytes(self.extensions, UDP);
                frame.extend(IP6.to_be_bytes());
                frame.extend([0x60, 0, 0, 0]);
                frame.extend(((headers.len() + udp) as u16).to_be_bytes());
                frame.extend([first, self.ttl]);
                frame.extend(source.octets());
                frame.extend(destination.octets());
                frame.extend(headers);
            }
            _ => return Err(together("a source of one family", "a destination of the other", "use one")),
        }
        frame.extend(self.ports.0.to_be_bytes());
        frame.extend(self.ports.1.to_be_bytes());
        frame.extend((udp as u16).to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(self.payload);
        fill_checksums(&mut frame);
        Ok(frame)
    }
}

/// Writes right checksums into a frame.
fn fill_checksums(frame: &mut [u8]) {
    let Some(layout) = Layout::of(frame) else { return };
    if let Some(at) = layout.ip4_checksum() {
        put_word(frame, at, !sum::fold(layout.ip4_sum(frame)));
    }
    if let Some(at) = layout.l4_checksum() {
        put_word(frame, at, layout.l4_result(layout.l4_sum(frame)));
    }
}

/// Bytes of payload in a frame of `size` bytes (with FCS) behind `overhead` bytes of headers, at least `least`.
///
/// # Errors
///
/// [`FrameError::Size`] if the frame is too small for that, smaller than `smallest`, or too large.
pub(crate) fn payload_of(
    what: &str,
    size: u32,
    overhead: usize,
    least: usize,
    smallest: u32,
) -> Result<usize, FrameError> {
    let minimum = ((overhead + least) as u32 + FCS).max(smallest);
    if !(minimum..=LARGEST).contains(&size) {
        let nearest = size.clamp(minimum, LARGEST);
        return Err(FrameError::Size { what: what.to_owned(), size, nearest });
    }
    Ok((size - FCS) as usize - overhead)
}
