//! Next hops that fall silent on a link that stays up: who notices, what routes do, how they come back.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use std::net::Ipv4Addr;
use std::time::Duration;

use shoal_adj::Adjacencies;
use shoal_arp::table::{FibEntry, Origin};
use shoal_arp::{Flush, Neighbours, NewLimits};
use shoal_fib::{Fib, FibIndex, Path, Source};
use shoal_testkit::{Port, Router, STACK, US};
use shoal_wire::{ArpHeader, ArpOpcode, EtherType, EthernetHeader, FromBytes, IpPrefix, MacAddress, Packet};

const HOPS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3)];

fn mac(n: usize) -> MacAddress {
    MacAddress([2, 0xaa, 0, 0, 0, n as u8 + 2])
}

/// A router with a route over both next hops on pg0, for packets from pg1. Both are known: they asked for us.
fn shared(resilient: bool) -> (Router, Port, Port) {
    let mut router = Router::new(STACK);
    let (left, right) = (router.pg(0), router.pg(1));
    router.set_address(&left, "10.0.0.1/24");
    router.set_address(&right, "10.0.1.1/24");
    let paths = HOPS.map(|hop| Path::next_hop(hop, left.index()));
    let paths = if resilient { paths.map(Path::resilient) } else { paths };
    let prefix: IpPrefix = "198.51.100.0/24".parse().unwrap();
    router.get::<Fib>().add(FibIndex(0), prefix, Source::Cli, &paths).unwrap();
    for (n, hop) in HOPS.into_iter().enumerate() {
        router.send(&left, Packet::arp_request(mac(n), hop, US).build());
    }
    left.received();
    (router, left, right)
}

/// Which next hop each of 64 flows takes now; `None` for what does not come out.
fn flows(router: &mut Router, left: &Port, right: &Port) -> Vec<Option<usize>> {
    let one = |port: u16| {
        let packet = Packet::ethernet([2, 0xbb, 0, 0, 0, 1], right.mac());
        packet.ip4([10, 0, 1, 9], [198, 51, 100, 1]).udp(1000 + port, 7).payload_len(8).build()
    };
    let mut ways = Vec::new();
    for port in 0..64 {
        router.send(right, one(port));
        let to = left.received().into_iter().find(|f| f[12..14] == EtherType::IP4.0.to_be_bytes());
        ways.push(to.and_then(|f| (0..HOPS.len()).find(|n| f[..6] == mac(*n).0)));
    }
    ways
}

/// Lets time pass while the stations that are alive answer requests and packets flow to all.
fn live(router: &mut Router, left: &Port, right: &Port, alive: &[usize], seconds: u32) {
    for _ in 0..seconds * 2 {
        router.advance(Duration::from_millis(500));
        let asked = left.received();
        for frame in asked.iter().filter(|f| f[12..14] == EtherType::ARP.0.to_be_bytes()) {
            let (_, rest) = EthernetHeader::read_from_prefix(frame).unwrap();
            let (arp, _) = ArpHeader::read_from_prefix(rest).unwrap();
            let who = alive.iter().find(|n| HOPS[**n] == arp.target_ip4());
            if let Some(n) = who.filter(|_| arp.opcode() == ArpOpcode::REQUEST) {
                router.send(left, Packet::arp_reply(mac(*n), HOPS[*n], left.mac(), US).build());
            }
        }
        let packet = |port: u16| {
            let packet = Packet::ethernet([2, 0xbb, 0, 0, 0, 1], right.mac());
            packet.ip4([10, 0, 1, 9], [198, 51, 100, 1]).udp(1000 + port, 7).build()
        };
        router.send_all(right, (0..16).map(packet));
    }
    left.received();
}

fn dead(router: &Router, port: &Port, n: usize) -> bool {
    router.get::<Neighbours>().is_dead((port.index(), HOPS[n]))
}

