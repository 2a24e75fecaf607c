//! Addresses that are not the router's yet, and groups that others want it in.

use std::net::Ipv6Addr;

use shoal_interface::SwIfIndex;
use shoal_ip::AddressError;

use super::{Ip6, Ip6Info};

/// Whether an address of an interface may be used. RFC 4862, 5.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Packets to it are for the router, which speaks from it.
    Allowed,
    /// It is not known yet to be the router's alone, or is known not to be: packets to it are thrown away.
    Barred,
}

impl Ip6 {
    /// An address that an interface has was made of what the network advertised, for as long as it has it.
    pub fn set_learnt(&self, interface: SwIfIndex, address: Ipv6Addr) {
        let known = self.on.borrow().get(&interface).cloned();
        if let Some(mut on) = known
            && on.learnt.insert(address)
        {
            self.on.borrow_mut().insert(interface, on);
        }
    }

    /// Another party has brought an address: it is part of the configuration, but no older configuration takes it away. That stays so
    /// until the party says otherwise, also while the interface goes without the address on its way to another table.
    pub fn set_brought(&self, interface: SwIfIndex, address: Ipv6Addr, by_others: bool) {
        let mut brought = self.brought.borrow_mut();
        if by_others {
            brought.insert((interface, address));
        } else {
            brought.remove(&(interface, address));
        }
    }

    /// Whether another party has brought an address.
    pub fn is_brought(&self, interface: SwIfIndex, address: Ipv6Addr) -> bool {
        self.brought.borrow().contains(&(interface, address))
    }

    /// New addresses are not used from now on until somebody has found out that they are the router's alone, and says
    /// so by [`Ip6::set_use`].
    pub fn prove_addresses(&self) {
        self.proving.set(true);
    }

    /// Says whether an address is used. An address that the interface does not have is no error: it may just have
    /// gone.
    ///
    /// # Errors
    /// A table is full; nothing was changed.
    pub fn set_use(&self, interface: SwIfIndex, address: Ipv6Addr, on: Use) -> Result<(), AddressError> {
        let old = self.on(interface);
        let mut new = old.clone();
        let changed = match on {
            Use::Allowed => new.unproven.remove(&address),
            Use::Barred => old.all().any(|a| a == address) && new.unproven.insert(address),
        };
        if changed { self.apply(interface, &old, new) } else { Ok(()) }
    }

    /// Carries over which addresses are not proven; new ones are not, if somebody proves them.
    pub(super) fn keep_unproven(&self, old: &Ip6Info, new: &mut Ip6Info) {
        let all: Vec<Ipv6Addr> = new.all().collect();
        new.unproven.retain(|a| all.contains(a));
        if self.proving.get() {
            new.unproven.extend(all.into_iter().filter(|a| old.all().all(|had| had != *a)));
        }
    }

    /// The router is in a group on an interface, as long as IPv6 runs there; one user more.
    ///
    /// # Errors
    /// A table is full; nothing was changed.
    pub fn join(&self, interface: SwIfIndex, group: Ipv6Addr) -> Result<(), AddressError> {
        if self.link_local(interface).is_some() {
            self.links.own(interface, group)?;
        }
        *self.joined.borrow_mut().entry((interface, group)).or_insert(0) += 1;
        Ok(())
    }

    /// One user less. The router stays in the groups of its own addresses.
    pub fn leave(&self, interface: SwIfIndex, group: Ipv6Addr) {
        {
            let mut joined = self.joined.borrow_mut();
            let Some(users) = joined.get_mut(&(interface, group)) else { return };
            *users -= 1;
            if *users > 0 {
                return;
            }
            joined.remove(&(interface, group));
        }
        let on = self.on(interface);
        if on.enabled()
            && let Err(e) = self.apply(interface, &on, on.clone())
        {
            tracing::warn!(%interface, %group, "the group is not left: {e}");
        }
    }

    pub(super) fn joined_on(&self, interface: SwIfIndex) -> Vec<Ipv6Addr> {
        let all = (interface, Ipv6Addr::UNSPECIFIED)..=(interface, Ipv6Addr::from_bits(u128::MAX));
        self.joined.borrow().range(all).map(|((_, group), _)| *group).collect()
    }
}
