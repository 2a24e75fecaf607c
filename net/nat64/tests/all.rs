//! NAT64 through a whole router: translated bytes, both directions, hairpins, errors, fragments, limits, bad input, messages, saved
//! configuration, workers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod export;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::time::Duration;

use shoal_arp::table::{FibEntry, Origin};
use shoal_ip6::Ip6;
use shoal_message::{InterfaceIndex, Retval};
use shoal_module::Running;
use shoal_module::api::{Call, Dump, Request};
use shoal_nat::NatConfigFlags;
use shoal_nat64::api::*;
use shoal_nat64::config::{Inside, Outside, Timeouts};
use shoal_nat64::{Enable, Nat64, Nat64Error, Side};
use shoal_testkit::{PacketBuilder, Port, Rng, Router, STACK, api};
use shoal_wire::{IpProtocol, MacAddress, TcpFlags, checksum};

const FAR_MAC: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 2]);
const HOST_MAC: MacAddress = MacAddress([2, 0xbb, 0, 0, 0, 2]);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SHARED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
const ETHER: usize = 14;

fn host(n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, n)
}

/// What stands for an IPv4 address.
fn of(address: Ipv4Addr) -> Ipv6Addr {
    let [a, b, c, d] = address.octets().map(u16::from);
    Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a << 8 | b, c << 8 | d)
}

struct Bed {
    router: Router,
    far: Port,
    access: Port,
    nat: Rc<Nat64>,
}

fn bed() -> Bed {
    let mut modules = STACK.to_vec();
    modules.extend([
        &shoal_ip6_nd::MODULE,
        &shoal_reassembly::MODULE,
        &shoal_syslog::MODULE,
        &shoal_ipfix::MODULE,
        &shoal_nat64::MODULE,
    ]);
    let mut router = Router::new(&modules);
    let (far, access) = (router.pg(0), router.pg(1));
    router.set_address(&far, "10.0.0.1/24");
    router.get::<Ip6>().add_address(access.index(), "2001:db8:1::ff/64".parse().unwrap()).unwrap();
    router.set_neighbour(&far, SERVER, FAR_MAC);
    let nd = router.get::<shoal_ip6_nd::Neighbours>();
    for n in 2..6 {
        nd.set((access.index(), host(n)), HOST_MAC, Origin::Static, FibEntry::Wanted).unwrap();
    }
    let nat = router.get::<Nat64>();
    nat.enable(Enable::default()).unwrap();
    nat.add_addresses((SHARED, SHARED), None).unwrap();
    nat.set_side(access.index(), Side::Inside, true).unwrap();
    nat.set_side(far.index(), Side::Outside, true).unwrap();
    router.advance(Duration::from_secs(3));
    far.received();
    access.received();
    Bed { router, far, access, nat }
}

type Make = fn(PacketBuilder) -> PacketBuilder;

impl Bed {
    fn send_out(&mut self, n: u16, dst: Ipv6Addr, make: impl Fn(PacketBuilder) -> PacketBuilder) {
        let packet =
            make(PacketBuilder::ethernet(HOST_MAC, self.access.mac()).ip6(host(n), dst).ttl(64)).build();
        self.router.send(&self.access, packet);
    }

    /// The IPv4 packet that leaves to the server of what a host sends.
    fn out(&mut self, n: u16, make: impl Fn(PacketBuilder) -> PacketBuilder) -> Option<Vec<u8>> {
        self.send_out(n, of(SERVER), make);
        self.far.received().pop().map(|frame| frame[ETHER..].to_vec())
    }

    /// The IPv6 packet that comes out towards a host of what the Internet sends.
    fn back(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let frame = [&self.far.mac().0[..], &FAR_MAC.0, &[8, 0], packet].concat();
        self.router.send(&self.far, frame);
        self.access.received().pop().map(|frame| frame[ETHER..].to_vec())
    }

    fn answer(&mut self, make: impl Fn(PacketBuilder) -> PacketBuilder) -> Option<Vec<u8>> {
        let packet = make(PacketBuilder::ethernet(FAR_MAC, HOST_MAC).ip4(SERVER, SHARED).ttl(9)).build();
        self.back(&packet[ETHER..])
    }

