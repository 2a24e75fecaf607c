//! DS-Lite as a stage of a superpath: the same random packets of hosts in tunnels, of the IPv4 Internet and between neighbours of one
//! family, through two routers that differ in nothing but `enable_superpath`. Each gives hosts ports of its own choice, so what is
//! compared names sessions in the place of ports.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::time::Duration;

use shoal_dslite::Dslite;
use shoal_dslite::config::TunnelAddresses;
use shoal_icmp::limiter::Rate;
use shoal_icmp::{Icmp, Icmp6};
use shoal_interface::MtuLayer;
use shoal_ip6::Ip6;
use shoal_ip6_nd::{Advertise, Nd, RaConfig};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_superpaths::{IP, IP_DSLITE};
use shoal_testkit::{InjectedPacket, PacketBuilder, Port, Rng, Router, STACK, Twin};
use shoal_wire::packet::Fragment;
use shoal_wire::{IpProtocol, MacAddress, TcpFlags, checksum};

/// Port 0 leads to B4s, port 1 to the Internet of both families.
const ACCESS: usize = 0;
const WORLD: usize = 1;
const ETHERNET: usize = 14;
const SHARED: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::new(192, 0, 2, 8), Ipv4Addr::new(192, 0, 2, 9));
/// Of tunnel packets.
const MTU: u32 = 1400;

/// A host's side of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Host {
    b4: usize,
    address: Ipv4Addr,
    port: u16,
    protocol: IpProtocol,
}

/// A packet, the same for both routers but for what their sessions are.
#[derive(Clone, Debug)]
enum Given {
    /// In a tunnel, or between neighbours.
    Bytes(InjectedPacket),
    /// To what stands for a host; the destination is to be filled in.
    To(Host, Vec<u8>),
}

fn station(n: usize) -> MacAddress {
    MacAddress([2, 0xcc, 0, 0, 0, n as u8])
}

fn near6(network: usize, host: usize) -> Ipv6Addr {
    format!("2001:db8:{network}::{host}").parse().unwrap()
}

fn near4(network: usize, host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, network as u8, host as u8)
}

fn aftr() -> TunnelAddresses {
    TunnelAddresses { ip4: Ipv4Addr::new(192, 0, 0, 1), ip6: "2001:db8:a::1".parse().unwrap() }
}

fn make(superpath: bool) -> (Twin, Rc<Dslite>) {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_reassembly::MODULE]);
    modules.extend([&shoal_syslog::MODULE, &shoal_dslite::MODULE]);
    let mut router = Router::new(&modules);
    router.get::<Icmp>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    router.get::<Icmp6>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    let ports: Vec<Port> = (0..2).map(|n| router.pg(n)).collect();
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
    router.interfaces().set_mtu(ports[ACCESS].index(), MtuLayer::Ip6, MTU).unwrap();
    let dslite = router.get::<Dslite>();
    dslite.add_addresses(SHARED).unwrap();
    dslite.set_aftr(aftr()).unwrap();
    router.interfaces().enable_superpath(superpath).unwrap();
    router.advance(Duration::from_secs(3));
    let mut twin = Twin::new(router, ports);
    for host in hosts() {
        let start = tunnelled(&twin.ports[ACCESS], host, near4(WORLD, 2), |p| with_ports(p, host, 53, 0x10));
        twin.router.send(&twin.ports[ACCESS], start);
    }
    twin.ports.iter().for_each(|port| drop(port.received()));
    (twin, dslite)
}

/// Hosts with sessions: behind three B4s there are the same addresses and ports.
fn hosts() -> Vec<Host> {
    let all = (2..5).flat_map(|b4| {
        (0..4).map(move |n| {
            let protocol = if n % 2 == 0 { IpProtocol::UDP } else { IpProtocol::TCP };
            Host { b4, address: Ipv4Addr::new(192, 168, 1, 1 + n / 2), port: 20_000 + u16::from(n), protocol }
        })
    });
    all.collect()
}

fn with_ports(start: PacketBuilder, host: Host, far: u16, flags: u8) -> PacketBuilder {
    if host.protocol == IpProtocol::TCP {
        start.tcp(host.port, far, TcpFlags(flags))
    } else {
        start.udp(host.port, far)
    }
}

/// A host's packet as its B4 sends it.
fn tunnelled(
    port: &Port,
    host: Host,
    far: Ipv4Addr,
    make: impl FnOnce(PacketBuilder) -> PacketBuilder,
) -> Vec<u8> {
    let ethernet = || PacketBuilder::ethernet(station(ACCESS), port.mac());
    let inner = make(ethernet().ip4(host.address, far)).build();
    let outer = ethernet().ip6(near6(ACCESS, host.b4), aftr().ip6);
    outer.protocol(IpProtocol::IP_IN_IP).payload(&inner[ETHERNET..]).build()
}

