//! DS-Lite through a whole router: an AFTR and a B4, translated bytes, errors, limits, bad input, messages, saved configuration.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::time::Duration;

use shoal_arp::table::{FibEntry, Origin};
use shoal_dslite::api::*;
use shoal_dslite::config::TunnelAddresses;
use shoal_dslite::{Dslite, DsliteError};
use shoal_interface::MtuLayer;
use shoal_ip6::Ip6;
use shoal_message::Retval;
use shoal_module::Running;
use shoal_module::api::{Call, Dump, Request};
use shoal_testkit::{PacketBuilder, Port, Rng, Router, STACK, api};
use shoal_wire::{Ip4Header, Ip6Header, IpProtocol, MacAddress, TcpFlags, checksum};

const FAR_MAC: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 2]);
const B4_MAC: MacAddress = MacAddress([2, 0xbb, 0, 0, 0, 2]);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const HOST: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 1);
const SHARED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
const ETHER: usize = 14;

fn aftr() -> TunnelAddresses {
    TunnelAddresses { ip4: Ipv4Addr::new(192, 0, 0, 1), ip6: "2001:db8:a::1".parse().unwrap() }
}

fn b4(n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, n)
}

struct Bed {
    router: Router,
    far: Port,
    access: Port,
    dslite: Rc<Dslite>,
}

fn bed() -> Bed {
    let mut modules = STACK.to_vec();
    modules.extend([
        &shoal_ip6_nd::MODULE,
        &shoal_reassembly::MODULE,
        &shoal_syslog::MODULE,
        &shoal_dslite::MODULE,
    ]);
    let mut router = Router::new(&modules);
    let (far, access) = (router.pg(0), router.pg(1));
    router.set_address(&far, "10.0.0.1/24");
    router.get::<Ip6>().add_address(access.index(), "2001:db8:1::ff/64".parse().unwrap()).unwrap();
    router.set_neighbour(&far, SERVER, FAR_MAC);
    let nd = router.get::<shoal_ip6_nd::Neighbours>();
    for n in 2..5 {
        nd.set((access.index(), b4(n)), B4_MAC, Origin::Static, FibEntry::Wanted).unwrap();
    }
    let dslite = router.get::<Dslite>();
    dslite.add_addresses((SHARED, SHARED)).unwrap();
    dslite.set_aftr(aftr()).unwrap();
    router.advance(Duration::from_secs(3));
    far.received();
    access.received();
    Bed { router, far, access, dslite }
}

type Make = fn(PacketBuilder) -> PacketBuilder;

/// An IPv4 packet without an Ethernet header.
fn inner(src: Ipv4Addr, dst: Ipv4Addr, make: Make) -> Vec<u8> {
    make(PacketBuilder::ethernet(B4_MAC, FAR_MAC).ip4(src, dst).ttl(64)).build()[ETHER..].to_vec()
}

impl Bed {
    fn tunnelled(&self, b4: Ipv6Addr, inner: &[u8]) -> Vec<u8> {
        let packet = PacketBuilder::ethernet(B4_MAC, self.access.mac()).ip6(b4, aftr().ip6);
        packet.protocol(IpProtocol::IP_IN_IP).payload(inner).build()
    }

    /// What leaves to the server of what a host sends.
    fn out(&mut self, n: u16, make: Make) -> Option<Vec<u8>> {
        let packet = self.tunnelled(b4(n), &inner(HOST, SERVER, make));
        self.router.send(&self.access, packet);
        self.far.received().pop().map(|frame| frame[ETHER..].to_vec())
    }

    /// What comes out towards a B4 of what the server sends.
    fn back(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let frame = [&self.far.mac().0[..], &FAR_MAC.0, &[8, 0], packet].concat();
        self.router.send(&self.far, frame);
        self.access.received().pop().map(|frame| frame[ETHER..].to_vec())
    }
}

fn ports(ip: &[u8]) -> (u16, u16) {
    let word = |at: usize| u16::from_be_bytes([ip[at], ip[at + 1]]);
    (word(20), word(22))
}

fn addresses(ip: &[u8]) -> (Ipv4Addr, Ipv4Addr) {
    let at = |n: usize| Ipv4Addr::new(ip[n], ip[n + 1], ip[n + 2], ip[n + 3]);
    (at(12), at(16))
}

