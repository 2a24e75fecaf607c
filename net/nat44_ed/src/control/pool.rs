//! Addresses that hosts share, and those that stand for outside hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use shoal_fib::FibIndex;
use shoal_interface::SwIfIndex;
use shoal_nat44::pool::{AddressPool, PoolEntry, range};
use shoal_wire::Ip4Prefix;

use super::{Nat44, NatError, SharedAddress, State};

/// What an address is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Purpose {
    /// Hosts share it.
    Pool,
    /// It stands for outside hosts.
    Twice,
}

/// The first address of an interface, also when that changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OfInterface {
    /// The interface.
    pub interface: SwIfIndex,
    /// What it is for.
    pub purpose: Purpose,
}

/// An address as it is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// The address.
    pub address: Ipv4Addr,
    /// What it is for.
    pub purpose: Purpose,
    /// The VRF whose hosts use it; `None`: all.
    pub vrf: Option<u32>,
    /// Whether it follows an interface's.
    pub synced: bool,
}

impl State {
    fn list(&self, purpose: Purpose) -> &AddressPool {
        if purpose == Purpose::Pool { &self.pool } else { &self.twice }
    }

    fn list_mut(&mut self, purpose: Purpose) -> &mut AddressPool {
        if purpose == Purpose::Pool { &mut self.pool } else { &mut self.twice }
    }
}

impl Nat44 {
    /// Adds a range of addresses, for the hosts of a VRF or all. Those before one that is there already are added.
    ///
    /// # Errors
    /// NAT is off, or the range is none.
    pub fn add_addresses(
        &self,
        (first, last): (Ipv4Addr, Ipv4Addr),
        purpose: Purpose,
        vrf: Option<u32>,
    ) -> Result<(), NatError> {
        self.on()?;
        let mut done = Ok(());
        for address in range(first, last)? {
            done = self.add_one(PoolEntry { address, vrf, from: None }, purpose);
            if done.is_err() {
                break;
            }
        }
        self.publish();
        done
    }

    fn add_one(&self, pool: PoolEntry, purpose: Purpose) -> Result<(), NatError> {
        if self.state.borrow().list(purpose).has(pool.address) {
            return Err(NatError::AddressExists(pool.address));
        }
        if let Some(vrf) = pool.vrf {
            self.held.hold(vrf)?;
        }
        self.state.borrow_mut().list_mut(purpose).push(pool);
        Ok(())
    }

    /// Takes a range of addresses out; sessions that use them end.
    ///
    /// # Errors
    /// NAT is off, the range is none, or an address is not there: those before it are gone.
    pub fn del_addresses(
        &self,
        (first, last): (Ipv4Addr, Ipv4Addr),
        purpose: Purpose,
    ) -> Result<(), NatError> {
        self.on()?;
        let mut gone = BTreeSet::new();
        let mut done = Ok(());
        for address in range(first, last)? {
            if !self.del_one(address, purpose) {
                done = Err(NatError::NoAddress(address));
                break;
            }
            gone.insert(address.to_bits());
        }
        self.publish();
        self.end_of_addresses(gone, purpose)?;
        done
    }

    fn del_one(&self, address: Ipv4Addr, purpose: Purpose) -> bool {
        let Some(pool) = self.state.borrow_mut().list_mut(purpose).remove(address) else { return false };
        if let Some(vrf) = pool.vrf {
            self.held.release(vrf);
        }
        if purpose == Purpose::Pool && pool.from.is_none() {
            self.state.borrow_mut().independent.remove(&SharedAddress::Address(address));
        }
        true
    }

    /// All addresses.
    pub fn addresses(&self) -> Vec<Address> {
        let state = self.state.borrow();
        let shown = |purpose| {
            move |pool: &PoolEntry| {
                let PoolEntry { address, vrf, from } = *pool;
                Address { address, purpose, vrf, synced: from.is_some() }
            }
        };
        let pool = state.pool.entries().iter().map(shown(Purpose::Pool));
        pool.chain(state.twice.entries().iter().map(shown(Purpose::Twice))).collect()
    }

    /// Interfaces whose addresses are used.
    pub fn followed(&self) -> Vec<OfInterface> {
        self.state.borrow().followed.iter().copied().collect()
    }

    /// Uses the first address of an interface, now and later.
    ///
    /// # Errors
    /// NAT is off, there is no such interface, or it is used already.
    pub fn follow_interface(&self, of: OfInterface) -> Result<(), NatError> {
        self.on()?;
        let name = self.interfaces.name(of.interface)?;
        if !self.state.borrow_mut().followed.insert(of) {
            return Err(NatError::Interface(format!("the address of {name} is used already")));
        }
        self.follow_addresses(of.interface);
        Ok(())
    }

    /// Uses it no more.
    ///
    /// # Errors
    /// NAT is off, or it is not used.
    pub fn unfollow_interface(&self, of: OfInterface) -> Result<(), NatError> {
        self.on()?;
        if !self.state.borrow_mut().followed.remove(&of) {
            let name = self.interfaces.name(of.interface).unwrap_or_else(|_| of.interface.0.to_string());
            return Err(NatError::NoInterface(name));
        }
        self.forget_independent(of);
        self.set_followed(of, None);
        self.publish();
        Ok(())
    }

    pub(super) fn unfollow(&self, interface: SwIfIndex) {
        for purpose in [Purpose::Pool, Purpose::Twice] {
            let of = OfInterface { interface, purpose };
            if self.state.borrow_mut().followed.remove(&of) {
                self.forget_independent(of);
                self.set_followed(of, None);
            }
        }
        self.forget_mappings_of(interface);
    }

    fn forget_independent(&self, of: OfInterface) {
        if of.purpose == Purpose::Pool {
            self.state.borrow_mut().independent.remove(&SharedAddress::OfInterface(of.interface));
        }
    }

    /// An interface's addresses are others now.
    pub(super) fn follow_addresses(&self, interface: SwIfIndex) {
        if !self.is_on() {
            return;
        }
        let primary = self.ip4.primary(interface);
        for purpose in [Purpose::Pool, Purpose::Twice] {
            let of = OfInterface { interface, purpose };
            if self.state.borrow().followed.contains(&of) {
                self.set_followed(of, primary);
            }
        }
        self.resolve_mappings(interface, primary);
        self.publish();
    }

    /// The address an interface gives is this now, or none.
    fn set_followed(&self, of: OfInterface, address: Option<Ipv4Addr>) {
        let old = self.state.borrow().list(of.purpose).of_interface(of.interface);
        if old == address {
            return;
        }
        if let Some(old) = old {
            self.del_one(old, of.purpose);
            if let Err(e) = self.end_of_addresses([old.to_bits()].into(), of.purpose) {
                tracing::warn!("sessions of {old} stay until they time out: {e}");
            }
        }
        if let Some(address) = address {
            let pool = PoolEntry { address, vrf: None, from: Some(of.interface) };
            if let Err(e) = self.add_one(pool, of.purpose) {
                tracing::warn!(interface = %of.interface, "its address is not used: {e}");
            }
        }
    }

    /// Shared addresses that others find on a link, if this router is the one that forwards.
    pub(super) fn proxied(&self) -> BTreeMap<(FibIndex, Ip4Prefix), SwIfIndex> {
        if self.is_standby.get() {
            return BTreeMap::new();
        }
        self.state.borrow().pool.routes(&self.ip4, self.translated.outside().into_iter())
    }

    /// The router answers for shared addresses.
    pub(super) fn answer_for_pool(&self) {
        let wanted = self.proxied();
        self.state.borrow_mut().routes.replace(&self.fib, &wanted);
    }
}
