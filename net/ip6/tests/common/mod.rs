//! A router with the whole stack, toy features, and neighbours that a test sets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests
#![allow(dead_code, unused_imports)] // each test file uses its part

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

use shoal_adj::{Adj, AdjKind, Adjacencies, Family};
use shoal_buffer::SwIfIndex;
use shoal_fib::{Fib, FibIndex, Path, Source, Via};
use shoal_graph::NodeIndex;
use shoal_icmp::Icmp6;
use shoal_icmp::limiter::Rate;
use shoal_interface::Interfaces;
use shoal_ip6::{Ip6, UNICAST_ARC};
use shoal_module::{Control, InitError, Module};
pub use shoal_testkit::toy::{DROPPED_BYTE, TOY_NAMES, Toy};
use shoal_testkit::toy::{ToyArcs, add_toys};
use shoal_testkit::two_hosts::TwoHosts;
pub use shoal_testkit::two_hosts::station;
use shoal_testkit::{Config, PacketBuilder, Port, Router};
pub use shoal_testkit::{HAND, InjectedPacket, PacketInjector};
use shoal_wire::{
    EthernetHeader, FromBytes, Icmp6Error, Icmp6Type, IntoBytes, Ip6Header, Ip6Prefix, MacAddress,
};

/// The stack, and the toys.
pub const MODULES: &[&Module] = &[
    &shoal_interface::MODULE,
    &shoal_adj::MODULE,
    &shoal_fib::MODULE,
    &shoal_ethernet::MODULE,
    &shoal_ip4::MODULE,
    &shoal_ip6::MODULE,
    &shoal_arp::MODULE,
    &shoal_icmp::MODULE,
    &TOYS,
    &shoal_pg::MODULE,
];

/// Features: `toy-first` and `toy-second` on the input arc, `toy-out` on the output arc, and one on each other arc.
pub static TOYS: Module = Module { name: "toys", init: init_toys, ..Module::NONE };

fn init_toys(control: &Rc<Control>) -> Result<(), InitError> {
    let arcs = ToyArcs {
        unicast: UNICAST_ARC,
        multicast: shoal_ip6::MULTICAST_ARC,
        output: shoal_ip6::OUTPUT_ARC,
        local: shoal_ip6::LOCAL_ARC,
        punt: shoal_ip6::PUNT_ARC,
        drop: shoal_ip6::DROP_ARC,
    };
    Ok(add_toys(&*control.graph()?, &arcs)?)
}

/// The whole stack with ports `pg0` up to `count`, all up; ICMP errors are not limited.
pub fn router(count: u32) -> (Router, Vec<Port>) {
    with_buffers(count, 4096)
}

/// The same with another number of buffers.
pub fn with_buffers(count: u32, buffers: usize) -> (Router, Vec<Port>) {
    let mut router = Router::with(Config { buffers, ..Config::default() }, MODULES);
    router.get::<Icmp6>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    let ports = (0..count).map(|n| router.pg(n)).collect();
    (router, ports)
}

