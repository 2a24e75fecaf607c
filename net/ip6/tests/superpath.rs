//! The superpath does what the ordinary nodes do: the same random packets through two routers that differ in
//! nothing but `enable_superpath`, with everything that can be seen from outside compared after each burst.
//!
//! Order: packets of one flow that need the same treatment leave in the same order. Between a packet that stayed
//! on the common way and one that left it there is no promise in either router, because the latter passes more
//! nodes; so flows are told apart by addresses, protocol and extension headers, and what the router itself
//! says (ICMP errors, ARP) is compared without regard to order.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use common::{
    InjectedPacket, MODULES, Toy, address, ip, look_up_in, neighbour, route, route_in, station, table, via,
};
use shoal_arp::Neighbours;
use shoal_arp::table::{FibEntry, Origin};
use shoal_buffer::Flags;
use shoal_fib::{Fib, FibIndex, Path, Source, Via};
use shoal_graph::{ALL_INTERFACES, PacketNode};
use shoal_icmp::limiter::Rate;
use shoal_icmp::{Icmp, Icmp6};
use shoal_interface::{MtuLayer, OUTPUT_ARC};
use shoal_ip4::Ip4;
use shoal_ip6::{Ip6, UNICAST_ARC};
use shoal_pg::CreateInterface;
use shoal_testkit::{PacketBuilder, Port, Rng, Router, Twin, Twins};
use shoal_wire::{EtherType, Ip4Prefix, IpProtocol, MacAddress, TcpFlags};

/// Ports of a router here.
const PORTS: u32 = 8;
/// The port without IPv6.
const NO_IP6: usize = 3;
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
    router.get::<Icmp6>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    router.get::<Fib>().set_flow_seed(7);
    let gso = |n| (n == 1).then_some(1448);
    let port = |n| CreateInterface { id: n, gso_size: gso(n), ..CreateInterface::default() };
    let ports: Vec<Port> = (0..PORTS).map(|n| router.pg_with(&port(n))).collect();
    configure(&router, &ports);
    Twin::new(router, ports)
}

fn configure(router: &Router, ports: &[Port]) {
    let t7 = table(router, 7);
    let t8 = table(router, 8);
    router.get::<Ip6>().set_table(ports[7].index(), 7).unwrap();
    for (n, port) in ports.iter().enumerate() {
        configure_ip4(router, port, n as u8);
        if n == NO_IP6 {
            continue;
        }
        address(router, port, &format!("2001:db8:{n}::1/64"));
        neighbour(router, port, "fe80::2", station(n as u8));
        // Hosts 5 and 6 are not known.
        for host in 2..5 {
            neighbour(router, port, &format!("2001:db8:{n}::{host}"), station(n as u8));
        }
    }
    let interfaces = router.interfaces();
    interfaces.set_mtu(ports[1].index(), MtuLayer::L3, 1500).unwrap();
    interfaces.set_mtu(ports[2].index(), MtuLayer::Ip6, 1280).unwrap();
    interfaces.set_admin(ports[DOWN].index(), false).unwrap();
    for (feature, port) in [(Toy::<0>::NAME, IN_FEATURE), (Toy::<1>::NAME, IN_FEATURE)] {
        router.graph().enable_feature(UNICAST_ARC, feature, ports[port].index(), true).unwrap();
    }
    router.graph().enable_feature(OUTPUT_ARC, Toy::<2>::NAME, ports[OUT_FEATURE].index(), true).unwrap();
    for port in [OUT_FEATURE, IP_OUT_FEATURE] {
        let (arc, toy) = (shoal_ip6::OUTPUT_ARC, Toy::<3>::NAME);
        router.graph().enable_feature(arc, toy, ports[port].index(), true).unwrap();
    }
    for (arc, toy, port) in
        [(shoal_ip6::MULTICAST_ARC, Toy::<4>::NAME, 1), (shoal_ip6::LOCAL_ARC, Toy::<5>::NAME, 2)]
    {
        router.graph().enable_feature(arc, toy, ports[port].index(), true).unwrap();
    }
    for (arc, toy) in [(shoal_ip6::PUNT_ARC, Toy::<6>::NAME), (shoal_ip6::DROP_ARC, Toy::<7>::NAME)] {
        router.graph().enable_feature(arc, toy, ALL_INTERFACES, true).unwrap();
    }
    route(router, "2001:100::/48", via("2001:db8:1::2", &ports[1]));
    route(router, "2001:100:1::/48", via("2001:db8:2::2", &ports[2]));
    route(router, "2001:100:2::/48", Via::Drop);
    route(router, "2001:100:3::/48", Via::Unreachable);
    route(router, "2001:100:4::/48", Via::Prohibit);
    route(router, "2001:100:5::/48", Via::Local { interface: None, address: ip("2001:100:5::1").into() });
    route(router, "2001:100:6::/48", look_up_in(t7));
    route_in(router, t7, "2001:100:6::/49", via("2001:db8:7::2", &ports[7]));
    route_in(router, t7, "2001:100:6:8000::/49", look_up_in(t8));
    route_in(router, t8, "::/0", look_up_in(t7));
    route(router, "2001:100:7::/48", via("2001:db8::9", &ports[0]));
    route(router, "2001:100:8::/48", via("2001:db8:4::2", &ports[DOWN]));
    route(router, "2001:100:9::/48", via("2001:db8::2", &ports[0]));
    route(router, "2001:100:a::/48", via("2001:db8:6::2", &ports[OUT_FEATURE]));
    route(router, "2001:100:b::/48", via("2001:db8:5::2", &ports[IN_FEATURE]));
    route(router, "2001:100:c::/48", Via::Punt);
    let both = [via("2001:db8:1::2", &ports[1]), via("2001:db8:2::3", &ports[2])];
    common::route_paths(router, "2001:100:d::/48", &both);
}

