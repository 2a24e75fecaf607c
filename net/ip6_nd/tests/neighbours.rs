//! Neighbours of IPv6: which questions are sent, which are answered, what is believed, which neighbours are still
//! there.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use crate::common;

use std::net::Ipv6Addr;
use std::time::Duration;

use common::*;
use shoal_adj::Adjacencies;
use shoal_fib::{Fib, FibIndex, Path, Source};
use shoal_ip6::Ip6;
use shoal_ip6_nd::{Nd, Neighbours, Proxy};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_neighbor::{NewLimits, Role, State};
use shoal_testkit::{PEER_MAC, Port, Rng, Router};
use shoal_wire::ip6_address::{ALL_NODES, solicited_node};
use shoal_wire::nd::{HOP_LIMIT, NaFlags, NeighborAdvertisement, NeighborSolicitation};
use shoal_wire::{IpPrefix, MacAddress, Packet, icmp6};

const OTHER_MAC: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 9]);
const STRANGER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 0, 0, 0, 0, 1);
const ANSWER: NaFlags = NaFlags(0x60);

fn state(router: &Router, port: &Port) -> Option<State> {
    router.get::<Neighbours>().state((port.index(), PEER))
}

/// A router that knows PEER because PEER answered.
fn resolved() -> (Router, Port) {
    let (mut router, port) = router();
    forward(&mut router, &port, PEER);
    hear(&mut router, ADVERTISEMENT, &port, &na(PEER_MAC, PEER, US, ANSWER));
    port.received();
    assert_eq!(state(&router, &port), Some(State::Reachable));
    (router, port)
}

#[test]
fn answers_a_solicitation_for_its_address_and_learns_who_asked() {
    let (mut router, port) = router();
    hear(&mut router, SOLICITATION, &port, &ns(PEER_MAC, PEER, US));
    let frame = port.received_one();
    let (ethernet, ip, bytes) = open(&frame);
    assert_eq!((ethernet.src(), ethernet.dst()), (port.mac(), PEER_MAC));
    assert_eq!((ip.src(), ip.dst()), (US, PEER));
    assert!(icmp6::verify(US, PEER, bytes));
    let (na, options) = NeighborAdvertisement::check(&ip, bytes).unwrap();
    let flags = NaFlags::ROUTER | NaFlags::SOLICITED | NaFlags::OVERRIDE;
    assert_eq!((na.target(), na.flags()), (US, flags));
    assert_eq!(options.target_link_layer(), Some(port.mac()));
    // RFC 4861 7.2.3: it is there, but nothing proves that we reach it.
    assert_eq!((knows(&router, &port, PEER), state(&router, &port)), (Some(PEER_MAC), Some(State::Stale)));
    assert_eq!(router.if_counter("/net/ip6-nd/rx/requests", port.index()), 1);
    assert_eq!(router.if_counter("/net/ip6-nd/tx/replies", port.index()), 1);
}

#[test]
fn on_a_link_of_a_program_nothing_waits_and_no_neighbour_is_doubted() {
    let (mut router, port) = router();
    router.interfaces().set_fed(port.index());
    // Solicitations, and packets to PEER; routers have other things to say, too.
    let sent = || {
        let all = port.received();
        let asked = all.iter().filter(|f| f[20] == 58 && f[54] == 135).count();
        (asked, all.iter().filter(|f| f[..6] == PEER_MAC.0).count())
    };
    forward(&mut router, &port, PEER);
    assert_eq!((router.get::<Neighbours>().held(), router.buffers_in_use()), (0, 0));
    assert_eq!(sent(), (1, 0));
    router.advance(Duration::from_secs(10));
    assert_eq!(sent(), (0, 0), "it is asked once");
    forward(&mut router, &port, PEER);
    hear(&mut router, ADVERTISEMENT, &port, &na(PEER_MAC, PEER, US, ANSWER));
    assert_eq!(sent(), (1, 0));
    router.advance(Duration::from_mins(10));
    forward(&mut router, &port, PEER);
    router.advance(Duration::from_mins(10));
    assert_eq!(sent(), (0, 1));
    assert_eq!(knows(&router, &port, PEER), Some(PEER_MAC));
}

