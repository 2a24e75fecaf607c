//! A router with hosts on one side and the world on the other.

use std::net::Ipv6Addr;
use std::rc::Rc;
use std::time::Duration;

use shoal_ip6::Ip6;
use shoal_nat66::{Nat66, Side};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_testkit::{PacketBuilder, Port, Router, STACK};
use shoal_wire::MacAddress;

pub const HOST: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 2]);
pub const FAR: MacAddress = MacAddress([2, 0xbb, 0, 0, 0, 2]);

/// A host, the address it has outside, and a host of the world.
pub const A: &str = "fd00::5";
pub const EA: &str = "2001:db8:f::5";
pub const B: &str = "2001:db8:1::9";

pub struct Bed {
    pub router: Router,
    /// Hosts: fd00::/64.
    pub inside: Port,
    /// The world: 2001:db8:1::/64, and all else.
    pub outside: Port,
    pub nat: Rc<Nat66>,
}

pub fn ip(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// Without NAT.
pub fn plain() -> Bed {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_nat66::MODULE]);
    let mut router = Router::new(&modules);
    let (inside, outside) = (router.pg(0), router.pg(1));
    for (port, net, mac) in [(&inside, "fd00:", HOST), (&outside, "2001:db8:1:", FAR)] {
        let i = port.index();
        router.get::<Ip6>().add_address(i, format!("{net}:1/64").parse().unwrap()).unwrap();
        let nd = router.get::<shoal_ip6_nd::Neighbours>();
        for host in 2..10 {
            let host = ip(&format!("{net}:{host}"));
            nd.set((i, host), mac, Origin::Static, FibEntry::Wanted).unwrap();
        }
    }
    let fib = router.get::<shoal_fib::Fib>();
    let path = shoal_fib::Path::next_hop(ip(B), outside.index());
    let prefix: shoal_wire::IpPrefix = "2001:db8:f::/48".parse().unwrap();
    fib.add(shoal_fib::FibIndex::DEFAULT, prefix, shoal_fib::Source::Cli, &[path]).unwrap();
    router.advance(Duration::from_secs(3));
    inside.received();
    outside.received();
    let nat = router.get::<Nat66>();
    Bed { router, inside, outside, nat }
}

/// With both sides and one mapping.
pub fn bed() -> Bed {
    let bed = plain();
    bed.nat.enable(0).unwrap();
    bed.nat.set_side(bed.inside.index(), Side::Inside, true).unwrap();
    bed.nat.set_side(bed.outside.index(), Side::Outside, true).unwrap();
    bed.nat.add_mapping(ip(A), ip(EA), 0).unwrap();
    bed
}

pub type Make = fn(PacketBuilder) -> PacketBuilder;

pub fn frame((src, dst): (MacAddress, MacAddress), (from, to): (&str, &str), hops: u8) -> PacketBuilder {
    PacketBuilder::ethernet(src, dst).ip6(ip(from), ip(to)).ttl(hops)
}

impl Bed {
    /// A host's packet on its way in, and the one that is to leave.
    pub fn sent(&self, ends: (&str, &str), make: Make) -> Vec<u8> {
        make(frame((HOST, self.inside.mac()), ends, 64)).build()
    }

    pub fn left(&self, ends: (&str, &str), make: Make) -> Vec<u8> {
        make(frame((self.outside.mac(), FAR), ends, 63)).build()
    }

    /// A packet from the world, and the one that is to reach a host.
    pub fn asked(&self, ends: (&str, &str), make: Make) -> Vec<u8> {
        make(frame((FAR, self.outside.mac()), ends, 64)).build()
    }

    pub fn came(&self, ends: (&str, &str), make: Make) -> Vec<u8> {
        make(frame((self.inside.mac(), HOST), ends, 63)).build()
    }

    /// What comes out outside of what hosts send.
    pub fn out(&mut self, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        let inside = &self.inside;
        self.router.send(inside, bytes);
        self.outside.received()
    }

    /// What comes out inside of what the world sends.
    pub fn back(&mut self, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        let outside = &self.outside;
        self.router.send(outside, bytes);
        self.inside.received()
    }
}
