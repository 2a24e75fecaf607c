//! Connections to virtual addresses.

use shoal_cnat::translation::{Flags, LbType};
use shoal_cnat::{Endpoint, NO_NAT, PathSpec, Spec};
use shoal_fib::{Fib, FibIndex, Path, Source};
use shoal_interface::MtuLayer;
use shoal_testkit::PacketBuilder;
use shoal_testkit::nat_bed::FAR;

use crate::bed::*;

const SYN: u8 = 2;
const ACK: u8 = 16;

#[test]
fn connections_go_to_a_back_end_and_its_answers_come_from_the_virtual_address() {
    for is_ip6 in [false, true] {
        for protocol in [TCP, UDP] {
            let mut bed = bed();
            bed.features();
            let id = bed.cnat.update(spec(vip(is_ip6), protocol, &[backend(is_ip6, 2)])).unwrap();
            let (client, vip, backend) = (client(is_ip6, 1000), vip(is_ip6), backend(is_ip6, 2));
            for _ in 0..3 {
                assert_eq!(bed.comes((client, vip), protocol, SYN), Some((client, backend)));
                assert_eq!(bed.goes((backend, client), protocol, SYN | ACK), Some((vip, client)));
            }
            assert_eq!(bed.sessions().len(), 1);
            assert_eq!(bed.cnat.counted(id).0, 3, "packets to back ends");
            // What else the back end sends passes as it is, and so does what is sent to it.
            let (other, port) = (end(&backend.0.to_string(), 7), end(&client.0.to_string(), 9));
            assert_eq!(bed.goes((other, port), protocol, SYN), Some((other, port)));
            assert_eq!(bed.comes((port, other), protocol, SYN), Some((port, other)));
        }
    }
}

#[test]
fn without_the_feature_the_route_leads_packets_there_and_answers_pass_by_the_feature() {
    for is_ip6 in [false, true] {
        let mut bed = bed();
        bed.cnat.update(spec(vip(is_ip6), TCP, &[backend(is_ip6, 2)])).unwrap();
        let (client, vip, backend) = (client(is_ip6, 1000), vip(is_ip6), backend(is_ip6, 2));
        assert_eq!(bed.comes((client, vip), TCP, SYN), Some((client, backend)));
        assert_eq!(bed.goes((backend, client), TCP, ACK), Some((backend, client)), "no feature");
        bed.cnat.set_feature(bed.nat.outside.index(), true).unwrap();
        assert_eq!(bed.goes((backend, client), TCP, ACK), Some((vip, client)), "of the output");
        bed.cnat.set_feature(bed.nat.outside.index(), false).unwrap();
        bed.cnat.set_feature(bed.nat.inside.index(), true).unwrap();
        assert_eq!(bed.goes((backend, client), TCP, ACK), Some((vip, client)), "of the input");
        // What no translation is for is dropped.
        assert_eq!(bed.comes((client, (vip.0, 81)), TCP, SYN), None);
        assert_eq!(bed.comes((client, (vip.0, 7)), PING, 0), None);
        let node = if is_ip6 { "ip6-cnat-tx" } else { "ip4-cnat-tx" };
        assert_eq!(bed.nat.router.error(node, "no translation"), 2, "{:?}", bed.errors());
    }
}

#[test]
fn errors_about_packets_of_a_connection_are_translated_with_what_they_carry() {
    for is_ip6 in [false, true] {
        let mut bed = bed();
        bed.features();
        bed.cnat.update(spec(vip(is_ip6), UDP, &[backend(is_ip6, 2)])).unwrap();
        let (client, vip, backend) = (client(is_ip6, 1000), vip(is_ip6), backend(is_ip6, 2));
        bed.comes((client, vip), UDP, 0).unwrap();
        // The client says that the answer did not reach it.
        let about = bed.packet(false, (vip, client), UDP, 0);
        let frame = bed.error(false, (client.0, vip.0), &about[ETHER..]);
        let (outer, inner) = bed.send_in(frame)[0].error();
        assert_eq!((outer, ends(&inner)), ((client.0, backend.0), (backend, client)));
        // The back end says that its port is closed: that comes from the virtual address.
        let about = bed.packet(true, (client, backend), UDP, 0);
        let frame = bed.error(true, (backend.0, client.0), &about[ETHER..]);
        let (outer, inner) = bed.send_out(frame)[0].error();
        assert_eq!((outer, ends(&inner)), ((vip.0, client.0), (client, vip)));
        // A router on the way says it: that comes from the router.
        let router = backend_router(is_ip6);
        let frame = bed.error(true, (router, client.0), &about[ETHER..]);
        let (outer, inner) = bed.send_out(frame)[0].error();
        assert_eq!((outer, ends(&inner)), ((router, client.0), (client, vip)));
        assert_eq!(bed.sessions().len(), 1, "errors begin none");
    }
}

