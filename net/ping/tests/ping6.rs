//! The same over IPv6: what is sent, what is printed, whose answers count.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use crate::common;

use std::net::Ipv6Addr;
use std::time::Duration;

use common::*;
use shoal_ip6::Ip6;
use shoal_ip6_nd::Neighbours;
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_ping::{Ping, PingError, Target, Traceroute, most_data};
use shoal_testkit::PEER_MAC;
use shoal_wire::{EtherType, EthernetHeader, FromBytes, Icmp6Type, IntoBytes, Ip6Header, IpProtocol, icmp6};

const US: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
const FAR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 9);
const NEAR: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

/// A router with 2001:db8::1/64 on pg0 that is proven to be its own, where 2001:db8::2 and fe80::2 are known.
fn bench6() -> Bench {
    let mut b = bench();
    b.router.get::<Ip6>().add_address(b.port.index(), "2001:db8::1/64".parse().unwrap()).unwrap();
    let neighbours = b.router.get::<Neighbours>();
    for peer in [PEER, NEAR] {
        neighbours.set((b.port.index(), peer), PEER_MAC, Origin::Static, FibEntry::Wanted).unwrap();
    }
    b.router.advance(Duration::from_secs(5));
    b.port.received();
    b
}

/// The echo requests sent since the last look, without what neighbour discovery says.
fn requests(b: &Bench) -> Vec<(Ip6Header, Vec<u8>)> {
    let read = |frame: &Vec<u8>| {
        let (ip, rest) = Ip6Header::read_from_prefix(&frame[14..]).unwrap();
        (ip, rest.to_vec())
    };
    let frames = b.port.received();
    let ip6 = frames.iter().filter(|f| f[12..14] == EtherType::IP6.0.to_be_bytes()).map(read);
    ip6.filter(|(ip, rest)| ip.protocol() != IpProtocol::ICMP6 || rest[0] == 128).collect()
}

fn request(b: &Bench) -> (Ip6Header, Vec<u8>) {
    let mut all = requests(b);
    assert_eq!(all.len(), 1);
    let (ip, message) = all.remove(0);
    assert!(icmp6::verify(ip.src(), ip.dst(), &message), "{ip}");
    (ip, message)
}

fn answer(b: &mut Bench, from: Ipv6Addr, to: Ipv6Addr, mut message: Vec<u8>) {
    icmp6::make(from, to, &mut message);
    let ethernet = EthernetHeader::new(PEER_MAC, b.port.mac(), EtherType::IP6);
    let ip = Ip6Header::new(from, to, IpProtocol::ICMP6, 64, message.len() as u16);
    b.router.send(&b.port, [ethernet.as_bytes(), ip.as_bytes(), &message].concat());
}

fn reply(b: &mut Bench, (ip, mut request): (Ip6Header, Vec<u8>)) {
    request[0] = Icmp6Type::ECHO_REPLY.0;
    answer(b, ip.dst(), ip.src(), request);
}

/// The error `kind`, `code` about a request.
fn error(b: &mut Bench, from: Ipv6Addr, (kind, code): (u8, u8), (ip, request): &(Ip6Header, Vec<u8>)) {
    let quote = [ip.as_bytes(), &request[..]].concat();
    answer(b, from, ip.src(), [&[kind, code, 0, 0, 0, 0, 0, 0][..], &quote].concat());
}

#[test]
fn prints_each_reply_and_the_statistics_as_for_ip4() {
    let mut b = bench6();
    b.ping(ping(PEER, 2));
    for n in 1..=2u8 {
        let sent = request(&b);
        assert_eq!((sent.0.src(), sent.0.dst(), sent.0.hop_limit()), (US, PEER, 255));
        assert_eq!((&sent.1[..2], &sent.1[6..8], sent.1.len()), (&[128, 0][..], &[0, n][..], 116));
        b.router.advance(Duration::from_micros(1234));
        reply(&mut b, sent);
        if n == 1 {
            b.router.advance(Duration::from_micros(1_000_000 - 1234));
        }
    }
    let want = "116 bytes from 2001:db8::2: icmp_seq=1 ttl=64 time=1.2340 ms\n\
                116 bytes from 2001:db8::2: icmp_seq=2 ttl=64 time=1.2340 ms\n\
                \nStatistics: 2 sent, 2 received, 0% packet loss\n";
    assert_eq!(b.screen.take(), want);
    assert!(b.has_ended());
    assert_eq!(b.router.error("ip6-icmp-listener", "echo replies received"), 2);
}

#[test]
fn the_router_hears_itself() {
    let mut b = bench6();
    b.ping(ping(US, 3));
    b.router.advance(Duration::from_secs(4));
    let text = b.screen.take();
    assert!(text.starts_with("116 bytes from 2001:db8::1: icmp_seq=1 ttl=64 time=.0000 ms\n"), "{text}");
    assert!(text.ends_with("\nStatistics: 3 sent, 3 received, 0% packet loss\n"), "{text}");
}

#[test]
fn a_host_that_is_on_every_link_is_asked_on_the_one_that_is_named() {
    let mut b = bench6();
    b.ping(ping(NEAR, 1));
    assert_eq!(b.ended.take(), Some(Err(PingError::WhichLink(NEAR).into())));
    let source = Some(b.port.index());
    b.ping(Ping { target: Target { source, ..target(NEAR) }, ..ping(NEAR, 1) });
    let sent = request(&b);
    let ours = b.router.get::<Ip6>().link_local(b.port.index()).unwrap();
    assert_eq!((sent.0.src(), sent.0.dst()), (ours, NEAR));
    reply(&mut b, sent);
    assert!(b.screen.take().ends_with("1 sent, 1 received, 0% packet loss\n"));
}