#[test]
fn a_neighbour_that_is_used_is_asked_and_no_packet_is_lost() {
    let (mut router, left, right) = shared(false);
    for _ in 0..6 {
        live(&mut router, &left, &right, &[0, 1], 20);
        assert!(flows(&mut router, &left, &right).iter().all(Option::is_some));
    }
    assert!(router.error("ip4-arp", "packets to neighbours not heard of lately") > 0);
    assert!(!dead(&router, &left, 0) && !dead(&router, &left, 1));
    assert!(router.get::<Adjacencies>().check().is_empty());
}

#[test]
fn a_neighbour_without_traffic_is_left_alone() {
    let (mut router, left, _) = shared(false);
    router.advance(Duration::from_hours(3));
    assert!(left.received().is_empty());
    assert_eq!(router.get::<Neighbours>().list().len(), 2);
}

#[test]
fn a_dead_next_hop_loses_its_share_and_gets_it_back() {
    let (mut router, left, right) = shared(false);
    let before = flows(&mut router, &left, &right);
    assert!((0..2).all(|n| before.contains(&Some(n))));
    live(&mut router, &left, &right, &[0], 60);
    assert!(dead(&router, &left, 1) && !dead(&router, &left, 0));
    assert!(flows(&mut router, &left, &right).iter().all(|way| *way == Some(0)));
    let events = router.graph().events().last(20);
    assert!(events.iter().any(|e| e.text.contains("10.0.0.3 does not answer")), "{events:?}");
    // Entries do not age here, so it is still known; and it is asked for although nothing is sent to it.
    assert_eq!(router.get::<Neighbours>().list().len(), 2);
    live(&mut router, &left, &right, &[0, 1], 7);
    assert!(!dead(&router, &left, 1));
    assert_eq!(flows(&mut router, &left, &right), before);
    assert!(router.get::<Adjacencies>().check().is_empty());
    assert_eq!(router.get::<Fib>().check(), Vec::<String>::new());
}

#[test]
fn where_entries_age_a_dead_neighbour_is_forgotten_as_well() {
    let (mut router, left, right) = shared(false);
    let age = Some(Duration::from_secs(20));
    router.get::<Neighbours>().set_limits(NewLimits { age, ..NewLimits::default() });
    live(&mut router, &left, &right, &[0], 60);
    assert!(dead(&router, &left, 1));
    assert!(router.get::<Neighbours>().get((left.index(), HOPS[1])).is_none());
    assert!(flows(&mut router, &left, &right).iter().all(|way| *way == Some(0)));
    // It comes back with another station: whatever it says by itself counts.
    router.send(&left, Packet::arp_gratuitous(mac(1), HOPS[1]).build());
    assert!(!dead(&router, &left, 1));
    assert!(flows(&mut router, &left, &right).contains(&Some(1)));
}

#[test]
fn only_the_failed_share_moves_when_the_route_is_resilient() {
    let (mut router, left, right) = shared(true);
    let before = flows(&mut router, &left, &right);
    live(&mut router, &left, &right, &[1], 60);
    let after = flows(&mut router, &left, &right);
    assert!(after.iter().all(|way| *way == Some(1)));
    live(&mut router, &left, &right, &[0, 1], 7);
    assert_eq!(flows(&mut router, &left, &right), before);
}

#[test]
fn a_next_hop_that_never_answered_is_tried_before_it_is_avoided() {
    let (mut router, left, right) = shared(false);
    router.get::<Neighbours>().flush(None, Flush::Dynamic);
    live(&mut router, &left, &right, &[0], 1);
    assert!(!dead(&router, &left, 1), "it may still answer");
    live(&mut router, &left, &right, &[0], 4);
    assert!(dead(&router, &left, 1));
    assert!(flows(&mut router, &left, &right).iter().all(|way| *way == Some(0)));
    // An operator who wants it to be tried again flushes it.
    router.get::<Neighbours>().flush(None, Flush::Dynamic);
    assert!(!dead(&router, &left, 1));
    router.advance(Duration::from_secs(5));
    left.received();
}

