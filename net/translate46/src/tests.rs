//! Translated packets against what the other protocol says of itself: every checksum is right, nothing is lost on the way back.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use shoal_wire::checksum::{self, Sum};
use shoal_wire::protocol::IpProtocol;

use crate::WithPorts;
use crate::{
    Ends, Fault, Head, HeaderFields, Kind, ParsedPacket, carried4, carried6, error_to4, error_to6, read4,
    read6, to4, to6,
};

const A4: Ends<Ipv4Addr> =
    Ends { src: Ipv4Addr::new(192, 0, 2, 1), dst: Ipv4Addr::new(198, 51, 100, 7), sport: 4000, dport: 53 };

fn six(ends: Ends<Ipv4Addr>) -> Ends<Ipv6Addr> {
    let at = |a: Ipv4Addr| Ipv6Addr::from(0x0064_ff9b_u128 << 96 | u128::from(a.to_bits()));
    Ends { src: at(ends.src), dst: at(ends.dst), sport: ends.sport, dport: ends.dport }
}

fn back(ends: Ends<Ipv6Addr>) -> Ends<Ipv4Addr> {
    let at = |a: Ipv6Addr| Ipv4Addr::from_bits(a.to_bits() as u32);
    Ends { src: at(ends.src), dst: at(ends.dst), sport: ends.sport, dport: ends.dport }
}

/// A transport header and payload with the checksum it has in IPv4.
fn transport4(ends: Ends<Ipv4Addr>, protocol: u8, kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut l4 = vec![0; if protocol == 6 { 20 } else { 8 }];
    l4[..2].copy_from_slice(&ends.sport.to_be_bytes());
    l4[2..4].copy_from_slice(&ends.dport.to_be_bytes());
    match protocol {
        6 => l4[12] = 0x50,
        17 => l4[4..6].copy_from_slice(&(8 + payload.len() as u16).to_be_bytes()),
        _ => {
            l4[..4].copy_from_slice(&[kind, 0, 0, 0]);
            l4[4..6].copy_from_slice(&ends.sport.to_be_bytes());
        }
    }
    l4.extend(payload);
    let at = match protocol {
        6 => 16,
        17 => 6,
        _ => 2,
    };
    let mut sum = match protocol {
        1 => Sum::new(),
        _ => Sum::pseudo_ip4(ends.src, ends.dst, IpProtocol(protocol), l4.len() as u16),
    };
    sum.add(&l4);
    l4[at..at + 2].copy_from_slice(&sum.finish().to_be_bytes());
    l4
}

fn ip4(ends: Ends<Ipv4Addr>, protocol: u8, flags: u16, l4: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x45, 0x28, 0, 0, 0x12, 0x34, 0, 0, 61, protocol, 0, 0];
    ip[2..4].copy_from_slice(&(20 + l4.len() as u16).to_be_bytes());
    ip[6..8].copy_from_slice(&flags.to_be_bytes());
    ip.extend(ends.src.octets());
    ip.extend(ends.dst.octets());
    let sum = checksum::checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip.extend(l4);
    ip
}

fn put(head: &Head, bytes: &[u8]) -> Vec<u8> {
    [head.bytes(), &bytes[head.strip..]].concat()
}

fn translated6(mut bytes: Vec<u8>) -> Result<Vec<u8>, Fault> {
    let seen = read4(&bytes)?;
    let how = HeaderFields::of(&seen, 0);
    let head = if seen.kind == Kind::Error {
        let carried = carried4(bytes.get(usize::from(seen.header) + 8..).ok_or(Fault::Malformed)?)?;
        error_to6(&mut bytes, (&seen, &carried), (&six(seen.ends), &six(carried.ends)), &how)?
    } else {
        to6(&mut bytes, &seen, &six(seen.ends), &how)?
    };
    Ok(put(&head, &bytes))
}

fn translated4(mut bytes: Vec<u8>) -> Result<Vec<u8>, Fault> {
    let seen = read6(&bytes)?;
    let how = HeaderFields::of(&seen, 0x1234);
    let head = if seen.kind == Kind::Error {
        let carried = carried6(bytes.get(usize::from(seen.header) + 8..).ok_or(Fault::Malformed)?)?;
        error_to4(&mut bytes, (&seen, &carried), (&back(seen.ends), &back(carried.ends)), &how)?
    } else {
        to4(&mut bytes, &seen, &back(seen.ends), &how)?
    };
    Ok(put(&head, &bytes))
}

