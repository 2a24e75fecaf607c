//! MAP as a stage of a superpath: the same random packets of customers, of the IPv4 Internet and between neighbours of one family,
//! through two routers that differ in nothing but `enable_superpath`, for tunnels and for translation.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use shoal_fib::{Fib, FibIndex, Path, Source};
use shoal_icmp::limiter::Rate;
use shoal_icmp::{Icmp, Icmp6};
use shoal_ip6::Ip6;
use shoal_ip6_nd::{Advertise, Nd, RaConfig};
use shoal_map::domain::{Domain, Parameters};
use shoal_map::{Map, Mode};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_superpaths::{IP_MAP_E, IP_MAP_T};
use shoal_testkit::{InjectedPacket, PacketBuilder, Port, Rng, Router, STACK, Twin, Twins};
use shoal_wire::packet::Fragment;
use shoal_wire::{IpProtocol, MacAddress, TcpFlags};

/// Port 0 leads to customers, port 1 to the Internet of both families.
const WORLD: usize = 1;
const PORTS: usize = 2;
/// Of whatever address.
const ETHERNET: usize = 14;

const TRANSLATE: Twins = Twins { make: translate, packet: translated, flow };
const TUNNEL: Twins = Twins { make: tunnel, packet: tunnelled, flow };

fn station(n: usize) -> MacAddress {
    MacAddress([2, 0xcc, 0, 0, 0, n as u8])
}

fn six(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn near6(network: usize, host: usize) -> Ipv6Addr {
    six(&format!("2001:db8:{network}::{host}"))
}

fn near4(network: usize, host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, network as u8, host as u8)
}

fn parameters(mode: Mode) -> Parameters {
    let src = if mode == Mode::Translate { "2001:db8:ffff:ff00::/64" } else { "2001:db8:ffff::1/128" };
    Parameters {
        ip4: "198.18.0.0/24".parse().unwrap(),
        ip6: "2001:db8:f0::/48".parse().unwrap(),
        ip6_src: src.parse().unwrap(),
        ea_bits: 12,
        psid_offset: 6,
        psid_length: 4,
        mtu: 0,
        tag: String::new(),
    }
}

fn translate(superpath: bool) -> Twin {
    make(superpath, Mode::Translate)
}

fn tunnel(superpath: bool) -> Twin {
    make(superpath, Mode::Encapsulate)
}

fn make(superpath: bool, mode: Mode) -> Twin {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_reassembly::MODULE, &shoal_map::MODULE]);
    let mut router = Router::new(&modules);
    router.get::<Icmp>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    router.get::<Icmp6>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    let ports: Vec<Port> = (0..PORTS).map(|n| router.pg(n as u32)).collect();
    let nd = router.get::<shoal_ip6_nd::Neighbours>();
    for (n, port) in ports.iter().enumerate() {
        router.set_address(port, &format!("{}/24", near4(n, 1)));
        // Advertised at random moments.
        let silent = RaConfig { send: Advertise::No, ..RaConfig::default() };
        router.get::<Nd>().set_ra_config(port.index(), silent).unwrap();
        let address = format!("{}/64", near6(n, 1)).parse().unwrap();
        router.get::<Ip6>().add_address(port.index(), address).unwrap();
        for host in 2..5 {
            router.set_neighbour(port, near4(n, host), station(n));
            nd.set((port.index(), near6(n, host)), station(n), Origin::Static, FibEntry::Wanted).unwrap();
        }
    }
    let customers: shoal_wire::IpPrefix = "2001:db8:f0::/48".parse().unwrap();
    let path = Path::next_hop(near6(0, 2), ports[0].index());
    router.get::<Fib>().add(FibIndex::DEFAULT, customers, Source::Cli, &[path]).unwrap();
    let map = router.get::<Map>();
    map.add_domain(parameters(mode)).unwrap();
    for port in &ports {
        map.set_interface(port.index(), mode, true).unwrap();
    }
    router.interfaces().enable_superpath(superpath).unwrap();
    router.advance(Duration::from_secs(3));
    for port in &ports {
        port.received();
    }
    Twin::new(router, ports)
}

/// A customer's address, one of its ports most often, and where it is in IPv6.
fn customer(rng: &mut Rng, mode: Mode) -> (Ipv4Addr, u16, Ipv6Addr) {
    let address = Ipv4Addr::new(198, 18, 0, 10 + rng.below(3) as u8);
    // Ports below 1,024 are no customer's.
    let port = *rng.pick(&[80, 16_606, 16_607, 20_000, 30_000]);
    let home = Domain::new(parameters(mode)).unwrap().customer(address, port).unwrap();
    // One who says he is another.
    let home = if rng.one_in(10) { six("2001:db8:f0:c30:0:c612:c:3") } else { home };
    (address, port, home)
}

/// What a packet carries, behind the IP header, of a stream to or from a port of a customer.
fn upper(rng: &mut Rng, start: PacketBuilder, (sport, dport): (u16, u16), is_ip4: bool) -> PacketBuilder {
    let packet = match rng.below(8) {
        0 if is_ip4 => start.icmp_echo_reply(dport, 1),
        0 => start.icmp6_echo_request(sport, 1),
        1 | 2 => {
            let flags = *rng.pick(&[TcpFlags::SYN.0, 0x12, 0x10, 0x10, 0x18, 0x11, 0x04]);
            start.tcp(sport, dport, TcpFlags(flags))
        }
        3 if rng.one_in(3) => start.protocol(IpProtocol(47)),
        _ => start.udp(sport, dport),
    };
    let long = if rng.one_in(12) { 1180 + rng.below(120) } else { rng.below(60) };
    packet.payload_len(long)
}

