//! Messages of addresses and tables of interfaces, both families.
#![allow(clippy::unwrap_used)] // helpers of tests

use shoal_adj::Family;
use shoal_fib::Fib;
use shoal_interface::SwIfIndex;
use shoal_ip_interface::api::interface::*;
use shoal_ip4::Ip4;
use shoal_ip4::api::SwInterfaceSetIpDirectedBroadcast;
use shoal_ip6::Ip6;
use shoal_message::{AddressWithPrefix, InterfaceIndex, Prefix, Retval};
use shoal_module::api::{Call, Request};
use shoal_testkit::{Port, Router, api};

use crate::common::router;

const NOWHERE: InterfaceIndex = InterfaceIndex(77);

#[test]
fn declared_messages_are_those_of_vpp() {
    api::same_as_vpp(&[&API, &shoal_ip4::api::INTERFACE]);
}

#[test]
fn random_bytes_do_no_harm() {
    let (mut router, _) = router(2);
    api::random_bytes_do_no_harm(&mut router, &[&API, &shoal_ip4::api::INTERFACE], 300);
}

fn index(port: &Port) -> InterfaceIndex {
    InterfaceIndex(port.index().0)
}

fn with_prefix(text: &str) -> AddressWithPrefix {
    let (address, len) = text.split_once('/').unwrap();
    AddressWithPrefix(Prefix { address: address.parse().unwrap(), len: len.parse().unwrap() })
}

fn change(call: &Call, sw_if_index: InterfaceIndex, is_add: bool, text: &str) -> Result<(), Retval> {
    let prefix = with_prefix(text);
    SwInterfaceAddDelAddress { sw_if_index, is_add, del_all: false, prefix }.handle(call)
}

fn addresses(router: &Router, port: &Port) -> Vec<String> {
    let (ip4, ip6) = (router.get::<Ip4>(), router.get::<Ip6>());
    let four = ip4.addresses(port.index()).into_iter().map(|a| a.to_string());
    four.chain(ip6.addresses(port.index()).into_iter().map(|a| a.to_string())).collect()
}

#[test]
fn addresses_come_and_go() {
    let (router, ports) = router(2);
    let (call, one) = (Call::local(router.control()), index(&ports[0]));
    for (address, other, overlapping, host) in [
        ("10.0.0.1/24", "10.0.0.2/24", "10.0.0.7/16", "224.0.0.1/24"),
        ("2001:db8::1/64", "2001:db8::2/64", "2001:db8::7/32", "ff02::1/64"),
    ] {
        change(&call, one, true, address).unwrap();
        assert_eq!(change(&call, one, true, address), Err(Retval::DUPLICATE_IF_ADDRESS));
        assert_eq!(change(&call, index(&ports[1]), true, overlapping), Err(Retval::ADDRESS_IN_USE));
        assert_eq!(change(&call, one, false, other), Err(Retval::ADDRESS_NOT_FOUND_FOR_INTERFACE));
        assert_eq!(change(&call, one, true, host), Err(Retval::INVALID_VALUE));
        assert_eq!(change(&call, NOWHERE, true, address), Err(Retval::INVALID_SW_IF_INDEX));
        assert_eq!(addresses(&router, &ports[0]), [address]);
        change(&call, one, false, address).unwrap();
        assert_eq!(addresses(&router, &ports[0]), [""; 0]);
    }
    for long in ["10.0.0.1/33", "2001:db8::1/129"] {
        assert_eq!(change(&call, one, true, long), Err(Retval::INVALID_PREFIX_LENGTH));
    }
}

#[test]
fn all_addresses_go_at_once() {
    let (router, ports) = router(1);
    let (call, one) = (Call::local(router.control()), index(&ports[0]));
    for address in ["10.0.0.1/24", "10.1.0.1/24", "2001:db8::1/64"] {
        change(&call, one, true, address).unwrap();
    }
    let (is_add, del_all, prefix) = (false, true, with_prefix("0.0.0.0/0"));
    SwInterfaceAddDelAddress { sw_if_index: one, is_add, del_all, prefix }.handle(&call).unwrap();
    assert_eq!(addresses(&router, &ports[0]), [""; 0]);
    let nowhere = SwInterfaceAddDelAddress { sw_if_index: NOWHERE, is_add, del_all, prefix };
    assert_eq!(nowhere.handle(&call), Err(Retval::INVALID_SW_IF_INDEX));
}

#[test]
fn a_replacement_leaves_what_is_given_again() {
    let (router, ports) = router(2);
    let call = Call::local(router.control());
    let all = ["10.0.0.1/24", "10.1.0.1/24", "2001:db8::1/64", "2001:db8:1::1/64"];
    for address in all {
        change(&call, index(&ports[0]), true, address).unwrap();
    }
    SwInterfaceAddressReplaceBegin {}.handle(&call).unwrap();
    for address in ["10.1.0.1/24", "2001:db8:1::1/64"] {
        change(&call, index(&ports[0]), true, address).unwrap();
        let twice = change(&call, index(&ports[0]), true, address);
        assert_eq!(twice, Err(Retval::DUPLICATE_IF_ADDRESS), "only once it stands for the old one");
    }
    change(&call, index(&ports[1]), true, "10.9.0.1/24").unwrap();
    // Gone before the end, and given again as a new one.
    change(&call, index(&ports[0]), false, "10.0.0.1/24").unwrap();
    SwInterfaceAddressReplaceEnd {}.handle(&call).unwrap();
    assert_eq!(addresses(&router, &ports[0]), ["10.1.0.1/24", "2001:db8:1::1/64"]);
    assert_eq!(addresses(&router, &ports[1]), ["10.9.0.1/24"]);
    SwInterfaceAddressReplaceEnd {}.handle(&call).unwrap();
    assert_eq!(addresses(&router, &ports[1]), ["10.9.0.1/24"], "an end without a beginning does nothing");
}

