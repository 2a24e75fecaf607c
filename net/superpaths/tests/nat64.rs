//! NAT64 as a stage of a superpath: the same random packets of IPv6 hosts, of the IPv4 Internet and between neighbours of one
//! family, through two routers that differ in nothing but `enable_superpath`. Hosts' ports have static bindings, so that both
//! routers give them the same ports.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_fib::{Family, Fib};
use shoal_icmp::limiter::Rate;
use shoal_icmp::{Icmp, Icmp6};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_ip6_nd::{Advertise, Nd, RaConfig};
use shoal_nat64::config::{Inside, Outside};
use shoal_nat64::{Enable, Nat64, Side};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_superpaths::IP_NAT64;
use shoal_testkit::{InjectedPacket, PacketBuilder, Port, Rng, Router, STACK, Twin, Twins};
use shoal_wire::packet::Fragment;
use shoal_wire::{MacAddress, TcpFlags};

const TWINS: Twins = Twins { make: in_one_table, packet: given, flow };
const IN_TABLES: Twins = Twins { make: in_tables, ..TWINS };
/// Where hosts of port 1 are, and where IPv4 packets of port 0 go.
const TABLES: [u32; 2] = [7, 8];
/// Ports 0 and 1 lead to hosts, port 2 to the Internet of both families.
const PORTS: usize = 3;
const WORLD: usize = 2;
/// The address that hosts share.
const SHARED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 100);
/// Packets before the first burst.
const MADE_BEFORE: usize = 2500;

fn station(n: usize) -> MacAddress {
    MacAddress([2, 0xcc, 0, 0, 0, n as u8])
}

fn six(network: usize, host: usize) -> Ipv6Addr {
    format!("2001:db8:{network}::{host}").parse().unwrap()
}

fn four(network: usize, host: usize) -> Ipv4Addr {
    let text = if network == WORLD { format!("192.0.2.{host}") } else { format!("10.0.{network}.{host}") };
    text.parse().unwrap()
}

/// What stands for an address of the Internet.
fn embedded(address: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits((0x64_ff9b_u128 << 96) | u128::from(address.to_bits()))
}

/// One of the ports of a host, which no other host has.
fn port_of(network: usize, host: usize, nth: usize) -> u16 {
    2000 + (network * 100 + host * 10 + nth) as u16
}

fn in_one_table(superpath: bool) -> Twin {
    make(superpath, [0, 0])
}

/// The Internet's packets go by another table than they will when they are of IPv6, or hosts' when they are of IPv4.
fn in_tables(superpath: bool) -> Twin {
    make(superpath, TABLES)
}

fn make(superpath: bool, [table6, table4]: [u32; 2]) -> Twin {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_reassembly::MODULE]);
    modules.extend([&shoal_syslog::MODULE, &shoal_ipfix::MODULE, &shoal_nat64::MODULE]);
    let mut router = Router::new(&modules);
    router.get::<Icmp>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    router.get::<Icmp6>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    let ports: Vec<Port> = (0..PORTS).map(|n| router.pg(n as u32)).collect();
    if table6 != 0 {
        let fib = router.get::<Fib>();
        fib.add_table(Family::Ip6, table6, None).unwrap();
        fib.add_table(Family::Ip4, table4, None).unwrap();
        router.get::<Ip6>().set_table(ports[1].index(), table6).unwrap();
        router.get::<Ip4>().set_table(ports[0].index(), table4).unwrap();
    }
    for (n, port) in ports.iter().enumerate() {
        let ip4 = router.get::<Ip4>();
        ip4.add_address(port.index(), format!("{}/24", four(n, 1)).parse().unwrap()).unwrap();
        // Advertised at random moments.
        let silent = RaConfig { send: Advertise::No, ..RaConfig::default() };
        router.get::<Nd>().set_ra_config(port.index(), silent).unwrap();
        let ip6 = router.get::<Ip6>();
        ip6.add_address(port.index(), format!("{}/64", six(n, 1)).parse().unwrap()).unwrap();
        for host in 2..5 {
            let arp = router.get::<shoal_arp::Neighbours>();
            arp.set((port.index(), four(n, host)), station(n), Origin::Static, FibEntry::Wanted).unwrap();
            let nd = router.get::<shoal_ip6_nd::Neighbours>();
            nd.set((port.index(), six(n, host)), station(n), Origin::Static, FibEntry::Wanted).unwrap();
        }
    }
    translate(&router, &ports, table6);
    router.interfaces().enable_superpath(superpath).unwrap();
    router.advance(std::time::Duration::from_secs(3));
    // Most sessions, made one by one: whether one is made before a packet of the other direction comes depends on how packets meet
    // in frames.
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

