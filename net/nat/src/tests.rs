//! Translated packets against packets that were made with the new tuple: every byte is the same.

use crate::icmp::Quoted;
use crate::tuple::{ICMP, TCP, UDP};
use crate::{Delta, Kind, ParsedPacket, PortPacket, Rewrite, Shards, Sum, Tuple, mss};
use shoal_wire::checksum;

/// Numbers that are the same in each run.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ (self.0 >> 29)
    }

    fn tuple(&mut self) -> Tuple {
        let (a, b) = (self.next(), self.next());
        Tuple { src: a as u32, dst: (a >> 32) as u32, sport: b as u16, dport: (b >> 16) as u16 }
    }
}

fn packet(tuple: Tuple, protocol: u8, payload: &[u8], with_sum: bool) -> Vec<u8> {
    let mut l4 = match protocol {
        TCP => vec![0; 20],
        _ => vec![0; 8],
    };
    if protocol == ICMP {
        l4[0] = 8;
        l4[4..6].copy_from_slice(&tuple.sport.to_be_bytes());
    } else {
        l4[..2].copy_from_slice(&tuple.sport.to_be_bytes());
        l4[2..4].copy_from_slice(&tuple.dport.to_be_bytes());
    }
    if protocol == TCP {
        (l4[12], l4[13]) = (0x50, 2);
    } else if protocol == UDP {
        l4[4..6].copy_from_slice(&((8 + payload.len()) as u16).to_be_bytes());
    }
    l4.extend(payload);
    let mut ip = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0];
    ip.extend(tuple.src.to_be_bytes());
    ip.extend(tuple.dst.to_be_bytes());
    let total = (ip.len() + l4.len()) as u16;
    ip[2..4].copy_from_slice(&total.to_be_bytes());
    let sum = checksum::checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let (src, dst) = (tuple.src.into(), tuple.dst.into());
    let mut sum = match protocol {
        ICMP => checksum::Sum::new(),
        _ => checksum::Sum::pseudo_ip4(src, dst, shoal_wire::IpProtocol(protocol), l4.len() as u16),
    };
    sum.add(&l4);
    let (at, sum) = match protocol {
        TCP => (16, sum.finish()),
        UDP => (6, if with_sum { sum.finish_udp() } else { 0 }),
        _ => (2, sum.finish()),
    };
    l4[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    ip.extend(l4);
    ip
}

fn query(mut tuple: Tuple) -> Tuple {
    tuple.dport = tuple.sport;
    tuple
}

/// Both ways to read and to write a packet with ports agree, and the short one reads no other.
#[test]
fn a_packet_with_ports_is_read_and_written_as_any_other() {
    let mut rng = Rng(11);
    let mut read = [0; 2];
    for _ in 0..20_000 {
        let draw = rng.next();
        let protocol = [TCP, UDP, ICMP, 47][draw as usize % 4];
        let mut bytes = packet(rng.tuple(), protocol, &[0; 9], draw & 16 != 0);
        match draw >> 8 & 7 {
            0 => bytes.truncate((draw >> 16) as usize % bytes.len()),
            1 => bytes[0] = (draw >> 16) as u8,
            2 => bytes[6..8].copy_from_slice(&((draw >> 16) as u16).to_be_bytes()),
            _ => {}
        }
        let whole = ParsedPacket::read(&bytes);
        let Some(short) = PortPacket::read(&bytes) else {
            let is_ordinary = |seen: ParsedPacket| {
                matches!(seen.kind, Kind::Tcp | Kind::Udp) && !seen.fragment && seen.header == 20
            };
            // The short way asks for all that it changes: of TCP up to the checksum.
            let least = if bytes.get(9) == Some(&TCP) { 38 } else { 28 };
            assert!(bytes.len() < least || bytes[0] != 0x45 || whole.is_none_or(|seen| !is_ordinary(seen)));
            continue;
        };
        let seen = whole.unwrap();
        let Tuple { src, dst, sport, dport } = seen.tuple;
        assert_eq!(short.addresses, u64::from(src) << 32 | u64::from(dst));
        assert_eq!(short.ports, u32::from(sport) << 16 | u32::from(dport));
        assert_eq!((short.kind(), short.protocol(), short.flags), (seen.kind, seen.protocol, seen.flags));
        assert!(!seen.fragment && seen.first && seen.header == 20);
        let rewrite = Rewrite::new(seen.tuple, rng.tuple(), protocol);
        for sum in [Sum::Whole, Sum::Pseudo] {
            let (mut one, mut other) = (bytes.clone(), bytes.clone());
            let written = rewrite.write(&mut one, 20, seen.kind, true, sum);
            assert_eq!(written, Some(()), "what was read can be written");
            assert_eq!(rewrite.write_port_packet(&mut other, short.is_tcp, sum), written);
            assert_eq!(one, other);
        }
        read[usize::from(short.is_tcp)] += 1;
    }
    assert!(read.iter().all(|n| *n > 2000), "{read:?}");
}

