//! The one packet ARP starts: a request.

use std::net::Ipv4Addr;

use shoal_buffer::{Buffer, Cache, Flags};
use shoal_wire::{ArpHeader, ArpOpcode, EtherType, EthernetHeader, IntoBytes, MacAddress};

/// Bytes of an Ethernet frame that carries ARP, without padding.
pub(crate) const FRAME: usize = EthernetHeader::LEN + ArpHeader::LEN;

/// A question to one link.
pub(crate) type Question = shoal_neighbor::Question<Ipv4Addr>;

fn bytes(question: &Question) -> [u8; FRAME] {
    let Question { data, source, to, target, .. } = *question;
    let mac = data.mac();
    let ethernet = EthernetHeader::new(mac, to.unwrap_or(MacAddress::BROADCAST), EtherType::ARP);
    let arp = ArpHeader::new(ArpOpcode::REQUEST, mac, source, MacAddress::ZERO, target);
    let mut bytes = [0; FRAME];
    let (front, rest) = bytes.split_at_mut(EthernetHeader::LEN);
    front.copy_from_slice(ethernet.as_bytes());
    rest.copy_from_slice(arp.as_bytes());
    bytes
}

/// The packet, ready for `interface-output`; `None` when there is no buffer.
pub(crate) fn packet(question: &Question, cache: &mut Cache) -> Option<Buffer> {
    let mut buffer = cache.alloc_one()?;
    let mut pkt = cache.packet(&mut buffer);
    let fits = pkt.set_data(&bytes(question));
    debug_assert!(fits.is_some(), "an ARP frame fits a buffer");
    let tagged = question.data.tag(&mut pkt);
    debug_assert!(tagged.is_some(), "a new buffer has room in front");
    let meta = pkt.meta_mut();
    meta.tx = question.interface;
    meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
    Some(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_infra::Zeroable;
    use shoal_interface::{IfData, SwIfIndex};
    use shoal_wire::Packet;

    #[test]
    fn asks_as_rfc_826_says() {
        let mac = MacAddress([2, 0xfe, 0, 0, 0, 1]);
        let data = IfData::zeroed().with_mac(mac);
        let (source, target) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let question = Question { interface: SwIfIndex(1), data, source, to: None, target };
        assert_eq!(bytes(&question)[..], Packet::arp_request(mac, source, target).build());
    }
}
