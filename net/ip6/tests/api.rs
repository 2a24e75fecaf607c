//! IPv6 on interfaces by the binary API.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use common::{MODULES, router};
use shoal_interface::Interfaces;
use shoal_ip6::api::IP;
use shoal_message::Retval;
use shoal_module::api::ApiPart;
use shoal_testkit::api::{random_bytes_do_no_harm, same_as_vpp};
use shoal_testkit::{ApiAsker, Router};

static PARTS: &[&ApiPart] = &[&IP];
const OK: Retval = Retval(0);

#[test]
fn declared_messages_are_those_of_vpp() {
    same_as_vpp(&[&IP]);
}

#[test]
fn random_bytes_are_answered() {
    let mut router = Router::new(MODULES);
    random_bytes_do_no_harm(&mut router, &[&IP], 500);
}

#[test]
fn link_local_addresses_are_chosen_and_told() {
    let (router, _) = router(1);
    let index = router.get::<Interfaces>().create_loopback(None, None).unwrap();
    let client = ApiAsker::new(router.control(), PARTS);
    let name = "sw_interface_ip6_get_link_local_address";
    assert_eq!(client.retval(name, &index.0.to_be_bytes()), Retval::IP6_NOT_ENABLED);
    assert_eq!(client.retval(name, &[0, 0, 0, 99]), Retval::INVALID_SW_IF_INDEX);
    let set = |interface: u32, address: &str| {
        let address: std::net::Ipv6Addr = address.parse().unwrap();
        let fields = [&interface.to_be_bytes()[..], &address.octets()].concat();
        client.retval("sw_interface_ip6_set_link_local_address", &fields)
    };
    assert_eq!(set(index.0, "fe80::7"), OK);
    let told = client.ask(name, &index.0.to_be_bytes()).remove(0);
    assert_eq!(told, [&[0; 4][..], &"fe80::7".parse::<std::net::Ipv6Addr>().unwrap().octets()].concat());
    assert_eq!(set(index.0, "2001:db8::7"), Retval::INVALID_VALUE);
    assert_eq!(set(99, "fe80::7"), Retval::INVALID_SW_IF_INDEX);
}
