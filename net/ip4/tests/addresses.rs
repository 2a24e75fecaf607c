//! Addresses of interfaces: the routes they bring, what they may not be, what stays of them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

#[path = "../../fib/tests/router/mod.rs"]
mod router;

use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::rc::Rc;

use router::{Router, router};
use shoal_fib::{FibIndex, Source};
use shoal_infra::Reader;
use shoal_interface::{IfFlags, SwIfIndex};
use shoal_ip::Addresses;
use shoal_ip4::{AddressEvent, Ip4};
use shoal_wire::Ip4Prefix;

const ETH1: SwIfIndex = SwIfIndex(1);
const ETH2: SwIfIndex = SwIfIndex(2);

fn prefix(text: &str) -> Ip4Prefix {
    text.parse().unwrap()
}

fn ip(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

const MAIN: FibIndex = FibIndex::DEFAULT;

fn with_ip4() -> (Router, Rc<Ip4>) {
    let router = router(2);
    let ip4 = Ip4::new(&router.control).unwrap();
    router.control.put_rc(Rc::clone(&ip4));
    (router, ip4)
}

fn primary(ip4: &Ip4, interface: SwIfIndex) -> u32 {
    let reader = Reader::register();
    ip4.table().primary(interface, reader.guard())
}

#[test]
fn an_address_brings_its_network_itself_and_two_drops() {
    let (router, ip4) = with_ip4();
    let before = router.locks();
    ip4.add_address(ETH1, prefix("192.0.2.1/24")).unwrap();
    assert_eq!(router.way("192.0.2.77"), "Glean 1 192.0.2.1");
    assert_eq!(router.way("192.0.2.1"), "Local - 0.0.0.0");
    assert_eq!(router.way("192.0.2.0"), "Drop - 0.0.0.0");
    assert_eq!(router.way("192.0.2.255"), "Drop - 0.0.0.0");
    assert!(router.interfaces.data(ETH1).unwrap().flags().has(IfFlags::IP4));
    assert_eq!(primary(&ip4, ETH1), ip("192.0.2.1").to_bits());
    assert_eq!(router.interfaces.addresses(ETH1), ["192.0.2.1/24"]);
    ip4.del_address(ETH1, prefix("192.0.2.1/24")).unwrap();
    assert!(!router.interfaces.data(ETH1).unwrap().flags().has(IfFlags::IP4));
    assert_eq!((primary(&ip4, ETH1), router.locks()), (0, before));
    assert_eq!(router.fib.entries(shoal_fib::Family::Ip4, MAIN).unwrap().len(), 5);
}

/// RFC 3021 2.2: both addresses of a network of two are hosts'.
#[test]
fn networks_of_one_or_two_addresses_have_no_drops() {
    let (router, ip4) = with_ip4();
    ip4.add_address(ETH1, prefix("192.0.2.0/31")).unwrap();
    ip4.add_address(ETH2, prefix("198.51.100.9/32")).unwrap();
    assert_eq!(router.way("192.0.2.0"), "Local - 0.0.0.0");
    assert_eq!(router.way("192.0.2.1"), "Glean 1 192.0.2.0");
    assert_eq!(router.way("198.51.100.9"), "Local - 0.0.0.0");
    assert_eq!(router.fib.entries(shoal_fib::Family::Ip4, MAIN).unwrap().len(), 5 + 2 + 1);
}

/// RFC 2644: off unless the operator wants it.
#[test]
fn directed_broadcasts_are_dropped_unless_switched_on() {
    let (router, ip4) = with_ip4();
    ip4.add_address(ETH1, prefix("192.0.2.1/24")).unwrap();
    let any = router.control.graph().unwrap().node("drop").unwrap();
    router.adjacencies.set_rewrite_node(shoal_adj::Link::Ip4, any);
    ip4.set_directed_broadcast(ETH1, true).unwrap();
    assert_eq!(router.way("192.0.2.255"), "Rewrite 1 0.0.0.0");
    ip4.set_directed_broadcast(ETH1, false).unwrap();
    assert_eq!(router.way("192.0.2.255"), "Drop - 0.0.0.0");
}

#[test]
fn a_second_address_of_the_network_keeps_it_when_the_first_goes() {
    let (router, ip4) = with_ip4();
    ip4.add_address(ETH1, prefix("192.0.2.1/24")).unwrap();
    ip4.add_address(ETH1, prefix("192.0.2.2/24")).unwrap();
    ip4.add_address(ETH1, prefix("198.51.100.1/24")).unwrap();
    assert_eq!(ip4.source_for(ip("192.0.2.9"), MAIN), Some(ip("192.0.2.1")));
    assert_eq!(ip4.source_for(ip("198.51.100.9"), MAIN), Some(ip("198.51.100.1")));
    let ways = ["192.0.2.8", "192.0.2.9"].map(|next_hop| shoal_fib::Path::next_hop(ip(next_hop), ETH1));
    router.fib.add(MAIN, prefix("10.0.0.0/8"), Source::Cli, &ways).unwrap();
    assert_eq!(ip4.source_for(ip("10.1.1.1"), MAIN), Some(ip("192.0.2.1")), "over several ways");
    router.fib.remove(MAIN, prefix("10.0.0.0/8"), Source::Cli).unwrap();
    assert_eq!(ip4.source_for(ip("192.0.2.2"), MAIN), Some(ip("192.0.2.2")));
    assert_eq!(ip4.source_for(ip("203.0.113.1"), MAIN), None);
    ip4.del_address(ETH1, prefix("192.0.2.1/24")).unwrap();
    assert_eq!(router.way("192.0.2.77"), "Glean 1 192.0.2.2");
    assert_eq!(router.way("192.0.2.1"), "Glean 1 192.0.2.2");
    assert_eq!(ip4.primary(ETH1), Some(ip("192.0.2.2")));
    assert_eq!(ip4.del_all(ETH1), Ok(2));
    assert_eq!(router.fib.entries(shoal_fib::Family::Ip4, MAIN).unwrap().len(), 5);
}

#[test]
fn addresses_that_are_replaced_may_change_places() {
    let (router, ip4) = with_ip4();
    let (one, two) = (prefix("10.0.1.1/24"), prefix("10.0.2.1/24"));
    ip4.add_address(ETH1, one).unwrap();
    ip4.add_address(ETH2, two).unwrap();
    ip4.replace_begin();
    ip4.add_address(ETH1, two).unwrap();
    ip4.add_address(ETH2, one).unwrap();
    // What was given again stands in the way as ever.
    assert!(ip4.add_address(ETH1, one).is_err());
    ip4.replace_end().unwrap();
    assert_eq!((ip4.addresses(ETH1), ip4.addresses(ETH2)), (vec![two], vec![one]));
    assert_eq!(router.way("10.0.1.9"), "Glean 2 10.0.1.1");
    assert_eq!(router.way("10.0.2.9"), "Glean 1 10.0.2.1");
}

#[test]
fn refused_addresses_are_named_and_change_nothing() {
    let (router, ip4) = with_ip4();
    ip4.add_address(ETH1, prefix("192.0.2.1/24")).unwrap();
    let locks = router.locks();
    let refused = |interface, text: &str| ip4.add_address(interface, prefix(text)).unwrap_err().to_string();
    assert_eq!(refused(ETH1, "192.0.2.1/24"), "eth1 has 192.0.2.1/24 already");
    assert_eq!(refused(ETH2, "192.0.2.2/24"), "192.0.2.2/24 overlaps 192.0.2.1/24 of eth1 in table 0");
    assert_eq!(refused(ETH2, "192.0.2.129/25"), "192.0.2.129/25 overlaps 192.0.2.1/24 of eth1 in table 0");
    assert_eq!(refused(ETH1, "192.0.0.1/16"), "192.0.0.1/16 overlaps 192.0.2.1/24 of eth1 in table 0");
    assert_eq!(
        refused(ETH2, "10.0.0.255/24"),
        "10.0.0.255/24 is not the address of a host: it is the network's broadcast address, nearest 10.0.0.254/24"
    );
    assert_eq!(
        refused(ETH2, "10.0.0.0/24"),
        "10.0.0.0/24 is not the address of a host: it is the network's own, nearest 10.0.0.1/24"
    );
    assert_eq!(refused(ETH2, "224.0.0.1/24"), "224.0.0.1/24 is not the address of a host: it is a group's");
    assert_eq!(refused(SwIfIndex(9), "10.0.0.1/24"), "no interface with sw_if_index 9");
    let gone = ip4.del_address(ETH1, prefix("192.0.2.9/24")).unwrap_err().to_string();
    assert_eq!(gone, "eth1 does not have 192.0.2.9/24, nearest 192.0.2.1/24");
    assert_eq!(router.locks(), locks);
}

#[test]
fn an_interface_s_addresses_are_in_its_table() {
    let (router, ip4) = with_ip4();
    let red = router.fib.add_table(shoal_fib::Family::Ip4, 10, None).unwrap();
    ip4.set_table(ETH1, 10).unwrap();
    ip4.add_address(ETH1, prefix("192.0.2.1/24")).unwrap();
    ip4.add_address(ETH2, prefix("192.0.2.1/24")).unwrap();
    assert_eq!(router.way_in(red, "192.0.2.9"), "Glean 1 192.0.2.1");
    assert_eq!(router.way("192.0.2.9"), "Glean 2 192.0.2.1");
    assert_eq!(router.interfaces.data(ETH1).unwrap().fib_ip4, red.0);
    assert_eq!(router.interfaces.addresses(ETH1), ["192.0.2.1/24 ip4 table-id 10 fib-idx 1"]);
    assert_eq!(
        ip4.set_table(ETH1, 0).unwrap_err().to_string(),
        "eth1 has addresses in table 10, remove them first: 192.0.2.1/24"
    );
    assert_eq!(ip4.set_table(ETH1, 11).unwrap_err().to_string(), "no table 11, nearest 10");
    assert_eq!(
        router.fib.del_table(shoal_fib::Family::Ip4, 10).unwrap_err().to_string(),
        "table 10 is in use: interface:1"
    );
    ip4.del_all(ETH1).unwrap();
    ip4.set_table(ETH1, 0).unwrap();
    router.fib.del_table(shoal_fib::Family::Ip4, 10).unwrap();
}

#[test]
fn a_deleted_interface_leaves_nothing() {
    let (router, ip4) = with_ip4();
    let before = router.locks();
    let told: Rc<RefCell<Vec<AddressEvent>>> = Rc::default();
    let heard = Rc::clone(&told);
    ip4.subscribe(move |_, event| heard.borrow_mut().push(event));
    let red = router.fib.add_table(shoal_fib::Family::Ip4, 10, None).unwrap();
    ip4.set_table(ETH1, 10).unwrap();
    ip4.add_address(ETH1, prefix("192.0.2.1/24")).unwrap();
    router.interfaces.delete(ETH1).unwrap();
    let address = prefix("192.0.2.1/24");
    assert_eq!(*told.borrow(), [AddressEvent::Added(ETH1, address), AddressEvent::Removed(ETH1, address)]);
    assert_eq!(router.fib.entries(shoal_fib::Family::Ip4, red).unwrap().len(), 5);
    assert!(ip4.addresses(ETH1).is_empty() && primary(&ip4, ETH1) == 0);
    router.fib.del_table(shoal_fib::Family::Ip4, 10).unwrap();
    assert_eq!(router.locks(), before);
    assert_eq!(router.ethernet(1), ETH1);
    ip4.add_address(ETH1, address).unwrap();
    assert_eq!(router.way("192.0.2.9"), "Glean 1 192.0.2.1");
}

/// As VPP: an address gives routes while the operator has its interface up; when the link is lost they stay.
#[test]
fn routes_are_there_while_the_interface_is_up() {
    let (router, ip4) = with_ip4();
    ip4.add_address(ETH1, prefix("192.0.2.1/24")).unwrap();
    router.interfaces.set_link(ETH1, false).unwrap();
    assert_eq!(router.way("192.0.2.9"), "Glean 1 192.0.2.1");
    assert_eq!(router.fib.entry(MAIN, prefix("192.0.2.0/24")).unwrap().lists[0].source, Source::Interface);
    router.interfaces.set_admin(ETH1, false).unwrap();
    assert_eq!((router.way("192.0.2.9"), router.way("192.0.2.1")), ("None".into(), "None".into()));
    ip4.add_address(ETH1, prefix("198.51.100.1/24")).unwrap();
    assert_eq!(router.way("198.51.100.1"), "None");
    router.interfaces.set_admin(ETH1, true).unwrap();
    assert_eq!(router.way("192.0.2.9"), "Glean 1 192.0.2.1");
    assert_eq!(router.way("198.51.100.9"), "Glean 1 198.51.100.1");
}
