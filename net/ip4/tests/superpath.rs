//! The superpath does what the ordinary nodes do: the same random packets through two routers that differ in
//! nothing but `enable_superpath`, with everything that can be seen from outside compared after each burst.
//!
//! Order: packets of one flow that need the same treatment leave in the same order. Between a packet that stayed
//! on the common way and one that left it there is no promise in either router, because the latter passes more
//! nodes; so flows are told apart by addresses, protocol, options and fragmentation, and what the router itself
//! says (ICMP errors, ARP) is compared without regard to order.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use common::{
    InjectedPacket, MODULES, Toy, address, look_up_in, neighbour, prefix, route, route_in, station, table,
    via,
};
use shoal_buffer::Flags;
use shoal_fib::{Family, Fib, FibIndex, FlowFields, Path, Source, Via};
use shoal_graph::{ALL_INTERFACES, PacketNode};
use shoal_icmp::Icmp;
use shoal_icmp::limiter::Rate;
use shoal_interface::{MtuLayer, OUTPUT_ARC};
use shoal_ip4::{Ip4, UNICAST_ARC};
use shoal_pg::CreateInterface;
use shoal_testkit::{PacketBuilder, Port, Rng, Router, Twin, Twins};
use shoal_wire::packet::Fragment;
use shoal_wire::{EtherType, IpProtocol, MacAddress, TcpFlags};

/// Ports of a router here.
const PORTS: u32 = 8;
/// The port without IPv4.
const NO_IP4: usize = 3;
/// The port that is down.
const DOWN: usize = 4;
/// The port with features on the input arc, and the one with a feature on the output arc.
const IN_FEATURE: usize = 5;
const OUT_FEATURE: usize = 6;
/// The port with a feature behind the rewrite and no other.
const IP_OUT_FEATURE: usize = 7;

/// The two routers of a test.
const TWINS: Twins = Twins { make: world, packet: given, flow };

fn world(superpath: bool) -> Twin {
    let mut router = Router::new(MODULES);
    router.interfaces().enable_superpath(superpath).unwrap();
    router.get::<Icmp>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    let gso = |n| (n == 1).then_some(1448);
    let port = |n| CreateInterface { id: n, gso_size: gso(n), ..CreateInterface::default() };
    let ports: Vec<Port> = (0..PORTS).map(|n| router.pg_with(&port(n))).collect();
    configure(&router, &ports);
    Twin::new(router, ports)
}

/// A router with so many routes that lookups are done ahead.
fn large_world(superpath: bool) -> Twin {
    let twin = world(superpath);
    let fib = twin.router.get::<Fib>();
    let (one, two) = (via("10.0.1.2", &twin.ports[1]), via("10.0.2.2", &twin.ports[2]));
    for n in 0..600_u32 {
        let to = prefix(&format!("{}.{}.{}.0/24", 40 + n / 256, n % 256, n % 3));
        fib.add(FibIndex::DEFAULT, to, Source::Cli, &[if n % 2 == 0 { one } else { two }]).unwrap();
    }
    fib.add(FibIndex::DEFAULT, prefix("40.1.1.7/32"), Source::Cli, &[one, two]).unwrap();
    twin
}

