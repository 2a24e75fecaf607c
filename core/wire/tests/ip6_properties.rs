//! Properties of IPv6 over random bytes: nothing panics or loops, what was built is read back.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy's allowance for tests ends at #[test] functions"
)]

use std::net::Ipv6Addr;

use proptest::prelude::*;
use shoal_wire::hash::{Flow6, Symmetry};
use shoal_wire::ip6_ext::{self, Ip6ExtError, Ip6ExtHeaders, Reader, walk};
use shoal_wire::ip6_options::Ip6Options;
use shoal_wire::mld::{MldQuery, MldRecords, RecordType, ReportWriter};
use shoal_wire::nd::{
    NeighborAdvertisement, NeighborSolicitation, RaFlags, Redirect, RouterAdvertisement, RouterSolicitation,
};
use shoal_wire::nd_options::{NdOption, NdOptions};
use shoal_wire::packet::Fragment;
use shoal_wire::*;

fn addr() -> impl Strategy<Value = Ipv6Addr> {
    any::<u128>().prop_map(Ipv6Addr::from_bits)
}

/// Bytes in which small numbers are common: lengths, kinds and protocols that mean something.
fn hostile(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        4 => prop::sample::select(vec![0u8, 1, 2, 3, 4, 5, 17, 43, 44, 51, 58, 60, 255]),
        1 => any::<u8>(),
    ];
    prop::collection::vec(byte, len)
}

