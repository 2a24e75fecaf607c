//! MAP through a whole router: tunnels and translation both ways, errors, checks, bad input, messages, saved configuration.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::time::Duration;

use shoal_arp::table::{FibEntry, Origin};
use shoal_fib::{Fib, FibIndex, Path, Source};
use shoal_interface::MtuLayer;
use shoal_ip6::Ip6;
use shoal_map::api::*;
use shoal_map::domain::{InvalidDomain, Parameters};
use shoal_map::{Map, MapError, Mode};
use shoal_message::Retval;
use shoal_module::Running;
use shoal_module::api::{Call, Dump, Get, Request};
use shoal_testkit::{PacketBuilder, Port, Rng, Router, STACK, api, fuzz_all_nodes};
use shoal_wire::{Ip6Header, IpProtocol, MacAddress, TcpFlags, checksum};

const FAR_MAC: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 2]);
const CE_MAC: MacAddress = MacAddress([2, 0xbb, 0, 0, 0, 2]);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// A customer's shared address, its port and what RFC 7597 makes of them.
const CUSTOMER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 12);
const PORT: u16 = 16_606;
const ETHER: usize = 14;

fn six(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn ce() -> Ipv6Addr {
    six("2001:db8:f0:c30:0:c612:c:3")
}

fn relay() -> Ipv6Addr {
    six("2001:db8:ffff::1")
}

fn parameters(src: &str) -> Parameters {
    Parameters {
        ip4: "198.18.0.0/24".parse().unwrap(),
        ip6: "2001:db8:f0::/48".parse().unwrap(),
        ip6_src: src.parse().unwrap(),
        ea_bits: 12,
        psid_offset: 6,
        psid_length: 4,
        mtu: 1500,
        tag: "one".into(),
    }
}

struct Bed {
    router: Router,
    far: Port,
    access: Port,
    map: Rc<Map>,
}

fn bed(mode: Mode) -> Bed {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_reassembly::MODULE, &shoal_map::MODULE]);
    let mut router = Router::new(&modules);
    let (far, access) = (router.pg(0), router.pg(1));
    router.set_address(&far, "10.0.0.1/24");
    router.get::<Ip6>().add_address(access.index(), "2001:db8:1::1/64".parse().unwrap()).unwrap();
    router.set_neighbour(&far, SERVER, FAR_MAC);
    let hop = six("2001:db8:1::2");
    let nd = router.get::<shoal_ip6_nd::Neighbours>();
    nd.set((access.index(), hop), CE_MAC, Origin::Static, FibEntry::Wanted).unwrap();
    let to: shoal_wire::IpPrefix = "2001:db8:f0::/48".parse().unwrap();
    let path = Path::next_hop(hop, access.index());
    router.get::<Fib>().add(FibIndex::DEFAULT, to, Source::Cli, &[path]).unwrap();
    let map = router.get::<Map>();
    let src = if mode == Mode::Translate { "2001:db8:ffff:ff00::/64" } else { "2001:db8:ffff::1/128" };
    map.add_domain(parameters(src)).unwrap();
    map.set_interface(far.index(), mode, true).unwrap();
    map.set_interface(access.index(), mode, true).unwrap();
    router.advance(Duration::from_secs(3));
    far.received();
    access.received();
    Bed { router, far, access, map }
}

type Make = fn(PacketBuilder) -> PacketBuilder;

impl Bed {
    /// What a customer gets of what the server sends.
    fn toward_customer(&mut self, make: Make) -> Option<Vec<u8>> {
        let packet = PacketBuilder::ethernet(FAR_MAC, self.far.mac()).ip4(SERVER, CUSTOMER).ttl(9);
        self.router.send(&self.far, make(packet).build());
        self.access.received().pop().map(|frame| frame[ETHER..].to_vec())
    }

    fn toward_server(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let frame = [&self.access.mac().0[..], &CE_MAC.0, &[0x86, 0xdd], packet].concat();
        self.router.send(&self.access, frame);
        self.far.received().pop().map(|frame| frame[ETHER..].to_vec())
    }

