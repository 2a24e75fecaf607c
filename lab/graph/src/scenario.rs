//! What is measured.

use crate::Result;

/// Which of the ways a packet takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathKind {
    /// Each node by itself.
    Nodes,
    /// The fused node.
    Superpath,
    /// The hand-written loop, which is no part of the router.
    Ruler,
    /// Look-ups in a flow table, without packets.
    Flows,
}

/// What the packets are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ip {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// How the sources of packets are translated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nat {
    /// NAT44, endpoint dependent.
    Ed,
    /// NAT44, endpoint independent.
    Ei,
    /// Deterministic NAT44.
    Det,
    /// NAT64.
    Six,
    /// MAP-T, which keeps no sessions: from customers.
    MapT,
    /// MAP-E: the same, out of tunnels.
    MapE,
    /// DS-Lite, from hosts behind tunnels.
    DsLite,
    /// Cloud NAT: a virtual address with one back end.
    Cloud,
    /// No NAT: the load balancer, whose flows are known.
    Balanced,
}

/// What is in the forwarding table, and so where packets go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Routes {
    /// So many /24 or /48 routes, all with the same next hop; packets go to addresses drawn from all of them.
    Same(u32),
    /// As many as the Internet has, 200 next hops, a fifth of the routes recursive; each packet goes to a random
    /// address of a random route.
    Full,
    /// One route that so many next hops share; packets are of flows that differ in their source.
    Ecmp(u16),
    /// None; so many flows in a flow table, each look-up of a random one.
    Flows(u32),
    /// None; the two interfaces are cross-connected.
    Crossed,
    /// None; the two interfaces are members of a bridge domain, and each frame goes to a random one of so many stations.
    Bridged(u32),
    /// One /24 route; the packets are fragments, two of each datagram, which are put together before they are forwarded.
    Fragments,
    /// Routes to 256 networks; the sources of so many flows are translated, each packet is of a random one.
    Translated(Nat, u32),
}

/// A scenario: one path of the graph under one load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
    pub way: PathKind,
    pub ip: Ip,
    pub routes: Routes,
    /// Packets per frame.
    pub frame: usize,
}

/// Sources of so many flows are translated.
const fn translated(
    name: &'static str,
    about: &'static str,
    way: PathKind,
    (nat, ip): (Nat, Ip),
    flows: u32,
) -> Scenario {
    Scenario { name, about, way, ip, routes: Routes::Translated(nat, flows), frame: 256 }
}