fn configure(router: &Router, ports: &[Port]) {
    let t7 = table(router, 7);
    let t8 = table(router, 8);
    router.get::<Ip4>().set_table(ports[7].index(), 7).unwrap();
    for (n, port) in ports.iter().enumerate().filter(|(n, _)| *n != NO_IP4) {
        address(router, port, &format!("10.0.{n}.1/24"));
        // All who send are known, so that no answer has to wait: which packets wait and which are too many depends
        // on their order. Hosts 5 and 6 are not known.
        for host in 2..5 {
            neighbour(router, port, &format!("10.0.{n}.{host}"), station(n as u8));
        }
    }
    let interfaces = router.interfaces();
    interfaces.set_mtu(ports[1].index(), MtuLayer::L3, 1500).unwrap();
    interfaces.set_mtu(ports[2].index(), MtuLayer::Ip4, 576).unwrap();
    interfaces.set_admin(ports[DOWN].index(), false).unwrap();
    router.get::<Ip4>().set_directed_broadcast(ports[1].index(), true).unwrap();
    for (feature, port) in [(Toy::<0>::NAME, IN_FEATURE), (Toy::<1>::NAME, IN_FEATURE)] {
        router.graph().enable_feature(UNICAST_ARC, feature, ports[port].index(), true).unwrap();
    }
    router.graph().enable_feature(OUTPUT_ARC, Toy::<2>::NAME, ports[OUT_FEATURE].index(), true).unwrap();
    for port in [OUT_FEATURE, IP_OUT_FEATURE] {
        let (arc, toy) = (shoal_ip4::OUTPUT_ARC, Toy::<3>::NAME);
        router.graph().enable_feature(arc, toy, ports[port].index(), true).unwrap();
    }
    for (arc, toy, port) in
        [(shoal_ip4::MULTICAST_ARC, Toy::<4>::NAME, 1), (shoal_ip4::LOCAL_ARC, Toy::<5>::NAME, 2)]
    {
        router.graph().enable_feature(arc, toy, ports[port].index(), true).unwrap();
    }
    for (arc, toy) in [(shoal_ip4::PUNT_ARC, Toy::<6>::NAME), (shoal_ip4::DROP_ARC, Toy::<7>::NAME)] {
        router.graph().enable_feature(arc, toy, ALL_INTERFACES, true).unwrap();
    }
    route(router, "20.0.0.0/16", via("10.0.1.2", &ports[1]));
    route(router, "20.1.0.0/16", via("10.0.2.2", &ports[2]));
    route(router, "20.2.0.0/16", Via::Drop);
    route(router, "20.3.0.0/16", Via::Unreachable);
    route(router, "20.4.0.0/16", Via::Prohibit);
    route(router, "20.5.0.0/16", Via::Local { interface: None, address: [20, 5, 0, 1].into() });
    route(router, "20.6.0.0/16", look_up_in(t7));
    route_in(router, t7, "20.6.0.0/17", via("10.0.7.2", &ports[7]));
    route_in(router, t7, "20.6.128.0/17", look_up_in(t8));
    route_in(router, t8, "0.0.0.0/0", look_up_in(t7));
    route(router, "20.7.0.0/16", via("10.0.0.9", &ports[0]));
    route(router, "20.8.0.0/16", via("10.0.4.2", &ports[DOWN]));
    route(router, "20.9.0.0/16", via("10.0.0.2", &ports[0]));
    route(router, "20.10.0.0/16", via("10.0.6.2", &ports[OUT_FEATURE]));
    route(router, "20.11.0.0/16", via("10.0.5.2", &ports[IN_FEATURE]));
    route(router, "20.12.0.0/16", Via::Punt);
    // Several ways: up, by weight; one of them not known, one down; through other routes; in another table.
    let fib = router.get::<Fib>();
    fib.set_flow_seed(7);
    let balance = |to: &str, paths: &[Path]| {
        fib.add(FibIndex::DEFAULT, prefix(to), Source::Cli, paths).unwrap();
    };
    let two = [via("10.0.1.2", &ports[1]), via("10.0.2.2", &ports[2]).weight(3)];
    balance("20.13.0.0/16", &two);
    balance(
        "20.14.0.0/16",
        &[via("10.0.1.3", &ports[1]), via("10.0.0.8", &ports[0]), via("10.0.4.2", &ports[DOWN])],
    );
    let recursive = |to: &str| Path::recursive(common::ip(to), FibIndex::DEFAULT);
    balance("20.15.0.0/16", &[recursive("20.13.0.1"), recursive("20.0.0.1"), look_up_in(t7)]);
    balance("20.16.0.0/16", &[recursive("20.13.0.1")]);
    balance("20.17.0.0/16", &[recursive("20.0.0.1")]);
    fib.add(t7, prefix("20.15.0.0/16"), Source::Cli, &two).unwrap();
    fib.set_flow_fields(Family::Ip4, t7, FlowFields::SRC.with(FlowFields::SYMMETRIC)).unwrap();
    assert_eq!(prefix("20.0.0.0/16").len(), 16);
}

fn source(rng: &mut Rng, rx: usize) -> [u8; 4] {
    match rng.below(12) {
        0 => {
            *rng.pick(&[[0, 0, 0, 0], [0, 1, 2, 3], [127, 0, 0, 1], [224, 0, 0, 1], [255; 4], [240, 0, 0, 1]])
        }
        1 => (rng.next_u64() as u32).to_be_bytes(),
        _ => [10, 0, rx as u8, 2 + rng.below(3) as u8],
    }
}

