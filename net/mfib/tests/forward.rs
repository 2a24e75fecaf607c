//! Packets to groups, in and out, of both families.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use common::*;
use shoal_fib::{Family, FibIndex};
use shoal_interface::MtuLayer;
use shoal_mfib::{Change, EntryFlags, ItfFlags, Member, Mfib, Prefix, Source};

const A: ItfFlags = ItfFlags::ACCEPT;
const F: ItfFlags = ItfFlags::FORWARD;

#[test]
fn a_packet_goes_to_every_forwarding_interface_with_the_groups_address() {
    for family in 0..2 {
        let (mut router, ports) = router(4);
        let prefix = group(GROUPS[family]);
        add(&router, prefix, &[member(&ports[0], A), member(&ports[1], F), member(&ports[2], F)]).unwrap();
        let sent = packet(SOURCES[family], GROUPS[family]).build();
        router.send(&ports[0], &sent);
        for port in &ports[1..3] {
            let got = port.received_one();
            assert_eq!(got[..6], GROUP_MACS[family]);
            assert_eq!(got[6..12], port.mac().0);
            assert_eq!(hops(&got), 9);
            // Past what changes at a hop: everything is as it was sent.
            assert_eq!(got[26..], sent[26..]);
        }
        assert!(ports[3].received().is_empty() && ports[0].received().is_empty());
        assert_eq!(router.error(&node(family, "replicate"), "copies made"), 1);
    }
}

#[test]
fn a_packet_by_another_interface_is_dropped_and_counted() {
    for family in 0..2 {
        let (mut router, ports) = router(3);
        add(&router, group(GROUPS[family]), &[member(&ports[0], A), member(&ports[1], F)]).unwrap();
        router.send(&ports[2], packet(SOURCES[family], GROUPS[family]).build());
        assert!(ports.iter().all(|p| p.received().is_empty()));
        assert_eq!(router.error(&node(family, "mfib-forward-rpf"), "rpf_failure"), 1);
    }
}

#[test]
fn a_packet_never_leaves_by_the_interface_it_came_by() {
    for family in 0..2 {
        let (mut router, ports) = router(2);
        let both = A.with(F);
        add(&router, group(GROUPS[family]), &[member(&ports[0], both), member(&ports[1], both)]).unwrap();
        router.send(&ports[0], packet(SOURCES[family], GROUPS[family]).build());
        assert!(ports[0].received().is_empty());
        ports[1].received_one();
    }
}

#[test]
fn the_most_specific_entry_decides() {
    for family in 0..2 {
        let (mut router, ports) = router(4);
        let g = addr(GROUPS[family]);
        let wide = Prefix::group(g, if family == 0 { 8 } else { 16 }).unwrap();
        let source = Prefix::source_group(addr(SOURCES[family]), g).unwrap();
        let say = |prefix, out: usize| {
            add(&router, prefix, &[member(&ports[0], A), member(&ports[out], F)]).unwrap();
        };
        say(wide, 1);
        say(group(GROUPS[family]), 2);
        say(source, 3);
        let other = ["10.0.0.10", "2001:db8::10"][family];
        let neighbour = ["232.129.1.2", "ff3e::1"][family];
        router.send(&ports[0], packet(SOURCES[family], GROUPS[family]).build());
        router.send(&ports[0], packet(other, GROUPS[family]).build());
        router.send(&ports[0], packet(other, neighbour).build());
        for port in &ports[1..] {
            port.received_one();
        }
    }
}

#[test]
fn groups_without_an_entry_are_dropped() {
    let (mut router, ports) = router(2);
    for family in 0..2 {
        router.send(&ports[0], packet(SOURCES[family], GROUPS[family]).build());
    }
    assert!(ports.iter().all(|p| p.received().is_empty()));
    assert_eq!(router.error("ip4-mfib-forward-lookup", "no multicast route to group"), 1);
    assert_eq!(router.error("ip6-lookup", "multicast group this router has not joined"), 1);
}