fn verify6(packet: &[u8]) {
    let seen = read6(packet).unwrap();
    let l4 = &packet[usize::from(seen.header)..];
    assert_eq!(l4.len(), usize::from(seen.payload), "the length is that of the packet");
    let Ends { src, dst, .. } = seen.ends;
    let mut sum = Sum::pseudo_ip6(src, dst, IpProtocol(seen.protocol), l4.len() as u32);
    sum.add(l4);
    assert_eq!(sum.finish(), 0, "the transport checksum is right");
}

fn verify4(packet: &[u8]) {
    assert!(checksum::verify(&packet[..20]));
    let seen = read4(packet).unwrap();
    let l4 = &packet[20..];
    assert_eq!(l4.len(), usize::from(seen.payload));
    let mut sum = match seen.protocol {
        1 => Sum::new(),
        _ => Sum::pseudo_ip4(seen.ends.src, seen.ends.dst, IpProtocol(seen.protocol), l4.len() as u16),
    };
    sum.add(l4);
    assert_eq!(sum.finish(), 0, "the transport checksum is right");
}

fn error4(kind: u8, code: u8, word: u32, carried: &[u8]) -> Vec<u8> {
    let mut l4 = vec![kind, code, 0, 0];
    l4.extend(word.to_be_bytes());
    l4.extend(carried);
    let sum = checksum::checksum(&l4);
    l4[2..4].copy_from_slice(&sum.to_be_bytes());
    let from = Ends { src: Ipv4Addr::new(203, 0, 113, 1), dst: A4.src, sport: 0, dport: 0 };
    ip4(from, 1, 0, &l4)
}

#[test]
fn a_packet_comes_back_as_it_was() {
    for (protocol, kind) in [(6, 0), (17, 0), (1, 8), (1, 0)] {
        let packet = ip4(A4, protocol, 0, &transport4(A4, protocol, kind, b"odd"));
        let there = translated6(packet.clone()).unwrap();
        verify6(&there);
        assert_eq!((there[1] >> 4 | there[0] << 4, there[7]), (0x28, 61), "class and hop limit are kept");
        assert_eq!(translated4(there).unwrap(), packet);
    }
}

#[test]
fn an_error_has_the_other_header_inside_and_the_right_checksum() {
    let carried = ip4(A4, 17, 0x4000, &transport4(A4, 17, 0, b"payload"));
    let there = translated6(error4(3, 4, 1400, &carried)).unwrap();
    verify6(&there);
    assert_eq!(there[40..42], [2, 0]);
    assert_eq!(there[44..48], 1420_u32.to_be_bytes());
    let inside = carried6(&there[48..]).unwrap();
    assert_eq!(inside.ends, six(A4));
    assert_eq!(usize::from(inside.payload), 15);
    let again = translated4(there).unwrap();
    verify4(&again);
    assert_eq!(again[20..22], [3, 4]);
    assert_eq!(again[26..28], 1400_u16.to_be_bytes());
    assert_eq!(carried4(&again[28..]).unwrap().ends, A4);
}

#[test]
fn errors_are_those_of_the_rfc() {
    let carried = ip4(A4, 6, 0, &transport4(A4, 6, 0, b""));
    let cases = [(3, 0, 1, 0), (3, 2, 4, 1), (3, 3, 1, 4), (3, 13, 1, 1), (11, 0, 3, 0), (11, 1, 3, 1)];
    for (kind, code, kind6, code6) in cases {
        let there = translated6(error4(kind, code, 0, &carried)).unwrap();
        verify6(&there);
        assert_eq!(there[40..42], [kind6, code6], "of {kind} {code}");
    }
    for (kind, code) in [(3, 14), (4, 0), (5, 0), (12, 1)] {
        assert_eq!(translated6(error4(kind, code, 0, &carried)), Err(Fault::IcmpType), "of {kind} {code}");
    }
    // RFC 1191: a router that says no length.
    let there = translated6(error4(3, 4, 0, &carried)).unwrap();
    assert_eq!(there[44..48], 1280_u32.to_be_bytes());
}

#[test]
fn a_carried_query_keeps_its_checksum() {
    let carried = ip4(A4, 1, 0, &transport4(A4, 1, 8, b"ping"));
    let there = translated6(error4(11, 0, 0, &carried)).unwrap();
    verify6(&there);
    assert_eq!(there[48 + 40], 128);
    verify6(&there[48..]);
}

