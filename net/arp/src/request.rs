//! The one packet ARP starts: a request.

use std::net::Ipv4Addr;

use shoal_buffer::{Buffer, Cache, Flags, SwIfIndex};
use shoal_wire::{ArpHeader, ArpOpcode, EtherType, EthernetHeader, IntoBytes, MacAddress};

/// Bytes of an Ethernet frame that carries ARP, without padding.
pub(crate) const FRAME: usize = EthernetHeader::LEN + ArpHeader::LEN;

/// A question to one link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Question {
    /// The link.
    pub(crate) interface: SwIfIndex,
    /// Our address there.
    pub(crate) mac: MacAddress,
    /// Our IPv4 address there.
    pub(crate) source: Ipv4Addr,
    /// Who is asked: everybody, or a neighbour that may have gone.
    pub(crate) to: MacAddress,
    /// The address asked for.
    pub(crate) target: Ipv4Addr,
}

impl Question {
    fn bytes(&self) -> [u8; FRAME] {
        let Question { mac, source, to, target, .. } = *self;
        let ethernet = EthernetHeader::new(mac, to, EtherType::ARP);
        let arp = ArpHeader::new(ArpOpcode::REQUEST, mac, source, MacAddress::ZERO, target);
        let mut bytes = [0; FRAME];
        let (front, rest) = bytes.split_at_mut(EthernetHeader::LEN);
        front.copy_from_slice(ethernet.as_bytes());
        rest.copy_from_slice(arp.as_bytes());
        bytes
    }

    /// The packet, ready for `interface-output`; `None` when there is no buffer.
    pub(crate) fn packet(&self, cache: &mut Cache) -> Option<Buffer> {
        let mut buffer = cache.alloc_one()?;
        let mut pkt = cache.packet(&mut buffer);
        let fits = pkt.set_data(&self.bytes());
        debug_assert!(fits.is_some(), "an ARP frame fits a buffer");
        let meta = pkt.meta_mut();
        meta.tx = self.interface;
        meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
        Some(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_wire::Packet;

    #[test]
    fn asks_as_rfc_826_says() {
        let mac = MacAddress([2, 0xfe, 0, 0, 0, 1]);
        let (source, target) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let question = Question { interface: SwIfIndex(1), mac, source, to: MacAddress::BROADCAST, target };
        assert_eq!(question.bytes()[..], Packet::arp_request(mac, source, target).build());
    }
}
