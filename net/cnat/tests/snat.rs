//! Shared source addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_adj::Family;
use shoal_arp::table::{FibEntry, Origin};
use shoal_cnat::policy::{List, PolicyKind};
use shoal_cnat::{SnatSpec, flags};
use shoal_fib::{Fib, Path, Source};
use shoal_ip4::Ip4;
use shoal_testkit::PacketBuilder;
use shoal_testkit::nat_bed::HOST;
use shoal_wire::{IpPrefix, TcpFlags};

use crate::bed::*;

const SYN: u8 = 2;
const ACK: u8 = 16;

fn addresses() -> SnatSpec {
    let (IpAddr::V4(ip4), IpAddr::V6(ip6)) = (shared(false), shared(true)) else { unreachable!() };
    SnatSpec { ip4, ip6, ..SnatSpec::NONE }
}

/// Pods inside, the world outside.
fn with_policy(kind: PolicyKind) -> Bed {
    let bed = bed();
    bed.features();
    bed.cnat.set_snat(addresses()).unwrap();
    let inside = bed.nat.inside.index();
    for list in [List::IncludeV4, List::IncludeV6, List::Pod] {
        bed.cnat.set_policy_interface(inside, list, true).unwrap();
    }
    for prefix in ["10.0.0.0/8", "2001:db8:1::/48"] {
        bed.cnat.set_excluded(prefix.parse().unwrap(), true).unwrap();
    }
    bed.cnat.set_policy(kind).unwrap();
    bed
}

fn pod(is_ip6: bool, n: u8, port: u16) -> End {
    (backend(is_ip6, n).0, port)
}

#[test]
fn connections_that_leave_share_an_address_and_answers_come_back() {
    for is_ip6 in [false, true] {
        for protocol in [TCP, UDP] {
            let mut bed = with_policy(PolicyKind::IfPfx);
            let (one, far) = (pod(is_ip6, 2, 5000), far(is_ip6));
            for _ in 0..2 {
                assert_eq!(
                    bed.goes((one, far), protocol, SYN),
                    Some(((shared(is_ip6), 5000), far)),
                    "the port is free"
                );
                assert_eq!(bed.comes((far, (shared(is_ip6), 5000)), protocol, ACK), Some((far, one)));
            }
            assert_eq!(bed.sessions().len(), 1);
            // Another pod with the same port to the same place gets another.
            let two = pod(is_ip6, 3, 5000);
            let (from, to) = bed.goes((two, far), protocol, SYN).unwrap();
            assert!(from.0 == shared(is_ip6) && from.1 != 5000 && to == far, "{from:?}");
            assert_eq!(bed.comes((far, from), protocol, ACK), Some((far, two)));
            // No session asked for this.
            assert_eq!(bed.comes((far, (shared(is_ip6), 4999)), protocol, SYN), None);
            // Connections that others begin are theirs, and so are their answers.
            let asked = (far, pod(is_ip6, 4, 80));
            assert_eq!(bed.comes(asked, protocol, SYN), Some(asked));
            assert_eq!(bed.goes(turned(asked), protocol, ACK), Some(turned(asked)));
        }
    }
}

#[test]
fn echo_requests_have_identifiers_and_errors_come_back_to_who_is_meant() {
    for is_ip6 in [false, true] {
        let mut bed = with_policy(PolicyKind::K8s);
        let protocol = if is_ip6 { 58 } else { PING };
        let (one, two) = (pod(is_ip6, 2, 9), pod(is_ip6, 3, 9));
        let far = (far(is_ip6).0, 9);
        for pod in [one, two] {
            let (from, to) = bed.goes((pod, far), protocol, 0).unwrap();
            assert!(from.0 == shared(is_ip6) && to.0 == far.0, "{from:?} {:?}", bed.errors());
            let answer = bed.comes(((far.0, from.1), from), protocol, 1).unwrap();
            assert_eq!((answer.0.0, answer.1), (far.0, pod));
        }
        // The far host says that a datagram did not reach anybody.
        let far = crate::bed::far(is_ip6);
        let pod = pod(is_ip6, 2, 5000);
        let left = bed.goes((pod, far), UDP, 0).unwrap();
        let about = bed.packet(false, left, UDP, 0);
        let frame = bed.error(false, (far.0, left.0.0), &about[ETHER..]);
        let (outer, inner) = bed.send_in(frame)[0].error();
        assert_eq!((outer, ends(&inner)), ((far.0, pod.0), (pod, far)));
        // And that an echo request did not.
        let asked = ((one.0, 77), (far.0, 77));
        let left = bed.goes(asked, protocol, 0).unwrap();
        let about = bed.packet(false, left, protocol, 0);
        let frame = bed.error(false, (far.0, left.0.0), &about[ETHER..]);
        let (outer, inner) = bed.send_in(frame)[0].error();
        assert_eq!((outer, ends(&inner)), ((far.0, one.0), asked));
    }
}

