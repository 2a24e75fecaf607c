//! Loopbacks under the whole IPv4 stack: whatever is sent on one comes back, and must come to an end.
#![allow(clippy::unwrap_used)]

use shoal_arp::Neighbours;
use shoal_arp::table::{FibEntry, Origin};
use shoal_interface::SwIfIndex;
use shoal_ip4::Ip4;
use shoal_testkit::{PacketBuilder, Port, Router};
use shoal_wire::MacAddress;

/// A router with `pg0` 10.0.0.1/24 and `loop0` 10.9.0.1/24.
fn router() -> (Router, Port, SwIfIndex) {
    let mut router = Router::new(&[
        &shoal_adj::MODULE,
        &shoal_fib::MODULE,
        &shoal_ethernet::MODULE,
        &shoal_ip4::MODULE,
        &shoal_ip6::MODULE,
        &shoal_icmp::MODULE,
        &shoal_arp::MODULE,
    ]);
    let pg = router.pg(0);
    let interfaces = router.interfaces();
    let index = interfaces.create_loopback(None, None).unwrap();
    interfaces.set_admin(index, true).unwrap();
    let ip4 = router.get::<Ip4>();
    ip4.add_address(pg.index(), "10.0.0.1/24".parse().unwrap()).unwrap();
    ip4.add_address(index, "10.9.0.1/24".parse().unwrap()).unwrap();
    router.run();
    (router, pg, index)
}

fn packet(pg: &Port, ttl: u8) -> Vec<u8> {
    let host = MacAddress([2, 0, 0, 0, 0, 9]);
    PacketBuilder::ethernet(host, pg.mac()).ip4([10, 0, 0, 9], [10, 9, 0, 77]).ttl(ttl).udp(1, 2).build()
}

#[test]
fn an_arp_request_on_a_loopback_comes_back_once_and_starts_nothing() {
    let (mut router, pg, loopback) = router();
    let before = router.if_counter("/if/rx", loopback);
    router.send(&pg, packet(&pg, 64));
    let asked = router.if_counter("/if/tx", loopback);
    assert_eq!(router.if_counter("/if/rx", loopback), asked, "all that was sent came back");
    assert!((before + 1..=before + 2).contains(&asked), "one request, not a storm: {asked}");
    router.advance(std::time::Duration::from_secs(30));
    assert!(router.if_counter("/if/tx", loopback) < 20, "asked again a few times, then given up");
    assert_eq!(router.buffers_in_use(), 0);
}

#[test]
fn a_packet_to_the_loopbacks_own_address_at_a_neighbour_ends_by_its_ttl() {
    let (mut router, pg, loopback) = router();
    let mac = router.interfaces().data(loopback).unwrap().mac();
    let neighbour = (loopback, [10, 9, 0, 77].into());
    router.get::<Neighbours>().set(neighbour, mac, Origin::Static, FibEntry::Wanted).unwrap();
    let before = router.if_counter("/if/tx", loopback);
    router.send(&pg, packet(&pg, 64));
    let turns = router.if_counter("/if/tx", loopback) - before;
    assert!((1..=64).contains(&turns), "at most as often as its TTL lets it: {turns}");
    // The ICMP error waits for the sender's address until the requests time out.
    router.advance(std::time::Duration::from_secs(30));
    assert_eq!(router.buffers_in_use(), 0);
}
