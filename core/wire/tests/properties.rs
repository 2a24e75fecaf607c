//! Properties over random bytes: nothing panics, sums equal a naive reference, what was built is read back.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy's allowance for tests ends at #[test] functions"
)]

use std::fmt::Write;
use std::net::Ipv4Addr;
use std::time::Duration;

use proptest::prelude::*;
use shoal_wire::checksum::{self, Sum};
use shoal_wire::hash::{Flow4, Flow6, Symmetry};
use shoal_wire::packet::{Fragment, Packet};
use shoal_wire::pcap::{LinkType, Reader, Writer};
use shoal_wire::*;

/// RFC 1071 as it is written down: sixteen bits at a time.
fn naive(bytes: &[u8]) -> u16 {
    let mut sum: u64 =
        bytes.chunks(2).map(|c| u64::from(c[0]) << 8 | c.get(1).map_or(0, |b| u64::from(*b))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Views the start of `bytes` as a `T` and formats it both ways.
fn show<T>(bytes: &[u8]) -> String
where
    T: FromBytes
        + zerocopy::KnownLayout
        + zerocopy::Immutable
        + zerocopy::Unaligned
        + std::fmt::Display
        + std::fmt::Debug,
{
    let mut out = String::new();
    if let Ok((header, _)) = T::ref_from_prefix(bytes) {
        write!(out, "{header} {header:?}").unwrap();
    }
    out
}

fn ip4_header() -> impl Strategy<Value = Ip4Header> {
    any::<[u8; 20]>().prop_map(|bytes| {
        let mut ip = Ip4Header::read_from_bytes(&bytes).unwrap();
        ip.set_version_ihl(0x45);
        ip.update_checksum();
        ip
    })
}

proptest! {
    #[test]
    fn no_header_panics_on_random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..128)) {
        show::<EthernetHeader>(&bytes);
        show::<VlanHeader>(&bytes);
        show::<ArpHeader>(&bytes);
        show::<Ip4Header>(&bytes);
        show::<Ip6Header>(&bytes);
        show::<Icmp4Header>(&bytes);
        show::<Icmp4Echo>(&bytes);
        show::<Icmp4Error>(&bytes);
        show::<UdpHeader>(&bytes);
        show::<TcpHeader>(&bytes);
        describe_frame(&bytes).to_string();
        describe_ip6(&bytes).to_string();
        describe_arp(&bytes).to_string();
        let _ = (Flow4::of_packet(&bytes), Flow6::of_packet(&bytes));
        icmp4::make(&mut bytes.clone());
    }

    #[test]
    fn describing_an_ip4_packet_never_fails_and_admits_what_is_cut(
        first in any::<u8>(), protocol in prop::sample::select(vec![1u8, 6, 17, 47]),
        mut bytes in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        if let Some(byte) = bytes.get_mut(9) { *byte = protocol; }
        if let Some(byte) = bytes.get_mut(0) { *byte = first; }
        let text = describe_ip4(&bytes).to_string();
        let header_len = usize::from(first & 0xf) * 4;
        if bytes.len() < 20 || bytes.len() < header_len {
            prop_assert!(text.contains("truncated"), "{}", text);
        }
    }

    #[test]
    fn options_end_and_stay_inside_their_area(area in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut end = 0;
        for (steps, option) in Ip4Options::new(&area).enumerate() {
            prop_assert!(steps < 40);
            match option {
                Ok(option) => {
                    prop_assert_eq!(option.offset, end);
                    end += if option.kind == Ip4Option::NOP { 1 } else { 2 + option.data.len() };
                    prop_assert!(end <= area.len().min(40));
                }
                Err(error) => prop_assert_eq!(error.offset, end),
            }
        }
    }

    #[test]
    fn the_checksum_equals_the_naive_one(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(checksum::checksum(&bytes), naive(&bytes));
        prop_assert_eq!(checksum::verify(&bytes), naive(&bytes) == 0);
    }

    #[test]
    fn a_chain_of_segments_sums_like_one_piece(segments in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8)) {
        let mut sum = Sum::new();
        for segment in &segments { sum.add(segment); }
        prop_assert_eq!(sum.finish(), naive(&segments.concat()));
    }

    #[test]
    fn an_incremental_update_equals_a_recomputation(mut bytes in prop::collection::vec(any::<u8>(), 8..64), new in any::<u32>(), at in 0usize..16) {
        // RFC 1624. An all-zero message is left out: its sum has two representations.
        bytes[0] |= 1;
        let at = 4 + 4 * at % (bytes.len() / 4 * 4 - 4);
        let before = naive(&bytes);
        let old = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        bytes[at..at + 4].copy_from_slice(&new.to_be_bytes());
        prop_assert_eq!(checksum::update_u32(before, old, new), naive(&bytes));
        let halves = checksum::update_u16(before, (old >> 16) as u16, (new >> 16) as u16);
        prop_assert_eq!(checksum::update_u16(halves, old as u16, new as u16), naive(&bytes));
    }

    #[test]
    fn an_ip4_header_keeps_its_checksum_through_every_rewrite(mut ip in ip4_header(), addr in any::<u32>(), tos in any::<u8>(), flip in 0usize..160) {
        prop_assert!(ip.checksum_ok() && ip.checksum_ok_with(&[]));
        let ttl = ip.ttl();
        prop_assert_eq!(ip.decrement_ttl(), ttl.saturating_sub(1));
        prop_assert_eq!(ip.checksum(), ip.compute_checksum());
        ip.rewrite_src(Ipv4Addr::from_bits(addr));
        ip.rewrite_dst(Ipv4Addr::from_bits(!addr));
        ip.rewrite_tos(tos);
        prop_assert!(ip.checksum_ok());
        prop_assert_eq!(ip.checksum(), ip.compute_checksum());
        let mut bytes = ip.as_bytes().to_vec();
        bytes[flip / 8] ^= 1 << (flip % 8);
        prop_assert!(!Ip4Header::read_from_bytes(&bytes).unwrap().checksum_ok());
    }

    #[test]
    fn a_wrong_checksum_stays_wrong_when_the_ttl_falls(mut ip in ip4_header(), wrong in any::<u16>()) {
        let right = ip.checksum();
        // 0x0000 and 0xffff both mean zero in ones' complement.
        prop_assume!(wrong % 0xffff != right % 0xffff);
        ip.set_checksum(wrong);
        ip.decrement_ttl();
        prop_assert!(!ip.checksum_ok());
    }

    #[test]
    fn the_pcap_reader_survives_random_bytes(
        magic in prop::sample::select(vec![0xa1b2_c3d4u32, 0xa1b2_3c4d, 0xd4c3_b2a1, 0x4d3c_b2a1, 0]),
        big in any::<bool>(), bytes in prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..200),
    ) {
        let version: &[u8] = if big ^ (magic >> 24 != 0xa1) { &[0, 2, 0, 4] } else { &[2, 0, 4, 0] };
        let file = [&magic.to_be_bytes()[..], version, &bytes].concat();
        if let Ok(reader) = Reader::new(&file[..]) {
            let mut total = 24;
            for record in reader {
                match record {
                    Ok(record) => total += 16 + record.data.len(),
                    Err(error) => prop_assert!(error.to_string().contains("offset")),
                }
            }
            prop_assert!(total <= file.len());
        }
    }

    #[test]
    fn pcap_records_are_read_back_as_written(records in prop::collection::vec((any::<u32>(), 0u32..1_000_000, prop::collection::vec(any::<u8>(), 0..100)), 0..6)) {
        let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET).unwrap();
        for (sec, usec, data) in &records {
            writer.write(Duration::new(u64::from(*sec), usec * 1000), data).unwrap();
        }
        let file = writer.into_inner();
        let read: Vec<_> = Reader::new(&file[..]).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(read.len(), records.len());
        for (record, (sec, usec, data)) in read.iter().zip(&records) {
            prop_assert_eq!(record.timestamp, Duration::new(u64::from(*sec), usec * 1000));
            prop_assert_eq!(&record.data, data);
        }
    }

    #[test]
    fn built_packets_are_read_back(
        src in any::<u32>(), dst in any::<u32>(), sport in any::<u16>(), dport in any::<u16>(), ttl in any::<u8>(),
        options in prop::collection::vec(any::<u8>(), 0..40), payload in prop::collection::vec(any::<u8>(), 0..80),
        vlan in prop::option::of(1u16..4095), offset in 0u16..1000,
    ) {
        let mut packet = Packet::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .ip4(Ipv4Addr::from_bits(src), Ipv4Addr::from_bits(dst))
            .ttl(ttl).options(&options).udp(sport, dport).payload(&payload).fragment(offset, Fragment::Last);
        if let Some(id) = vlan { packet = packet.vlan(id); }
        let bytes = packet.build();
        let start = if vlan.is_some() { 18 } else { 14 };
        let (ip, rest) = Ip4Header::read_from_prefix(&bytes[start..]).unwrap();
        let options_len = ip.header_len() - 20;
        prop_assert!(ip.checksum_ok_with(&rest[..options_len]));
        prop_assert_eq!((ip.src_u32(), ip.dst_u32(), ip.ttl(), ip.version()), (src, dst, ttl, 4));
        prop_assert_eq!(ip.fragment_offset(), offset / 8 * 8);
        prop_assert_eq!(usize::from(ip.total_length()), bytes.len() - start);
        let (udp, data) = UdpHeader::read_from_prefix(&rest[options_len..]).unwrap();
        prop_assert_eq!((udp.src_port(), udp.dst_port(), usize::from(udp.length())), (sport, dport, 8 + payload.len()));
        prop_assert_eq!(data, &payload[..]);
        let mut sum = Sum::pseudo_ip4(ip.src(), ip.dst(), IpProtocol::UDP, udp.length());
        sum.add(&rest[options_len..]);
        prop_assert_eq!(sum.folded(), 0xffff);
        let described = describe_frame(&bytes).to_string();
        prop_assert!(!described.contains("should be"), "{}", described);
    }

    #[test]
    fn addresses_and_prefixes_are_read_back_as_printed(mac in any::<[u8; 6]>(), a in any::<u32>(), b in any::<u128>(), len in 0u8..=32) {
        prop_assert_eq!(MacAddress(mac).to_string().parse(), Ok(MacAddress(mac)));
        let four = Ip4Prefix::new(Ipv4Addr::from_bits(a), len).unwrap();
        prop_assert_eq!(four.to_string().parse(), Ok(four));
        prop_assert!(four.contains(four.network()) && four.contains(four.range().last()));
        prop_assert_eq!(four.range().count(), 1u64 << (32 - len));
        prop_assert_eq!(four.has_host_bits(), four.require_network().is_err());
        let six = Ip6Prefix::new(b.into(), len * 4).unwrap();
        prop_assert_eq!(six.to_string().parse(), Ok(six));
        prop_assert!(six.contains(six.last()) && six.normalized().covers(&six));
    }

    #[test]
    fn parsers_of_text_survive_any_text(text in "[0-9a-f.:/+ -]{0,24}|\\PC{0,80}") {
        for error in [text.parse::<Ip4Prefix>().err(), text.parse::<Ip6Prefix>().err(), text.parse::<Ip4Range>().err()] {
            prop_assert!(error.is_none_or(|e| !e.to_string().is_empty()));
        }
        let _ = text.parse::<MacAddress>();
    }

    #[test]
    fn a_symmetric_hash_ignores_direction(a in any::<(u32, u16)>(), b in any::<(u32, u16)>(), protocol in any::<u8>(), seed in any::<u64>()) {
        let flow = |s: (u32, u16), d: (u32, u16)| Flow4 {
            src: s.0.into(), dst: d.0.into(), src_port: s.1, dst_port: d.1, protocol: IpProtocol(protocol),
        };
        prop_assert_eq!(flow(a, b).hash(seed, Symmetry::Symmetric), flow(b, a).hash(seed, Symmetry::Symmetric));
    }
}