    fn binding(&self, n: u16, port: u16, open: u16, protocol: u8) -> Result<(), Nat64Error> {
        let inside = Inside { address: host(n), port, protocol, table: 0 };
        self.nat.add_binding(0, inside, Outside { address: SHARED, port: open, protocol })
    }
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn addresses4(ip: &[u8]) -> (Ipv4Addr, Ipv4Addr) {
    let at = |n: usize| Ipv4Addr::new(ip[n], ip[n + 1], ip[n + 2], ip[n + 3]);
    (at(12), at(16))
}

fn addresses6(ip: &[u8]) -> (Ipv6Addr, Ipv6Addr) {
    let at = |n: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&ip[n..n + 16]).unwrap());
    (at(8), at(24))
}

/// Whether all checksums of a packet without fragments and extensions are right.
fn is_whole(ip: &[u8]) -> bool {
    if ip[0] >> 4 == 4 {
        let upper = &ip[20..];
        let pseudo = [&ip[12..20], &[0, ip[9]], &(upper.len() as u16).to_be_bytes()[..]].concat();
        let bytes = if ip[9] == 1 { upper.to_vec() } else { [&pseudo, upper].concat() };
        return checksum::verify(&ip[..20]) && checksum::verify(&bytes);
    }
    let upper = &ip[40..];
    let length = (upper.len() as u32).to_be_bytes();
    checksum::verify(&[&ip[8..40], &length, &[0, 0, 0, ip[6]], upper].concat())
}

const UDP: Make = |p| p.udp(20_000, 53).payload(b"odd");

#[test]
fn hosts_share_an_address_and_answers_find_them() {
    let mut bed = bed();
    // The other server does not answer.
    bed.router.may_hold(1);
    let mut seen = Vec::new();
    for n in [2, 3] {
        let left = bed.out(n, UDP).expect("it leaves");
        assert_eq!((addresses4(&left), word(&left, 22)), ((SHARED, SERVER), 53));
        let port = word(&left, 20);
        assert!(is_whole(&left) && port >= 1024 && left[8] == 63 && port.is_multiple_of(2), "{port}");
        seen.push(port);
        let got = bed.answer(|p| p.udp(53, port).payload(b"even")).expect("the host gets it");
        assert_eq!(addresses6(&got), (of(SERVER), host(n)));
        assert_eq!((word(&got, 40), word(&got, 42)), (53, 20_000));
        assert!(is_whole(&got) && got[7] == 8);
    }
    assert_ne!(seen[0], seen[1]);
    assert_eq!(word(&bed.out(2, UDP).unwrap(), 20), seen[0], "a binding stays");
    // RFC 6146: the binding is the same for any destination, and any may use it.
    bed.send_out(2, of(Ipv4Addr::new(10, 0, 0, 3)), UDP);
    let stranger = PacketBuilder::ethernet(FAR_MAC, HOST_MAC).ip4([10, 9, 9, 9], SHARED.octets()).ttl(9);
    let got = bed.back(&stranger.udp(7, seen[0]).build()[ETHER..]).expect("endpoint-independent filtering");
    assert_eq!(addresses6(&got).0, of(Ipv4Addr::new(10, 9, 9, 9)));
    let bound = bed.nat.bindings().unwrap();
    assert_eq!((bound.len(), bound[0].sessions, bed.nat.sessions().unwrap().len()), (2, 3, 4));
    let count = |name: &str, port: &Port| bed.router.if_counter(name, port.index());
    assert_eq!(count("/nat64/in2out/udp", &bed.access), 4);
    assert_eq!(count("/nat64/out2in/udp", &bed.far), 3);
    assert_eq!(
        (bed.router.counter("/nat64/total-bibs"), bed.router.counter("/nat64/total-sessions")),
        (2, 4)
    );
}