    fn tunnelled(&mut self, src: Ipv6Addr, inner: &[u8]) -> Option<Vec<u8>> {
        let packet = PacketBuilder::ethernet(CE_MAC, FAR_MAC).ip6(src, relay());
        let packet = packet.protocol(IpProtocol::IP_IN_IP).payload(inner).build();
        self.toward_server(&packet[ETHER..])
    }
}

/// An IPv4 packet of a customer to the server.
fn customers(port: u16, make: impl Fn(PacketBuilder, u16) -> PacketBuilder) -> Vec<u8> {
    let packet = PacketBuilder::ethernet(CE_MAC, FAR_MAC).ip4(CUSTOMER, SERVER).ttl(9);
    make(packet, port).build()[ETHER..].to_vec()
}

fn udp(packet: PacketBuilder, port: u16) -> PacketBuilder {
    packet.udp(port, 53).payload(b"odd")
}

/// Whether all checksums of an IPv4 packet are right.
fn is_whole4(ip: &[u8]) -> bool {
    let upper = &ip[20..];
    let pseudo = [&ip[12..20], &[0, ip[9]], &(upper.len() as u16).to_be_bytes()[..], upper].concat();
    checksum::verify(&ip[..20])
        && if ip[9] == 1 { checksum::verify(upper) } else { checksum::verify(&pseudo) }
}

/// The same of an IPv6 packet.
fn is_whole6(ip: &[u8]) -> bool {
    let (head, upper) = ip.split_at(Ip6Header::LEN);
    let length = (upper.len() as u32).to_be_bytes();
    checksum::verify(&[&head[8..40], &length[..], &[0, 0, 0, head[6]], upper].concat())
}

#[test]
fn tunnels_carry_packets_both_ways() {
    let mut bed = bed(Mode::Encapsulate);
    let tunnel = bed.toward_customer(|p| p.udp(53, PORT).payload(b"odd")).expect("it goes into the tunnel");
    let (outer, inner) = tunnel.split_at(Ip6Header::LEN);
    assert_eq!((outer[6], &outer[8..24], &outer[24..40]), (4, &relay().octets()[..], &ce().octets()[..]));
    assert!(is_whole4(inner) && inner[8] == 8);
    assert_eq!(outer[7], 63, "VPP's 64, of which its lookup takes one");
    let packet = customers(PORT, udp);
    let left = bed.tunnelled(ce(), &packet).expect("it comes out");
    assert_eq!((left[8], &left[12..]), (8, &packet[12..]));
    assert!(is_whole4(&left));
    // To a next hop that is set, whatever the table says.
    let hop = Ipv4Addr::new(10, 0, 0, 3);
    bed.router.set_neighbour(&bed.far, hop, CE_MAC);
    bed.map.set_next_hops(&[hop.into()], true).unwrap();
    let frame = PacketBuilder::ethernet(CE_MAC, bed.access.mac()).ip6(ce(), relay());
    bed.router.send(&bed.access, frame.protocol(IpProtocol::IP_IN_IP).payload(&packet).build());
    assert_eq!(bed.far.received().pop().expect("it goes there")[..6], CE_MAC.0);
    // One that no route leads to: not by another way.
    bed.map.set_next_hops(&[Ipv4Addr::new(10, 77, 0, 3).into()], true).unwrap();
    assert!(bed.tunnelled(ce(), &packet).is_none());
    bed.map.set_next_hops(&[hop.into()], false).unwrap();
    // Others' addresses, ports and port sets, and ports that are no customer's.
    let thieves = [
        six("2001:db8:f0:c30:0:c612:1c:3"),
        six("2001:db8:f0:c40:0:c612:c:4"),
        six("2001:db8:f1:c30:0:c612:c:3"),
    ];
    for thief in thieves {
        assert!(bed.tunnelled(thief, &packet).is_none(), "{thief}");
    }
    assert!(bed.tunnelled(ce(), &customers(PORT + 256, udp)).is_none());
    assert_eq!(bed.router.error("ip6-map", "decap security check failed"), 4);
    assert!(bed.toward_customer(|p| p.udp(53, 1023)).is_none());
    assert_eq!(bed.router.error("ip4-map", "encap security check failed"), 1);
    bed.map.set(|settings| settings.icmp6_unreachables = true);
    bed.access.received();
    assert!(bed.tunnelled(ce(), &customers(PORT + 256, udp)).is_none());
    let told = bed.access.received().pop().expect("its sender is told");
    assert_eq!((told[ETHER + 40], told[ETHER + 41]), (1, 5), "source address failed policy");
    bed.map.set(|settings| settings.icmp6_unreachables = false);
    bed.map.set(|settings| settings.security_check = false);
    assert!(bed.tunnelled(thieves[0], &packet).is_some(), "when it is not checked");
    let counts = bed.map.domain(0).unwrap().counts;
    assert_eq!((counts[0].0, counts[1].0), (4, 1), "also the one without a next hop");
}