/// A host with an address of the router, behind an interface that borrows it.
#[test]
fn everybody_is_answered_for_where_hosts_use_the_routers_address() {
    let (mut router, up) = router();
    let down = router.pg(5);
    let ip6 = router.get::<Ip6>();
    ip6.set_unnumbered(down.index(), Some(up.index())).unwrap();
    router.advance(Duration::from_secs(3));
    let nd = router.get::<Nd>();
    let asks = |router: &mut Router, from| {
        down.received();
        router.send(&down, ns(PEER_MAC, from, PEER));
        down.received().iter().filter(|f| f[54] == 136).count()
    };
    assert_eq!(asks(&mut router, US), 0);
    nd.set_mirror(down.index(), Proxy::Answer).unwrap();
    assert_eq!(asks(&mut router, US), 1);
    assert_eq!(knows(&router, &down, US), Some(PEER_MAC), "it is the host that has the address there");
    // By unicast it asks whether the neighbour is still there.
    let from = "fe80::77".parse().unwrap();
    let bytes =
        message(from, PEER, |out| NeighborSolicitation::new(PEER).write(out).source_link_layer(PEER_MAC));
    let unicast = frame((PEER_MAC, down.mac()), (from, PEER), HOP_LIMIT, &bytes);
    up.received();
    down.received();
    router.send(&down, unicast.clone());
    assert!(down.received().is_empty());
    assert_eq!(open(&up.received_one()).1.dst(), solicited_node(PEER), "the other link is asked");
    let neighbours = router.get::<Neighbours>();
    neighbours.set((up.index(), PEER), PEER_MAC, Origin::Static, FibEntry::Wanted).unwrap();
    router.send(&down, unicast);
    assert_eq!(down.received().iter().filter(|f| f[54] == 136).count(), 1);
    nd.set_mirror(down.index(), Proxy::Ignore).unwrap();
    assert_eq!(asks(&mut router, US), 0);
    router.advance(Duration::from_secs(10));
}

#[test]
fn the_first_packet_waits_and_leaves_when_its_neighbour_answers() {
    let (mut router, port) = router();
    forward(&mut router, &port, PEER);
    let frame = port.received_one();
    let (ethernet, ip, bytes) = open(&frame);
    let group = solicited_node(PEER);
    assert_eq!((ethernet.dst(), ip.dst()), (MacAddress::for_ip6_multicast(group), group));
    let (asked, options) = NeighborSolicitation::check(&ip, bytes).unwrap();
    // As VPP: from the link-local address.
    let ours = router.get::<Ip6>().link_local(port.index()).unwrap();
    assert_eq!((asked.target(), ip.src(), options.source_link_layer()), (PEER, ours, Some(port.mac())));
    assert!(icmp6::verify(ours, group, bytes));
    assert_eq!((router.get::<Neighbours>().held(), router.buffers_in_use()), (1, 1));
    hear(&mut router, ADVERTISEMENT, &port, &na(PEER_MAC, PEER, US, ANSWER));
    assert_eq!(port.received_one()[..6], PEER_MAC.0);
    forward(&mut router, &port, PEER);
    assert_eq!(port.received_one()[..6], PEER_MAC.0);
    assert_eq!(router.if_counter("/net/ip6-nd/held/sent", port.index()), 1);
    assert_eq!(router.if_counter("/net/ip6-nd/rx/replies", port.index()), 1);
    hear(&mut router, ADVERTISEMENT, &port, &na(PEER_MAC, PEER, US, NaFlags::OVERRIDE));
    assert_eq!(router.if_counter("/net/ip6-nd/rx/gratuitous", port.index()), 1);
}

#[test]
fn a_frame_finds_its_way_from_the_wire_to_the_answer() {
    let (mut router, port) = router();
    router.send(&port, ns(PEER_MAC, PEER, US));
    assert_eq!(port.received_one()[54], 136);
    forward(&mut router, &port, PEER);
    port.received();
    let from_afar = {
        let mut frame = ns(PEER_MAC, PEER, US);
        frame[21] = 64;
        frame
    };
    router.send(&port, from_afar);
    assert!(port.received().is_empty());
    // A link-local neighbour is found on its link.
    let peer: Ipv6Addr = "fe80::2".parse().unwrap();
    router.send(&port, ns(PEER_MAC, peer, US));
    assert_eq!(knows(&router, &port, peer), Some(PEER_MAC));
    assert_eq!(open(&port.received_one()).1.dst(), peer);
}