fn translate(router: &Router, ports: &[Port], table6: u32) {
    let nat = router.get::<Nat64>();
    nat.enable(Enable::default()).unwrap();
    nat.add_addresses((SHARED, SHARED), None).unwrap();
    for (n, port) in ports.iter().enumerate() {
        let side = if n == WORLD { Side::Outside } else { Side::Inside };
        nat.set_side(port.index(), side, true).unwrap();
    }
    for (network, host, nth) in (0..2).flat_map(|n| (2..5).flat_map(move |h| (0..3).map(move |p| (n, h, p))))
    {
        let port = port_of(network, host, nth);
        for protocol in [1, 6, 17] {
            let inside = Inside { address: six(network, host), port, protocol, table: 0 };
            nat.add_binding(
                if network == 1 { table6 } else { 0 },
                inside,
                Outside { address: SHARED, port, protocol },
            )
            .unwrap();
        }
    }
}

fn ends(rng: &mut Rng, rx: usize) -> ((IpAddr, u16), (IpAddr, u16)) {
    let (network, host, nth) = (rng.below(2), 2 + rng.below(3), rng.below(3));
    let (far, service) = (four(WORLD, 2 + rng.below(3)), *rng.pick(&[53, 443]));
    if rx == WORLD {
        return match rng.below(10) {
            0 => ((far.into(), service), (four(network, host).into(), 9)),
            1 => ((six(WORLD, 2).into(), service), (six(network, host).into(), 9)),
            2 => ((far.into(), service), (SHARED.into(), 9)),
            _ => ((far.into(), service), (SHARED.into(), port_of(network, host, nth))),
        };
    }
    let near = (six(rx, host).into(), port_of(rx, host, nth));
    match rng.below(10) {
        0 => (near, (six(1 - rx, 2).into(), 9)),
        1 => ((four(rx, 2).into(), 7), (four(WORLD, 2).into(), 9)),
        // Another host, by the address that it shares.
        2 => (near, (embedded(SHARED).into(), port_of(network, host, nth))),
        3 => (near, (embedded(four(WORLD, 1)).into(), service)),
        _ => (near, (embedded(far).into(), service)),
    }
}

fn given(rng: &mut Rng, port: &Port, rx: usize) -> InjectedPacket {
    let ((from, sport), (to, dport)) = ends(rng, rx);
    let start = PacketBuilder::ethernet(station(rx), port.mac());
    let hops = *rng.pick(&[1, 2, 64, 64, 64, 64]);
    let is_ip4 = from.is_ipv4();
    let start = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => start.ip4(from, to).ttl(hops),
        (IpAddr::V6(from), IpAddr::V6(to)) => start.ip6(from, to).ttl(hops),
        _ => unreachable!(),
    };
    let start = if is_ip4 && rng.one_in(2) { start.dont_fragment() } else { start };
    let id = if rx == WORLD { dport } else { sport };
    let packet = match rng.below(8) {
        0 if rx == WORLD => start.icmp_echo_reply(id, 1),
        0 => start.icmp6_echo_request(id, 1),
        1 | 2 => {
            let flags = *rng.pick(&[TcpFlags::SYN.0, 0x12, 0x10, 0x10, 0x10, 0x18, 0x11, 0x04]);
            start.tcp(sport, dport, TcpFlags(flags))
        }
        3 if rng.one_in(3) => start.protocol(shoal_wire::IpProtocol(47)),
        _ => start.udp(sport, dport),
    };
    let long = if rng.one_in(12) { 1200 + rng.below(100) } else { rng.below(60) };
    let packet = packet.payload_len(long);
    let packet = match rng.below(20) {
        0 => packet.fragment(8 * rng.below(3) as u16, Fragment::More),
        1 if is_ip4 => packet.options(&[1; 4]),
        _ => packet,
    };
    let mut bytes = packet.build();
    match rng.below(25) {
        0 => bytes.truncate(14 + rng.below(60)),
        // UDP without a checksum.
        1 if is_ip4 && bytes[23] == 17 && bytes[14] == 0x45 && bytes.len() > 42 => bytes[40..42].fill(0),
        // What short frames have behind the packet.
        2 => bytes.extend([0; 7]),
        _ => {}
    }
    InjectedPacket::from(bytes)
}

/// All between two addresses and of one protocol, by its first word. The identification of a packet that may be cut is the number
/// of its buffer.
fn flow(packet: &mut [u8]) -> Vec<u8> {
    let end = packet.len();
    match packet.get(12..14) {
        Some([0x08, 0x00]) if end >= 34 => {
            packet[18..20].fill(0);
            packet[24..26].fill(0);
            if packet[20] & 0x3f != 0 || packet[21] != 0 || packet[23] == 1 {
                return packet.to_vec();
            }
            [&packet[..15], &packet[23..24], &packet[26..end.min(38)]].concat()
        }
        Some([0x86, 0xdd]) if end >= 54 => {
            if matches!(packet[20], 44 | 58) {
                return packet.to_vec();
            }
            [&packet[..15], &packet[20..21], &packet[22..end.min(58)]].concat()
        }
        _ => packet.to_vec(),
    }
}

