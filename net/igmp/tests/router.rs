//! A router: the listeners on its links, what it asks, which clients get events, and what a proxy reports upstream.

use std::net::Ipv4Addr;
use std::time::Duration;

use shoal_fib::{Family, Fib, FibIndex};
use shoal_igmp::api::*;
use shoal_igmp::{Filter, GroupKind, Igmp, IgmpError, Timers};
use shoal_message::{InterfaceIndex, Retval};
use shoal_mfib::{ItfFlags, Member, Mfib};
use shoal_module::api::{Call, Dump, Request};
use shoal_testkit::{Listener, PacketBuilder, Port, Rng, Router, STACK};
use shoal_wire::igmp::{RecordType, ReportWriter, old_message};
use shoal_wire::{IpProtocol, MacAddress, icmp4};

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 1, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(239, 1, 1, 2);
const ANY: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
const ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 22);
const ALERT: [u8; 4] = [148, 4, 0, 0];
const JOIN: RecordType = RecordType::ALLOW_NEW_SOURCES;
const LEAVE: RecordType = RecordType::BLOCK_OLD_SOURCES;

fn source(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 9, n)
}

/// `pg0` is upstream, `pg1` and `pg2` have listeners.
fn router() -> (Router, [Port; 3]) {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_mfib::MODULE, &shoal_igmp::MODULE]);
    let mut router = Router::new(&modules);
    let ports = [0, 1, 2].map(|n| {
        let port = router.pg(n);
        router.set_address(&port, &format!("10.0.{n}.1/24"));
        port
    });
    let igmp = router.get::<Igmp>();
    igmp.set_timers(Timers { query: 10, src: 30, leave: 5 });
    igmp.enable(ports[0].index()).unwrap();
    igmp.enable_router(ports[1].index()).unwrap();
    igmp.enable_router(ports[2].index()).unwrap();
    for port in &ports {
        drop(port.received());
    }
    (router, ports)
}

fn frame(dst: Ipv4Addr, message: &[u8]) -> Vec<u8> {
    PacketBuilder::ethernet([2, 0xaa, 0, 0, 0, 2], MacAddress::for_ip4_multicast(dst))
        .ip4([10, 0, 1, 9], dst)
        .protocol(IpProtocol::IGMP)
        .options(&ALERT)
        .ttl(1)
        .payload(message)
        .build()
}

fn report(records: &[(RecordType, Ipv4Addr, &[Ipv4Addr])]) -> Vec<u8> {
    let mut out = [0; 1400];
    let writer = records.iter().fold(ReportWriter::new(&mut out), |writer, (kind, group, sources)| {
        writer.record(*kind, *group, sources)
    });
    let len = writer.finish().unwrap();
    frame(ROUTERS, &out[..len])
}

/// IGMP messages in what was sent, and where to.
fn said(port: &Port) -> Vec<(Ipv4Addr, Vec<u8>)> {
    let message = |frame: Vec<u8>| {
        assert!(icmp4::verify(&frame[38..]));
        (Ipv4Addr::new(frame[30], frame[31], frame[32], frame[33]), frame[38..].to_vec())
    };
    port.received().into_iter().map(message).collect()
}

/// The same, once the router has sent what it was made to send.
fn said_by(router: &mut Router, port: &Port) -> Vec<(Ipv4Addr, Vec<u8>)> {
    router.run();
    said(port)
}

fn state(router: &Router, port: &Port) -> Vec<(Ipv4Addr, Ipv4Addr)> {
    let dump = IgmpDump { sw_if_index: InterfaceIndex(port.index().0) };
    dump.dump(&Call::local(router.control())).map(|d| (d.gaddr, d.saddr)).collect()
}

/// The flags of an interface in the group's multicast route.
fn flags(router: &Router, group: Ipv4Addr, port: &Port) -> Option<ItfFlags> {
    let entries = router.get::<Mfib>().entries(Family::Ip4, FibIndex::DEFAULT);
    let of = entries.iter().filter(|entry| format!("{:?}", entry.prefix).contains(&group.to_string()));
    let mut all = of.flat_map(|entry| entry.interfaces.iter());
    all.find(|itf| itf.member == Member::Interface(port.index())).map(|itf| itf.flags)
}