/// All of them, in the order they run. The ruler is first: the others are given as ratios to it.
pub const ALL: &[Scenario] = &[
    Scenario {
        name: "ruler-fused",
        about: "not a feature: a hand-written loop over the same memory and tables",
        way: PathKind::Ruler,
        ip: Ip::V4,
        routes: Routes::Same(1),
        frame: 256,
    },
    Scenario {
        name: "ip4-1-nodes",
        about: "1 destination, separate nodes",
        way: PathKind::Nodes,
        ip: Ip::V4,
        routes: Routes::Same(1),
        frame: 256,
    },
    Scenario {
        name: "ip4-1",
        about: "1 destination, superpath",
        way: PathKind::Superpath,
        ip: Ip::V4,
        routes: Routes::Same(1),
        frame: 256,
    },
    Scenario {
        name: "ip4-65536",
        about: "65,536 /24 routes in random order, superpath",
        way: PathKind::Superpath,
        ip: Ip::V4,
        routes: Routes::Same(65_536),
        frame: 256,
    },
    Scenario {
        name: "ip4-1m",
        about: "1,000,000 routes, random destinations, superpath",
        way: PathKind::Superpath,
        ip: Ip::V4,
        routes: Routes::Full,
        frame: 256,
    },
    Scenario {
        name: "ip4-1m-nodes",
        about: "1,000,000 routes, random destinations, separate nodes",
        way: PathKind::Nodes,
        ip: Ip::V4,
        routes: Routes::Full,
        frame: 256,
    },
    Scenario {
        name: "ip4-ecmp16",
        about: "1 route, 16 next hops, random flows, superpath",
        way: PathKind::Superpath,
        ip: Ip::V4,
        routes: Routes::Ecmp(16),
        frame: 256,
    },
    Scenario {
        name: "ip4-1-vec12",
        about: "1 destination, superpath, frames of 12",
        way: PathKind::Superpath,
        ip: Ip::V4,
        routes: Routes::Same(1),
        frame: 12,
    },
    Scenario {
        name: "ip6-1-nodes",
        about: "IPv6, 1 destination, separate nodes",
        way: PathKind::Nodes,
        ip: Ip::V6,
        routes: Routes::Same(1),
        frame: 256,
    },
    Scenario {
        name: "ip6-1",
        about: "IPv6, 1 destination, superpath",
        way: PathKind::Superpath,
        ip: Ip::V6,
        routes: Routes::Same(1),
        frame: 256,
    },
    Scenario {
        name: "ip6-230k",
        about: "230,000 IPv6 routes, random destinations, superpath",
        way: PathKind::Superpath,
        ip: Ip::V6,
        routes: Routes::Full,
        frame: 256,
    },
    Scenario {
        name: "ip6-230k-nodes",
        about: "230,000 IPv6 routes, random destinations, separate nodes",
        way: PathKind::Nodes,
        ip: Ip::V6,
        routes: Routes::Full,
        frame: 256,
    },
    Scenario {
        name: "ip6-1-vec12",
        about: "IPv6, 1 destination, superpath, frames of 12",
        way: PathKind::Superpath,
        ip: Ip::V6,
        routes: Routes::Same(1),
        frame: 12,
    },
    Scenario {
        name: "l2-xc-nodes",
        about: "layer-2 cross-connect, separate nodes",
        way: PathKind::Nodes,
        ip: Ip::V4,
        routes: Routes::Crossed,
        frame: 256,
    },
    Scenario {
        name: "l2-xc",
        about: "layer-2 cross-connect, superpath",
        way: PathKind::Superpath,
        ip: Ip::V4,
        routes: Routes::Crossed,
        frame: 256,
    },
    Scenario {
        name: "l2-bridge-nodes",
        about: "bridge domain, 1 station on either side, separate nodes",
        way: PathKind::Nodes,
        ip: Ip::V4,
        routes: Routes::Bridged(1),
        frame: 256,
    },
    Scenario {
        name: "l2-bridge",
        about: "bridge domain, 1 station on either side, superpath",
        way: PathKind::Superpath,
        ip: Ip::V4,
        routes: Routes::Bridged(1),
        frame: 256,
    },
    Scenario {
        name: "l2-bridge-1m",
        about: "bridge domain, 1,000,000 stations, random destinations, superpath",
        way: PathKind::Superpath,
        ip: Ip::V4,
        routes: Routes::Bridged(1_000_000),
        frame: 256,
    },
    Scenario {
        name: "reassembly-nodes",
        about: "IPv4 datagrams of 2 fragments each, put together; clocks a fragment, separate nodes",
        way: PathKind::Nodes,
        ip: Ip::V4,
        routes: Routes::Fragments,
        frame: 256,
    },
    translated(
        "nat44-1-nodes",
        "NAT44, 1 established flow, separate nodes",
        PathKind::Nodes,
        (Nat::Ed, Ip::V4),
        1,
    ),
    translated("nat44-1", "NAT44, 1 established flow, superpath", PathKind::Superpath, (Nat::Ed, Ip::V4), 1),
    translated(
        "nat44-64k-nodes",
        "NAT44, 65,536 established flows in random order, separate nodes",
        PathKind::Nodes,
        (Nat::Ed, Ip::V4),
        65_536,
    ),
    translated(
        "nat44-64k",
        "NAT44, 65,536 established flows in random order, superpath",
        PathKind::Superpath,
        (Nat::Ed, Ip::V4),
        65_536,
    ),
    translated(
        "nat44-1m-nodes",
        "NAT44, 1,100,000 established flows in random order, separate nodes",
        PathKind::Nodes,
        (Nat::Ed, Ip::V4),
        1_100_000,
    ),
    translated(
        "nat44-1m",
        "NAT44, 1,100,000 established flows in random order, superpath",
        PathKind::Superpath,
        (Nat::Ed, Ip::V4),
        1_100_000,
    ),
    translated(
        "nat44-ei-1-nodes",
        "NAT44, endpoint independent, 1 established flow, separate nodes",
        PathKind::Nodes,
        (Nat::Ei, Ip::V4),
        1,
    ),
    translated(
        "nat44-ei-1",
        "NAT44, endpoint independent, 1 established flow, superpath",
        PathKind::Superpath,
        (Nat::Ei, Ip::V4),
        1,
    ),
    translated(
        "nat44-ei-64k-nodes",
        "NAT44, endpoint independent, 65,536 established flows in random order, separate nodes",
        PathKind::Nodes,
        (Nat::Ei, Ip::V4),
        65_536,
    ),
    translated(
        "nat44-ei-64k",
        "NAT44, endpoint independent, 65,536 established flows in random order, superpath",
        PathKind::Superpath,
        (Nat::Ei, Ip::V4),
        65_536,
    ),
    translated(
        "det44-1-nodes",
        "DET44, 1 established flow, separate nodes",
        PathKind::Nodes,
        (Nat::Det, Ip::V4),
        1,
    ),
    translated(
        "det44-64k-nodes",
        "DET44, 65,536 established flows in random order, separate nodes",
        PathKind::Nodes,
        (Nat::Det, Ip::V4),
        65_536,
    ),
    translated("nat64-1", "NAT64, 1 established flow", PathKind::Superpath, (Nat::Six, Ip::V6), 1),
    translated(
        "nat64-64k",
        "NAT64, 65,536 established flows in random order",
        PathKind::Superpath,
        (Nat::Six, Ip::V6),
        65_536,
    ),
    translated(
        "nat64-1-nodes",
        "NAT64, 1 established flow, separate nodes",
        PathKind::Nodes,
        (Nat::Six, Ip::V6),
        1,
    ),
    translated(
        "nat64-64k-nodes",
        "NAT64, 65,536 established flows in random order, separate nodes",
        PathKind::Nodes,
        (Nat::Six, Ip::V6),
        65_536,
    ),
    translated(
        "map-t-1",
        "MAP-T, from customers, 1 flow, superpath",
        PathKind::Superpath,
        (Nat::MapT, Ip::V6),
        1,
    ),
    translated(
        "map-t-1-nodes",
        "MAP-T, from customers, 1 flow, separate nodes",
        PathKind::Nodes,
        (Nat::MapT, Ip::V6),
        1,
    ),
    translated(
        "map-t-64k",
        "MAP-T, from customers, 65,536 flows in random order, superpath",
        PathKind::Superpath,
        (Nat::MapT, Ip::V6),
        65_536,
    ),
    translated(
        "map-t-64k-nodes",
        "MAP-T, from customers, 65,536 flows in random order, separate nodes",
        PathKind::Nodes,
        (Nat::MapT, Ip::V6),
        65_536,
    ),
    translated(
        "map-e-1",
        "MAP-E, from customers, 1 flow, superpath",
        PathKind::Superpath,
        (Nat::MapE, Ip::V6),
        1,
    ),
    translated(
        "map-e-1-nodes",
        "MAP-E, from customers, 1 flow, separate nodes",
        PathKind::Nodes,
        (Nat::MapE, Ip::V6),
        1,
    ),
    translated(
        "map-e-64k",
        "MAP-E, from customers, 65,536 flows in random order, superpath",
        PathKind::Superpath,
        (Nat::MapE, Ip::V6),
        65_536,
    ),
    translated(
        "map-e-64k-nodes",
        "MAP-E, from customers, 65,536 flows in random order, separate nodes",
        PathKind::Nodes,
        (Nat::MapE, Ip::V6),
        65_536,
    ),
    translated(
        "dslite-1",
        "DS-Lite, from hosts, 1 established flow, superpath",
        PathKind::Superpath,
        (Nat::DsLite, Ip::V6),
        1,
    ),
    translated(
        "dslite-1-nodes",
        "DS-Lite, from hosts, 1 established flow, separate nodes",
        PathKind::Nodes,
        (Nat::DsLite, Ip::V6),
        1,
    ),
    translated(
        "dslite-64k",
        "DS-Lite, from hosts, 65,536 established flows in random order, superpath",
        PathKind::Superpath,
        (Nat::DsLite, Ip::V6),
        65_536,
    ),
    translated(
        "dslite-64k-nodes",
        "DS-Lite, from hosts, 65,536 established flows in random order, separate nodes",
        PathKind::Nodes,
        (Nat::DsLite, Ip::V6),
        65_536,
    ),
    translated(
        "cnat-1-nodes",
        "cloud NAT, 1 established connection, separate nodes",
        PathKind::Nodes,
        (Nat::Cloud, Ip::V4),
        1,
    ),
    translated(
        "cnat-1",
        "cloud NAT, 1 established connection, superpath",
        PathKind::Superpath,
        (Nat::Cloud, Ip::V4),
        1,
    ),
    translated(
        "cnat6-1-nodes",
        "cloud NAT, IPv6, 1 established connection, separate nodes",
        PathKind::Nodes,
        (Nat::Cloud, Ip::V6),
        1,
    ),
    translated(
        "cnat6-1",
        "cloud NAT, IPv6, 1 established connection, superpath",
        PathKind::Superpath,
        (Nat::Cloud, Ip::V6),
        1,
    ),
    translated(
        "cnat-64k-nodes",
        "cloud NAT, 65,536 established connections in random order, separate nodes",
        PathKind::Nodes,
        (Nat::Cloud, Ip::V4),
        65_536,
    ),
    translated(
        "cnat-64k",
        "cloud NAT, 65,536 established connections in random order, superpath",
        PathKind::Superpath,
        (Nat::Cloud, Ip::V4),
        65_536,
    ),
    translated(
        "cnat6-64k-nodes",
        "cloud NAT, IPv6, 65,536 established connections in random order, separate nodes",
        PathKind::Nodes,
        (Nat::Cloud, Ip::V6),
        65_536,
    ),
    translated(
        "cnat6-64k",
        "cloud NAT, IPv6, 65,536 established connections in random order, superpath",
        PathKind::Superpath,
        (Nat::Cloud, Ip::V6),
        65_536,
    ),
    translated(
        "lb-gre4-1-nodes",
        "load balancer, GRE over IPv4, 1 flow, separate nodes",
        PathKind::Nodes,
        (Nat::Balanced, Ip::V4),
        1,
    ),
    translated(
        "lb-gre4-64k-nodes",
        "load balancer, GRE over IPv4, 65,536 known flows in random order, separate nodes",
        PathKind::Nodes,
        (Nat::Balanced, Ip::V4),
        65_536,
    ),
    translated(
        "lb-gre4-1m-nodes",
        "load balancer, GRE over IPv4, 1,000,000 known flows in random order, separate nodes",
        PathKind::Nodes,
        (Nat::Balanced, Ip::V4),
        1_000_000,
    ),
    Scenario {
        name: "flow-64k",
        about: "flow table, 65,536 flows, look-ups of random ones in frames",
        way: PathKind::Flows,
        ip: Ip::V4,
        routes: Routes::Flows(65_536),
        frame: 256,
    },
    Scenario {
        name: "flow-1m",
        about: "flow table, 1,000,000 flows, look-ups of random ones in frames",
        way: PathKind::Flows,
        ip: Ip::V4,
        routes: Routes::Flows(1_000_000),
        frame: 256,
    },
];

