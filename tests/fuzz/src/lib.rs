//! What targets share: the stack, and a router with a small configuration.
#![forbid(unsafe_code)]

use shoal_arp::Neighbours;
use shoal_arp::table::{FibEntry, Origin};
use shoal_fib::{Fib, FibIndex, Path, Source, Via};
use shoal_interface::MtuLayer;
use shoal_ip4::Ip4;
use shoal_module::Module;
use shoal_testkit::{Config, Router};
use shoal_wire::MacAddress;

/// The stack.
pub const MODULES: &[&Module] = &[
    &shoal_interface::MODULE,
    &shoal_adj::MODULE,
    &shoal_fib::MODULE,
    &shoal_ethernet::MODULE,
    &shoal_ip4::MODULE,
    &shoal_arp::MODULE,
    &shoal_icmp::MODULE,
    &shoal_pg::MODULE,
];

/// Three interfaces, `pg0` to `pg2`, with addresses, neighbours, a small MTU and routes of all kinds.
///
/// # Panics
/// The router cannot be made, which is no finding.
pub fn router() -> Router {
    let mut router = Router::with(Config { buffers: 8192, ..Config::default() }, MODULES);
    for n in 0..3u8 {
        let port = router.pg(u32::from(n));
        let address = format!("10.0.{n}.1/24").parse().expect("a prefix");
        router.get::<Ip4>().add_address(port.index(), address).expect("a good address");
        let host = [10, 0, n, 2].into();
        let mac = MacAddress([2, 0xaa, 0, 0, 0, n]);
        let set = router.get::<Neighbours>().set((port.index(), host), mac, Origin::Static, FibEntry::Wanted);
        set.expect("a good neighbour");
        if n == 1 {
            router.interfaces().set_mtu(port.index(), MtuLayer::Ip4, 68).expect("a good MTU");
        }
        let route = |to: &str, path: Path| {
            let to = to.parse().expect("a prefix");
            router.get::<Fib>().add(FibIndex::DEFAULT, to, Source::Cli, &[path]).expect("a good route");
        };
        route(&format!("{n}.0.0.0/6"), Path::next_hop(host, port.index()));
        route("32.0.0.0/6", Via::Prohibit.into());
        route("64.0.0.0/6", Via::Lookup(FibIndex::DEFAULT).into());
    }
    router.run();
    router
}
