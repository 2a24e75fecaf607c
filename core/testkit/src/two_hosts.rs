//! Tests that say the same of both families of addresses. The body of each stands here once and is told by [`TwoHosts`]
//! what differs; each family's crate makes tests of them, with
//! [`tests_of_counting!`](crate::tests_of_counting) and [`tests_of_special_routes!`](crate::tests_of_special_routes).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_adj::Family;
use shoal_fib::{Fib, FibIndex, Path, Source};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_wire::{IpPrefix, MacAddress};

use crate::{PacketBuilder, Port, Router};

pub mod counting;
pub mod special_routes;

/// A router between two hosts, each behind a port of its own, in one family of addresses.
pub struct TwoHosts {
    /// The family.
    pub family: Family,
    /// Makes the router and its two ports.
    pub make: fn() -> (Router, Port, Port),
    /// Makes a neighbour known, with its route.
    pub neighbour: fn(&Router, &Port, &str, MacAddress),
    /// The router's address on the first port.
    pub us: &'static str,
    /// The hosts: [`station`] 1 behind the first port, 2 behind the second one.
    pub hosts: [&'static str; 2],
    /// The network of the second host.
    pub network: &'static str,
    /// An address for a third port.
    pub third: &'static str,
    /// A network that nothing leads to yet.
    pub far: &'static str,
    /// A host there.
    pub far_host: &'static str,
}

/// A station's MAC by its number.
pub fn station(n: u8) -> MacAddress {
    MacAddress([2, 0xaa, 0, 0, 0, n])
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn prefix(text: &str) -> IpPrefix {
    text.parse().unwrap()
}

/// A path to a neighbour.
fn via(next_hop: &str, port: &Port) -> Path {
    Path::next_hop(ip(next_hop), port.index())
}

fn route(router: &Router, to: &str, path: impl Into<Path>) {
    route_in(router, FibIndex::DEFAULT, to, path);
}

fn route_in(router: &Router, fib: FibIndex, to: &str, path: impl Into<Path>) {
    router.get::<Fib>().add(fib, prefix(to), Source::Cli, &[path.into()]).unwrap();
}

impl TwoHosts {
    fn unspecified(&self) -> IpAddr {
        match self.family {
            Family::Ip4 => Ipv4Addr::UNSPECIFIED.into(),
            Family::Ip6 => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    /// The arc of packets to one host.
    fn unicast_arc(&self) -> &'static str {
        match self.family {
            Family::Ip4 => shoal_ip4::UNICAST_ARC,
            Family::Ip6 => shoal_ip6::UNICAST_ARC,
        }
    }

    /// Bytes of [`Self::udp`] from the network header on.
    fn bytes(&self) -> u64 {
        match self.family {
            Family::Ip4 => 48,
            Family::Ip6 => 68,
        }
    }

    /// A packet from host 1 to an address, by way of `port`.
    fn towards(&self, port: &Port, dst: &str) -> PacketBuilder {
        let builder = PacketBuilder::ethernet(station(1), port.mac());
        match (ip(self.hosts[0]), ip(dst)) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => builder.ip4(src, dst),
            (IpAddr::V6(src), IpAddr::V6(dst)) => builder.ip6(src, dst),
            (src, dst) => panic!("{src} and {dst} are of two families"),
        }
    }

    /// UDP from host 1 to host 2, by way of `port`.
    fn udp(&self, port: &Port) -> PacketBuilder {
        self.towards(port, self.hosts[1]).udp(1000, 2000).payload_len(20)
    }

    /// An echo request from host 1 to the router.
    fn echo(&self, port: &Port) -> PacketBuilder {
        let to_us = self.towards(port, self.us);
        match self.family {
            Family::Ip4 => to_us.icmp_echo_request(1, 1),
            Family::Ip6 => to_us.icmp6_echo_request(1, 1),
        }
    }

    fn address(&self, router: &Router, port: &Port, address: &str) {
        match self.family {
            Family::Ip4 => {
                router.get::<Ip4>().add_address(port.index(), address.parse().unwrap()).unwrap();
            }
            Family::Ip6 => {
                router.get::<Ip6>().add_address(port.index(), address.parse().unwrap()).unwrap();
            }
        }
    }

    /// Another table, which becomes a port's.
    fn table_of(&self, router: &Router, port: &Port, id: u32) -> FibIndex {
        let fib = router.get::<Fib>().add_table(self.family, id, None).unwrap();
        match self.family {
            Family::Ip4 => router.get::<Ip4>().set_table(port.index(), id).unwrap(),
            Family::Ip6 => router.get::<Ip6>().set_table(port.index(), id).unwrap(),
        }
        fib
    }
}

/// Makes a test of each of these bodies.
#[doc(hidden)]
#[macro_export]
macro_rules! tests_of {
    ($on:expr, $module:ident: $($name:ident)+) => {
        $(
            #[test]
            fn $name() {
                $crate::two_hosts::$module::$name(&$on);
            }
        )+
    };
}
