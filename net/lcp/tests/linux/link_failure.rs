//! A link that fails: packets avoid it at once, whatever Linux and its daemons know by then.

use std::time::Duration;

use shoal_interface::{HostNextHop, HostPath, HostRoute, HostWay};

use super::mirror::{hear, route};
use super::*;

/// Hosts far away, by each of the routes.
const BY_GROUP: [&str; 2] = ["198.51.100.0/24", "2001:db8:100::/48"];
const BY_PATHS: [&str; 2] = ["198.51.101.0/24", "2001:db8:101::/48"];
const BY_ONE: [&str; 2] = ["198.51.102.0/24", "2001:db8:102::/48"];
/// Packets of so many flows.
const FLOWS: u16 = 64;

struct Bed {
    router: Router,
    from: Port,
    /// With images 7 and 8.
    uplinks: [Port; 2],
}

fn neighbour(uplink: usize, is_ip6: bool) -> IpAddr {
    if is_ip6 {
        Ipv6Addr::new(0x2001, 0xdb8, uplink as u16, 0, 0, 0, 0, 9).into()
    } else {
        [10, 0, uplink as u8, 9].into()
    }
}

fn path(uplink: usize, is_ip6: bool) -> HostPath {
    HostPath { host_index: 7 + uplink as u32, next_hop: Some(neighbour(uplink, is_ip6)), weight: 1 }
}

fn bed() -> Bed {
    let mut router = Router::new(MODULES);
    let uplinks = [router.pg(0), router.pg(1)];
    let from = router.pg(2);
    for (n, port) in [&uplinks[0], &uplinks[1], &from].into_iter().enumerate() {
        router.set_address(port, &format!("10.0.{n}.1/24"));
        router
            .get::<Ip6>()
            .add_address(port.index(), format!("2001:db8:{n}::1/64").parse().unwrap())
            .unwrap();
    }
    for (n, port) in uplinks.iter().enumerate() {
        router.get::<Lcp>().create(port.index(), &format!("e{n}"), None).unwrap();
        for is_ip6 in [false, true] {
            let mac = MacAddress([2, 0xbb, 0, 0, n as u8, 9]);
            let IpAddr::V4(at) = neighbour(n, is_ip6) else {
                let families = shoal_neighbor::Families::of(router.control());
                let all = families.get(shoal_fib::Family::Ip6).unwrap();
                let (is_static, entry) =
                    (shoal_neighbor::table::Origin::Static, shoal_neighbor::table::FibEntry::Wanted);
                all.set_many((port.index(), neighbour(n, true)), mac, 1, is_static, entry).unwrap();
                continue;
            };
            router.set_neighbour(port, at, mac);
        }
    }
    let number =
        |id, uplink, is_ip6| HostEvent::NextHop { id, hop: Some(HostNextHop::One(path(uplink, is_ip6))) };
    let mut events = Vec::new();
    for (is_ip6, at) in [(false, 0), (true, 1)] {
        let first = 10 * (1 + at as u32);
        let group = HostNextHop::Group(vec![(first, 1), (first + 1, 1)]);
        events.extend([number(first, 0, is_ip6), number(first + 1, 1, is_ip6)]);
        events.push(HostEvent::NextHop { id: first + 2, hop: Some(group) });
        let mut add = |to: &str, next_hop_id, way| {
            let route = HostRoute { next_hop_id, protocol: 186, ..route(to, 20, way) };
            events.push(HostEvent::Route { route, present: true });
        };
        add(BY_GROUP[at], Some(first + 2), HostWay::via([]));
        add(BY_PATHS[at], None, HostWay::via([path(0, is_ip6), path(1, is_ip6)]));
        add(BY_ONE[at], Some(first), HostWay::via([]));
    }
    hear(&router, events);
    router.advance(Duration::from_secs(10));
    for port in &uplinks {
        drop(port.received());
    }
    Bed { router, from, uplinks }
}

/// How many of the packets of some flows leave by each uplink.
fn leave(Bed { router, from, uplinks }: &mut Bed, to: &str) -> [usize; 2] {
    let network = to.split_once('/').unwrap().0;
    for flow in 0..FLOWS {
        let packet = PacketBuilder::ethernet(PEER_MAC, from.mac());
        let packet = match network.parse().unwrap() {
            IpAddr::V4(at) => packet.ip4([10, 0, 2, 2], at.octets()),
            IpAddr::V6(at) => packet.ip6("2001:db8:2::2".parse::<Ipv6Addr>().unwrap(), at),
        };
        router.send(from, packet.udp(1000 + flow, 2000).payload_len(30).build());
    }
    // Not what the router asks neighbours.
    let is_it = |frame: &&Vec<u8>| match network.parse().unwrap() {
        IpAddr::V4(at) => frame.get(30..34) == Some(&at.octets()[..]),
        IpAddr::V6(at) => frame.get(38..54) == Some(&at.octets()[..]),
    };
    [0, 1].map(|n| uplinks[n].received().iter().filter(is_it).count())
}

#[test]
fn packets_avoid_a_link_that_is_down_before_linux_says_anything() {
    for by_operator in [false, true] {
        let mut bed = bed();
        let all = usize::from(FLOWS);
        for to in BY_GROUP.into_iter().chain(BY_PATHS) {
            let [first, second] = leave(&mut bed, to);
            assert!(first > 0 && second > 0 && first + second == all, "{to}: {first} {second}");
        }
        let failed = bed.uplinks[0].index();
        let interfaces = bed.router.interfaces();
        if by_operator {
            interfaces.set_admin(failed, false).unwrap();
        } else {
            interfaces.set_link(failed, false).unwrap();
        }
        for to in BY_GROUP.into_iter().chain(BY_PATHS) {
            assert_eq!(leave(&mut bed, to), [0, all], "{to}");
        }
    }
}

#[test]
fn what_linux_says_of_the_failed_link_later_changes_nothing_for_the_others() {
    let mut bed = bed();
    let all = usize::from(FLOWS);
    bed.router.interfaces().set_link(bed.uplinks[0].index(), false).unwrap();
    // The image has no carrier: the kernel has forgotten next hops by it without a word. A daemon withdraws what was by it alone.
    hear(&bed.router, [HostEvent::Link(HostLink { carrier: false, ..host_link(7, "e0") })]);
    for to in BY_GROUP.into_iter().chain(BY_PATHS) {
        assert_eq!(leave(&mut bed, to), [0, all], "{to}");
    }
    for (to, id) in BY_ONE.into_iter().zip([11, 21]) {
        let route = HostRoute { next_hop_id: Some(id), protocol: 186, ..route(to, 20, HostWay::via([])) };
        hear(&bed.router, [HostEvent::Route { route, present: true }]);
        assert_eq!(leave(&mut bed, to), [0, all], "{to}");
    }
    // It comes back, and Linux says again what there is.
    bed.router.interfaces().set_link(bed.uplinks[0].index(), true).unwrap();
    let back = |first: u32, is_ip6| {
        let group = HostNextHop::Group(vec![(first, 1), (first + 1, 1)]);
        [
            HostEvent::NextHop { id: first, hop: Some(HostNextHop::One(path(0, is_ip6))) },
            HostEvent::NextHop { id: first + 2, hop: Some(group) },
        ]
    };
    hear(&bed.router, [HostEvent::Link(host_link(7, "e0"))]);
    hear(&bed.router, back(10, false).into_iter().chain(back(20, true)));
    bed.router.run();
    for to in BY_GROUP.into_iter().chain(BY_PATHS) {
        let [first, second] = leave(&mut bed, to);
        assert!(first > 0 && second > 0 && first + second == all, "{to}: {first} {second}");
    }
}