#[test]
fn tcp_echoes_and_protocols_without_ports_are_translated() {
    let mut bed = bed();
    let syn = bed.out(2, |p| p.tcp(5001, 80, TcpFlags::SYN)).unwrap();
    let port = word(&syn, 20);
    assert!(is_whole(&syn) && port % 2 == 1);
    let got = bed.answer(|p| p.tcp(80, port, TcpFlags::SYN)).unwrap();
    assert!(is_whole(&got) && word(&got, 42) == 5001);
    let echo = bed.out(2, |p| p.icmp6_echo_request(7, 1).payload(b"ping!")).unwrap();
    assert!(is_whole(&echo) && (echo[9], echo[20]) == (1, 8));
    let id = word(&echo, 24);
    let got = bed.answer(|p| p.icmp_echo_reply(id, 1).payload(b"ping!")).unwrap();
    assert!(is_whole(&got) && (got[6], got[40], word(&got, 44)) == (58, 129, 7));
    let gre = bed.out(2, |p| p.protocol(IpProtocol::GRE).payload(b"no ports")).unwrap();
    assert_eq!((addresses4(&gre), gre[9]), ((SHARED, SERVER), 47));
    let got = bed.answer(|p| p.protocol(IpProtocol::GRE).payload(b"no ports")).unwrap();
    assert_eq!((addresses6(&got), got[6]), ((of(SERVER), host(2)), 47));
}

#[test]
fn errors_go_to_the_host_and_from_it_with_what_they_are_about() {
    let mut bed = bed();
    let sent = bed.out(2, UDP).unwrap();
    let mut error = PacketBuilder::ethernet(FAR_MAC, HOST_MAC)
        .ip4(Ipv4Addr::new(10, 7, 7, 7), SHARED)
        .protocol(IpProtocol::ICMP)
        .payload(&[&[3, 1, 0, 0, 0, 0, 0, 0][..], &sent[..28]].concat())
        .build()[ETHER..]
        .to_vec();
    let sum = checksum::checksum(&error[20..]);
    error[22..24].copy_from_slice(&sum.to_be_bytes());
    let got = bed.back(&error).expect("the host is told");
    assert!(is_whole(&got) && (got[6], got[40]) == (58, 1));
    assert_eq!(addresses6(&got), (of(Ipv4Addr::new(10, 7, 7, 7)), host(2)));
    let carried = &got[48..];
    assert_eq!((addresses6(carried), word(carried, 40)), ((host(2), of(SERVER)), 20_000));
    // The host refuses what came.
    let port = word(&sent, 20);
    let got = bed.answer(|p| p.udp(53, port).payload(b"late")).unwrap();
    let left = bed
        .out(2, |p| {
            let body = [&[1, 4, 0, 0, 0, 0, 0, 0][..], &got].concat();
            p.protocol(IpProtocol::ICMP6).payload(&body)
        })
        .expect("the server is told");
    assert_eq!((addresses4(&left), left[9], left[20]), ((SHARED, SERVER), 1, 3));
    assert_eq!((addresses4(&left[28..]), word(&left[28..], 22)), ((SERVER, SHARED), port));
    assert!(checksum::verify(&left[..20]));
}

#[test]
fn hosts_reach_each_other_by_their_shared_addresses() {
    let mut bed = bed();
    bed.binding(3, 80, 8080, 6).unwrap();
    bed.send_out(2, of(SHARED), |p| p.tcp(5000, 8080, TcpFlags::SYN));
    let got = bed.access.received().pop().expect("the other host gets it")[ETHER..].to_vec();
    assert_eq!((addresses6(&got), word(&got, 42)), ((of(SHARED), host(3)), 80));
    assert!(is_whole(&got));
    let port = word(&got, 40);
    bed.send_out(3, of(SHARED), move |p| p.tcp(80, port, TcpFlags::SYN));
    let got = bed.access.received().pop().expect("and answers")[ETHER..].to_vec();
    assert_eq!((addresses6(&got), word(&got, 40), word(&got, 42)), ((of(SHARED), host(2)), 8080, 5000));
    // Nothing listens there.
    bed.send_out(2, of(SHARED), |p| p.tcp(5000, 9999, TcpFlags::SYN));
    assert!(bed.access.received().is_empty());
    assert_eq!(bed.router.error("nat64-hairpinning", "no translation"), 1);
}

/// A fragment of an IPv4 packet: these bytes of its payload.
fn part(whole: &[u8], from: usize, to: usize, more: u16) -> Vec<u8> {
    let mut part = [&whole[..20], &whole[20 + from..20 + to]].concat();
    part[2..4].copy_from_slice(&(20 + (to - from) as u16).to_be_bytes());
    part[6..8].copy_from_slice(&(more | (from / 8) as u16).to_be_bytes());
    part[10..12].fill(0);
    let sum = checksum::checksum(&part[..20]);
    part[10..12].copy_from_slice(&sum.to_be_bytes());
    part
}