/// Whether all checksums of an IPv4 packet are right.
fn is_whole(ip: &[u8]) -> bool {
    let upper = &ip[20..];
    let of_upper = match ip[9] {
        1 => checksum::verify(upper),
        protocol => {
            let pseudo =
                [&ip[12..20], &[0, protocol], &(upper.len() as u16).to_be_bytes()[..], upper].concat();
            checksum::verify(&pseudo)
        }
    };
    checksum::verify(&ip[..20]) && of_upper
}

const UDP: Make = |p| p.udp(20_000, 53).payload(b"odd");

#[test]
fn hosts_with_the_same_address_have_sessions_of_their_own() {
    let mut bed = bed();
    let mut seen = Vec::new();
    for n in [2, 3] {
        let left = bed.out(n, UDP).expect("it leaves");
        let ((src, dst), (sport, dport)) = (addresses(&left), ports(&left));
        assert_eq!((src, dst, dport), (SHARED, SERVER, 53));
        assert!(is_whole(&left) && sport >= 1024 && left[8] == 63);
        seen.push(sport);
        let answer = PacketBuilder::ethernet(FAR_MAC, B4_MAC).ip4(SERVER, SHARED).ttl(9).udp(53, sport);
        let packet = answer.payload(b"even").build()[ETHER..].to_vec();
        let tunnel = bed.back(&packet).expect("it goes into the tunnel");
        let (outer, carried) = tunnel.split_at(Ip6Header::LEN);
        assert_eq!(outer[6], IpProtocol::IP_IN_IP.0);
        assert_eq!(outer[8..24], aftr().ip6.octets());
        assert_eq!(outer[24..40], b4(n).octets());
        assert_eq!((addresses(carried), ports(carried)), ((SERVER, HOST), (53, 20_000)));
        assert!(is_whole(carried) && carried[8] == 8);
    }
    assert_ne!(seen[0], seen[1]);
    // A session that is known keeps its port.
    assert_eq!(ports(&bed.out(2, UDP).unwrap()).0, seen[0]);
    let records = bed.dslite.sessions().unwrap();
    assert_eq!((records.len(), records[0].packets), (2, 3));
}

#[test]
fn echoes_tcp_and_errors_are_translated_and_nothing_else() {
    let mut bed = bed();
    let left = bed.out(2, |p| p.icmp_echo_request(7, 1).payload(b"ping!")).unwrap();
    let id = u16::from_be_bytes([left[24], left[25]]);
    assert!(is_whole(&left) && addresses(&left).0 == SHARED);
    let mut answer = left.clone();
    answer[20] = 0;
    let sum = u16::from_be_bytes([answer[22], answer[23]]);
    let sum = (u32::from(sum) + 0x0800) as u16 + u16::from(u32::from(sum) + 0x0800 > 0xffff);
    answer[22..24].copy_from_slice(&sum.to_be_bytes());
    answer.copy_within(12..16, 16);
    answer[12..16].copy_from_slice(&SERVER.octets());
    let tunnel = bed.back(&answer).unwrap();
    let carried = &tunnel[Ip6Header::LEN..];
    assert!(is_whole(carried) && u16::from_be_bytes([carried[24], carried[25]]) == 7, "{id}");
    // An error about the host's packet of TCP finds the host.
    let syn = bed.out(2, |p| p.tcp(5000, 80, TcpFlags::SYN)).unwrap();
    assert!(is_whole(&syn));
    let mut error = PacketBuilder::ethernet(FAR_MAC, B4_MAC)
        .ip4(Ipv4Addr::new(10, 0, 0, 77), SHARED)
        .protocol(IpProtocol::ICMP)
        .payload(&[&[3, 1, 0, 0, 0, 0, 0, 0][..], &syn[..28]].concat())
        .build()[ETHER..]
        .to_vec();
    let sum = checksum::checksum(&error[20..]);
    error[22..24].copy_from_slice(&sum.to_be_bytes());
    let tunnel = bed.back(&error).expect("the error goes to the host");
    let carried = &tunnel[Ip6Header::LEN..];
    assert!(is_whole(carried));
    assert_eq!(addresses(carried).1, HOST);
    assert_eq!((addresses(&carried[28..]), ports(&carried[28..])), ((HOST, SERVER), (5000, 80)));
    // Other protocols, answers without a session and later fragments are counted.
    assert!(bed.out(2, |p| p.protocol(IpProtocol::GRE).payload(b"no ports")).is_none());
    assert_eq!(bed.router.error("dslite-in2out", "unsupported protocol"), 1);
    let stranger = PacketBuilder::ethernet(FAR_MAC, B4_MAC).ip4(SERVER, SHARED).ttl(9).udp(53, 1999).build();
    assert!(bed.back(&stranger[ETHER..]).is_none());
    assert_eq!(bed.router.error("dslite-out2in", "no translation"), 1);
}