#[test]
fn a_silent_neighbour_is_asked_three_times() {
    let (mut router, port) = router();
    forward(&mut router, &port, PEER);
    router.advance(Duration::from_secs(5));
    assert_eq!(port.received().len(), 3);
    assert_eq!(router.error("ip6-discover-failed", "neighbour did not answer solicitations"), 1);
    assert_eq!(router.buffers_in_use(), 0);
}

#[test]
fn an_unsolicited_advertisement_makes_no_entry() {
    let (mut router, port) = router();
    hear(&mut router, ADVERTISEMENT, &port, &na(PEER_MAC, PEER, ALL_NODES, NaFlags::OVERRIDE));
    hear(&mut router, ADVERTISEMENT, &port, &na(PEER_MAC, PEER, US, ANSWER));
    assert_eq!(knows(&router, &port, PEER), None);
    assert!(port.received().is_empty());
}

#[test]
fn a_confirmed_neighbour_grows_stale_and_is_probed_only_when_used() {
    let (mut router, port) = resolved();
    router.advance(Duration::from_secs(14));
    assert_eq!(state(&router, &port), Some(State::Reachable), "at least half of 30 seconds");
    router.advance(Duration::from_secs(32));
    assert_eq!(state(&router, &port), Some(State::Stale));
    router.advance(Duration::from_hours(1));
    let probes = port.received().into_iter().filter(|f| f[54] == 135).count();
    assert_eq!((state(&router, &port), probes), (Some(State::Stale), 0));
    // The first packet is neither lost nor held.
    forward(&mut router, &port, PEER);
    assert_eq!(port.received_one()[..6], PEER_MAC.0);
    assert_eq!((state(&router, &port), router.get::<Neighbours>().held()), (Some(State::Delay), 0));
    router.advance(Duration::from_millis(5100));
    assert_eq!(state(&router, &port), Some(State::Probe));
    let probes: Vec<_> = port.received().into_iter().filter(|f| f[54] == 135).collect();
    let (ethernet, ip, _) = open(&probes[0]);
    assert_eq!((probes.len(), ethernet.dst(), ip.dst()), (1, PEER_MAC, PEER), "to the neighbour itself");
    hear(&mut router, ADVERTISEMENT, &port, &na(PEER_MAC, PEER, US, ANSWER));
    assert_eq!(state(&router, &port), Some(State::Reachable));
    assert!(router.get::<Adjacencies>().check().is_empty());
}

/// What hosts of this route are sent to: IPv4 packets, to an IPv6 next hop (RFC 8950).
fn forward4(router: &mut Router, port: &Port) {
    let from = router.interfaces().by_name("pg1").unwrap();
    let packet = Packet::ethernet(PEER_MAC, port.mac()).ip4([192, 0, 2, 9], [198, 51, 100, 1]).udp(1, 7);
    put(router, "ip4-lookup", from, &packet.build(), 14);
    router.run();
}

fn ip4_packets(port: &Port) -> Vec<Vec<u8>> {
    port.received().into_iter().filter(|f| f[12..14] == [8, 0]).collect()
}

#[test]
fn ip4_packets_to_an_ip6_next_hop_find_it_and_find_out_when_it_has_gone() {
    let (mut router, port) = router();
    let prefix: IpPrefix = "198.51.100.0/24".parse().unwrap();
    let path = Path::next_hop(PEER, port.index());
    router.get::<Fib>().add(FibIndex(0), prefix, Source::Cli, &[path]).unwrap();
    // It is not known yet: the packet waits, the link is asked by neighbour discovery.
    forward4(&mut router, &port);
    let asked: Vec<_> = port.received().into_iter().filter(|f| f[12..14] == [0x86, 0xdd]).collect();
    assert_eq!((asked.len(), asked[0][54]), (1, 135));
    hear(&mut router, ADVERTISEMENT, &port, &na(PEER_MAC, PEER, US, ANSWER));
    assert_eq!(ip4_packets(&port).len(), 1);
    // It grows stale; IPv4 packets alone are use enough for it to be probed, and none is lost.
    router.advance(Duration::from_secs(46));
    assert_eq!(state(&router, &port), Some(State::Stale));
    forward4(&mut router, &port);
    let packets = ip4_packets(&port);
    assert_eq!((packets.len(), &packets[0][..6]), (1, &PEER_MAC.0[..]));
    assert_eq!(state(&router, &port), Some(State::Delay));
    router.advance(Duration::from_millis(5100));
    assert_eq!(state(&router, &port), Some(State::Probe));
    let probes: Vec<_> = port.received().into_iter().filter(|f| f[54] == 135).collect();
    assert_eq!((probes.len(), &probes[0][..6]), (1, &PEER_MAC.0[..]), "to the neighbour itself");
    // Without an answer it is gone, and the next packet looks for it again.
    router.advance(Duration::from_secs(4));
    assert_eq!(knows(&router, &port, PEER), None);
    port.received();
    forward4(&mut router, &port);
    assert!(ip4_packets(&port).is_empty());
    router.advance(Duration::from_secs(5));
    port.received();
    assert!(router.get::<Adjacencies>().check().is_empty());
    assert_eq!(router.get::<Fib>().check(), Vec::<String>::new());
}

