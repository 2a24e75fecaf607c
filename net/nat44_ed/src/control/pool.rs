//! Addresses that hosts share, and those that stand for outside hosts.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use shoal_adj::Family;
use shoal_interface::SwIfIndex;

use shoal_wire::Ip4Prefix;

use super::{Nat44, NatError};
use crate::config::PoolAddress;

/// Addresses of one command at most.
const MOST_AT_ONCE: u32 = 1 << 16;

/// What an address is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Purpose {
    /// Hosts share it.
    Pool,
    /// It stands for outside hosts.
    Twice,
}

/// The first address of an interface, whichever it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OfInterface {
    /// The interface.
    pub interface: SwIfIndex,
    /// What it is for.
    pub purpose: Purpose,
}

/// An address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pool {
    address: Ipv4Addr,
    /// The VRF whose hosts use it; `None`: all.
    vrf: Option<u32>,
    /// The interface it follows.
    from: Option<SwIfIndex>,
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

impl Nat44 {
    fn is_there(&self, address: Ipv4Addr, purpose: Purpose) -> bool {
        let state = self.state.borrow();
        let list = if purpose == Purpose::Pool { &state.pool } else { &state.twice };
        list.iter().any(|pool| pool.address == address)
    }

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
        if last < first || last.to_bits() - first.to_bits() >= MOST_AT_ONCE {
            return Err(NatError::Range(first, last));
        }
        let mut done = Ok(());
        for address in (first.to_bits()..=last.to_bits()).map(Ipv4Addr::from_bits) {
            done = self.add_one(Pool { address, vrf, from: None }, purpose);
            if done.is_err() {
                break;
            }
        }
        self.publish();
        done
    }

    fn add_one(&self, pool: Pool, purpose: Purpose) -> Result<(), NatError> {
        if self.is_there(pool.address, purpose) {
            return Err(NatError::AddressExists(pool.address));
        }
        if let Some(vrf) = pool.vrf {
            self.hold_table(vrf)?;
        }
        let mut state = self.state.borrow_mut();
        let list = if purpose == Purpose::Pool { &mut state.pool } else { &mut state.twice };
        list.push(pool);
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
        if last < first || last.to_bits() - first.to_bits() >= MOST_AT_ONCE {
            return Err(NatError::Range(first, last));
        }
        let mut gone = BTreeSet::new();
        let mut done = Ok(());
        for address in (first.to_bits()..=last.to_bits()).map(Ipv4Addr::from_bits) {
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
        let mut state = self.state.borrow_mut();
        let list = if purpose == Purpose::Pool { &mut state.pool } else { &mut state.twice };
        let Some(at) = list.iter().position(|pool| pool.address == address) else { return false };
        let pool = list.remove(at);
        drop(state);
        if let Some(vrf) = pool.vrf {
            self.release_table(vrf);
        }
        true
    }

    /// All addresses.
    pub fn addresses(&self) -> Vec<Address> {
        let state = self.state.borrow();
        let shown = |purpose| {
            move |pool: &Pool| {
                let Pool { address, vrf, from } = *pool;
                Address { address, purpose, vrf, synced: from.is_some() }
            }
        };
        let pool = state.pool.iter().map(shown(Purpose::Pool));
        pool.chain(state.twice.iter().map(shown(Purpose::Twice))).collect()
    }

    /// Interfaces whose addresses are used.
    pub fn followed(&self) -> Vec<OfInterface> {
        self.state.borrow().followed.iter().copied().collect()
    }

    /// Uses the first address of an interface, whichever it is now and later.
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
        self.set_followed(of, None);
        self.publish();
        Ok(())
    }

    pub(super) fn unfollow(&self, interface: SwIfIndex) {
        for purpose in [Purpose::Pool, Purpose::Twice] {
            let of = OfInterface { interface, purpose };
            if self.state.borrow_mut().followed.remove(&of) {
                self.set_followed(of, None);
            }
        }
        self.forget_mappings_of(interface);
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
        let state = self.state.borrow();
        let list = if of.purpose == Purpose::Pool { &state.pool } else { &state.twice };
        let old = list.iter().find(|pool| pool.from == Some(of.interface)).map(|pool| pool.address);
        drop(state);
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
            let pool = Pool { address, vrf: None, from: Some(of.interface) };
            if let Err(e) = self.add_one(pool, of.purpose) {
                tracing::warn!(interface = %of.interface, "its address is not used: {e}");
            }
        }
    }

    /// An address as packets see it.
    pub(super) fn pool_address(&self, pool: &Pool) -> PoolAddress {
        let table = pool.vrf.and_then(|vrf| self.fib.index_of(Family::Ip4, vrf).ok());
        let state_of = |interface: SwIfIndex| {
            let of = self.ip4.addresses(interface);
            let network = of.iter().find(|prefix| prefix.contains(pool.address))?;
            Some((interface, network.network().to_bits(), network.mask_bits()))
        };
        let network = self.interfaces.indices().into_iter().find_map(state_of);
        PoolAddress { address: pool.address.to_bits(), table: table.map(|table| table.0), network }
    }

    /// The router answers for shared addresses, in the tables of interfaces to the outside: they are its own.
    pub(super) fn answer_for_pool(&self) {
        let state = self.state.borrow();
        let outside = state.sides.iter().filter(|(_, sides)| sides.outside).map(|(interface, _)| *interface);
        let outside: Vec<SwIfIndex> = outside.chain(state.outputs.iter().copied()).collect();
        let mut wanted = std::collections::BTreeMap::new();
        for interface in outside {
            let fib = self.ip4.fib_of(interface);
            for pool in &state.pool {
                wanted.entry((fib, Ip4Prefix::host(pool.address))).or_insert(interface);
            }
        }
        drop(state);
        self.state.borrow_mut().routes.replace(&self.fib, &wanted);
    }
}