/// A little IPv4, so that frames are mixed: 10.1.0.0/16 is behind port 1.
fn configure_ip4(router: &Router, port: &Port, n: u8) {
    let prefix = |text: &str| text.parse::<Ip4Prefix>().unwrap();
    router.get::<Ip4>().add_address(port.index(), prefix(&format!("10.0.{n}.1/24"))).unwrap();
    let host = [10, 0, n, 2].into();
    let neighbours = router.get::<Neighbours>();
    neighbours.set((port.index(), host), station(n), Origin::Static, FibEntry::Wanted).unwrap();
    if n == 1 {
        let path = Path::next_hop(host, port.index());
        router.get::<Fib>().add(FibIndex::DEFAULT, prefix("10.1.0.0/16"), Source::Cli, &[path]).unwrap();
    }
}

fn source(rng: &mut Rng, rx: usize) -> std::net::Ipv6Addr {
    match rng.below(12) {
        0 => ip(rng.pick::<&str>(&["::", "::1", "ff02::1", "::ffff:10.0.0.1", "fec0::1"])),
        1 => std::net::Ipv6Addr::from_bits(u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())),
        2 => ip("fe80::2"),
        _ => ip(&format!("2001:db8:{rx}::{}", 2 + rng.below(3))),
    }
}

fn destination(rng: &mut Rng) -> std::net::Ipv6Addr {
    match rng.below(16) {
        0 => ip(rng.pick::<&str>(&["::", "::1", "ff02::1", "ff05::2", "ff0e::7", "fe80::1", "fe80::2"])),
        1 => std::net::Ipv6Addr::from_bits(u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())),
        // Hosts of connected networks: known, unknown, the router itself, all routers.
        2..=4 => ip(&format!("2001:db8:{}::{}", rng.below(9), rng.pick(&[0, 1, 2, 3, 5, 6]))),
        5..=9 => ip(&format!("2001:100::{}:{}", rng.below(4), rng.below(4))),
        _ => ip(&format!("2001:100:{:x}:{}::{}", rng.below(14), rng.pick(&["0", "9000"]), rng.below(3))),
    }
}

fn mac(rng: &mut Rng, port: &Port) -> MacAddress {
    match rng.below(12) {
        0 => MacAddress::BROADCAST,
        1 => MacAddress([0x33, 0x33, 0, 0, 0, 5]),
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
        1 => packet.icmp6_echo_request(rng.below(3) as u16, 1),
        2 => packet.protocol(IpProtocol(rng.next_u64() as u8)),
        _ => packet.udp(1000, 2000 + rng.below(3) as u16),
    }
}

