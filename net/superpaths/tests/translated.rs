//! NAT44-ED as stages of a superpath: the same random packets of hosts and of the world through two routers that differ in nothing but
//! `enable_superpath`.

use std::net::Ipv4Addr;

use shoal_fib::Family;
use shoal_icmp::Icmp;
use shoal_icmp::limiter::Rate;
use shoal_ip4::Ip4;
use shoal_module::Module;
use shoal_nat44_ed::sessions::Record;
use shoal_nat44_ed::{Enable, Nat44, Purpose, Side};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_pg::CreateInterface;
use shoal_superpaths::{IP_FEATURES, IP4_NAT44};
use shoal_testkit::{InjectedPacket, PacketBuilder, Port, Rng, Router, STACK, Twin, Twins};
use shoal_urpf::{Direction, Mode, Setting, Urpf};
use shoal_wire::packet::Fragment;
use shoal_wire::{MacAddress, TcpFlags};

const TWINS: Twins = Twins { make: world, packet: given, flow };
/// Ports 0 and 1 lead to hosts, port 2 to the world, port 3 to a network that is neither.
pub(crate) const PORTS: usize = 4;
pub(crate) const WORLD: usize = 2;
pub(crate) const NETWORKS: [&str; PORTS] = ["10.0.0", "10.0.1", "192.0.2", "203.0.113"];
/// The address that hosts share.
pub(crate) const SHARED: &str = "192.0.2.100";
/// Packets before the first burst.
const MADE_BEFORE: usize = 2000;
/// A host's first port; each has its own, so that each can be kept.
pub(crate) const FIRST: u16 = 2000;

pub(crate) fn station(n: usize) -> MacAddress {
    MacAddress([2, 0xaa, 0, 0, 0, n as u8])
}

pub(crate) fn address(network: usize, host: usize) -> Ipv4Addr {
    format!("{}.{host}", NETWORKS[network]).parse().unwrap()
}

/// Hosts' sources are checked, too: NAT is not the only feature.
fn checked_world(superpath: bool) -> Twin {
    make(superpath, true, ED)
}

fn world(superpath: bool) -> Twin {
    make(superpath, false, ED)
}

/// A kind of NAT.
pub(crate) struct NatKind {
    pub(crate) module: &'static Module,
    /// Whether ports have a link header.
    pub(crate) ports: shoal_pg::Mode,
    /// Has it translate.
    pub(crate) set: fn(&Router, &[Port]),
    /// Makes a random packet.
    pub(crate) given: fn(&mut Rng, &Port, usize) -> InjectedPacket,
}

const ED: &NatKind =
    &NatKind { module: &shoal_nat44_ed::MODULE, ports: shoal_pg::Mode::Ethernet, set: translate, given };

fn translate(router: &Router, ports: &[Port]) {
    let nat = router.get::<Nat44>();
    nat.enable_nat(Enable { sessions: 1000, ..Enable::default() }).unwrap();
    for (n, port) in ports.iter().enumerate().take(3) {
        let side = if n == WORLD { Side::Outside } else { Side::Inside };
        nat.set_side(port.index(), side, true).unwrap();
    }
    let shared = SHARED.parse().unwrap();
    nat.add_addresses((shared, shared), Purpose::Pool, None).unwrap();
}

/// A router with a kind of NAT, and with sessions.
pub(crate) fn make(superpath: bool, checked: bool, nat: &NatKind) -> Twin {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_reassembly::MODULE, &shoal_rule::MODULE, &shoal_urpf::MODULE]);
    modules.extend([&shoal_syslog::MODULE, &shoal_ipfix::MODULE, nat.module]);
    let mut router = Router::new(&modules);
    router.get::<Icmp>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    let create = |n: usize| CreateInterface { id: n as u32, mode: nat.ports, ..CreateInterface::default() };
    let ports: Vec<Port> = (0..PORTS).map(|n| router.pg_with(&create(n))).collect();
    for (n, port) in ports.iter().enumerate() {
        let ip4 = router.get::<Ip4>();
        ip4.add_address(port.index(), format!("{}/24", address(n, 1)).parse().unwrap()).unwrap();
        if nat.ports != shoal_pg::Mode::Ethernet {
            continue;
        }
        let neighbours = router.get::<shoal_arp::Neighbours>();
        for host in 2..5 {
            let key = (port.index(), address(n, host));
            neighbours.set(key, station(n), Origin::Static, FibEntry::Wanted).unwrap();
        }
    }
    (nat.set)(&router, &ports);
    for port in ports.iter().take(if checked { 3 } else { 0 }) {
        let (interface, family, direction) = (port.index(), Family::Ip4, Direction::Rx);
        let setting = Setting { interface, family, direction, mode: Mode::Loose, table: None };
        router.get::<Urpf>().set(setting).unwrap();
    }
    router.interfaces().enable_superpath(superpath).unwrap();
    // What hosts say of themselves when they come up, at random moments.
    router.advance(std::time::Duration::from_secs(3));
    // Most sessions, made one by one: whether one is made before a packet of the other direction comes depends on how packets meet
    // in frames.
    let mut rng = Rng::new(1);
    for _ in 0..MADE_BEFORE {
        let rx = rng.below(PORTS);
        let InjectedPacket { bytes, .. } = (nat.given)(&mut rng, &ports[rx], rx);
        router.send(&ports[rx], &bytes);
    }
    for port in &ports {
        port.received();
    }
    Twin::new(router, ports)
}