pub fn ip(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

pub fn prefix(text: &str) -> Ip6Prefix {
    text.parse().unwrap()
}

pub fn address(router: &Router, port: &Port, address: &str) {
    router.get::<Ip6>().add_address(port.index(), prefix(address)).unwrap();
}

/// Stands in for neighbour discovery: knows what it was told.
#[derive(Default)]
struct Known(RefCell<BTreeMap<(SwIfIndex, IpAddr), MacAddress>>);

fn know(control: &Rc<Control>) -> Rc<Known> {
    if let Ok(known) = control.get::<Known>() {
        return known;
    }
    let known = control.put(Known::default());
    let adjacencies = control.get::<Adjacencies>().unwrap();
    let interfaces = control.get::<Interfaces>().unwrap();
    let (all, table) = (Rc::downgrade(&adjacencies), Rc::downgrade(&known));
    let describe = move |interface, link: shoal_adj::Link, next_hop| {
        let data = interfaces.data(interface).unwrap_or_else(|_| panic!("no interface {interface}"));
        let mac = table.upgrade().and_then(|t| t.0.borrow().get(&(interface, next_hop)).copied());
        let edge = all.upgrade().and_then(|all| all.edge_to(link, interface).ok());
        match (mac, edge) {
            (Some(mac), Some(edge)) if data.is_up() => {
                let header = EthernetHeader::new(data.mac(), mac, link.ether_type());
                Adj::on(AdjKind::Rewrite, interface, link.mtu(&data)).with_rewrite(header.as_bytes(), edge)
            }
            _ => Adj::on(AdjKind::Incomplete, interface, link.mtu(&data)),
        }
    };
    adjacencies.set_describe(Family::Ip6, Rc::new(describe));
    known
}

/// A neighbour known for good, with its route.
pub fn neighbour(router: &Router, port: &Port, address: &str, mac: MacAddress) {
    let (known, address) = (know(router.control()), ip(address));
    known.0.borrow_mut().insert((port.index(), address.into()), mac);
    if address.is_unicast_link_local() {
        router.get::<Ip6>().set_link_neighbour(port.index(), address).unwrap();
    } else {
        let path = Path::next_hop(address, port.index());
        let fib = router.get::<Ip6>().fib_of(port.index());
        router.get::<Fib>().add(fib, Ip6Prefix::host(address), Source::Adjacency, &[path]).unwrap();
    }
    router.get::<Adjacencies>().refresh(port.index());
}

pub fn route(router: &Router, to: &str, path: impl Into<Path>) {
    route_in(router, FibIndex::DEFAULT, to, path);
}

pub fn route_in(router: &Router, fib: FibIndex, to: &str, path: impl Into<Path>) {
    router.get::<Fib>().add(fib, prefix(to), Source::Cli, &[path.into()]).unwrap();
}

pub fn route_paths(router: &Router, to: &str, paths: &[Path]) {
    router.get::<Fib>().add(FibIndex::DEFAULT, prefix(to), Source::Cli, paths).unwrap();
}

pub fn via(next_hop: &str, port: &Port) -> Path {
    Path::next_hop(ip(next_hop), port.index())
}

/// Another table's index.
pub fn table(router: &Router, id: u32) -> FibIndex {
    router.get::<Fib>().add_table(Family::Ip6, id, None).unwrap()
}

pub fn look_up_in(fib: FibIndex) -> Path {
    Via::Lookup(fib).into()
}

/// Two hosts, each on a port of the router: 2001:db8::2 behind `pg0` (2001:db8::1/64), 2001:db8:1::2 behind `pg1`
/// (2001:db8:1::1/64).
pub fn two_hosts() -> (Router, Port, Port) {
    let (router, mut ports) = router(2);
    let (b, a) = (ports.pop().unwrap(), ports.pop().unwrap());
    address(&router, &a, "2001:db8::1/64");
    address(&router, &b, "2001:db8:1::1/64");
    neighbour(&router, &a, HOST_1, station(1));
    neighbour(&router, &b, HOST_2, station(2));
    (router, a, b)
}

pub const HOST_1: &str = "2001:db8::2";
pub const HOST_2: &str = "2001:db8:1::2";

/// What tests that are the same for IPv4 are told.
pub const TWO_HOSTS: TwoHosts = TwoHosts {
    family: Family::Ip6,
    make: two_hosts,
    neighbour,
    us: "2001:db8::1",
    hosts: [HOST_1, HOST_2],
    network: "2001:db8:1::/64",
    third: "2001:db8:2::1/64",
    far: "2001:db8:f::/48",
    far_host: "2001:db8:f::9",
};

/// A frame from station 1 to a port.
pub fn to(port: &Port) -> PacketBuilder {
    PacketBuilder::ethernet(station(1), port.mac())
}

/// A packet from host 1 to an address, by way of `port`.
pub fn towards(port: &Port, dst: &str) -> PacketBuilder {
    to(port).ip6(ip(HOST_1), ip(dst))
}

/// UDP from host 1 to host 2 of [`two_hosts`], by way of `port`.
pub fn udp(port: &Port) -> PacketBuilder {
    towards(port, HOST_2).udp(1000, 2000).payload_len(20)
}

/// The ICMPv6 message of a frame: type, code and the word behind the checksum, which is right.
pub fn told(frame: &[u8]) -> (Icmp6Type, u8, u32) {
    let header = Ip6Header::ref_from_prefix(&frame[14..]).unwrap().0;
    assert_eq!(usize::from(header.payload_length()), frame.len() - 54);
    assert!(shoal_wire::icmp6::verify(header.src(), header.dst(), &frame[54..]), "{header}");
    let icmp = Icmp6Error::ref_from_prefix(&frame[54..]).unwrap().0;
    (icmp.header.kind(), icmp.header.code(), icmp.mtu())
}

/// Source and destination of a frame.
pub fn ends(frame: &[u8]) -> (Ipv6Addr, Ipv6Addr) {
    let header = Ip6Header::ref_from_prefix(&frame[14..]).unwrap().0;
    (header.src(), header.dst())
}

/// The interfaces' object of a router.
pub fn interfaces(router: &Router) -> Rc<Interfaces> {
    Rc::clone(router.interfaces())
}

/// A node by its name.
pub fn node(router: &Router, name: &str) -> NodeIndex {
    router.graph().node(name).unwrap()
}
