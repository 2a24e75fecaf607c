//! Routes by which packets to virtual and shared addresses come here.

use std::collections::BTreeSet;
use std::net::IpAddr;

use shoal_fib::{FibIndex, Path, Source, Via};
use shoal_wire::IpPrefix;

use super::{Cnat, CnatError};
use crate::node::place::{SHARED, VIP, names};

/// Routes that are there.
#[derive(Default)]
pub(super) struct Routes {
    /// Virtual addresses.
    clients: BTreeSet<IpAddr>,
    /// Shared addresses, each in the table of its answers.
    shared: BTreeSet<(u32, IpAddr)>,
}

/// The node that packets to an address are led to.
fn node(first: usize, address: IpAddr) -> &'static str {
    names(first + usize::from(address.is_ipv6())).0
}

impl Cnat {
    fn lead(&self, table: u32, address: IpAddr, first: usize) -> Result<(), CnatError> {
        let path = Path::from(Via::Node(node(first, address)));
        Ok(self.fib.add(FibIndex(table), IpPrefix::host(address), Source::Feature, &[path])?)
    }

    fn lead_no_more(&self, table: u32, address: IpAddr) {
        if let Err(e) = self.fib.remove(FibIndex(table), IpPrefix::host(address), Source::Feature) {
            tracing::warn!("cnat: the route of {address} stays: {e}");
        }
    }

    /// Has packets to virtual and shared addresses come here, and no others.
    ///
    /// # Errors
    /// A route cannot be. Those that can are there.
    pub(super) fn follow_routes(&self) -> Result<(), CnatError> {
        let changed = std::mem::take(&mut self.state.borrow_mut().translations.changed_clients);
        let mut first_error = None;
        let table = FibIndex::DEFAULT.0;
        for address in changed {
            let (wanted, there) = {
                let state = self.state.borrow();
                (state.translations.is_client(address), state.routes.clients.contains(&address))
            };
            // A shared address of the same table is led by this one's route, too.
            if wanted && !there {
                match self.lead(table, address, VIP) {
                    Ok(()) => {
                        let routes = &mut self.state.borrow_mut().routes;
                        routes.clients.insert(address);
                        routes.shared.remove(&(table, address));
                    }
                    Err(e) => first_error = first_error.or(Some(e)),
                }
            } else if there && !wanted {
                self.lead_no_more(table, address);
                self.state.borrow_mut().routes.clients.remove(&address);
            }
        }
        self.follow_shared().err().or(first_error).map_or(Ok(()), Err)
    }

    fn follow_shared(&self) -> Result<(), CnatError> {
        let mut wanted: BTreeSet<(u32, IpAddr)> = self.snat_routes().into_iter().collect();
        let there = {
            let state = self.state.borrow();
            let clients = &state.routes.clients;
            wanted.retain(|(table, address)| *table != FibIndex::DEFAULT.0 || !clients.contains(address));
            state.routes.shared.clone()
        };
        let mut done = Ok(());
        for &(table, address) in wanted.difference(&there) {
            match self.lead(table, address, SHARED) {
                Ok(()) => drop(self.state.borrow_mut().routes.shared.insert((table, address))),
                Err(e) => done = Err(e),
            }
        }
        for &(table, address) in there.difference(&wanted) {
            self.lead_no_more(table, address);
            self.state.borrow_mut().routes.shared.remove(&(table, address));
        }
        done
    }

    /// Addresses with a route to here: how many translations each has, and whether it is a shared source.
    pub fn clients(&self) -> Vec<(IpAddr, usize, bool)> {
        let mut all: Vec<(IpAddr, usize, bool)> = {
            let state = self.state.borrow();
            state.translations.clients().map(|(address, count)| (address, count, false)).collect()
        };
        all.extend(self.snat_routes().into_iter().map(|(_, address)| (address, 0, true)));
        all
    }
}
