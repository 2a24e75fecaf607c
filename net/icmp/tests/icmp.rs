//! ICMP in a whole router: what is echoed, which errors are sent, and which are not.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use std::net::Ipv4Addr;
use std::time::Duration;

use shoal_icmp::Icmp;
use shoal_icmp::limiter::Rate;
use shoal_ip4::Unreachables;
use shoal_testkit::{PEER, PEER_MAC, Port, Rng, Router, STACK, US};
use shoal_wire::packet::Fragment;
use shoal_wire::{
    FromBytes, Icmp4Error, Icmp4Header, Icmp4Type, Ip4Header, IpProtocol, MacAddress, Packet, icmp4,
};

const NOWHERE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);

/// A router with 10.0.0.1/24 on pg0, where 10.0.0.2 is known. Senders get errors for missing routes.
fn router() -> (Router, Port) {
    let mut router = Router::new(STACK);
    let port = router.pg(0);
    router.set_address(&port, "10.0.0.1/24");
    router.set_neighbour(&port, PEER, PEER_MAC);
    Unreachables::of(router.control()).send(true);
    router.run();
    (router, port)
}

fn to(port: &Port, dst: Ipv4Addr) -> Packet {
    Packet::ethernet(PEER_MAC, port.mac()).ip4(PEER, dst)
}

/// A sent frame's IPv4 header and what follows, both checksums checked.
fn parse(frame: &[u8]) -> (Ip4Header, Vec<u8>) {
    let (ip, rest) = Ip4Header::read_from_prefix(&frame[14..]).unwrap();
    assert!(ip.checksum_ok() && usize::from(ip.total_length()) == 20 + rest.len(), "{ip}");
    assert!(icmp4::verify(rest), "{ip}");
    (ip, rest.to_vec())
}

fn error_of(frame: &[u8]) -> (Ip4Header, Icmp4Header, Vec<u8>) {
    let (ip, message) = parse(frame);
    let (icmp, _) = Icmp4Header::read_from_prefix(&message).unwrap();
    (ip, icmp, message[Icmp4Error::LEN..].to_vec())
}

#[test]
fn echoes_a_request_of_any_length() {
    let (mut router, port) = router();
    for len in [0, 1, 56, 1472, 4000, 8900] {
        router.send(&port, to(&port, US).ttl(3).icmp_echo_request(7, 9).payload_len(len).build());
        let (ip, message) = parse(&port.received_one());
        assert_eq!((ip.src(), ip.dst(), ip.ttl()), (US, PEER, 64));
        assert_eq!((&message[..2], &message[4..8]), (&[0, 0][..], &[0, 7, 0, 9][..]));
        assert!(message[8..].iter().enumerate().all(|(i, b)| *b == i as u8), "{len}");
    }
    assert_eq!(router.error("ip4-icmp-echo-request", "echo replies sent"), 6);
}

#[test]
fn padding_of_short_frames_is_not_echoed() {
    let (mut router, port) = router();
    router.send(&port, to(&port, US).icmp_echo_request(7, 9).payload_len(1).pad_to(60).build());
    assert_eq!(parse(&port.received_one()).1.len(), 9);
}

#[test]
fn a_request_that_was_sent_to_many_is_not_echoed() {
    let (mut router, port) = router();
    let all = Packet::ethernet(PEER_MAC, MacAddress::BROADCAST);
    for dst in [US, Ipv4Addr::BROADCAST, Ipv4Addr::new(10, 0, 0, 255), Ipv4Addr::new(224, 0, 0, 1)] {
        router.send(&port, all.clone().ip4(PEER, dst).icmp_echo_request(1, 1).build());
    }
    assert!(port.received().is_empty());
    assert_eq!(router.error("ip4-icmp-echo-request", "to_many"), 1);
}

#[test]
fn drops_icmp_cut_or_damaged() {
    let (mut router, port) = router();
    for len in 0..8 {
        let bytes = [8, 0, 0xf7, 0xff, 0, 0, 0, 0];
        let packet = to(&port, US).protocol(IpProtocol::ICMP).payload(&bytes[..len]);
        router.send(&port, packet.build());
    }
    router.send(&port, to(&port, US).icmp_echo_request(1, 1).l4_checksum(0x1234).build());
    assert!(port.received().is_empty());
    let (short, bad) = ("length_too_small_for_type", "bad_checksum");
    assert_eq!(router.error("ip4-icmp-input", short) + router.error("ip4-icmp-input", bad), 9);
    assert!(router.error("ip4-icmp-input", short) >= 4 && router.error("ip4-icmp-input", bad) >= 1);
}