fn backend_router(is_ip6: bool) -> std::net::IpAddr {
    backend(is_ip6, 9).0
}

/// How many connections each back end has.
fn spread(bed: &mut Bed, is_ip6: bool, ports: std::ops::Range<u16>) -> std::collections::BTreeMap<End, u32> {
    let mut seen = std::collections::BTreeMap::new();
    for port in ports {
        let got = bed.comes((client(is_ip6, port), vip(is_ip6)), TCP, SYN);
        let (_, to) = got.unwrap_or_else(|| panic!("port {port}: {:?}", bed.errors()));
        *seen.entry(to).or_default() += 1;
    }
    seen
}

#[test]
fn new_connections_are_spread_and_old_ones_stay_when_back_ends_change() {
    for (is_ip6, lb) in [(false, LbType::Default), (true, LbType::Default), (false, LbType::Maglev)] {
        let mut bed = bed();
        bed.features();
        let backends = [2, 3, 4].map(|n| backend(is_ip6, n));
        let of = |backends: &[End]| Spec { lb, ..spec(vip(is_ip6), TCP, backends) };
        let id = bed.cnat.update(of(&backends)).unwrap();
        let before = spread(&mut bed, is_ip6, 1000..1300);
        assert!(before.len() == 3 && before.values().all(|count| *count > 60), "{before:?}");
        // The same number, other back ends: connections that there are go on, to one that has gone, too.
        let others = [2, 5].map(|n| backend(is_ip6, n));
        assert_eq!(bed.cnat.update(of(&others)), Ok(id));
        assert_eq!(spread(&mut bed, is_ip6, 1000..1300), before);
        let after = spread(&mut bed, is_ip6, 2000..2300);
        assert_eq!(after.keys().copied().collect::<Vec<_>>(), others, "{after:?}");
        // Deleted: connections go on, new ones do not.
        bed.cnat.del(id).unwrap();
        assert_eq!(spread(&mut bed, is_ip6, 1000..1010).values().sum::<u32>(), 10);
        assert_eq!(bed.comes((client(is_ip6, 5000), vip(is_ip6)), TCP, SYN), None);
    }
}

#[test]
fn a_back_end_without_a_route_gets_no_new_connections_until_it_has_one() {
    for lb in [LbType::Default, LbType::Maglev] {
        let mut bed = bed();
        bed.features();
        // Behind a back end there is another network.
        let (near, behind) = (backend(false, 2), end("172.16.0.1", 8080));
        bed.cnat.update(Spec { lb, ..spec(vip(false), TCP, &[near, behind]) }).unwrap();
        assert_eq!(spread(&mut bed, false, 1000..1100).into_keys().collect::<Vec<_>>(), [near]);
        let fib = bed.nat.router.get::<Fib>();
        let prefix: shoal_wire::IpPrefix = "172.16.0.0/24".parse().unwrap();
        let path = Path::next_hop(std::net::Ipv4Addr::new(10, 0, 0, 3), bed.nat.inside.index());
        fib.add(FibIndex::DEFAULT, prefix, Source::Cli, &[path]).unwrap();
        let both = spread(&mut bed, false, 2000..2200);
        assert!(both.len() == 2 && both.values().all(|count| *count > 60), "{both:?}");
        fib.remove(FibIndex::DEFAULT, prefix, Source::Cli).unwrap();
        assert_eq!(spread(&mut bed, false, 3000..3100).into_keys().collect::<Vec<_>>(), [near]);
        // None is left.
        bed.cnat.update(Spec { lb, ..spec(vip(false), TCP, &[behind]) }).unwrap();
        assert_eq!(bed.comes((client(false, 9), vip(false)), TCP, SYN), None);
        assert_eq!(bed.nat.router.error("cnat-input-ip4", "no backend"), 1);
    }
}

