//! A router with addresses of both families.

use shoal_module::Module;
use shoal_testkit::{Port, Router};

/// The modules.
const MODULES: &[&Module] = &[
    &shoal_interface::MODULE,
    &shoal_adj::MODULE,
    &shoal_fib::MODULE,
    &shoal_ethernet::MODULE,
    &shoal_ip4::MODULE,
    &shoal_ip6::MODULE,
    &shoal_ip_interface::MODULE,
    &shoal_arp::MODULE,
    &shoal_icmp::MODULE,
    &shoal_pg::MODULE,
];

/// Such a router with ports `pg0` up to `count`, all up.
pub fn router(count: u32) -> (Router, Vec<Port>) {
    let mut router = Router::new(MODULES);
    let ports = (0..count).map(|n| router.pg(n)).collect();
    (router, ports)
}