#[test]
fn parts_that_are_too_long_for_the_hosts_link_are_cut_again() {
    let mut bed = bed();
    bed.router.interfaces().set_mtu(bed.access.index(), shoal_interface::MtuLayer::Ip6, 1280).unwrap();
    let port = word(&bed.out(2, UDP).unwrap(), 20);
    let payload: Vec<u8> = (0..2600u32).map(|n| (n % 251) as u8).collect();
    let packet = PacketBuilder::ethernet(FAR_MAC, HOST_MAC).ip4(SERVER, SHARED).ttl(9).udp(53, port);
    let whole = packet.payload(&payload).build()[ETHER..].to_vec();
    let mut got = Vec::new();
    for (from, to, more) in [(0, 1480, 0x2000), (1480, 2608, 0)] {
        let frame = [&bed.far.mac().0[..], &FAR_MAC.0, &[8, 0], &part(&whole, from, to, more)].concat();
        bed.router.send(&bed.far, frame);
        got.extend(bed.access.received().into_iter().map(|frame| frame[ETHER..].to_vec()));
    }
    assert_eq!(got.len(), 3, "the first became two");
    let mut datagram = Vec::new();
    for (nth, ip) in got.iter().enumerate() {
        assert!(ip.len() <= 1280 && (ip[6], ip[40]) == (44, 17) && ip[7] == 8);
        assert_eq!(ip[44..48], got[0][44..48], "one identification");
        let place = word(ip, 42);
        assert_eq!((usize::from(place & !7), place & 1 == 1), (datagram.len(), nth < 2));
        datagram.extend(&ip[48..]);
    }
    assert_eq!(datagram[8..], payload);
    let (src, dst) = addresses6(&got[0]);
    let pseudo =
        [&src.octets()[..], &dst.octets(), &(datagram.len() as u32).to_be_bytes(), &[0, 0, 0, 17]].concat();
    assert!(checksum::verify(&[&pseudo[..], &datagram].concat()));
}

/// An ICMP error: its type, code and MTU, and the packet it is about.
fn told(error: &[u8]) -> (u8, u8, u32, &[u8]) {
    let at = if error[0] >> 4 == 4 { 20 } else { 40 };
    let mtu = u32::from_be_bytes(error[at + 4..at + 8].try_into().unwrap());
    (error[at], error[at + 1], mtu, &error[at + 8..])
}

#[test]
fn senders_of_packets_that_are_too_long_for_the_other_side_hear_of_it_in_their_own_protocol() {
    let mut bed = bed();
    let set = |bed: &Bed, port: &Port, layer, mtu| {
        bed.router.interfaces().set_mtu(port.index(), layer, mtu).unwrap();
    };
    set(&bed, &bed.access, shoal_interface::MtuLayer::Ip6, 1400);
    let port = word(&bed.out(2, UDP).unwrap(), 20);
    let server = || PacketBuilder::ethernet(FAR_MAC, HOST_MAC).ip4(SERVER, SHARED).ttl(9).dont_fragment();
    let of_length =
        |total: usize| server().udp(53, port).payload(&vec![7; total - 28]).build()[ETHER..].to_vec();
    assert_eq!(bed.back(&of_length(1380)).expect("it just fits").len(), 1400);
    let sent = of_length(1381);
    assert!(bed.back(&sent).is_none());
    let error = bed.far.received().pop().expect("the server is told")[ETHER..].to_vec();
    assert_eq!(addresses4(&error), (Ipv4Addr::new(10, 0, 0, 1), SERVER));
    let (kind, code, mtu, about) = told(&error);
    assert_eq!((kind, code, mtu), (3, 4, 1380));
    assert_eq!(about[12..28], sent[12..28], "the packet that the server knows");
    // The other way.
    set(&bed, &bed.far, shoal_interface::MtuLayer::Ip4, 1300);
    let datagram = |total: usize| vec![7; total - 48];
    let left = bed.out(2, |p| p.udp(20_000, 53).payload(&datagram(1320))).expect("it just fits");
    assert_eq!((left.len(), word(&left, 6)), (1300, 0x4000));
    assert!(bed.out(2, |p| p.udp(20_000, 53).payload(&datagram(1321))).is_none());
    let error = bed.access.received().pop().expect("the host is told")[ETHER..].to_vec();
    let (kind, code, mtu, about) = told(&error);
    assert_eq!((addresses6(&error).1, kind, code, mtu), (host(2), 2, 0, 1320));
    assert_eq!(addresses6(about), (host(2), of(SERVER)));
    // A host need not send shorter ones than any IPv6 link takes: those are cut, as IPv4 allows.
    set(&bed, &bed.far, shoal_interface::MtuLayer::Ip4, 600);
    assert!(bed.out(2, |p| p.udp(20_000, 53).payload(&datagram(1281))).is_none());
    let error = bed.access.received().pop().expect("the host is told")[ETHER..].to_vec();
    assert_eq!(told(&error).2, 1280);
    bed.send_out(2, of(SERVER), |p| p.udp(20_000, 53).payload(&datagram(1280)));
    let pieces: Vec<usize> = bed.far.received().iter().map(|frame| frame.len() - ETHER).collect();
    assert_eq!(pieces, [596, 596, 108], "1,240 bytes in pieces of 576");
}

