//! Sessions that hosts begin: made, kept, ended, recycled.

use std::collections::BTreeSet;

use shoal_nat::tuple::{ICMP, TCP, UDP};
use shoal_nat44_ei::config::{Algorithm, AtUserLimit, Timeouts};
use shoal_nat44_ei::{Enable, Error};

use crate::common::{Bed, HOST, SHARED, bed, bed_of, packet, read, spec, tuple};

const SYN: u8 = 2;
const ACK: u8 = 16;

fn error(bed: &Bed, node: &str, error: Error) -> u64 {
    let names = <Error as shoal_graph::ErrorCounters>::COUNTERS;
    bed.router.error(node, names[error as usize].name)
}

#[test]
fn a_port_of_a_host_has_one_outside_port_for_all_remote_hosts() {
    for (protocol, first, answer) in [(TCP, SYN, SYN | ACK), (UDP, 0, 0), (ICMP, 0, 1)] {
        let mut bed = bed();
        let dport = if protocol == ICMP { 5000 } else { 80 };
        let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", dport));
        let left = bed.out(asked, protocol, first).unwrap();
        let to = read(&left);
        assert_eq!(left, bed.left(to, protocol, first), "every byte");
        assert_eq!((to.source().0.to_string().as_str(), to.dst), (SHARED, asked.dst));
        assert!(to.sport >= 1024);
        // RFC 4787, REQ-1: the same to another.
        let other = tuple(("10.0.0.2", 5000), ("192.0.2.3", dport));
        let again = read(&bed.out(other, protocol, first).unwrap());
        assert_eq!((again.src, again.sport, again.dst), (to.src, to.sport, other.dst));
        // REQ-8, endpoint-independent filtering: the sender does not matter.
        for (src, sport) in [("192.0.2.2", dport), ("192.0.2.9", 9)] {
            let sport = if protocol == ICMP { to.sport } else { sport };
            let back = tuple((src, sport), (SHARED, to.sport));
            let came = bed.back(back, protocol, answer).unwrap();
            let mut wanted = back;
            (wanted.dst, wanted.dport) = (asked.src, asked.sport);
            if protocol == ICMP {
                wanted.sport = asked.sport;
            }
            assert_eq!(came, bed.came(wanted, protocol, answer));
        }
        let sessions = bed.sessions();
        assert_eq!(sessions.len(), 1);
        assert_eq!((sessions[0].packets, sessions[0].session.inside), (4, (asked.src, asked.sport)));
        assert_eq!(sessions[0].session.remote, (asked.dst, asked.dport), "the first one");
        assert_eq!(bed.router.counter("/nat44-ei/total-sessions"), 1);
        assert_eq!(bed.router.counter("/nat44-ei/total-users"), 1);
    }
}

#[test]
fn packets_are_counted_as_vpp_counts_them() {
    let mut bed = bed();
    for _ in 0..2 {
        bed.out(tuple(("10.0.0.2", 5000), ("192.0.2.2", 80)), UDP, 0).unwrap();
        bed.out(tuple(("10.0.0.2", 7), ("192.0.2.2", 7)), ICMP, 0).unwrap();
    }
    let port = bed.sessions().iter().find(|one| one.session.protocol == UDP).unwrap().session.outside.1;
    bed.back(tuple(("192.0.2.2", 80), (SHARED, port)), UDP, 0).unwrap();
    bed.back(tuple(("192.0.2.2", 80), (SHARED, 1)), UDP, 0);
    let inside = |name: &str| bed.router.if_counter(&format!("/nat44-ei/in2out/{name}"), bed.inside.index());
    assert_eq!((inside("slowpath/udp"), inside("fastpath/udp")), (1, 1));
    assert_eq!((inside("slowpath/icmp"), inside("fastpath/icmp")), (2, 0));
    let outside =
        |name: &str| bed.router.if_counter(&format!("/nat44-ei/out2in/{name}"), bed.outside.index());
    assert_eq!((outside("slowpath/udp"), outside("fastpath/udp"), outside("slowpath/drops")), (1, 0, 1));
    assert_eq!(error(&bed, "nat44-ei-out2in", Error::NoTranslation), 1);
}

