//! Features as stages of a superpath: the same random packets of both families through two routers with the same random
//! features, that differ in nothing but `enable_superpath`; everything that can be seen from outside is compared after
//! each burst. And which superpath an interface takes, and why.
//!
//! Order is that of the tests of the families: packets of one flow that need the same treatment. What a flow is includes
//! ports here, because policies go by them.

use std::cell::Cell;
use std::net::IpAddr;

use shoal_abf::Abf;
use shoal_buffer::Flags;
use shoal_fib::{Family, Fib, FibIndex, Path, Source, Via};
use shoal_icmp::limiter::Rate;
use shoal_icmp::{Icmp, Icmp6};
use shoal_interface::{Interfaces, MtuLayer, OUTPUT_ARC, SuperpathObstacle};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_ip6_nd::{Advertise, Nd, RaConfig};
use shoal_module::Module;
use shoal_mss_clamp::{Directions, MssClamp, Setting as Size};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_rule::{Ports, Rule};
use shoal_source_limit::{Limit, SourceLimit};
use shoal_superpaths::{IP, IP_FEATURES, IP4};
use shoal_testkit::{InjectedPacket, PacketBuilder, Port, Rng, Router, STACK, Twin, Twins};
use shoal_urpf::{Direction, Mode, Setting, Urpf};
use shoal_wire::packet::Fragment;
use shoal_wire::{IpPrefix, IpProtocol, MacAddress, TcpFlags};

const FAMILIES: [Family; 2] = [Family::Ip4, Family::Ip6];
const PORTS: usize = 6;
/// No feature is enabled on it.
const PLAIN: usize = 0;

thread_local! {
    /// What features the routers of this thread's test have.
    static DRAWN: Cell<u64> = const { Cell::new(0) };
}

const TWINS: Twins = Twins { make: world, packet: given, flow };

fn modules() -> Vec<&'static Module> {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_rule::MODULE, &shoal_urpf::MODULE]);
    modules.extend([&shoal_abf::MODULE, &shoal_mss_clamp::MODULE, &shoal_source_limit::MODULE]);
    modules
}

fn station(n: usize) -> MacAddress {
    MacAddress([2, 0xaa, 0, 0, 0, n as u8])
}

/// Host `host` of the network behind port `n`.
fn near(family: Family, n: usize, host: usize) -> IpAddr {
    match family {
        Family::Ip4 => format!("10.0.{n}.{host}").parse().unwrap(),
        Family::Ip6 => format!("2001:db8:{n}::{host}").parse().unwrap(),
    }
}

/// A host of the far network `n`.
fn far(family: Family, n: usize, host: usize) -> IpAddr {
    match family {
        Family::Ip4 => format!("20.0.{n}.{host}").parse().unwrap(),
        Family::Ip6 => format!("2001:f:{n}::{host}").parse().unwrap(),
    }
}

fn far_network(family: Family, n: usize) -> IpPrefix {
    let len = if family == Family::Ip4 { 24 } else { 48 };
    IpPrefix::new(far(family, n, 0), len).unwrap()
}

fn via(family: Family, n: usize, ports: &[Port]) -> Path {
    Path::next_hop(near(family, n, 2), ports[n].index())
}

/// A router with ports, hosts and routes, and no feature.
fn bare() -> (Router, Vec<Port>) {
    let mut router = Router::new(&modules());
    router.get::<Icmp>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    router.get::<Icmp6>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    router.get::<Fib>().set_flow_seed(7);
    let ports: Vec<Port> = (0..PORTS).map(|n| router.pg(n as u32)).collect();
    for (n, port) in ports.iter().enumerate() {
        let ip4 = router.get::<Ip4>();
        ip4.add_address(port.index(), format!("10.0.{n}.1/24").parse().unwrap()).unwrap();
        // Advertised at random moments.
        let (nd, silent) = (router.get::<Nd>(), RaConfig { send: Advertise::No, ..RaConfig::default() });
        nd.set_ra_config(port.index(), silent).unwrap();
        let ip6 = router.get::<Ip6>();
        ip6.add_address(port.index(), format!("2001:db8:{n}::1/64").parse().unwrap()).unwrap();
        for host in 2..4 {
            let arp = router.get::<shoal_arp::Neighbours>();
            let key = (port.index(), near(Family::Ip4, n, host));
            let IpAddr::V4(address) = key.1 else { unreachable!() };
            arp.set((key.0, address), station(n), Origin::Static, FibEntry::Wanted).unwrap();
            let nd = router.get::<shoal_ip6_nd::Neighbours>();
            let IpAddr::V6(address) = near(Family::Ip6, n, host) else { unreachable!() };
            nd.set((port.index(), address), station(n), Origin::Static, FibEntry::Wanted).unwrap();
        }
    }
    let fib = router.get::<Fib>();
    for family in FAMILIES {
        for n in 0..PORTS {
            fib.add(FibIndex::DEFAULT, far_network(family, n), Source::Cli, &[via(family, n, &ports)])
                .unwrap();
        }
        let both = [via(family, 1, &ports), via(family, 2, &ports)];
        fib.add(FibIndex::DEFAULT, far_network(family, 6), Source::Cli, &both).unwrap();
        fib.add(FibIndex::DEFAULT, far_network(family, 7), Source::Cli, &[Path::from(Via::Drop)]).unwrap();
    }
    router.interfaces().set_mtu(ports[2].index(), MtuLayer::L3, 1400).unwrap();
    router.advance(std::time::Duration::from_secs(3));
    for port in &ports {
        port.received();
    }
    (router, ports)
}