/// Between neighbours, or to the router itself.
fn native(rng: &mut Rng, port: &Port, rx: usize) -> PacketBuilder {
    let start = PacketBuilder::ethernet(station(rx), port.mac());
    let to = 1 + rng.below(3);
    let is_ip4 = rng.one_in(2);
    let start = if is_ip4 {
        start.ip4(near4(rx, 2), near4(1 - rx, to))
    } else {
        start.ip6(near6(rx, 2), near6(1 - rx, to))
    };
    upper(rng, start, (7, 9), is_ip4)
}

/// From the Internet to a customer.
fn to_customer(rng: &mut Rng, port: &Port, mode: Mode) -> PacketBuilder {
    let (address, customers, _) = customer(rng, mode);
    let start = PacketBuilder::ethernet(station(WORLD), port.mac()).ip4(near4(WORLD, 2), address);
    let start = start.ttl(*rng.pick(&[1, 2, 64, 64, 64, 64]));
    let start = if rng.one_in(2) { start.dont_fragment() } else { start };
    let packet = upper(rng, start, (53, customers), true);
    if rng.one_in(20) { packet.options(&[1; 4]) } else { packet }
}

fn damaged(rng: &mut Rng, packet: PacketBuilder) -> InjectedPacket {
    let packet =
        if rng.one_in(20) { packet.fragment(8 * rng.below(3) as u16, Fragment::More) } else { packet };
    let mut bytes = packet.build();
    match rng.below(25) {
        0 => bytes.truncate(ETHERNET + rng.below(60)),
        // UDP without a checksum.
        1 if bytes[12] == 8 && bytes[23] == 17 && bytes[14] == 0x45 && bytes.len() > 42 => {
            bytes[40..42].fill(0);
        }
        // What short frames have behind the packet.
        2 => bytes.extend([0; 7]),
        // A byte of whatever it is.
        3 => {
            let at = rng.below(bytes.len() - ETHERNET) + ETHERNET;
            bytes[at] ^= 1;
        }
        _ => {}
    }
    InjectedPacket::from(bytes)
}

fn translated(rng: &mut Rng, port: &Port, rx: usize) -> InjectedPacket {
    let packet = if rng.one_in(5) {
        native(rng, port, rx)
    } else if rx == WORLD {
        to_customer(rng, port, Mode::Translate)
    } else {
        let (_, customers, home) = customer(rng, Mode::Translate);
        let far = Domain::new(parameters(Mode::Translate)).unwrap().internet(near4(WORLD, 2));
        let start = PacketBuilder::ethernet(station(rx), port.mac()).ip6(home, far);
        let start = start.ttl(*rng.pick(&[1, 2, 64, 64, 64, 64]));
        upper(rng, start, (customers, 53), false)
    };
    damaged(rng, packet)
}

fn tunnelled(rng: &mut Rng, port: &Port, rx: usize) -> InjectedPacket {
    let packet = if rng.one_in(5) {
        native(rng, port, rx)
    } else if rx == WORLD {
        to_customer(rng, port, Mode::Encapsulate)
    } else {
        let (address, customers, home) = customer(rng, Mode::Encapsulate);
        let start = PacketBuilder::ethernet(station(rx), port.mac()).ip4(address, near4(WORLD, 2));
        let start = start.ttl(*rng.pick(&[1, 2, 64, 64, 64, 64]));
        let inner = upper(rng, start, (customers, 53), true).build();
        let outer = PacketBuilder::ethernet(station(rx), port.mac()).ip6(home, six("2001:db8:ffff::1"));
        if rng.one_in(20) {
            outer.icmp6_echo_request(1, 1)
        } else {
            outer.protocol(IpProtocol::IP_IN_IP).payload(&inner[ETHERNET..])
        }
    };
    damaged(rng, packet)
}

/// Packets that leave the superpath for a node may be overtaken by those that do not, and what is sent does not say which is which: each is
/// compared by itself. The identification of a packet that may be cut is the number of its buffer.
fn flow(packet: &mut [u8]) -> Vec<u8> {
    if packet.len() >= 34 && packet[12..14] == [8, 0] {
        packet[18..20].fill(0);
        packet[24..26].fill(0);
    }
    packet.to_vec()
}

/// Packets on the superpath, and those that left it for MAP's nodes.
fn does_as_from_node_to_node(twins: &Twins, name: &str, nodes: [&str; 2]) {
    let seed = Rng::seed(20_261_129);
    let (mut on_chain, mut left, mut done) = (0, 0, 0);
    for n in 0..8 {
        let (plain, fused) = twins.run(seed + n, 60);
        for port in &fused.ports {
            let found = fused.router.interfaces().superpath_of(port.index()).unwrap();
            assert_eq!(found.taken, Some(name), "{}", port.name());
        }
        let counted = |twin: &Twin| twin.router.get::<Map>().domain(0).unwrap().counts;
        assert_eq!(counted(&plain), counted(&fused));
        done += counted(&fused).iter().map(|(packets, _)| packets).sum::<u64>();
        on_chain += fused.vectors(name);
        left += nodes.iter().map(|node| fused.vectors(node)).sum::<u64>();
    }
    assert!(on_chain > 5000, "only {on_chain} packets were on the superpath");
    assert!(done > 2000, "only {done} packets were for MAP and are counted");
    assert!(left * 2 < on_chain, "{left} packets of {on_chain} left it for MAP's nodes");
}

#[test]
fn random_packets_are_translated_on_a_superpath_as_from_node_to_node() {
    does_as_from_node_to_node(&TRANSLATE, IP_MAP_T.name, ["ip4-map-t", "ip6-map-t"]);
}

#[test]
fn random_packets_go_through_tunnels_on_a_superpath_as_from_node_to_node() {
    does_as_from_node_to_node(&TUNNEL, IP_MAP_E.name, ["ip4-map", "ip6-map"]);
}
