//! ping and traceroute over IPv4 in a whole router: what is sent, what is printed, when they end.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use crate::common;

use std::net::Ipv4Addr;
use std::time::Duration;

use common::*;
use shoal_module::cli::CliError;
use shoal_ping::{Ping, PingError, Target, Traceroute, most_data};
use shoal_testkit::{PEER, PEER_MAC, US};
use shoal_wire::{FromBytes, Icmp4Header, Icmp4Type, Ip4Header, IpProtocol, MacAddress, Packet, icmp4};

/// Answers over IPv4.
trait Answers {
    fn request(&self) -> (Ip4Header, Vec<u8>);
    fn answer(&mut self, from: Ipv4Addr, message: Vec<u8>);
    fn reply(&mut self, request: Vec<u8>);
    fn error(&mut self, from: Ipv4Addr, what: (u8, u8), about: &(Ip4Header, Vec<u8>));
}

impl Answers for Bench {
    /// The one packet sent since the last look.
    fn request(&self) -> (Ip4Header, Vec<u8>) {
        let frame = self.port.received_one();
        let (ip, rest) = Ip4Header::read_from_prefix(&frame[14..]).unwrap();
        assert!(ip.checksum_ok() && icmp4::verify(rest), "{ip}");
        (ip, rest.to_vec())
    }

    fn answer(&mut self, from: Ipv4Addr, mut message: Vec<u8>) {
        icmp4::make(&mut message);
        let packet = Packet::ethernet(PEER_MAC, self.port.mac()).ip4(from, US);
        self.router.send(&self.port, packet.protocol(IpProtocol::ICMP).payload(&message).build());
    }

    fn reply(&mut self, mut request: Vec<u8>) {
        request[0] = 0;
        self.answer(PEER, request);
    }

    /// The error `kind`, `code` about a request.
    fn error(&mut self, from: Ipv4Addr, (kind, code): (u8, u8), (ip, request): &(Ip4Header, Vec<u8>)) {
        let quote = Packet::raw().ip4(ip.src(), ip.dst()).protocol(IpProtocol::ICMP).payload(request);
        let message = [&[kind, code, 0, 0, 0, 0, 0, 0][..], &quote.build()].concat();
        self.answer(from, message);
    }
}

#[test]
fn prints_each_reply_and_the_statistics_as_vpp_does() {
    let mut b = bench();
    b.ping(ping(PEER, 2));
    for n in 1..=2u8 {
        let (ip, message) = b.request();
        assert_eq!((ip.src(), ip.dst(), ip.ttl(), ip.total_length()), (US, PEER, 255, 136));
        assert_eq!((&message[..2], &message[6..8]), (&[8, 0][..], &[0, n][..]));
        b.router.advance(Duration::from_micros(1234));
        b.reply(message);
        if n == 1 {
            b.router.advance(Duration::from_micros(1_000_000 - 1234));
        }
    }
    let text = b.screen.take();
    let want = "116 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=1.2340 ms\n\
                116 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=1.2340 ms\n\
                \nStatistics: 2 sent, 2 received, 0% packet loss\n";
    assert_eq!(text, want);
    assert!(b.has_ended(), "it does not wait when nothing is to come");
    assert_eq!(b.router.error("ip4-icmp-listener", "echo replies received"), 2);
}

#[test]
fn the_router_hears_itself() {
    let mut b = bench();
    b.ping(ping(US, 3));
    b.router.advance(Duration::from_secs(4));
    let text = b.screen.take();
    assert!(text.starts_with("116 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=.0000 ms\n"), "{text}");
    assert!(text.ends_with("\nStatistics: 3 sent, 3 received, 0% packet loss\n"), "{text}");
}

#[test]
fn silence_is_loss() {
    let mut b = bench();
    b.ping(ping(PEER, 3));
    b.router.advance(Duration::from_millis(2999));
    assert!(!b.has_ended());
    b.router.advance(Duration::from_millis(2));
    assert_eq!(b.screen.take(), "\nStatistics: 3 sent, 0 received, 100% packet loss\n");
    assert_eq!(b.port.received().len(), 3);
}

#[test]
fn strange_late_and_doubled_replies_are_ignored() {
    let mut b = bench();
    b.ping(ping(PEER, 1));
    let (_, request) = b.request();
    let mut foreign = request.clone();
    foreign[4] ^= 1;
    b.reply(foreign);
    let mut never_sent = request.clone();
    never_sent[7] = 99;
    b.reply(never_sent);
    let mut from_elsewhere = request.clone();
    from_elsewhere[0] = 0;
    b.answer(Ipv4Addr::new(10, 0, 0, 3), from_elsewhere);
    assert_eq!(b.screen.take(), "");
    b.reply(request.clone());
    assert!(b.screen.take().ends_with("1 sent, 1 received, 0% packet loss\n") && b.has_ended());
    b.reply(request);
    assert_eq!(b.screen.take(), "");
    assert_eq!(b.router.error("ip4-icmp-listener", "unexpected_reply"), 2);
}

#[test]
fn an_error_about_a_request_is_told() {
    let mut b = bench();
    b.ping(ping(PEER, 1));
    let request = b.request();
    b.error(PEER, (3, 1), &request);
    let want =
        "From 10.0.0.2: icmp_seq=1 host unreachable\n\nStatistics: 1 sent, 0 received, 100% packet loss\n";
    assert_eq!(b.screen.take(), want);
}