#[test]
fn parts_of_a_datagram_follow_its_first() {
    let mut bed = bed();
    let sent = bed.out(2, UDP).unwrap();
    let port = word(&sent, 20);
    let whole = PacketBuilder::ethernet(FAR_MAC, HOST_MAC)
        .ip4(SERVER, SHARED)
        .ttl(9)
        .udp(53, port)
        .payload(&[7; 64])
        .build()[ETHER..]
        .to_vec();
    // The second comes first, and waits for the ports.
    assert!(bed.back(&part(&whole, 32, 72, 0)).is_none());
    let frame = [&bed.far.mac().0[..], &FAR_MAC.0, &[8, 0], &part(&whole, 0, 32, 0x2000)].concat();
    bed.router.send(&bed.far, frame);
    let got: Vec<Vec<u8>> = bed.access.received().into_iter().map(|frame| frame[ETHER..].to_vec()).collect();
    assert_eq!(got.len(), 2);
    for ip in &got {
        assert_eq!((addresses6(ip), ip[6], ip[40]), ((of(SERVER), host(2)), 44, 17));
    }
}

#[test]
fn what_is_not_for_the_internet_and_what_is_the_routers_own_passes() {
    let mut bed = bed();
    bed.send_out(2, "2001:db8:1::ff".parse().unwrap(), |p| p.icmp6_echo_request(1, 1));
    assert_eq!(bed.access.received().len(), 1, "the router answers pings");
    let ping = PacketBuilder::ethernet(FAR_MAC, bed.far.mac())
        .ip4(SERVER, [10, 0, 0, 1])
        .icmp_echo_request(1, 1)
        .build();
    bed.router.send(&bed.far, ping);
    assert_eq!(bed.far.received().len(), 1);
    // Its address is shared, too, and the router still hears what is for itself.
    bed.nat.follow_interface(bed.far.index()).unwrap();
    let ping = PacketBuilder::ethernet(FAR_MAC, bed.far.mac())
        .ip4(SERVER, [10, 0, 0, 1])
        .icmp_echo_request(1, 1)
        .build();
    bed.router.send(&bed.far, ping);
    assert_eq!(bed.far.received().len(), 1);
    assert!(bed.answer(|p| p.udp(53, 2000)).is_none());
    assert_eq!(bed.router.error("nat64-out2in", "no translation"), 1);
    let late =
        PacketBuilder::ethernet(HOST_MAC, bed.access.mac()).ip6(host(2), of(SERVER)).ttl(1).udp(1, 2).build();
    bed.router.send(&bed.access, late);
    let told = bed.access.received().pop().expect("its hops are over");
    assert_eq!(told[ETHER + 40], 3);
}