#[test]
fn a_tunnel_packet_in_pieces_is_put_together_first() {
    let mut bed = bed(Mode::Encapsulate);
    let packet = customers(PORT, |p, port| p.udp(port, 53).payload(&[7; 100]));
    let piece = |at: usize, end: usize, more: u8| {
        let mut fragment = vec![4, 0, 0, at as u8 | more, 0, 0, 0, 9];
        fragment.extend(&packet[at..end]);
        let outer = PacketBuilder::ethernet(CE_MAC, FAR_MAC).ip6(ce(), relay());
        outer.protocol(IpProtocol(44)).payload(&fragment).build()[ETHER..].to_vec()
    };
    assert!(bed.toward_server(&piece(64, packet.len(), 0)).is_none(), "out of order");
    let left = bed.toward_server(&piece(0, 64, 1)).expect("it comes out");
    assert_eq!((left.len(), &left[12..]), (packet.len(), &packet[12..]));
    // Full reassembly goes with MAP, and not what an operator wants of it.
    let reassembly = bed.router.get::<shoal_reassembly::Reassembly>();
    bed.map.set_interface(bed.access.index(), Mode::Encapsulate, false).unwrap();
    assert_eq!(reassembly.interface(bed.access.index()), shoal_reassembly::Families::NONE);
}

#[test]
fn packets_too_large_for_a_domain_are_cut_or_told_of() {
    let mut bed = bed(Mode::Encapsulate);
    bed.map.del_domain(0).unwrap();
    bed.map.add_domain(Parameters { mtu: 600, ..parameters("2001:db8:ffff::1/128") }).unwrap();
    let long: Make = |p| p.udp(53, PORT).payload(&[7; 1000]);
    bed.map.set(|settings| settings.frag_inner = true);
    let packet = PacketBuilder::ethernet(FAR_MAC, bed.far.mac()).ip4(SERVER, CUSTOMER).ttl(9);
    bed.router.send(&bed.far, long(packet).build());
    let pieces = bed.access.received();
    let lengths: Vec<usize> = pieces.iter().map(|piece| piece.len() - ETHER).collect();
    assert_eq!(lengths, [40 + 20 + 536, 40 + 20 + 472]);
    for (piece, (offset, more)) in pieces.iter().zip([(0, 0x2000), (67, 0)]) {
        let inner = &piece[ETHER + Ip6Header::LEN..];
        assert!(checksum::verify(&inner[..20]) && inner[8] == 8);
        assert_eq!(u16::from_be_bytes([inner[6], inner[7]]), offset | more);
    }
    // One that must not be cut: its sender gets an error.
    let packet = PacketBuilder::ethernet(FAR_MAC, bed.far.mac()).ip4(SERVER, CUSTOMER).ttl(9).dont_fragment();
    bed.router.send(&bed.far, long(packet).build());
    assert!(bed.access.received().is_empty());
    let told = bed.far.received().pop().expect("an ICMP error");
    assert_eq!((told[34], told[35], u16::from_be_bytes([told[40], told[41]])), (3, 4, 560));
}

