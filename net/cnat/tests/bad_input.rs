//! Packets that lie, and tables that are full.

use shoal_cnat::Spec;
use shoal_cnat::policy::{List, PolicyKind};
use shoal_testkit::{Rng, fuzz_all_nodes};

use crate::bed::*;

fn policed() -> Bed {
    let bed = bed();
    bed.features();
    for is_ip6 in [false, true] {
        bed.cnat.update(spec(vip(is_ip6), TCP, &[backend(is_ip6, 2)])).unwrap();
        bed.cnat.update(spec(vip(is_ip6), UDP, &[backend(is_ip6, 2)])).unwrap();
    }
    for list in [List::IncludeV4, List::IncludeV6] {
        bed.cnat.set_policy_interface(bed.nat.inside.index(), list, true).unwrap();
    }
    bed.cnat.set_policy(PolicyKind::K8s).unwrap();
    bed
}

#[test]
fn cut_and_damaged_packets_do_no_harm() {
    let mut bed = policed();
    let mut rng = Rng::new(Rng::seed(7));
    let mut frames = Vec::new();
    for is_ip6 in [false, true] {
        for protocol in [TCP, UDP, if is_ip6 { 58 } else { PING }] {
            let frame = bed.packet(false, (client(is_ip6, 1000), vip(is_ip6)), protocol, 2);
            frames.push(bed.error(false, (client(is_ip6, 1).0, vip(is_ip6).0), &frame[ETHER..]));
            frames.push(frame);
        }
    }
    for frame in &frames {
        for cut in ETHER..frame.len() {
            bed.nat.send_outside(frame[..cut].to_vec());
        }
        for _ in 0..300 {
            let mut frame = frame.clone();
            for _ in 0..=rng.below(4) {
                let at = ETHER + rng.below(frame.len() - ETHER);
                frame[at] = rng.next_u64() as u8;
            }
            if rng.below(2) == 0 { bed.nat.send_outside(frame) } else { bed.nat.send_inside(frame) }
        }
    }
    // And it still works.
    let ends = (client(false, 3000), vip(false));
    assert_eq!(bed.comes(ends, TCP, 2), Some((ends.0, backend(false, 2))));
}

#[test]
fn every_node_takes_rubbish() {
    let mut bed = policed();
    // Fragments wait for the others.
    bed.nat.router.may_hold(1024);
    fuzz_all_nodes(&mut bed.nat.router, Rng::seed(9), 300);
}

#[test]
fn when_there_is_no_room_packets_of_new_connections_are_dropped_and_counted() {
    let mut bed = bed();
    let limits = shoal_cnat::config::Limits { sessions: 4, ..bed.cnat.limits() };
    bed.cnat.set_limits(limits);
    bed.features();
    bed.cnat.update(spec(vip(false), TCP, &[backend(false, 2)])).unwrap();
    let got: Vec<bool> =
        (0..6).map(|n| bed.comes((client(false, 1000 + n), vip(false)), TCP, 2).is_some()).collect();
    assert_eq!(got, [true, true, true, true, false, false]);
    assert_eq!(bed.nat.router.error("cnat-input-ip4", "session allocation failure"), 2);
    assert_eq!(bed.cnat.most_sessions(), Some(4));
    bed.nat.advance(40);
    assert!(bed.comes((client(false, 2000), vip(false)), TCP, 2).is_some());
}

#[test]
fn a_table_may_have_a_limit_of_its_own_and_ports_run_out() {
    let mut bed = bed();
    let limits = shoal_cnat::config::Limits { sessions_of_table: 2, retries: 3, ..bed.cnat.limits() };
    bed.cnat.set_limits(limits);
    bed.features();
    bed.cnat.update(spec(vip(false), TCP, &[backend(false, 2)])).unwrap();
    let got: Vec<bool> =
        (0..3).map(|n| bed.comes((client(false, 1000 + n), vip(false)), TCP, 2).is_some()).collect();
    assert_eq!(got, [true, true, false]);
}

#[test]
fn virtual_addresses_behind_virtual_addresses_are_no_loop() {
    let mut bed = bed();
    let (one, two) = (vip(false), end("198.51.100.2", 80));
    bed.cnat.update(spec(one, TCP, &[two])).unwrap();
    bed.cnat.update(spec(two, TCP, &[one])).unwrap();
    assert_eq!(bed.comes((client(false, 1), one), TCP, 2), None);
    assert_eq!(bed.nat.router.error("ip4-cnat-tx", "backend is virtual"), 1, "{:?}", bed.errors());
    bed.features();
    assert_eq!(bed.comes((client(false, 2), one), TCP, 2), None);
    let paths = (0..5000).map(|n| to(end("10.0.0.2", n + 1))).collect();
    assert!(bed.cnat.update(Spec { paths, ..spec(one, TCP, &[]) }).is_err());
}

#[test]
fn connections_that_stay_as_they_are_leave_half_of_the_room() {
    let mut bed = bed();
    bed.cnat.set_limits(shoal_cnat::config::Limits { sessions: 6, ..bed.cnat.limits() });
    bed.features();
    bed.cnat.update(spec(vip(false), TCP, &[backend(false, 2)])).unwrap();
    bed.cnat.set_policy(PolicyKind::K8s).unwrap();
    for n in 0..10 {
        let ends = (client(false, 1000 + n), (backend(false, 3).0, 80));
        assert_eq!(bed.comes(ends, UDP, 0), Some(ends), "it passes with or without");
    }
    assert_eq!(bed.sessions().len(), 3);
    for n in 0..3 {
        assert!(bed.comes((client(false, 2000 + n), vip(false)), TCP, 2).is_some());
    }
}
