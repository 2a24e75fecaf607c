//! Addresses of interfaces, by the binary API.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use shoal_interface::Interfaces;
use shoal_ip_interface::api::IP;
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_message::Retval;
use shoal_module::api::ApiPart;
use shoal_testkit::ApiAsker;
use shoal_testkit::api::{random_bytes_do_no_harm, same_as_vpp};

use crate::common::router;

static PARTS: &[&ApiPart] = &[&IP, &shoal_ip4::api::IP, &shoal_ip6::api::IP];
const OK: Retval = Retval(0);
const ALL: [u8; 4] = [0xff; 4];

#[test]
fn declared_messages_are_those_of_vpp() {
    same_as_vpp(PARTS);
}

#[test]
fn random_bytes_are_answered() {
    let (mut router, _) = router(0);
    random_bytes_do_no_harm(&mut router, PARTS, 500);
}

#[test]
fn addresses_are_told_by_interface_and_family() {
    let (router, ports) = router(2);
    let index = ports[0].index();
    let (ip4, ip6) = (router.get::<Ip4>(), router.get::<Ip6>());
    let (had4, had6) = (ip4.addresses(index).len(), ip6.addresses(index).len());
    ip4.add_address(index, "172.16.9.1/24".parse().unwrap()).unwrap();
    ip6.add_address(index, "2001:db8:99::1/64".parse().unwrap()).unwrap();
    let client = ApiAsker::new(router.control(), PARTS);
    let dump = |is_ip6: u8| client.ask("ip_address_dump", &[&index.0.to_be_bytes()[..], &[is_ip6]].concat());
    let rows = dump(0);
    assert_eq!(rows.len(), had4 + 1);
    let mut wanted = index.0.to_be_bytes().to_vec();
    wanted.extend([0, 172, 16, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 24]);
    assert_eq!(rows.last(), Some(&wanted));
    let rows = dump(1);
    assert_eq!(rows.len(), had6 + 1);
    assert_eq!(rows.last().unwrap()[4..9], [1, 0x20, 0x01, 0x0d, 0xb8]);
    assert_eq!(client.ask("ip_address_dump", &[0, 0, 0, 99, 0]), Vec::<Vec<u8>>::new());
    for is_ip6 in [0u8, 1] {
        let rows = client.ask("ip_dump", &[is_ip6]);
        assert!(rows.contains(&[&index.0.to_be_bytes()[..], &[is_ip6]].concat()), "{rows:?}");
    }
}

#[test]
fn a_family_runs_on_an_interface_without_an_address() {
    let (router, _) = router(1);
    let interfaces = router.get::<Interfaces>();
    let (ip4, ip6) = (router.get::<Ip4>(), router.get::<Ip6>());
    let index = interfaces.create_loopback(None, None).unwrap();
    let client = ApiAsker::new(router.control(), PARTS);
    let set = |name: &str, on: u8| client.retval(name, &[&index.0.to_be_bytes()[..], &[on]].concat());
    let runs = |is_ip6: u8| {
        client.ask("ip_dump", &[is_ip6]).contains(&[&index.0.to_be_bytes()[..], &[is_ip6]].concat())
    };
    assert_eq!(set("sw_interface_ip6_enable_disable", 0), Retval::IP6_NOT_ENABLED);
    assert_eq!(set("sw_interface_ip6_enable_disable", 1), OK);
    assert_eq!(set("sw_interface_ip6_enable_disable", 1), Retval::VALUE_EXIST);
    assert!(runs(1) && !runs(0) && ip6.link_local(index).is_some());
    assert_eq!(set("sw_interface_ip6_enable_disable", 0), OK);
    assert!(!runs(1) && ip6.link_local(index).is_none());
    for _ in 0..2 {
        assert_eq!(set("sw_interface_ip4_enable_disable", 1), OK);
        assert!(runs(0));
    }
    // An address that comes and goes changes nothing of that.
    let address = "172.16.9.1/24".parse().unwrap();
    ip4.add_address(index, address).unwrap();
    ip4.del_address(index, address).unwrap();
    assert!(runs(0));
    assert_eq!(set("sw_interface_ip4_enable_disable", 0), OK);
    assert!(!runs(0));
    for name in ["sw_interface_ip4_enable_disable", "sw_interface_ip6_enable_disable"] {
        assert_eq!(client.retval(name, &[0, 0, 0, 99, 1]), Retval::INVALID_SW_IF_INDEX);
    }
}

#[test]
fn who_borrows_addresses_is_told() {
    let (router, ports) = router(1);
    let interfaces = router.get::<Interfaces>();
    let (one, other) =
        (interfaces.create_loopback(None, None).unwrap(), interfaces.create_loopback(None, None).unwrap());
    let lender = ports[0].index();
    let client = ApiAsker::new(router.control(), PARTS);
    assert_eq!(client.ask("ip_unnumbered_dump", &ALL), Vec::<Vec<u8>>::new());
    router.get::<Ip4>().set_unnumbered(one, Some(lender)).unwrap();
    router.get::<Ip6>().set_unnumbered(other, Some(lender)).unwrap();
    let row = |i: u32| [i.to_be_bytes(), lender.0.to_be_bytes()].concat();
    assert_eq!(client.ask("ip_unnumbered_dump", &ALL), [row(one.0), row(other.0)]);
    assert_eq!(client.ask("ip_unnumbered_dump", &other.0.to_be_bytes()), [row(other.0)]);
    assert_eq!(client.ask("ip_unnumbered_dump", &[0, 0, 0, 99]), Vec::<Vec<u8>>::new());
}