#[test]
fn many_domains_with_one_relay_and_rules_find_their_customers() {
    let mut bed = bed(Mode::Encapsulate);
    for n in 0..2000u32 {
        let ip4 = Ipv4Addr::from_bits(0xcb00_0000 + n);
        let ruled = Parameters {
            ip4: format!("{ip4}/32").parse().unwrap(),
            ea_bits: 0,
            ..parameters("2001:db8:ffff::1/128")
        };
        assert_eq!(bed.map.add_domain(ruled), Ok(n + 1));
    }
    let customer = six("2001:db8:f0:77::1");
    for psid in 0..16 {
        let address = Ipv6Addr::from_bits(customer.to_bits() + u128::from(psid));
        bed.map.add_rule(1001, psid, address).unwrap();
    }
    let host = Ipv4Addr::from_bits(0xcb00_0000 + 1000);
    let packet = PacketBuilder::ethernet(CE_MAC, FAR_MAC).ip4(host, SERVER).ttl(9).udp(PORT, 53).build();
    let third = Ipv6Addr::from_bits(customer.to_bits() + 3);
    assert!(bed.tunnelled(third, &packet[ETHER..]).is_some());
    assert!(bed.tunnelled(customer, &packet[ETHER..]).is_none(), "another port set's address");
    let to = PacketBuilder::ethernet(FAR_MAC, bed.far.mac()).ip4(SERVER, host).ttl(9).udp(53, PORT);
    bed.router.send(&bed.far, to.build());
    assert_eq!(bed.access.received().pop().unwrap()[ETHER + 24..ETHER + 40], third.octets());
    bed.map.del_rule(1001, 3).unwrap();
    assert!(bed.tunnelled(third, &packet[ETHER..]).is_none());
    bed.map.del_domain(1001).unwrap();
    assert!(bed.tunnelled(customer, &packet[ETHER..]).is_none());
    assert_eq!(bed.router.error("ip6-map", "no domain"), 1);
    assert!(bed.tunnelled(ce(), &customers(PORT, udp)).is_some(), "others are as before");
}

#[test]
fn translation_is_exact_both_ways() {
    let mut bed = bed(Mode::Translate);
    let kinds: [Make; 4] = [
        |p| p.udp(53, PORT).payload(b"odd"),
        |p| p.udp(53, PORT).payload(b"even"),
        |p| p.tcp(80, PORT, TcpFlags::ACK).payload(b"x"),
        |p| p.icmp_echo_request(PORT, 1).payload(b"ping!"),
    ];
    let server = six("2001:db8:ffff:ff00:a:0:200:0");
    for make in kinds {
        let packet = bed.toward_customer(make).expect("it is translated");
        assert_eq!((&packet[8..24], &packet[24..40]), (&server.octets()[..], &ce().octets()[..]));
        assert!(is_whole6(&packet) && packet[7] == 8);
        // The way back.
        let mut answer = packet.clone();
        answer[8..24].copy_from_slice(&ce().octets());
        answer[24..40].copy_from_slice(&server.octets());
        if answer[6] != 58 {
            answer.swap(40, 42);
            answer.swap(41, 43);
        }
        let left = bed.toward_server(&answer).expect("it is translated back");
        assert_eq!((&left[12..16], &left[16..20]), (&CUSTOMER.octets()[..], &SERVER.octets()[..]));
        assert!(is_whole4(&left) && left[8] == 7, "{left:?}");
    }
    assert!(bed.toward_customer(|p| p.protocol(IpProtocol::GRE).payload(b"no ports")).is_none());
    assert_eq!(bed.router.error("ip4-map-t", "bad protocol"), 1);
    let thief = PacketBuilder::ethernet(CE_MAC, FAR_MAC).ip6(six("2001:db8:f0:c30:0:c612:c:4"), server);
    assert!(bed.toward_server(&thief.udp(PORT, 53).build()[ETHER..]).is_none());
    assert_eq!(bed.router.error("ip6-map-t", "security check failed"), 1);
}

