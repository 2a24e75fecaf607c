//! `arp.api`: proxy ARP through the binary API.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use std::net::Ipv4Addr;

use shoal_arp::api::*;
use shoal_message::{InterfaceIndex, Retval};
use shoal_module::api::{Call, Dump, Request};
use shoal_testkit::{PEER, PEER_MAC, PacketBuilder, Port, Router, STACK, api};

fn router() -> (Router, Port) {
    let mut router = Router::new(STACK);
    let port = router.pg(0);
    router.set_address(&port, "10.0.0.1/24");
    router.run();
    (router, port)
}

fn proxy(table_id: u32, low: u8, hi: u8) -> ProxyArp {
    ProxyArp { table_id, low: Ipv4Addr::new(10, 0, 1, low), hi: Ipv4Addr::new(10, 0, 1, hi) }
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
fn requests_are_answered_for_others_where_the_api_says_so() {
    let (mut router, port) = router();
    let call = Call::local(router.control());
    let here = InterfaceIndex(port.index().0);
    let set = |is_add, proxy| ProxyArpAddDel { is_add, proxy }.handle(&call);
    set(true, proxy(0, 10, 20)).unwrap();
    set(true, proxy(0, 30, 40)).unwrap();
    ProxyArpIntfcEnableDisable { sw_if_index: here, enable: true }.handle(&call).unwrap();
    let ranges: Vec<_> = ProxyArpDump {}.dump(&call).map(|details| details.proxy).collect();
    assert_eq!(ranges, [proxy(0, 10, 20), proxy(0, 30, 40)]);
    let enabled: Vec<_> = ProxyArpIntfcDump {}.dump(&call).map(|details| details.sw_if_index).collect();
    assert_eq!(enabled, [here.0]);
    let ask = PacketBuilder::arp_request(PEER_MAC, PEER, Ipv4Addr::new(10, 0, 1, 15)).build();
    port.received();
    router.send(&port, &ask);
    assert_eq!(port.received().len(), 1);
    set(false, proxy(0, 10, 20)).unwrap();
    router.send(&port, &ask);
    assert!(port.received().is_empty());
    ProxyArpIntfcEnableDisable { sw_if_index: here, enable: false }.handle(&call).unwrap();
    assert_eq!(ProxyArpIntfcDump {}.dump(&call).count(), 0);
}

#[test]
fn mistakes_have_vpps_numbers() {
    let (router, _) = router();
    let call = Call::local(router.control());
    let set = |is_add, proxy| ProxyArpAddDel { is_add, proxy }.handle(&call);
    assert_eq!(set(true, proxy(77, 10, 20)), Err(Retval::NO_SUCH_FIB));
    assert_eq!(set(true, proxy(0, 20, 10)), Err(Retval::INVALID_VALUE));
    assert_eq!(set(false, proxy(0, 10, 20)), Err(Retval::NO_SUCH_ENTRY));
    let nowhere = ProxyArpIntfcEnableDisable { sw_if_index: InterfaceIndex(77), enable: true };
    assert_eq!(nowhere.handle(&call), Err(Retval::INVALID_SW_IF_INDEX));
}
