//! Packets for one station, for groups and for everybody, counted apart where somebody asked for it.
#![allow(clippy::unwrap_used)]

use shoal_graph::counter::Kind;
use shoal_interface::{InterfaceError, SwIfIndex};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_testkit::{PacketBuilder, Port, Router};
use shoal_wire::MacAddress;

const HOST: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

/// A router with `pg0` 10.0.0.1/24 and 2001:db8::1/64.
fn router() -> (Router, Port) {
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
    router.get::<Ip4>().add_address(pg.index(), "10.0.0.1/24".parse().unwrap()).unwrap();
    router.get::<Ip6>().add_address(pg.index(), "2001:db8::1/64".parse().unwrap()).unwrap();
    router.run();
    pg.received();
    (router, pg)
}

fn counted(router: &Router, port: &Port, name: &str) -> (u64, u64) {
    let Some(Kind::Combined(counter)) = router.graph().counters().find(&format!("/if/{name}")) else {
        return (u64::MAX, 0);
    };
    counter.sum(port.index().0 as usize)
}

fn frames(pg: &Port) -> [Vec<u8>; 4] {
    let group = MacAddress([0x33, 0x33, 0, 0, 0, 1]);
    let dst4 = MacAddress([1, 0, 0x5e, 1, 1, 1]);
    [
        PacketBuilder::ethernet(HOST, pg.mac()).ip4([10, 0, 0, 9], [10, 0, 0, 77]).udp(1, 2).build(),
        PacketBuilder::ethernet(HOST, dst4).ip4([10, 0, 0, 9], [239, 1, 1, 1]).udp(1, 2).build(),
        PacketBuilder::ethernet(HOST, group)
            .ip6(
                "2001:db8::9".parse::<std::net::Ipv6Addr>().unwrap(),
                "ff02::1".parse::<std::net::Ipv6Addr>().unwrap(),
            )
            .udp(1, 2)
            .build(),
        PacketBuilder::ethernet(HOST, MacAddress::BROADCAST)
            .ip4([10, 0, 0, 9], [10, 0, 0, 255])
            .udp(1, 2)
            .build(),
    ]
}

#[test]
fn packets_are_counted_by_whom_they_are_for() {
    let (mut router, pg) = router();
    router.send_all(&pg, frames(&pg));
    assert_eq!(counted(&router, &pg, "rx-unicast"), (0, 0), "counting is off");
    router.interfaces().collect_detailed(pg.index(), true).unwrap();
    let before = counted(&router, &pg, "rx");
    let sent = frames(&pg);
    let bytes: Vec<u64> = sent.iter().map(|f| f.len() as u64).collect();
    router.send_all(&pg, sent);
    // The first one's next hop is asked for by everybody's address.
    router.advance(std::time::Duration::from_secs(2));
    assert_eq!(counted(&router, &pg, "rx-unicast"), (1, bytes[0]));
    assert_eq!(counted(&router, &pg, "rx-multicast"), (2, bytes[1] + bytes[2]));
    assert_eq!(counted(&router, &pg, "rx-broadcast"), (1, bytes[3]));
    assert_eq!(counted(&router, &pg, "rx").0, before.0 + 4, "the sum of all three is what came");
    assert!(counted(&router, &pg, "tx-broadcast").0 > 0);
    router.interfaces().clear_counters(&[pg.index()]).unwrap();
    assert_eq!(counted(&router, &pg, "rx-multicast"), (0, 0));
    router.interfaces().collect_detailed(pg.index(), false).unwrap();
    router.send_all(&pg, frames(&pg));
    assert_eq!(counted(&router, &pg, "rx-unicast"), (0, 0));
    // Packets wait for a neighbour until the requests time out.
    router.advance(std::time::Duration::from_secs(30));
    assert_eq!(router.buffers_in_use(), 0);
}

#[test]
fn a_trace_says_whom_a_packet_is_for() {
    let (mut router, pg) = router();
    router.interfaces().collect_detailed(pg.index(), true).unwrap();
    router.trace_add("pg-input", 1);
    router.send(&pg, &frames(&pg)[2]);
    let trace = router.trace();
    assert!(trace.contains("stats-collect-rx") && trace.contains("multicast"), "{trace}");
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    let (router, _) = router();
    let refused = router.interfaces().collect_detailed(SwIfIndex(77), true).unwrap_err();
    assert!(matches!(refused, InterfaceError::NoIndex(SwIfIndex(77))), "{refused}");
}

#[test]
fn all_17_counters_have_names_and_the_tag_is_published() {
    let (router, pg) = router();
    let counters = router.graph().counters();
    let of = |name: &str| counters.entries().iter().filter(|e| e.name.starts_with(name)).count();
    assert_eq!(of("/interfaces/pg0/"), 17);
    router.interfaces().set_tag(pg.index(), "uplink, \"blue\"").unwrap();
    let Some(Kind::Names(tags)) = counters.find("/if/tags") else { unreachable!("no tags") };
    assert_eq!(&*tags.all()[pg.index().0 as usize], "uplink, \"blue\"");
    router.interfaces().delete(pg.index()).unwrap();
    assert_eq!((of("/interfaces/pg0/"), &*tags.all()[pg.index().0 as usize]), (0, ""));
}
