//! Packets of several buffers to groups: copies share what lies behind the headers.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use common::*;
use shoal_interface::MtuLayer;
use shoal_mfib::{ItfFlags, Member};

const A: ItfFlags = ItfFlags::ACCEPT;
const F: ItfFlags = ItfFlags::FORWARD;

/// A packet whose every byte behind the headers says where it is.
fn large(family: usize, len: usize) -> Vec<u8> {
    let bytes: Vec<u8> = (0..len).map(|i| (i * 7 + i / 256) as u8).collect();
    packet(SOURCES[family], GROUPS[family]).payload(&bytes).build()
}

#[test]
fn every_taker_gets_every_byte_of_packets_of_any_length() {
    for (family, address) in GROUPS.into_iter().enumerate() {
        let (mut router, ports) = router(9);
        let mut members = vec![member(&ports[0], A)];
        members.extend(ports[1..].iter().map(|port| member(port, F)));
        add(&router, group(address), &members).unwrap();
        let before = router.buffers_in_use();
        for len in [1, 450, 500, 1400, 2000, 2500, 5000, 8900] {
            let sent = large(family, len);
            router.send(&ports[0], &sent);
            for port in &ports[1..] {
                let got = port.received_one();
                assert_eq!((&got[..6], &got[6..12]), (&GROUP_MACS[family][..], &port.mac().0[..]), "{len}");
                assert_eq!(hops(&got), 9, "{len}");
                assert!(got[26..] == sent[26..], "{len}");
            }
            assert_eq!(router.buffers_in_use(), before);
        }
        assert_eq!(router.error(&node(family, "replicate"), "copies made"), 8 * 7);
    }
}

#[test]
fn copies_of_long_packets_take_one_buffer_each() {
    // A packet of 8,900 bytes and its copies for 200 interfaces: a thousand buffers if each had its own bytes.
    for (family, address) in GROUPS.into_iter().enumerate() {
        let (mut router, ports) = router_with(201, 600);
        let mut members = vec![member(&ports[0], A)];
        members.extend(ports[1..].iter().map(|port| member(port, F)));
        add(&router, group(address), &members).unwrap();
        let sent = large(family, 8900);
        router.send(&ports[0], &sent);
        for port in &ports[1..] {
            assert!(port.received_one()[26..] == sent[26..]);
        }
        assert_eq!(router.error(&node(family, "replicate"), "no buffer for a copy"), 0);
    }
}

#[test]
fn one_taker_cuts_its_copy_into_pieces_and_the_others_have_it_whole() {
    let (mut router, ports) = router(4);
    let members = [member(&ports[0], A), member(&ports[1], F), member(&ports[2], F), member(&ports[3], F)];
    add(&router, group(GROUPS[0]), &members).unwrap();
    router.interfaces().set_mtu(ports[2].index(), MtuLayer::Ip4, 1500).unwrap();
    let sent = large(0, 8000);
    router.send(&ports[0], &sent);
    let pieces = ports[2].received();
    assert_eq!(pieces.len(), 6);
    let payload: Vec<u8> = pieces.iter().flat_map(|piece| piece[34..].to_vec()).collect();
    assert!(payload == sent[34..]);
    for port in [&ports[1], &ports[3]] {
        assert!(port.received_one()[26..] == sent[26..]);
    }
}

#[test]
fn this_routers_own_copy_comes_beside_those_for_others() {
    for (family, address) in GROUPS.into_iter().enumerate() {
        let (mut router, ports) = router(4);
        let mut members: Vec<_> = ports[1..].iter().map(|port| member(port, F)).collect();
        members.extend([member(&ports[0], A), (Member::Local, F)]);
        add(&router, group(address), &members).unwrap();
        let before = router.buffers_in_use();
        let sent = large(family, 5000);
        router.send(&ports[0], &sent);
        for port in &ports[1..] {
            assert!(port.received_one()[26..] == sent[26..]);
        }
        assert_eq!(router.error(&node(family, "replicate"), "copies made"), 3);
        assert_eq!(router.buffers_in_use(), before);
    }
}

#[test]
fn a_trace_has_a_line_for_each_copy() {
    for (family, address) in GROUPS.into_iter().enumerate() {
        let (mut router, ports) = router(5);
        let mut members = vec![member(&ports[0], A)];
        members.extend(ports[1..].iter().map(|port| member(port, F)));
        add(&router, group(address), &members).unwrap();
        router.trace_add("pg-input", 1);
        router.send(&ports[0], large(family, 3000));
        let trace = router.trace();
        for copy in 1..5 {
            assert!(trace.contains(&format!(" copy {copy}")), "{trace}");
        }
        assert_eq!(trace.matches("rewrite-mcast: ").count(), 4, "{trace}");
    }
}