#[test]
fn sessions_end_by_themselves_when_their_time_is_over() {
    for (protocol, flags, seconds) in [(UDP, 0, 300), (TCP, SYN, 240), (ICMP, 0, 60)] {
        let mut bed = bed();
        let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", 5000));
        let to = read(&bed.out(asked, protocol, flags).unwrap());
        bed.advance(seconds - 2);
        assert_eq!(bed.sessions().len(), 1, "{protocol}");
        // RFC 4787, REQ-6: a packet keeps it.
        bed.out(asked, protocol, flags).unwrap();
        bed.advance(seconds - 2);
        assert_eq!(read(&bed.out(asked, protocol, flags).unwrap()), to, "{protocol}");
        bed.advance(seconds + 3);
        assert_eq!(bed.sessions().len(), 0, "{protocol}");
        assert_eq!(bed.router.counter("/nat44-ei/total-sessions"), 0);
        assert_eq!(bed.router.counter("/nat44-ei/total-users"), 0);
        assert_eq!(bed.router.graph().next_timer().unwrap(), None, "nothing is left to wait for");
    }
}

#[test]
fn a_connection_that_was_answered_lives_as_vpp_s() {
    let mut bed = bed();
    let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", 80));
    let to = read(&bed.out(asked, TCP, SYN).unwrap());
    bed.back(to.reversed(), TCP, SYN | ACK).unwrap();
    // RFC 5382, REQ-5.
    bed.advance(7430);
    assert_eq!(bed.sessions().len(), 1);
    bed.advance(20);
    assert_eq!(bed.sessions().len(), 0);
    // Timeouts can be changed while sessions are there.
    bed.out(asked, UDP, 0).unwrap();
    bed.nat().set_timeouts(Timeouts { udp: 5, ..Timeouts::default() }).unwrap();
    bed.advance(7);
    assert_eq!(bed.sessions().len(), 0);
}

#[test]
fn a_host_that_has_as_many_as_it_may_loses_the_one_it_did_not_use_for_longest() {
    let mut bed = bed_of(Enable { user_sessions: 3, ..Enable::default() });
    let asked = |port| tuple(("10.0.0.2", port), ("192.0.2.2", 80));
    for port in [1, 2, 3] {
        bed.out(asked(port), UDP, 0).unwrap();
        bed.advance(2);
    }
    bed.out(asked(1), UDP, 0).unwrap();
    bed.out(tuple(("10.0.0.3", 9), ("192.0.2.2", 80)), UDP, 0).unwrap();
    bed.out(asked(4), UDP, 0).unwrap();
    let mut ports: Vec<u16> = bed.sessions().iter().map(|one| one.session.inside.1).collect();
    ports.sort_unstable();
    assert_eq!(ports, [1, 3, 4, 9], "2 went; another host's stays");
    let users = bed.nat().users().unwrap();
    assert_eq!(users.iter().map(|user| user.sessions).collect::<Vec<_>>(), [3, 1]);
}

#[test]
fn limits_are_kept_and_what_is_over_is_counted() {
    let mut bed = bed_of(Enable { users: 2, sessions: 3, user_sessions: 2, ..Enable::default() });
    let asked = |host: u8, port| tuple((&format!("10.0.0.{host}"), port), ("192.0.2.2", 80));
    bed.out(asked(2, 1), UDP, 0).unwrap();
    bed.out(asked(3, 1), UDP, 0).unwrap();
    assert_eq!(bed.out(asked(4, 1), UDP, 0), None);
    assert_eq!(error(&bed, "nat44-ei-in2out-slowpath", Error::CannotCreateUser), 1);
    assert_eq!(bed.router.counter("/nat44-ei/user-limit-reached"), 1);
    bed.out(asked(2, 2), UDP, 0).unwrap();
    assert_eq!(bed.out(asked(2, 3), UDP, 0), None);
    assert_eq!(error(&bed, "nat44-ei-in2out-slowpath", Error::MaxSessions), 1);
    assert_eq!(bed.sessions().len(), 3);
}

