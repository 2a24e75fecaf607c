//! Messages this router sends, as whole frames.

use std::net::Ipv4Addr;

use shoal_buffer::{Buffer, Cache, Flags, SwIfIndex};
use shoal_interface::IfData;
use shoal_wire::igmp::{ROUTER_ALERT, TOS, TTL};
use shoal_wire::{EtherType, EthernetHeader, IntoBytes, Ip4Header, IpProtocol, MacAddress};

/// Bytes in front of a message.
pub(crate) const HEADERS: usize = EthernetHeader::LEN + Ip4Header::LEN + ROUTER_ALERT.len();
/// Longest frame: 576 bytes of IPv4 go everywhere.
pub(crate) const LONGEST: usize = EthernetHeader::LEN + 576;

/// Writes the headers of a message of `len` bytes that lies behind them; `None` when it does not fit.
pub(crate) fn write(
    out: &mut [u8],
    mac: MacAddress,
    (src, dst): (Ipv4Addr, Ipv4Addr),
    len: usize,
) -> Option<&[u8]> {
    let header = Ip4Header::LEN + ROUTER_ALERT.len();
    let frame = out.get_mut(..HEADERS + len)?;
    let ethernet = EthernetHeader::new(mac, MacAddress::for_ip4_multicast(dst), EtherType::IP4);
    let mut ip = Ip4Header::new(src, dst, IpProtocol::IGMP, TTL, (header + len) as u16);
    ip.set_version_ihl(0x40 | (header / 4) as u8);
    ip.set_tos(TOS);
    let checksum = ip.compute_checksum_with(&ROUTER_ALERT);
    ip.set_checksum(checksum);
    frame.get_mut(..EthernetHeader::LEN)?.copy_from_slice(ethernet.as_bytes());
    frame.get_mut(EthernetHeader::LEN..)?.get_mut(..Ip4Header::LEN)?.copy_from_slice(ip.as_bytes());
    frame.get_mut(HEADERS - ROUTER_ALERT.len()..HEADERS)?.copy_from_slice(&ROUTER_ALERT);
    Some(frame)
}

/// A frame as a packet for `interface-output`; `None` when there is no buffer.
pub(crate) fn packet(
    bytes: &[u8],
    (interface, data): (SwIfIndex, &IfData),
    cache: &mut Cache,
) -> Option<Buffer> {
    let mut buffer = cache.alloc_data(bytes).ok()?;
    let mut pkt = cache.packet(&mut buffer);
    let tagged = data.tag(&mut pkt);
    debug_assert!(tagged.is_some(), "a new buffer has room in front");
    let meta = pkt.meta_mut();
    meta.tx = interface;
    meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
    Some(buffer)
}