#[test]
fn a_neighbour_that_left_is_forgotten_after_three_probes() {
    let (mut router, port) = resolved();
    router.advance(Duration::from_secs(46));
    forward(&mut router, &port, PEER);
    router.advance(Duration::from_secs(9));
    let probes = port.received().into_iter().filter(|f| f[54] == 135).count();
    assert_eq!((probes, knows(&router, &port, PEER)), (3, None));
    forward(&mut router, &port, PEER);
    assert_eq!(router.get::<Neighbours>().held(), 1, "it is looked for again");
    router.advance(Duration::from_secs(5));
    assert!(router.get::<Adjacencies>().check().is_empty());
}

#[test]
fn a_stale_neighbours_packets_follow_changes_of_the_interface() {
    let (mut router, port) = resolved();
    router.advance(Duration::from_secs(46));
    port.received();
    let mac = MacAddress([2, 9, 9, 9, 9, 9]);
    router.interfaces().set_mac(port.index(), mac).unwrap();
    forward(&mut router, &port, PEER);
    // The link-local address is another one now, so the advertisement is longer.
    let packet = port.received().into_iter().find(|f| f[..6] == PEER_MAC.0);
    assert_eq!(packet.unwrap()[6..12], mac.0);
}

#[test]
fn override_and_router_flags_do_what_they_say() {
    let (mut router, port) = resolved();
    // Without override another address only raises doubt.
    hear(&mut router, ADVERTISEMENT, &port, &na(OTHER_MAC, PEER, ALL_NODES, NaFlags::ROUTER));
    assert_eq!((knows(&router, &port, PEER), state(&router, &port)), (Some(PEER_MAC), Some(State::Stale)));
    hear(
        &mut router,
        ADVERTISEMENT,
        &port,
        &na(OTHER_MAC, PEER, ALL_NODES, NaFlags::OVERRIDE | NaFlags::ROUTER),
    );
    assert_eq!((knows(&router, &port, PEER), state(&router, &port)), (Some(OTHER_MAC), Some(State::Stale)));
    assert_eq!(router.get::<Neighbours>().role((port.index(), PEER)), Role::Router);
    // No station confirms itself: it was not asked for.
    hear(&mut router, ADVERTISEMENT, &port, &na(OTHER_MAC, PEER, US, ANSWER));
    assert_eq!(state(&router, &port), Some(State::Stale));
}

#[test]
fn a_static_neighbour_is_never_changed() {
    let (mut router, port) = router();
    let neighbours = router.get::<Neighbours>();
    neighbours.set((port.index(), PEER), PEER_MAC, Origin::Static, FibEntry::Wanted).unwrap();
    hear(&mut router, SOLICITATION, &port, &ns(OTHER_MAC, PEER, US));
    hear(&mut router, ADVERTISEMENT, &port, &na(OTHER_MAC, PEER, US, ANSWER));
    router.advance(Duration::from_mins(2));
    port.received();
    assert_eq!((knows(&router, &port, PEER), state(&router, &port)), (Some(PEER_MAC), None));
    forward(&mut router, &port, PEER);
    assert_eq!(port.received_one()[..6], PEER_MAC.0);
}