#[test]
fn unknown_types_and_codes_are_counted() {
    let (mut router, port) = router();
    for (kind, code, counter) in
        [(13, 0, "unknown_type"), (99, 0, "unknown_type"), (8, 1, "invalid_code_for_type")]
    {
        let mut message = vec![kind, code, 0, 0, 0, 1, 0, 1];
        icmp4::make(&mut message);
        let before = router.error("ip4-icmp-input", counter);
        router.send(&port, to(&port, US).protocol(IpProtocol::ICMP).payload(&message).build());
        assert_eq!(router.error("ip4-icmp-input", counter), before + 1);
    }
    assert!(port.received().is_empty());
    let counts = router.get::<Icmp>().counts();
    assert_eq!(counts.iter().map(|c| (c.kind.0, c.rx)).collect::<Vec<_>>(), [(8, 1), (13, 1), (99, 1)]);
}

#[test]
fn an_expired_packet_is_quoted_to_its_sender() {
    let (mut router, port) = router();
    let far = router.pg(1);
    router.set_address(&far, "203.0.113.254/24");
    router.set_neighbour(&far, NOWHERE, PEER_MAC);
    router.run();
    let packet = to(&port, NOWHERE).ttl(1).udp(1, 2).payload_len(2000);
    router.send(&port, packet.build());
    let (ip, icmp, quote) = error_of(&port.received_one());
    assert_eq!((ip.src(), ip.dst(), ip.tos(), ip.ttl()), (US, PEER, 0, 255));
    assert_eq!((icmp.kind(), icmp.code(), ip.total_length()), (Icmp4Type::TIME_EXCEEDED, 0, 576));
    assert_eq!(quote, packet.build()[14..14 + 548], "as it came");
    assert_eq!(router.error("ip4-icmp-error", "hop limit exceeded response sent"), 1);
}

#[test]
fn packets_without_route_or_listener_are_answered() {
    let (mut router, port) = router();
    router.send(&port, to(&port, NOWHERE).udp(1, 2).build());
    let (ip, icmp, _) = error_of(&port.received_one());
    assert_eq!((ip.src(), icmp.kind(), icmp.code()), (US, Icmp4Type::DESTINATION_UNREACHABLE, 0));
    router.send(&port, to(&port, US).udp(1, 2).build());
    assert_eq!(error_of(&port.received_one()).1.code(), 3);
    router.send(&port, to(&port, US).protocol(IpProtocol(200)).payload_len(40).build());
    assert_eq!(error_of(&port.received_one()).1.code(), 2);
}

#[test]
fn an_address_of_another_interface_speaks_for_itself() {
    // RFC 1122, 3.2.1.3: from the address the packet was sent to.
    let (mut router, port) = router();
    let other = router.pg(1);
    router.set_address(&other, "10.0.1.1/24");
    router.send(&port, to(&port, Ipv4Addr::new(10, 0, 1, 1)).udp(1, 2).build());
    assert_eq!(error_of(&port.received_one()).0.src(), Ipv4Addr::new(10, 0, 1, 1));
}

#[test]
fn a_packet_too_long_for_the_next_link_brings_its_mtu() {
    let (mut router, port) = router();
    let narrow = router.pg(1);
    router.set_address(&narrow, "10.0.1.1/24");
    let far = Ipv4Addr::new(10, 0, 1, 2);
    router.set_neighbour(&narrow, far, PEER_MAC);
    router.interfaces().set_mtu(narrow.index(), shoal_interface::MtuLayer::L3, 1400).unwrap();
    router.run();
    router.send(&port, to(&port, far).dont_fragment().udp(1, 2).payload_len(1473).build());
    let frame = port.received_one();
    assert_eq!(
        (error_of(&frame).1.code(), &frame[14 + 20 + 6..14 + 20 + 8]),
        (4, &1400u16.to_be_bytes()[..])
    );
    assert!(narrow.received().is_empty());
}

