//! `ip4-local`: packets for the router itself. RFC 1122, 3.2 and 4.1.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use common::{InjectedPacket, PacketInjector, ip, to, two_hosts};
use shoal_buffer::Flags;
use shoal_testkit::{PacketBuilder, Port, Router};
use shoal_wire::packet::Fragment;
use shoal_wire::{FromBytes, Icmp4Header, Icmp4Type, Ip4Header, IpProtocol, MacAddress, TcpFlags};

fn local(a: &Port) -> PacketBuilder {
    to(a).ip4([10, 0, 0, 2], [10, 0, 0, 1])
}

fn told(frame: &[u8]) -> (Icmp4Type, u8) {
    let icmp = Icmp4Header::ref_from_prefix(&frame[34..]).unwrap().0;
    (icmp.kind(), icmp.code())
}

fn refused(router: &mut Router, a: &Port, frame: &PacketBuilder, node: &str, why: &str) {
    let before = router.error(node, why);
    router.send(a, frame.build());
    assert_eq!(router.error(node, why), before + 1, "{why}: {:?}", router.errors());
    assert!(a.received().is_empty(), "{why}");
}

#[test]
fn an_echo_is_answered_by_any_of_the_routers_addresses() {
    let (mut router, a, _) = two_hosts();
    for dst in [[10, 0, 0, 1], [10, 0, 1, 1]] {
        router.send(&a, to(&a).ip4([10, 0, 0, 2], dst).icmp_echo_request(7, 9).payload_len(56).build());
        let reply = a.received_one();
        assert_eq!(told(&reply), (Icmp4Type::ECHO_REPLY, 0));
        let header = Ip4Header::ref_from_prefix(&reply[14..]).unwrap().0;
        assert_eq!((header.src(), header.dst()), (dst.into(), ip("10.0.0.2")));
        assert!(header.checksum_ok());
        assert_eq!(shoal_wire::checksum::checksum(&reply[34..]), 0);
    }
}

#[test]
fn the_padding_of_short_frames_is_not_echoed() {
    let (mut router, a, _) = two_hosts();
    router.send(&a, local(&a).icmp_echo_request(1, 1).payload_len(3).pad_to(60).build());
    assert_eq!(a.received_one().len(), 14 + 20 + 8 + 3);
}

#[test]
fn a_large_echo_over_several_buffers_comes_back_whole() {
    let (mut router, a, _) = two_hosts();
    router.send(&a, local(&a).icmp_echo_request(1, 1).payload_len(8000).build());
    let reply = a.received_one();
    assert_eq!(reply.len(), 14 + 28 + 8000);
    assert_eq!(shoal_wire::checksum::checksum(&reply[34..]), 0);
}

#[test]
fn a_port_without_a_listener_is_unreachable() {
    let (mut router, a, _) = two_hosts();
    router.send(&a, local(&a).udp(1000, 33_434).payload_len(10).build());
    assert_eq!(told(&a.received_one()), (Icmp4Type::DESTINATION_UNREACHABLE, 3));
    router.send(&a, local(&a).tcp(1000, 80, TcpFlags::SYN).build());
    assert_eq!(told(&a.received_one()), (Icmp4Type::DESTINATION_UNREACHABLE, 3));
    assert_eq!(router.error("ip4-local", "no listener for dst port"), 2);
    router.send(&a, local(&a).protocol(IpProtocol(200)).build());
    assert_eq!(told(&a.received_one()), (Icmp4Type::DESTINATION_UNREACHABLE, 2));
    assert_eq!(router.error("ip4-local", "unknown ip protocol"), 1);
}

#[test]
fn udp_that_lies_about_its_length_or_sum_is_dropped() {
    let (mut router, a, _) = two_hosts();
    let udp = local(&a).udp(1, 2).payload_len(10);
    for length in [0, 7, 19, 65_535] {
        refused(&mut router, &a, &udp.clone().udp_len(length).pad_to(80), "ip4-local", "udp length is wrong");
    }
    refused(&mut router, &a, &udp.clone().l4_checksum(1), "ip4-local", "udp checksum is wrong");
    // RFC 768: zero says that there is none.
    router.send(&a, udp.l4_checksum(0).build());
    assert_eq!(a.received().len(), 1);
}