#[test]
fn a_fragment_has_a_fragment_header() {
    let l4 = transport4(A4, 6, 0, &[7; 100]);
    let first = translated6(ip4(A4, 6, 0x2000, &l4[..64])).unwrap();
    assert_eq!(first[6], 44);
    assert_eq!(first[40..48], [6, 0, 0, 1, 0, 0, 0x12, 0x34]);
    let last = translated6(ip4(A4, 6, 8, &l4[64..])).unwrap();
    assert_eq!(last[40..48], [6, 0, 0, 64, 0, 0, 0x12, 0x34]);
    assert_eq!(last[48..], l4[64..], "a later fragment has no transport header");
    assert_eq!(read6(&last).unwrap().ends.sport, 0);
    let whole = [&first[48..], &last[48..]].concat();
    let ends = six(A4);
    let mut sum = Sum::pseudo_ip6(ends.src, ends.dst, IpProtocol(6), whole.len() as u32);
    sum.add(&whole);
    assert_eq!(sum.finish(), 0);
    assert_eq!(translated4(last).unwrap()[6..8], [0, 8]);
}

#[test]
fn a_fragment_of_an_icmp_message_is_not_translated() {
    let l4 = transport4(A4, 1, 8, &[7; 100]);
    assert_eq!(translated6(ip4(A4, 1, 0x2000, &l4[..64])), Err(Fault::IcmpFragment));
    assert_eq!(translated6(ip4(A4, 1, 8, &l4[64..])), Err(Fault::IcmpFragment));
}

#[test]
fn a_datagram_without_checksum_gets_one_if_it_is_all_here() {
    let mut l4 = transport4(A4, 17, 0, b"payload");
    l4[6..8].fill(0);
    verify6(&translated6(ip4(A4, 17, 0, &l4)).unwrap());
    assert_eq!(translated6(ip4(A4, 17, 0x2000, &l4)), Err(Fault::NoChecksum));
    let mut cut = ip4(A4, 17, 0, &l4);
    cut.pop();
    assert_eq!(translated6(cut), Err(Fault::NoChecksum));
}

#[test]
fn a_small_packet_may_be_fragmented_and_a_large_one_not() {
    for (payload, flags) in [(1220, 0), (1221, 0x40)] {
        let packet = translated6(ip4(A4, 6, 0x4000, &transport4(A4, 6, 0, &vec![0; payload]))).unwrap();
        assert_eq!(translated4(packet).unwrap()[6], flags);
    }
}

#[test]
fn extension_headers_are_taken_off_and_segments_left_are_refused() {
    let plain = translated6(ip4(A4, 17, 0, &transport4(A4, 17, 0, b"payload"))).unwrap();
    let with = |kind: u8, left: u8| {
        let mut packet = plain[..40].to_vec();
        packet[6] = kind;
        packet[5] += 8;
        packet.extend([17, 0, 0, left, 0, 0, 0, 0]);
        packet.extend(&plain[40..]);
        packet
    };
    for kind in [0, 43, 60] {
        verify4(&translated4(with(kind, 0)).unwrap());
    }
    assert_eq!(translated4(with(43, 1)), Err(Fault::SegmentsLeft));
}

