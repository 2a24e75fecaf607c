//! Cross-connects of routed interfaces, in both families.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

use std::net::IpAddr;
use std::time::Duration;

use shoal_adj::Family;
use shoal_fib::Path;
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_l3xc::{L3xc, L3xcError};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_testkit::{PacketBuilder, Port, Router, STACK};
use shoal_wire::MacAddress;

fn router() -> (Router, Vec<Port>) {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_l3xc::MODULE]);
    let mut router = Router::new(&modules);
    let ports: Vec<Port> = (0..3).map(|n| router.pg(n)).collect();
    for (n, port) in ports.iter().enumerate() {
        let i = port.index();
        router.get::<Ip4>().add_address(i, format!("10.0.{n}.1/24").parse().unwrap()).unwrap();
        router.get::<Ip6>().add_address(i, format!("2001:db8:{n}::1/64").parse().unwrap()).unwrap();
        let mac = MacAddress([2, 0xaa, 0, 0, 0, n as u8]);
        let (kind, route) = (Origin::Static, FibEntry::Wanted);
        let (arp, nd) = (router.get::<shoal_arp::Neighbours>(), router.get::<shoal_ip6_nd::Neighbours>());
        arp.set((i, format!("10.0.{n}.2").parse().unwrap()), mac, kind, route).unwrap();
        nd.set((i, format!("2001:db8:{n}::2").parse().unwrap()), mac, kind, route).unwrap();
    }
    router.advance(Duration::from_secs(3));
    for port in &ports {
        drop(port.received());
    }
    (router, ports)
}

/// A packet to nowhere.
fn packet(port: &Port, family: Family) -> Vec<u8> {
    let start = PacketBuilder::ethernet([2, 0xaa, 0, 0, 0, 9], port.mac());
    match family {
        Family::Ip4 => start.ip4([10, 0, 0, 9], [1, 1, 1, 2]),
        Family::Ip6 => start.ip6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 9], [0x2002, 1, 0, 0, 0, 0, 0, 2]),
    }
    .udp(1, 2)
    .build()
}

fn path(family: Family, port: &Port, n: usize) -> Path {
    let hop: IpAddr = match family {
        Family::Ip4 => format!("10.0.{n}.2").parse().unwrap(),
        Family::Ip6 => format!("2001:db8:{n}::2").parse().unwrap(),
    };
    Path::next_hop(hop, port.index())
}

#[test]
fn all_packets_of_an_interface_take_its_paths_until_it_ends() {
    for family in [Family::Ip4, Family::Ip6] {
        let (mut router, ports) = router();
        let l3xc = router.get::<L3xc>();
        let (a, index) = (&ports[0], ports[0].index());
        router.send(a, packet(a, family));
        assert!(ports.iter().all(|port| port.received().is_empty()), "there is no route");
        l3xc.set(index, family, &[path(family, &ports[1], 1)]).unwrap();
        router.send(a, packet(a, family));
        assert_eq!(ports[1].received_one()[..6], [2, 0xaa, 0, 0, 0, 1]);
        // Other paths take their place.
        l3xc.set(index, family, &[path(family, &ports[2], 2)]).unwrap();
        router.send(a, packet(a, family));
        assert_eq!(ports[2].received_one()[..6], [2, 0xaa, 0, 0, 0, 2]);
        assert_eq!((l3xc.list().len(), l3xc.set(index, family, &[])), (1, Err(L3xcError::NoPaths)));
        // The interface they lead to goes: packets are dropped, and take no other way.
        router.interfaces().delete(ports[2].index()).unwrap();
        router.send(a, packet(a, family));
        assert!(ports[1].received().is_empty());
        l3xc.remove(index, family).unwrap();
        assert!(l3xc.remove(index, family).is_err());
        router.send(a, packet(a, family));
        assert!(ports[1].received().is_empty() && l3xc.list().is_empty());
    }
}
