//! `ip6-local`: packets for the router itself. RFC 8200, 4 and 8.1; RFC 4443.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use common::{
    HOST_1, InjectedPacket, PacketInjector, ends, ip, neighbour, station, to, told, towards, two_hosts,
};
use shoal_buffer::Flags;
use shoal_ip6::Ip6;
use shoal_testkit::{PacketBuilder, Port, Router};
use shoal_wire::{FromBytes, Icmp6Type, Ip6Header, IpProtocol, TcpFlags};

const US: &str = "2001:db8::1";
const OPTIONS: IpProtocol = IpProtocol::IP6_DESTINATION_OPTIONS;
const FRAGMENT: IpProtocol = IpProtocol::IPV6_FRAGMENTATION;

fn local(a: &Port) -> PacketBuilder {
    towards(a, US)
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
    // The last is that of all routers of the network, RFC 4291, 2.6.1.
    for dst in [US, "2001:db8:1::1", "2001:db8::"] {
        for len in [0, 1, 56, 8000] {
            router.send(&a, towards(&a, dst).ttl(0).icmp6_echo_request(7, 9).payload_len(len).build());
            let reply = a.received_one();
            assert_eq!(told(&reply), (Icmp6Type::ECHO_REPLY, 0, 0x0007_0009));
            assert_eq!((ends(&reply), reply[21]), ((ip(dst), ip(HOST_1)), 64));
            assert_eq!(reply.len(), 14 + 48 + len);
        }
    }
}

#[test]
fn link_local_neighbours_are_answered_on_their_link() {
    let (mut router, a, _) = two_hosts();
    neighbour(&router, &a, "fe80::9", station(9));
    let own = router.get::<Ip6>().link_local(a.index()).unwrap();
    assert_eq!(own, shoal_wire::ip6_address::link_local_of(a.mac()));
    for dst in [own, ip("ff02::1"), ip("ff02::2")] {
        router.send(&a, to(&a).ip6(ip("fe80::9"), dst).icmp6_echo_request(1, 1).payload_len(9).build());
        let reply = a.received_one();
        assert_eq!((told(&reply).0, ends(&reply)), (Icmp6Type::ECHO_REPLY, (own, ip("fe80::9"))));
        assert_eq!(reply[..6], station(9).0);
    }
}

#[test]
fn extension_headers_and_padding_are_not_echoed() {
    let (mut router, a, _) = two_hosts();
    let echo = local(&a).icmp6_echo_request(1, 1).payload_len(3);
    let ext = echo.clone().ip6_ext(OPTIONS, &[1, 4, 0, 0, 0, 0]).ip6_ext(IpProtocol::IPV6_ROUTE, &[0; 6]);
    for frame in [echo.clone().pad_to(100), ext, echo.ip6_ext(FRAGMENT, &[0, 0, 0, 0, 0, 7])] {
        router.send(&a, frame.build());
        let reply = a.received_one();
        assert_eq!((told(&reply).0, reply.len()), (Icmp6Type::ECHO_REPLY, 14 + 48 + 3));
    }
}

#[test]
fn a_port_without_a_listener_is_unreachable() {
    let (mut router, a, _) = two_hosts();
    for dst in [US, "2001:db8:1::1"] {
        router.send(&a, towards(&a, dst).udp(1000, 33_434).payload_len(10).build());
        let answer = a.received_one();
        assert_eq!(told(&answer), (Icmp6Type::DESTINATION_UNREACHABLE, 4, 0));
        assert_eq!(ends(&answer), (ip(dst), ip(HOST_1)), "RFC 4443, 2.2: from where it was sent to");
    }
    router.send(&a, local(&a).tcp(1000, 80, TcpFlags::SYN).build());
    assert_eq!(told(&a.received_one()), (Icmp6Type::DESTINATION_UNREACHABLE, 4, 0));
    assert_eq!(router.error("ip6-local", "no listener for dst port"), 3);
}

#[test]
fn an_unknown_next_header_is_pointed_at_rfc_4443_3_4() {
    let (mut router, a, _) = two_hosts();
    router.send(&a, local(&a).protocol(IpProtocol(200)).build());
    assert_eq!(told(&a.received_one()), (Icmp6Type::PARAMETER_PROBLEM, 1, 6));
    router.send(&a, local(&a).protocol(IpProtocol(200)).ip6_ext(OPTIONS, &[1, 4, 0, 0, 0, 0]).build());
    assert_eq!(told(&a.received_one()), (Icmp6Type::PARAMETER_PROBLEM, 1, 40));
    assert_eq!(router.error("ip6-local", "unknown ip protocol"), 2);
    refused(
        &mut router,
        &a,
        &local(&a).protocol(IpProtocol::IP6_NONXT),
        "ip6-local",
        "nothing follows the headers",
    );
}