#[test]
fn a_sum_left_to_the_device_or_checked_by_it_is_not_checked_again() {
    let (mut router, a, _) = two_hosts();
    let giver = PacketInjector::new(&router, &a, 0);
    let wrong = local(&a).udp(1, 2).payload_len(10).l4_checksum(1).build();
    for flags in [Flags::L4_CHECKSUM_OFFLOAD, Flags::L4_CHECKSUM_OK] {
        giver.give(InjectedPacket { flags, ..InjectedPacket::from(wrong.clone()) });
        router.run();
        assert_eq!(told(&a.received_one()), (Icmp4Type::DESTINATION_UNREACHABLE, 3));
    }
    giver.give(wrong);
    router.run();
    assert_eq!(router.error("ip4-local", "udp checksum is wrong"), 1);
}

#[test]
fn a_right_sum_is_right_wherever_the_packet_is_cut_into_segments() {
    let (mut router, a, _) = two_hosts();
    let giver = PacketInjector::new(&router, &a, 0);
    let frame = local(&a).udp(1, 2).payload_len(33).build();
    for cut in 42..frame.len() {
        giver.give(InjectedPacket { cuts: vec![cut, 1, 0, 3], ..InjectedPacket::from(frame.clone()) });
        router.run();
        assert_eq!(a.received().len(), 1, "cut at {cut}: {:?}", router.errors());
    }
}

#[test]
fn fragments_to_the_router_are_counted_and_dropped() {
    let (mut router, a, _) = two_hosts();
    let why = "fragments to this router are not put together";
    for frame in [
        local(&a).icmp_echo_request(1, 1).payload_len(64).fragment(0, Fragment::More),
        local(&a).protocol(IpProtocol::UDP).payload_len(64).fragment(800, Fragment::Last),
    ] {
        refused(&mut router, &a, &frame, "ip4-local", why);
    }
}

#[test]
fn what_was_sent_to_many_is_not_refused_aloud() {
    let (mut router, a, _) = two_hosts();
    let to_all = PacketBuilder::ethernet(common::station(1), MacAddress::BROADCAST);
    let frame = to_all.ip4([10, 0, 0, 2], [10, 0, 0, 1]).udp(1, 2);
    refused(&mut router, &a, &frame, "ip4-local", "broadcast without a listener");
}

#[test]
fn a_bad_icmp_sum_type_or_length_is_dropped() {
    let (mut router, a, _) = two_hosts();
    let echo = local(&a).icmp_echo_request(1, 1);
    refused(&mut router, &a, &echo.clone().l4_checksum(1), "ip4-icmp-input", "bad icmp checksum");
    let raw = |bytes: &[u8]| local(&a).protocol(IpProtocol::ICMP).payload(bytes);
    refused(&mut router, &a, &raw(&[8, 0]), "ip4-icmp-input", "payload length too small for type");
    refused(&mut router, &a, &raw(&[99, 0, 0x9c, 0xff]), "ip4-icmp-input", "unknown type");
    refused(
        &mut router,
        &a,
        &raw(&[8, 1, 0xf7, 0xfe, 0, 0, 0, 0]),
        "ip4-icmp-input",
        "invalid code for type",
    );
}

#[test]
fn a_source_that_no_interface_leads_to_is_dropped_but_for_a_broadcast() {
    let (mut router, a, _) = two_hosts();
    let missing = "ip4 source lookup miss";
    let own = "ip4 spoofed local-address packet drops";
    let from = |src: [u8; 4]| to(&a).ip4(src, [10, 0, 0, 1]).icmp_echo_request(1, 1);
    for src in [[198, 51, 100, 1], [192, 0, 2, 7]] {
        refused(&mut router, &a, &from(src), "ip4-local", missing);
    }
    for src in [[10, 0, 0, 1], [10, 0, 1, 1]] {
        refused(&mut router, &a, &from(src), "ip4-local", own);
    }
    // A host beyond the other interface is reached, even if this is not its port: that is for strict uRPF to say.
    router.send(&a, from([10, 0, 1, 2]).build());
    assert_eq!((router.error("ip4-local", missing), router.error("ip4-local", own)), (2, 2));
    let to_all = PacketBuilder::ethernet(common::station(1), MacAddress::BROADCAST);
    let dhcp = to_all.ip4([0, 0, 0, 0], [255; 4]).udp(68, 67).payload_len(240);
    router.send(&a, dhcp.build());
    assert_eq!(router.error("ip4-local", missing), 2);
}
