//! What the device of an interface says of a received packet: that its checksum is not complete yet, and into what
//! pieces it is to be cut.
//!
//! A host leaves both to a device that offers it. A packet generator's interface that was made so stands for that
//! host: its packets come with open checksums, as VPP's do.

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_buffer::Packet;
use shoal_vnet::{VnetHdr, ethernet_payload};
use shoal_wire::checksum::Sum;
use shoal_wire::{FromBytes, Ip4Header, Ip6Header, IpProtocol};

use crate::Mode;

/// What an interface offers to the host that sends to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Receive {
    /// Whether checksums of TCP and UDP are left open.
    pub(crate) checksum: bool,
    /// Bytes of payload in each piece of a large TCP packet, 0 when there are none.
    pub(crate) gso_size: u16,
}

/// The transport header of a packet.
struct Transport {
    at: usize,
    protocol: IpProtocol,
    /// The sum of the pseudo header.
    pseudo: u16,
    /// What virtio calls large TCP packets of this family.
    gso_type: u8,
}

impl Receive {
    /// Marks a received packet; one that is neither TCP nor UDP, or a fragment, stays as it is.
    pub(crate) fn mark(self, pkt: &mut Packet<'_>, mode: Mode) {
        if self != Self::default() {
            let _ = self.leave_open(pkt, mode);
        }
    }

    #[cold]
    fn leave_open(self, pkt: &mut Packet<'_>, mode: Mode) -> Option<()> {
        let network = match mode {
            Mode::Ethernet => ethernet_payload(pkt.data())?,
            Mode::Ip4 | Mode::Ip6 => 0,
        };
        let len = pkt.len();
        let Transport { at, protocol, pseudo, gso_type } = transport(pkt.data(), network, len)?;
        let (offset, header) = match protocol {
            IpProtocol::TCP => (16, usize::from(pkt.data().get(at + 12)? >> 4) * 4),
            _ => (6, 8),
        };
        let payload = len.checked_sub(at + header)?;
        let is_large =
            protocol == IpProtocol::TCP && self.gso_size > 0 && payload > usize::from(self.gso_size);
        let owed = VnetHdr {
            flags: 1,
            gso_type: if is_large { gso_type } else { 0 },
            hdr_len: u16::try_from(at + header).ok()?.into(),
            gso_size: if is_large { self.gso_size } else { 0 }.into(),
            csum_start: u16::try_from(at).ok()?.into(),
            csum_offset: offset.into(),
        };
        let owed = owed.validate(&[pkt.data()]).ok()?;
        let field = at + usize::from(offset);
        pkt.data_mut().get_mut(field..field + 2)?.copy_from_slice(&pseudo.to_be_bytes());
        let network = pkt.current() + i16::try_from(network).ok()?;
        pkt.meta_mut().l3 = network;
        owed.store(pkt).ok()
    }
}

fn transport(data: &[u8], network: usize, len: usize) -> Option<Transport> {
    let header = data.get(network..)?;
    let known = |protocol| matches!(protocol, IpProtocol::TCP | IpProtocol::UDP).then_some(protocol);
    match header.first()? >> 4 {
        4 => {
            let (ip, _) = Ip4Header::ref_from_prefix(header).ok()?;
            let fragment = u16::from_be_bytes([*header.get(6)?, *header.get(7)?]) & 0x3fff;
            let protocol = known(ip.protocol()).filter(|_| fragment == 0)?;
            let at = network + usize::from(header.first()? & 0xf) * 4;
            let (src, dst): (Ipv4Addr, Ipv4Addr) = (ip.src(), ip.dst());
            let pseudo = Sum::pseudo_ip4(src, dst, protocol, u16::try_from(len.checked_sub(at)?).ok()?);
            Some(Transport { at, protocol, pseudo: pseudo.folded(), gso_type: 1 })
        }
        6 => {
            let (ip, _) = Ip6Header::ref_from_prefix(header).ok()?;
            let protocol = known(ip.protocol())?;
            let at = network + 40;
            let (src, dst): (Ipv6Addr, Ipv6Addr) = (ip.src(), ip.dst());
            let pseudo = Sum::pseudo_ip6(src, dst, protocol, u32::try_from(len.checked_sub(at)?).ok()?);
            Some(Transport { at, protocol, pseudo: pseudo.folded(), gso_type: 4 })
        }
        _ => None,
    }
}