#[test]
fn ends_when_its_client_leaves() {
    let mut b = bench();
    b.ping(ping(PEER, 1000));
    b.router.advance(Duration::from_secs(2));
    let before = b.port.received().len();
    b.screen.leave();
    b.router.advance(Duration::from_secs(5));
    assert!(b.has_ended() && b.port.received().is_empty());
    assert_eq!(before, 3);
}

#[test]
fn a_burst_is_so_many_requests_at_once() {
    let mut b = bench();
    b.ping(Ping { burst: 256, ..ping(US, 1) });
    b.router.advance(Duration::from_secs(1));
    assert!(b.screen.take().ends_with("256 sent, 256 received, 0% packet loss\n"));
}

#[test]
fn large_requests_are_cut_for_the_link_and_larger_ones_refused() {
    let mut b = bench();
    let size = |size| Ping { target: Target { size, ..target(PEER) }, ..ping(PEER, 1) };
    b.ping(size(20_000));
    let pieces = b.port.received();
    assert!(pieces.iter().all(|p| p.len() <= 9014));
    let data: usize = pieces.iter().map(|p| p.len() - 34).sum();
    assert_eq!(data, 20_016);
    let most = most_data(PEER.into());
    b.ping(size(most + 1));
    let refused = Err(PingError::TooLong { size: most + 1, most }.into());
    assert_eq!(b.ended.take(), Some(refused));
    b.router.advance(Duration::from_secs(2));
}

#[test]
fn without_route_table_or_address_nothing_is_sent() {
    let mut b = bench();
    b.ping(ping(Ipv4Addr::new(192, 0, 2, 1), 2));
    b.router.advance(Duration::from_secs(2));
    let failed = "Failed: no egress interface\n";
    assert_eq!(
        b.screen.take(),
        format!("{failed}{failed}\nStatistics: 0 sent, 0 received, 0% packet loss\n")
    );
    let bare = b.router.pg(1);
    b.ping(Ping { target: Target { source: Some(bare.index()), ..target(PEER) }, ..ping(PEER, 1) });
    assert!(b.screen.take().starts_with("Failed: no source address"));
    b.ping(Ping { target: Target { table: 77, ..target(PEER) }, ..ping(PEER, 1) });
    assert!(matches!(b.ended.take(), Some(Err(CliError::Failed(_)))));
}

#[test]
fn the_first_ping_waits_for_arp() {
    let mut b = bench();
    let other = Ipv4Addr::new(10, 0, 0, 9);
    b.ping(ping(other, 1));
    b.port.received_one();
    let mac = MacAddress([2, 0xaa, 0, 0, 0, 9]);
    let reply = Packet::arp_reply(mac, other, b.port.mac(), US).build();
    b.router.send(&b.port, reply);
    let frame = b.port.received_one();
    assert_eq!(frame[..6], mac.0);
    let mut message = frame[34..].to_vec();
    message[0] = 0;
    b.answer(other, message);
    assert!(b.screen.take().ends_with("1 sent, 1 received, 0% packet loss\n"));
}

#[test]
fn traceroute_names_each_router_and_ends_at_the_host() {
    let mut b = bench();
    b.trace(traceroute(PEER, 2));
    let near = Ipv4Addr::new(10, 0, 0, 3);
    for _ in 0..2 {
        let request = b.request();
        assert_eq!(request.0.ttl(), 1);
        b.router.advance(Duration::from_micros(500));
        b.error(near, (11, 0), &request);
    }
    assert_eq!(b.request().0.ttl(), 2);
    b.router.advance(Duration::from_secs(1));
    let (ip, request) = b.request();
    assert_eq!(ip.ttl(), 2);
    b.reply(request);
    assert_eq!(b.screen.take(), "1: 10.0.0.3:\t.5000\t.5000\t\n2: *\t10.0.0.2:\t.0000\t\n");
    assert!(b.has_ended());
}

#[test]
fn traceroute_goes_on_past_silent_routers_and_stops_at_the_last_ttl() {
    let mut b = bench();
    b.trace(Traceroute { max_hops: 3, ..traceroute(PEER, 1) });
    b.router.advance(Duration::from_secs(4));
    assert_eq!(b.screen.take(), "1: ---: *\t\n2: ---: *\t\n3: ---: *\t\n");
    assert_eq!(b.port.received().len(), 3);
}

#[test]
fn traceroute_stops_where_a_router_says_no() {
    let mut b = bench();
    b.trace(traceroute(PEER, 1));
    let request = b.request();
    b.error(PEER, (3, 13), &request);
    assert_eq!(b.screen.take(), "1: 10.0.0.2:\t.0000\t(prohibited by a filter)\n");
    b.trace(traceroute(PEER, 1));
    b.screen.leave();
    b.router.run();
    assert!(b.has_ended());
}

#[test]
fn traceroute_through_the_router_shows_it() {
    let mut b = bench();
    let right = b.router.pg(1);
    b.router.set_address(&right, "10.0.1.1/24");
    b.router.run();
    let probe = Packet::ethernet(PEER_MAC, b.port.mac()).ip4(PEER, [10, 0, 1, 2]).ttl(1);
    b.router.send(&b.port, probe.icmp_echo_request(1, 1).build());
    // The next hop is not known yet; what counts is what happens when it is.
    let far = Ipv4Addr::new(10, 0, 1, 2);
    b.router.set_neighbour(&right, far, PEER_MAC);
    b.router.run();
    let frame = b.port.received_one();
    let (ip, rest) = Ip4Header::read_from_prefix(&frame[14..]).unwrap();
    let (icmp, _) = Icmp4Header::read_from_prefix(rest).unwrap();
    assert_eq!((ip.src(), icmp.kind()), (US, Icmp4Type::TIME_EXCEEDED));
}