/// An IPv6 header in front of hostile bytes that claims about as many.
fn hostile_packet() -> impl Strategy<Value = Vec<u8>> {
    let first = prop::sample::select(vec![0u8, 43, 44, 51, 58, 60]);
    (first, addr(), addr(), -20i32..20, hostile(0..400)).prop_map(|(protocol, src, dst, lie, bytes)| {
        let claimed = (bytes.len() as i32 + lie).max(0) as u16;
        [Ip6Header::new(src, dst, IpProtocol(protocol), 255, claimed).as_bytes(), &bytes].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn a_walk_ends_inside_the_packet_or_says_where_it_stopped(packet in hostile_packet(), cut in 0usize..440) {
        let packet = packet.get(..cut).unwrap_or(&packet);
        let mut end = 40;
        for (steps, header) in Ip6ExtHeaders::of_packet(packet).into_iter().flatten().enumerate() {
            prop_assert!(steps <= ip6_ext::MAX_HEADERS);
            let Ok(header) = header else { continue };
            prop_assert_eq!(header.offset, end);
            end += header.bytes.len();
            prop_assert!(end <= packet.len() && end <= 40 + ip6_ext::MAX_LEN);
            prop_assert!(Ip6Options::of_header(&header).count() <= header.bytes.len());
        }
        for reader in [Reader::Router, Reader::Destination] {
            match walk(packet, reader) {
                Ok(chain) => {
                    prop_assert_eq!(chain.offset, end);
                    prop_assert!(chain.fragmentable_at <= chain.offset && chain.next_header_at < chain.offset);
                    prop_assert_eq!(packet[chain.next_header_at], chain.protocol.0);
                    prop_assert!(chain.fragment.is_none_or(|f| f.at >= chain.fragmentable_at));
                }
                Err(Ip6ExtError::Problem(problem)) => {
                    prop_assert!((problem.pointer as usize) < packet.len() && problem.code < 4);
                }
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
        let _ = (describe_ip6(packet).to_string(), Flow6::of_packet(packet));
        FlowHash::new(FlowFields(0xff), 1).ip6_packet(packet);
    }

    #[test]
    fn a_router_sees_no_error_that_the_destination_does_not(packet in hostile_packet()) {
        if walk(&packet, Reader::Destination).is_ok() {
            prop_assert_eq!(walk(&packet, Reader::Router), walk(&packet, Reader::Destination));
        }
    }

    #[test]
    fn messages_survive_hostile_bytes(kind in prop::sample::select(vec![1u8, 2, 3, 4, 128, 130, 131, 133, 134, 135, 136, 137, 143]),
                                      src in addr(), dst in addr(), mut message in hostile(0..200)) {
        let ip = Ip6Header::new(src, dst, IpProtocol::ICMP6, 255, message.len() as u16);
        if let [first, second, ..] = &mut message[..] { (*first, *second) = (kind, 0); }
        let checks = [
            RouterSolicitation::check(&ip, &message).map(|(m, o)| (m.to_string(), o)),
            RouterAdvertisement::check(&ip, &message).map(|(m, o)| (m.to_string(), o)),
            NeighborSolicitation::check(&ip, &message).map(|(m, o)| (m.to_string(), o)),
            NeighborAdvertisement::check(&ip, &message).map(|(m, o)| (m.to_string(), o)),
            Redirect::check(&ip, &message).map(|(m, o)| (m.to_string(), o)),
        ];
        prop_assert!(checks.iter().filter(|c| c.is_ok()).count() <= 1);
        for (_, options) in checks.into_iter().flatten() {
            prop_assert!(options.count() <= message.len() / 8);
        }
        let _ = (MldQuery::parse(&message), icmp6::quotes_an_error(&message));
        prop_assert!(MldRecords::of_message(&message).is_none_or(|r| r.count() <= message.len() / 20));
        describe_ip6(&[ip.as_bytes(), &message].concat()).to_string();
        icmp6::make(src, dst, &mut message);
        prop_assert_eq!(icmp6::verify(src, dst, &message), message.len() >= 4);
    }

    #[test]
    fn options_fill_their_area_exactly_or_are_refused(area in hostile(0..200)) {
        match NdOptions::new(&area) {
            Ok(options) => {
                let mut at = 0;
                for option in options {
                    if let NdOption::Dnssl { names, .. } = option {
                        prop_assert!(names.map(|n| n.to_string().len() + 2).sum::<usize>() <= area.len());
                    }
                    prop_assert!(area[at + 1] != 0);
                    at += 8 * usize::from(area[at + 1]);
                }
                prop_assert_eq!(at, area.len());
            }
            Err(bad) => prop_assert!(bad.offset < area.len()),
        }
    }

    #[test]
    fn a_sum_over_segments_verifies_what_was_made_in_one(src in addr(), dst in addr(), mut message in prop::collection::vec(any::<u8>(), 4..300),
                                                         cuts in prop::collection::vec(0usize..300, 0..6), flip in 0usize..2400) {
        icmp6::make(src, dst, &mut message);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c % message.len()).chain([0, message.len()]).collect();
        cuts.sort_unstable();
        let mut sum = icmp6::sum(src, dst, message.len() as u32);
        cuts.windows(2).for_each(|w| sum.add(&message[w[0]..w[1]]));
        prop_assert_eq!(sum.folded(), 0xffff);
        let bit = flip % (message.len() * 8);
        message[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(!icmp6::verify(src, dst, &message));
    }

    #[test]
    fn advertisements_are_read_back_as_written(lifetime in any::<u16>(), mtu in any::<u32>(), mac in any::<[u8; 6]>(),
                                               servers in prop::collection::vec(addr(), 0..5), names in prop::collection::vec("[a-z]{1,20}(\\.[a-z]{1,20}){0,3}", 0..4)) {
        let (src, dst) = (ip6_address::link_local_of(MacAddress(mac)), ip6_address::ALL_NODES);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut out = [0xff; 1024];
        let len = RouterAdvertisement::new(RaFlags::MANAGED, lifetime).write(&mut out)
            .source_link_layer(MacAddress(mac)).mtu(mtu).rdnss(1, &servers).dnssl(2, &names).finish(src, dst).unwrap();
        let packet = Packet::raw().ip6(src, dst).ttl(255).icmp6(&out[..len]).build();
        let (ip, message) = Ip6Header::read_from_prefix(&packet).unwrap();
        prop_assert!(icmp6::verify(src, dst, message));
        let (advertisement, options) = RouterAdvertisement::check(&ip, message).unwrap();
        prop_assert_eq!(advertisement.router_lifetime_secs(), lifetime);
        prop_assert_eq!(options.source_link_layer(), Some(MacAddress(mac)));
        let (mut read_servers, mut read_names) = (Vec::new(), Vec::new());
        for option in options {
            match option {
                NdOption::Mtu(read) => prop_assert_eq!(read, mtu),
                NdOption::Rdnss { servers, .. } => read_servers.extend(servers.iter().map(|s| Ipv6Addr::from_octets(*s))),
                NdOption::Dnssl { names, .. } => read_names.extend(names.map(|n| n.to_string())),
                _ => {}
            }
        }
        prop_assert_eq!(read_servers, servers);
        prop_assert_eq!(read_names, names);
    }

    #[test]
    fn reports_are_read_back_as_written(records in prop::collection::vec((1u8..7, addr(), prop::collection::vec(addr(), 0..4)), 0..6), room in 0usize..600) {
        let mut out = vec![0; room];
        let report = records.iter().fold(ReportWriter::new(&mut out), |w, (kind, group, sources)| w.record(RecordType(*kind), *group, sources));
        let want = 8 + records.iter().map(|(_, _, s)| 20 + 16 * s.len()).sum::<usize>();
        let len = report.finish(Ipv6Addr::UNSPECIFIED, ip6_address::ALL_MLD2_ROUTERS);
        prop_assert_eq!(len, (want <= room).then_some(want));
        let Some(len) = len else { return Ok(()) };
        let read: Vec<_> = MldRecords::of_message(&out[..len]).unwrap()
            .map(|r| (r.kind.0, r.group, r.sources.iter().map(|s| Ipv6Addr::from_octets(*s)).collect())).collect();
        prop_assert_eq!(read, records);
    }

    #[test]
    fn built_packets_are_walked_to_their_payload(src in addr(), dst in addr(), label in 0u32..=0xf_ffff, sport in any::<u16>(), dport in any::<u16>(),
                                                 options in 0usize..40, id in any::<u16>(), fragmented in any::<bool>(), payload in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut packet = Packet::raw().ip6(src, dst).flow_label(label).id(id)
            .ip6_ext(IpProtocol::IP6_HOP_BY_HOP_OPTIONS, &[5, 2, 0, 0])
            .ip6_ext(IpProtocol::IP6_DESTINATION_OPTIONS, &[&[1, options as u8][..], &vec![0; options]].concat())
            .udp(sport, dport).payload(&payload);
        if fragmented { packet = packet.fragment(0, Fragment::More); }
        let bytes = packet.build();
        let chain = walk(&bytes, Reader::Destination).unwrap();
        prop_assert_eq!((chain.protocol, chain.fragment.is_some(), chain.router_alert), (IpProtocol::UDP, fragmented, Some(0)));
        prop_assert_eq!(chain.fragment.map_or(u32::from(id), |f| f.header.id()), u32::from(id));
        prop_assert_eq!(chain.fragmentable_at, 48);
        let mut sum = checksum::Sum::pseudo_ip6(src, dst, IpProtocol::UDP, 8 + payload.len() as u32);
        sum.add(&bytes[chain.offset..]);
        prop_assert_eq!(sum.folded(), 0xffff);
        let flow = Flow6::of_packet(&bytes).unwrap();
        let ports = if fragmented { (0, 0) } else { (sport, dport) };
        prop_assert_eq!((flow.src, flow.dst, (flow.src_port, flow.dst_port)), (src, dst, ports));
        let back = Flow6 { src: dst, dst: src, src_port: flow.dst_port, dst_port: flow.src_port, ..flow };
        prop_assert_eq!(flow.hash(7, Symmetry::Symmetric), back.hash(7, Symmetry::Symmetric));
    }

    #[test]
    fn addresses_of_the_link_agree_with_the_standard_library(a in addr(), mac in any::<[u8; 6]>(), len in 0u8..=128) {
        prop_assert_eq!(ip6_address::is_link_local(a), a.is_unicast_link_local());
        prop_assert!(ip6_address::is_solicited_node(ip6_address::solicited_node(a)));
        prop_assert!(ip6_address::is_link_local(ip6_address::link_local_of(MacAddress(mac))));
        let group = MacAddress::for_ip6_multicast(ip6_address::solicited_node(a));
        prop_assert_eq!((group.0[..3].to_vec(), &group.0[3..]), (vec![0x33, 0x33, 0xff], &a.octets()[13..]));
        let prefix = IpPrefix::new(a.into(), len).unwrap();
        prop_assert_eq!(prefix.to_string().parse(), Ok(prefix));
        prop_assert!(prefix.normalized().contains(a.into()) && prefix.normalized().covers(&prefix));
    }
}