fn world(superpath: bool) -> Twin {
    let (mut router, ports) = bare();
    router.interfaces().enable_superpath(superpath).unwrap();
    let mut rng = Rng::new(DRAWN.get());
    for family in FAMILIES {
        policies(&router, &ports, family);
        for (n, port) in ports.iter().enumerate().filter(|(n, _)| *n != PLAIN) {
            draw(&router, &mut rng, port, n, family);
        }
    }
    router.run();
    Twin::new(router, ports)
}

/// Policies: to a neighbour, to two, back to where the packet came from, to nowhere.
fn policies(router: &Router, ports: &[Port], family: Family) {
    let abf = router.get::<Abf>();
    let base = if family == Family::Ip4 { 0 } else { 10 };
    let udp = |port: u16| Rule {
        protocol: Some(IpProtocol::UDP),
        dport: Some(Ports { first: port, last: port }),
        ..Rule::any(family)
    };
    let to = |n: usize| via(family, n, ports);
    let paths: [&[Path]; 4] = [&[to(3)], &[to(3), to(4)], &[to(1)], &[Path::from(Via::Drop)]];
    for (n, paths) in paths.into_iter().enumerate() {
        abf.add(base + n as u32, udp(2000 + n as u16), paths).unwrap();
    }
}

/// Random features on one interface.
fn draw(router: &Router, rng: &mut Rng, port: &Port, n: usize, family: Family) {
    let interface = port.index();
    for direction in [Direction::Rx, Direction::Tx] {
        let mode = *rng.pick(&[Mode::Off, Mode::Off, Mode::Loose, Mode::Strict]);
        let table = (mode != Mode::Off && rng.one_in(4)).then_some(FibIndex::DEFAULT);
        router.get::<Urpf>().set(Setting { interface, family, direction, mode, table }).unwrap();
    }
    let directions = *rng.pick(&[Directions::NONE, Directions::RX, Directions::TX, Directions::BOTH]);
    let size = Some(Size { directions, mss: 1000 + n as u16 });
    let wanted = if family == Family::Ip4 { [size, None] } else { [None, size] };
    router.get::<MssClamp>().set(interface, wanted).unwrap();
    let base = if family == Family::Ip4 { 0 } else { 10 };
    for policy in 0..4 {
        if rng.one_in(3) {
            router.get::<Abf>().attach(family, interface, base + policy, 5).unwrap();
        }
    }
    // Its state is each thread's: the stage of the chain and the node have the same in hand.
    if family == Family::Ip4 && rng.one_in(2) {
        let limit = Limit { rate: 1 + rng.below(50) as u32, burst: 1 + rng.below(20) as u32 };
        router.get::<SourceLimit>().set(interface, Some(limit)).unwrap();
    }
    // A feature that no superpath covers.
    if n == 5 && rng.one_in(2) {
        router.interfaces().collect_detailed(interface, true).unwrap();
    }
}