#[test]
fn a_router_asks_at_its_interval() {
    let (mut router, [_, b, _]) = router();
    router.advance(Duration::from_secs(9));
    assert!(said(&b).is_empty());
    router.advance(Duration::from_secs(12));
    let all = said(&b);
    assert_eq!(all.len(), 2);
    assert_eq!(all[0].0, Ipv4Addr::new(224, 0, 0, 1));
    assert_eq!((all[0].1[0], all[0].1[1], &all[0].1[4..]), (0x11, 100, &[0, 0, 0, 0, 2, 10, 0, 0][..]));
}

#[test]
fn listeners_come_are_told_of_and_go() {
    let (mut router, [_, b, c]) = router();
    let listener = Listener::new(&router, &[&API]);
    WantIgmpEvents { enable: 1, pid: 0 }.handle(&listener.call(&router)).unwrap();
    let events = |listener: &Listener| {
        let all = listener.events::<IgmpEvent>();
        all.into_iter().map(|e| (e.sw_if_index.0, e.filter, e.gaddr, e.saddr)).collect::<Vec<_>>()
    };
    let i = b.index().0;
    router.send(&b, report(&[(JOIN, GROUP, &[source(1), source(2)])]));
    assert_eq!(state(&router, &b), [(GROUP, source(1)), (GROUP, source(2))]);
    assert!(state(&router, &c).is_empty());
    use FilterMode::{Exclude, Include};
    assert_eq!(events(&listener), [(i, Include, GROUP, source(1)), (i, Include, GROUP, source(2))]);
    // Saying it again is no news, and keeps it.
    router.advance(Duration::from_secs(20));
    router.send(&b, report(&[(RecordType::MODE_IS_INCLUDE, GROUP, &[source(1)])]));
    assert!(events(&listener).is_empty());
    router.advance(Duration::from_secs(15));
    assert_eq!(events(&listener), [(i, Exclude, GROUP, source(2))]);
    // One that leaves: others are asked, and the source goes after a while.
    said(&b);
    router.send(&b, report(&[(LEAVE, GROUP, &[source(1)])]));
    let asked = said(&b);
    assert_eq!((asked.len(), asked[0].0), (1, GROUP));
    assert_eq!(asked[0].1[4..], [239, 1, 1, 1, 2, 10, 0, 1, 10, 9, 9, 1]);
    assert_eq!(state(&router, &b).len(), 1);
    router.advance(Duration::from_secs(6));
    assert_eq!(events(&listener), [(i, Exclude, GROUP, source(1))]);
    assert!(state(&router, &b).is_empty());
    WantIgmpEvents { enable: 0, pid: 0 }.handle(&listener.call(&router)).unwrap();
    router.send(&b, report(&[(JOIN, GROUP, &[source(1)])]));
    assert!(events(&listener).is_empty());
}

#[test]
fn any_source_is_a_source_of_its_own_and_excluded_ones_are_not_kept() {
    let (mut router, [_, b, _]) = router();
    router.send(&b, report(&[(RecordType::CHANGE_TO_EXCLUDE, GROUP, &[])]));
    assert_eq!(state(&router, &b), [(GROUP, ANY)]);
    router.send(&b, report(&[(RecordType::CHANGE_TO_EXCLUDE, OTHER, &[source(1)])]));
    router.send(&b, report(&[(RecordType::CHANGE_TO_EXCLUDE, Ipv4Addr::new(232, 1, 1, 1), &[])]));
    router.send(&b, report(&[(JOIN, Ipv4Addr::new(224, 0, 0, 9), &[source(1)])]));
    assert_eq!(state(&router, &b).len(), 1, "nor groups of the link, nor any source of one with sources");
    said(&b);
    router.send(&b, report(&[(RecordType::CHANGE_TO_INCLUDE, GROUP, &[])]));
    let asked = said(&b);
    assert_eq!((asked[0].0, &asked[0].1[4..]), (GROUP, &[239, 1, 1, 1, 2, 10, 0, 0][..]), "of the group");
    router.advance(Duration::from_secs(6));
    assert!(state(&router, &b).is_empty());
    // A listener of version 2, where the group comes in at all.
    router.get::<Igmp>().set_range("232.0.0.0/8".parse().unwrap(), GroupKind::Asm);
    router.send(&b, report(&[(RecordType::CHANGE_TO_EXCLUDE, Ipv4Addr::new(232, 1, 1, 1), &[])]));
    assert_eq!(state(&router, &b).len(), 1);
    let leave = old_message(shoal_wire::igmp::IgmpVersion::V2, true, Ipv4Addr::new(232, 1, 1, 1));
    router.send(&b, frame(Ipv4Addr::new(224, 0, 0, 2), &leave));
    router.advance(Duration::from_secs(6));
    assert!(state(&router, &b).is_empty());
}

