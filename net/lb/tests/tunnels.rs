//! Tunnels, classes of service, and which server a flow has.

use std::collections::BTreeMap;

use shoal_buffer::Flags;
use shoal_lb::Settings;
use shoal_lb::vip::{Encap, Policy};
use shoal_testkit::{InjectedPacket, PacketInjector};
use shoal_wire::packet::Fragment;
use shoal_wire::{IpProtocol, TcpFlags, checksum};

use crate::bed::*;

#[test]
fn packets_go_into_tunnels_as_they_came_and_flows_keep_their_server() {
    let mut bed = bed();
    let key = bed.gre4(2..6);
    let sent = bed.datagram(1000).tos(0xb9).ttl(7).pad_to(64).build();
    let got = bed.forward_frame(sent.clone());
    let [tunnel] = got.as_slice() else { panic!("{got:?}") };
    assert_eq!(addresses(tunnel).0, SOURCE);
    assert_eq!((tunnel[1], tunnel[8], tunnel[9]), (0xb9, 127, 47));
    assert!(checksum::verify(&tunnel[..20]));
    assert_eq!(tunnel[20..24], [0, 0, 8, 0]);
    // The padding of the link stays behind.
    assert_eq!(tunnel[24..], sent[ETHER..ETHER + 31]);
    let before = bed.spread(1000..1400);
    let mut shares = BTreeMap::new();
    for server in &before {
        *shares.entry(*server).or_insert(0) += 1;
    }
    assert!(shares.len() == 4 && shares.values().all(|share| (60..140).contains(share)), "{shares:?}");
    assert_eq!(bed.spread(1000..1400), before);
    let counted = bed.lb.counted(1);
    assert_eq!((counted.existing, counted.first, counted.untracked), (401, 400, 0));
    // A new server gets new flows only.
    bed.lb.add_servers(&key, &[server(7)]).unwrap();
    assert_eq!(bed.spread(1000..1400), before);
    assert!(bed.spread(1400..1500).contains(&"10.0.0.7".parse().unwrap()));
    // One that is to go gets no new ones, and keeps those it has until they end.
    bed.lb.del_servers(&key, &[server(2)], false).unwrap();
    assert_eq!(bed.spread(1000..1400), before);
    assert!(!bed.spread(2000..2200).contains(&"10.0.0.2".parse().unwrap()));
    bed.nat.advance(45);
    assert!(bed.lb.vip(&key).unwrap().by_address(server(2)).is_none());
    assert_eq!(bed.lb.look().unwrap().of_server.len(), 0);
}

#[test]
fn a_server_that_is_flushed_loses_its_flows_at_once_and_others_keep_theirs() {
    let mut bed = bed();
    let key = bed.gre4(2..6);
    let before = bed.spread(1000..1400);
    bed.lb.del_servers(&key, &[server(3)], true).unwrap();
    let gone: std::net::Ipv4Addr = "10.0.0.3".parse().unwrap();
    for (before, after) in before.iter().zip(bed.spread(1000..1400)) {
        assert!(after != gone && (*before == gone || *before == after));
    }
    // All are spread again: those that moved away from the new server's places come back.
    bed.lb.add_servers(&key, &[server(3)]).unwrap();
    bed.lb.flush(&key).unwrap();
    assert_eq!(bed.spread(1000..1400), before);
}

#[test]
fn routers_side_by_side_agree() {
    let (mut one, mut other) = (bed(), bed());
    one.gre4(2..9);
    other.gre4((2..9).rev());
    assert_eq!(one.spread(1000..1300), other.spread(1000..1300));
}

#[test]
fn clients_can_be_kept_together_and_fragments_with_them() {
    let mut bed = bed();
    let key = host_key(VIP, None);
    let policy = Policy { src_ip_sticky: true, ..Policy::new(Encap::Gre4) };
    bed.serve(&key, policy, &[server(2), server(3), server(4)]);
    let servers = bed.spread(1000..1050);
    assert!(servers.iter().all(|server| *server == servers[0]));
    let later = bed.client_frame().ip4(CLIENT, VIP).protocol(IpProtocol::UDP).payload_len(40);
    assert_eq!(bed.forward(later.clone().fragment(64, Fragment::Last)).len(), 1);
    // Where ports choose, a fragment without them cannot be sent on.
    bed.lb.del_vip(key).unwrap();
    bed.gre4(2..6);
    assert!(bed.forward(later.fragment(64, Fragment::Last)).is_empty());
    assert_eq!(bed.nat.router.error("lb4-gre4", "fragments whose ports are not known"), 1);
}

