//! A packet that is sent again and again: made once by the main thread, so that the others only copy it.

use std::net::IpAddr;

use shoal_datagram::{Datagram, DatagramError};
use shoal_wire::checksum::Sum;
use shoal_wire::{Ip4Header, Ip6Header, IpProtocol, UdpHeader};

use crate::packet::{AUTH_LEN, LEN};

/// Bytes of the longest packet.
const LONGEST: usize = Ip6Header::LEN + UdpHeader::LEN + LEN + AUTH_LEN;
/// Where a UDP header has its checksum.
const CHECKSUM: usize = 6;

/// An IP packet with a UDP datagram.
#[derive(Clone, Debug)]
pub struct Template {
    bytes: [u8; LONGEST],
    len: usize,
    ends: (IpAddr, IpAddr),
}

impl Template {
    /// The packet with these bytes in it.
    ///
    /// # Errors
    /// The addresses are of two families, or there are too many bytes.
    pub fn new(datagram: &Datagram, data: &[u8]) -> Result<Template, DatagramError> {
        let packet = datagram.bytes(data)?;
        let mut bytes = [0; LONGEST];
        let room = bytes.get_mut(..packet.len()).ok_or(DatagramError::TooLong(data.len()))?;
        room.copy_from_slice(&packet);
        Ok(Template { bytes, len: packet.len(), ends: (datagram.source.0, datagram.destination.0) })
    }

    /// The packet.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Whether it is IPv6.
    pub fn is_ip6(&self) -> bool {
        self.ends.0.is_ipv6()
    }

    /// Where it comes from.
    pub fn source(&self) -> IpAddr {
        self.ends.0
    }

    /// Bytes of data in it.
    pub fn data_len(&self) -> usize {
        self.len.saturating_sub(self.udp() + UdpHeader::LEN)
    }

    fn udp(&self) -> usize {
        if self.is_ip6() { Ip6Header::LEN } else { Ip4Header::LEN }
    }

    /// The packet with other data of the same length.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&mut [u8])) -> Template {
        let mut changed = self.clone();
        let Some(udp) = changed.bytes.get_mut(self.udp()..self.len) else { return changed };
        let length = udp.len();
        if let Some(data) = udp.get_mut(UdpHeader::LEN..) {
            change(data);
        }
        let mut sum = match self.ends {
            (IpAddr::V4(src), IpAddr::V4(dst)) => Sum::pseudo_ip4(src, dst, IpProtocol::UDP, length as u16),
            (IpAddr::V6(src), IpAddr::V6(dst)) => Sum::pseudo_ip6(src, dst, IpProtocol::UDP, length as u32),
            _ => return changed,
        };
        let (before, after) =
            (udp.get(..CHECKSUM).unwrap_or_default(), udp.get(CHECKSUM + 2..).unwrap_or_default());
        sum.add(before);
        sum.add(after);
        if let Some(place) = udp.get_mut(CHECKSUM..CHECKSUM + 2) {
            place.copy_from_slice(&sum.finish_udp().to_be_bytes());
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use shoal_datagram::Checksum;
    use shoal_fib::FibIndex;

    use super::*;

    #[test]
    fn a_changed_packet_is_the_one_that_would_have_been_made() {
        for (src, dst) in [("10.0.0.1", "10.0.0.2"), ("2001:db8::1", "2001:db8::2")] {
            let (source, destination) = ((src.parse().unwrap(), 50_000), (dst.parse().unwrap(), 3784));
            let table = FibIndex::DEFAULT;
            let datagram =
                Datagram { source, destination, table, hops: 255, tos: 192, checksum: Checksum::Computed };
            for len in [20, 24, 52] {
                let data: Vec<u8> = (0..len as u8).map(|byte| byte ^ 0x5a).collect();
                let template = Template::new(&datagram, &vec![0; len]).unwrap();
                assert_eq!(template.data_len(), len);
                let changed = template.with(|room| room.copy_from_slice(&data));
                assert_eq!(changed.bytes(), datagram.bytes(&data).unwrap());
            }
            assert!(Template::new(&datagram, &[0; 53]).is_err() || src.len() < 9);
        }
    }
}