#[test]
fn senders_of_packets_that_are_too_long_once_translated_are_told() {
    let mut bed = bed(Mode::Translate);
    let set = |bed: &Bed, port: &Port, layer, mtu| {
        bed.router.interfaces().set_mtu(port.index(), layer, mtu).unwrap();
    };
    let mtu =
        |frame: &[u8], at: usize| u32::from_be_bytes(frame[ETHER + at..ETHER + at + 4].try_into().unwrap());
    set(&bed, &bed.access, MtuLayer::Ip6, 1400);
    let fits: Make = |p| p.dont_fragment().udp(53, PORT).payload(&[7; 1380 - 28]);
    let back = bed.toward_customer(fits).expect("it just fits");
    assert_eq!(back.len(), 1400);
    assert!(bed.toward_customer(|p| p.dont_fragment().udp(53, PORT).payload(&[7; 1381 - 28])).is_none());
    let told = bed.far.received().pop().expect("the server is told");
    assert_eq!((told[ETHER + 20], told[ETHER + 21], mtu(&told, 24)), (3, 4, 1380));
    // The other way.
    set(&bed, &bed.far, MtuLayer::Ip4, 1300);
    let server = six("2001:db8:ffff:ff00:a:0:200:0");
    let sent = |total: usize| {
        let packet = PacketBuilder::ethernet(CE_MAC, FAR_MAC).ip6(ce(), server).ttl(9);
        packet.udp(PORT, 53).payload(&vec![7; total - 48]).build()[ETHER..].to_vec()
    };
    assert_eq!(bed.toward_server(&sent(1320)).expect("it just fits").len(), 1300);
    assert!(bed.toward_server(&sent(1321)).is_none());
    let told = bed.access.received().pop().expect("the customer is told");
    assert_eq!((told[ETHER + 40], told[ETHER + 41], mtu(&told, 44)), (2, 0, 1320));
}

#[test]
fn translated_packets_too_large_for_a_domain_are_cut() {
    let mut bed = bed(Mode::Translate);
    let packet = PacketBuilder::ethernet(FAR_MAC, bed.far.mac()).ip4(SERVER, CUSTOMER).ttl(9);
    bed.router.send(&bed.far, packet.udp(53, PORT).payload(&[7; 1453]).build());
    let pieces = bed.access.received();
    let lengths: Vec<usize> = pieces.iter().map(|piece| piece.len() - ETHER).collect();
    assert_eq!(lengths, [1496, 40 + 8 + 1461 - 1448], "a domain of 1500 bytes");
    for (piece, place) in pieces.iter().zip([1, 1448]) {
        assert_eq!((piece[ETHER + 6], piece[ETHER + 7]), (44, 8), "fragments");
        assert_eq!(u16::from_be_bytes([piece[ETHER + 42], piece[ETHER + 43]]), place);
    }
    let just = PacketBuilder::ethernet(FAR_MAC, bed.far.mac()).ip4(SERVER, CUSTOMER).ttl(9);
    bed.router.send(&bed.far, just.udp(53, PORT).payload(&[7; 1452]).build());
    assert_eq!(bed.access.received().len(), 1);
}

#[test]
fn errors_of_routers_on_the_way_need_a_source() {
    let mut bed = bed(Mode::Translate);
    let server = six("2001:db8:ffff:ff00:a:0:200:0");
    let carried = PacketBuilder::ethernet(CE_MAC, FAR_MAC).ip6(server, ce()).udp(53, PORT).payload(b"1234");
    let carried = carried.build()[ETHER..].to_vec();
    let body = [&[3, 0, 0, 0, 0, 0, 0, 0][..], &carried].concat();
    let packet = PacketBuilder::ethernet(CE_MAC, FAR_MAC).ip6(six("2001:db8:77::1"), server).ttl(9);
    let mut packet = packet.protocol(IpProtocol(58)).payload(&body).build()[ETHER..].to_vec();
    let pseudo = [&packet[8..40], &(body.len() as u32).to_be_bytes()[..], &[0, 0, 0, 58], &body].concat();
    let sum = checksum::checksum(&pseudo);
    packet[42..44].copy_from_slice(&sum.to_be_bytes());
    assert!(is_whole6(&packet) && bed.toward_server(&packet).is_none());
    bed.map.set_icmp_source(Ipv4Addr::new(192, 0, 2, 1));
    let left = bed.toward_server(&packet).expect("it is told");
    assert!(is_whole4(&left));
    assert_eq!((left[20], left[21], &left[12..16]), (11, 0, &[192, 0, 2, 1][..]));
    assert_eq!((&left[40..44], &left[44..48]), (&SERVER.octets()[..], &CUSTOMER.octets()[..]));
}