#[test]
fn nothing_is_said_about_what_must_not_be_answered() {
    // RFC 1122, 3.2.2; RFC 1812, 4.3.2.7.
    let (mut router, port) = router();
    let drop = |router: &mut Router, counter: &str, bytes: Vec<u8>| {
        let before = router.error("ip4-icmp-error", counter);
        router.send(&port, bytes);
        assert_eq!(router.error("ip4-icmp-error", counter), before + 1, "{counter}");
        assert!(port.received().is_empty(), "{counter}");
    };
    for kind in [3, 4, 5, 11, 12] {
        let mut message = vec![kind, 0, 0, 0, 0, 0, 0, 0];
        icmp4::make(&mut message);
        let packet = to(&port, NOWHERE).protocol(IpProtocol::ICMP).payload(&message);
        drop(&mut router, "about_error", packet.build());
    }
    drop(&mut router, "about_error", to(&port, NOWHERE).protocol(IpProtocol::ICMP).payload(&[8, 0]).build());
    let later = to(&port, NOWHERE).protocol(IpProtocol::UDP).payload_len(100).fragment(1480, Fragment::Last);
    drop(&mut router, "later_fragment", later.build());
    let many = Packet::ethernet(PEER_MAC, MacAddress::BROADCAST).ip4(PEER, NOWHERE).udp(1, 2);
    drop(&mut router, "to_many", many.build());
    let unspecified = Packet::ethernet(PEER_MAC, port.mac()).ip4([0, 0, 0, 0], NOWHERE).udp(1, 2);
    // Such a packet does not come as far as to be answered.
    router.send(&port, unspecified.build());
    assert_eq!((router.error("ip4-input", "martian"), port.received().len()), (1, 0));
}

#[test]
fn an_error_to_a_broadcast_address_is_not_sent() {
    let (mut router, port) = router();
    let smurf = Packet::ethernet(PEER_MAC, port.mac()).ip4([10, 0, 0, 255], NOWHERE).udp(1, 2);
    router.send(&port, smurf.build());
    assert!(port.received().is_empty());
}

#[test]
fn a_storm_of_errors_ends_at_the_limit() {
    let (mut router, port) = router();
    let icmp = router.get::<Icmp>();
    icmp.set_rate(Rate { per_second: 10, burst: 25 }).unwrap();
    let storm: Vec<_> = (0..200).map(|n| to(&port, NOWHERE).udp(n, 2).build()).collect();
    router.send_all(&port, &storm);
    assert_eq!((port.received().len(), router.error("ip4-icmp-error", "rate_limited")), (25, 175));
    router.advance(Duration::from_secs(1));
    router.send_all(&port, &storm);
    assert_eq!(port.received().len(), 10);
    icmp.set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    router.send_all(&port, &storm);
    assert_eq!(port.received().len(), 200);
    assert!(icmp.set_rate(Rate { per_second: 1, burst: 0 }).is_err());
}

#[test]
fn unexpected_replies_and_errors_are_counted() {
    let (mut router, port) = router();
    router.send(&port, to(&port, US).icmp_echo_reply(1, 2).payload_len(20).build());
    let quote = Packet::raw().ip4(US, NOWHERE).icmp_echo_request(1, 2).build();
    for len in 0..=quote.len() {
        let mut message = [&[11, 0, 0, 0, 0, 0, 0, 0][..], &quote[..len]].concat();
        icmp4::make(&mut message);
        router.send(&port, to(&port, US).protocol(IpProtocol::ICMP).payload(&message).build());
    }
    assert_eq!(router.error("ip4-icmp-listener", "unexpected_reply"), 1);
    assert_eq!(router.error("ip4-icmp-listener", "unexpected_error"), quote.len() as u64 + 1);
    assert!(port.received().is_empty());
}

#[test]
fn rubbish_harms_no_node() {
    let (mut router, port) = router();
    let (mut rng, good) =
        (Rng::new(Rng::seed(1)), to(&port, US).icmp_echo_request(1, 1).payload_len(60).build());
    for node in ["ip4-icmp-input", "ip4-icmp-echo-request", "ip4-icmp-listener", "ip4-icmp-error"] {
        for n in 0..500 {
            let mut bytes = good.get(14..).unwrap().to_vec();
            bytes.truncate(rng.below(90));
            for byte in &mut bytes {
                if n % 2 == 0 || rng.below(16) == 0 {
                    *byte = rng.next_u64() as u8;
                }
            }
            router.inject(node, port.index(), &bytes);
            router.run();
        }
    }
    // Answers to strangers wait for ARP.
    router.advance(Duration::from_secs(5));
    port.received();
    router.send(&port, to(&port, US).icmp_echo_request(1, 1).build());
    assert!(!port.received().is_empty());
}