#[test]
fn all_tunnels_take_both_families() {
    let mut bed = bed();
    let four = key("198.51.100.0/24", None);
    bed.serve(&four, Policy::new(Encap::Gre6), &[server6(2), server6(3)]);
    let sent = bed.datagram(7).build();
    let got = bed.forward_frame(sent.clone());
    assert_eq!(addresses6(&got[0]).0, source6());
    assert_eq!((got[0][6], got[0][7], &got[0][40..44]), (47, 127, &[0, 0, 8, 0][..]));
    assert_eq!(got[0][44..], sent[ETHER..]);
    let six = host_key(vip6(), None);
    for (encap, servers) in [(Encap::Gre4, [server(2), server(3)]), (Encap::Gre6, [server6(2), server6(3)])] {
        bed.serve(&six, Policy::new(encap), &servers);
        let sent = bed.client_frame().ip6(client6(), vip6()).udp(9, 53).payload(b"odd").build();
        let got = bed.forward_frame(sent.clone());
        let header = if encap == Encap::Gre4 { 20 } else { 40 };
        assert_eq!(got[0][header..header + 4], [0, 0, 0x86, 0xdd]);
        assert_eq!(got[0][header + 4..], sent[ETHER..]);
        bed.lb.del_vip(six).unwrap();
    }
    assert!(bed.forward_frame(sent).len() == 1);
}

#[test]
fn direct_servers_get_the_class_of_service_and_an_unchanged_transport_checksum() {
    let mut bed = bed();
    let policy = Policy { dscp: 7, ..Policy::new(Encap::L3dsr) };
    bed.serve(&host_key(VIP, None), policy, &[server(2), server(3)]);
    let sent = bed.datagram(7).tos(0x03).build();
    let got = bed.forward_frame(sent.clone());
    assert_eq!((got[0][1], addresses(&got[0]).0), (7 << 2 | 3, CLIENT));
    assert!([server(2), server(3)].contains(&addresses(&got[0]).1.into()));
    assert!(checksum::verify(&got[0][..20]));
    assert_eq!(got[0][20..], sent[ETHER + 20..]);
}

#[test]
fn ports_have_their_own_servers_and_other_packets_to_the_address_are_dropped() {
    let mut bed = bed();
    let dns = host_key(VIP, Some((IpProtocol::UDP, 53)));
    let web = host_key(VIP, Some((IpProtocol::TCP, 80)));
    bed.serve(&dns, Policy::new(Encap::Gre4), &[server(2)]);
    bed.serve(&web, Policy::new(Encap::Gre6), &[server6(3)]);
    let got = bed.forward(bed.datagram(7));
    assert_eq!(addresses(&got[0]).1, "10.0.0.2".parse::<std::net::Ipv4Addr>().unwrap());
    let got = bed.forward(bed.client_frame().ip4(CLIENT, VIP).tcp(9, 80, TcpFlags::SYN));
    assert_eq!(std::net::IpAddr::V6(addresses6(&got[0]).1), server6(3));
    assert!(bed.forward(bed.client_frame().ip4(CLIENT, VIP).udp(9, 80)).is_empty());
    assert!(bed.forward(bed.client_frame().ip4(CLIENT, VIP).icmp_echo_request(1, 1)).is_empty());
    assert_eq!(bed.nat.router.error("lb4-gre4-port", "protocol not supported"), 2);
    // The prefix's packets go on when the first of its virtual addresses goes.
    bed.lb.del_vip(dns).unwrap();
    assert_eq!(bed.forward(bed.client_frame().ip4(CLIENT, VIP).tcp(9, 80, TcpFlags::ACK)).len(), 1);
    bed.lb.del_vip(web).unwrap();
    assert!(bed.forward(bed.client_frame().ip4(CLIENT, VIP).tcp(9, 80, TcpFlags::ACK)).is_empty());
}

#[test]
fn errors_about_a_flow_go_to_its_server() {
    let mut bed = bed();
    bed.gre4(2..9);
    for port in 1000..1020 {
        let [of_flow] = bed.spread(port..=port)[..] else { panic!("one") };
        let answer = bed.client_frame().ip4(VIP, CLIENT).udp(53, port).payload(b"answer").build();
        let start = bed.client_frame().ip4(CLIENT, VIP).icmp_echo_request(1, 1).build();
        let error = shoal_testkit::nat_bed::icmp_error(&start, &answer[ETHER..]);
        let got = bed.forward_frame(error);
        assert_eq!(addresses(&got[0]).1, of_flow);
    }
}

