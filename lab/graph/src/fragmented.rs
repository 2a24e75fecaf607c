//! Datagrams of two fragments each, which the router puts together before it forwards them.

use std::net::Ipv4Addr;

use shoal_interface::SwIfIndex;
use shoal_module::Control;
use shoal_reassembly::{Families, Reassembly};
use shoal_wire::{EtherType, EthernetHeader, IntoBytes, Ip4Header, IpProtocol, UdpHeader};

use crate::Result;
use crate::full_table::HOST;
use crate::router::{FIRST, MAC_IN};

/// Fragments before the first comes again.
const FRAGMENTS: u32 = 1 << 18;
/// Bytes of the first fragment behind its header: a multiple of eight.
const HEAD: usize = 24;
/// Bytes of the second one.
const TAIL: usize = 26;
/// The first address that sends.
const SENDERS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const MORE_FRAGMENTS: u16 = 1 << 13;

/// Fragments that an interface receives are put together.
pub fn reassemble(control: &Control, input: SwIfIndex) -> Result<()> {
    Ok(control.get::<Reassembly>()?.set_interface(input, Families { ip4: true, ip6: false })?)
}

/// The fragments, the two of each datagram one after the other.
pub fn packets() -> Vec<Vec<u8>> {
    let udp = UdpHeader::new(1, 2, (HEAD + TAIL) as u16);
    let payload = [udp.as_bytes(), &[0; HEAD + TAIL - UdpHeader::LEN]].concat();
    let (head, tail) = payload.split_at(HEAD);
    let both = |n: u32| [fragment(n, MORE_FRAGMENTS, head), fragment(n, (HEAD / 8) as u16, tail)];
    (0..FRAGMENTS / 2).flat_map(both).collect()
}

/// A fragment of datagram `n`: each address that sends has 65,536 of them.
fn fragment(n: u32, place: u16, payload: &[u8]) -> Vec<u8> {
    let from = Ipv4Addr::from_bits(SENDERS.to_bits() + (n >> 16));
    let to = Ipv4Addr::from_bits(FIRST.to_bits() + 2);
    let mut ip = Ip4Header::new(from, to, IpProtocol::UDP, 64, (Ip4Header::LEN + payload.len()) as u16);
    ip.set_id(n as u16);
    ip.set_flags_and_fragment_offset(place);
    ip.update_checksum();
    let ethernet = EthernetHeader::new(HOST, MAC_IN, EtherType::IP4);
    [ethernet.as_bytes(), ip.as_bytes(), payload].concat()
}
