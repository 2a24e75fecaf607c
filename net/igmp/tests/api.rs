//! `igmp.api`: groups listened to through the binary API.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use std::net::Ipv4Addr;
use std::time::Duration;

use shoal_igmp::api::*;
use shoal_message::{Count, InterfaceIndex, Retval};
use shoal_module::api::{Call, Dump, Request};
use shoal_testkit::{Port, Router, STACK, api};

const ANY: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
const GROUP: Ipv4Addr = Ipv4Addr::new(232, 1, 1, 1);

fn source(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 9, n)
}

fn router() -> (Router, Port) {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_mfib::MODULE, &shoal_igmp::MODULE]);
    let mut router = Router::new(&modules);
    let port = router.pg(0);
    router.set_address(&port, "10.0.0.1/24");
    (router, port)
}

fn enable(call: &Call, port: &Port, enable: bool, mode: u8) -> Result<(), Retval> {
    IgmpEnableDisable { enable, mode, sw_if_index: InterfaceIndex(port.index().0) }.handle(call)
}

fn listen(call: &Call, filter: FilterMode, interface: u32, sources: &[Ipv4Addr]) -> Result<(), Retval> {
    let group = IgmpGroup {
        filter,
        n_srcs: Count::default(),
        sw_if_index: InterfaceIndex(interface),
        gaddr: GROUP,
        saddrs: sources.to_vec(),
    };
    IgmpListen { group }.handle(call)
}

fn dump(call: &Call, sw_if_index: InterfaceIndex) -> Vec<(Ipv4Addr, Ipv4Addr)> {
    IgmpDump { sw_if_index }.dump(call).map(|d| (d.saddr, d.gaddr)).collect()
}

#[test]
fn declared_messages_are_those_of_vpp() {
    api::same_as_vpp(&[&API]);
}

#[test]
fn random_bytes_do_no_harm() {
    let (mut router, port) = router();
    enable(&Call::local(router.control()), &port, true, 1).unwrap();
    api::random_bytes_do_no_harm(&mut router, &[&API], 200);
}

#[test]
fn a_list_of_sources_replaces_the_one_before() {
    use FilterMode::{Exclude, Include};
    let (mut router, port) = router();
    let (call, i) = (Call::local(router.control()), port.index().0);
    enable(&call, &port, true, 1).unwrap();
    enable(&call, &port, true, 1).unwrap();
    router.advance(Duration::from_secs(5));
    port.received();
    listen(&call, Include, i, &[source(1), source(2)]).unwrap();
    assert_eq!(dump(&call, InterfaceIndex::NONE), [(source(1), GROUP), (source(2), GROUP)]);
    router.run();
    assert!(!port.received().is_empty(), "routers are told");
    listen(&call, Include, i, &[source(2), source(3)]).unwrap();
    assert_eq!(dump(&call, InterfaceIndex(i)), [(source(2), GROUP), (source(3), GROUP)]);
    listen(&call, Exclude, i, &[]).unwrap();
    assert_eq!(dump(&call, InterfaceIndex(i)), [(ANY, GROUP)]);
    assert_eq!(dump(&call, InterfaceIndex(77)), []);
    listen(&call, Include, i, &[]).unwrap();
    assert!(dump(&call, InterfaceIndex::NONE).is_empty());
    listen(&call, Include, i, &[source(1)]).unwrap();
    let clear = |interface| IgmpClearInterface { sw_if_index: InterfaceIndex(interface) }.handle(&call);
    clear(i).unwrap();
    assert_eq!(clear(77), Err(Retval::INVALID_SW_IF_INDEX));
    assert!(dump(&call, InterfaceIndex::NONE).is_empty());
    enable(&call, &port, false, 1).unwrap();
    enable(&call, &port, false, 1).unwrap();
    clear(i).unwrap();
}

#[test]
fn mistakes_have_vpps_numbers_and_change_nothing() {
    use FilterMode::{Exclude, Include};
    let (router, port) = router();
    let (call, i) = (Call::local(router.control()), port.index().0);
    assert_eq!(listen(&call, Include, i, &[source(1)]), Err(Retval::INVALID_INTERFACE));
    enable(&call, &port, true, 0).unwrap();
    assert_eq!(enable(&call, &port, true, 1), Err(Retval::UNSPECIFIED), "it is a router there");
    assert_eq!(listen(&call, Include, i, &[source(1)]), Err(Retval::UNSPECIFIED));
    enable(&call, &port, false, 0).unwrap();
    enable(&call, &port, true, 1).unwrap();
    assert_eq!(listen(&call, Include, 77, &[source(1)]), Err(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(listen(&call, Exclude, i, &[source(1)]), Err(Retval::UNIMPLEMENTED));
    assert_eq!(listen(&call, Include, i, &[source(1), GROUP]), Err(Retval::INVALID_VALUE));
    let many: Vec<_> = (0..=150).map(source).collect();
    assert_eq!(listen(&call, Include, i, &many), Err(Retval::LIMIT_EXCEEDED));
    assert!(dump(&call, InterfaceIndex::NONE).is_empty());
}