#[test]
fn lengths_that_contradict_each_other_are_refused() {
    let good = ip4(A4, 17, 0, &transport4(A4, 17, 0, b""));
    for (at, value) in [(0, 0x44), (0, 0x65), (3, 19), (3, 27)] {
        let mut packet = good.clone();
        packet[at] = value;
        assert_eq!(read4(&packet), Err(Fault::Malformed), "byte {at} is {value}");
    }
    for length in 0..good.len() {
        assert!(read4(&good[..length]).is_err());
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let udp = ip4(A4, 17, 0, &transport4(A4, 17, 0, b"payload"));
    let error = error4(3, 4, 0, &udp);
    let tcp = ip4(A4, 6, 0x2000, &transport4(A4, 6, 0, b"payload"));
    let six = [&udp, &error, &tcp].map(|packet| translated6(packet.clone()).unwrap());
    [vec![udp, error, tcp], six.to_vec()].concat()
}

proptest! {
    #[test]
    fn any_bytes_are_translated_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = translated6(bytes.clone());
        let _ = translated4(bytes);
    }

    #[test]
    fn a_spoilt_packet_is_translated_or_refused(
        which in 0..6_usize,
        cut in 0..200_usize,
        spoil in prop::collection::vec((0..120_usize, any::<u8>()), 0..4),
    ) {
        let mut packet = seeds()[which].clone();
        for (at, value) in spoil {
            if let Some(byte) = packet.get_mut(at) {
                *byte = value;
            }
        }
        packet.truncate(cut);
        let _ = translated6(packet.clone());
        let _ = translated4(packet);
    }

    #[test]
    fn tcp_and_queries_come_back_with_any_ports_and_payload(
        sport: u16, dport: u16, src: u32, dst: u32, query: bool,
        payload in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let dport = if query { sport } else { dport };
        let ends = Ends { src: Ipv4Addr::from_bits(src), dst: Ipv4Addr::from_bits(dst), sport, dport };
        let protocol = if query { 1 } else { 6 };
        let there = translated6(ip4(ends, protocol, 0, &transport4(ends, protocol, 8, &payload))).unwrap();
        verify6(&there);
        let again = translated4(there).unwrap();
        verify4(&again);
        let seen: ParsedPacket<Ipv4Addr> = read4(&again).unwrap();
        prop_assert_eq!(seen.ends, ends);
    }
    #[test]
    fn packets_with_ports_become_what_any_packet_does(
        sport: u16, dport: u16, src: u32, dst: u32, class: u8, hops: u8, id: u16, is_tcp: bool, flags: bool,
        payload in prop::collection::vec(any::<u8>(), 0..1300), new_port: u16, behind in 0..9_usize,
    ) {
        let ends = Ends { src: Ipv4Addr::from_bits(src), dst: Ipv4Addr::from_bits(dst), sport, dport };
        let protocol = if is_tcp { 6 } else { 17 };
        let mut packet =
            ip4(ends, protocol, if flags { 0x4000 } else { 0 }, &transport4(ends, protocol, 0, &payload));
        (packet[1], packet[8]) = (class, hops);
        packet.extend(vec![0; behind]);

        let seen = WithPorts::read4(&packet).unwrap();
        let any = read4(&packet).unwrap();
        let told = (seen.ends, seen.class, seen.hops, seen.payload);
        prop_assert_eq!(told, (any.ends, any.class, any.hops, any.payload));
        let to = Ends { dport: new_port, ..six(ends) };
        let mut there = [vec![0x55; 20], packet.clone()].concat();
        seen.to6(&mut there, &to, shoal_nat::Sum::Whole).unwrap();
        let head = to6(&mut packet, &any, &to, &HeaderFields::of(&any, 0)).unwrap();
        alike(&there, &put(&head, &packet), 40, is_tcp);
        let end = there.len() - behind;
        verify6(&there[..end]);

        let seen = WithPorts::read6(&there).unwrap();
        let any = read6(&there).unwrap();
        let told = (seen.ends, seen.class, seen.hops, seen.payload);
        prop_assert_eq!(told, (any.ends, any.class, any.hops, any.payload));
        let mut again = there.clone();
        seen.to4(&mut again, &ends, (shoal_nat::Sum::Whole, id)).unwrap();
        let head = to4(&mut there, &any, &ends, &HeaderFields::of(&any, id)).unwrap();
        alike(&again[20..], &put(&head, &there), 20, is_tcp);
        verify4(&again[20..again.len() - behind]);
    }

    #[test]
    fn a_spoilt_packet_with_ports_is_what_any_reader_says(
        which in 0..6_usize,
        cut in 0..200_usize,
        spoil in prop::collection::vec((0..80_usize, any::<u8>()), 0..4),
    ) {
        let mut packet = seeds()[which].clone();
        for (at, value) in spoil {
            if let Some(byte) = packet.get_mut(at) {
                *byte = value;
            }
        }
        packet.truncate(cut);
        if let Some(seen) = WithPorts::read4(&packet) {
            prop_assert_eq!(seen.ends, read4(&packet).unwrap().ends);
            let _ = seen.to6(&mut packet.clone(), &six(seen.ends), shoal_nat::Sum::Pseudo);
        }
        if let Some(seen) = WithPorts::read6(&packet) {
            prop_assert_eq!(seen.ends, read6(&packet).unwrap().ends);
            let _ = seen.to4(&mut packet, &back(seen.ends), (shoal_nat::Sum::Pseudo, 0));
        }
    }
}

/// Both are the same but for the checksum behind an IP header of `header` bytes, of which there are two for some sums.
fn alike(one: &[u8], other: &[u8], header: usize, is_tcp: bool) {
    let at = header + if is_tcp { 16 } else { 6 };
    let without = |packet: &[u8]| [&packet[..at], &packet[at + 2..]].concat();
    assert_eq!(without(one), without(other));
}