#[test]
fn a_rewritten_packet_is_the_one_made_with_the_new_tuple() {
    let mut rng = Rng(7);
    for n in 0..3000 {
        let protocol = [TCP, UDP, ICMP][n % 3];
        let (mut from, mut to) = (rng.tuple(), rng.tuple());
        if protocol == ICMP {
            (from, to) = (query(from), query(to));
        }
        // Odd lengths, no payload, no UDP checksum.
        let payload: Vec<u8> = (0..rng.next() % 40).map(|_| rng.next() as u8).collect();
        let with_sum = n % 5 != 0;
        let mut bytes = packet(from, protocol, &payload, with_sum);
        let seen = ParsedPacket::read(&bytes).unwrap();
        assert_eq!((seen.tuple, seen.protocol, seen.first, seen.fragment), (from, protocol, true, false));
        let there = Rewrite::new(from, to, protocol);
        there.write(&mut bytes, 20, seen.kind, true, Sum::Whole).unwrap();
        assert_eq!(bytes, packet(to, protocol, &payload, with_sum), "{n}");
        // And back.
        let back = Rewrite::new(to, from, protocol);
        back.write(&mut bytes, 20, seen.kind, true, Sum::Whole).unwrap();
        assert_eq!(bytes, packet(from, protocol, &payload, with_sum), "{n}");
    }
}

#[test]
fn a_udp_checksum_that_becomes_zero_is_written_as_all_ones() {
    let from = Tuple { src: 0x0a00_0001, dst: 0xc000_0201, sport: 5, dport: 53 };
    let mut seen = 0;
    for port in 0..=u16::MAX {
        let to = Tuple { sport: port, ..from };
        let mut bytes = packet(from, UDP, b"odd", true);
        Rewrite::new(from, to, UDP).write(&mut bytes, 20, Kind::Udp, true, Sum::Whole).unwrap();
        assert_ne!(bytes[26..28], [0, 0]);
        seen += usize::from(bytes[26..28] == [0xff, 0xff]);
    }
    assert_eq!(seen, 1, "one port of all gives such a sum");
}

#[test]
fn the_packet_inside_an_icmp_error_follows() {
    let mut rng = Rng(9);
    for n in 0..600 {
        let protocol = [TCP, UDP, ICMP][n % 3];
        let (mut sent, mut became) = (rng.tuple(), rng.tuple());
        if protocol == ICMP {
            (sent, became) = (query(sent), query(became));
        }
        let error = |inner: Tuple, src: u32, dst: u32| {
            let quoted = packet(inner, protocol, b"12345", true);
            let mut icmp = vec![3, 1, 0, 0, 0, 0, 0, 0];
            icmp.extend(quoted);
            let sum = checksum::checksum(&icmp);
            icmp[2..4].copy_from_slice(&sum.to_be_bytes());
            let outer = packet(Tuple { src, dst, ..Tuple::default() }, ICMP, &[], true);
            let mut bytes = outer[..20].to_vec();
            let total = (20 + icmp.len()) as u16;
            bytes[2..4].copy_from_slice(&total.to_be_bytes());
            bytes[10..12].fill(0);
            let sum = checksum::checksum(&bytes);
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
            bytes.extend(icmp);
            bytes
        };
        let mut bytes = error(became, 7, became.src);
        let quoted = Quoted::read(&bytes, 20, Some(bytes.len())).unwrap();
        assert_eq!((quoted.answer, quoted.protocol), (became.reversed(), protocol));
        quoted.write(&mut bytes, 20, (7, sent.src), sent.reversed()).unwrap();
        assert_eq!(bytes, error(sent, 7, sent.src), "{n}");
        for cut in 0..bytes.len() {
            let _ = Quoted::read(&bytes[..cut], 20, None)
                .map(|q| q.write(&mut bytes[..cut].to_vec(), 20, (1, 2), sent));
        }
    }
}

#[test]
fn no_bytes_make_a_reader_fail() {
    let mut rng = Rng(3);
    for _ in 0..20_000 {
        let mut bytes: Vec<u8> = (0..rng.next() % 60).map(|_| rng.next() as u8).collect();
        let _ = Quoted::read(&bytes, 20, None);
        if let Some(seen) = ParsedPacket::read(&bytes) {
            let rewrite = Rewrite::new(seen.tuple, rng.tuple(), seen.protocol);
            let _ = rewrite.write(&mut bytes, seen.header.into(), seen.kind, seen.first, Sum::Pseudo);
        }
        let _ = mss::clamp(&mut bytes, 1000);
    }
}

#[test]
fn segments_get_smaller_and_never_larger() {
    let make = |mss: u16, pad: usize| {
        let mut tcp = vec![0; 20];
        (tcp[12], tcp[13]) = (0x80, 2);
        tcp.extend(vec![1; pad]);
        tcp.extend([2, 4]);
        tcp.extend(mss.to_be_bytes());
        tcp.resize(32, 0);
        let sum = checksum::checksum(&tcp);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        tcp
    };
    for pad in [0, 1, 3] {
        let mut large = make(1460, pad);
        mss::clamp(&mut large, 1400);
        assert_eq!(large, make(1400, pad), "{pad}");
        let mut small = make(500, pad);
        mss::clamp(&mut small, 1400);
        assert_eq!(small, make(500, pad));
    }
}

#[test]
fn copies_of_a_table_stay_as_they_were() {
    let mut table = Shards::default();
    for n in 0..1000 {
        assert_eq!(table.insert(n, n), None);
    }
    let old = table.clone();
    assert_eq!((table.insert(5, 7), table.remove(&6), table.remove(&6)), (Some(5), Some(6), None));
    assert_eq!((table.get(&5), table.get(&6), table.len()), (Some(&7), None, 999));
    assert_eq!((old.get(&5), old.get(&6), old.len()), (Some(&5), Some(&6), 1000));
}

#[test]
fn a_change_and_its_opposite_are_nothing() {
    assert_eq!(Delta::NONE.word(5, 9).word(9, 5).apply(0x1234), 0x1234);
    assert_eq!(Delta::NONE.long(0xffff_ffff, 0).long(0, 0xffff_ffff).apply(0x1234), 0x1234);
}