#[test]
fn packets_that_are_too_long_for_the_tunnels_way_cross_it_in_pieces() {
    let mut bed = bed();
    bed.router.interfaces().set_mtu(bed.access.index(), MtuLayer::Ip6, 1400).unwrap();
    let long: Make = |p| p.dont_fragment().udp(20_000, 53).payload(&[7; 1472]);
    // From the host, as its B4 cuts it.
    let tunnel = bed.tunnelled(b4(2), &inner(HOST, SERVER, long));
    let (outer, carried) = tunnel[ETHER..].split_at(Ip6Header::LEN);
    let piece = |from: usize, to: usize, more: u16| {
        let mut outer = outer.to_vec();
        outer[4..6].copy_from_slice(&((8 + to - from) as u16).to_be_bytes());
        outer[6] = IpProtocol::IPV6_FRAGMENTATION.0;
        let fragment = [&[4, 0][..], &(from as u16 | more).to_be_bytes(), &[0, 0, 0, 9]].concat();
        [&tunnel[..ETHER], &outer, &fragment, &carried[from..to]].concat()
    };
    bed.router.send(&bed.access, piece(0, 1000, 1));
    assert!(bed.far.received().is_empty());
    bed.router.send(&bed.access, piece(1000, 1500, 0));
    let left = bed.far.received().pop().expect("it leaves whole")[ETHER..].to_vec();
    assert!(left.len() == 1500 && is_whole(&left));
    // And the answer, cut here although it says that it must not be.
    let port = ports(&left).0;
    let answer = PacketBuilder::ethernet(FAR_MAC, bed.far.mac()).ip4(SERVER, SHARED).ttl(9).dont_fragment();
    bed.router.send(&bed.far, answer.udp(53, port).payload(&[8; 1472]).build());
    let pieces = bed.access.received();
    assert_eq!(pieces.len(), 2);
    let mut carried = Vec::new();
    for piece in &pieces {
        let ip = &piece[ETHER..];
        assert!(ip.len() <= 1400 && (ip[6], ip[7], ip[40]) == (44, 63, IpProtocol::IP_IN_IP.0));
        assert_eq!(usize::from(u16::from_be_bytes([ip[42], ip[43]]) & !7), carried.len());
        carried.extend(&ip[48..]);
    }
    assert!(carried.len() == 1500 && is_whole(&carried) && addresses(&carried) == (SERVER, HOST));
}

#[test]
fn the_end_of_tunnels_answers_pings() {
    let mut bed = bed();
    let ping = PacketBuilder::ethernet(B4_MAC, bed.access.mac()).ip6(b4(2), aftr().ip6);
    bed.router.send(&bed.access, ping.icmp6_echo_request(1, 2).payload(b"x").build());
    let answer = bed.access.received().pop().expect("it answers");
    assert_eq!(answer[ETHER + 8..ETHER + 24], aftr().ip6.octets());
    assert_eq!(answer[ETHER + 40], 129);
}

#[test]
fn sessions_end_in_their_time_and_with_their_address_and_a_b4_has_a_limit() {
    let mut bed = bed();
    bed.out(2, UDP).unwrap();
    bed.out(3, |p| p.tcp(1, 2, TcpFlags::SYN)).unwrap();
    bed.router.advance(Duration::from_secs(310));
    assert_eq!(bed.dslite.sessions().unwrap().len(), 1, "UDP has ended");
    bed.out(3, |p| p.tcp(1, 2, TcpFlags::RST)).unwrap();
    bed.router.advance(Duration::from_secs(250));
    assert_eq!(bed.dslite.sessions().unwrap().len(), 0, "TCP has ended after a reset");
    for port in 0..1001u16 {
        let host = Ipv4Addr::new(192, 168, 2, (port % 250) as u8);
        let make = PacketBuilder::ethernet(B4_MAC, FAR_MAC).ip4(host, SERVER).ttl(64).udp(3000 + port, 53);
        let packet = bed.tunnelled(b4(4), &make.build()[ETHER..]);
        bed.router.send(&bed.access, packet);
    }
    bed.far.received();
    assert_eq!(bed.dslite.sessions().unwrap().len(), 1000);
    assert_eq!(bed.router.error("dslite-in2out-slowpath", "maximum sessions exceeded"), 1);
    bed.out(2, UDP).expect("another B4 is not concerned");
    bed.dslite.del_addresses((SHARED, SHARED)).unwrap();
    assert!(bed.dslite.sessions().unwrap().is_empty());
    assert!(bed.out(2, UDP).is_none());
    assert!(bed.router.error("dslite-in2out-slowpath", "out of ports") > 0);
}