#[test]
fn groups_of_the_link_and_packets_with_sources_of_the_link_are_not_forwarded() {
    let (mut router, ports) = router(2);
    let change = Change { flags: EntryFlags::ACCEPT_ALL, members: vec![member(&ports[1], F)] };
    let mfib = router.get::<Mfib>();
    for prefix in [Prefix::group(addr("224.0.0.0"), 4), Prefix::group(addr("ff00::"), 8)] {
        mfib.add(FibIndex::DEFAULT, prefix.unwrap(), Source::Cli, &change).unwrap();
    }
    for (src, dst) in [
        (SOURCES[0], "224.0.0.9"),
        ("169.254.1.1", GROUPS[0]),
        ("0.0.0.0", GROUPS[0]),
        (SOURCES[1], "ff02::9"),
        (SOURCES[1], "ff01::9"),
        ("fe80::9", GROUPS[1]),
        ("::", GROUPS[1]),
    ] {
        router.send(&ports[0], packet(src, dst).build());
        assert!(ports[1].received().is_empty(), "{src} to {dst}");
    }
    for family in 0..2 {
        router.send(&ports[0], packet(SOURCES[family], GROUPS[family]).build());
        ports[1].received_one();
    }
    let refused = add(&router, group("224.0.0.9"), &[member(&ports[1], F)]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "packets to (*, 224.0.0.9/32) never leave their link, so they are not forwarded"
    );
    assert!(add(&router, group("ff02::9"), &[member(&ports[1], F)]).is_err());
}

#[test]
fn the_last_hop_is_not_forwarded_and_no_error_is_sent() {
    for family in 0..2 {
        let (mut router, ports) = router(2);
        add(&router, group(GROUPS[family]), &[member(&ports[0], A), member(&ports[1], F)]).unwrap();
        router.send(&ports[0], packet(SOURCES[family], GROUPS[family]).ttl(1).build());
        assert!(ports.iter().all(|p| p.received().is_empty()));
        assert_eq!(router.error(&node(family, "rewrite-mcast"), "time_expired"), 1);
    }
}

#[test]
fn this_router_gets_its_own_copy_of_groups_it_listens_to() {
    for family in 0..2 {
        let (mut router, ports) = router(2);
        let members = [member(&ports[0], A), member(&ports[1], F), (Member::Local, F)];
        add(&router, group(GROUPS[family]), &members).unwrap();
        router.send(&ports[0], packet(SOURCES[family], GROUPS[family]).build());
        ports[1].received_one();
        // The port has no listener, and a sender to many gets no error.
        assert!(ports[0].received().is_empty());
        let what = ["broadcast without a listener", "multicast without a listener"][family];
        let nodes = [node(family, "local"), node(family, "local-end-of-arc")];
        let counted = |n: &String| router.errors().iter().any(|(line, _)| *line == format!("{n}: {what}"));
        assert!(nodes.iter().any(counted), "{:?}", router.errors());
    }
}

#[test]
fn ip4_packets_that_are_too_long_are_cut_for_each_interface() {
    let (mut router, ports) = router(3);
    add(&router, group(GROUPS[0]), &[member(&ports[0], A), member(&ports[1], F), member(&ports[2], F)])
        .unwrap();
    router.interfaces().set_mtu(ports[1].index(), MtuLayer::Ip4, 600).unwrap();
    let long = packet(SOURCES[0], GROUPS[0]).payload_len(1000).build();
    router.send(&ports[0], &long);
    let pieces = ports[1].received();
    assert_eq!(pieces.len(), 2);
    assert!(pieces.iter().all(|p| p.len() <= 614 && p[..6] == GROUP_MACS[0] && hops(p) == 9));
    assert_eq!(ports[2].received_one().len(), long.len());
    let whole = packet(SOURCES[0], GROUPS[0]).payload_len(1000).dont_fragment().build();
    router.send(&ports[0], whole);
    assert!(ports[1].received().is_empty() && ports[0].received().is_empty());
    assert_eq!(router.error("ip4-rewrite-mcast", "mtu_exceeded"), 1);
}

#[test]
fn the_sender_of_an_ip6_packet_that_is_too_long_is_told() {
    let (mut router, ports) = router(3);
    add(&router, group(GROUPS[1]), &[member(&ports[0], A), member(&ports[1], F), member(&ports[2], F)])
        .unwrap();
    router.interfaces().set_mtu(ports[1].index(), MtuLayer::Ip6, 1280).unwrap();
    router.send(&ports[0], packet(SOURCES[1], GROUPS[1]).payload_len(1300).build());
    assert!(ports[1].received().is_empty());
    ports[2].received_one();
    assert_eq!(router.error("ip6-icmp-error", "packet_too_big_sent"), 1);
    // It waits for the sender's address.
    router.may_hold(2);
}