fn frame(rng: &mut Rng, port: &Port, rx: usize) -> Vec<u8> {
    let family = *rng.pick(&FAMILIES);
    let from = match rng.below(4) {
        0 => far(family, rng.below(9), 1),
        _ => near(family, if rng.one_in(4) { rng.below(PORTS) } else { rx }, 2 + rng.below(2)),
    };
    let to = match rng.below(5) {
        0 => near(family, rng.below(PORTS), 1 + rng.below(3)),
        _ => far(family, rng.below(9), 1 + rng.below(3)),
    };
    let start = PacketBuilder::ethernet(station(rx), port.mac());
    // The port it comes in by is seen in what goes out: packets of two ports have no order.
    let start = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => start.ip4(from, to).id(rx as u16),
        (IpAddr::V6(from), IpAddr::V6(to)) => start.ip6(from, to).flow_label(rx as u32),
        _ => unreachable!(),
    };
    let start = start.ttl(*rng.pick(&[1, 2, 64, 64, 64, 64]));
    let options: [&[u8]; 5] =
        [&[2, 4, 5, 180], &[2, 4, 3, 0], &[1, 1, 1, 1, 2, 4, 5, 180], &[2, 9, 5, 180], &[2, 1, 0, 0]];
    let mut packet = match rng.below(6) {
        0 => start.tcp(80, 2000, TcpFlags(rng.next_u64() as u8)),
        1 | 2 => {
            let options = *rng.pick(&options);
            let words = (20 + options.len()) as u8 / 4 + u8::from(rng.one_in(10));
            let mut tcp = vec![0, 80, 7, 208, 0, 0, 0, 1, 0, 0, 0, 0, words << 4, 2, 2, 0, 0, 0, 0, 0];
            tcp.extend(options);
            start.payload(&tcp).protocol(IpProtocol::TCP)
        }
        3 => start.udp(1000, 80).payload_len(1300 + rng.below(300)),
        _ => start.udp(1000, 1998 + rng.below(7) as u16).payload_len(rng.below(60)),
    };
    if family == Family::Ip4 {
        packet = match rng.below(12) {
            0 => packet.fragment(8 * rng.below(3) as u16, Fragment::More),
            1 => packet.options(&[1; 4]),
            2 => packet.ip_checksum(rng.next_u64() as u16),
            3 => packet.ip_total_len(rng.below(60) as u16),
            _ => packet,
        };
    }
    let mut bytes = packet.build();
    if rng.one_in(15) {
        bytes.truncate(14 + rng.below(60));
    }
    bytes
}

fn given(rng: &mut Rng, port: &Port, rx: usize) -> InjectedPacket {
    let mut given = InjectedPacket::from(frame(rng, port, rx));
    if rng.one_in(8) {
        given.cuts = vec![*rng.pick(&[14, 34, 40, 54, 60])];
    }
    if rng.one_in(8) {
        let ip6 = given.bytes.get(12) == Some(&0x86);
        (given.l4, given.checksum_offset) = (if ip6 { 54 } else { 34 }, 16);
        given.flags = Flags::L4_CHECKSUM_OFFLOAD;
    }
    given
}

/// Which packets keep their order: see the top of the file.
fn flow(packet: &mut [u8]) -> Vec<u8> {
    let ip6 = packet.get(12..14) == Some(&[0x86, 0xdd]);
    let fragmented = if ip6 { packet.get(20) == Some(&44) } else { packet.get(20..22) != Some(&[0, 0]) };
    let from_router = packet.get(if ip6 { 20 } else { 23 }).is_some_and(|p| [1, 58].contains(p));
    if from_router || fragmented && ip6 {
        return packet.to_vec();
    }
    let (addresses, port) = if ip6 { (22..58, 16..18) } else { (26..38, 18..20) };
    let end = packet.len().min(addresses.end);
    let kind = packet.get(..15).unwrap_or_default();
    [
        kind,
        packet.get(port).unwrap_or_default(),
        packet.get(addresses.start..end).unwrap_or_default(),
        &[u8::from(fragmented)],
    ]
    .concat()
}

fn compare_policies(plain: &Router, fused: &Router) {
    assert_eq!(plain.counter("/abf/policy"), fused.counter("/abf/policy"), "packets of policies");
}

#[test]
fn random_features_on_a_superpath_do_what_they_do_as_nodes() {
    let seed = Rng::seed(20_261_124);
    let (mut on_chain, mut clamped, mut dropped, mut matched, mut limited) = (0, 0, 0, 0, 0);
    for n in 0..8 {
        DRAWN.set(seed + n);
        let (plain, fused) = TWINS.run(seed + n, 60);
        compare_policies(&plain.router, &fused.router);
        assert_eq!(plain.vectors(IP_FEATURES.name), 0, "the ordinary router uses no superpath");
        on_chain += fused.vectors(IP_FEATURES.name);
        let sum = |nodes: &[&str], what: &str| nodes.iter().map(|n| fused.router.error(n, what)).sum::<u64>();
        let sides = ["ip4-in", "ip4-out", "ip6-in", "ip6-out"];
        let clamps = sides.map(|side| format!("tcp-mss-clamping-{side}"));
        clamped += clamps.iter().map(|n| fused.router.error(n, "clamped")).sum::<u64>();
        limited += sum(&["ip4-source-limit", "ip6-source-limit"], "exceeded");
        matched += sum(&["abf-input-ip4", "abf-input-ip6"], "matched");
        dropped += sum(&["ip4-rx-urpf-strict", "ip6-rx-urpf-loose", "ip4-tx-urpf-strict"], "uRPF Drop");
    }
    assert!(on_chain > 5000, "only {on_chain} packets were on the superpath with features");
    assert!(clamped > 100 && dropped > 100 && matched > 100, "{clamped} {dropped} {matched}");
    assert!(limited > 100, "{limited}");
}