fn destination(rng: &mut Rng) -> [u8; 4] {
    match rng.below(16) {
        0 => *rng.pick(&[[0; 4], [255; 4], [127, 0, 0, 1], [224, 0, 0, 5], [250, 1, 1, 1]]),
        1 => (rng.next_u64() as u32).to_be_bytes(),
        // Hosts of connected networks: known, unknown, the router itself, network and broadcast address.
        2..=4 => [10, 0, rng.below(9) as u8, *rng.pick(&[0, 1, 2, 3, 5, 6, 255])],
        5 => [40 + rng.below(3) as u8, rng.below(8) as u8, rng.below(3) as u8, *rng.pick(&[1, 7])],
        6..=9 => [20, 0, rng.below(4) as u8, rng.below(4) as u8],
        _ => [20, rng.below(18) as u8, *rng.pick(&[0, 200]), rng.below(3) as u8],
    }
}

fn mac(rng: &mut Rng, port: &Port) -> MacAddress {
    match rng.below(12) {
        0 => MacAddress::BROADCAST,
        1 => MacAddress([1, 0, 0x5e, 0, 0, 5]),
        2 => station(77),
        _ => port.mac(),
    }
}

fn payload(rng: &mut Rng) -> usize {
    match rng.below(10) {
        0 => 500 + rng.below(100),
        1 => 1400 + rng.below(200),
        2 => 2000 + rng.below(100),
        3 => rng.below(9000),
        _ => rng.below(80),
    }
}

fn transport(rng: &mut Rng, packet: PacketBuilder) -> PacketBuilder {
    match rng.below(6) {
        0 => packet.tcp(80, 1000 + rng.below(3) as u16, TcpFlags(rng.next_u64() as u8)),
        1 => packet.icmp_echo_request(rng.below(3) as u16, 1),
        2 => packet.protocol(IpProtocol(rng.next_u64() as u8)),
        _ => packet.udp(1000, 2000 + rng.below(3) as u16),
    }
}

fn options(rng: &mut Rng) -> Vec<u8> {
    match rng.below(5) {
        0 => vec![1; 4],
        // Record route, then router alert.
        1 => vec![7, 7, 4, 0, 0, 0, 0, 148, 4, 0, 0, 0],
        2 => vec![131, 7, 4, 0, 0, 0, 0],
        3 => vec![7, 200, 4, 0],
        _ => {
            let n = rng.below(41);
            rng.bytes(n)
        }
    }
}

/// What is wrong with a packet, if anything.
fn damage(rng: &mut Rng, packet: PacketBuilder) -> PacketBuilder {
    match rng.below(30) {
        0 => packet.ip_version(rng.below(16) as u8),
        1 => packet.ihl(rng.below(16) as u8),
        2 => packet.ip_total_len(rng.next_u64() as u16),
        3 => packet.ip_total_len(rng.below(60) as u16),
        4 => packet.ip_checksum(rng.next_u64() as u16),
        5 => packet.fragment(8 * rng.below(3) as u16, Fragment::More),
        6 => packet.fragment(rng.next_u64() as u16, Fragment::Last),
        7 | 8 => {
            let options = options(rng);
            packet.options(&options)
        }
        9 => packet.udp_len(rng.below(100) as u16),
        10 => packet.l4_checksum(rng.next_u64() as u16),
        11..=13 => packet.dont_fragment(),
        _ => packet,
    }
}

fn frame(rng: &mut Rng, port: &Port, rx: usize) -> Vec<u8> {
    let (src, dst) = (station(rx as u8), mac(rng, port));
    let (from, to) = (source(rng, rx), destination(rng));
    if let [10, 0, _, 5 | 6] | [20, 7 | 14, ..] = to {
        // No host has these addresses or next hops. Which packets wait for them, and which are too many, depends on
        // their order; so all come in by one port, and nothing leads one of them by other nodes than the next.
        let to = if rx == 0 { to } else { [10, 0, 1, 2] };
        let from = [10, 0, rx as u8, 2];
        return PacketBuilder::ethernet(src, port.mac())
            .ip4(from, to)
            .udp(1000, 2000)
            .payload_len(30)
            .build();
    }
    let start = PacketBuilder::ethernet(src, dst);
    let start = match rng.below(30) {
        0 => start.vlan(rng.below(4096) as u16),
        1 => start.vlan(5).vlan(6),
        2 => return PacketBuilder::arp_request(src, from, [10, 0, rx as u8, 1]).build(),
        3 => {
            // Of a host that is known: when one that packets wait for answers, what it releases depends on their order.
            return PacketBuilder::arp_reply(src, [10, 0, rx as u8, 2 + rng.below(3) as u8], port.mac(), to)
                .build();
        }
        4 => start.ether_type(EtherType(rng.next_u64() as u16)),
        5 => start.ether_type(EtherType::IP6),
        6 => PacketBuilder::ethernet([3, 0, 0, 0, 0, 1], dst),
        7 => PacketBuilder::ethernet([3, 0, 0, 0, 0, 1], dst).ether_type(EtherType(0x88b5)),
        _ => start,
    };
    let ttl = *rng.pick(&[0, 1, 1, 2, 64, 64, 64, 255]);
    let n = payload(rng);
    let packet = transport(rng, start.ip4(from, to).ttl(ttl).payload_len(n));
    let pad = *rng.pick(&[0, 0, 60, 64, 100]);
    let mut bytes = damage(rng, packet.pad_to(pad)).build();
    match rng.below(12) {
        0 => bytes.truncate(rng.below(70)),
        1 => {
            let at = rng.below(bytes.len().min(40));
            bytes[at] ^= 1 << rng.below(8);
        }
        2 => *bytes.last_mut().unwrap() = common::DROPPED_BYTE,
        _ => {}
    }
    bytes
}