#[test]
fn random_packets_do_no_harm() {
    for mode in [Mode::Encapsulate, Mode::Translate] {
        let mut bed = bed(mode);
        bed.router.may_hold(2000);
        fuzz_all_nodes(&mut bed.router, Rng::seed(7597), 500);
        let mut rng = Rng::new(7599);
        let good = customers(PORT, udp);
        for _ in 0..1000 {
            let mut bytes = good.clone();
            for _ in 0..=rng.below(3) {
                let at = rng.below(bytes.len());
                bytes[at] = rng.below(256) as u8;
            }
            bytes.truncate(1 + rng.below(bytes.len()));
            bed.tunnelled(ce(), &bytes);
            let frame = [&bed.far.mac().0[..], &FAR_MAC.0, &[8, 0], &bytes].concat();
            bed.router.send(&bed.far, frame);
        }
        bed.access.received();
        assert!(bed.toward_customer(|p| p.udp(53, PORT)).is_some(), "it works");
    }
}

#[test]
fn mistakes_change_nothing_messages_are_vpps_and_all_is_saved() {
    let bed = bed(Mode::Encapsulate);
    let map = &bed.map;
    let unfit = Parameters { psid_length: 12, ..parameters("2001:db8:ffff::1/128") };
    assert_eq!(map.add_domain(unfit), Err(MapError::Unfit(InvalidDomain::Ports(18))));
    assert_eq!(map.del_domain(9), Err(MapError::NoDomain(9)));
    assert_eq!(map.add_rule(0, 3, ce()), Err(MapError::Rule(0, 3)));
    let interface = bed.far.index();
    let other = map.set_interface(interface, Mode::Translate, true);
    assert!(matches!(other, Err(MapError::OtherKind(_))));
    assert_eq!(map.set_interface(interface, Mode::Encapsulate, true), Ok(()));
    // A domain with rules, and a gap before it.
    let ruled =
        Parameters { ea_bits: 0, ip4: "192.0.2.1/32".parse().unwrap(), ..parameters("2001:db8:ffff::1/128") };
    map.add_domain(ruled.clone()).unwrap();
    assert_eq!(map.add_domain(ruled), Ok(2));
    map.del_domain(1).unwrap();
    map.add_rule(2, 3, ce()).unwrap();
    assert_eq!(map.add_rule(2, 16, ce()), Err(MapError::Rule(2, 16)));
    assert_eq!(map.add_rule(2, 4, ce()), Err(MapError::Rule(2, 4)), "two port sets at one address");
    assert_eq!(map.del_rule(2, 4), Err(MapError::NoRule(2, 4)));
    map.set(|settings| (settings.tcp_mss, settings.tc_copy, settings.tc_class) = (1300, false, 32));
    let call = Call::local(bed.router.control());
    assert_eq!(MapDomainDump {}.dump(&call).count(), 2);
    assert_eq!(MapRuleDump { domain_index: 2 }.dump(&call).map(|rule| rule.psid).collect::<Vec<_>>(), [3]);
    let (page, end) = MapDomainsGet { cursor: 0 }.get(&call).unwrap();
    assert_eq!((page.len(), page[1].domain_index, end.retval, end.cursor), (2, 2, 0, u32::MAX));
    assert_eq!(MapDelDomain { index: 1 }.handle(&call), Err(Retval::UNSPECIFIED));
    let rule = |index, is_add| MapAddDelRule { index, is_add, ip6_dst: ce(), psid: 4 };
    assert_eq!(rule(2, true).handle(&call), Err(Retval::UNSPECIFIED), "two port sets at one address");
    assert_eq!(rule(2, false).handle(&call), Ok(()), "there is none");
    assert_eq!(rule(9, false).handle(&call), Err(Retval::UNSPECIFIED));
    assert_eq!(MapSummaryStats {}.handle(&call).unwrap().total_bindings, 2);
    assert_eq!(MapParamGet {}.handle(&call).unwrap().tc_class, 32);
    api::same_as_vpp(&[&shoal_map::api::API]);
    let mut running = Running::default();
    (shoal_map::MODULE.running)(bed.router.control(), &mut running);
    let lines = running.pieces().collect::<String>();
    for line in [
        "map params tcp-mss 1300\n",
        "map params traffic-class 32\n",
        "map add domain tag one ip4-pfx 198.18.0.0/24 ip6-pfx 2001:db8:f0::/48 ip6-src 2001:db8:ffff::1/128 \
         ea-bits-len 12 psid-offset 6 psid-len 4 mtu 1500 index 0\n",
        "map add rule index 2 psid 3 ip6-dst 2001:db8:f0:c30:0:c612:c:3\n",
        " mtu 1500 index 2\n",
        "map interface pg0\n",
    ] {
        assert!(lines.contains(line), "{line} is not in {lines}");
    }
    map.del_domain(0).unwrap();
    map.del_domain(2).unwrap();
    assert_eq!(MapSummaryStats {}.handle(&call).map(drop), Err(Retval::UNSPECIFIED), "without domains");
}