/// An extension header, right or not.
fn extension(rng: &mut Rng, packet: PacketBuilder) -> PacketBuilder {
    let protocol = *rng.pick(&[
        IpProtocol::IP6_HOP_BY_HOP_OPTIONS,
        IpProtocol::IP6_HOP_BY_HOP_OPTIONS,
        IpProtocol::IP6_DESTINATION_OPTIONS,
        IpProtocol::IPV6_ROUTE,
        IpProtocol::IPV6_FRAGMENTATION,
    ]);
    let body = match rng.below(6) {
        0 => vec![1, 4, 0, 0, 0, 0],
        1 => vec![*rng.pick(&[0x1e, 0x5e, 0x9e, 0xde]), 4, 0, 0, 0, 0],
        2 => vec![5, 2, 0, 0, 1, 0],
        3 => vec![0; *rng.pick(&[6, 46])],
        _ => {
            let n = 6 + 8 * rng.below(4);
            rng.bytes(n)
        }
    };
    packet.ip6_ext(protocol, &body)
}

/// What is wrong with a packet, if anything.
fn damage(rng: &mut Rng, packet: PacketBuilder) -> PacketBuilder {
    match rng.below(24) {
        0 => packet.ip_version(rng.below(16) as u8),
        1 => packet.ip_total_len(rng.next_u64() as u16),
        2 => packet.ip_total_len(rng.below(60) as u16),
        3..=5 => extension(rng, packet),
        6 => {
            let n = rng.below(12);
            (0..n).fold(packet, |p, _| extension(rng, p))
        }
        7 => packet.udp_len(rng.below(100) as u16),
        8 => packet.l4_checksum(rng.next_u64() as u16),
        9 => packet.l4_checksum(0),
        _ => packet,
    }
}