#[test]
fn random_packets_do_no_harm() {
    let mut bed = bed();
    bed.router.may_hold(2000);
    let mut rng = Rng::new(7);
    let good = inner(HOST, SERVER, UDP);
    for _ in 0..2000 {
        let mut bytes = good.clone();
        for _ in 0..=rng.below(3) {
            let at = rng.below(bytes.len());
            bytes[at] = rng.below(256) as u8;
        }
        bytes.truncate(1 + rng.below(bytes.len()));
        let packet = bed.tunnelled(b4(2), &bytes);
        bed.router.send(&bed.access, packet);
        let frame = [&bed.far.mac().0[..], &FAR_MAC.0, &[8, 0], &bytes].concat();
        bed.router.send(&bed.far, frame);
    }
    for frame in bed.far.received() {
        if frame[12..14] == [8, 0] {
            assert!(checksum::verify(&frame[ETHER..ETHER + Ip4Header::LEN]));
        }
    }
    bed.out(3, UDP).expect("it works");
}

#[test]
fn mistakes_change_nothing_messages_are_vpps_and_all_is_saved() {
    let bed = bed();
    let (a, b): (Ipv4Addr, Ipv4Addr) = ("192.0.2.20".parse().unwrap(), "192.0.2.22".parse().unwrap());
    let dslite = &bed.dslite;
    assert_eq!(dslite.add_addresses((SHARED, SHARED)), Err(DsliteError::Exists(SHARED)));
    assert_eq!(dslite.del_addresses((a, a)), Err(DsliteError::None(a)));
    assert_eq!(dslite.add_addresses((b, a)), Err(DsliteError::Range(b, a)));
    assert_eq!(dslite.set_b4(aftr()), Err(DsliteError::NoB4));
    let group = TunnelAddresses { ip6: "ff02::1".parse().unwrap(), ..aftr() };
    assert_eq!(dslite.set_aftr(group), Err(DsliteError::Address(group.ip6.into())));
    assert_eq!(dslite.aftr(), Some(aftr()));
    let call = Call::local(bed.router.control());
    let range = |is_add| DsliteAddDelPoolAddrRange { start_addr: a, end_addr: b, is_add };
    assert_eq!(range(true).handle(&call), Ok(()));
    assert_eq!(range(true).handle(&call), Err(Retval::VALUE_EXIST));
    assert_eq!(DsliteAddressDump {}.dump(&call).count(), 4);
    let there = DsliteGetAftrAddr {}.handle(&call).unwrap();
    assert_eq!((there.ip4_addr, there.ip6_addr), (aftr().ip4, aftr().ip6));
    let b4 = DsliteSetB4Addr { ip4_addr: a, ip6_addr: aftr().ip6 };
    assert_eq!(b4.handle(&call), Err(Retval::FEATURE_DISABLED));
    let mut running = Running::default();
    (shoal_dslite::MODULE.running)(bed.router.control(), &mut running);
    let lines = running.pieces().collect::<String>();
    assert!(lines.contains("dslite add pool address 192.0.2.20 - 192.0.2.22"), "{lines}");
    assert!(lines.contains("dslite add pool address 192.0.2.9\n"), "{lines}");
    assert!(lines.contains("dslite set aftr-tunnel-endpoint-address 2001:db8:a::1"), "{lines}");
    assert_eq!(range(false).handle(&call), Ok(()));
    assert_eq!(range(false).handle(&call), Err(Retval::NO_SUCH_ENTRY));
    api::same_as_vpp(&[&shoal_dslite::api::API]);
}