#[test]
fn next_hops_are_found_as_those_of_routes_are() {
    let mut bed = bed(Mode::Encapsulate);
    let fib = bed.router.get::<Fib>();
    let to = |next_hop: &str| Path::next_hop(next_hop.parse::<Ipv4Addr>().unwrap(), bed.far.index());
    let [by5, by6] = ["10.0.0.5", "10.0.0.6"].map(to);
    let route = |prefix: &str, paths: &[Path]| {
        let prefix: shoal_wire::IpPrefix = prefix.parse().unwrap();
        fib.add(FibIndex::DEFAULT, prefix, Source::Cli, paths).unwrap();
    };
    let packet = customers(PORT, udp);
    // By the default route, whose own next hop is a neighbour that is not known yet: it is asked for.
    bed.map.set_next_hops(&["198.51.100.9".parse().unwrap()], true).unwrap();
    assert!(bed.tunnelled(ce(), &packet).is_none(), "no route leads there");
    route("0.0.0.0/0", &[by5]);
    let frame = PacketBuilder::ethernet(CE_MAC, bed.access.mac()).ip6(ce(), relay());
    let frame = frame.protocol(IpProtocol::IP_IN_IP).payload(&packet).build();
    bed.router.send(&bed.access, &frame);
    let asked = bed.far.received().pop().expect("an ARP request");
    assert_eq!((&asked[12..14], &asked[38..42]), (&[8, 6][..], &[10, 0, 0, 5][..]));
    let [hop5, hop6] = [FAR_MAC, CE_MAC];
    bed.router.set_neighbour(&bed.far, Ipv4Addr::new(10, 0, 0, 5), hop5);
    bed.far.received();
    bed.router.send(&bed.access, &frame);
    assert_eq!(bed.far.received().pop().expect("it goes there")[..6], hop5.0);
    // The route leads by another neighbour now, and then by two.
    bed.router.set_neighbour(&bed.far, Ipv4Addr::new(10, 0, 0, 6), hop6);
    route("198.51.100.0/24", &[by6]);
    bed.router.send(&bed.access, &frame);
    assert_eq!(bed.far.received().pop().expect("it goes there")[..6], hop6.0);
    route("198.51.100.0/24", &[by5, by6]);
    bed.router.send(&bed.access, &frame);
    assert!(
        [hop5.0, hop6.0]
            .contains(&bed.far.received().pop().expect("it goes by one")[..6].try_into().unwrap())
    );
    // An address that no packet may go to is none; what is set stays.
    let refused = bed.map.set_next_hops(&[Ipv6Addr::UNSPECIFIED.into(), [224, 0, 0, 1].into()], true);
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(bed.map.next_hops().addresses().count(), 1);
    bed.map.set_next_hops(&["198.51.100.9".parse().unwrap()], false).unwrap();
    bed.router.send(&bed.access, &frame);
    assert_eq!(bed.far.received().pop().expect("where the table says")[..6], FAR_MAC.0);
}
