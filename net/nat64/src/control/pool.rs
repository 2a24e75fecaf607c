//! Addresses that hosts share.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use shoal_adj::Family;
use shoal_fib::FibIndex;
use shoal_interface::SwIfIndex;

use shoal_wire::Ip4Prefix;

use super::{Nat64, Nat64Error};
use crate::config::PoolAddress;

/// Addresses of one command at most.
pub(super) const MOST_AT_ONCE: u32 = 1 << 16;

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
    /// The VRF whose hosts use it; `None`: all.
    pub vrf: Option<u32>,
    /// Whether it follows an interface's.
    pub follows: bool,
}

fn range(first: Ipv4Addr, last: Ipv4Addr) -> Result<impl Iterator<Item = Ipv4Addr> + Clone, Nat64Error> {
    let (from, to) = (first.to_bits(), last.to_bits());
    let bad = from > to || to - from >= MOST_AT_ONCE || first.is_unspecified();
    if bad { Err(Nat64Error::Range(first, last)) } else { Ok((from..=to).map(Ipv4Addr::from_bits)) }
}

impl Nat64 {
    fn is_there(&self, address: Ipv4Addr) -> bool {
        self.state.borrow().pool.iter().any(|pool| pool.address == address)
    }

    /// Adds a range of addresses, for the hosts of a VRF or all.
    ///
    /// # Errors
    /// NAT64 is off, the range is none, or one is there already.
    pub fn add_addresses(
        &self,
        (first, last): (Ipv4Addr, Ipv4Addr),
        vrf: Option<u32>,
    ) -> Result<(), Nat64Error> {
        self.on()?;
        let range = range(first, last)?;
        let there: BTreeSet<Ipv4Addr> = self.state.borrow().pool.iter().map(|pool| pool.address).collect();
        if let Some(address) = range.clone().find(|address| there.contains(address)) {
            return Err(Nat64Error::AddressExists(address));
        }
        for address in range {
            if let Some(vrf) = vrf {
                self.hold_table(vrf)?;
            }
            self.state.borrow_mut().pool.push(Pool { address, vrf, from: None });
        }
        self.publish();
        Ok(())
    }

    /// Takes a range of addresses out; sessions that use them end.
    ///
    /// # Errors
    /// NAT64 is off, the range is none, or one is not there.
    pub fn del_addresses(&self, (first, last): (Ipv4Addr, Ipv4Addr)) -> Result<(), Nat64Error> {
        self.on()?;
        let gone: BTreeSet<Ipv4Addr> = range(first, last)?.collect();
        let there: BTreeSet<Ipv4Addr> = self.state.borrow().pool.iter().map(|pool| pool.address).collect();
        if let Some(address) = gone.difference(&there).next() {
            return Err(Nat64Error::NoAddress(*address));
        }
        self.forget_addresses(gone);
        Ok(())
    }

    fn forget_addresses(&self, gone: BTreeSet<Ipv4Addr>) {
        let mut state = self.state.borrow_mut();
        let (out, left) = state.pool.iter().partition(|pool| gone.contains(&pool.address));
        state.pool = left;
        drop(state);
        let out: Vec<Pool> = out;
        out.iter().filter_map(|pool| pool.vrf).for_each(|vrf| self.release_table(vrf));
        self.forget_bindings(|_, outside| gone.contains(&outside.address));
        self.publish();
        if let Err(e) = self.end_sessions(move |record| gone.contains(&record.outside.address)) {
            tracing::warn!("sessions of addresses that are gone stay until they time out: {e}");
        }
    }

    /// All addresses.
    pub fn addresses(&self) -> Vec<Address> {
        let shown = |pool: &Pool| {
            let Pool { address, vrf, from } = *pool;
            Address { address, vrf, follows: from.is_some() }
        };
        self.state.borrow().pool.iter().map(shown).collect()
    }

    /// Interfaces whose addresses hosts share.
    pub fn followed(&self) -> Vec<SwIfIndex> {
        self.state.borrow().followed.iter().copied().collect()
    }

    /// Hosts share the first address of an interface, now and later.
    ///
    /// # Errors
    /// NAT64 is off, there is no such interface, or they do already.
    pub fn follow_interface(&self, interface: SwIfIndex) -> Result<(), Nat64Error> {
        self.on()?;
        let name = self.interfaces.name(interface)?;
        if !self.state.borrow_mut().followed.insert(interface) {
            return Err(Nat64Error::Interface(format!("the address of {name} is used already")));
        }
        self.follow_addresses(interface);
        Ok(())
    }

    /// They do no more.
    ///
    /// # Errors
    /// NAT64 is off, or they do not.
    pub fn unfollow_interface(&self, interface: SwIfIndex) -> Result<(), Nat64Error> {
        self.on()?;
        if !self.state.borrow_mut().followed.remove(&interface) {
            let name = self.interfaces.name(interface).unwrap_or_else(|_| interface.0.to_string());
            return Err(Nat64Error::NoInterface(name));
        }
        self.set_followed(interface, None);
        self.publish();
        Ok(())
    }

    /// An interface's addresses are others now.
    pub(super) fn follow_addresses(&self, interface: SwIfIndex) {
        if !self.is_on() {
            return;
        }
        if self.state.borrow().followed.contains(&interface) {
            self.set_followed(interface, self.ip4.primary(interface));
        }
        // Others may be an interface's now, or no more.
        self.publish();
    }

    /// The address an interface gives is this now, or none.
    pub(super) fn set_followed(&self, interface: SwIfIndex, address: Option<Ipv4Addr>) {
        let state = self.state.borrow();
        let old = state.pool.iter().find(|pool| pool.from == Some(interface)).map(|pool| pool.address);
        drop(state);
        if old == address {
            return;
        }
        if let Some(old) = old {
            self.forget_addresses([old].into());
        }
        match address {
            Some(address) if self.is_there(address) => {
                tracing::warn!(%interface, "its address {address} is shared already");
            }
            Some(address) => {
                self.state.borrow_mut().pool.push(Pool { address, vrf: None, from: Some(interface) });
            }
            None => {}
        }
    }

    /// The addresses as packets see them.
    pub(super) fn pool_of_packets(&self) -> Vec<PoolAddress> {
        let own: BTreeSet<Ipv4Addr> = self
            .interfaces
            .indices()
            .into_iter()
            .flat_map(|interface| self.ip4.addresses(interface))
            .map(|prefix| prefix.addr())
            .collect();
        let table = |vrf| self.fib.index_of(Family::Ip6, vrf).ok().map(|table| table.0);
        let seen = |pool: &Pool| PoolAddress {
            address: pool.address,
            table: pool.vrf.and_then(table),
            is_own: own.contains(&pool.address),
        };
        self.state.borrow().pool.iter().map(seen).collect()
    }

    /// Shared addresses that others find on a link, if this router is the one that forwards: in the tables of interfaces to the
    /// outside they are its own.
    pub(super) fn proxied(&self) -> BTreeMap<(FibIndex, Ip4Prefix), SwIfIndex> {
        let (mut wanted, state) = (BTreeMap::new(), self.state.borrow());
        let answers = !self.is_standby.get();
        for (interface, _) in state.sides.iter().filter(|(_, sides)| sides.outside && answers) {
            let table = self.ip4.fib_of(*interface);
            for pool in &state.pool {
                wanted.entry((table, Ip4Prefix::host(pool.address))).or_insert(*interface);
            }
        }
        wanted
    }

    /// The router answers for shared addresses.
    pub(super) fn answer_for_pool(&self) {
        let wanted = self.proxied();
        self.state.borrow_mut().routes.replace(&self.fib, &wanted);
    }
}