#[test]
fn a_host_at_its_limit_loses_packets_or_its_oldest_session_as_is_configured() {
    let mut bed = bed_of(Enable { user_sessions: 2, ..Enable::default() });
    let asked = |host: u8, port| tuple((&format!("10.0.0.{host}"), port), ("192.0.2.2", 80));
    bed.nat().set_at_user_limit(AtUserLimit::Drop);
    for port in [1, 2] {
        bed.out(asked(2, port), UDP, 0).unwrap();
    }
    let ports = |bed: &Bed| bed.sessions().iter().map(|one| one.session.inside.1).collect::<BTreeSet<_>>();
    // RFC 6888, REQ-11: what lives stays, and the host alone notices.
    assert_eq!(bed.out(asked(2, 3), UDP, 0), None);
    assert_eq!(ports(&bed), [1, 2].into());
    assert_eq!(error(&bed, "nat44-ei-in2out-slowpath", Error::UserFull), 1);
    assert_eq!(error(&bed, "nat44-ei-in2out-slowpath", Error::MaxSessions), 0);
    assert!(bed.out(asked(2, 1), UDP, 0).is_some() && bed.out(asked(3, 7), UDP, 0).is_some());
    // So does a mapping of the host.
    bed.nat().add_mapping(spec(("10.0.0.2", 80), (SHARED, 8080), TCP)).unwrap();
    assert_eq!(bed.back(tuple(("192.0.2.2", 9), (SHARED, 8080)), TCP, SYN), None);
    assert_eq!(error(&bed, "nat44-ei-out2in", Error::UserFull), 1);
    bed.nat().set_at_user_limit(AtUserLimit::Recycle);
    bed.out(asked(2, 3), UDP, 0).unwrap();
    assert_eq!(ports(&bed).len(), 3, "two of the one host, one of the other");
    assert!(ports(&bed).contains(&3));
}

#[test]
fn icmp_and_protocols_without_ports_are_counted_whether_they_pass_or_not() {
    const GRE: u8 = 47;
    let mut bed = bed();
    let count = |bed: &Bed, way: &str, what: &str| {
        let port = if way == "in2out" { &bed.inside } else { &bed.outside };
        bed.router.if_counter(&format!("/nat44-ei/{way}/slowpath/{what}"), port.index())
    };
    // Nothing tells hosts apart by such a protocol: without a mapping of the whole address it goes nowhere.
    let gre = tuple(("10.0.0.2", 0), ("192.0.2.2", 0));
    assert_eq!(bed.out(gre, GRE, 0), None);
    assert_eq!(bed.back(tuple(("192.0.2.2", 0), (SHARED, 0)), GRE, 0), None);
    assert_eq!(error(&bed, "nat44-ei-in2out-slowpath", Error::UnsupportedProtocol), 1);
    for way in ["in2out", "out2in"] {
        assert_eq!((count(&bed, way, "other"), count(&bed, way, "drops")), (1, 1), "{way}");
    }
    bed.nat().add_mapping(spec(("10.0.0.2", 0), ("192.0.2.60", 0), 0)).unwrap();
    let left = read(&bed.out(gre, GRE, 0).unwrap());
    assert_eq!((left.source().0.to_string().as_str(), bed.sessions().len()), ("192.0.2.60", 0));
    assert!(bed.back(left.reversed(), GRE, 0).is_some());
    for way in ["in2out", "out2in"] {
        assert_eq!((count(&bed, way, "other"), count(&bed, way, "drops")), (2, 1), "{way}");
    }
    // An ICMP query that nothing is known of is dropped, and counted both as ICMP and as dropped.
    assert_eq!(bed.back(tuple(("192.0.2.2", 7), (SHARED, 7)), ICMP, 0), None);
    assert_eq!((count(&bed, "out2in", "icmp"), count(&bed, "out2in", "drops")), (1, 2));
}

