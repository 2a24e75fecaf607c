//! What is kept of IPv6 on one interface.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use shoal_fib::{FibIndex, HostAddress, OnInterface, Via};
use shoal_interface::SwIfIndex;
use shoal_ip::Routes;
use shoal_wire::Ip6Prefix;

/// IPv6 on one interface.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Ip6Info {
    /// The table its packets are looked up in.
    pub fib: FibIndex,
    /// Its addresses, the oldest first, without the link-local one.
    pub addresses: Vec<Ip6Prefix>,
    /// IPv6 runs although there may be no address.
    pub explicit: bool,
    /// The link-local address the operator chose.
    pub chosen: Option<Ipv6Addr>,
    /// The link-local address, while IPv6 runs.
    pub link_local: Option<Ipv6Addr>,
    /// Those of its addresses that are not the router's yet, or somebody else's: see [`Ip6::set_use`].
    pub unproven: BTreeSet<Ipv6Addr>,
    /// The interface whose addresses it borrows.
    pub borrows: Option<SwIfIndex>,
    /// Those of its addresses that only the network gave it.
    pub learnt: BTreeSet<Ipv6Addr>,
    /// The operator has it down: its addresses give no routes.
    pub(super) down: bool,
}

impl Ip6Info {
    /// Whether IPv6 runs.
    pub fn enabled(&self) -> bool {
        self.explicit || self.chosen.is_some() || self.borrows.is_some() || !self.addresses.is_empty()
    }

    /// All its addresses.
    pub fn all(&self) -> impl Iterator<Item = Ipv6Addr> + '_ {
        self.link_local.into_iter().chain(self.addresses.iter().map(Ip6Prefix::addr))
    }

    /// Its addresses that may be a source, without the link-local one.
    pub fn usable(&self) -> impl Iterator<Item = &Ip6Prefix> + '_ {
        self.addresses.iter().filter(|a| !a.addr().is_multicast() && !self.unproven.contains(&a.addr()))
    }

    /// Whether the table must stay for it.
    pub(super) fn holds(&self) -> bool {
        self.enabled() || self.fib != FibIndex::DEFAULT
    }

    /// The networks' subnet-router anycast addresses (RFC 4291, 2.6.1), but for networks between two routers (RFC
    /// 6164, 5.1).
    pub(super) fn anycast(&self) -> impl Iterator<Item = Ipv6Addr> + '_ {
        let networks = self.addresses.iter().filter(|a| a.len() < Ip6Prefix::MAX_LEN - 1);
        networks.map(Ip6Prefix::network)
    }

    /// The entries its addresses give its table.
    pub(super) fn routes(&self, interface: SwIfIndex) -> Routes<Ip6Prefix> {
        let mut routes = Routes::new();
        if self.down {
            return routes;
        }
        for address in self.addresses.iter().filter(|a| a.len() < Ip6Prefix::MAX_LEN) {
            let source = address.addr().into();
            // Of several addresses in one network the first asks for neighbours.
            routes.entry(address.normalized()).or_insert(Via::Attached { interface, source });
        }
        for address in self.anycast().chain(self.addresses.iter().map(Ip6Prefix::addr)) {
            let local = Via::Local { interface: Some(interface), address: address.into() };
            // RFC 4862, 5.4: packets to an address that is not the router's yet are thrown away silently.
            let via = if self.unproven.contains(&address) { Via::Drop } else { local };
            routes.insert(Ip6Prefix::host(address), via);
        }
        routes
    }
}

impl OnInterface for Ip6Info {
    fn fib(&self) -> FibIndex {
        self.fib
    }

    fn addresses(&self) -> impl Iterator<Item = HostAddress> {
        self.addresses.iter().map(|a| HostAddress::from(*a))
    }

    fn usable(&self) -> impl Iterator<Item = HostAddress> {
        Ip6Info::usable(self).map(|a| HostAddress::from(*a))
    }

    fn lender(&self) -> Option<SwIfIndex> {
        self.borrows
    }
}