#[test]
fn sessions_end_after_their_time_and_when_they_are_purged() {
    let mut bed = bed();
    bed.features();
    for protocol in [TCP, UDP] {
        bed.cnat.update(spec(vip(false), protocol, &[backend(false, 2)])).unwrap();
    }
    let (client, vip, backend) = (client(false, 1000), vip(false), backend(false, 2));
    bed.comes((client, vip), UDP, 0).unwrap();
    bed.nat.advance(29);
    assert_eq!(bed.sessions().len(), 1);
    // An answer keeps it, too.
    bed.goes((backend, client), UDP, 0).unwrap();
    bed.nat.advance(29);
    assert_eq!(bed.sessions().len(), 1);
    bed.nat.advance(3);
    assert!(bed.sessions().is_empty());
    // A connection that both sides have acknowledged lives for an hour; after a reset it has five seconds.
    for (is_answer, flags) in [(false, SYN), (true, SYN | ACK), (false, ACK)] {
        if is_answer {
            bed.goes((backend, client), TCP, flags).unwrap();
        } else {
            bed.comes((client, vip), TCP, flags).unwrap();
        }
    }
    bed.nat.advance(3500);
    assert_eq!(bed.sessions().len(), 1);
    bed.comes((client, vip), TCP, 4).unwrap();
    bed.nat.advance(4);
    assert_eq!(bed.sessions().len(), 1);
    bed.nat.advance(3);
    assert!(bed.sessions().is_empty());
    bed.comes((client, vip), TCP, SYN).unwrap();
    bed.comes((client, vip), UDP, 0).unwrap();
    bed.nat.advance(2);
    assert_eq!(bed.nat.router.counter("/cnat/sessions/total"), 2);
    assert_eq!(bed.cnat.purge(), Ok(2));
    assert!(bed.sessions().is_empty());
    assert_eq!(bed.nat.router.counter("/cnat/sessions/total"), 0);
    assert_eq!(bed.comes((client, vip), TCP, ACK), Some((client, backend)), "and restarts");
}

#[test]
fn a_back_end_may_say_the_source() {
    for is_ip6 in [false, true] {
        let mut bed = bed();
        bed.features();
        let (vip, backend) = (vip(is_ip6), backend(is_ip6, 2));
        let source = shared(is_ip6);
        let path = |port| PathSpec { source: Endpoint::new(source, port), ..to(backend) };
        let of = |flags, port| Spec { flags: Flags(flags), paths: vec![path(port)], ..spec(vip, TCP, &[]) };
        let id = bed.cnat.update(of(0, 0)).unwrap();
        // The port is kept where it is free.
        let (one, two) = (client(is_ip6, 1000), (self::client2(is_ip6), 1000));
        assert_eq!(bed.comes((one, vip), TCP, SYN), Some(((source, 1000), backend)));
        let (from, _) = bed.comes((two, vip), TCP, SYN).unwrap();
        assert!(from.0 == source && from.1 != 1000, "{from:?}");
        assert_eq!(bed.goes((backend, from), TCP, ACK), Some((vip, two)));
        assert_eq!(bed.goes((backend, (source, 1000)), TCP, ACK), Some((vip, one)));
        // A fixed port is for one connection.
        assert_eq!(bed.cnat.update(of(0, 777)), Ok(id));
        let (three, four) = (client(is_ip6, 1003), client(is_ip6, 1004));
        assert_eq!(bed.comes((three, vip), TCP, SYN), Some(((source, 777), backend)));
        assert_eq!(bed.comes((four, vip), TCP, SYN), None);
        let node = if is_ip6 { "cnat-input-ip6" } else { "cnat-input-ip4" };
        assert_eq!(bed.nat.router.error(node, "no more free ports"), 1);
        // Another port even if it is free.
        bed.cnat.update(of(Flags::ALLOC_PORT, 0)).unwrap();
        let (from, _) = bed.comes((client(is_ip6, 1010), vip), TCP, SYN).unwrap();
        assert!(from.0 == source && from.1 >= 1024, "{from:?}");
    }
}

fn client2(is_ip6: bool) -> std::net::IpAddr {
    if is_ip6 { "2001:db8:2::3" } else { "192.0.2.3" }.parse().unwrap()
}

#[test]
fn packets_that_stay_as_they_are_go_the_way_to_the_back_end() {
    for is_ip6 in [false, true] {
        let mut bed = bed();
        bed.features();
        let path = PathSpec { flags: NO_NAT, ..to(backend(is_ip6, 2)) };
        bed.cnat.update(Spec { paths: vec![path], ..spec(vip(is_ip6), TCP, &[]) }).unwrap();
        let ends = (client(is_ip6, 1000), vip(is_ip6));
        for _ in 0..2 {
            assert_eq!(bed.comes(ends, TCP, SYN), Some(ends));
        }
        assert_eq!(bed.goes(turned(ends), TCP, SYN | ACK), Some(turned(ends)));
        assert_eq!(bed.sessions().len(), 1);
    }
}

#[test]
fn without_sessions_for_answers_they_pass() {
    let mut bed = bed();
    bed.features();
    let flags = Flags(Flags::NO_RETURN_SESSION);
    bed.cnat.update(Spec { flags, ..spec(vip(false), TCP, &[backend(false, 2)]) }).unwrap();
    let ends = (client(false, 1000), backend(false, 2));
    assert_eq!(bed.comes((ends.0, vip(false)), TCP, SYN), Some(ends));
    assert_eq!(bed.goes(turned(ends), TCP, ACK), Some(turned(ends)));
}

