//! What makes no sense, what is too much, and what goes away while packets are on their way.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use common::*;
use shoal_fib::{Family, FibIndex};
use shoal_mfib::{Change, EntryFlags, ItfFlags, Member, Mfib, MfibError, Prefix, Source};
use shoal_testkit::{Rng, Router};

const A: ItfFlags = ItfFlags::ACCEPT;
const F: ItfFlags = ItfFlags::FORWARD;

#[test]
fn many_interfaces_get_every_packet_of_a_burst_with_few_buffers() {
    const PORTS: u32 = 300;
    for family in 0..2 {
        let (mut router, ports) = router_with(PORTS, 4096);
        let mut members = vec![member(&ports[0], A)];
        members.extend(ports[1..].iter().map(|p| member(p, F)));
        add(&router, group(GROUPS[family]), &members).unwrap();
        // More copies than there are buffers.
        let burst = 40;
        router.send_all(&ports[0], vec![packet(SOURCES[family], GROUPS[family]).build(); burst]);
        let lost = router.error(&node(family, "replicate"), "no buffer for a copy");
        assert_eq!(lost, 0);
        for port in &ports[1..] {
            assert_eq!(port.received().len(), burst);
        }
    }
}

#[test]
fn without_buffers_copies_are_lost_and_counted() {
    let (mut router, ports) = router_with(8, 16);
    let mut members = vec![member(&ports[0], A)];
    members.extend(ports[1..].iter().map(|p| member(p, F)));
    add(&router, group(GROUPS[0]), &members).unwrap();
    router.send_all(&ports[0], vec![packet(SOURCES[0], GROUPS[0]).build(); 8]);
    let got: usize = ports[1..].iter().map(|p| p.received().len()).sum();
    let lost = router.error("ip4-replicate", "no buffer for a copy");
    assert!(lost > 0);
    assert_eq!(got as u64 + lost, 8 * 7);
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let (router, ports) = router(2);
    assert!(matches!(Prefix::group(addr("10.0.0.1"), 32), Err(MfibError::NotAGroup(_))));
    assert!(matches!(Prefix::group(addr("224.0.0.0"), 3), Err(MfibError::NotAGroup(_))));
    assert!(matches!(Prefix::group(addr("224.0.0.0"), 33), Err(MfibError::NotAGroup(_))));
    assert!(matches!(Prefix::group(addr("ff00::"), 7), Err(MfibError::NotAGroup(_))));
    assert!(matches!(Prefix::group(addr("2001:db8::"), 64), Err(MfibError::NotAGroup(_))));
    let two = Prefix::source_group(addr("10.0.0.1"), addr("ff3e::1"));
    assert!(matches!(two, Err(MfibError::Families { .. })));
    for source in ["224.0.0.1", "0.0.0.0", "127.0.0.1"] {
        let prefix = Prefix::source_group(addr(source), addr(GROUPS[0]));
        assert!(matches!(prefix, Err(MfibError::NotASource(_))), "{source}");
    }
    let prefix = group(GROUPS[0]);
    let before = router.get::<Mfib>().entries(Family::Ip4, FibIndex::DEFAULT);
    assert!(matches!(add(&router, prefix, &[]), Err(MfibError::Nothing)));
    assert!(matches!(add(&router, prefix, &[(Member::Local, A)]), Err(MfibError::LocalAccepts)));
    let none = member(&ports[0], ItfFlags::default());
    assert!(matches!(add(&router, prefix, &[none]), Err(MfibError::NoFlags)));
    let gone = Member::Interface(shoal_interface::SwIfIndex(77));
    let some = [member(&ports[0], F), (gone, F)];
    assert!(matches!(add(&router, prefix, &some), Err(MfibError::Interface(_))));
    // local0 sends nothing.
    let local0 = Member::Interface(shoal_interface::SwIfIndex(0));
    assert!(add(&router, prefix, &[member(&ports[0], F), (local0, F)]).is_err());
    let change = Change { flags: EntryFlags::SIGNAL, members: Vec::new() };
    let unknown = router.get::<Mfib>().add(FibIndex(5), prefix, Source::Cli, &change);
    assert!(matches!(unknown, Err(MfibError::Fib(_))));
    assert_eq!(router.get::<Mfib>().entries(Family::Ip4, FibIndex::DEFAULT), before);
}