#[test]
fn sessions_end_in_their_time_and_bindings_with_them() {
    let mut bed = bed();
    bed.out(2, UDP).unwrap();
    bed.out(2, |p| p.tcp(5000, 80, TcpFlags::SYN)).unwrap();
    bed.out(2, |p| p.icmp6_echo_request(7, 1)).unwrap();
    let left = |bed: &Bed| (bed.nat.sessions().unwrap().len(), bed.nat.bindings().unwrap().len());
    assert_eq!(left(&bed), (3, 3));
    bed.router.advance(Duration::from_secs(62));
    assert_eq!(left(&bed), (2, 2), "ICMP");
    bed.router.advance(Duration::from_mins(3));
    assert_eq!(left(&bed), (1, 1), "a connection that was not answered");
    bed.router.advance(Duration::from_mins(1));
    assert_eq!(left(&bed), (0, 0));
    let open = |bed: &mut Bed| {
        let port = word(&bed.out(2, |p| p.tcp(5000, 80, TcpFlags::SYN)).unwrap(), 20);
        bed.answer(|p| p.tcp(80, port, TcpFlags::SYN)).unwrap();
        port
    };
    let port = open(&mut bed);
    bed.router.advance(Duration::from_secs(7000));
    assert_eq!(left(&bed), (1, 1), "open");
    bed.out(2, |p| p.tcp(5000, 80, TcpFlags::FIN)).unwrap();
    bed.answer(|p| p.tcp(80, port, TcpFlags::FIN)).unwrap();
    bed.router.advance(Duration::from_secs(245));
    assert_eq!(left(&bed), (0, 0), "both have ended it");
    // A forged reset ends nothing that goes on.
    let port = open(&mut bed);
    bed.answer(|p| p.tcp(80, port, TcpFlags::RST)).unwrap();
    bed.out(2, |p| p.tcp(5000, 80, TcpFlags::ACK)).unwrap();
    bed.router.advance(Duration::from_mins(5));
    assert_eq!(left(&bed), (1, 1));
    bed.nat.set_timeouts(Timeouts { udp: 5, ..Timeouts::default() }).unwrap();
    bed.out(3, UDP).unwrap();
    bed.router.advance(Duration::from_secs(7));
    assert_eq!(left(&bed), (1, 1), "a new timeout counts");
    bed.nat.del_addresses((SHARED, SHARED)).unwrap();
    assert_eq!(left(&bed), (0, 0), "its address has gone");
    assert!(bed.out(3, UDP).is_none());
    assert_eq!(bed.router.error("nat64-in2out-slowpath", "out of ports"), 1);
}

#[test]
fn limits_hold_and_those_who_are_in_are_not_concerned() {
    let mut bed = bed();
    bed.nat.disable().unwrap();
    bed.nat.enable(Enable { bib_buckets: 2, st_buckets: 3 }).unwrap();
    bed.nat.add_addresses((SHARED, SHARED), None).unwrap();
    bed.nat.set_side(bed.access.index(), Side::Inside, true).unwrap();
    bed.nat.set_side(bed.far.index(), Side::Outside, true).unwrap();
    for port in 0..25u16 {
        bed.send_out(2, of(SERVER), move |p| p.udp(3000 + port, 53));
    }
    assert_eq!((bed.nat.bindings().unwrap().len(), bed.far.received().len()), (20, 20));
    assert_eq!(bed.router.error("nat64-in2out-slowpath", "maximum sessions exceeded"), 5);
    for n in 0..25u8 {
        bed.send_out(2, of(Ipv4Addr::new(10, 0, 0, 2)), move |p| p.udp(3000, 100 + u16::from(n)));
    }
    assert_eq!(bed.nat.sessions().unwrap().len(), 30);
    bed.far.received();
    assert!(bed.out(2, |p| p.udp(3001, 53)).is_some(), "a session that there is goes on");
}

#[test]
fn sessions_go_with_their_host_when_workers_come_and_go() {
    let mut bed = bed();
    let port = word(&bed.out(2, UDP).unwrap(), 20);
    let graph = Rc::clone(bed.router.graph());
    for _ in 0..3 {
        graph.add_worker(None).unwrap();
    }
    bed.router.run();
    // The port may belong to another thread now: then the host gets another.
    let now = word(&bed.out(2, UDP).expect("the host goes on"), 20);
    let got = bed.answer(|p| p.udp(53, now).payload(b"even")).expect("and is answered");
    assert_eq!(addresses6(&got).1, host(2), "{port} {now}");
    for n in 2..6 {
        for sport in 0..20u16 {
            let left = bed.out(n, move |p| p.udp(4000 + sport, 53)).expect("all threads have ports");
            let open = word(&left, 20);
            let got = bed.answer(move |p| p.udp(53, open)).expect("the way back leads to the same thread");
            assert_eq!((addresses6(&got).1, word(&got, 42)), (host(n), 4000 + sport));
        }
    }
    graph.remove_worker(2).unwrap();
    bed.router.run();
    assert!(bed.out(3, UDP).is_some());
}

