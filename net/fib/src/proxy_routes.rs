//! Addresses that a feature has the router answer for, without giving them to an interface: those that hosts share.

use std::collections::{BTreeMap, BTreeSet};

use shoal_buffer::{FibIndex, SwIfIndex};
use shoal_wire::Ip4Prefix;

use crate::control::Fib;
use crate::path::Via;
use crate::source::Source;

/// Addresses in a table.
pub type InTable = (FibIndex, Ip4Prefix);

/// The routes of one feature by which the router answers for addresses.
#[derive(Clone, Debug, Default)]
pub struct ProxyRoutes(BTreeSet<InTable>);

impl ProxyRoutes {
    /// The router answers for these addresses from now on, each on one interface, and for no others. What the table refuses is
    /// logged, and tried again the next time.
    pub fn replace(&mut self, fib: &Fib, wanted: &BTreeMap<InTable, SwIfIndex>) {
        for (table, address) in self.0.iter().filter(|route| !wanted.contains_key(route)) {
            if let Err(e) = fib.remove(*table, *address, Source::Proxy) {
                tracing::warn!("the router still answers for {address}: {e}");
            }
        }
        let there = std::mem::take(&mut self.0);
        let answers = |((table, address), interface): (&InTable, &SwIfIndex)| {
            if there.contains(&(*table, *address)) {
                return true;
            }
            let path = Via::Local { interface: Some(*interface), address: address.network().into() };
            let added = fib.add(*table, *address, Source::Proxy, &[path.into()]);
            added.inspect_err(|e| tracing::warn!("the router does not answer for {address}: {e}")).is_ok()
        };
        self.0 = wanted.iter().filter(|wanted| answers(*wanted)).map(|(route, _)| *route).collect();
    }
}
