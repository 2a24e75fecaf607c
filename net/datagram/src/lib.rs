//! Datagrams that the router itself sends: what it tells a collector of logs or of flows.
//!
//! The main thread makes them and puts them into the graph at `ip4-lookup` or `ip6-lookup`. From there they are packets like others:
//! features on the way out see them, and a route that is not there drops them, counted.
#![forbid(unsafe_code)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_adj::AdjIndex;
use shoal_buffer::Flags;
use shoal_fib::FibIndex;
use shoal_graph::{Graph, GraphError};
use shoal_wire::checksum::Sum;
use shoal_wire::{IntoBytes, Ip4Header, Ip6Header, IpProtocol, UdpHeader};

/// Bytes of data that fit a datagram of either family.
pub const MOST: usize = u16::MAX as usize - Ip4Header::LEN - UdpHeader::LEN;

/// Why a datagram was not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatagramError {
    /// One address is of the other family.
    #[error("{0} and {1} are not of one family")]
    Families(IpAddr, IpAddr),
    /// It is longer than a datagram can be.
    #[error("{0} bytes do not fit a datagram: at most {MOST}")]
    TooLong(usize),
    /// The pool is empty.
    #[error("no buffer is free")]
    NoBuffer,
    /// A node is not there.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// Whether IPv4 datagrams have a checksum. Over IPv6 they always do (RFC 8200, 8.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// They have one.
    Computed,
    /// They have none: the field is zero.
    Zero,
}

/// From where to where, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// From where.
    pub source: (IpAddr, u16),
    /// To where.
    pub destination: (IpAddr, u16),
    /// The table in which the destination is looked for.
    pub table: FibIndex,
    /// Routers it may pass: IPv4's TTL, IPv6's hop limit.
    pub hops: u8,
    /// IPv4's type of service, IPv6's traffic class.
    pub tos: u8,
    /// Whether it has a checksum over IPv4.
    pub checksum: Checksum,
}

impl Datagram {
    fn udp(&self, data: &[u8], pseudo: impl Fn(u16) -> Sum, checksum: Checksum) -> UdpHeader {
        let length = (UdpHeader::LEN + data.len()) as u16;
        let mut header = UdpHeader::new(self.source.1, self.destination.1, length);
        if checksum == Checksum::Computed {
            let mut sum = pseudo(length);
            sum.add(header.as_bytes());
            sum.add(data);
            header.set_checksum(sum.finish_udp());
        }
        header
    }

    fn ip4(&self, (src, dst): (Ipv4Addr, Ipv4Addr), data: &[u8]) -> Vec<u8> {
        let pseudo = |length| Sum::pseudo_ip4(src, dst, IpProtocol::UDP, length);
        let udp = self.udp(data, pseudo, self.checksum);
        let total = Ip4Header::LEN as u16 + udp.length();
        let mut ip = Ip4Header::new(src, dst, IpProtocol::UDP, self.hops, total);
        ip.set_flags_and_fragment_offset(Ip4Header::DONT_FRAGMENT);
        ip.set_tos(self.tos);
        ip.update_checksum();
        [ip.as_bytes(), udp.as_bytes(), data].concat()
    }

    fn ip6(&self, (src, dst): (Ipv6Addr, Ipv6Addr), data: &[u8]) -> Vec<u8> {
        let pseudo = |length: u16| Sum::pseudo_ip6(src, dst, IpProtocol::UDP, length.into());
        let udp = self.udp(data, pseudo, Checksum::Computed);
        let mut ip = Ip6Header::new(src, dst, IpProtocol::UDP, self.hops, udp.length());
        ip.set_traffic_class(self.tos);
        [ip.as_bytes(), udp.as_bytes(), data].concat()
    }