#[test]
fn only_what_was_said_can_be_taken_back() {
    let (router, ports) = router(2);
    let prefix = group(GROUPS[1]);
    let missing = remove(&router, prefix, &[]).unwrap_err();
    assert_eq!(missing.to_string(), "no multicast route (*, ff3e::8123:4567/128)");
    add(&router, prefix, &[member(&ports[0], A), member(&ports[1], F)]).unwrap();
    assert!(matches!(remove(&router, prefix, &[member(&ports[0], F)]), Err(MfibError::NoPath { .. })));
    let near = remove(&router, group("ff3e::8123:4568"), &[]).unwrap_err();
    assert!(near.to_string().ends_with("nearest is (*, ff3e::8123:4567/128)"), "{near}");
    remove(&router, prefix, &[member(&ports[1], F)]).unwrap();
    remove(&router, prefix, &[member(&ports[0], ItfFlags::default())]).unwrap();
    assert_eq!(
        router.get::<Mfib>().entries(Family::Ip6, FibIndex::DEFAULT).len(),
        4,
        "those that every table has"
    );
    assert!(remove(&router, prefix, &[]).is_err());
}

#[test]
fn entries_and_interfaces_go_while_packets_are_on_their_way() {
    for family in 0..2 {
        let (mut router, ports) = router(3);
        let prefix = group(GROUPS[family]);
        add(&router, prefix, &[member(&ports[0], A), member(&ports[1], F), member(&ports[2], F)]).unwrap();
        let generator = router.generator();
        let sent = packet(SOURCES[family], GROUPS[family]).build();
        generator.inject(ports[0].index(), sent.clone()).unwrap();
        router.interfaces().delete(ports[2].index()).unwrap();
        router.run();
        assert_eq!(ports[1].received().len(), 1);
        let family_of = Family::ALL[family];
        let entry = router.get::<Mfib>().entries(family_of, FibIndex::DEFAULT).remove(0);
        assert_eq!(entry.interfaces.len(), 2);
        router.generator().inject(ports[0].index(), sent.clone()).unwrap();
        remove(&router, prefix, &[]).unwrap();
        router.run();
        assert!(ports[1].received().is_empty());
        // The entry's number is used again, by another group.
        add(&router, group(["232.0.0.7", "ff3e::7"][family]), &[member(&ports[0], A), member(&ports[1], F)])
            .unwrap();
        router.send(&ports[0], &sent);
        assert!(ports[1].received().is_empty());
        assert_eq!(router.get::<shoal_adj::Adjacencies>().list().len(), before_adjacencies(&router));
    }
}

/// Every adjacency has a user.
fn before_adjacencies(router: &Router) -> usize {
    router.get::<shoal_adj::Adjacencies>().list().iter().filter(|(_, _, users)| *users > 0).count()
}

#[test]
fn random_and_truncated_packets_end_well() {
    let (mut router, ports) = router(3);
    let mut rng = Rng::new(7);
    let everything = Change {
        flags: EntryFlags::ACCEPT_ALL,
        members: vec![member(&ports[1], F), member(&ports[2], F), (Member::Local, F)],
    };
    for prefix in [Prefix::group(addr("224.0.0.0"), 4), Prefix::group(addr("ff00::"), 8)] {
        router.get::<Mfib>().add(FibIndex::DEFAULT, prefix.unwrap(), Source::Cli, &everything).unwrap();
    }
    for round in 0..400 {
        let family = round % 2;
        let mut bytes = packet(SOURCES[family], GROUPS[family]).build();
        for _ in 0..=rng.below(4) {
            let at = 14 + rng.below(bytes.len() - 14);
            bytes[at] = rng.below(256) as u8;
        }
        bytes.truncate(14 + rng.below(bytes.len() - 13));
        router.send(&ports[0], &bytes);
        for name in ["mfib-forward-lookup", "mfib-forward-rpf", "replicate", "rewrite-mcast"] {
            let end = rng.below(bytes.len() + 1).max(14);
            router.inject(&node(family, name), ports[0].index(), &bytes[14..end]);
        }
        router.run();
    }
    router.may_hold(64);
}

#[test]
fn a_table_with_multicast_routes_cannot_be_deleted() {
    let (router, ports) = router(1);
    let fib = router.get::<shoal_fib::Fib>();
    for (family, addresses) in Family::ALL.into_iter().enumerate() {
        let table = fib.add_table(addresses, 9, None).unwrap();
        let change = Change { flags: EntryFlags::default(), members: vec![member(&ports[0], A)] };
        let (mfib, prefix) = (router.get::<Mfib>(), group(GROUPS[family]));
        mfib.add(table, prefix, Source::Cli, &change).unwrap();
        mfib.add(table, prefix, Source::Api, &change).unwrap();
        assert!(fib.del_table(addresses, 9).is_err());
        mfib.remove(table, prefix, Source::Cli, &Change::default()).unwrap();
        assert!(fib.del_table(addresses, 9).is_err());
        mfib.remove(table, prefix, Source::Api, &Change::default()).unwrap();
        fib.del_table(addresses, 9).unwrap();
    }
}
