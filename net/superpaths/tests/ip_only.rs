//! Interfaces without a link header: the same random packets through two routers that differ in nothing but
//! `enable_superpath`.

use shoal_fib::{Fib, FibIndex, Path, Source};
use shoal_icmp::limiter::Rate;
use shoal_icmp::{Icmp, Icmp6};
use shoal_interface::SuperpathObstacle;
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_ip6_nd::{Advertise, Nd, RaConfig};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_pg::{CreateInterface, Mode};
use shoal_superpaths::{IP, IP4_ONLY, IP6_ONLY};
use shoal_testkit::{InjectedPacket, PacketBuilder, Port, Rng, Router, STACK, Twin, Twins};
use shoal_wire::IpPrefix;

const TWINS: Twins = Twins { make: world, packet: given, flow };
/// Two with an Ethernet header, then those of one family.
const MODES: [Mode; 5] = [Mode::Ethernet, Mode::Ethernet, Mode::Ip4, Mode::Ip4, Mode::Ip6];

fn station(n: usize) -> [u8; 6] {
    [2, 0xaa, 0, 0, 0, n as u8]
}

fn world(superpath: bool) -> Twin {
    let mut modules = STACK.to_vec();
    modules.push(&shoal_ip6_nd::MODULE);
    let mut router = Router::new(&modules);
    router.get::<Icmp>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    router.get::<Icmp6>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    let create = |(id, mode): (usize, &Mode)| CreateInterface {
        id: id as u32,
        mode: *mode,
        ..CreateInterface::default()
    };
    let ports: Vec<Port> = MODES.iter().enumerate().map(|n| router.pg_with(&create(n))).collect();
    router.interfaces().enable_superpath(superpath).unwrap();
    // What a router says of itself comes at random moments.
    let quiet = RaConfig { send: Advertise::No, ..RaConfig::default() };
    for (n, (port, mode)) in ports.iter().zip(MODES).enumerate() {
        let fib = router.get::<Fib>();
        let far = |prefix: String, via: String| {
            let path = Path::next_hop(via.parse::<std::net::IpAddr>().unwrap(), port.index());
            fib.add(FibIndex::DEFAULT, prefix.parse::<IpPrefix>().unwrap(), Source::Cli, &[path]).unwrap();
        };
        if mode != Mode::Ip6 {
            let ip4 = router.get::<Ip4>();
            ip4.add_address(port.index(), format!("10.0.{n}.1/24").parse().unwrap()).unwrap();
            far(format!("20.0.{n}.0/24"), format!("10.0.{n}.2"));
        }
        if mode != Mode::Ip4 {
            let ip6 = router.get::<Ip6>();
            ip6.add_address(port.index(), format!("2001:db8:{n}::1/64").parse().unwrap()).unwrap();
            far(format!("2001:f:{n}::/48"), format!("2001:db8:{n}::2"));
        }
        if mode == Mode::Ethernet {
            router.get::<Nd>().set_ra_config(port.index(), quiet.clone()).unwrap();
            router.set_neighbour(port, [10, 0, n as u8, 2].into(), station(n).into());
            let nd = router.get::<shoal_ip6_nd::Neighbours>();
            let key = (port.index(), format!("2001:db8:{n}::2").parse().unwrap());
            nd.set(key, station(n).into(), Origin::Static, FibEntry::Wanted).unwrap();
        }
    }
    // What hosts say of themselves when they come up, at random moments.
    router.advance(std::time::Duration::from_secs(3));
    for port in &ports {
        port.received();
    }
    Twin::new(router, ports)
}

fn given(rng: &mut Rng, port: &Port, rx: usize) -> InjectedPacket {
    let start = PacketBuilder::ethernet(station(rx), port.mac());
    let family6 = MODES[rx] == Mode::Ip6 || MODES[rx] == Mode::Ethernet && rng.one_in(3);
    let (to, host) = (rng.below(MODES.len()), 1 + rng.below(3) as u8);
    // Now and then a packet of the other family, or nothing that one could be.
    let is_ip6 = family6 ^ rng.one_in(30);
    let start = if is_ip6 {
        let to = if rng.one_in(6) { format!("2001:db8:{to}::1") } else { format!("2001:f:{to}::{host}") };
        let address = |text: &str| text.parse::<std::net::Ipv6Addr>().unwrap();
        start.ip6(address(&format!("2001:db8:{rx}::2")), address(&to))
    } else {
        // No host that the router would have to ask for.
        let (net, host) = if rng.one_in(6) { (10, 1 + host % 2) } else { (20, host) };
        start.ip4([10, 0, rx as u8, 2], [net, 0, to as u8, host])
    };
    let packet = start.ttl(*rng.pick(&[1, 2, 64, 64, 64])).udp(1, 2).payload_len(rng.below(60));
    let mut bytes = packet.build();
    if rng.one_in(20) {
        bytes.truncate(14 + rng.below(50));
    }
    if MODES[rx] != Mode::Ethernet {
        bytes.drain(..14);
    }
    InjectedPacket::from(bytes)
}