fn flags(rng: &mut Rng) -> u8 {
    *rng.pick(&[TcpFlags::SYN.0, 0x12, 0x10, 0x10, 0x18, 0x11, 0x04])
}

fn long(rng: &mut Rng) -> usize {
    if rng.one_in(12) { 1180 + rng.below(250) } else { rng.below(60) }
}

/// Between neighbours, or to the router itself.
fn native(rng: &mut Rng, port: &Port, rx: usize) -> Vec<u8> {
    let start = PacketBuilder::ethernet(station(rx), port.mac());
    let to = 1 + rng.below(3);
    let start = if rng.one_in(2) {
        start.ip4(near4(rx, 2), near4(1 - rx, to))
    } else {
        start.ip6(near6(rx, 2), near6(1 - rx, to))
    };
    start.udp(7, 9).payload_len(rng.below(60)).build()
}

fn of_host(rng: &mut Rng, port: &Port, hosts: &[Host]) -> Vec<u8> {
    let host = *rng.pick(hosts);
    let (flags, far, size) = (flags(rng), near4(WORLD, 2 + rng.below(3)), long(rng));
    let (ttl, kind) = (*rng.pick(&[1, 64, 64]), rng.below(12));
    let has_options = rng.one_in(20);
    let part = rng.one_in(20).then(|| 8 * rng.below(3) as u16);
    tunnelled(port, host, far, |start| {
        let packet = match kind {
            0 => start.ttl(ttl).icmp_echo_request(host.port, 1),
            1 => start.ttl(ttl).protocol(IpProtocol(47)),
            _ => with_ports(start.ttl(ttl), host, 53, flags),
        };
        let packet = if has_options { packet.options(&[1; 4]) } else { packet };
        let packet = packet.payload_len(size);
        match part {
            Some(offset) => packet.fragment(offset, Fragment::More),
            None => packet,
        }
    })
}

/// To what stands for a host; its own address and port stand there until it is known.
fn to_host(rng: &mut Rng, port: &Port, hosts: &[Host]) -> Given {
    let host = *rng.pick(hosts);
    let start = PacketBuilder::ethernet(station(WORLD), port.mac()).ip4(near4(WORLD, 2), SHARED.0);
    let start = start.ttl(*rng.pick(&[1, 2, 64, 64, 64, 64]));
    let start = if rng.one_in(2) { start.dont_fragment() } else { start };
    let packet = if host.protocol == IpProtocol::TCP {
        start.tcp(53, host.port, TcpFlags(flags(rng)))
    } else {
        start.udp(53, host.port)
    };
    let packet = packet.payload_len(long(rng));
    if rng.one_in(20) {
        // There is no session with a port of the first thousand.
        return Given::Bytes(packet.build().into());
    }
    let packet =
        if rng.one_in(20) { packet.fragment(8 * rng.below(2) as u16, Fragment::More) } else { packet };
    Given::To(host, packet.build())
}

fn given(rng: &mut Rng, port: &Port, rx: usize, hosts: &[Host]) -> Given {
    if rng.one_in(5) {
        return Given::Bytes(native(rng, port, rx).into());
    }
    if rx == WORLD {
        return to_host(rng, port, hosts);
    }
    let mut bytes = of_host(rng, port, hosts);
    match rng.below(25) {
        0 => bytes.truncate(ETHERNET + 40 + rng.below(60)),
        // What short frames have behind the packet.
        1 => bytes.extend([0; 7]),
        // Not of a tunnel: the router answers, or would.
        2 => bytes[20] = 58,
        // UDP without a checksum, whatever it is.
        3 if bytes.len() > 82 && bytes[63] == 17 => bytes[80..82].fill(0),
        4 => {
            let at = ETHERNET + 40 + rng.below(bytes.len().min(80) - ETHERNET - 40);
            bytes[at] ^= 1;
        }
        _ => {}
    }
    Given::Bytes(bytes.into())
}

/// Whether the checksum of a packet's transport header is right.
fn is_whole(ip: &[u8]) -> bool {
    let upper = &ip[usize::from(ip[0] & 15) * 4..];
    if ip[9] == 1 {
        return checksum::verify(upper);
    }
    let length = upper.len() as u16;
    let pseudo = [&ip[12..20], &[0, ip[9]], &length.to_be_bytes()[..], upper].concat();
    checksum::verify(&pseudo)
}

/// One of the two routers.
struct Side {
    twin: Twin,
    dslite: Rc<Dslite>,
}