/// One of a host's ports.
pub(crate) fn port_of(rng: &mut Rng, network: usize, host: usize) -> u16 {
    FIRST + (network * 100 + host * 10 + rng.below(3)) as u16
}

pub(crate) fn given(rng: &mut Rng, port: &Port, rx: usize) -> InjectedPacket {
    given_with(rng, port, rx, false)
}

/// `hairpin`: what hosts send to the shared address is for other hosts.
pub(crate) fn given_with(rng: &mut Rng, port: &Port, rx: usize, hairpin: bool) -> InjectedPacket {
    let (network, host) = (rng.below(2), 2 + rng.below(3));
    let (far, service) = (address(WORLD, 2 + rng.below(3)), *rng.pick(&[53, 443]));
    let near = port_of(rng, network, host);
    let (src, dst) = match rx {
        WORLD if rng.one_in(6) => ((far, service), (address(network, host), near)),
        WORLD => ((far, service), (SHARED.parse().unwrap(), near)),
        0 | 1 => {
            let (host, to) = (2 + rng.below(3), rng.below(8));
            let near = port_of(rng, rx, host);
            let to = match to {
                0 => address(1 - rx, 2),
                1 => address(3, 2),
                2 => SHARED.parse().unwrap(),
                3 => address(WORLD, 1),
                _ => far,
            };
            let service = if hairpin && to == SHARED.parse::<Ipv4Addr>().unwrap() {
                let (network, host) = (rng.below(2), 2 + rng.below(3));
                port_of(rng, network, host)
            } else {
                service
            };
            ((address(rx, host), near), (to, service))
        }
        _ => ((address(rx, 2), near), (far, service)),
    };
    let start = PacketBuilder::ethernet(station(rx), port.mac()).ip4(src.0, dst.0);
    let start = start.ttl(*rng.pick(&[1, 2, 64, 64, 64, 64]));
    // The host's own, which no other host has: it can be kept. One that is taken is replaced by a random one.
    let id = if rx == WORLD { dst.1 } else { src.1 };
    let packet = match rng.below(8) {
        0 => start.icmp_echo_request(id, 1),
        1 => start.icmp_echo_reply(id, 1),
        2 | 3 => {
            let flags = *rng.pick(&[TcpFlags::SYN.0, 0x12, 0x10, 0x10, 0x10, 0x18, 0x11, 0x04]);
            start.tcp(src.1, dst.1, TcpFlags(flags))
        }
        4 if rng.one_in(3) => start.protocol(shoal_wire::IpProtocol(47)),
        _ => start.udp(src.1, dst.1),
    };
    let packet = packet.payload_len(rng.below(60));
    let packet = match rng.below(20) {
        0 => packet.fragment(8 * rng.below(3) as u16, Fragment::More),
        1 => packet.options(&[1; 4]),
        2 => packet.ip_checksum(rng.next_u64() as u16),
        _ => packet,
    };
    let mut bytes = packet.build();
    if rng.one_in(25) {
        bytes.truncate(14 + rng.below(40));
    }
    InjectedPacket::from(bytes)
}

/// All between two addresses and of one protocol, by its first word; what the router makes itself, and fragments, are on their own.
pub(crate) fn flow(packet: &mut [u8]) -> Vec<u8> {
    let fragmented = packet.get(20..22) != Some(&[0, 0]);
    if fragmented || packet.get(23) == Some(&1) {
        return packet.to_vec();
    }
    let end = packet.len().min(38);
    [packet.get(..15).unwrap_or_default(), packet.get(23..24).unwrap_or_default(), &packet[26.min(end)..end]]
        .concat()
}