/// The scenarios of these names, in the order of [`ALL`]; all when there are no names.
pub fn chosen(names: &[String]) -> Result<Vec<Scenario>> {
    for name in names {
        find(name)?;
    }
    let wanted = |s: &&Scenario| names.is_empty() || names.iter().any(|n| n == s.name);
    Ok(ALL.iter().filter(wanted).copied().collect())
}

/// The scenario of a name.
pub fn find(name: &str) -> Result<Scenario> {
    ALL.iter().find(|s| s.name == name).copied().ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|s| s.name).collect();
        format!("no scenario `{name}', there are: {}", names.join(", ")).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_that_other_runs_are_compared_by_are_there() {
        for name in [
            "ip4-1-nodes",
            "ip4-1",
            "ip4-65536",
            "ip4-1-vec12",
            "ruler-fused",
            "ip6-1-nodes",
            "ip6-1",
            "ip6-1-vec12",
            "ip4-1m",
            "ip4-ecmp16",
            "ip6-230k",
            "flow-64k",
            "flow-1m",
            "l2-xc",
            "l2-bridge",
            "l2-bridge-1m",
            "reassembly-nodes",
            "nat44-1",
            "nat44-64k",
            "nat44-1m",
            "nat44-ei-1",
            "nat44-ei-64k",
            "cnat-1",
            "cnat6-64k",
            "det44-64k-nodes",
            "nat64-1",
            "nat64-64k-nodes",
            "lb-gre4-64k-nodes",
        ] {
            assert_eq!(find(name).unwrap().name, name);
        }
    }

    #[test]
    fn an_unknown_name_is_told_what_there_is() {
        let error = chosen(&["ip4-2".into()]).unwrap_err().to_string();
        assert!(error.contains("`ip4-2'") && error.contains("ip4-65536"), "{error}");
    }

    #[test]
    fn no_name_is_all() {
        assert_eq!(chosen(&[]).unwrap().len(), ALL.len());
        assert_eq!(chosen(&["ip4-1".into()]).unwrap().len(), 1);
    }
}
