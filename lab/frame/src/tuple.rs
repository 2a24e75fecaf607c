//! A flow's addresses and ports, read from a frame and written into one.

use std::net::IpAddr;

use crate::layout::{Layout, UDP, put_word, word};
use crate::sum;

/// Addresses, ports and protocol of a flow, as a frame of it has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tuple {
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same family.
    pub destination: IpAddr,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Protocol number: 6 TCP, 17 UDP, 132 SCTP.
    pub protocol: u8,
}

impl Tuple {
    /// Reads it from a frame, VLAN tags and IPv6 extension headers passed over; `None` if the frame holds no first fragment
    /// or whole packet of TCP, UDP or SCTP.
    pub fn of(frame: &[u8]) -> Option<Tuple> {
        let layout = Layout::of(frame).filter(Layout::has_ports)?;
        let (source, destination) = layout.ends(frame)?;
        Some(Tuple {
            source,
            destination,
            source_port: word(frame, layout.l4)?,
            destination_port: word(frame, layout.l4 + 2)?,
            protocol: layout.protocol,
        })
    }

    /// The tuple of what is sent back.
    pub const fn reversed(self) -> Tuple {
        Tuple {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
            protocol: self.protocol,
        }
    }
}

/// Writes addresses and ports of `tuple` into `frame` and mends the checksums by the difference (RFC 1624), so that a wrong
/// one stays wrong; a UDP checksum of 0 (none) stays 0. The protocol is not changed.
///
/// Gives `false`, with the frame as it was, if the frame has no ports or is of the other family.
pub fn retuple(frame: &mut [u8], tuple: &Tuple) -> bool {
    let Some(layout) = Layout::of(frame).filter(Layout::has_ports) else { return false };
    let mut addresses = [0_u8; 32];
    let length = match (tuple.source, tuple.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) if layout.is_ip4 => {
            fill(&mut addresses, &source.octets(), &destination.octets())
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) if !layout.is_ip4 => {
            fill(&mut addresses, &source.octets(), &destination.octets())
        }
        _ => return false,
    };
    let Some(new) = addresses.get(..length) else { return false };
    let Some(old) = frame.get_mut(layout.addresses()) else { return false };
    let moved = minus(sum::of(old)) + sum::of(new);
    old.copy_from_slice(new);

    let mut total = moved;
    for (at, port) in [(layout.l4, tuple.source_port), (layout.l4 + 2, tuple.destination_port)] {
        total += sum::difference(u64::from(word(frame, at).unwrap_or(0)), u64::from(port), 0);
        put_word(frame, at, port);
    }
    if let Some(at) = layout.ip4_checksum() {
        mend(frame, at, moved);
    }
    if let Some(at) = layout.l4_checksum() {
        let is_udp = layout.protocol == UDP;
        if !(is_udp && word(frame, at) == Some(0)) {
            mend(frame, at, total);
            if is_udp && word(frame, at) == Some(0) {
                put_word(frame, at, 0xffff);
            }
        }
    }
    true
}

fn fill(addresses: &mut [u8; 32], source: &[u8], destination: &[u8]) -> usize {
    for (to, from) in addresses.iter_mut().zip(source.iter().chain(destination)) {
        *to = *from;
    }
    source.len() + destination.len()
}

/// What is added to take a sum of few words away.
fn minus(sum: u64) -> u64 {
    sum::difference(sum, 0, 0)
}

/// RFC 1624 equation 3: `HC' = ~(~HC + ~m + m')`.
fn mend(frame: &mut [u8], at: usize, difference: u64) {
    let old = word(frame, at).unwrap_or(0);
    put_word(frame, at, !sum::fold(u64::from(!old) + difference));
}