#[test]
fn a_proxy_listens_upstream_for_listeners_downstream() {
    let (mut router, [a, b, c]) = router();
    let (igmp, fib) = (router.get::<Igmp>(), router.get::<Fib>());
    igmp.add_proxy(&fib, 0, a.index()).unwrap();
    igmp.add_downstream(&fib, 0, b.index()).unwrap();
    router.send(&b, report(&[(JOIN, GROUP, &[source(1)])]));
    let up = said_by(&mut router, &a);
    assert_eq!((up.len(), up[0].0), (1, ROUTERS));
    assert_eq!(up[0].1[4..], [0, 0, 0, 1, 5, 0, 0, 1, 239, 1, 1, 1, 10, 9, 9, 1]);
    assert_eq!(state(&router, &a), [(GROUP, source(1))]);
    assert!(
        flags(&router, GROUP, &b).is_some_and(|f| f.has(ItfFlags::FORWARD)),
        "its packets are forwarded there"
    );
    // The same of another link is nothing new, nor is one that is no link of the proxy.
    router.send(&c, report(&[(JOIN, GROUP, &[source(1)]), (JOIN, OTHER, &[source(2)])]));
    assert!(said_by(&mut router, &a).is_empty());
    igmp.add_downstream(&fib, 0, c.index()).unwrap();
    assert_eq!(said_by(&mut router, &a)[0].1[4..], [0, 0, 0, 1, 5, 0, 0, 1, 239, 1, 1, 2, 10, 9, 9, 2]);
    igmp.remove_downstream(0, b.index()).unwrap();
    assert!(said_by(&mut router, &a).is_empty(), "the other link wants it, too");
    // It is answered for upstream, and goes when the last one goes.
    igmp.disable(c.index()).unwrap();
    let up = said_by(&mut router, &a);
    assert_eq!(up[0].1[4..8], [0, 0, 0, 2], "both are left");
    assert!(state(&router, &a).is_empty());
    // Any source is a mode.
    igmp.add_downstream(&fib, 0, b.index()).unwrap();
    router.send(&b, report(&[(LEAVE, GROUP, &[source(1)])]));
    router.advance(Duration::from_secs(6));
    said_by(&mut router, &a);
    router.send(&b, report(&[(RecordType::CHANGE_TO_EXCLUDE, GROUP, &[])]));
    assert_eq!(said_by(&mut router, &a)[0].1[4..], [0, 0, 0, 1, 4, 0, 0, 0, 239, 1, 1, 1]);
    igmp.remove_proxy(0, a.index()).unwrap();
    assert_eq!(said_by(&mut router, &a)[0].1[4..], [0, 0, 0, 1, 3, 0, 0, 0, 239, 1, 1, 1]);
    assert!(state(&router, &a).is_empty() && igmp.proxies().is_empty());
}

