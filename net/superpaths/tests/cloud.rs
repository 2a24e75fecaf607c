//! Cloud NAT as stages of a superpath: the same random packets of clients, back ends and the world, of both families, through two
//! routers that differ in nothing but `enable_superpath`.

use std::net::IpAddr;

use shoal_cnat::policy::{List, PolicyKind};
use shoal_cnat::sessions::Record;
use shoal_cnat::translation::{Flags, LbType};
use shoal_cnat::{Cnat, Endpoint, NO_NAT, PathSpec, SnatSpec, Spec};
use shoal_fib::FlowFields;
use shoal_icmp::limiter::Rate;
use shoal_icmp::{Icmp, Icmp6};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_ip6_nd::{Advertise, Nd, RaConfig};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_superpaths::IP_CNAT;
use shoal_testkit::{InjectedPacket, PacketBuilder, Port, Rng, Router, STACK, Twin, Twins};
use shoal_wire::packet::Fragment;
use shoal_wire::{MacAddress, TcpFlags};

const PLAIN_POLICY: Twins = Twins { make: without_policy, packet: given, flow };
const WITH_POLICY: Twins = Twins { make: with_policy, packet: given, flow };

/// Clients, back ends, the world, and clients behind an interface without the feature.
const PORTS: usize = 4;
const CLIENTS: usize = 0;
const BACKENDS: usize = 1;
const WORLD: usize = 2;
const FEATURELESS: usize = 3;
/// Packets before the first burst.
const MADE_BEFORE: usize = 2500;
/// The port of services, and that of back ends.
const SERVICE: u16 = 80;
const BACKEND: u16 = 8080;

fn station(n: usize) -> MacAddress {
    MacAddress([2, 0xbb, 0, 0, 0, n as u8])
}

fn address(is_ip6: bool, network: usize, host: usize) -> IpAddr {
    if is_ip6 {
        format!("2001:db8:{network}::{host}").parse().unwrap()
    } else {
        format!("10.0.{network}.{host}").parse().unwrap()
    }
}

/// The first is translated, packets to the second stay as they are and go to its back end.
fn vip(is_ip6: bool, nth: usize) -> IpAddr {
    let text = if is_ip6 { format!("2001:db8:99::{}", nth + 1) } else { format!("198.51.100.{}", nth + 1) };
    text.parse().unwrap()
}

fn shared(is_ip6: bool) -> IpAddr {
    if is_ip6 { "2001:db8:77::1" } else { "203.0.113.9" }.parse().unwrap()
}

fn without_policy(superpath: bool) -> Twin {
    make(superpath, PolicyKind::None)
}

fn with_policy(superpath: bool) -> Twin {
    make(superpath, PolicyKind::K8s)
}

fn make(superpath: bool, policy: PolicyKind) -> Twin {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_reassembly::MODULE, &shoal_cnat::MODULE]);
    let mut router = Router::new(&modules);
    router.get::<Icmp>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    router.get::<Icmp6>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    let ports: Vec<Port> = (0..PORTS).map(|n| router.pg(n as u32)).collect();
    for (n, port) in ports.iter().enumerate() {
        let ip4 = router.get::<Ip4>();
        ip4.add_address(port.index(), format!("{}/24", address(false, n, 1)).parse().unwrap()).unwrap();
        // Advertised at random moments.
        let silent = RaConfig { send: Advertise::No, ..RaConfig::default() };
        router.get::<Nd>().set_ra_config(port.index(), silent).unwrap();
        let ip6 = router.get::<Ip6>();
        ip6.add_address(port.index(), format!("{}/64", address(true, n, 1)).parse().unwrap()).unwrap();
        for host in 2..5 {
            let (IpAddr::V4(four), IpAddr::V6(six)) = (address(false, n, host), address(true, n, host))
            else {
                unreachable!()
            };
            let arp = router.get::<shoal_arp::Neighbours>();
            arp.set((port.index(), four), station(n), Origin::Static, FibEntry::Wanted).unwrap();
            let nd = router.get::<shoal_ip6_nd::Neighbours>();
            nd.set((port.index(), six), station(n), Origin::Static, FibEntry::Wanted).unwrap();
        }
    }
    translate(&router, &ports, policy);
    router.interfaces().enable_superpath(superpath).unwrap();
    router.advance(std::time::Duration::from_secs(3));
    // Most sessions, made one by one: whether one is made before a packet of the other direction comes depends on how packets meet
    // in frames.
    connect(&mut router, &ports);
    let mut rng = Rng::new(1);
    for _ in 0..MADE_BEFORE {
        let rx = rng.below(PORTS);
        let InjectedPacket { bytes, .. } = given(&mut rng, &ports[rx], rx);
        router.send(&ports[rx], &bytes);
    }
    for port in &ports {
        port.received();
    }
    Twin::new(router, ports)
}

