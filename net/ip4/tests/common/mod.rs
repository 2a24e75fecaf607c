//! A router with the whole IPv4 stack, and toy features.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests
#![allow(dead_code, unused_imports)] // each test file uses its part

use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_arp::Neighbours;
use shoal_arp::table::{FibEntry, Origin};
use shoal_fib::{Fib, FibIndex, Path, Source, Via};
use shoal_graph::NodeIndex;
use shoal_icmp::Icmp;
use shoal_icmp::limiter::Rate;
use shoal_interface::Interfaces;
use shoal_ip4::{Ip4, UNICAST_ARC};
use shoal_module::{Control, InitError, Module};
pub use shoal_testkit::toy::{DROPPED_BYTE, TOY_NAMES, Toy};
use shoal_testkit::toy::{ToyArcs, add_toys};
use shoal_testkit::two_hosts::TwoHosts;
pub use shoal_testkit::two_hosts::station;
use shoal_testkit::{Config, PacketBuilder, Port, Router};
pub use shoal_testkit::{HAND, InjectedPacket, PacketInjector};
use shoal_wire::{Ip4Prefix, MacAddress};

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
        multicast: shoal_ip4::MULTICAST_ARC,
        output: shoal_ip4::OUTPUT_ARC,
        local: shoal_ip4::LOCAL_ARC,
        punt: shoal_ip4::PUNT_ARC,
        drop: shoal_ip4::DROP_ARC,
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
    router.get::<Icmp>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    let ports = (0..count).map(|n| router.pg(n)).collect();
    (router, ports)
}

pub fn ip(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

pub fn prefix(text: &str) -> Ip4Prefix {
    text.parse().unwrap()
}

pub fn address(router: &Router, port: &Port, address: &str) {
    router.get::<Ip4>().add_address(port.index(), prefix(address)).unwrap();
}

pub fn neighbour(router: &Router, port: &Port, address: &str, mac: MacAddress) {
    let neighbours = router.get::<Neighbours>();
    neighbours.set((port.index(), ip(address)), mac, Origin::Static, FibEntry::Wanted).unwrap();
}

pub fn route(router: &Router, to: &str, path: impl Into<Path>) {
    route_in(router, FibIndex::DEFAULT, to, path);
}

pub fn route_in(router: &Router, fib: FibIndex, to: &str, path: impl Into<Path>) {
    router.get::<Fib>().add(fib, prefix(to), Source::Cli, &[path.into()]).unwrap();
}

pub fn via(next_hop: &str, port: &Port) -> Path {
    Path::next_hop(ip(next_hop), port.index())
}

/// Another table's index.
pub fn table(router: &Router, id: u32) -> FibIndex {
    router.get::<Fib>().add_table(shoal_fib::Family::Ip4, id, None).unwrap()
}

pub fn look_up_in(fib: FibIndex) -> Path {
    Via::Lookup(fib).into()
}

/// Two hosts, each on a port of the router: 10.0.0.2 behind `pg0` (10.0.0.1/24), 10.0.1.2 behind `pg1`
/// (10.0.1.1/24).
pub fn two_hosts() -> (Router, Port, Port) {
    let (router, mut ports) = router(2);
    let (b, a) = (ports.pop().unwrap(), ports.pop().unwrap());
    address(&router, &a, "10.0.0.1/24");
    address(&router, &b, "10.0.1.1/24");
    neighbour(&router, &a, "10.0.0.2", station(1));
    neighbour(&router, &b, "10.0.1.2", station(2));
    (router, a, b)
}

/// What tests that are the same for IPv6 are told.
pub const TWO_HOSTS: TwoHosts = TwoHosts {
    family: shoal_fib::Family::Ip4,
    make: two_hosts,
    neighbour,
    us: "10.0.0.1",
    hosts: ["10.0.0.2", "10.0.1.2"],
    network: "10.0.1.0/24",
    third: "10.0.2.1/24",
    far: "20.0.0.0/8",
    far_host: "20.1.2.3",
};

/// A frame from station 1 to a port.
pub fn to(port: &Port) -> PacketBuilder {
    PacketBuilder::ethernet(station(1), port.mac())
}

/// UDP from host 1 to host 2 of [`two_hosts`], by way of `port`.
pub fn udp(port: &Port) -> PacketBuilder {
    to(port).ip4([10, 0, 0, 2], [10, 0, 1, 2]).udp(1000, 2000).payload_len(20)
}

/// The interfaces' object of a router.
pub fn interfaces(router: &Router) -> Rc<Interfaces> {
    Rc::clone(router.interfaces())
}

/// A node by its name.
pub fn node(router: &Router, name: &str) -> NodeIndex {
    router.graph().node(name).unwrap()
}