#[test]
fn a_routing_header_with_segments_left_is_pointed_at_rfc_5095() {
    let (mut router, a, _) = two_hosts();
    router.send(&a, local(&a).udp(1, 2).ip6_ext(IpProtocol::IPV6_ROUTE, &[0, 1, 0, 0, 0, 0]).build());
    assert_eq!(told(&a.received_one()), (Icmp6Type::PARAMETER_PROBLEM, 0, 42));
}

#[test]
fn udp_that_lies_about_its_length_or_sum_is_dropped() {
    let (mut router, a, _) = two_hosts();
    let udp = local(&a).udp(1, 2).payload_len(10);
    for length in [0, 7, 19, 65_535] {
        let lie = udp.clone().udp_len(length).pad_to(90);
        refused(&mut router, &a, &lie, "ip6-local", "inconsistent udp/ip lengths");
    }
    // RFC 8200, 8.1: there is no UDP without a sum.
    for sum in [0, 1] {
        refused(&mut router, &a, &udp.clone().l4_checksum(sum), "ip6-local", "bad udp checksum");
    }
    let tcp = local(&a).tcp(1, 2, TcpFlags::SYN).l4_checksum(1);
    refused(&mut router, &a, &tcp, "ip6-local", "bad tcp checksum");
    let echo = local(&a).icmp6_echo_request(1, 1).l4_checksum(1);
    refused(&mut router, &a, &echo, "ip6-local", "bad icmp checksum");
}

#[test]
fn a_sum_left_to_the_device_or_checked_by_it_is_not_checked_again() {
    let (mut router, a, _) = two_hosts();
    let giver = PacketInjector::new(&router, &a, 0);
    let wrong = local(&a).udp(1, 2).payload_len(10).l4_checksum(1).build();
    for flags in [Flags::L4_CHECKSUM_OFFLOAD, Flags::L4_CHECKSUM_OK] {
        giver.give(InjectedPacket { flags, ..InjectedPacket::from(wrong.clone()) });
        router.run();
        assert_eq!(told(&a.received_one()), (Icmp6Type::DESTINATION_UNREACHABLE, 4, 0));
    }
}

#[test]
fn a_right_sum_is_right_wherever_the_packet_is_cut_into_segments() {
    let (mut router, a, _) = two_hosts();
    let giver = PacketInjector::new(&router, &a, 0);
    let frame = local(&a).udp(1, 2).payload_len(33).build();
    for cut in 62..frame.len() {
        giver.give(InjectedPacket { cuts: vec![cut, 1, 0, 3], ..InjectedPacket::from(frame.clone()) });
        router.run();
        assert_eq!(a.received().len(), 1, "cut at {cut}: {:?}", router.errors());
    }
}

#[test]
fn fragments_to_the_router_are_counted_and_dropped() {
    let (mut router, a, _) = two_hosts();
    let why = "fragments to this router are not put together";
    for body in [[0, 1, 0, 0, 0, 7], [5, 0xa8, 0, 0, 0, 7]] {
        let frame = local(&a).udp(1, 2).payload_len(64).ip6_ext(FRAGMENT, &body);
        refused(&mut router, &a, &frame, "ip6-local", why);
    }
}

#[test]
fn what_was_sent_to_many_is_not_refused_aloud() {
    let (mut router, a, _) = two_hosts();
    let why = "multicast without a listener";
    refused(&mut router, &a, &towards(&a, "ff02::1").udp(1, 2), "ip6-local", why);
    let known = towards(&a, "ff02::1").protocol(IpProtocol(200));
    refused(&mut router, &a, &known, "ip6-local", why);
}

