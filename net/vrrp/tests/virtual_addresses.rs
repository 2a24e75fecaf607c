//! What is answered and forwarded by the router that has the addresses.

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_adj::Family;
use shoal_ip6::Ip6;
use shoal_ip6_nd::{Nd, VirtualSpeaker};
use shoal_testkit::PacketBuilder;
use shoal_vrrp::{Advertisement, Config, State, Version};
use shoal_wire::nd::{HOP_LIMIT, NeighborSolicitation, RouterSolicitation};
use shoal_wire::{ArpHeader, ArpOpcode, EtherType, IntoBytes, IpProtocol, MacAddress};

use crate::bed::*;

const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);
const HOST_MAC: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 5]);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);

fn who_has(target: Ipv4Addr) -> Vec<u8> {
    let arp = ArpHeader::new(ArpOpcode::REQUEST, HOST_MAC, HOST, MacAddress::ZERO, target);
    [&[0xff; 6][..], &HOST_MAC.0, &[8, 6], arp.as_bytes()].concat()
}

fn master(accept: bool) -> Bed {
    let mut bed = bed();
    bed.router.set_neighbour(&bed.lan, HOST, HOST_MAC);
    let index = bed.run(Config { accept, ..bed.config() });
    bed.advance(4000);
    assert_eq!(bed.state(index), State::Master);
    bed.lan.received();
    bed
}

#[test]
fn arp_is_answered_with_the_virtual_mac_by_the_master_alone() {
    let mut bed = master(false);
    bed.hear(who_has(VIP));
    let reply = bed.left(EtherType::ARP).pop().unwrap();
    assert_eq!((&reply[..6], &reply[6..12]), (&HOST_MAC.0[..], &MAC.0[..]));
    assert_eq!((&reply[20..28], &reply[28..32]), (&[&[0, 2][..], &MAC.0].concat()[..], &VIP.octets()[..]));
    // Its own address has its own MAC address.
    bed.hear(who_has(OURS));
    assert_eq!(bed.left(EtherType::ARP).pop().unwrap()[6..12], bed.lan.mac().0);
    bed.hear(other(200, 100));
    bed.hear(who_has(VIP));
    assert!(bed.left(EtherType::ARP).is_empty());
}

#[test]
fn frames_to_the_virtual_mac_are_forwarded_by_the_master_alone() {
    let mut bed = master(false);
    let through = || PacketBuilder::ethernet(HOST_MAC, MAC).ip4(HOST, FAR).udp(1, 2).build();
    bed.hear(through());
    assert_eq!(bed.wan.received().len(), 1);
    bed.hear(other(200, 100));
    bed.hear(through());
    assert!(bed.wan.received().is_empty());
    assert_eq!(bed.router.error("ethernet-input", "l3 mac mismatch"), 1);
}

#[test]
fn pings_are_answered_in_accept_mode_alone() {
    for accept in [true, false] {
        let mut bed = master(accept);
        let ping = PacketBuilder::ethernet(HOST_MAC, MAC).ip4(HOST, VIP).icmp_echo_request(1, 1).build();
        bed.hear(ping.clone());
        let answers = bed.left(EtherType::IP4).into_iter().filter(|frame| frame[23] == 1).count();
        assert_eq!(answers, usize::from(accept));
        let dropped = bed.router.error("vrrp4-no-accept", "packets to a virtual address without accept_mode");
        assert_eq!(dropped, u64::from(!accept));
        // It changes while it has the address.
        bed.vrrp.update(0, Config { accept: !accept, ..bed.config() }).unwrap();
        assert_eq!(bed.state(0), State::Master);
        bed.hear(ping);
        let answers = bed.left(EtherType::IP4).into_iter().filter(|frame| frame[23] == 1).count();
        assert_eq!(answers, usize::from(!accept));
    }
}

fn solicit(target: Ipv6Addr, dst: Ipv6Addr, dst_mac: MacAddress) -> Vec<u8> {
    let src: Ipv6Addr = "2001:db8::5".parse().unwrap();
    let mut room = [0; 64];
    let message = NeighborSolicitation::new(target).write(&mut room).source_link_layer(HOST_MAC);
    let len = message.finish(src, dst).unwrap();
    let packet = PacketBuilder::ethernet(HOST_MAC, dst_mac).ip6(src, dst).ttl(HOP_LIMIT);
    packet.protocol(IpProtocol::ICMP6).payload(&room[..len]).build()
}