fn urpf(router: &Router, port: &Port, mode: Mode) {
    let setting =
        Setting { interface: port.index(), family: Family::Ip4, direction: Direction::Rx, mode, table: None };
    router.get::<Urpf>().set(setting).unwrap();
}

#[test]
fn a_stage_has_the_state_that_its_node_has_on_the_thread() {
    let (mut router, ports) = bare();
    router.get::<SourceLimit>().set(ports[1].index(), Some(Limit { rate: 1, burst: 3 })).unwrap();
    assert_eq!(taken(&router, &ports[1]), Some(IP_FEATURES.name));
    let start = PacketBuilder::ethernet(station(1), ports[1].mac());
    let packet = start.ip4([10, 0, 1, 2], [20, 0, 2, 1]).udp(1, 2).build();
    let vectors = |router: &Router, name: &str| {
        let node = router.graph().node(name).unwrap();
        router.graph().graph_counters().vectors.sum(node.number() as usize)
    };
    // The node learns of the host; the chain then counts on; what is too much is for the node again.
    for (sent, by_node) in [(1, 1), (2, 1), (3, 1), (3, 2)] {
        router.send(&ports[1], &packet);
        assert_eq!(ports[2].received().len(), usize::from(by_node == 1), "{sent}");
        assert_eq!(vectors(&router, "ip4-source-limit"), by_node);
    }
    assert_eq!(router.error("ip4-source-limit", "exceeded"), 1);
    assert_eq!(router.get::<SourceLimit>().look().unwrap().losers.len(), 1);
}

#[test]
fn frames_to_a_virtual_router_take_the_fused_path() {
    let (mut router, ports) = bare();
    let (first, second) = (MacAddress([0, 0, 0x5e, 0, 1, 7]), MacAddress([0, 0, 0x5e, 0, 1, 8]));
    let interfaces = router.interfaces().clone();
    for mac in [first, second] {
        interfaces.add_mac(ports[PLAIN].index(), mac).unwrap();
    }
    assert_eq!(taken(&router, &ports[PLAIN]), Some(IP.name));
    let vectors = |router: &Router| {
        let node = router.graph().node("ethernet-input").unwrap();
        router.graph().graph_counters().vectors.sum(node.number() as usize)
    };
    // The record has one of each family; frames for another one go node by node, to the same end.
    for (mac, by_node, arrives) in
        [(first, 0, true), (second, 1, true), (MacAddress([0, 0, 0x5e, 0, 1, 9]), 2, false)]
    {
        let start = PacketBuilder::ethernet(station(1), mac);
        router.send(&ports[PLAIN], start.ip4([10, 0, 0, 2], [20, 0, 2, 1]).udp(1, 2).build());
        assert_eq!(ports[2].received().len(), usize::from(arrives), "{mac}");
        assert_eq!(vectors(&router), by_node, "{mac}");
    }
    interfaces.del_mac(ports[PLAIN].index(), first).unwrap();
    let start = PacketBuilder::ethernet(station(1), second);
    router.send(&ports[PLAIN], start.ip4([10, 0, 0, 2], [20, 0, 2, 1]).udp(1, 2).build());
    assert_eq!((ports[2].received().len(), vectors(&router)), (1, 2), "it has the place now");
}

fn taken(router: &Router, port: &Port) -> Option<&'static str> {
    router.interfaces().superpath_of(port.index()).unwrap().taken
}