/// All connections to services and to the world begin before anything that looks like an answer of one.
fn connect(router: &mut Router, ports: &[Port]) {
    for (rx, is_ip6) in [CLIENTS, FEATURELESS, BACKENDS].into_iter().flat_map(|rx| [(rx, false), (rx, true)])
    {
        for (host, nth) in (2..5).flat_map(|host| (0..3).map(move |nth| (host, nth))) {
            let from = (address(is_ip6, rx, host), port_of_nth(rx, host, nth));
            let world = (2..5).filter(|_| rx == BACKENDS).map(|host| (address(is_ip6, WORLD, host), 443));
            for (to, port) in world.chain([(vip(is_ip6, 0), SERVICE)]) {
                let start = || between(rx, &ports[rx], from.0, to);
                router.send(&ports[rx], start().tcp(from.1, port, TcpFlags::SYN).build());
                router.send(&ports[rx], start().udp(from.1, port).build());
            }
        }
    }
}

fn between(rx: usize, port: &Port, from: IpAddr, to: IpAddr) -> PacketBuilder {
    let start = PacketBuilder::ethernet(station(rx), port.mac());
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => start.ip4(from, to),
        (IpAddr::V6(from), IpAddr::V6(to)) => start.ip6(from, to),
        _ => unreachable!(),
    }
}

fn translate(router: &Router, ports: &[Port], policy: PolicyKind) {
    let cnat = router.get::<Cnat>();
    for (is_ip6, protocol, nth) in [false, true]
        .into_iter()
        .flat_map(|six| [6, 17].into_iter().flat_map(move |p| [(six, p, 0), (six, p, 1)]))
    {
        let flags = if nth == 1 { NO_NAT } else { 0 };
        let to = |host, port| PathSpec {
            source: Endpoint::NONE,
            destination: Endpoint::new(address(is_ip6, BACKENDS, host), port),
            flags,
        };
        let port = if nth == 1 { SERVICE } else { BACKEND };
        let spec = Spec {
            vip: Endpoint::new(vip(is_ip6, nth), SERVICE),
            protocol,
            is_real: false,
            flags: Flags::default(),
            lb: LbType::Maglev,
            fields: FlowFields::DEFAULT,
            // With a policy, what the other one says by itself has a session of its own, so that it must not be one that may be chosen.
            paths: if policy == PolicyKind::None {
                vec![to(2, port), to(3, port)]
            } else {
                vec![to(2, port)]
            },
        };
        cnat.update(spec).unwrap();
    }
    for port in ports.iter().take(FEATURELESS) {
        cnat.set_feature(port.index(), true).unwrap();
    }
    if policy == PolicyKind::None {
        return;
    }
    let (IpAddr::V4(ip4), IpAddr::V6(ip6)) = (shared(false), shared(true)) else { unreachable!() };
    cnat.set_snat(SnatSpec { ip4, ip6, ..SnatSpec::NONE }).unwrap();
    for list in [List::IncludeV4, List::IncludeV6, List::Pod] {
        cnat.set_policy_interface(ports[BACKENDS].index(), list, true).unwrap();
    }
    for prefix in ["10.0.0.0/23", "2001:db8::/47"] {
        cnat.set_excluded(prefix.parse().unwrap(), true).unwrap();
    }
    cnat.set_policy(policy).unwrap();
}

/// One of a host's ports, which no other host has: a shared address can keep it.
fn port_of(rng: &mut Rng, network: usize, host: usize) -> u16 {
    port_of_nth(network, host, rng.below(3))
}

fn port_of_nth(network: usize, host: usize, nth: usize) -> u16 {
    2000 + (network * 100 + host * 10 + nth) as u16
}

fn host(rng: &mut Rng, is_ip6: bool, network: usize) -> (IpAddr, u16) {
    let host = 2 + rng.below(3);
    (address(is_ip6, network, host), port_of(rng, network, host))
}