#[test]
fn strangers_are_neither_answered_nor_learnt() {
    let (mut router, port) = router();
    hear(&mut router, SOLICITATION, &port, &ns(PEER_MAC, STRANGER, US));
    assert_eq!(router.error(SOLICITATION, "neighbor_solicitation_source_not_on_link"), 1);
    hear(&mut router, SOLICITATION, &port, &ns(PEER_MAC, PEER, STRANGER));
    assert_eq!(router.error(SOLICITATION, "neighbor_solicitation_source_unknown"), 1);
    hear(&mut router, SOLICITATION, &port, &ns(PEER_MAC, US, US));
    assert_eq!(router.error(SOLICITATION, "source_is_local"), 1);
    hear(&mut router, ADVERTISEMENT, &port, &na(PEER_MAC, STRANGER, US, ANSWER));
    assert_eq!(router.error(ADVERTISEMENT, "target_elsewhere"), 1);
    assert!(port.received().is_empty() && router.get::<Neighbours>().list().is_empty());
}

#[test]
fn what_was_routed_or_forged_is_refused() {
    let (mut router, port) = router();
    // RFC 4861 7.1.1, 7.1.2: only from this link.
    let mut routed = ns(PEER_MAC, PEER, US);
    routed[21] = HOP_LIMIT - 1;
    hear(&mut router, SOLICITATION, &port, &routed);
    assert_eq!(router.error(SOLICITATION, "hop_limit"), 1);
    let mut routed = na(PEER_MAC, PEER, US, ANSWER);
    routed[21] = 64;
    hear(&mut router, ADVERTISEMENT, &port, &routed);
    assert_eq!(router.error(ADVERTISEMENT, "hop_limit"), 1);
    // A group's link-layer address, and none at all.
    for (mac, counter) in [([1, 0, 0x5e, 0, 0, 1], "options"), ([0; 6], "options")] {
        let before = router.error(SOLICITATION, counter);
        let mut forged = ns(PEER_MAC, PEER, US);
        forged[80..86].copy_from_slice(&mac);
        hear(&mut router, SOLICITATION, &port, &forged);
        assert_eq!(router.error(SOLICITATION, counter), before + 1);
    }
    let mut endless = ns(PEER_MAC, PEER, US);
    endless[79] = 0;
    hear(&mut router, SOLICITATION, &port, &endless);
    assert_eq!(router.error(SOLICITATION, "options"), 3);
    assert!(port.received().is_empty() && router.get::<Neighbours>().list().is_empty());
}

#[test]
fn a_station_may_speak_from_another_address_than_it_names() {
    // Bonds and virtual routers do, and RFC 4861 does not forbid it. The answer goes where the frame came from.
    let (mut router, port) = router();
    let mut asked = ns(PEER_MAC, PEER, US);
    asked[6..12].copy_from_slice(&OTHER_MAC.0);
    router.send(&port, &asked);
    assert_eq!(port.received_one()[..6], OTHER_MAC.0);
    let known = router.get::<Neighbours>().get((port.index(), PEER));
    assert_eq!(known.map(|n| n.mac), Some(PEER_MAC));
}

#[test]
fn a_flood_of_stations_stops_at_the_limit() {
    let (mut router, port) = router();
    let neighbours = router.get::<Neighbours>();
    neighbours.set_limits(NewLimits { entries: Some(10), ..NewLimits::default() });
    let station = |n: u128| Ipv6Addr::from_bits(PEER.to_bits() + n);
    for n in 0..500 {
        put(&mut router, SOLICITATION, port.index(), &ns(PEER_MAC, station(n), US), 14);
    }
    router.run();
    assert_eq!(neighbours.list().len(), 10);
    assert_eq!(router.if_counter("/net/ip6-nd/refused", port.index()), 490);
    assert_eq!(port.received().len(), 500, "they are answered all the same");
}

#[test]
fn a_scan_of_the_network_holds_no_more_than_its_share_of_buffers() {
    let (mut router, port) = router();
    let from = router.interfaces().by_name("pg1").unwrap();
    for chunk in 0..15u128 {
        for n in 0..200 {
            let src = "2001:db8:9::9".parse().unwrap();
            let dst = Ipv6Addr::from_bits(PEER.to_bits() + chunk * 200 + n);
            let bytes = frame((PEER_MAC, port.mac()), (src, dst), 64, &[0; 20]);
            put(&mut router, "ip6-lookup", from, &bytes, 14);
        }
        router.run();
    }
    let held = router.get::<Neighbours>().held();
    assert!(held <= 1024 && held > 500, "{held}");
    assert!(port.received().len() <= 1024);
    router.advance(Duration::from_secs(10));
    assert_eq!(router.get::<Neighbours>().held(), 0);
}