#[test]
fn two_services_with_one_back_end_do_not_mix_a_clients_connections() {
    let mut bed = bed();
    bed.features();
    let other = end("198.51.100.2", 80);
    for vip in [vip(false), other] {
        bed.cnat.update(spec(vip, TCP, &[backend(false, 2)])).unwrap();
    }
    let one = client(false, 1000);
    assert_eq!(bed.comes((one, vip(false)), TCP, SYN), Some((one, backend(false, 2))));
    let (from, to) = bed.comes((one, other), TCP, SYN).unwrap();
    assert!(from.0 == one.0 && from.1 != 1000 && to == backend(false, 2), "{from:?}");
    assert_eq!(bed.goes((to, from), TCP, ACK), Some((other, one)));
    assert_eq!(bed.goes((to, one), TCP, ACK), Some((vip(false), one)));
}

#[test]
fn packets_that_came_too_far_are_told_of_as_they_were_sent() {
    let mut bed = bed();
    bed.features();
    bed.cnat.update(spec(vip(false), UDP, &[backend(false, 2)])).unwrap();
    let ends = (client(false, 1000), vip(false));
    let mut frame = bed.packet(false, ends, UDP, 0);
    frame[ETHER + 8] = 1;
    frame[ETHER + 10..ETHER + 12].fill(0);
    let sum = shoal_wire::checksum::checksum(&frame[ETHER..ETHER + 20]);
    frame[ETHER + 10..ETHER + 12].copy_from_slice(&sum.to_be_bytes());
    assert!(bed.send_in(frame).is_empty());
    let got = bed.nat.outside.received();
    let inner = &got[0][ETHER + 28..];
    assert_eq!((got[0][ETHER + 20], crate::bed::ends(inner)), (11, ends));
}

#[test]
fn a_client_is_told_of_a_smaller_mtu_behind_the_virtual_address() {
    let mut bed = bed();
    bed.features();
    bed.cnat.update(spec(vip(false), UDP, &[backend(false, 2)])).unwrap();
    bed.nat.router.interfaces().set_mtu(bed.nat.inside.index(), MtuLayer::Ip4, 600).unwrap();
    let ends = (client(false, 1000), vip(false));
    let (std::net::IpAddr::V4(src), std::net::IpAddr::V4(dst)) = (ends.0.0, ends.1.0) else { unreachable!() };
    let frame = PacketBuilder::ethernet(FAR, bed.nat.outside.mac()).ip4(src, dst).dont_fragment();
    assert!(bed.send_in(frame.udp(1000, 80).payload_len(900).build()).is_empty());
    let got = Out { ip: bed.nat.outside.received()[0][ETHER..].to_vec() };
    assert_eq!(got.ip[20..22], [3, 4], "needs fragments");
    let (_, inner) = got.error();
    assert_eq!(crate::bed::ends(&inner), ends, "about what it sent");
}

#[test]
fn later_fragments_follow_the_first_one() {
    let mut bed = bed();
    bed.features();
    bed.cnat.update(spec(vip(false), UDP, &[backend(false, 2)])).unwrap();
    let frame = bed.packet(false, (client(false, 1000), vip(false)), UDP, 0);
    let piece = |offset: u16, more: bool, bytes: &[u8]| {
        let mut piece = frame[..ETHER + 20].to_vec();
        piece.extend(bytes);
        let total = (20 + bytes.len()) as u16;
        piece[ETHER + 2..ETHER + 4].copy_from_slice(&total.to_be_bytes());
        let word = (offset / 8) | if more { 0x2000 } else { 0 };
        piece[ETHER + 6..ETHER + 8].copy_from_slice(&word.to_be_bytes());
        piece[ETHER + 10..ETHER + 12].fill(0);
        let sum = shoal_wire::checksum::checksum(&piece[ETHER..ETHER + 20]);
        piece[ETHER + 10..ETHER + 12].copy_from_slice(&sum.to_be_bytes());
        piece
    };
    let first = piece(0, true, &[&frame[ETHER + 20..ETHER + 28], &[0; 8]].concat());
    let second = piece(16, false, b"the rest");
    assert_eq!(bed.send_in(first).len(), 1);
    let got = bed.send_in(second);
    assert_eq!(got.len(), 1, "{:?} {:?}", bed.errors(), bed.nat.outside.received());
    assert_eq!(got[0].ip[16..20], [10, 0, 0, 2]);
}