#[test]
fn excluded_destinations_and_other_interfaces_keep_their_source() {
    let mut bed = with_policy(PolicyKind::IfPfx);
    bed.cnat.set_excluded("192.0.2.0/24".parse().unwrap(), true).unwrap();
    let ends = (pod(false, 2, 5000), far(false));
    assert_eq!(bed.goes(ends, TCP, SYN), Some(ends));
    assert_eq!(bed.comes(turned(ends), TCP, ACK), Some(turned(ends)));
    bed.cnat.set_excluded("192.0.2.0/24".parse().unwrap(), false).unwrap();
    // A connection that began without goes on without.
    assert_eq!(bed.goes(ends, TCP, ACK), Some(ends));
    assert_eq!(bed.goes((pod(false, 2, 5001), ends.1), TCP, SYN), Some(((shared(false), 5001), ends.1)));
    bed.cnat.set_policy_interface(bed.nat.inside.index(), List::IncludeV4, false).unwrap();
    let ends = (pod(false, 2, 5002), far(false));
    assert_eq!(bed.goes(ends, TCP, SYN), Some(ends));
    bed.cnat.set_policy(PolicyKind::None).unwrap();
    let ends = (pod(true, 2, 5002), far(true));
    assert_eq!(bed.goes(ends, TCP, SYN), Some(ends));
}

#[test]
fn a_service_whose_back_end_is_elsewhere_has_answers_come_back_here() {
    for is_ip6 in [false, true] {
        for kind in [PolicyKind::K8s, PolicyKind::Dnat] {
            let mut bed = with_policy(kind);
            // A client outside connects to a service whose only back end is outside, too.
            let (client, vip, far) = (client(is_ip6, 1000), vip(is_ip6), far(is_ip6));
            bed.cnat.update(spec(vip, TCP, &[far])).unwrap();
            // What goes out where it came in; the sender gets a redirect, too.
            let ask = |bed: &mut Bed, ends, flags| {
                let frame = bed.packet(false, ends, TCP, flags);
                bed.send_in(frame);
                let all = bed.nat.outside.received().into_iter().map(|f| Out { ip: f[ETHER..].to_vec() });
                let of_tcp: Vec<Out> = all.filter(|out| out.ip[if is_ip6 { 6 } else { 9 }] == TCP).collect();
                of_tcp.iter().map(Out::ends).collect::<Vec<_>>()
            };
            let left = ((shared(is_ip6), 1000), far);
            assert_eq!(ask(&mut bed, (client, vip), SYN), [left], "{:?}", bed.errors());
            assert_eq!(ask(&mut bed, turned(left), SYN | ACK), [(vip, client)], "both are undone");
            assert_eq!(bed.sessions().len(), 2);
            assert_eq!(ask(&mut bed, (client, vip), ACK), [left], "the second takes the same way");
            assert_eq!(bed.sessions().len(), 2);
        }
    }
}

#[test]
fn a_pod_that_is_its_own_back_end_hears_itself() {
    let mut bed = with_policy(PolicyKind::K8s);
    let (pod, vip) = (pod(false, 2, 5000), vip(false));
    bed.cnat.update(spec(vip, TCP, &[backend(false, 2)])).unwrap();
    let frame = bed.packet(true, (pod, vip), TCP, SYN);
    bed.send_out(frame);
    let got = bed.nat.inside.received();
    let out = Out { ip: got[0][ETHER..].to_vec() };
    assert_eq!(out.ends(), ((shared(false), 5000), backend(false, 2)));
    let frame = bed.packet(true, turned(out.ends()), TCP, SYN | ACK);
    bed.send_out(frame);
    let got = bed.nat.inside.received();
    assert_eq!(Out { ip: got[0][ETHER..].to_vec() }.ends(), (vip, pod));
}

#[test]
fn an_interfaces_address_is_shared_and_stays_the_routers_own() {
    let mut bed = with_policy(PolicyKind::IfPfx);
    let outside = bed.nat.outside.index();
    let unset = (Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED);
    let spec = SnatSpec { ip4: unset.0, ip6: unset.1, interface: Some(outside), ..SnatSpec::NONE };
    bed.cnat.set_snat(spec).unwrap();
    let own: IpAddr = "192.0.2.1".parse().unwrap();
    let ends = (pod(false, 2, 5000), far(false));
    assert_eq!(bed.goes(ends, TCP, SYN), Some(((own, 5000), ends.1)));
    assert_eq!(bed.comes((ends.1, (own, 5000)), TCP, ACK), Some(turned(ends)));
    // The router still answers for itself.
    let frame = bed.packet(false, (far(false), (own, 7)), PING, 0);
    bed.send_in(frame);
    assert_eq!(bed.nat.outside.received().len(), 1, "{:?}", bed.errors());
    // Another address: new connections have it.
    let ip4 = bed.nat.router.get::<Ip4>();
    ip4.del_address(outside, "192.0.2.1/24".parse().unwrap()).unwrap();
    ip4.add_address(outside, "192.0.2.99/24".parse().unwrap()).unwrap();
    let other: IpAddr = "192.0.2.99".parse().unwrap();
    assert_eq!(bed.cnat.snat_address(&spec, Family::Ip4), Some(other));
    assert_eq!(bed.cnat.default_snat(), Some(spec));
}