#[test]
fn proxies_need_a_host_upstream_and_routers_downstream() {
    let (router, [a, b, c]) = router();
    let call = Call::local(router.control());
    let device = |add: u8, vrf_id: u32, port: u32| {
        IgmpProxyDeviceAddDel { add, vrf_id, sw_if_index: InterfaceIndex(port) }.handle(&call)
    };
    let link = |add: bool, vrf_id: u32, port: u32| {
        IgmpProxyDeviceAddDelInterface { add, vrf_id, sw_if_index: InterfaceIndex(port) }.handle(&call)
    };
    let [up, down, other] = [a.index().0, b.index().0, c.index().0];
    assert_eq!(device(1, 0, 77), Err(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(device(1, 0, down), Err(Retval::INVALID_INTERFACE), "a router");
    assert_eq!(device(1, 9, up), Err(Retval::INVALID_INTERFACE), "another table");
    assert_eq!(link(true, 0, down), Err(Retval::UNSPECIFIED), "no proxy");
    device(1, 0, up).unwrap();
    assert_eq!(device(1, 0, up), Err(Retval::UNSPECIFIED));
    assert_eq!(link(true, 0, up), Err(Retval::INVALID_INTERFACE), "a host");
    link(true, 0, down).unwrap();
    assert_eq!(link(true, 0, down), Err(Retval::UNSPECIFIED));
    assert_eq!(link(false, 0, other), Err(Retval::UNSPECIFIED));
    router.interfaces().delete(b.index()).unwrap();
    assert!(router.get::<Igmp>().proxies()[0].downstream.is_empty());
    device(0, 0, up).unwrap();
    assert_eq!(device(0, 0, up), Err(Retval::UNSPECIFIED));
}

#[test]
fn prefixes_of_groups_with_sources_are_told() {
    let (router, _) = router();
    let call = Call::local(router.control());
    let set = |text: &str, r#type: GroupPrefixType| {
        let prefix: shoal_wire::Ip4Prefix = text.parse().unwrap();
        let prefix = shoal_message::Prefix { address: prefix.addr().into(), len: prefix.len() };
        IgmpGroupPrefixSet { gp: GroupPrefix { r#type, prefix } }.handle(&call).unwrap();
    };
    let told = || {
        IgmpGroupPrefixDump {}
            .dump(&call)
            .map(|d| (d.gp.prefix.address.to_string(), d.gp.prefix.len))
            .collect::<Vec<_>>()
    };
    assert_eq!(told(), [("232.0.0.0".to_owned(), 8)]);
    set("239.1.0.0/16", GroupPrefixType::Ssm);
    set("239.1.0.0/16", GroupPrefixType::Ssm);
    assert_eq!(told().len(), 2);
    set("239.1.0.0/16", GroupPrefixType::Asm);
    set("232.0.0.0/8", GroupPrefixType::Asm);
    assert!(told().is_empty());
}

#[test]
fn floods_and_lies_are_bounded() {
    let (mut router, [_, b, _]) = router();
    let igmp = router.get::<Igmp>();
    let many: Vec<Ipv4Addr> = (0..250).map(source).collect();
    router.send(&b, report(&[(JOIN, GROUP, &many)]));
    assert_eq!(state(&router, &b).len(), 100, "sources of a group");
    for block in 0..50u8 {
        let groups: Vec<Ipv4Addr> = (0..100).map(|n| Ipv4Addr::new(239, 2, block, n)).collect();
        let joins: Vec<_> = groups.iter().map(|g| (RecordType::CHANGE_TO_EXCLUDE, *g, &[][..])).collect();
        router.send(&b, report(&joins));
    }
    assert_eq!(igmp.listeners(b.index()).len(), 4096);
    igmp.leave_all(b.index()).unwrap();
    assert!(igmp.listeners(b.index()).is_empty());
    let mut rng = Rng::new(Rng::seed(7));
    for _ in 0..300 {
        let len = rng.below(60);
        let mut bytes = rng.bytes(len);
        if let Some(kind) = bytes.first_mut() {
            *kind = 0x22;
        }
        if bytes.len() >= 8 {
            icmp4::make(&mut bytes);
        }
        router.send(&b, frame(ROUTERS, &bytes));
    }
    assert!(matches!(igmp.enable(b.index()), Err(IgmpError::OtherMode(..))));
    assert_eq!(Filter::Include, Filter::Include);
}