/// Translated packets, by direction and protocol.
fn translated(router: &Router) -> Vec<u64> {
    let all = ["in2out", "out2in"]
        .into_iter()
        .flat_map(|way| ["tcp", "udp", "icmp", "other", "drops"].map(|what| format!("/nat64/{way}/{what}")));
    all.map(|name| router.counter(&name)).collect()
}

#[test]
fn random_packets_are_translated_on_a_superpath_as_from_node_to_node() {
    let [on_chain, passed] = translates_as_from_node_to_node(&TWINS);
    assert!(passed * 2 < on_chain, "{passed} packets of {on_chain} left it for NAT64's nodes");
}

#[test]
fn random_packets_of_hosts_in_tables_of_their_own_are_translated_as_from_node_to_node() {
    translates_as_from_node_to_node(&IN_TABLES);
}

/// Packets on the superpath, and those that left it for NAT64's nodes.
fn translates_as_from_node_to_node(twins: &Twins) -> [u64; 2] {
    let seed = Rng::seed(20_261_130);
    let (mut on_chain, mut passed, mut done) = (0, 0, 0);
    for n in 0..8 {
        let (plain, fused) = twins.run(seed + n, 60);
        assert_eq!(translated(&plain.router), translated(&fused.router));
        let sessions = |twin: &Twin| {
            let all = twin.router.get::<Nat64>().sessions().unwrap();
            // In which order packets of both directions meet them decides of states.
            all.iter()
                .map(|record| format!("{:?} {:?} {:?}", record.inside, record.outside, record.remote))
                .collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(sessions(&plain), sessions(&fused));
        on_chain += fused.vectors(IP_NAT64.name);
        passed += fused.vectors("nat64-in2out") + fused.vectors("nat64-out2in");
        done += translated(&fused.router).iter().sum::<u64>();
    }
    assert!(on_chain > 5000, "only {on_chain} packets were on the superpath");
    assert!(done > 2000, "only {done} packets were translated");
    [on_chain, passed]
}

#[test]
fn packets_of_a_known_session_pass_no_node_of_nat64() {
    let Twin { mut router, ports, .. } = in_one_table(true);
    for port in &ports {
        let found = router.interfaces().superpath_of(port.index()).unwrap();
        assert_eq!(found.taken, Some(IP_NAT64.name), "{}", port.name());
    }
    let (host, far, port) = (six(0, 2), four(WORLD, 2), port_of(0, 2, 0));
    let start = || PacketBuilder::ethernet(station(0), ports[0].mac()).ip6(host, embedded(far));
    let back = || PacketBuilder::ethernet(station(WORLD), ports[WORLD].mac()).ip4(far, SHARED);
    let all = |router: &Router| {
        ["nat64-in2out", "nat64-out2in", "ip4-lookup", "ip6-lookup", IP_NAT64.name].map(|name| {
            let node = router.graph().node(name).unwrap();
            router.graph().graph_counters().vectors.sum(node.number() as usize)
        })
    };
    for (out, back) in [
        (start().udp(port, 53).build(), back().udp(53, port).build()),
        (start().icmp6_echo_request(port, 1).build(), back().icmp_echo_reply(port, 1).build()),
        (start().tcp(port, 443, TcpFlags(0x10)).build(), back().tcp(443, port, TcpFlags(0x10)).build()),
    ] {
        router.send(&ports[0], &out);
        ports[WORLD].received();
        let [in2out, out2in, lookup4, lookup6, fused] = all(&router);
        for _ in 0..3 {
            router.send(&ports[0], &out);
            let sent = ports[WORLD].received().remove(0);
            assert_eq!((sent[22], &sent[26..34]), (63, &[SHARED.octets(), far.octets()].concat()[..]));
            assert_eq!(shoal_wire::checksum::checksum(&sent[14..34]), 0);
            router.send(&ports[WORLD], &back);
            let sent = ports[0].received().remove(0);
            let both = [embedded(far).octets(), host.octets()].concat();
            assert_eq!((sent[21], &sent[22..54]), (63, &both[..]));
        }
        assert_eq!(all(&router), [in2out, out2in, lookup4, lookup6, fused + 6], "{out:?}");
    }
    // Fragments that wait for others.
    router.advance(std::time::Duration::from_mins(2));
}
