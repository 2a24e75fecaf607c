//! `mss_clamp.api`: segment sizes through the binary API.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use shoal_message::{InterfaceIndex, Retval};
use shoal_module::api::{Call, Get, Request};
use shoal_mss_clamp::api::*;
use shoal_mss_clamp::{Directions, MssClamp};
use shoal_testkit::{Port, Router, STACK, api};

const RX: MssClampDir = MssClampDir(1);
const BOTH: MssClampDir = MssClampDir(3);
const NONE: MssClampDir = MssClampDir(0);

fn router() -> (Router, Port) {
    let mut modules = STACK.to_vec();
    modules.push(&shoal_mss_clamp::MODULE);
    let mut router = Router::new(&modules);
    let port = router.pg(0);
    (router, port)
}

fn set(call: &Call, interface: u32, ip4: (u16, MssClampDir), ip6: (u16, MssClampDir)) -> Result<(), Retval> {
    MssClampEnableDisable {
        sw_if_index: InterfaceIndex(interface),
        ipv4_mss: ip4.0,
        ipv6_mss: ip6.0,
        ipv4_direction: ip4.1,
        ipv6_direction: ip6.1,
    }
    .handle(call)
}

fn get(call: &Call, cursor: u32, interface: InterfaceIndex) -> (Vec<MssClampDetails>, MssClampGetReply) {
    MssClampGet { cursor, sw_if_index: interface }.get(call).unwrap()
}

#[test]
fn declared_messages_are_those_of_vpp() {
    api::same_as_vpp(&[&API]);
}

#[test]
fn random_bytes_do_no_harm() {
    let (mut router, _) = router();
    api::random_bytes_do_no_harm(&mut router, &[&API], 200);
}

#[test]
fn sizes_of_both_families_are_set_told_and_taken_away() {
    let (router, port) = router();
    let (call, i) = (Call::local(router.control()), port.index().0);
    assert!(get(&call, 0, InterfaceIndex::NONE).0.is_empty());
    set(&call, i, (1400, BOTH), (1300, RX)).unwrap();
    let [ip4, ip6] = router.get::<MssClamp>().settings()[0].1;
    assert_eq!(
        (ip4.directions, ip4.mss, ip6.directions, ip6.mss),
        (Directions::BOTH, 1400, Directions::RX, 1300)
    );
    for which in [InterfaceIndex(i), InterfaceIndex::NONE] {
        let (details, reply) = get(&call, 0, which);
        assert_eq!((reply.retval, reply.cursor), (0, u32::MAX));
        let d = &details[0];
        assert_eq!((d.sw_if_index.0, d.ipv4_mss, d.ipv6_mss), (i, 1400, 1300));
        assert_eq!((d.ipv4_direction, d.ipv6_direction, details.len()), (BOTH, RX, 1));
    }
    set(&call, i, (0, NONE), (0, NONE)).unwrap();
    assert!(get(&call, 0, InterfaceIndex::NONE).0.is_empty());
}

#[test]
fn many_interfaces_are_told_page_by_page() {
    let (mut router, _) = router();
    for n in 1..502 {
        router.pg(n);
    }
    let call = Call::local(router.control());
    let all: Vec<u32> = (0..502).map(|n| router.interfaces().by_name(&format!("pg{n}")).unwrap().0).collect();
    for i in &all {
        set(&call, *i, (1400, RX), (0, NONE)).unwrap();
    }
    let (first, reply) = get(&call, 0, InterfaceIndex::NONE);
    assert_eq!((first.len(), reply.retval), (500, Retval::EAGAIN.0));
    let (rest, reply) = get(&call, reply.cursor, InterfaceIndex::NONE);
    assert_eq!((rest.len(), reply.retval, reply.cursor), (2, 0, u32::MAX));
    let told: Vec<u32> = first.iter().chain(&rest).map(|d| d.sw_if_index.0).collect();
    assert_eq!(told, all);
}

#[test]
fn mistakes_have_vpps_numbers() {
    let (router, port) = router();
    let (call, i) = (Call::local(router.control()), port.index().0);
    assert_eq!(set(&call, 77, (1400, RX), (0, NONE)), Err(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(set(&call, i, (10, RX), (0, NONE)), Err(Retval::INVALID_VALUE));
    assert_eq!(set(&call, i, (1400, MssClampDir(4)), (0, NONE)), Err(Retval::INVALID_VALUE));
    let get = MssClampGet { cursor: 0, sw_if_index: InterfaceIndex(77) }.get(&call);
    assert_eq!(get.err(), Some(Retval::INVALID_SW_IF_INDEX));
}