fn ends(rng: &mut Rng, is_ip6: bool, rx: usize) -> ((IpAddr, u16), (IpAddr, u16)) {
    let service = |rng: &mut Rng| (vip(is_ip6, usize::from(rng.one_in(4))), SERVICE);
    let backend = |rng: &mut Rng| (address(is_ip6, BACKENDS, 2 + rng.below(2)), BACKEND);
    let world = |rng: &mut Rng| (address(is_ip6, WORLD, 2 + rng.below(3)), 443);
    match (rx, rng.below(6)) {
        // Not the back end's port: a connection to the service would have the same tuple.
        (CLIENTS | FEATURELESS, 0) => (host(rng, is_ip6, rx), (backend(rng).0, BACKEND + 1)),
        (CLIENTS | FEATURELESS, 1) => (host(rng, is_ip6, rx), world(rng)),
        (CLIENTS | FEATURELESS, _) => (host(rng, is_ip6, rx), service(rng)),
        (BACKENDS, 0..3) => (backend(rng), host(rng, is_ip6, CLIENTS)),
        (BACKENDS, 3) => (host(rng, is_ip6, BACKENDS), service(rng)),
        (BACKENDS, _) => (host(rng, is_ip6, BACKENDS), world(rng)),
        (_, 0) => (world(rng), host(rng, is_ip6, BACKENDS)),
        (_, 1) => (world(rng), host(rng, is_ip6, CLIENTS)),
        _ => {
            let (_, port) = host(rng, is_ip6, BACKENDS);
            (world(rng), (shared(is_ip6), port))
        }
    }
}

fn given(rng: &mut Rng, port: &Port, rx: usize) -> InjectedPacket {
    let is_ip6 = rng.one_in(2);
    let (src, dst) = ends(rng, is_ip6, rx);
    // Where it was sent is seen in what goes out: packets to a host have no order with those to an address that stands for it.
    let was_for =
        4 * rx as u16 + u16::from([vip(is_ip6, 0), vip(is_ip6, 1), shared(is_ip6)].contains(&dst.0));
    let start = between(rx, port, src.0, dst.0);
    let start = if is_ip6 { start.flow_label(was_for.into()) } else { start.id(was_for) };
    let is_expiring = rng.one_in(8);
    let start = start.ttl(if is_expiring { 1 } else { *rng.pick(&[2, 64, 64]) });
    let packet = match rng.below(9) {
        0 if is_ip6 => start.icmp6_echo_request(src.1, 1),
        0 => start.icmp_echo_request(src.1, 1),
        // What comes too late may not be the one that opens a connection, or ends it: packets behind it overtake it.
        1..4 if is_expiring => start.tcp(src.1, dst.1, TcpFlags(0)),
        1..4 => {
            let flags = *rng.pick(&[TcpFlags::SYN.0, 0x12, 0x10, 0x10, 0x10, 0x18]);
            start.tcp(src.1, dst.1, TcpFlags(flags))
        }
        4 if rng.one_in(3) => start.protocol(shoal_wire::IpProtocol(47)),
        _ => start.udp(src.1, dst.1),
    };
    let packet = packet.payload_len(rng.below(60));
    let packet = match rng.below(20) {
        0 if !is_ip6 => packet.fragment(8 * rng.below(3) as u16, Fragment::More),
        1 if !is_ip6 => packet.options(&[1; 4]),
        2 => packet.ip_checksum(rng.next_u64() as u16),
        _ => packet,
    };
    let mut bytes = packet.build();
    if rng.one_in(25) {
        bytes.truncate(14 + rng.below(60));
    }
    InjectedPacket::from(bytes)
}

/// All between two addresses and ports, of one protocol; what the router makes itself, and fragments, are on their own.
fn flow(packet: &mut [u8]) -> Vec<u8> {
    let is_ip6 = packet.get(12..14) == Some(&[0x86, 0xdd]);
    let (protocol, was_for, ends) = if is_ip6 { (20, 16..18, 22..58) } else { (23, 18..20, 26..38) };
    let fragmented = !is_ip6 && packet.get(20..22) != Some(&[0, 0]);
    if fragmented || packet.get(protocol).is_some_and(|protocol| [1, 58].contains(protocol)) {
        return packet.to_vec();
    }
    let end = packet.len().min(ends.end);
    let part = |range: std::ops::Range<usize>| packet.get(range).unwrap_or_default();
    [part(0..15), part(protocol..protocol + 1), part(was_for), part(ends.start..end)].concat()
}

/// What sessions say, but for their numbers.
fn sessions(twin: &Twin) -> std::collections::BTreeSet<String> {
    let all = twin.router.get::<Cnat>().sessions().unwrap();
    all.into_iter().map(|Record { session, states, .. }| format!("{session:?} {states:?}")).collect()
}