#[test]
fn ip6_has_the_same() {
    let mut bed = bed();
    let index = bed.run(bed.config6());
    bed.router.run();
    // One report: the routers' group, and those of the addresses.
    let mut left = bed.left(EtherType::IP6);
    // Beside it hosts hear that this router itself is none any more.
    left.retain(|frame| frame[54] != 134);
    let [report] = &left[..] else { panic!("one packet") };
    assert_eq!(
        (report[62], &report[68..70], &report[74..90]),
        (143, &[0, 3][..], &"ff02::12".parse::<Ipv6Addr>().unwrap().octets()[..])
    );
    bed.advance(3700);
    assert_eq!(bed.state(index), State::Master);
    let frames = bed.left(EtherType::IP6);
    let first = frames.iter().find(|frame| read(frame).is_some()).unwrap();
    let said = read(first).unwrap();
    assert_eq!((said.addresses, said.first), (2, ip("fe80::7")));
    assert_eq!(first[..12], [0x33, 0x33, 0, 0, 0, 0x12, 0, 0, 0x5e, 0, 2, 7]);
    assert_eq!((first[21], &first[22..24]), (255, &[0xfe, 0x80][..]));
    // Both addresses are announced from the virtual MAC address: neighbour advertisements.
    let announced = frames.iter().filter(|frame| frame[54] == 136 && frame[6..12] == MAC6.0).count();
    assert_eq!(announced, 2);
    let vip: Ipv6Addr = "2001:db8::100".parse().unwrap();
    let group = shoal_wire::ip6_address::solicited_node(vip);
    let asked = [
        solicit(vip, group, MacAddress::for_ip6_multicast(group)),
        // A host looks whether its router is still there.
        solicit(vip, vip, MAC6),
    ];
    for frame in asked {
        bed.hear(frame);
        let frames = bed.left(EtherType::IP6);
        let answer = frames.iter().find(|frame| frame[54] == 136).expect("an advertisement");
        assert_eq!((&answer[..6], &answer[6..12]), (&HOST_MAC.0[..], &MAC6.0[..]));
        assert_eq!((&answer[62..78], &answer[80..86]), (&vip.octets()[..], &MAC6.0[..]));
    }
    let ping = PacketBuilder::ethernet(HOST_MAC, MAC6).ip6("2001:db8::5".parse::<Ipv6Addr>().unwrap(), vip);
    bed.hear(ping.icmp6_echo_request(1, 1).build());
    assert_eq!(bed.router.error("vrrp6-no-accept", "packets to a virtual address without accept_mode"), 1);
    bed.vrrp.stop(bed.key(Family::Ip6)).unwrap();
    bed.router.run();
    bed.lan.received();
    bed.hear(solicit(vip, group, MacAddress::for_ip6_multicast(group)));
    assert!(!bed.left(EtherType::IP6).iter().any(|frame| frame[54] == 136));
}

#[test]
fn an_ip6_advertisement_is_heard() {
    let mut bed = bed();
    let index = bed.run(bed.config6());
    bed.advance(4000);
    let (from, group) = ("fe80::9999".parse::<Ipv6Addr>().unwrap(), "ff02::12".parse::<Ipv6Addr>().unwrap());
    let config = bed.config6();
    let said = shoal_vrrp::Advertisement {
        version: shoal_vrrp::Version::V3,
        vr_id: 7,
        priority: 150,
        interval: 100,
        addresses: 2,
        first: config.addresses[0],
    };
    let message = said.write((from.into(), group.into()), &config.addresses);
    let packet = PacketBuilder::ethernet(MAC6, MacAddress::for_ip6_multicast(group)).ip6(from, group);
    bed.hear(packet.ttl(255).protocol(IpProtocol::VRRP).payload(&message).build());
    assert_eq!(bed.state(index), State::Backup, "{:?}", bed.router.errors());
}

/// Router advertisements that left: from which address and MAC address, which one they tell, and for how long the router is one.
fn advertised(bed: &Bed) -> Vec<(Ipv6Addr, MacAddress, MacAddress, u16)> {
    let frames = bed.left(EtherType::IP6).into_iter().filter(|frame| frame[20] == 58 && frame[54] == 134);
    let mac = |bytes: &[u8]| MacAddress(bytes.try_into().unwrap());
    let all = frames.map(|frame| {
        let src = Ipv6Addr::from(<[u8; 16]>::try_from(&frame[22..38]).unwrap());
        assert_eq!(frame[70..72], [1, 1], "the first option is the link-layer address");
        (src, mac(&frame[6..12]), mac(&frame[72..78]), u16::from_be_bytes([frame[60], frame[61]]))
    });
    all.collect()
}