#[test]
fn a_replacement_forgets_what_is_deleted_meanwhile() {
    let (router, ports) = router(1);
    let (call, one) = (Call::local(router.control()), index(&ports[0]));
    for address in ["10.0.0.1/24", "2001:db8::1/64"] {
        change(&call, one, true, address).unwrap();
        SwInterfaceAddressReplaceBegin {}.handle(&call).unwrap();
        change(&call, one, false, address).unwrap();
        change(&call, one, true, address).unwrap();
        assert_eq!(addresses(&router, &ports[0]).last().unwrap(), address);
    }
    SwInterfaceAddressReplaceEnd {}.handle(&call).unwrap();
    assert!(addresses(&router, &ports[0]).contains(&"2001:db8::1/64".to_owned()));
}

#[test]
fn tables_are_set_and_asked_for() {
    let (router, ports) = router(1);
    let (call, one) = (Call::local(router.control()), index(&ports[0]));
    for (family, is_ipv6, address) in
        [(Family::Ip4, false, "10.0.0.1/24"), (Family::Ip6, true, "2001:db8::1/64")]
    {
        router.get::<Fib>().add_table(family, 7, None).unwrap();
        let set = |sw_if_index, vrf_id| SwInterfaceSetTable { sw_if_index, is_ipv6, vrf_id }.handle(&call);
        let get = |sw_if_index| SwInterfaceGetTable { sw_if_index, is_ipv6 }.handle(&call).map(|r| r.vrf_id);
        assert_eq!(get(one), Ok(0));
        set(one, 7).unwrap();
        assert_eq!(get(one), Ok(7));
        assert_eq!(set(one, 8), Err(Retval::NO_SUCH_FIB));
        change(&call, one, true, address).unwrap();
        assert_eq!(set(one, 0), Err(Retval::ADDRESS_FOUND_FOR_INTERFACE));
        assert_eq!(set(NOWHERE, 7), Err(Retval::INVALID_SW_IF_INDEX));
        assert_eq!(get(NOWHERE), Err(Retval::INVALID_SW_IF_INDEX));
    }
}

#[test]
fn an_interface_borrows_addresses_of_both_families() {
    let (router, ports) = router(3);
    let call = Call::local(router.control());
    let borrow = |from, to, is_add| {
        SwInterfaceSetUnnumbered { sw_if_index: from, unnumbered_sw_if_index: to, is_add }.handle(&call)
    };
    let (lender, borrower, other) = (index(&ports[0]), index(&ports[1]), index(&ports[2]));
    change(&call, lender, true, "10.0.0.1/24").unwrap();
    change(&call, lender, true, "2001:db8::1/64").unwrap();
    borrow(lender, borrower, true).unwrap();
    let lends = || {
        (
            router.get::<Ip4>().lender(SwIfIndex(borrower.0)),
            router.get::<Ip6>().on(SwIfIndex(borrower.0)).borrows,
        )
    };
    assert_eq!(lends(), (Some(SwIfIndex(lender.0)), Some(SwIfIndex(lender.0))));
    // Addresses of its own do not hinder it.
    change(&call, borrower, true, "10.5.0.1/24").unwrap();
    assert_eq!(borrow(borrower, other, true), Err(Retval::UNEXPECTED_INTF_STATE));
    assert_eq!(borrow(NOWHERE, other, true), Err(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(borrow(lender, NOWHERE, true), Err(Retval::INVALID_SW_IF_INDEX_2));
    borrow(lender, borrower, false).unwrap();
    assert_eq!(lends(), (None, None));
    borrow(lender, borrower, false).unwrap();
    // IPv6 alone cannot borrow, since one borrows from it: IPv4 does not either.
    router.get::<Ip6>().set_unnumbered(SwIfIndex(borrower.0), Some(SwIfIndex(other.0))).unwrap();
    assert_eq!(borrow(lender, other, true), Err(Retval::UNEXPECTED_INTF_STATE));
    assert_eq!(router.get::<Ip4>().lender(SwIfIndex(other.0)), None);
}

#[test]
fn directed_broadcasts_are_switched_on() {
    let (router, ports) = router(1);
    let call = Call::local(router.control());
    let set = |sw_if_index| SwInterfaceSetIpDirectedBroadcast { sw_if_index, enable: true }.handle(&call);
    set(index(&ports[0])).unwrap();
    assert_eq!(set(NOWHERE), Err(Retval::INVALID_SW_IF_INDEX));
}
