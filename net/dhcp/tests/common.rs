//! A router with DHCP: hosts on one side, servers on the other.

use std::net::Ipv4Addr;
use std::time::Duration;

use shoal_dhcp::message4::Message;
use shoal_ip4::Ip4;
use shoal_testkit::nat_bed::NatBed;
use shoal_wire::MacAddress;

pub const HOST: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 9]);
pub const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
pub const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The router's address towards hosts.
pub const LINK: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

pub fn bed() -> NatBed {
    NatBed::new(&[&shoal_mfib::MODULE, &shoal_ip6_nd::MODULE, &shoal_dhcp::MODULE])
}

/// A router whose outside interface has no address.
pub fn bare() -> NatBed {
    let mut bed = bed();
    bed.router.get::<Ip4>().del_all(bed.outside.index()).unwrap();
    bed.router.advance(Duration::from_secs(1));
    bed.outside.received();
    bed
}

/// The DHCP message of a frame, if it is one.
pub fn message(frame: &[u8]) -> Option<Message<'_>> {
    Message::read(frame.get(42..)?)
}

/// Source and destination address and port of a frame.
pub fn ends(frame: &[u8]) -> ([u8; 4], u16, [u8; 4], u16) {
    let port = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    (frame[26..30].try_into().unwrap(), port(34), frame[30..34].try_into().unwrap(), port(36))
}
