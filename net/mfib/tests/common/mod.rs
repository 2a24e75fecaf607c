//! A router with addresses of both families on three interfaces, and what tests do with it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests
#![allow(dead_code)] // each test file uses its part

use std::net::IpAddr;

use shoal_fib::FibIndex;
use shoal_ip6::Ip6;
use shoal_mfib::{Change, EntryFlags, ItfFlags, Member, Mfib, MfibError, Prefix, Source};
use shoal_module::Module;
use shoal_testkit::{Config, PEER_MAC, PacketBuilder, Port, Router};
use shoal_wire::MacAddress;

pub const MODULES: &[&Module] = &[
    &shoal_interface::MODULE,
    &shoal_adj::MODULE,
    &shoal_ethernet::MODULE,
    &shoal_fib::MODULE,
    &shoal_ip4::MODULE,
    &shoal_ip6::MODULE,
    &shoal_neighbor::MODULE,
    &shoal_arp::MODULE,
    &shoal_icmp::MODULE,
    &shoal_ip6_nd::MODULE,
    &shoal_mfib::MODULE,
];

/// Group and source of each family.
pub const GROUPS: [&str; 2] = ["232.129.1.1", "ff3e::8123:4567"];
pub const SOURCES: [&str; 2] = ["10.0.0.9", "2001:db8:0::9"];
/// Where the groups' packets go on Ethernet.
pub const GROUP_MACS: [[u8; 6]; 2] = [[0x01, 0x00, 0x5e, 1, 1, 1], [0x33, 0x33, 0x81, 0x23, 0x45, 0x67]];

pub fn addr(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A router whose ports pg0, pg1, ... have 10.0.N.1/24 and 2001:db8:N::1/64.
pub fn router(ports: u32) -> (Router, Vec<Port>) {
    router_with(ports, 4096)
}

pub fn router_with(ports: u32, buffers: usize) -> (Router, Vec<Port>) {
    let mut router = Router::with(Config { buffers, ..Config::default() }, MODULES);
    let ports: Vec<Port> = (0..ports).map(|n| router.pg(n)).collect();
    for (n, port) in ports.iter().enumerate() {
        router.set_address(port, &format!("10.{}.{}.1/24", n >> 8, n & 255));
        let prefix = format!("2001:db8:{n:x}::1/64").parse().unwrap();
        router.get::<Ip6>().add_address(port.index(), prefix).unwrap();
    }
    settle(&mut router, &ports);
    (router, ports)
}

/// Lets what interfaces say when they come up pass, and forgets it.
pub fn settle(router: &mut Router, ports: &[Port]) {
    router.advance(std::time::Duration::from_secs(10));
    for port in ports {
        port.received();
    }
}

pub fn group(text: &str) -> Prefix {
    let addr = addr(text);
    Prefix::group(addr, if addr.is_ipv4() { 32 } else { 128 }).unwrap()
}

pub fn member(port: &Port, flags: ItfFlags) -> (Member, ItfFlags) {
    (Member::Interface(port.index()), flags)
}

pub fn add(router: &Router, prefix: Prefix, members: &[(Member, ItfFlags)]) -> Result<(), MfibError> {
    let change = Change { flags: EntryFlags::default(), members: members.to_vec() };
    router.get::<Mfib>().add(FibIndex::DEFAULT, prefix, Source::Cli, &change)
}

pub fn remove(router: &Router, prefix: Prefix, members: &[(Member, ItfFlags)]) -> Result<(), MfibError> {
    let change = Change { flags: EntryFlags::default(), members: members.to_vec() };
    router.get::<Mfib>().remove(FibIndex::DEFAULT, prefix, Source::Cli, &change)
}

/// A UDP packet to a group as it is on Ethernet.
pub fn packet(src: &str, dst: &str) -> PacketBuilder {
    match (addr(src), addr(dst)) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            PacketBuilder::ethernet(PEER_MAC, MacAddress::for_ip4_multicast(dst)).ip4(src, dst)
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            PacketBuilder::ethernet(PEER_MAC, MacAddress::for_ip6_multicast(dst)).ip6(src, dst)
        }
        _ => panic!("{src} and {dst} are of two families"),
    }
    .udp(5000, 5001)
    .payload_len(100)
    .ttl(10)
}

/// The node of a family.
pub fn node(family: usize, name: &str) -> String {
    format!("{}-{name}", ["ip4", "ip6"][family])
}

/// Hop limit or TTL of a frame.
pub fn hops(frame: &[u8]) -> u8 {
    if frame[12] == 0x08 { frame[22] } else { frame[21] }
}