#[test]
fn packets_with_features_pass_no_node_but_the_superpath() {
    let (mut router, ports) = bare();
    urpf(&router, &ports[1], Mode::Strict);
    let vectors = |router: &Router, name: &str| {
        let node = router.graph().node(name).unwrap();
        router.graph().graph_counters().vectors.sum(node.number() as usize)
    };
    let packet = |host| {
        let start = PacketBuilder::ethernet(station(1), ports[1].mac());
        start.ip4([10, 0, host, 2], [20, 0, 2, 1]).udp(1, 2).build()
    };
    router.send(&ports[1], packet(1));
    assert_eq!(ports[2].received().len(), 1);
    assert_eq!(vectors(&router, "ip4-lookup"), 0);
    assert_eq!(vectors(&router, "ip4-rx-urpf-strict"), 0);
    assert_eq!(vectors(&router, IP_FEATURES.name), 1);
    router.send(&ports[1], packet(3));
    assert_eq!(ports[2].received().len(), 0, "it did not come from there");
    assert_eq!(vectors(&router, "ip4-rx-urpf-strict"), 1, "the feature's own node drops it");
    assert_eq!(router.error("ip4-rx-urpf-strict", "uRPF Drop"), 1);
    // The same where packets go out.
    let size = Some(Size { directions: Directions::TX, mss: 1200 });
    router.get::<MssClamp>().set(ports[2].index(), [size, None]).unwrap();
    let before = vectors(&router, IP_FEATURES.name);
    router.send(&ports[1], packet(1));
    assert_eq!(ports[2].received().len(), 1);
    assert_eq!(vectors(&router, IP_FEATURES.name), before + 1);
    assert_eq!(vectors(&router, "ip4-rewrite") + vectors(&router, "tcp-mss-clamping-ip4-out"), 0);
}

#[test]
fn an_interface_takes_the_cheapest_superpath_that_covers_its_features() {
    let (mut router, ports) = bare();
    assert_eq!(taken(&router, &ports[1]), Some(IP.name));
    urpf(&router, &ports[1], Mode::Strict);
    assert_eq!(taken(&router, &ports[1]), Some(IP_FEATURES.name));
    assert_eq!(taken(&router, &ports[2]), Some(IP.name), "the others pay nothing");
    urpf(&router, &ports[1], Mode::Off);
    assert_eq!(taken(&router, &ports[1]), Some(IP.name));
    // Clamping where packets go out is for packets from everywhere.
    let size = Some(Size { directions: Directions::TX, mss: 1200 });
    router.get::<MssClamp>().set(ports[3].index(), [size, None]).unwrap();
    assert_eq!(taken(&router, &ports[1]), Some(IP_FEATURES.name));
    let choice = router.interfaces().superpath_of(ports[1].index()).unwrap();
    let why = choice.others.iter().find(|(name, _)| *name == IP.name).unwrap();
    assert_eq!(why.1, [SuperpathObstacle::Outgoing(vec!["tcp-mss-clamping-ip4-out".into()])]);
    router.get::<MssClamp>().set(ports[3].index(), [Some(Size::default()), None]).unwrap();
    assert_eq!(taken(&router, &ports[1]), Some(IP.name));
    router.interfaces().enable_superpath(false).unwrap();
    assert_eq!(taken(&router, &ports[1]), None);
    router.interfaces().enable_superpath(true).unwrap();
    let only_ip4 = router.pg(20);
    assert_eq!(taken(&router, &only_ip4), None, "no protocol runs there");
    router.get::<Ip4>().add_address(only_ip4.index(), "10.9.0.1/24".parse().unwrap()).unwrap();
    assert_eq!(taken(&router, &only_ip4), Some(IP4.name));
}

#[test]
fn a_feature_that_no_superpath_covers_is_named() {
    let (router, ports) = bare();
    let interfaces: &Interfaces = router.interfaces();
    // Reassembly and its like are not part of this router; not-enabled is: IPv4 goes off.
    router.graph().enable_feature("ip4-unicast", "ip4-not-enabled", ports[1].index(), true).unwrap();
    let choice = interfaces.superpath_of(ports[1].index()).unwrap();
    assert_eq!(choice.taken, Some(IP.name), "IPv6 stays on it");
    let feature = SuperpathObstacle::Feature { feature: "ip4-not-enabled".into(), arc: "ip4-unicast" };
    assert_eq!(choice.left_out, std::slice::from_ref(&feature));
    router.graph().enable_feature("ip6-unicast", "ip6-not-enabled", ports[1].index(), true).unwrap();
    let choice = interfaces.superpath_of(ports[1].index()).unwrap();
    assert_eq!(choice.taken, None);
    let (name, why) = &choice.others[0];
    assert_eq!((*name, why), (IP4.name, &vec![feature]));
    // Features on the way out of the interface itself keep no packet that comes in by it from a superpath.
    router.graph().enable_feature("ip4-unicast", "ip4-not-enabled", ports[1].index(), false).unwrap();
    router.graph().enable_feature("ip6-unicast", "ip6-not-enabled", ports[1].index(), false).unwrap();
    router.graph().enable_feature(OUTPUT_ARC, "interface-down", ports[1].index(), true).unwrap();
    assert_eq!(interfaces.superpath_of(ports[1].index()).unwrap().taken, Some(IP.name));
}