/// Packets of translations; and those that left the superpath for the feature's nodes, in percent of all that came to them from node to
/// node.
fn translates_as_from_node_to_node(twins: &Twins) -> (Vec<u64>, u64) {
    let seed = Rng::seed(20_261_130);
    let (mut on_chain, mut passed, mut by_node, mut counted) = (0, 0, 0, Vec::new());
    for n in 0..8 {
        let (plain, fused) = twins.run(seed + n, 60);
        let counts = |twin: &Twin| {
            let cnat = twin.router.get::<Cnat>();
            cnat.translations().into_keys().map(|id| cnat.counted(id).0).collect::<Vec<_>>()
        };
        assert_eq!(counts(&plain), counts(&fused));
        assert_eq!(sessions(&plain), sessions(&fused));
        assert_eq!(plain.vectors(IP_CNAT.name), 0, "the ordinary router uses no superpath");
        on_chain += fused.vectors(IP_CNAT.name);
        let nodes = ["cnat-input-ip4", "cnat-input-ip6", "cnat-output-ip4", "cnat-output-ip6"];
        passed += nodes.iter().map(|node| fused.vectors(node)).sum::<u64>();
        by_node += nodes.iter().map(|node| plain.vectors(node)).sum::<u64>();
        counted.extend(counts(&fused));
    }
    assert!(on_chain > 5000, "only {on_chain} packets were on the superpath");
    (counted, passed * 100 / by_node)
}

#[test]
fn random_packets_are_translated_on_a_superpath_as_from_node_to_node() {
    let (counted, passed) = translates_as_from_node_to_node(&PLAIN_POLICY);
    assert!(counted.iter().all(|count| *count > 20), "{counted:?}");
    assert!(passed < 60, "{passed} percent left it");
}

#[test]
fn random_packets_with_shared_sources_are_translated_on_a_superpath_as_from_node_to_node() {
    let (_, passed) = translates_as_from_node_to_node(&WITH_POLICY);
    assert!(passed < 60, "{passed} percent left it");
    let mut fused = with_policy(true);
    let all = fused.router.get::<Cnat>().sessions().unwrap();
    let shares = |record: &&Record| [shared(false), shared(true)].map(bits).contains(&record.session.to.src);
    assert!(all.iter().filter(shares).count() > 20, "{} sessions", all.len());
    // Fragments that wait for others.
    fused.router.advance(std::time::Duration::from_mins(2));
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(four) => four.to_bits().into(),
        IpAddr::V6(six) => six.to_bits(),
    }
}

#[test]
fn packets_of_a_known_session_pass_no_node_of_the_feature() {
    for is_ip6 in [false, true] {
        let mut twin = without_policy(true);
        let taken = |port: &Port| twin.router.interfaces().superpath_of(port.index()).unwrap().taken;
        assert_eq!([CLIENTS, BACKENDS].map(|n| taken(&twin.ports[n])), [Some(IP_CNAT.name); 2]);
        let frame = |rx: usize, src: (IpAddr, u16), dst: (IpAddr, u16)| {
            between(rx, &twin.ports[rx], src.0, dst.0).udp(src.1, dst.1).build()
        };
        let client = (address(is_ip6, CLIENTS, 2), 4444);
        let asked = frame(CLIENTS, client, (vip(is_ip6, 0), SERVICE));
        let answers = [2, 3].map(|host| frame(BACKENDS, (address(is_ip6, BACKENDS, host), BACKEND), client));
        let all = |twin: &Twin| {
            let names = ["cnat-input-ip4", "cnat-input-ip6", "cnat-output-ip4", "cnat-output-ip6"];
            (names.iter().map(|name| twin.vectors(name)).sum::<u64>(), twin.vectors(IP_CNAT.name))
        };
        twin.router.send(&twin.ports[CLIENTS], &asked);
        let came = twin.ports[BACKENDS].received().remove(0);
        let last = if is_ip6 { came[53] } else { came[33] };
        let answer = &answers[usize::from(last == 3)];
        let (by_node, fused) = all(&twin);
        for _ in 0..3 {
            twin.router.send(&twin.ports[CLIENTS], &asked);
            assert_eq!(twin.ports[BACKENDS].received().len(), 1);
            twin.router.send(&twin.ports[BACKENDS], answer);
            assert_eq!(twin.ports[CLIENTS].received().len(), 1);
        }
        assert_eq!(all(&twin), (by_node, fused + 6), "IPv6: {is_ip6}");
        // Fragments that wait for others.
        twin.router.advance(std::time::Duration::from_mins(2));
    }
}