/// All between two addresses; what the router makes itself is on its own.
fn flow(packet: &mut [u8]) -> Vec<u8> {
    let ethernet = packet.first().is_some_and(|first| ![4, 6].contains(&(first >> 4)));
    let ip = packet.get(if ethernet { 14 } else { 0 }..).unwrap_or_default();
    let (protocol, addresses) = match ip.first().map(|first| first >> 4) {
        Some(4) => (ip.get(9), ip.get(12..20)),
        _ => (ip.get(6), ip.get(8..40)),
    };
    match (protocol, addresses) {
        (Some(17), Some(addresses)) => addresses.to_vec(),
        _ => packet.to_vec(),
    }
}

#[test]
fn random_packets_without_a_link_header_fare_on_a_superpath_as_from_node_to_node() {
    let seed = Rng::seed(20_261_125);
    let [mut ip4, mut ip6, mut ethernet] = [0; 3];
    for n in 0..4 {
        let (plain, fused) = TWINS.run(seed + n, 60);
        assert_eq!(plain.vectors(IP4_ONLY.name) + plain.vectors(IP6_ONLY.name), 0);
        ip4 += fused.vectors(IP4_ONLY.name);
        ip6 += fused.vectors(IP6_ONLY.name);
        ethernet += fused.vectors(IP.name);
    }
    assert!(ip4 > 500 && ip6 > 200 && ethernet > 1000, "{ip4} {ip6} {ethernet} packets on superpaths");
}

#[test]
fn an_interface_of_one_family_takes_only_the_superpath_of_that_family() {
    let Twin { router, ports, .. } = world(true);
    let taken = |n: usize| router.interfaces().superpath_of(ports[n].index()).unwrap();
    assert_eq!((taken(2).taken, taken(4).taken), (Some(IP4_ONLY.name), Some(IP6_ONLY.name)));
    let of_other = taken(4).others.into_iter().find(|(name, _)| *name == IP4_ONLY.name).unwrap();
    assert_eq!(of_other.1, [SuperpathObstacle::Medium(shoal_interface::Medium::Ip)]);
    // An address of the other family does not change what packets come in by it.
    router.get::<Ip4>().add_address(ports[4].index(), "10.9.0.1/24".parse().unwrap()).unwrap();
    assert_eq!(taken(4).taken, Some(IP6_ONLY.name));
}

#[test]
fn packets_to_and_from_interfaces_without_a_link_header_pass_no_node_but_the_superpath() {
    let Twin { mut router, ports, .. } = world(true);
    let packet = |port: &Port, from: u8, to: u8| {
        let start = PacketBuilder::ethernet(station(usize::from(from)), port.mac());
        start.ip4([10, 0, from, 2], [20, 0, to, 1]).udp(1, 2).payload_len(20).build()
    };
    let vectors = |router: &Router, node: &str| {
        let node = router.graph().node(node).unwrap();
        router.graph().graph_counters().vectors.sum(node.number() as usize)
    };
    let before = vectors(&router, "ip4-rewrite");
    router.send_all(&ports[2], (0..40).map(|_| packet(&ports[2], 2, 3).split_off(14)));
    router.send_all(&ports[0], (0..40).map(|_| packet(&ports[0], 0, 2)));
    router.send_all(&ports[3], (0..40).map(|_| packet(&ports[3], 3, 1).split_off(14)));
    let received = [3, 2, 1].map(|n: usize| ports[n].received());
    assert_eq!(received.each_ref().map(Vec::len), [40; 3]);
    // A hop less, the same checksum plus one hop, no header in front.
    let mut sent = packet(&ports[2], 2, 3).split_off(14);
    (sent[8], sent[10]) = (sent[8] - 1, sent[10] + 1);
    assert_eq!(received[0][0], sent);
    assert_eq!(received[2][0][..12], [&station(1)[..], &ports[1].mac().0].concat());
    assert_eq!((vectors(&router, IP4_ONLY.name), vectors(&router, "ip4-rewrite")), (80, before));
}
