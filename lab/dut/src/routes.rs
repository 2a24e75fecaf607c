//! The routes of a scenario: networks behind each side, and as many more as a sweep over table sizes wants.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_lab_plan::{Family, Scenario, Side, SideAddresses};

/// A route through the tester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Its network.
    pub to: IpAddr,
    /// Length of that.
    pub length: u8,
    /// The tester's address there.
    pub via: IpAddr,
    /// The port it goes out of.
    pub out: Side,
}

/// First of the extra networks: 20.0.0.0/24, 20.0.1.0/24, ... A /24 is what most of the Internet's table is.
const EXTRA4: u32 = 20 << 24;
/// First of the extra networks: 2a00::/48, 2a00:0:1::/48, ...
const EXTRA6: u128 = 0x2a00 << 112;

/// The addresses of a side.
pub(crate) fn side(scenario: &Scenario, side: Side) -> &SideAddresses {
    match side {
        Side::Left => &scenario.addresses.left,
        Side::Right => &scenario.addresses.right,
    }
}

/// Routes that frames take: those behind each side, and the networks that vary in the third octet, or byte 7 of an IPv6
/// address. The network that both the device and the tester are in is not among them: the port's address brings it.
pub(crate) fn taken(scenario: &Scenario) -> Vec<Route> {
    let mut routes = Vec::new();
    for out in Side::BOTH {
        let side = side(scenario, out);
        let (via4, via6) = (IpAddr::V4(side.tester4), IpAddr::V6(side.tester6));
        for n in 0..scenario.networks.clamp(1, 256) {
            let n = n as u8;
            let [a, b, _, _] = side.tester4.octets();
            let net4 = Ipv4Addr::new(a, b, n, 0);
            if n != side.tester4.octets()[2] {
                routes.push(Route { to: net4.into(), length: 24, via: via4, out });
            }
            let mut octets = side.tester6.octets();
            if n != octets[7] {
                octets[7] = n;
                octets[8..].fill(0);
                routes.push(Route { to: Ipv6Addr::from(octets).into(), length: 64, via: via6, out });
            }
        }
        routes.extend(side.behind4.iter().map(|(to, length)| Route {
            to: IpAddr::V4(*to),
            length: *length,
            via: via4,
            out,
        }));
        routes.extend(side.behind6.iter().map(|(to, length)| Route {
            to: IpAddr::V6(*to),
            length: *length,
            via: via6,
            out,
        }));
    }
    routes
}

/// `scenario.routes` routes of this family that no frame takes, alternately out of the right and the left port. Networks
/// that hold an address of the scenario are left out.
pub(crate) fn extra(scenario: &Scenario, family: Family) -> impl Iterator<Item = Route> + '_ {
    let mut used: Vec<(IpAddr, u8)> = taken(scenario)
        .into_iter()
        .filter(|r| r.to.is_ipv4() == (family == Family::Ip4))
        .map(|r| (r.to, r.length))
        .collect();
    for at in Side::BOTH {
        let side = side(scenario, at);
        match family {
            Family::Ip4 => used.push((side.device4.into(), side.length4)),
            Family::Ip6 => used.push((side.device6.into(), side.length6)),
        }
    }
    let networks = (0_u32..).map_while(move |n| match family {
        // Up to 126.255.255.0: loopback and beyond are not for routes of a test.
        Family::Ip4 => (n < (127 - 20) << 16).then(|| (IpAddr::V4(Ipv4Addr::from(EXTRA4 + (n << 8))), 24)),
        Family::Ip6 => Some((IpAddr::V6(Ipv6Addr::from(EXTRA6 + (u128::from(n) << 80))), 48)),
    });
    networks
        .filter(move |(to, length)| {
            !used.iter().any(|(other, other_length)| overlap(*to, *length, *other, *other_length))
        })
        .zip(std::iter::successors(Some(Side::Right), |side| Some(side.other())))
        .take(scenario.routes as usize)
        .map(move |((to, length), out)| {
            let side = side(scenario, out);
            let via = match family {
                Family::Ip4 => IpAddr::V4(side.tester4),
                Family::Ip6 => IpAddr::V6(side.tester6),
            };
            Route { to, length, via, out }
        })
}

/// Whether one network lies in the other.
fn overlap(a: IpAddr, a_length: u8, b: IpAddr, b_length: u8) -> bool {
    let length = u32::from(a_length.min(b_length));
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u32::from(a) ^ u32::from(b)).leading_zeros() >= length.min(32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (u128::from(a) ^ u128::from(b)).leading_zeros() >= length.min(128),
        _ => false,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashSet;

    use shoal_lab_plan::{Addresses, Forwarding};

    use super::*;

    pub fn scenario() -> Scenario {
        Scenario {
            forwarding: Forwarding::Route,
            addresses: Addresses::default(),
            networks: 1,
            routes: 0,
            workers: 1,
            mtu: 1500,
        }
    }

    #[test]
    fn one_network_needs_no_route() {
        assert_eq!(taken(&scenario()), []);
    }

    #[test]
    fn networks_rise_in_the_third_octet_and_in_byte_7() {
        let routes = taken(&Scenario { networks: 256, ..scenario() });
        assert_eq!(routes.len(), 2 * 2 * 255);
        let right: Vec<String> = routes
            .iter()
            .filter(|r| r.out == Side::Right)
            .map(|r| format!("{}/{} {}", r.to, r.length, r.via))
            .collect();
        assert!(right.contains(&"198.19.255.0/24 198.19.0.2".to_owned()));
        assert!(right.contains(&"2001:2:0:80ff::/64 2001:2:0:8000::2".to_owned()));
        assert!(!right.contains(&"198.19.0.0/24 198.19.0.2".to_owned()));
    }

    #[test]
    fn extra_routes_are_as_many_as_asked_for_and_leave_the_tests_addresses_alone() {
        let mut scenario = Scenario { routes: 100_000, ..scenario() };
        scenario.addresses.right.behind4.push((Ipv4Addr::new(20, 1, 0, 0), 16));
        for family in [Family::Ip4, Family::Ip6] {
            let all: Vec<Route> = extra(&scenario, family).collect();
            let different: HashSet<_> = all.iter().map(|r| r.to).collect();
            assert_eq!((all.len(), different.len()), (100_000, 100_000));
            assert!(all.iter().all(|r| r.to.is_ipv4() == (family == Family::Ip4)));
            assert_eq!(all.iter().filter(|r| r.out == Side::Left).count(), 50_000);
        }
        assert!(extra(&scenario, Family::Ip4).all(|r| !r.to.to_string().starts_with("20.1.")));
    }

    #[test]
    fn no_extra_route_is_beyond_what_a_router_takes() {
        let scenario = Scenario { routes: u32::MAX, ..scenario() };
        let last = extra(&scenario, Family::Ip4).last().unwrap();
        assert_eq!(last.to.to_string(), "126.255.255.0");
    }

    #[test]
    fn networks_overlap_when_one_holds_the_other() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(overlap(ip("20.0.1.0"), 24, ip("20.0.0.0"), 8));
        assert!(!overlap(ip("20.0.1.0"), 24, ip("20.0.2.0"), 24));
        assert!(overlap(ip("20.0.1.0"), 24, ip("0.0.0.0"), 0));
        assert!(!overlap(ip("20.0.1.0"), 24, ip("2001::"), 0));
    }
}