#[test]
fn groups_and_the_unspecified_address_are_refused() {
    let mut b = bench6();
    for no_host in ["ff02::1", "::"] {
        let no_host: Ipv6Addr = no_host.parse().unwrap();
        b.ping(ping(no_host, 1));
        assert_eq!(b.ended.take(), Some(Err(PingError::NoHost(no_host.into()).into())));
    }
    assert!(requests(&b).is_empty());
}

#[test]
fn without_a_way_nothing_is_sent() {
    let mut b = bench6();
    b.ping(ping(FAR, 2));
    b.router.advance(Duration::from_secs(2));
    let failed = "Failed: no egress interface\n";
    assert_eq!(
        b.screen.take(),
        format!("{failed}{failed}\nStatistics: 0 sent, 0 received, 0% packet loss\n")
    );
}

#[test]
fn strange_late_and_doubled_replies_are_ignored() {
    let mut b = bench6();
    b.ping(ping(PEER, 1));
    let sent = request(&b);
    let mut foreign = sent.clone();
    foreign.1[4] ^= 1;
    reply(&mut b, foreign);
    let mut never_sent = sent.clone();
    never_sent.1[7] = 99;
    reply(&mut b, never_sent);
    let mut from_elsewhere = sent.1.clone();
    from_elsewhere[0] = Icmp6Type::ECHO_REPLY.0;
    answer(&mut b, NEAR, US, from_elsewhere);
    assert_eq!(b.screen.take(), "");
    reply(&mut b, sent.clone());
    assert!(b.screen.take().ends_with("1 sent, 1 received, 0% packet loss\n") && b.has_ended());
    reply(&mut b, sent);
    assert_eq!(b.router.error("ip6-icmp-listener", "unexpected_reply"), 2);
}

#[test]
fn a_flood_of_unexpected_replies_is_counted_and_not_kept() {
    let mut b = bench6();
    for id in 0..5000u16 {
        let mut message = vec![Icmp6Type::ECHO_REPLY.0, 0, 0, 0, 0, 0, 0, 1];
        message[4..6].copy_from_slice(&id.to_be_bytes());
        answer(&mut b, PEER, US, message);
    }
    assert_eq!(b.router.error("ip6-icmp-listener", "unexpected_reply"), 5000);
    assert_eq!(b.router.buffers_in_use(), 0);
    // With a ping under way a flood of its own identifier is bounded, too: of one request one answer counts.
    b.ping(ping(PEER, 2));
    let mut sent = request(&b);
    sent.1[0] = Icmp6Type::ECHO_REPLY.0;
    for _ in 0..3000 {
        answer(&mut b, PEER, US, sent.1.clone());
    }
    b.router.advance(Duration::from_secs(3));
    assert!(b.screen.take().ends_with("2 sent, 1 received, 50% packet loss\n"));
}

#[test]
fn errors_about_a_request_are_told_and_others_are_not() {
    let mut b = bench6();
    b.ping(ping(PEER, 1));
    let sent = request(&b);
    // What quotes no request of ours, whole or cut anywhere.
    for len in 0..48 {
        let quote = [sent.0.as_bytes(), &sent.1[..]].concat();
        answer(&mut b, NEAR, US, [&[1, 0, 0, 0, 0, 0, 0, 0][..], &quote[..len]].concat());
    }
    assert_eq!(b.screen.take(), "");
    assert_eq!(b.router.error("ip6-icmp-listener", "unexpected_error"), 48);
    error(&mut b, PEER, (1, 3), &sent);
    let want = "From 2001:db8::2: icmp_seq=1 address unreachable\n\nStatistics: 1 sent, 0 received, 100% packet loss\n";
    assert_eq!(b.screen.take(), want);
}

#[test]
fn large_requests_are_cut_for_the_link_and_larger_ones_refused() {
    let mut b = bench6();
    let size = |size| Ping { target: Target { size, ..target(PEER) }, ..ping(PEER, 1) };
    b.ping(size(20_000));
    let pieces = requests(&b);
    assert!(pieces.len() > 2 && pieces.iter().all(|(ip, _)| ip.protocol() == IpProtocol(44)));
    let data: usize = pieces.iter().map(|(ip, _)| usize::from(ip.payload_length()) - 8).sum();
    assert_eq!(data, 20_016);
    let most = most_data(PEER.into());
    b.ping(size(most + 1));
    assert_eq!(b.ended.take(), Some(Err(PingError::TooLong { size: most + 1, most }.into())));
    b.router.advance(Duration::from_secs(2));
}

#[test]
fn traceroute_names_each_router_and_ends_at_the_host() {
    let mut b = bench6();
    b.trace(traceroute(PEER, 1));
    let first = request(&b);
    assert_eq!(first.0.hop_limit(), 1);
    b.router.advance(Duration::from_micros(500));
    error(&mut b, NEAR, (3, 0), &first);
    let second = request(&b);
    assert_eq!(second.0.hop_limit(), 2);
    reply(&mut b, second);
    assert_eq!(b.screen.take(), "1: fe80::2:\t.5000\t\n2: 2001:db8::2:\t.0000\t\n");
    assert!(b.has_ended());
    // A router that says no, and one that says nothing.
    b.trace(Traceroute { max_hops: 3, ..traceroute(PEER, 1) });
    request(&b);
    b.router.advance(Duration::from_secs(1));
    let second = request(&b);
    error(&mut b, NEAR, (1, 1), &second);
    assert_eq!(b.screen.take(), "1: ---: *\t\n2: fe80::2:\t.0000\t(prohibited by a filter)\n");
}