#[test]
fn random_packets_do_no_harm() {
    let mut bed = bed();
    bed.router.may_hold(2000);
    let mut rng = Rng::new(11);
    let six = PacketBuilder::ethernet(HOST_MAC, bed.access.mac())
        .ip6(host(2), of(SERVER))
        .udp(1, 2)
        .payload(&[1; 60])
        .build();
    let port = word(&bed.out(2, UDP).unwrap(), 20);
    let four = PacketBuilder::ethernet(FAR_MAC, bed.far.mac())
        .ip4(SERVER, SHARED)
        .udp(53, port)
        .payload(&[1; 60])
        .build();
    for _ in 0..3000 {
        for (frame, inside) in [(&six, true), (&four, false)] {
            let mut bytes = frame.clone();
            for _ in 0..=rng.below(3) {
                let at = ETHER + rng.below(bytes.len() - ETHER);
                bytes[at] = rng.below(256) as u8;
            }
            bytes.truncate(ETHER + 1 + rng.below(bytes.len() - ETHER));
            bed.router.send(if inside { &bed.access } else { &bed.far }, &bytes);
        }
    }
    for frame in bed.far.received() {
        if frame[12..14] == [8, 0] {
            assert!(checksum::verify(&frame[ETHER..ETHER + 20]));
        }
    }
    bed.access.received();
    bed.out(3, UDP).expect("it works");
    shoal_testkit::fuzz_all_nodes(&mut bed.router, 5, 500);
}

