//! What tests of IPv4 over Ethernet begin with: its modules, this router's address and a neighbour.

use std::net::Ipv4Addr;

use shoal_arp::Neighbours;
use shoal_arp::table::{FibEntry, Origin};
use shoal_ip4::Ip4;
use shoal_module::Module;
use shoal_wire::MacAddress;

use crate::{Port, Router};

/// The modules of IPv4 over Ethernet, in the order of the daemon's table.
pub const STACK: &[&Module] = &[
    &shoal_interface::MODULE,
    &shoal_adj::MODULE,
    &shoal_ethernet::MODULE,
    &shoal_fib::MODULE,
    &shoal_ip4::MODULE,
    &shoal_ip6::MODULE,
    &shoal_arp::MODULE,
    &shoal_icmp::MODULE,
];

/// This router's address on `pg0`, in a /24, where a test does not say otherwise.
pub const US: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The peer of tests there.
pub const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// The MAC address of [`PEER`].
pub const PEER_MAC: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 2]);

/// For routers that have the modules of [`STACK`].
impl Router {
    /// Gives an interface an address with the length of its network, such as `10.0.0.1/24`.
    pub fn set_address(&self, port: &Port, address: &str) {
        let prefix = address.parse().unwrap_or_else(|e| panic!("{address}: {e}"));
        let ip4 = self.get::<Ip4>();
        ip4.add_address(port.index(), prefix).unwrap_or_else(|e| panic!("{}: {e}", port.name()));
    }

    /// Makes a neighbour known for good, so that packets to it do not wait for ARP.
    pub fn set_neighbour(&self, port: &Port, address: Ipv4Addr, mac: MacAddress) {
        let set =
            self.get::<Neighbours>().set((port.index(), address), mac, Origin::Static, FibEntry::Wanted);
        set.unwrap_or_else(|e| panic!("{}: {e}", port.name()));
    }
}