    /// The packet.
    ///
    /// # Errors
    /// The addresses are not of one family, or there is too much data.
    pub fn bytes(&self, data: &[u8]) -> Result<Vec<u8>, DatagramError> {
        if data.len() > MOST {
            return Err(DatagramError::TooLong(data.len()));
        }
        match (self.source.0, self.destination.0) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => Ok(self.ip4((src, dst), data)),
            (IpAddr::V6(src), IpAddr::V6(dst)) => Ok(self.ip6((src, dst), data)),
            (src, dst) => Err(DatagramError::Families(src, dst)),
        }
    }

    /// Puts the packet into the graph; it is forwarded in the main thread's next round.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes), or no buffer is free.
    pub fn send(&self, graph: &Graph, data: &[u8]) -> Result<(), DatagramError> {
        let node = if self.destination.0.is_ipv4() { "ip4-lookup" } else { "ip6-lookup" };
        self.inject(graph, node, None, data)
    }

    /// The same by an adjacency, whatever the table says: to a neighbour that is known.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes), or no buffer is free.
    pub fn send_by(&self, graph: &Graph, adj: AdjIndex, data: &[u8]) -> Result<(), DatagramError> {
        let node = if self.destination.0.is_ipv4() { "ip4-rewrite" } else { "ip6-rewrite" };
        self.inject(graph, node, Some(adj), data)
    }

    /// The same by an adjacency of a neighbour that is not known, or not heard of lately: it is asked for.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes), or no buffer is free.
    pub fn ask_by(&self, graph: &Graph, adj: AdjIndex, data: &[u8]) -> Result<(), DatagramError> {
        let node = if self.destination.0.is_ipv4() { "ip4-arp" } else { "ip6-discover-neighbor" };
        self.inject(graph, node, Some(adj), data)
    }

    fn inject(
        &self,
        graph: &Graph,
        node: &str,
        adj: Option<AdjIndex>,
        data: &[u8],
    ) -> Result<(), DatagramError> {
        send_packet(graph, node, self.table, adj, &self.bytes(data)?)
    }
}

/// Hands an IP packet of this router to a node, by an adjacency if that node takes one.
///
/// # Errors
/// There is no such node, or no buffer is free.
pub fn send_packet(
    graph: &Graph,
    node: &str,
    table: FibIndex,
    adj: Option<AdjIndex>,
    packet: &[u8],
) -> Result<(), DatagramError> {
    let node = graph.node(node)?;
    let mut main = graph.main();
    let mut buffer = main.cache().alloc_data(packet).map_err(|_| DatagramError::NoBuffer)?;
    let mut pkt = main.cache().packet(&mut buffer);
    let front = pkt.current();
    let meta = pkt.meta_mut();
    meta.set_fib(Some(table));
    meta.l3 = front;
    meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
    if let Some(adj) = adj {
        meta.adj = adj.0;
    }
    main.inject(node, buffer);
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn datagram(src: &str, dst: &str, checksum: Checksum) -> Datagram {
        let (source, destination) = ((src.parse().unwrap(), 514), (dst.parse().unwrap(), 5140));
        Datagram { source, destination, table: FibIndex(0), hops: 254, tos: 0, checksum }
    }

    #[test]
    fn an_ip4_datagram_has_these_bytes() {
        let bytes = datagram("10.0.0.1", "10.0.0.2", Checksum::Zero).bytes(b"hi!").unwrap();
        let (ip, rest) = bytes.split_at(20);
        assert_eq!(ip[..10], [0x45, 0, 0, 31, 0, 0, 0x40, 0, 254, 17]);
        assert_eq!(ip[12..], [10, 0, 0, 1, 10, 0, 0, 2]);
        assert_eq!(shoal_wire::checksum::checksum(ip), 0);
        assert_eq!(rest, [&[2, 2, 0x14, 0x14, 0, 11, 0, 0][..], b"hi!"].concat());
    }

    #[test]
    fn checksums_are_right_in_both_families_and_never_missing_over_ip6() {
        let ip4 = datagram("10.0.0.1", "10.0.0.2", Checksum::Computed).bytes(b"odd").unwrap();
        let mut sum = Sum::pseudo_ip4([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), IpProtocol::UDP, 11);
        sum.add(&ip4[20..]);
        assert_eq!(sum.finish(), 0);
        for checksum in [Checksum::Computed, Checksum::Zero] {
            let ip6 = datagram("2001:db8::1", "2001:db8::2", checksum).bytes(b"even").unwrap();
            let ends = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
            let mut sum = Sum::pseudo_ip6(ends.0, ends.1, IpProtocol::UDP, 12);
            sum.add(&ip6[40..]);
            assert_eq!((sum.finish(), ip6[4..8].to_vec()), (0, vec![0, 12, 17, 254]));
        }
    }

    #[test]
    fn what_cannot_be_a_datagram_is_refused() {
        let mixed = datagram("10.0.0.1", "2001:db8::2", Checksum::Zero).bytes(b"");
        assert!(matches!(mixed, Err(DatagramError::Families(..))));
        let long = datagram("10.0.0.1", "10.0.0.2", Checksum::Zero).bytes(&vec![0; MOST + 1]);
        assert_eq!(long, Err(DatagramError::TooLong(MOST + 1)));
        assert_eq!(
            datagram("10.0.0.1", "10.0.0.2", Checksum::Zero).bytes(&vec![0; MOST]).unwrap().len(),
            65535
        );
    }
}