#[test]
fn bombs_of_extension_headers_end_early() {
    let (mut router, a, _) = two_hosts();
    let why = "too many or too long extension headers";
    let chain = |n| (0..n).fold(local(&a).udp(1, 2), |p, _| p.ip6_ext(OPTIONS, &[1, 4, 0, 0, 0, 0]));
    for n in [9, 40, 200] {
        refused(&mut router, &a, &chain(n), "ip6-local", why);
    }
    router.send(&a, chain(8).build());
    assert_eq!(told(&a.received_one()), (Icmp6Type::DESTINATION_UNREACHABLE, 4, 0));
    // A header of 2,048 bytes, and one of padding by the byte.
    refused(&mut router, &a, &local(&a).udp(1, 2).ip6_ext(OPTIONS, &[0; 2046]), "ip6-local", why);
    refused(&mut router, &a, &local(&a).udp(1, 2).ip6_ext(OPTIONS, &[0; 46]), "ip6-local", why);
}

#[test]
fn an_answer_too_long_for_its_link_is_cut_by_rfc_8200_4_5() {
    let (mut router, a, _) = two_hosts();
    router.interfaces().set_mtu(a.index(), shoal_interface::MtuLayer::Ip6, 1280).unwrap();
    let mut ids = Vec::new();
    for len in [1300, 1233, 8000, 1300] {
        let echo = local(&a).icmp6_echo_request(1, 1).payload_len(len).build();
        router.send(&a, &echo);
        let (mut payload, mut got) = (Vec::new(), a.received());
        assert_eq!(got.len(), (len + 8).div_ceil(1232), "{len}");
        let last = got.len() - 1;
        for (n, frame) in got.iter_mut().enumerate() {
            let ip = Ip6Header::ref_from_prefix(&frame[14..]).unwrap().0;
            assert_eq!((ip.protocol(), ip.hop_limit()), (IpProtocol::IPV6_FRAGMENTATION, 64));
            assert_eq!(usize::from(ip.payload_length()), frame.len() - 54);
            assert!(frame.len() <= 1294);
            let fragment = shoal_wire::Ip6FragmentHeader::ref_from_prefix(&frame[54..]).unwrap().0;
            assert_eq!(
                (usize::from(fragment.offset()), fragment.more_fragments()),
                (payload.len(), n != last)
            );
            assert_eq!(fragment.next_header(), IpProtocol::ICMP6);
            if n == 0 {
                ids.push(fragment.id());
            }
            assert_eq!(ids.last(), Some(&fragment.id()));
            payload.extend_from_slice(&frame[62..]);
        }
        assert_eq!((payload.len(), payload[0]), (len + 8, 129));
        assert_eq!(payload[8..], echo[62..]);
    }
    // RFC 7739: to one host they count up.
    assert!(ids.windows(2).all(|w| w[1] == w[0].wrapping_add(1)), "{ids:x?}");
    assert_eq!(router.error("ip6-frag", "packets cut"), 4);
}

#[test]
fn a_bad_icmp_type_code_or_length_is_dropped() {
    let (mut router, a, _) = two_hosts();
    for (message, why) in [
        (&[128, 0, 0, 0, 0, 0][..], "payload length too small for type"),
        // RFC 4443, 2.4 (a): an error of an unknown type is an error, too.
        (&[99, 0, 0, 0], "payload length too small for type"),
        (&[128, 1, 0, 0, 0, 0, 0, 0], "invalid code for type"),
        (&[201, 0, 0, 0, 0, 0, 0, 0], "unknown type"),
    ] {
        refused(&mut router, &a, &local(&a).icmp6(message), "ip6-icmp-input", why);
    }
}

#[test]
fn a_source_that_no_interface_leads_to_is_dropped_but_icmp_and_the_links_own() {
    let (mut router, a, _) = two_hosts();
    let missing = "ip6 source lookup miss";
    let from = |src: &str| to(&a).ip6(ip(src), ip(US));
    for src in ["2001:db8:ffff::1", US, "2001:db8:1::1"] {
        refused(&mut router, &a, &from(src).udp(1000, 2000).payload_len(10), "ip6-input", missing);
    }
    // ICMPv6 and neighbours are taken; what is beyond the other interface is reached.
    neighbour(&router, &a, "fe80::9", station(9));
    router.send(&a, from("fe80::9").udp(1000, 2000).payload_len(10).build());
    assert_eq!(told(&a.received_one()).0, Icmp6Type::DESTINATION_UNREACHABLE);
    router.send(&a, from("2001:db8:ffff::1").icmp6_echo_request(1, 1).build());
    router.send(&a, from("2001:db8:1::2").udp(1000, 2000).payload_len(10).build());
    assert_eq!(router.error("ip6-input", missing), 3);
}