impl Side {
    fn new(superpath: bool) -> Side {
        let (twin, dslite) = make(superpath);
        Side { twin, dslite }
    }

    /// Sends packets, the destination of those for hosts filled in.
    fn give(&mut self, packets: &[(usize, Given)]) {
        let sessions = self.dslite.sessions().unwrap();
        for (rx, given) in packets {
            let packet = match given {
                Given::Bytes(packet) => packet.clone(),
                Given::To(host, bytes) => {
                    let mut bytes = bytes.clone();
                    let b4 = near6(ACCESS, host.b4);
                    let session = sessions.iter().find(|s| {
                        (s.inside.b4, s.inside.address, s.inside.port) == (b4, host.address, host.port)
                            && IpProtocol(s.inside.protocol) == host.protocol
                    });
                    let outside = session.unwrap().outside;
                    retarget(&mut bytes, outside.address, outside.port);
                    bytes.into()
                }
            };
            self.twin.givers[*rx].give(packet);
        }
        self.twin.router.run();
    }

    /// What has left by a port, with sessions in the place of their ports, in an order that does not depend on nodes.
    fn sent(&self, port: usize) -> Vec<Vec<u8>> {
        let sessions = self.dslite.sessions().unwrap();
        let mut all = self.twin.ports[port].received();
        for frame in &mut all {
            let Some(ip) = frame.get_mut(ETHERNET..) else { continue };
            if ip[0] >> 4 == 6 {
                // The identification of fragments.
                if ip[6] == 44 {
                    ip[44..48].fill(0);
                }
                continue;
            }
            let source = Ipv4Addr::new(ip[12], ip[13], ip[14], ip[15]);
            if source != SHARED.0 && source != SHARED.1 {
                // An error of the router has what it is about, with its ports.
                if ip[9] == 1 && matches!(ip[20], 3 | 11) {
                    ip[22..24].fill(0);
                    ip[28..].fill(0);
                }
                continue;
            }
            let whole = is_whole(ip);
            let upper = usize::from(ip[0] & 15) * 4;
            // Where a port or identifier is, and the checksum.
            let (port, sum) = match ip[9] {
                1 => (upper + 4, upper + 2),
                6 => (upper, upper + 16),
                _ => (upper, upper + 6),
            };
            let outside = u16::from_be_bytes([ip[port], ip[port + 1]]);
            let session = sessions.iter().find(|s| {
                (s.outside.address, s.outside.port, s.outside.protocol) == (source, outside, ip[9])
            });
            let inside = session.unwrap_or_else(|| panic!("no session: {ip:02x?}")).inside;
            let bare = ip[sum..sum + 2] == [0, 0];
            ip[10..12].fill(0);
            ip[12..16].copy_from_slice(&inside.address.octets());
            ip[port..port + 2].copy_from_slice(&inside.port.to_be_bytes());
            ip[sum..sum + 2].fill(u8::from(bare) << 1 | u8::from(whole));
        }
        all.sort();
        all
    }
}

/// Gives a packet another destination, and right checksums if they were.
fn retarget(frame: &mut [u8], address: Ipv4Addr, port: u16) {
    let ip = &mut frame[ETHERNET..];
    let sum = if ip[9] == 6 { 36 } else { 26 };
    let mut change = |at: usize, new: [u8; 2], sums: &[usize]| {
        let old = u16::from_be_bytes([ip[at], ip[at + 1]]);
        ip[at..at + 2].copy_from_slice(&new);
        for sum in sums {
            // RFC 1624, eqn. 3.
            let was = u16::from_be_bytes([ip[*sum], ip[sum + 1]]);
            let total = u32::from(!was) + u32::from(!old) + u32::from(u16::from_be_bytes(new));
            let folded = (total & 0xffff) + (total >> 16);
            let folded = (folded & 0xffff) + (folded >> 16);
            ip[*sum..sum + 2].copy_from_slice(&(!(folded as u16)).to_be_bytes());
        }
    };
    let [a, b, c, d] = address.octets();
    change(16, [a, b], &[10, sum]);
    change(18, [c, d], &[10, sum]);
    change(22, port.to_be_bytes(), &[sum]);
    // A sum of 0 would mean that there is none (RFC 768), for one of two sessions in 65,536.
    if ip[9] == 17 && ip[sum..sum + 2] == [0, 0] {
        ip[sum..sum + 2].fill(0xff);
    }
}