#[test]
fn answers_that_come_by_another_interface_find_the_route() {
    let mut bed = with_policy(PolicyKind::IfPfx);
    bed.cnat.set_feature(bed.nat.inside.index(), true).unwrap();
    let ends = (pod(false, 2, 5000), far(false));
    assert_eq!(bed.goes(ends, TCP, SYN), Some(((shared(false), 5000), ends.1)));
    // Its input feature goes; the shared address's route leads the answer to the session.
    bed.nat
        .router
        .interfaces()
        .enable_feature(shoal_ip4::UNICAST_ARC, "cnat-input-ip4", bed.nat.outside.index(), false)
        .unwrap();
    assert_eq!(bed.comes((ends.1, (shared(false), 5000)), TCP, ACK), Some(turned(ends)));
    assert_eq!(bed.comes((ends.1, (shared(false), 5001)), TCP, ACK), None);
    assert_eq!(bed.nat.router.error("ip4-cnat-return", "unknown session"), 1);
    let of = |address: &IpAddr| bed.cnat.clients().iter().any(|(a, ..)| a == address);
    assert!(of(&shared(false)));
    bed.cnat.set_snat(SnatSpec { flags: flags::NO_CLIENT | flags::USE_AS_DEFAULT, ..addresses() }).unwrap();
    assert!(!bed.cnat.clients().iter().any(|(a, ..)| *a == shared(false)));
}

#[test]
fn connections_of_a_vrf_have_addresses_of_their_own_and_answers_come_by_another_table() {
    let mut bed = with_policy(PolicyKind::IfPfx);
    let own: IpAddr = "203.0.113.77".parse().unwrap();
    let (fib, ip4) = (bed.nat.router.get::<Fib>(), bed.nat.router.get::<Ip4>());
    let table = fib.add_table(Family::Ip4, 7, None).unwrap();
    let pods = bed.nat.router.pg(2);
    ip4.set_table(pods.index(), 7).unwrap();
    ip4.add_address(pods.index(), "172.16.0.1/24".parse().unwrap()).unwrap();
    let arp = bed.nat.router.get::<shoal_arp::Neighbours>();
    let pod = end("172.16.0.2", 5000);
    arp.set((pods.index(), pod.0.to_string().parse().unwrap()), HOST, Origin::Static, FibEntry::Wanted)
        .unwrap();
    let path = Path::next_hop(far(false).0, bed.nat.outside.index());
    let prefix: IpPrefix = "192.0.2.0/24".parse().unwrap();
    fib.add(table, prefix, Source::Cli, &[path]).unwrap();
    bed.cnat.set_feature(pods.index(), true).unwrap();
    bed.cnat.set_policy_interface(pods.index(), List::IncludeV4, true).unwrap();
    let spec = SnatSpec { table: 7, ip4: Ipv4Addr::new(203, 0, 113, 77), flags: 0, ..SnatSpec::NONE };
    bed.cnat.set_snat(spec).unwrap();
    let frame = |mac, ends: (End, End)| {
        let (IpAddr::V4(src), IpAddr::V4(dst)) = (ends.0.0, ends.1.0) else { unreachable!() };
        PacketBuilder::ethernet(HOST, mac).ip4(src, dst).tcp(ends.0.1, ends.1.1, TcpFlags::SYN).build()
    };
    bed.nat.router.send(&pods, frame(pods.mac(), (pod, far(false))));
    let got = bed.nat.outside.received();
    let left = Out { ip: got[0][ETHER..].to_vec() }.ends();
    assert_eq!(left, ((own, 5000), far(false)), "{:?}", bed.errors());
    bed.nat.send_outside(frame(bed.nat.outside.mac(), turned(left)));
    let got = pods.received();
    assert_eq!(Out { ip: got[0][ETHER..].to_vec() }.ends(), (far(false), pod));
    // Others have the default's.
    let ends = (self::pod(false, 2, 5000), far(false));
    assert_eq!(bed.goes(ends, TCP, SYN).unwrap().0.0, shared(false));
    // The table stays while it is used.
    let users = || fib.del_table(Family::Ip4, 7).unwrap_err().to_string();
    assert!(users().contains("plugin-hi"), "{}", users());
    bed.cnat.set_snat(SnatSpec { table: 7, ..SnatSpec::NONE }).unwrap();
    assert!(bed.cnat.snats().len() == 1 && !users().contains("plugin-hi"), "{}", users());
}