fn frame(rng: &mut Rng, port: &Port, rx: usize) -> Vec<u8> {
    let (src, dst) = (station(rx as u8), mac(rng, port));
    let (from, to) = (source(rng, rx), destination(rng));
    let start = PacketBuilder::ethernet(src, dst);
    let start = match rng.below(30) {
        0 => start.vlan(rng.below(4096) as u16),
        1 => start.ether_type(EtherType(rng.next_u64() as u16)),
        2 => start.ether_type(EtherType::IP4),
        3 => PacketBuilder::ethernet([3, 0, 0, 0, 0, 1], dst),
        _ => start,
    };
    let ttl = *rng.pick(&[0, 1, 1, 2, 64, 64, 64, 255]);
    let n = payload(rng);
    let packet = match rng.below(6) {
        0 => start.ip4([10, 0, rx as u8, 2], [10, 1, 0, rng.below(3) as u8]).udp(1000, 2000),
        _ => transport(rng, start.ip6(from, to)),
    };
    let pad = *rng.pick(&[0, 0, 60, 80, 100]);
    let mut bytes = damage(rng, packet.ttl(ttl).payload_len(n).pad_to(pad)).build();
    match rng.below(12) {
        0 => bytes.truncate(rng.below(90)),
        1 => {
            let at = rng.below(bytes.len().min(60));
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
        1 => vec![14 + 40],
        _ => Vec::new(),
    };
    // Where the transport header of a packet without extension headers lies.
    given.l4 = 54;
    given.checksum_offset = *rng.pick(&[6, 16]);
    given.flags = match rng.below(10) {
        0 => Flags::L4_CHECKSUM_OFFLOAD,
        1 => Flags::L4_CHECKSUM_OK,
        2 => Flags::L4_CHECKSUM_OFFLOAD.with(Flags::GSO).with(Flags::GSO_TCP6),
        _ => Flags::default(),
    };
    if given.flags.has(Flags::GSO) {
        (given.gso_size, given.gso_header) = (*rng.pick(&[500, 1208, 1220, 1428, 9000]), 20);
    }
    given
}

/// Which packets keep their order: see the top of the file.
fn flow(packet: &mut [u8]) -> Vec<u8> {
    // RFC 7739: hosts cannot predict the identifications of what a router cuts of its own.
    if packet.get(20) == Some(&IpProtocol::IPV6_FRAGMENTATION.0)
        && let Some(id) = packet.get_mut(58..62)
    {
        id.fill(0);
    }
    let of = |range: std::ops::Range<usize>| packet.get(range).unwrap_or_default();
    if of(12..14) != [0x86, 0xdd] {
        return [of(0..15), of(20..24), of(26..34)].concat();
    }
    if of(20..21) == [58] && packet.get(54).is_none_or(|kind| *kind < 128) {
        return packet.to_vec();
    }
    [of(0..15), of(20..21), of(22..54)].concat()
}

#[test]
fn gives_the_same_packets_counters_and_drops_as_the_ordinary_nodes() {
    let seed = Rng::seed(20_251_122);
    for n in 0..4 {
        let (plain, fused) = TWINS.run(seed + n, 200);
        assert_eq!(plain.vectors("ip-superpath"), 0, "the ordinary router uses no superpath");
        assert!(fused.vectors("ip-superpath") > 1000, "the other one does");
        if n == 0 {
            every_case_was_met(&plain.router);
        }
    }
}

/// A test of many cases is worth what it meets.
fn every_case_was_met(router: &Router) {
    let met = router.errors();
    for toy in common::TOY_NAMES {
        assert!(router.error(toy, "a toy saw the packet") > 0, "{toy} met no packet");
    }
    let nodes = ["ip6-input", "ip6-hop-by-hop", "ip6-rewrite", "ip6-drop", "ip6-lookup"];
    // A fused node cannot run out of headroom or of a header that was checked before it.
    let never = [
        "ip6-rewrite: ip6 header is cut short",
        "ip6-rewrite: no headroom for the new header",
        "ip6-lookup: ip6 header is cut short",
        "ip6-rewrite: next hop went away while the packet was on its way",
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
    let plain_header = PacketBuilder::ethernet(station(0), plain.ports[0].mac())
        .ip6(ip("2001:db8::2"), ip("2001:100::1"))
        .udp(1, 2)
        .payload_len(30);
    let whole = plain_header.clone().ip6_ext(IpProtocol::IP6_HOP_BY_HOP_OPTIONS, &[1, 4, 0, 0, 0, 0]).build();
    let plain_header = plain_header.build();
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
    assert!(plain.vectors("ip6-rewrite") > 0);
}

#[test]
fn traced_packets_take_the_ordinary_nodes_and_tell_their_way() {
    let mut world = world(true);
    let frame = PacketBuilder::ethernet(station(0), world.ports[0].mac())
        .ip6(ip("2001:db8::2"), ip("2001:100::1"))
        .udp(1, 2)
        .payload_len(30)
        .build();
    world.router.trace_add(common::HAND, 2);
    for _ in 0..5 {
        world.givers[0].give(frame.clone());
    }
    world.router.run();
    let way =
        [common::HAND, "ethernet-input", "ip6-input", "ip6-lookup", "ip6-rewrite", "pg1-output", "pg1-tx"];
    assert_eq!(world.router.trace_paths(), [way, way]);
    assert_eq!(world.vectors("ip-superpath"), 0, "the whole frame takes the ordinary way");
    assert_eq!(world.ports[1].received().len(), 5);
    world.givers[0].give(frame);
    world.router.run();
    assert_eq!(world.vectors("ip-superpath"), 1, "without a wish for traces the superpath is back");
    assert_eq!(world.ports[1].received().len(), 1);
}

#[test]
fn an_interface_without_ip6_keeps_to_the_superpath_of_ip4() {
    let mut world = world(true);
    let before = (world.vectors("ip4-superpath"), world.vectors("ip-superpath"));
    let frame = PacketBuilder::ethernet(station(3), world.ports[NO_IP6].mac());
    world.givers[NO_IP6].give(frame.clone().ip4([10, 0, 3, 2], [10, 1, 0, 1]).udp(1, 2).build());
    world.givers[NO_IP6].give(frame.ip6(ip("2001:db8:3::2"), ip("2001:100::1")).udp(1, 2).build());
    world.router.run();
    let after = (world.vectors("ip4-superpath"), world.vectors("ip-superpath"));
    assert_eq!(after, (before.0 + 2, before.1));
    assert_eq!(world.router.error("ip6-not-enabled", "ip6 is not enabled on the interface"), 1);
    assert_eq!(world.ports[1].received().len(), 1);
}

#[test]
fn features_of_one_family_leave_the_other_on_the_superpath() {
    let mut world = world(true);
    let (port, giver) = (&world.ports[IN_FEATURE], &world.givers[IN_FEATURE]);
    let frame = PacketBuilder::ethernet(station(5), port.mac());
    let lookups = world.vectors("ip4-lookup");
    giver.give(frame.clone().ip4([10, 0, 5, 2], [10, 1, 0, 1]).udp(1, 2).build());
    giver.give(frame.ip6(ip("2001:db8:5::2"), ip("2001:100::1")).udp(1, 2).build());
    world.router.run();
    assert_eq!(world.vectors("ip4-lookup"), lookups, "IPv4 has no feature there");
    assert_eq!(world.router.error("toy-first", "a toy saw the packet"), 1);
    assert_eq!(world.ports[1].received().len(), 2);
}
