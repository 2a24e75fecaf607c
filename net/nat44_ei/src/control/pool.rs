//! Addresses that hosts share.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use shoal_interface::SwIfIndex;
use shoal_nat44::pool::{PoolEntry, range};
use shoal_wire::Ip4Prefix;

use super::{Nat44Ei, NatError};
use crate::config::Mode;

/// An address as it is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// The address.
    pub address: Ipv4Addr,
    /// The VRF whose hosts use it; `None`: all.
    pub vrf: Option<u32>,
    /// Whether it follows an interface's.
    pub synced: bool,
}

impl Nat44Ei {
    /// Adds a range of addresses, for the hosts of a VRF or all. Those before one that is there already are added.
    ///
    /// # Errors
    /// NAT is off or has mappings only, or the range is none.
    pub fn add_addresses(
        &self,
        (first, last): (Ipv4Addr, Ipv4Addr),
        vrf: Option<u32>,
    ) -> Result<(), NatError> {
        if self.on()?.mode != Mode::Dynamic {
            return Err(NatError::StaticOnly);
        }
        let mut all = range(first, last)?;
        let done = all.try_for_each(|address| self.add_one(PoolEntry { address, vrf, from: None }));
        self.publish();
        done
    }

    fn add_one(&self, entry: PoolEntry) -> Result<(), NatError> {
        if self.state.borrow().pool.has(entry.address) {
            return Err(NatError::AddressExists(entry.address));
        }
        if let Some(vrf) = entry.vrf {
            self.held.hold(vrf)?;
        }
        self.state.borrow_mut().pool.push(entry);
        Ok(())
    }

    fn del_one(&self, address: Ipv4Addr) -> Result<(), NatError> {
        let entry = self.state.borrow_mut().pool.remove(address).ok_or(NatError::NoAddress(address))?;
        if let Some(vrf) = entry.vrf {
            self.held.release(vrf);
        }
        Ok(())
    }

    /// Takes a range of addresses out; sessions that use them end.
    ///
    /// # Errors
    /// NAT is off, the range is none, or an address is not there or a mapping has a port of it: those before it are gone.
    pub fn del_addresses(&self, (first, last): (Ipv4Addr, Ipv4Addr)) -> Result<(), NatError> {
        self.on()?;
        let mut gone = BTreeSet::new();
        let mut all = range(first, last)?;
        let done = all.try_for_each(|address| {
            if self.has_port_of(address) {
                return Err(NatError::Mapped(address));
            }
            self.del_one(address)?;
            gone.insert(address.to_bits());
            Ok(())
        });
        self.publish();
        self.end_of_addresses(gone)?;
        done
    }

    fn end_of_addresses(&self, gone: BTreeSet<u32>) -> Result<(), NatError> {
        self.retain(move |session| session.is_static || !gone.contains(&session.outside.0))
    }

    /// All addresses.
    pub fn addresses(&self) -> Vec<Address> {
        let shown = |entry: &PoolEntry| {
            let PoolEntry { address, vrf, from } = *entry;
            Address { address, vrf, synced: from.is_some() }
        };
        self.state.borrow().pool.entries().iter().map(shown).collect()
    }

    /// Interfaces whose addresses are used.
    pub fn followed(&self) -> Vec<SwIfIndex> {
        self.state.borrow().followed.iter().copied().collect()
    }

    /// Uses the first address of an interface, while NAT is on.
    ///
    /// # Errors
    /// There is no such interface, or it is used already.
    pub fn follow_interface(&self, interface: SwIfIndex) -> Result<(), NatError> {
        let name = self.interfaces.name(interface)?;
        if !self.state.borrow_mut().followed.insert(interface) {
            return Err(NatError::Interface(format!("the address of {name} is used already")));
        }
        self.follow_addresses(interface);
        Ok(())
    }

    /// Uses it no more.
    ///
    /// # Errors
    /// NAT is off, or it is not used.
    pub fn unfollow_interface(&self, interface: SwIfIndex) -> Result<(), NatError> {
        self.on()?;
        if !self.state.borrow_mut().followed.remove(&interface) {
            let name = self.interfaces.name(interface).unwrap_or_else(|_| interface.0.to_string());
            return Err(NatError::NoInterface(name));
        }
        self.set_followed(interface, None);
        self.publish();
        Ok(())
    }

    pub(super) fn unfollow(&self, interface: SwIfIndex) {
        if self.state.borrow_mut().followed.remove(&interface) {
            self.set_followed(interface, None);
        }
        self.forget_mappings_of(interface);
    }

    /// An interface's addresses are others now.
    pub(super) fn follow_addresses(&self, interface: SwIfIndex) {
        if self.enabled().is_none() {
            return;
        }
        let primary = self.ip4.primary(interface);
        if self.state.borrow().followed.contains(&interface) {
            self.set_followed(interface, primary);
        }
        self.resolve_mappings(interface, primary);
        self.publish();
    }

    /// The address an interface gives is this now, or none.
    fn set_followed(&self, interface: SwIfIndex, address: Option<Ipv4Addr>) {
        let old = self.state.borrow().pool.of_interface(interface);
        if old == address {
            return;
        }
        if let Some(old) = old
            && let Err(e) = self.del_one(old).and_then(|()| self.end_of_addresses([old.to_bits()].into()))
        {
            tracing::warn!("sessions of {old} stay until they time out: {e}");
        }
        if let Some(old) = old {
            self.forget_mappings_to(old);
        }
        if let Some(address) = address
            && let Err(e) = self.add_one(PoolEntry { address, vrf: None, from: Some(interface) })
        {
            tracing::warn!(%interface, "its address is not used: {e}");
        }
    }

    /// The router answers for shared addresses and those of mappings.
    pub(super) fn answer_for_addresses(&self) {
        let mut state = self.state.borrow_mut();
        let outside = self.translated.outside();
        let mut wanted = state.pool.routes(&self.ip4, outside.iter().copied());
        for interface in outside {
            let fib = self.ip4.fib_of(interface);
            // An interface's address is the router's anyway, and what stays as it is may be another's.
            let external = state.statics.iter().filter(|one| one.answers()).filter_map(|one| one.external);
            for (address, ..) in external {
                wanted.entry((fib, Ip4Prefix::host(address.into()))).or_insert(interface);
            }
        }
        state.routes.replace(&self.fib, &wanted);
    }
}