/// Another router's advertisement for IPv6.
fn other6(priority: u8) -> Vec<u8> {
    let (from, group): (Ipv6Addr, Ipv6Addr) = ("fe80::9".parse().unwrap(), "ff02::12".parse().unwrap());
    let said = Advertisement {
        version: Version::V3,
        vr_id: 7,
        priority,
        interval: 100,
        addresses: 2,
        first: ip("fe80::7"),
    };
    let message = said.write((from.into(), group.into()), &[ip("fe80::7"), ip("2001:db8::100")]);
    let packet = PacketBuilder::ethernet(MAC6, MacAddress::for_ip6_multicast(group)).ip6(from, group);
    packet.ttl(255).protocol(IpProtocol::VRRP).payload(&message).build()
}

// RFC 9568 8.2.3
#[test]
fn hosts_hear_router_advertisements_of_the_virtual_router_from_the_master_alone() {
    let mut bed = bed();
    let own = bed.router.get::<Ip6>().link_local(bed.lan.index()).unwrap();
    let mac = bed.lan.mac();
    bed.advance(20_000);
    let before = advertised(&bed);
    assert!(!before.is_empty() && before.iter().all(|ra| *ra == (own, mac, mac, 600)), "{before:?}");
    // It begins as a backup: hosts stop using it.
    let index = bed.run(bed.config6());
    bed.router.run();
    assert_eq!(advertised(&bed), [(own, mac, mac, 0)]);
    bed.advance(3_700);
    assert_eq!(bed.state(index), State::Master);
    bed.advance(20_000);
    let virtual_router: Ipv6Addr = "fe80::7".parse().unwrap();
    let as_master = advertised(&bed);
    assert!(as_master.len() >= 2, "{as_master:?}");
    assert!(as_master.iter().all(|ra| *ra == (virtual_router, MAC6, MAC6, 600)), "{as_master:?}");
    let nd = bed.router.get::<Nd>();
    assert_eq!(
        nd.virtual_routers(bed.lan.index()),
        [(7, Some(VirtualSpeaker { address: virtual_router, mac: MAC6 }))]
    );
    // A host that asks is answered by it.
    let mut room = [0; 64];
    let (host, all_routers): (Ipv6Addr, Ipv6Addr) = ("fe80::5".parse().unwrap(), "ff02::2".parse().unwrap());
    let message = RouterSolicitation::default().write(&mut room).source_link_layer(HOST_MAC);
    let len = message.finish(host, all_routers).unwrap();
    let ask = PacketBuilder::ethernet(HOST_MAC, MacAddress::for_ip6_multicast(all_routers));
    let ask = ask.ip6(host, all_routers).ttl(HOP_LIMIT).protocol(IpProtocol::ICMP6).payload(&room[..len]);
    bed.hear(ask.build());
    bed.advance(4_000);
    assert_eq!(advertised(&bed), [(virtual_router, MAC6, MAC6, 600)]);
    // Another one takes over: hosts hear nothing any more, least of all that the virtual router is none.
    bed.hear(other6(200));
    assert_eq!(bed.state(index), State::Backup);
    for _ in 0..30 {
        bed.advance(1_000);
        bed.hear(other6(200));
    }
    assert!(advertised(&bed).is_empty());
    assert_eq!(nd.virtual_routers(bed.lan.index()), [(7, None)]);
    // Without the virtual router it is a router itself again.
    bed.vrrp.stop(bed.key(Family::Ip6)).unwrap();
    assert!(nd.virtual_routers(bed.lan.index()).is_empty());
    bed.advance(20_000);
    let after = advertised(&bed);
    assert!(!after.is_empty() && after.iter().all(|ra| *ra == (own, mac, mac, 600)), "{after:?}");
}

#[test]
fn one_without_a_link_local_address_changes_no_router_advertisements() {
    let mut bed = bed();
    let own = bed.router.get::<Ip6>().link_local(bed.lan.index()).unwrap();
    let config = Config { addresses: vec![ip("2001:db8::100")], ..bed.config6() };
    let index = bed.run(config);
    bed.advance(40_000);
    assert_eq!(bed.state(index), State::Master);
    let said = advertised(&bed);
    assert!(!said.is_empty() && said.iter().all(|(src, ..)| *src == own), "{said:?}");
    // It gets one, and loses it again.
    bed.vrrp.update(index, bed.config6()).unwrap();
    bed.router.run();
    assert_eq!(advertised(&bed).pop().unwrap().3, 0);
    bed.advance(20_000);
    assert!(advertised(&bed).iter().all(|(src, ..)| *src == "fe80::7".parse::<Ipv6Addr>().unwrap()));
    bed.vrrp.del(index).unwrap();
    bed.advance(20_000);
    assert!(advertised(&bed).iter().all(|(src, ..)| *src == own));
}