#[test]
fn ports_are_those_that_an_algorithm_gives() {
    let mut bed = bed();
    bed.nat().set_algorithm(Algorithm::Range { first: 2000, last: 2002 }).unwrap();
    let mut ports = std::collections::BTreeSet::new();
    for host in 2..5 {
        let asked = tuple((&format!("10.0.0.{host}"), 7), ("192.0.2.2", 80));
        ports.insert(read(&bed.out(asked, UDP, 0).unwrap()).sport);
    }
    assert_eq!(ports, [2000, 2001, 2002].into());
    assert_eq!(bed.out(tuple(("10.0.0.5", 7), ("192.0.2.2", 80)), UDP, 0), None, "all are taken");
    assert_eq!(error(&bed, "nat44-ei-in2out-slowpath", Error::OutOfPorts), 1);
    bed.nat().set_algorithm(Algorithm::MapE { psid: 10, offset: 6, length: 6, rfc7597: false }).unwrap();
    let port = read(&bed.out(tuple(("10.0.0.5", 7), ("192.0.2.2", 80)), UDP, 0).unwrap()).sport;
    assert_eq!(port >> 6 & 63, 10);
}

#[test]
fn hosts_of_several_addresses_keep_theirs_and_a_full_one_is_passed_over() {
    let mut bed = bed();
    bed.share("192.0.2.101");
    bed.share("192.0.2.102");
    let mut used = std::collections::BTreeSet::new();
    for host in 2..6 {
        let of = |port| tuple((&format!("10.0.0.{host}"), port), ("192.0.2.2", 80));
        let first = read(&bed.out(of(1), UDP, 0).unwrap()).src;
        for port in 2..6 {
            assert_eq!(read(&bed.out(of(port), UDP, 0).unwrap()).src, first, "RFC 4787, REQ-2");
        }
        used.insert(first);
    }
    assert_eq!(used.len(), 3, "all are used");
}

#[test]
fn a_packet_that_may_go_no_further_is_answered() {
    let mut bed = bed();
    let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", 80));
    for _ in 0..2 {
        let bytes = packet((HOST, bed.inside.mac()), asked, UDP, 0, 1, b"payload");
        bed.send_inside(bytes);
        let told = bed.inside.received_one();
        assert_eq!((told[34], told[26..30].to_vec()), (11, vec![10, 0, 0, 1]));
        assert_eq!(told[42 + 12..42 + 16], [10, 0, 0, 2], "its own packet");
    }
}

#[test]
fn a_port_rests_before_another_host_has_it_unless_there_is_no_other() {
    for protocol in [UDP, TCP, ICMP].repeat(6) {
        let mut bed = bed();
        bed.nat().set_algorithm(Algorithm::Range { first: 2000, last: 2001 }).unwrap();
        let short = Timeouts { udp: 5, tcp_transitory: 5, icmp: 5, ..Timeouts::default() };
        bed.nat().set_timeouts(short).unwrap();
        let flags = if protocol == TCP { SYN } else { 0 };
        let port_of = |bed: &mut Bed, host: u8| {
            let asked = tuple((&format!("10.0.0.{host}"), 5000), ("192.0.2.2", 5000));
            read(&bed.out(asked, protocol, flags).unwrap()).sport
        };
        let first = port_of(&mut bed, 2);
        bed.advance(10);
        assert_eq!(bed.sessions().len(), 0);
        // RFC 6888, REQ-8.
        assert_eq!(port_of(&mut bed, 3), 4001 - first);
        assert_eq!(port_of(&mut bed, 4), first);
        assert_eq!(bed.sessions().len(), 2);
    }
}

#[test]
fn a_port_that_rests_is_found_where_no_other_is() {
    const HOSTS: u8 = 8;
    const EACH: u16 = 4000;
    let sessions = u32::from(HOSTS) * u32::from(EACH);
    let mut bed = bed_of(Enable { sessions, user_sessions: sessions, ..Enable::default() });
    let hosts: Vec<String> = (2..2 + HOSTS).map(|host| format!("10.0.0.{host}")).collect();
    let mac = bed.inside.mac();
    // Half of the address's ports in use, and the other half at rest.
    for round in 0..3 {
        for port in 1024..1024 + EACH {
            let flow =
                |host: &String| packet((HOST, mac), tuple((host, port), ("192.0.2.2", 80)), UDP, 0, 64, b"");
            bed.send_all_inside(hosts.iter().map(flow));
        }
        assert_eq!(bed.outside.received().len() as u32, sessions, "{round}: {:?}", bed.router.errors());
        bed.nat().clear_sessions().unwrap();
        bed.router.run();
    }
}