/// Packets of sessions that were known, and those that needed a decision, by direction and protocol.
pub(crate) fn translated(router: &Router, kind: &str) -> [Vec<u64>; 2] {
    ["fastpath", "slowpath"].map(|path| {
        let all = ["in2out", "out2in"].into_iter().flat_map(|way| {
            ["tcp", "udp", "icmp", "other"].map(|what| format!("/{kind}/{way}/{path}/{what}"))
        });
        all.map(|name| router.counter(&name)).collect()
    })
}

/// How many there were altogether: whether a decision was made a moment sooner depends on how packets meet in frames.
pub(crate) fn both([known, decided]: &[Vec<u64>; 2]) -> Vec<u64> {
    known.iter().zip(decided).map(|(a, b)| a + b).collect()
}

#[test]
fn random_packets_are_translated_on_a_superpath_as_from_node_to_node() {
    translates_as_from_node_to_node(&TWINS, IP4_NAT44.name);
}

#[test]
fn random_packets_are_translated_on_a_superpath_with_other_features_as_from_node_to_node() {
    translates_as_from_node_to_node(&Twins { make: checked_world, ..TWINS }, IP_FEATURES.name);
}

fn translates_as_from_node_to_node(twins: &Twins, superpath: &str) {
    let seed = Rng::seed(20_261_126);
    let (mut on_chain, mut passed, mut fast) = (0, 0, 0);
    for n in 0..8 {
        let (plain, fused) = twins.run(seed + n, 60);
        assert_eq!(
            both(&translated(&plain.router, "nat44-ed")),
            both(&translated(&fused.router, "nat44-ed"))
        );
        let sessions = |twin: &Twin| {
            let all = twin.router.get::<Nat44>().sessions(|_| true).unwrap();
            all.into_iter()
                .map(|(_, Record { session, states, packets, bytes, .. })| {
                    format!("{session:?} {states:?} {packets} packets {bytes} bytes")
                })
                .collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(sessions(&plain), sessions(&fused));
        on_chain += fused.vectors(superpath);
        passed += fused.vectors("nat44-ed-in2out") + fused.vectors("nat44-ed-out2in");
        let [known, _] = translated(&fused.router, "nat44-ed");
        fast += known.iter().sum::<u64>();
    }
    assert!(on_chain > 5000, "only {on_chain} packets were on the superpath");
    assert!(passed < on_chain, "{passed} packets of {on_chain} left it for NAT's nodes");
    assert!(fast > 2000, "only {fast} packets were of known sessions");
}

#[test]
fn packets_of_a_known_session_pass_no_node_of_nat() {
    let Twin { mut router, ports, .. } = world(true);
    let taken = |port: &Port| router.interfaces().superpath_of(port.index()).unwrap().taken;
    assert_eq!(taken(&ports[0]), Some(IP4_NAT44.name));
    assert_eq!(taken(&ports[WORLD]), Some(IP4_NAT44.name));
    let (host, far, shared) = (address(0, 2), address(WORLD, 2), SHARED.parse::<Ipv4Addr>().unwrap());
    let out = PacketBuilder::ethernet(station(0), ports[0].mac()).ip4(host, far).udp(2020, 53).build();
    let back =
        PacketBuilder::ethernet(station(WORLD), ports[WORLD].mac()).ip4(far, shared).udp(53, 2020).build();
    let vectors = |router: &Router, name: &str| {
        let node = router.graph().node(name).unwrap();
        router.graph().graph_counters().vectors.sum(node.number() as usize)
    };
    let all = |router: &Router| {
        ["nat44-ed-in2out", "nat44-ed-out2in", IP4_NAT44.name].map(|name| vectors(router, name))
    };
    router.send(&ports[0], &out);
    ports[WORLD].received();
    let before = all(&router);
    for _ in 0..3 {
        router.send(&ports[0], &out);
        assert_eq!(ports[WORLD].received()[0][26..30], shared.octets());
        router.send(&ports[WORLD], &back);
        assert_eq!(ports[0].received()[0][30..34], host.octets());
    }
    let [in2out, out2in, fused] = before;
    assert_eq!(all(&router), [in2out, out2in, fused + 6]);
    // Fragments that wait for others.
    router.advance(std::time::Duration::from_mins(2));
}