/// A packet with what drivers say of it.
fn given(rng: &mut Rng, port: &Port, rx: usize) -> InjectedPacket {
    let mut given = InjectedPacket::from(frame(rng, port, rx));
    given.cuts = match rng.below(6) {
        0 => (0..rng.below(4)).map(|_| rng.below(100)).collect(),
        1 => vec![14 + 20],
        _ => Vec::new(),
    };
    // Where the transport header of a packet without options lies.
    given.l4 = 34;
    given.checksum_offset = *rng.pick(&[6, 16]);
    given.flags = match rng.below(10) {
        0 => Flags::L4_CHECKSUM_OFFLOAD,
        1 => Flags::L4_CHECKSUM_OK,
        2 => Flags::L4_CHECKSUM_OFFLOAD.with(Flags::GSO).with(Flags::GSO_TCP4),
        _ => Flags::default(),
    };
    if given.flags.has(Flags::GSO) {
        (given.gso_size, given.gso_header) = (*rng.pick(&[500, 1448, 1460, 9000]), 40);
    }
    given
}

/// Which packets keep their order: see the top of the file.
fn flow(packet: &mut [u8]) -> Vec<u8> {
    let of = |range: std::ops::Range<usize>| packet.get(range).unwrap_or_default();
    let icmp_error = of(23..24) == [1] && [3, 5, 11, 12].iter().any(|kind| of(34..35) == [*kind]);
    if icmp_error || of(12..14) == [8, 6] {
        return packet.to_vec();
    }
    let fragment = of(20..22).iter().enumerate().any(|(n, b)| b & [0x3f, 0xff][n] != 0);
    [of(0..15), of(23..24), of(26..34), &[u8::from(fragment)]].concat()
}

#[test]
fn gives_the_same_packets_counters_and_drops_as_the_ordinary_nodes() {
    let seed = Rng::seed(20_240_607);
    for n in 0..4 {
        let (plain, fused) = TWINS.run(seed + n, 200);
        assert_eq!(plain.vectors("ip4-superpath"), 0, "the ordinary router uses no superpath");
        assert!(fused.vectors("ip4-superpath") > 1000, "the other one does");
        if n == 0 {
            every_case_was_met(&plain.router);
        }
    }
}

#[test]
fn gives_the_same_packets_counters_and_drops_in_large_tables() {
    let seed = Rng::seed(20_261_122);
    let (_, fused) = Twins { make: large_world, ..TWINS }.run(seed, 200);
    assert!(fused.vectors("ip4-superpath") > 1000, "the other one does");
    let trie = fused.router.get::<Fib>().tables();
    let reader = shoal_infra::Reader::register();
    assert!(trie.trie(FibIndex::DEFAULT, reader.guard()).unwrap().reach() > 512 << 10, "lookups are not far");
}

/// A test of many cases is worth what it meets.
fn every_case_was_met(router: &Router) {
    let met = router.errors();
    for toy in common::TOY_NAMES {
        assert!(router.error(toy, "a toy saw the packet") > 0, "{toy} met no packet");
    }
    let nodes =
        ["ethernet-input", "ip4-input", "ip4-options", "ip4-rewrite", "ip4-frag", "ip4-drop", "ip4-lookup"];
    // A fused node cannot run out of headroom or of a header that was checked before it.
    let never = [
        "ip4-rewrite: ip4 header is cut short",
        "ip4-rewrite: no headroom for the new header",
        "ip4-lookup: ip4 header is cut short",
        "ip4-rewrite: next hop went away while the packet was on its way",
        "ip4-frag: no buffer for a fragment",
        "ip4-frag: fragment ends beyond the longest packet",
        "ip4-frag: packet or MTU too short to cut",
        "ethernet-input: interface is down",
        // Nothing is counted there, as in VPP.
        "ethernet-input: no error",
        // There are no sub-interfaces.
        "ethernet-input: subinterface down",
        // ARP is always there.
        "ip4-drop: no module finds neighbours on the link",
    ];
    for (node, counter) in router.graph().error_counters() {
        let name = format!("{node}: {}", counter.description);
        let wanted = nodes.contains(&node.as_str()) && !never.contains(&name.as_str());
        assert!(!wanted || met.iter().any(|(n, _)| *n == name), "no packet met {name}");
    }
}