#[test]
fn signals_are_noted_once_an_interface() {
    for (family, addresses) in Family::ALL.into_iter().enumerate() {
        let (mut router, ports) = router(2);
        let mfib = router.get::<Mfib>();
        let negate = member(&ports[1], A.with(ItfFlags::NEGATE_SIGNAL));
        let change = Change { flags: EntryFlags::SIGNAL, members: vec![member(&ports[0], A), negate] };
        mfib.add(FibIndex::DEFAULT, group(GROUPS[family]), Source::Cli, &change).unwrap();
        for port in [&ports[0], &ports[0], &ports[1]] {
            router.send(port, packet(SOURCES[family], GROUPS[family]).build());
        }
        let entry = mfib.entries(addresses, FibIndex::DEFAULT).remove(0);
        let signalled: Vec<bool> =
            entry.interfaces.iter().map(|i| i.flags.has(ItfFlags::SIGNAL_PRESENT)).collect();
        assert_eq!(signalled, [true, false]);
        let count = router.error(&node(family, "mfib-forward-rpf"), "interfaces with a packet to signal");
        assert_eq!(count, 1);
    }
}

#[test]
fn tables_keep_their_groups_apart() {
    let (mut router, ports) = router(2);
    let fib = router.get::<shoal_fib::Fib>();
    let mut tables = Vec::new();
    for (family, addresses) in Family::ALL.into_iter().enumerate() {
        let table = fib.add_table(addresses, 7, None).unwrap();
        let change = Change {
            flags: EntryFlags::default(),
            members: vec![member(&ports[0], A), member(&ports[1], F)],
        };
        router.get::<Mfib>().add(table, group(GROUPS[family]), Source::Cli, &change).unwrap();
        tables.push(table);
        // The interface is in table 0, where the group is unknown.
        router.send(&ports[0], packet(SOURCES[family], GROUPS[family]).build());
        assert!(ports[1].received().is_empty());
    }
    let interfaces = router.interfaces();
    interfaces.set_ip4(ports[0].index(), true, tables[0].0).unwrap();
    interfaces.set_ip6(ports[0].index(), true, tables[1].0).unwrap();
    for family in 0..2 {
        router.send(&ports[0], packet(SOURCES[family], GROUPS[family]).build());
        ports[1].received_one();
    }
}

#[test]
fn a_trace_shows_the_whole_way() {
    let (mut router, ports) = router(2);
    for family in 0..2 {
        add(&router, group(GROUPS[family]), &[member(&ports[0], A), member(&ports[1], F)]).unwrap();
        router.trace_add("pg-input", 1);
        router.send(&ports[0], packet(SOURCES[family], GROUPS[family]).build());
        let trace = router.trace();
        for name in ["mfib-forward-lookup", "mfib-forward-rpf", "replicate", "rewrite-mcast"] {
            assert!(trace.contains(&format!("{}: ", node(family, name))), "{trace}");
        }
    }
}

#[test]
fn an_entry_counts_the_packets_it_takes() {
    for family in 0..2 {
        let (mut router, ports) = router(3);
        let prefix = group(GROUPS[family]);
        let members = [member(&ports[0], A), member(&ports[1], F)];
        add(&router, prefix, &members).unwrap();
        let sent = packet(SOURCES[family], GROUPS[family]).build();
        router.send_all(&ports[0], [&sent, &sent]);
        router.send(&ports[2], &sent);
        let mfib = router.get::<Mfib>();
        let of = Family::ALL[family];
        let entries = mfib.entries(of, FibIndex(0));
        let id = entries.iter().find(|e| e.prefix == prefix).unwrap().id;
        let bytes = sent.len() as u64 - 14;
        assert_eq!(mfib.counted(of, id), (2, 2 * bytes), "not the one by another interface");
        assert_eq!(mfib.counted(Family::ALL[1 - family], id), (0, 0));
        remove(&router, prefix, &members).unwrap();
        router.run();
        add(&router, prefix, &members).unwrap();
        let entries = mfib.entries(of, FibIndex(0));
        let id = entries.iter().find(|e| e.prefix == prefix).unwrap().id;
        assert_eq!(mfib.counted(of, id), (0, 0), "a new entry starts from zero");
    }
}
