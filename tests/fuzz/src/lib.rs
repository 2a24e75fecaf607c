//! What targets share: the stack, and a router with a small configuration.
#![forbid(unsafe_code)]

use std::net::Ipv6Addr;

use shoal_fib::{Fib, FibIndex, Path, Source, Via};
use shoal_interface::{MtuLayer, SwIfIndex};
use shoal_ip6::Ip6;
use shoal_module::Module;
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_reassembly::{Families, Kind, Reassembly, Settings, Version};
use shoal_testkit::{Config, Router, STACK};
use shoal_wire::{IpPrefix, MacAddress};

/// The stack, reassembly and the packet generator.
pub fn modules() -> Vec<&'static Module> {
    [STACK, &[&shoal_ip6_nd::MODULE, &shoal_reassembly::MODULE, &shoal_pg::MODULE]].concat()
}

/// Three interfaces, `pg0` to `pg2`, with addresses, neighbours, a small MTU and routes of all kinds.
///
/// # Panics
/// The router cannot be made, which is no finding.
pub fn router() -> Router {
    let mut router = Router::with(Config { buffers: 8192, ..Config::default() }, &modules());
    for n in 0..3u8 {
        let port = router.pg(u32::from(n));
        router.set_address(&port, &format!("10.0.{n}.1/24"));
        let host = [10, 0, n, 2].into();
        router.set_neighbour(&port, host, MacAddress([2, 0xaa, 0, 0, 0, n]));
        let (ip6, net) = (router.get::<Ip6>(), u16::from(n));
        ip6.add_address(port.index(), format!("2001:db8:{net}::1/64").parse().expect("a prefix"))
            .expect("a good address");
        let host6 = Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, 2);
        let mac = MacAddress([2, 0xaa, 0, 0, 0, n]);
        let neighbours = router.get::<shoal_ip6_nd::Neighbours>();
        neighbours
            .set((port.index(), host6), mac, Origin::Static, FibEntry::Wanted)
            .expect("a good neighbour");
        if n == 1 {
            router.interfaces().set_mtu(port.index(), MtuLayer::Ip4, 68).expect("a good MTU");
        }
        let route = |to: &str, path: Path| {
            let to: IpPrefix = to.parse().expect("a prefix");
            router.get::<Fib>().add(FibIndex::DEFAULT, to, Source::Cli, &[path]).expect("a good route");
        };
        route(&format!("{n}.0.0.0/6"), Path::next_hop(host, port.index()));
        route("32.0.0.0/6", Via::Prohibit.into());
        route("64.0.0.0/6", Via::Lookup(FibIndex::DEFAULT).into());
    }
    put_together(&router);
    router.run();
    router
}

/// Fragments that `pg0` receives are put together; those that stay alone are let go within a few seconds.
fn put_together(router: &Router) {
    let reassembly = router.get::<Reassembly>();
    reassembly.set_interface(SwIfIndex(1), Families::BOTH).expect("the interface is there");
    for version in [Version::Ip4, Version::Ip6] {
        let settings = Settings { timeout_ms: 5000, ..Settings::FULL };
        reassembly.set(version, Kind::Full, settings).expect("good settings");
    }
}