#[test]
fn when_all_are_dead_they_are_tried_all_the_same() {
    let (mut router, left, right) = shared(false);
    live(&mut router, &left, &right, &[], 60);
    assert!(dead(&router, &left, 0) && dead(&router, &left, 1));
    assert!(flows(&mut router, &left, &right).iter().all(Option::is_some), "to where they were last");
    live(&mut router, &left, &right, &[1], 7);
    assert!(flows(&mut router, &left, &right).iter().all(|way| *way == Some(1)));
}

#[test]
fn what_the_operator_entered_is_never_doubted() {
    for origin in [Origin::Static, Origin::Dynamic] {
        let (mut router, left, right) = shared(false);
        let neighbours = router.get::<Neighbours>();
        for (n, hop) in HOPS.into_iter().enumerate() {
            neighbours.set((left.index(), hop), mac(n), origin, FibEntry::Wanted).unwrap();
        }
        let before = flows(&mut router, &left, &right);
        live(&mut router, &left, &right, &[], 120);
        assert_eq!(flows(&mut router, &left, &right), before);
        assert!(left.received().is_empty());
    }
}

#[test]
fn a_static_entry_ends_the_search() {
    let (mut router, left, right) = shared(false);
    live(&mut router, &left, &right, &[0], 60);
    assert!(dead(&router, &left, 1));
    let key = (left.index(), HOPS[1]);
    router.get::<Neighbours>().set(key, mac(1), Origin::Static, FibEntry::Wanted).unwrap();
    assert!(!dead(&router, &left, 1));
    live(&mut router, &left, &right, &[0], 120);
    assert!(flows(&mut router, &left, &right).contains(&Some(1)));
}

#[test]
fn no_neighbour_is_asked_for_when_no_route_is_left() {
    let (mut router, left, right) = shared(false);
    live(&mut router, &left, &right, &[0], 60);
    assert!(dead(&router, &left, 1));
    let prefix: IpPrefix = "198.51.100.0/24".parse().unwrap();
    router.get::<Fib>().remove(FibIndex(0), prefix, Source::Cli).unwrap();
    router.advance(Duration::from_secs(10));
    assert!(!dead(&router, &left, 1));
    left.received();
    router.advance(Duration::from_mins(10));
    assert!(left.received().is_empty());
}

#[test]
fn an_interface_that_went_down_tries_all_when_it_is_back() {
    let (mut router, left, right) = shared(false);
    live(&mut router, &left, &right, &[0], 60);
    assert!(dead(&router, &left, 1));
    router.interfaces().set_admin(left.index(), false).unwrap();
    router.run();
    assert!(!dead(&router, &left, 1));
    router.interfaces().set_admin(left.index(), true).unwrap();
    router.advance(Duration::from_secs(1));
    live(&mut router, &left, &right, &[0, 1], 5);
    let ways = flows(&mut router, &left, &right);
    assert!((0..2).all(|n| ways.contains(&Some(n))), "{ways:?}");
}

#[test]
fn made_up_stations_do_not_keep_out_one_that_answers() {
    let (mut router, left, right) = shared(false);
    let neighbours = router.get::<Neighbours>();
    neighbours.set_limits(NewLimits { entries: Some(20), ..NewLimits::default() });
    // A flood of requests from stations that are not there.
    let made_up = |n: u8| {
        let mac = MacAddress([2, 0xee, 0, 0, 0, n]);
        Packet::arp_request(mac, Ipv4Addr::new(10, 0, 0, n), US).build()
    };
    router.send_all(&left, (10..250).map(made_up));
    assert_eq!(neighbours.list().len(), 20);
    left.received();
    // One that answers a question of ours is let in nevertheless.
    let host = Ipv4Addr::new(10, 0, 0, 254);
    let packet = Packet::ethernet([2, 0xbb, 0, 0, 0, 1], right.mac()).ip4([10, 0, 1, 9], host).udp(1, 7);
    router.send(&right, packet.build());
    let before = left.received().len();
    router.send(&left, Packet::arp_reply(mac(99), host, left.mac(), US).build());
    assert_eq!((before, left.received().len()), (1, 1));
    assert_eq!(neighbours.list().len(), 20);
    assert_eq!(neighbours.get((left.index(), host)).map(|n| n.mac), Some(mac(99)));
}
