//! A described packet, before its size is known.

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_wire::checksum::{Sum, checksum};
use shoal_wire::{EthernetHeader, FromBytes, Ip4Header, Ip6Header, IpProtocol, TcpHeader, UdpHeader};

use super::template::{Checksum, Field};

/// One header of a described packet, by where it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layer {
    Ethernet { at: usize },
    Arp { at: usize },
    Ip4 { at: usize, fixed_length: bool, fixed_checksum: bool },
    Ip6 { at: usize, fixed_length: bool },
    Udp { at: usize, fixed_length: bool, fixed_checksum: bool },
    Tcp { at: usize, fixed_checksum: bool },
    Icmp { at: usize, fixed_checksum: bool },
}

impl Layer {
    /// Where it begins and how long its header is.
    fn span(self) -> (usize, usize) {
        match self {
            Layer::Ethernet { at } => (at, EthernetHeader::LEN),
            Layer::Arp { at } => (at, shoal_wire::ArpHeader::LEN),
            Layer::Ip4 { at, .. } => (at, Ip4Header::LEN),
            Layer::Ip6 { at, .. } => (at, Ip6Header::LEN),
            Layer::Udp { at, .. } => (at, UdpHeader::LEN),
            Layer::Tcp { at, .. } => (at, TcpHeader::LEN),
            Layer::Icmp { at, .. } => (at, 4),
        }
    }

    /// Where its checksum lies, if it has one that is to be kept right.
    fn checksum_at(self) -> Option<usize> {
        match self {
            Layer::Ip4 { at, fixed_checksum: false, .. } => Some(at + 10),
            Layer::Udp { at, fixed_checksum: false, .. } => Some(at + 6),
            Layer::Tcp { at, fixed_checksum: false } => Some(at + 16),
            Layer::Icmp { at, fixed_checksum: false } => Some(at + 2),
            _ => None,
        }
    }
}

/// Whether layer-4 checksums are left to the interface that sends the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Offload {
    No,
    L4,
}

/// A described packet: bytes of headers and payload, its layers, the fields that change.
#[derive(Clone, Debug, Default)]
pub struct Blueprint {
    pub(crate) bytes: Vec<u8>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) fields: Vec<Field>,
}

impl Blueprint {
    /// Bytes as they are, without anything to compute.
    pub fn raw(bytes: Vec<u8>) -> Self {
        Blueprint { bytes, ..Self::default() }
    }

    /// Bytes it has by itself.
    pub fn natural_size(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of all headers together.
    pub(crate) fn header_bytes(&self) -> usize {
        self.layers.iter().map(|l| l.span()).map(|(at, len)| at + len).max().unwrap_or(0)
    }

    /// Writes a packet of `size` bytes: cut or filled up with zeroes, with lengths and checksums that fit.
    pub(crate) fn render(&self, size: usize, offload: Offload, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(self.bytes.get(..size.min(self.bytes.len())).unwrap_or_default());
        out.resize(size, 0);
        self.layers.iter().for_each(|layer| lengths(*layer, out));
        self.finish(offload, out);
    }

    /// Makes all checksums right for the bytes as they are.
    pub(crate) fn finish(&self, offload: Offload, out: &mut [u8]) {
        let mut network = None;
        for layer in &self.layers {
            match layer {
                Layer::Ip4 { .. } | Layer::Ip6 { .. } => network = Some(*layer),
                _ => {}
            }
            checksums(*layer, network, offload, out);
        }
    }

    /// The checksums a change of the bytes at `at` changes, too.
    pub(crate) fn checksums_over(&self, at: usize) -> Vec<Checksum> {
        let mut over = Vec::new();
        for (i, layer) in self.layers.iter().enumerate() {
            let (start, len) = layer.span();
            let inside = (start..start + len).contains(&at);
            // An address is part of the pseudo header of the layer behind it.
            let l4 = matches!(layer, Layer::Udp { .. } | Layer::Tcp { .. });
            let pseudo = i.checked_sub(1).and_then(|before| self.layers.get(before)).is_some_and(|below| {
                let (start, len) = below.span();
                l4 && (start..start + len).contains(&at)
            });
            if inside || pseudo {
                let zero = if l4 { u16::MAX } else { 0 };
                over.extend(layer.checksum_at().map(|at| Checksum { at, zero }));
            }
        }
        over
    }

    /// Where the network and the transport header begin, and where the latter's checksum lies in it.
    pub(crate) fn l4(&self) -> Option<(usize, u16)> {
        self.layers.iter().find_map(|layer| match layer {
            Layer::Udp { at, .. } => Some((*at, 6)),
            Layer::Tcp { at, .. } => Some((*at, 16)),
            _ => None,
        })
    }

    /// Where the network header begins.
    pub(crate) fn l3(&self) -> Option<usize> {
        self.layers.iter().find_map(|layer| match layer {
            Layer::Ip4 { at, .. } | Layer::Ip6 { at, .. } => Some(*at),
            _ => None,
        })
    }
}

fn put(out: &mut [u8], at: usize, value: u16) {
    if let Some(field) = out.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

/// Writes the length fields of a layer for the packet's size; they stop at 65,535.
fn lengths(layer: Layer, out: &mut [u8]) {
    let from = |at: usize| out.len().saturating_sub(at).min(usize::from(u16::MAX)) as u16;
    match layer {
        Layer::Ip4 { at, fixed_length: false, .. } => put(out, at + 2, from(at)),
        Layer::Ip6 { at, fixed_length: false } => put(out, at + 4, from(at + Ip6Header::LEN)),
        Layer::Udp { at, fixed_length: false, .. } => put(out, at + 4, from(at)),
        _ => {}
    }
}

fn checksums(layer: Layer, network: Option<Layer>, offload: Offload, out: &mut [u8]) {
    let Some(field) = layer.checksum_at() else { return };
    let (at, len) = layer.span();
    put(out, field, 0);
    let value = match layer {
        Layer::Ip4 { .. } => checksum(out.get(at..at + len).unwrap_or_default()),
        Layer::Icmp { .. } => checksum(out.get(at..).unwrap_or_default()),
        Layer::Udp { .. } => l4(network, IpProtocol::UDP, at, offload, out),
        Layer::Tcp { .. } => l4(network, IpProtocol::TCP, at, offload, out),
        _ => return,
    };
    put(out, field, value);
}

fn l4(network: Option<Layer>, protocol: IpProtocol, at: usize, offload: Offload, out: &[u8]) -> u16 {
    let segment = out.get(at..).unwrap_or_default();
    let mut sum = match network {
        Some(Layer::Ip4 { at, .. }) => match out.get(at..).map(Ip4Header::ref_from_prefix) {
            Some(Ok((ip, _))) => {
                let (src, dst): (Ipv4Addr, Ipv4Addr) = (ip.src(), ip.dst());
                Sum::pseudo_ip4(src, dst, protocol, segment.len() as u16)
            }
            _ => Sum::new(),
        },
        Some(Layer::Ip6 { at, .. }) => match out.get(at..).map(Ip6Header::ref_from_prefix) {
            Some(Ok((ip, _))) => {
                let (src, dst): (Ipv6Addr, Ipv6Addr) = (ip.src(), ip.dst());
                Sum::pseudo_ip6(src, dst, protocol, segment.len() as u32)
            }
            _ => Sum::new(),
        },
        _ => Sum::new(),
    };
    if offload == Offload::L4 {
        return sum.folded();
    }
    sum.add(segment);
    if protocol == IpProtocol::UDP { sum.finish_udp() } else { sum.finish() }
}