fn compare(plain: &Side, fused: &Side, at: &str) -> usize {
    let mut sent = 0;
    for port in [ACCESS, WORLD] {
        let (a, b) = (plain.sent(port), fused.sent(port));
        sent += a.len();
        let differ = a.iter().zip(&b).find(|(a, b)| a != b);
        assert!(differ.is_none() && a.len() == b.len(), "{at}, port {port}, {differ:02x?}");
    }
    let (a, b) = (&plain.twin, &fused.twin);
    assert_eq!(a.router.errors(), b.router.errors(), "error counters, {at}");
    assert_eq!(a.interface_counters(), b.interface_counters(), "interface counters, {at}");
    assert_eq!(a.router.buffers_in_use(), b.router.buffers_in_use(), "buffers, {at}");
    let counted = |side: &Side| {
        let sessions = side.dslite.sessions().unwrap().into_iter();
        sessions
            .map(|s| (s.inside.b4, s.inside.address, s.inside.port, s.packets, s.bytes))
            .collect::<Vec<_>>()
    };
    assert_eq!(counted(plain), counted(fused), "sessions, {at}");
    sent
}

#[test]
fn random_packets_go_through_tunnels_on_a_superpath_as_from_node_to_node() {
    let seed = Rng::seed(20_261_129);
    let hosts = hosts();
    let (mut on_chain, mut left, mut sent) = (0, 0, 0);
    for seed in seed..seed + 6 {
        let (mut plain, mut fused) = (Side::new(false), Side::new(true));
        let mut rng = Rng::new(seed);
        for port in &fused.twin.ports {
            let found = fused.twin.router.interfaces().superpath_of(port.index()).unwrap();
            assert_eq!(found.taken, Some(IP_DSLITE.name), "{}", port.name());
        }
        for burst in 0..60 {
            let most = *rng.pick(&[1, 4, 40, 300]);
            let count = 1 + rng.below(most);
            let side = rng.below(2);
            // One packet again and again, or many.
            let often = rng.one_in(4).then(|| given(&mut rng, &plain.twin.ports[side], side, &hosts));
            let packets: Vec<(usize, Given)> = (0..count)
                .map(|n| {
                    let rx = if often.is_some() || rng.one_in(2) { side } else { rng.below(2) };
                    let marked = [0, count / 2, count - 1].contains(&n) || rng.one_in(2);
                    match &often {
                        Some(often) if marked => (rx, often.clone()),
                        _ => (rx, given(&mut rng, &plain.twin.ports[rx], rx, &hosts)),
                    }
                })
                .collect();
            plain.give(&packets);
            fused.give(&packets);
            sent += compare(&plain, &fused, &format!("burst {burst}, SHOAL_SEED={seed}"));
        }
        on_chain += fused.twin.vectors(IP_DSLITE.name);
        left += fused.twin.vectors("dslite-in2out") + fused.twin.vectors("dslite-out2in");
    }
    assert!(on_chain > 5000, "only {on_chain} packets were on the superpath");
    assert!(sent > 3000, "only {sent} packets were sent");
    assert!(left * 2 < on_chain, "{left} packets of {on_chain} left it for DS-Lite's nodes");
}

#[test]
fn it_is_taken_while_a_route_leads_to_tunnels_and_only_of_the_main_table() {
    let (mut twin, dslite) = make(true);
    let taken = |twin: &Twin| {
        let index = twin.ports[ACCESS].index();
        twin.router.interfaces().superpath_of(index).unwrap().taken
    };
    assert_eq!(taken(&twin), Some(IP_DSLITE.name));
    dslite.set_aftr(TunnelAddresses { ip4: Ipv4Addr::UNSPECIFIED, ip6: Ipv6Addr::UNSPECIFIED }).unwrap();
    assert_eq!(taken(&twin), Some(IP.name));
    let others = twin.router.interfaces().superpath_of(twin.ports[ACCESS].index()).unwrap().others;
    let why = others.iter().find(|(name, _)| *name == IP_DSLITE.name).unwrap().1.first().unwrap().to_string();
    assert_eq!(why, "no route leads to dslite-in2out");
    dslite.set_aftr(aftr()).unwrap();
    assert_eq!(taken(&twin), Some(IP_DSLITE.name));
    // Another table has no such route.
    let fib = twin.router.get::<shoal_fib::Fib>();
    fib.add_table(shoal_fib::Family::Ip6, 7, None).unwrap();
    let ip6 = twin.router.get::<Ip6>();
    ip6.del_address(twin.ports[ACCESS].index(), format!("{}/64", near6(ACCESS, 1)).parse().unwrap()).unwrap();
    ip6.set_table(twin.ports[ACCESS].index(), 7).unwrap();
    let host = hosts()[0];
    let packet = tunnelled(&twin.ports[ACCESS], host, near4(WORLD, 2), |p| with_ports(p, host, 53, 0));
    twin.router.send(&twin.ports[ACCESS], packet);
    assert!(twin.ports[WORLD].received().is_empty(), "a tunnel of another table ends here");
}
