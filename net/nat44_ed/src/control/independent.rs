//! Shared addresses whose mappings do not depend on the remote host.

use std::net::Ipv4Addr;

use shoal_interface::SwIfIndex;
use shoal_nat44::pool::{PoolEntry, range};

use super::{Nat44, NatError, OfInterface, Purpose, State};
use crate::bindings::{Filtering, IndependentAddresses};

/// A shared address, as an operator has named it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SharedAddress {
    /// This one.
    Address(Ipv4Addr),
    /// The first of an interface, whichever it is.
    OfInterface(SwIfIndex),
}

impl SharedAddress {
    /// How an address of the pool was named.
    pub(super) fn of(entry: &PoolEntry) -> Self {
        entry.from.map_or(SharedAddress::Address(entry.address), SharedAddress::OfInterface)
    }
}

impl State {
    /// Addresses as packets see them.
    pub(super) fn independent_addresses(&self) -> IndependentAddresses {
        let of = |entry: &PoolEntry| {
            let filtering = self.independent.get(&SharedAddress::of(entry))?;
            Some((entry.address.to_bits(), *filtering))
        };
        self.pool.entries().iter().filter_map(of).collect()
    }
}

impl Nat44 {
    /// Has a host's port have one outside port for all remote hosts, on a range of shared addresses, and says who may send to it;
    /// `None`: no more. Sessions stay, but those whose outside ports another host has too.
    ///
    /// # Errors
    /// NAT is off, the range is none, an address is not shared or follows an interface, or there is no memory: nothing has changed.
    pub fn set_independent(
        &self,
        (first, last): (Ipv4Addr, Ipv4Addr),
        filtering: Option<Filtering>,
    ) -> Result<(), NatError> {
        self.on()?;
        let addresses: Vec<Ipv4Addr> = range(first, last)?.collect();
        {
            let state = self.state.borrow();
            let is_named = |address: &&Ipv4Addr| {
                state.pool.entries().iter().any(|entry| entry.address == **address && entry.from.is_none())
            };
            if let Some(missing) = addresses.iter().find(|address| !is_named(address)) {
                return Err(NatError::NoAddress(*missing));
            }
        }
        self.set_all_independent(addresses.into_iter().map(SharedAddress::Address), filtering)
    }

    /// The same of the address of an interface.
    ///
    /// # Errors
    /// NAT is off, hosts do not share the interface's address, or there is no memory: nothing has changed.
    pub fn set_interface_independent(
        &self,
        interface: SwIfIndex,
        filtering: Option<Filtering>,
    ) -> Result<(), NatError> {
        self.on()?;
        if !self.state.borrow().followed.contains(&OfInterface { interface, purpose: Purpose::Pool }) {
            let name = self.interfaces.name(interface)?;
            return Err(NatError::Interface(format!("hosts do not share the address of {name}")));
        }
        self.set_all_independent([SharedAddress::OfInterface(interface)], filtering)
    }

    fn set_all_independent(
        &self,
        addresses: impl IntoIterator<Item = SharedAddress>,
        filtering: Option<Filtering>,
    ) -> Result<(), NatError> {
        let before = self.state.borrow().independent.clone();
        for address in addresses {
            let independent = &mut self.state.borrow_mut().independent;
            match filtering {
                Some(filtering) => independent.insert(address, filtering),
                None => independent.remove(&address),
            };
        }
        let done = self.publish_all();
        if done.is_err() {
            self.state.borrow_mut().independent = before;
            self.publish();
        }
        done
    }

    /// Addresses, as they were named, and who may send to their ports.
    pub fn independent(&self) -> Vec<(SharedAddress, Filtering)> {
        self.state.borrow().independent.iter().map(|(address, filtering)| (*address, *filtering)).collect()
    }

    /// Who may send to ports of which addresses, as packets see it now.
    pub fn filtering(&self) -> IndependentAddresses {
        self.state.borrow().independent_addresses()
    }

    /// Has every worker hold the outside ports of these addresses.
    pub(super) fn hold_ports(&self, addresses: IndependentAddresses, sessions: u32) -> Result<(), NatError> {
        let done = self.change_with(move |all| all.set_independent(&addresses, sessions))?;
        let failed = done.into_iter().find_map(Result::err);
        failed.map_or(Ok(()), |e| Err(NatError::Sessions { asked: sessions, reason: e.to_string() }))
    }
}