#[test]
fn going_down_forgets_what_was_learnt_and_keeps_what_was_said() {
    let (mut router, port) = resolved();
    let fixed = Ipv6Addr::from_bits(PEER.to_bits() + 7);
    let neighbours = router.get::<Neighbours>();
    neighbours.set((port.index(), fixed), PEER_MAC, Origin::Static, FibEntry::Wanted).unwrap();
    router.interfaces().set_admin(port.index(), false).unwrap();
    router.run();
    assert_eq!((knows(&router, &port, PEER), knows(&router, &port, fixed)), (None, Some(PEER_MAC)));
    router.interfaces().delete(port.index()).unwrap();
    router.run();
    assert!(neighbours.list().is_empty() && router.get::<Nd>().addresses().is_empty());
    assert!(router.get::<Adjacencies>().check().is_empty());
}

#[test]
fn neighbours_leave_with_their_network() {
    let (router, port) = resolved();
    router.get::<Ip6>().del_all(port.index()).unwrap();
    assert_eq!(knows(&router, &port, PEER), None);
}

#[test]
fn a_proxy_answers_for_others_without_override() {
    let (mut router, port) = router();
    let (nd, far) = (router.get::<Nd>(), Ipv6Addr::from_bits(US.to_bits() + 0x99));
    nd.set_proxy(port.index(), far, Proxy::Answer).unwrap();
    router.run();
    port.received();
    hear(&mut router, SOLICITATION, &port, &ns(PEER_MAC, PEER, far));
    let frame = port.received_one();
    let (_, ip, bytes) = open(&frame);
    let (na, options) = NeighborAdvertisement::check(&ip, bytes).unwrap();
    assert_eq!((na.target(), na.flags()), (far, NaFlags::ROUTER | NaFlags::SOLICITED));
    assert_eq!(options.target_link_layer(), Some(port.mac()));
    nd.set_proxy(port.index(), far, Proxy::Ignore).unwrap();
    hear(&mut router, SOLICITATION, &port, &ns(PEER_MAC, PEER, far));
    assert_eq!(router.error(SOLICITATION, "neighbor_solicitation_source_unknown"), 1);
    assert!(nd.set_proxy(port.index(), far, Proxy::Ignore).is_err());
}

#[test]
fn drops_messages_cut_at_every_length() {
    let (mut router, port) = router();
    for whole in [ns(PEER_MAC, PEER, US), na(PEER_MAC, PEER, US, ANSWER)] {
        let node = if whole[54] == 135 { SOLICITATION } else { ADVERTISEMENT };
        for len in 54..whole.len() {
            hear(&mut router, node, &port, &whole[..len]);
        }
        assert_eq!(router.error(node, "too_short"), 32);
    }
    assert!(port.received().is_empty() && router.get::<Neighbours>().list().is_empty());
}

#[test]
fn rubbish_harms_no_node() {
    let (mut router, port) = router();
    let mut rng = Rng::new(Rng::seed(3));
    let nodes = shoal_ip6_nd::MESSAGES.iter().map(|(_, node)| *node);
    for node in nodes.chain(["ip6-discover-neighbor", "ip6-glean", "ip6-discover-failed"]) {
        for n in 0..400 {
            let mut bytes = ns(PEER_MAC, PEER, US);
            bytes.truncate(rng.below(87));
            if n % 2 == 0 {
                bytes = rng.bytes(bytes.len());
            } else if let Some(byte) = bytes.get_mut(60) {
                *byte = rng.below(256) as u8;
            }
            put(&mut router, node, port.index(), &bytes, rng.below(60));
            router.run();
        }
    }
    port.received();
    hear(&mut router, SOLICITATION, &port, &ns(PEER_MAC, PEER, US));
    assert!(port.received().iter().any(|f| f[..6] == PEER_MAC.0));
    router.advance(Duration::from_secs(5));
}