#[test]
fn mistakes_change_nothing_messages_are_vpps_and_all_is_saved() {
    let bed = bed();
    let (a, b): (Ipv4Addr, Ipv4Addr) = ("192.0.2.20".parse().unwrap(), "192.0.2.22".parse().unwrap());
    let nat = &bed.nat;
    assert_eq!(nat.add_addresses((SHARED, SHARED), None), Err(Nat64Error::AddressExists(SHARED)));
    assert_eq!(nat.del_addresses((a, a)), Err(Nat64Error::NoAddress(a)));
    assert_eq!(nat.add_addresses((b, a), None), Err(Nat64Error::Range(b, a)));
    assert_eq!(nat.set_prefix(0, "2001:db8::/33".parse().unwrap()), Err(Nat64Error::PrefixLength(33)));
    assert_eq!(nat.enable(Enable::default()), Err(Nat64Error::AlreadyOn));
    assert_eq!(Retval::from(Nat64Error::AlreadyOn), Retval(1));
    let far = Outside { address: a, port: 1, protocol: 6 };
    let inside = Inside { address: host(2), port: 80, protocol: 6, table: 0 };
    assert_eq!(nat.add_binding(0, inside, far), Err(Nat64Error::NotShared(a)));
    assert_eq!(bed.binding(2, 0, 8080, 6), Err(Nat64Error::NoPort(6)));
    assert_eq!(bed.binding(2, 80, 8080, 6), Ok(()));
    assert_eq!(bed.binding(3, 81, 8080, 6), Err(Nat64Error::PortTaken(8080)));
    assert_eq!(Retval::from(Nat64Error::PortTaken(8080)), Retval::INVALID_VALUE);
    assert_eq!(bed.router.counter("/nat64/total-bibs"), 1, "no session uses it");
    assert_eq!(bed.binding(2, 80, 8081, 6), Err(Nat64Error::BindingExists));
    assert_eq!(nat.set_timeouts(Timeouts { udp: 0, ..Timeouts::default() }), Err(Nat64Error::Timeout(0)));

    let call = Call::local(bed.router.control());
    let range = |is_add| Nat64AddDelPoolAddrRange { start_addr: a, end_addr: b, vrf_id: 7, is_add };
    assert_eq!(range(true).handle(&call), Ok(()));
    assert_eq!(range(true).handle(&call), Err(Retval::VALUE_EXIST));
    let pool: Vec<u32> = Nat64PoolAddrDump {}.dump(&call).map(|shared| shared.vrf_id).collect();
    assert_eq!(pool, [u32::MAX, 7, 7, 7]);
    let prefix = |len, is_add| {
        let prefix = shoal_message::Ip6Prefix { address: "2001:db8:64::".parse().unwrap(), len };
        Nat64AddDelPrefix { prefix, vrf_id: 7, is_add }
    };
    assert_eq!(prefix(47, true).handle(&call), Err(Retval::INVALID_VALUE));
    assert_eq!(prefix(48, true).handle(&call), Ok(()));
    assert_eq!(prefix(47, false).handle(&call), Err(Retval::INVALID_VALUE));
    assert_eq!(
        Nat64PrefixDump {}.dump(&call).map(|p| (p.prefix.len, p.vrf_id)).collect::<Vec<_>>(),
        [(48, 7)]
    );
    let side = |is_add, flags| Nat64AddDelInterface {
        is_add,
        flags: NatConfigFlags(flags),
        sw_if_index: InterfaceIndex(bed.far.index().0),
    };
    assert_eq!(side(true, NatConfigFlags::INSIDE).handle(&call), Ok(()), "both sides");
    let flags: Vec<u8> = Nat64InterfaceDump {}.dump(&call).map(|i| i.flags.0).collect();
    assert_eq!(flags, [NatConfigFlags::INSIDE | NatConfigFlags::OUTSIDE, NatConfigFlags::INSIDE]);
    assert_eq!(side(false, NatConfigFlags::INSIDE).handle(&call), Ok(()));
    assert_eq!(side(false, NatConfigFlags::INSIDE).handle(&call), Err(Retval::NO_SUCH_ENTRY));
    let times = Nat64SetTimeouts { udp: 200, tcp_established: 7450, tcp_transitory: 250, icmp: 30 };
    assert_eq!(times.handle(&call), Ok(()));
    assert_eq!(Nat64GetTimeouts {}.handle(&call).unwrap().tcp_established, 7450);
    let bound: Vec<_> = Nat64BibDump { proto: 255 }.dump(&call).collect();
    assert_eq!((bound.len(), bound[0].flags.0, bound[0].ses_num), (1, NatConfigFlags::STATIC, 0));
    assert_eq!(
        (Nat64BibDump { proto: 17 }.dump(&call).count(), Nat64StDump { proto: 255 }.dump(&call).count()),
        (0, 0)
    );
    let of_interface =
        |is_add| Nat64AddDelInterfaceAddr { is_add, sw_if_index: InterfaceIndex(bed.far.index().0) };
    assert_eq!(of_interface(true).handle(&call), Ok(()));
    assert_eq!(of_interface(true).handle(&call), Err(Retval::VALUE_EXIST));
    assert_eq!(Nat64PoolAddrDump {}.dump(&call).count(), 5);

    let mut running = Running::default();
    (shoal_nat64::MODULE.running)(bed.router.control(), &mut running);
    let lines = running.pieces().collect::<String>();
    for line in [
        "nat64 plugin enable\n",
        "set nat64 timeouts udp 200 tcp-established 7450 tcp-transitory 250 icmp 30\n",
        "nat64 add prefix 2001:db8:64::/48 tenant-vrf 7\n",
        "set interface nat64 in pg1\n",
        "set interface nat64 out pg0\n",
        "nat64 add interface address pg0\n",
        "nat64 add pool address 192.0.2.9\n",
        "nat64 add pool address 192.0.2.21 tenant-vrf 7\n",
        "nat64 add static bib 2001:db8:1::2 80 192.0.2.9 8080 tcp vrf 0\n",
    ] {
        assert!(lines.contains(line), "{line} of {lines}");
    }
    nat.disable().unwrap();
    assert_eq!(range(true).handle(&call), Err(Retval::UNSUPPORTED));
    assert_eq!(nat.disable(), Err(Nat64Error::AlreadyOff));
    assert!(nat.addresses().is_empty() && nat.sides().is_empty() && nat.statics().is_empty());
    api::same_as_vpp(&[&shoal_nat64::api::API]);
    let mut router = bed.router;
    api::random_bytes_do_no_harm(&mut router, &[&shoal_nat64::api::API], 200);
}
