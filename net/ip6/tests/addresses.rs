//! Addresses of interfaces: the routes and groups they bring, what they may not be, what stays of them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

#[path = "../../fib/tests/router/mod.rs"]
mod router;

use std::cell::RefCell;
use std::net::Ipv6Addr;
use std::rc::Rc;

use router::{Router, router};
use shoal_fib::{Family, FibIndex};
use shoal_infra::Reader;
use shoal_interface::{IfFlags, SwIfIndex};
use shoal_ip::Addresses;
use shoal_ip6::{AddressEvent, Ip6};
use shoal_wire::{Ip6Prefix, MacAddress};

const ETH1: SwIfIndex = SwIfIndex(1);
const ETH2: SwIfIndex = SwIfIndex(2);
const MAIN: FibIndex = FibIndex::DEFAULT;

fn with_ip6() -> (Router, Rc<Ip6>) {
    let router = router(2);
    let ip6 = Ip6::new(&router.control).unwrap();
    router.control.put_rc(Rc::clone(&ip6));
    (router, ip6)
}

fn prefix(text: &str) -> Ip6Prefix {
    text.parse().unwrap()
}

fn ip(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn entries(router: &Router, fib: FibIndex) -> usize {
    router.fib.entries(Family::Ip6, fib).unwrap().len()
}

/// Whether packets to an address of the link are for the router.
fn is_ours(router: &Router, ip6: &Ip6, interface: SwIfIndex, address: &str) -> bool {
    let reader = Reader::register();
    let found = ip6.link_table().find(interface, ip(address).to_bits(), reader.guard());
    found.is_some_and(|adj| router.adjacencies.get(adj).kind() == shoal_adj::AdjKind::Local)
}

#[test]
fn addresses_that_are_replaced_may_change_places() {
    let (router, ip6) = with_ip6();
    let (one, two) = (prefix("2001:db8:1::1/64"), prefix("2001:db8:2::1/64"));
    ip6.add_address(ETH1, one).unwrap();
    ip6.add_address(ETH2, two).unwrap();
    ip6.replace_begin();
    ip6.add_address(ETH1, two).unwrap();
    ip6.add_address(ETH2, one).unwrap();
    // What was given again stands in the way as ever.
    assert!(ip6.add_address(ETH1, one).is_err());
    ip6.replace_end().unwrap();
    assert_eq!((ip6.addresses(ETH1), ip6.addresses(ETH2)), (vec![two], vec![one]));
    assert_eq!(router.way("2001:db8:1::9"), "Glean 2 2001:db8:1::1");
    assert_eq!(router.way("2001:db8:2::9"), "Glean 1 2001:db8:2::1");
}

#[test]
fn an_address_brings_its_network_itself_and_the_routers_anycast() {
    let (router, ip6) = with_ip6();
    let (before, routes) = (router.locks(), entries(&router, MAIN));
    ip6.add_address(ETH1, prefix("2001:db8::1/64")).unwrap();
    assert_eq!(router.way("2001:db8::77"), "Glean 1 2001:db8::1");
    assert_eq!(router.way("2001:db8::1"), "Local - 0.0.0.0");
    assert_eq!(router.way("2001:db8::"), "Local - 0.0.0.0");
    assert!(router.interfaces.data(ETH1).unwrap().flags().has(IfFlags::IP6));
    assert_eq!(router.interfaces.addresses(ETH1), ["2001:db8::1/64"]);
    ip6.del_address(ETH1, prefix("2001:db8::1/64")).unwrap();
    assert!(!router.interfaces.data(ETH1).unwrap().flags().has(IfFlags::IP6));
    assert_eq!((entries(&router, MAIN), router.locks()), (routes, before));
}

/// RFC 6164, 5.1: both addresses of a network between two routers are theirs.
#[test]
fn networks_of_one_or_two_addresses_have_no_anycast() {
    let (router, ip6) = with_ip6();
    ip6.add_address(ETH1, prefix("2001:db8::1/127")).unwrap();
    ip6.add_address(ETH2, prefix("2001:db8:9::9/128")).unwrap();
    assert_eq!(router.way("2001:db8::"), "Glean 1 2001:db8::1");
    assert_eq!(router.way("2001:db8:9::9"), "Local - 0.0.0.0");
}

/// RFC 4291, 2.8: what a router is called on its link.
#[test]
fn a_link_has_the_routers_link_local_address_and_groups() {
    let (router, ip6) = with_ip6();
    ip6.enable(ETH1, true).unwrap();
    let own = ip6.link_local(ETH1).unwrap();
    assert_eq!(own, shoal_wire::ip6_address::link_local_of(router.interfaces.data(ETH1).unwrap().mac()));
    for address in ["ff02::1", "ff02::2", "ff05::2", "ff02::16", &own.to_string()] {
        assert!(is_ours(&router, &ip6, ETH1, address), "{address}");
        assert!(!is_ours(&router, &ip6, ETH2, address), "{address}");
    }
    ip6.add_address(ETH1, prefix("2001:db8::12:3456/64")).unwrap();
    assert!(is_ours(&router, &ip6, ETH1, "ff02::1:ff12:3456"));
    assert!(!is_ours(&router, &ip6, ETH1, "ff02::1:ff12:3457") && !is_ours(&router, &ip6, ETH1, "fe80::9"));
    ip6.del_all(ETH1).unwrap();
    assert!(!is_ours(&router, &ip6, ETH1, "ff02::1:ff12:3456") && is_ours(&router, &ip6, ETH1, "ff02::1"));
    ip6.enable(ETH1, false).unwrap();
    assert!(!is_ours(&router, &ip6, ETH1, "ff02::1") && ip6.link_local(ETH1).is_none());
}

#[test]
fn a_link_local_address_may_be_chosen_and_follows_the_mac_otherwise() {
    let (router, ip6) = with_ip6();
    ip6.enable(ETH1, true).unwrap();
    router.interfaces.set_mac(ETH1, MacAddress([2, 0, 0, 0, 0, 0x77])).unwrap();
    assert_eq!(ip6.link_local(ETH1), Some(ip("fe80::ff:fe00:77")));
    ip6.set_link_local(ETH1, ip("fe80::1")).unwrap();
    router.interfaces.set_mac(ETH1, MacAddress([2, 0, 0, 0, 0, 0x78])).unwrap();
    assert_eq!(ip6.link_local(ETH1), Some(ip("fe80::1")));
    assert!(is_ours(&router, &ip6, ETH1, "fe80::1") && !is_ours(&router, &ip6, ETH1, "fe80::ff:fe00:77"));
    ip6.add_address(ETH1, prefix("fe80::2/10")).unwrap();
    assert_eq!(ip6.link_local(ETH1), Some(ip("fe80::2")));
    ip6.del_address(ETH1, prefix("fe80::2/10")).unwrap();
    assert_eq!(ip6.link_local(ETH1), Some(ip("fe80::ff:fe00:78")));
}

#[test]
fn answers_leave_from_an_address_of_the_interface_or_a_borrowed_one() {
    let (_, ip6) = with_ip6();
    let from = |to: &str, interface| {
        let reader = Reader::register();
        ip6.table().towards(ip(to), interface, reader.guard())
    };
    ip6.enable(ETH1, true).unwrap();
    assert_eq!(from("2001:db8:5::5", ETH1), ip6.link_local(ETH1));
    ip6.add_address(ETH2, prefix("2001:db8:2::1/64")).unwrap();
    assert_eq!(from("2001:db8:5::5", ETH1), Some(ip("2001:db8:2::1")));
    ip6.add_address(ETH1, prefix("2001:db8:1::1/64")).unwrap();
    assert_eq!(from("2001:db8:5::5", ETH1), Some(ip("2001:db8:1::1")));
    assert_eq!(from("fe80::5", ETH1), ip6.link_local(ETH1));
    assert_eq!(ip6.source_for(ip("2001:db8:2::9"), MAIN), Some(ip("2001:db8:2::1")));
    assert_eq!(ip6.source_for(ip("2001:db8:2::1"), MAIN), Some(ip("2001:db8:2::1")));
    assert_eq!(ip6.source_for(ip("2001:db8:3::1"), MAIN), None);
}

#[test]
fn the_address_of_a_group_is_taken_but_never_a_source() {
    let (_router, ip6) = with_ip6();
    ip6.add_address(ETH1, prefix("ff05::7/128")).unwrap();
    ip6.add_address(ETH1, prefix("2001:db8::1/64")).unwrap();
    assert_eq!(ip6.source_for(ip("2001:db8::9"), MAIN), Some(ip("2001:db8::1")));
    ip6.del_address(ETH1, prefix("ff05::7/128")).unwrap();
}

#[test]
fn refused_addresses_are_named_and_change_nothing() {
    let (router, ip6) = with_ip6();
    ip6.add_address(ETH1, prefix("2001:db8::1/64")).unwrap();
    let locks = router.locks();
    let refused = |interface, text: &str| ip6.add_address(interface, prefix(text)).unwrap_err().to_string();
    assert_eq!(refused(ETH1, "2001:db8::1/64"), "eth1 has 2001:db8::1/64 already");
    assert_eq!(refused(ETH2, "2001:db8::2/64"), "2001:db8::2/64 overlaps 2001:db8::1/64 of eth1 in table 0");
    assert_eq!(
        refused(ETH1, "2001:db8::1:1/48"),
        "2001:db8::1:1/48 overlaps 2001:db8::1/64 of eth1 in table 0"
    );
    for (address, why) in [
        ("ff02::1/64", "a group has no network, use /128"),
        ("::/64", "it stands for no address"),
        ("2001:db8:1::1/0", "its network would be everything"),
    ] {
        assert_eq!(refused(ETH2, address), format!("{address} is not the address of a host: {why}"));
    }
    assert_eq!(refused(ETH1, "fe80::/10"), "fe80:: is no link-local address of a host, such as fe80::1");
    assert_eq!(refused(SwIfIndex(9), "2001:db8:1::1/64"), "no interface with sw_if_index 9");
    let gone = ip6.del_address(ETH1, prefix("2001:db8::9/64")).unwrap_err().to_string();
    assert_eq!(gone, "eth1 does not have 2001:db8::9/64, nearest 2001:db8::1/64");
    let used = ip6.enable(ETH1, false).unwrap_err().to_string();
    assert_eq!(used, "eth1 has addresses, remove them first: 2001:db8::1/64");
    assert_eq!(router.locks(), locks);
}

#[test]
fn an_interface_s_addresses_are_in_its_table() {
    let (router, ip6) = with_ip6();
    let red = router.fib.add_table(Family::Ip6, 10, None).unwrap();
    ip6.set_table(ETH1, 10).unwrap();
    ip6.add_address(ETH1, prefix("2001:db8::1/64")).unwrap();
    ip6.add_address(ETH2, prefix("2001:db8::1/64")).unwrap();
    assert_eq!(router.way_in(red, "2001:db8::9"), "Glean 1 2001:db8::1");
    assert_eq!(router.way("2001:db8::9"), "Glean 2 2001:db8::1");
    assert_eq!(router.interfaces.data(ETH1).unwrap().fib_ip6, red.0);
    assert_eq!(
        ip6.set_table(ETH1, 0).unwrap_err().to_string(),
        "eth1 has addresses in table 10, remove them first: 2001:db8::1/64"
    );
    assert!(router.fib.del_table(Family::Ip6, 10).is_err());
    ip6.del_all(ETH1).unwrap();
    ip6.set_table(ETH1, 0).unwrap();
    router.fib.del_table(Family::Ip6, 10).unwrap();
}

#[test]
fn a_deleted_interface_leaves_nothing() {
    let (router, ip6) = with_ip6();
    let (before, routes) = (router.locks(), entries(&router, MAIN));
    let told: Rc<RefCell<Vec<AddressEvent>>> = Rc::default();
    let heard = Rc::clone(&told);
    ip6.subscribe(move |_, event| heard.borrow_mut().push(event));
    let address = prefix("2001:db8::1/64");
    ip6.add_address(ETH1, address).unwrap();
    let own = Ip6Prefix::host(ip6.link_local(ETH1).unwrap());
    ip6.set_link_neighbour(ETH1, ip("fe80::9")).unwrap();
    router.interfaces.delete(ETH1).unwrap();
    let all = [own, address];
    let came = all.map(|a| AddressEvent::Added(ETH1, a));
    let went = all.map(|a| AddressEvent::Removed(ETH1, a));
    assert_eq!(*told.borrow(), [came, went].concat());
    assert_eq!((entries(&router, MAIN), router.locks()), (routes, before));
    assert!(ip6.addresses(ETH1).is_empty() && ip6.groups(ETH1).is_empty());
}