#[test]
fn without_room_flows_are_spread_without_being_remembered_and_without_servers_dropped() {
    let mut bed = bed();
    let key = bed.gre4(2..6);
    bed.lb.set(Settings { buckets: 8, ..bed.lb.settings() }).unwrap();
    let before = bed.spread(1000..1100);
    let counted = bed.lb.counted(1);
    assert_eq!((counted.first, counted.untracked), (32, 68));
    assert_eq!(bed.spread(1000..1100), before);
    bed.lb.forget_flows().unwrap();
    assert_eq!(bed.lb.look().unwrap().used, [(0, 0)]);
    assert_eq!(bed.spread(1000..1100), before);
    bed.nat.advance(60);
    bed.nat.inside.received();
    assert_eq!(bed.lb.look().unwrap().used, [(0, 0)]);
    bed.lb.del_servers(&key, &[2, 3, 4, 5].map(server), true).unwrap();
    assert!(bed.forward(bed.datagram(1)).is_empty());
    assert_eq!(bed.lb.counted(1).no_server, 1);
    assert_eq!(bed.nat.router.error("lb4-gre4", "no server configured"), 1);
}

#[test]
fn without_a_source_no_tunnel_packet_leaves() {
    let mut bed = bed();
    bed.gre4(2..6);
    bed.lb.set(Settings { source4: Settings::default().source4, ..bed.lb.settings() }).unwrap();
    assert!(bed.forward(bed.datagram(1)).is_empty());
    assert_eq!(bed.nat.router.error("lb4-gre4", "no source address for the tunnel: lb conf"), 1);
}

#[test]
fn checksums_left_to_a_device_are_completed_before_the_tunnel() {
    let mut bed = bed();
    bed.gre4(2..6);
    let right = bed.datagram(5).build();
    let giver = PacketInjector::new(&bed.nat.router, &bed.nat.outside, 0);
    let mut given = right.clone();
    let length = (right.len() - 34) as u16;
    let pseudo = checksum::Sum::pseudo_ip4(CLIENT, VIP, IpProtocol::UDP, length).folded();
    given[40..42].copy_from_slice(&pseudo.to_be_bytes());
    let flags = Flags::L4_CHECKSUM_OFFLOAD;
    giver.give(InjectedPacket { flags, checksum_offset: 6, l4: 34, ..InjectedPacket::from(given) });
    bed.nat.router.run();
    let got = bed.nat.inside.received();
    assert_eq!(got[0][ETHER + 24..], right[ETHER..]);
}

#[test]
fn random_packets_do_no_harm() {
    let mut bed = bed();
    bed.gre4(2..6);
    bed.serve(&host_key(vip6(), None), Policy::new(Encap::Gre6), &[server6(2)]);
    let policy = Policy { target_port: 99, ..Policy::new(Encap::Nat4) };
    bed.serve(&key("198.51.101.0/24", Some((IpProtocol::UDP, 53))), policy, &[server(2)]);
    let policy = Policy { target_port: 99, ..Policy::new(Encap::Nat6) };
    bed.serve(&key("2001:db8:9a::/64", Some((IpProtocol::TCP, 53))), policy, &[server6(2)]);
    bed.lb.set_return_path(bed.nat.inside.index(), false, true).unwrap();
    bed.lb.set_return_path(bed.nat.inside.index(), true, true).unwrap();
    let mut rng = shoal_testkit::Rng::new(shoal_testkit::Rng::seed(7));
    let starts = [
        bed.datagram(1).build(),
        bed.client_frame().ip4(CLIENT, [198, 51, 101, 9]).udp(1, 53).payload_len(40).build(),
        bed.client_frame().ip6(client6(), vip6()).tcp(1, 53, TcpFlags::ACK).build(),
        bed.client_frame()
            .ip6(client6(), "2001:db8:9a::7".parse::<std::net::Ipv6Addr>().unwrap())
            .tcp(1, 53, TcpFlags::ACK)
            .build(),
    ];
    for _ in 0..20_000 {
        let mut frame = rng.pick(&starts).clone();
        for _ in 0..=rng.below(4) {
            let at = ETHER + rng.below(frame.len() - ETHER);
            frame[at] = rng.next_u64() as u8;
        }
        if rng.one_in(4) {
            let len = ETHER + rng.below(frame.len() - ETHER);
            frame.truncate(len);
        }
        if rng.one_in(2) { bed.nat.send_outside(frame) } else { bed.nat.send_inside(frame) }
    }
    bed.nat.inside.received();
    bed.nat.outside.received();
    bed.nat.advance(60);
    assert_eq!(bed.nat.router.buffers_in_use(), 0);
}