#[test]
fn packets_cut_short_at_any_byte_fare_the_same() {
    let (mut plain, mut fused) = (world(false), world(true));
    let whole = PacketBuilder::ethernet(station(0), plain.ports[0].mac())
        .ip4([10, 0, 0, 2], [20, 0, 0, 1])
        .options(&[1, 1, 1, 0])
        .udp(1, 2)
        .payload_len(30)
        .build();
    let plain_header = PacketBuilder::ethernet(station(0), plain.ports[0].mac())
        .ip4([10, 0, 0, 2], [20, 0, 0, 1])
        .udp(1, 2)
        .payload_len(30)
        .build();
    for whole in [whole, plain_header] {
        for n in 0..=whole.len() {
            for cut in [n, n / 2, 14, 20] {
                let given = InjectedPacket { cuts: vec![cut], ..InjectedPacket::from(whole[..n].to_vec()) };
                plain.givers[0].give(given.clone());
                fused.givers[0].give(given);
            }
            plain.router.run();
            fused.router.run();
            TWINS.compare(&mut plain, &mut fused, &format!("{n} bytes"));
        }
    }
    assert!(plain.vectors("ip4-rewrite") > 0);
}

#[test]
fn traced_packets_take_the_ordinary_nodes_and_tell_their_way() {
    let mut world = world(true);
    let frame = PacketBuilder::ethernet(station(0), world.ports[0].mac())
        .ip4([10, 0, 0, 2], [20, 0, 0, 1])
        .udp(1, 2)
        .payload_len(30)
        .build();
    world.router.trace_add(common::HAND, 2);
    for _ in 0..5 {
        world.givers[0].give(frame.clone());
    }
    world.router.run();
    let way =
        [common::HAND, "ethernet-input", "ip4-input", "ip4-lookup", "ip4-rewrite", "pg1-output", "pg1-tx"];
    assert_eq!(world.router.trace_paths(), [way, way]);
    assert_eq!(world.vectors("ip4-superpath"), 0, "the whole frame takes the ordinary way");
    assert_eq!(world.ports[1].received().len(), 5);
    world.givers[0].give(frame);
    world.router.run();
    assert_eq!(world.vectors("ip4-superpath"), 1, "without a wish for traces the superpath is back");
    assert_eq!(world.ports[1].received().len(), 1);
}

#[test]
fn is_taken_only_where_ip4_is_enabled_and_the_frames_are_ethernet() {
    let mut world = world(true);
    let before = world.vectors("ip4-superpath");
    let frame = PacketBuilder::ethernet(station(3), world.ports[NO_IP4].mac())
        .ip4([10, 0, 3, 2], [20, 0, 0, 1])
        .udp(1, 2)
        .build();
    world.givers[NO_IP4].give(frame);
    world.router.run();
    assert_eq!(world.vectors("ip4-superpath"), before);
    assert_eq!(world.router.error("ip4-not-enabled", "ip4 is not enabled on the interface"), 1);
}

#[test]
fn flows_share_several_ways_by_weight_and_stay_on_the_superpath() {
    let mut world = world(true);
    let before = world.vectors("ip4-lookup");
    for n in 0..1000u16 {
        let frame = PacketBuilder::ethernet(station(0), world.ports[0].mac())
            .ip4([10, 0, 0, 2], [20, 13, (n / 200) as u8, n as u8])
            .udp(1000 + n, 2000)
            .payload_len(30)
            .build();
        world.givers[0].give(frame);
    }
    world.router.run();
    assert_eq!(world.vectors("ip4-lookup"), before, "the ordinary lookup had nothing to do");
    assert!(world.vectors("ip4-superpath") >= 1000);
    let (one, three) = (world.ports[1].received().len(), world.ports[2].received().len());
    assert_eq!(one + three, 1000);
    // A quarter, with a deviation of 14.
    assert!((180..320).contains(&one), "{one} of 1000");
}
