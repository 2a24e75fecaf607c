//! Which addresses an interface may have and lend, and the replacement of all of them: they are marked, those that are
//! wanted are given again, and the others go. Nothing changes for packets to an address that is given again.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Display;

use shoal_adj::Family;
use shoal_fib::{Connected, Fib, HostAddress, OnInterface};
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_wire::IpPrefix;

use super::AddressError;
use super::error::{list, nearest};

/// A family's control plane of addresses: the family says where it keeps them, the rules are written once.
pub trait Addresses {
    /// An address and its network.
    type Prefix: Copy + Ord + Display + Into<IpPrefix> + Into<HostAddress> + 'static;
    /// What is kept of an interface.
    type Facts: OnInterface + Clone + Default;
    /// The family.
    const FAMILY: Family;

    /// All interfaces.
    fn ports(&self) -> &Interfaces;
    /// The forwarding tables.
    fn routes(&self) -> &Fib;
    /// What is kept of interfaces.
    fn connected(&self) -> &RefCell<Connected<Self::Facts>>;
    /// Addresses that go at the end of a replacement.
    fn marked(&self) -> &RefCell<BTreeSet<(SwIfIndex, Self::Prefix)>>;
    /// The addresses of one interface.
    fn prefixes(facts: &Self::Facts) -> &[Self::Prefix];
    /// Takes an address from an interface.
    ///
    /// # Errors
    /// It does not have it.
    fn delete(&self, interface: SwIfIndex, address: Self::Prefix) -> Result<(), AddressError>;

    /// What is kept of an interface.
    fn facts(&self, interface: SwIfIndex) -> Self::Facts {
        self.connected().borrow().get(&interface).cloned().unwrap_or_default()
    }

    /// The id of the table packets received on the interface are looked up in.
    ///
    /// # Errors
    /// There is no such interface.
    fn table_id(&self, interface: SwIfIndex) -> Result<u32, AddressError> {
        self.ports().data(interface)?;
        Ok(self.routes().id_of(Self::FAMILY, self.facts(interface).fib())?)
    }

    /// Marks all addresses of all interfaces.
    fn replace_begin(&self) {
        let connected = self.connected().borrow();
        let all = connected.iter().flat_map(|(i, facts)| Self::prefixes(facts).iter().map(|a| (*i, *a)));
        *self.marked().borrow_mut() = all.collect();
    }

    /// Takes all addresses away that are still marked.
    ///
    /// # Errors
    /// The last that stays, if any does.
    fn replace_end(&self) -> Result<(), AddressError> {
        let mut result = Ok(());
        for (interface, address) in self.marked().take() {
            if Self::prefixes(&self.facts(interface)).contains(&address) {
                // One that stays keeps no other.
                result = self.delete(interface, address).and(result);
            }
        }
        result
    }

    /// An address is given to an interface: whether it has it and had been marked.
    fn unmark(&self, interface: SwIfIndex, address: Self::Prefix) -> bool {
        let marked = self.marked().borrow_mut().remove(&(interface, address));
        marked && Self::prefixes(&self.facts(interface)).contains(&address)
    }

    /// Whether an interface has an address.
    ///
    /// # Errors
    /// It has not.
    fn check_has(&self, interface: SwIfIndex, address: Self::Prefix) -> Result<(), AddressError> {
        let facts = self.facts(interface);
        let there = Self::prefixes(&facts);
        if there.contains(&address) {
            return Ok(());
        }
        let nearest = nearest(address, there).map(Into::into);
        Err(AddressError::NoAddress {
            interface: self.ports().name(interface)?,
            address: address.into(),
            nearest,
        })
    }

    /// Whether an interface may have an address of its own as far as others are concerned. Addresses that are marked for going and
    /// are in its way go now.
    ///
    /// # Errors
    /// It has the address already, or a network of its table overlaps.
    fn check_room(&self, interface: SwIfIndex, address: Self::Prefix) -> Result<(), AddressError> {
        let (name, facts) = (self.ports().name(interface)?, self.facts(interface));
        let (wanted, host): (IpPrefix, HostAddress) = (address.into(), address.into());
        if facts.addresses().any(|a| a.bits == host.bits) {
            return Err(AddressError::Duplicate { interface: name, address: wanted });
        }
        // A second address in the same network is fine, but only on the same interface.
        let clash = || self.connected().borrow().overlapping(facts.fib(), interface, address);
        let of_other = |(index, other): (SwIfIndex, HostAddress)| {
            let there = self.facts(index);
            Self::prefixes(&there).iter().copied().find(|a| -> bool {
                let host: HostAddress = (*a).into();
                host == other
            })
        };
        let mut found = clash();
        // One that is marked for going gives way now: who replaces addresses did not want it on that interface.
        while let Some(there) = found {
            let marked = |a: &Self::Prefix| self.marked().borrow().contains(&(there.0, *a));
            let Some(stale) = of_other(there).filter(marked) else { break };
            self.delete(there.0, stale)?;
            found = clash();
        }
        let Some((index, other)) = found else { return Ok(()) };
        let table = self.routes().id_of(Self::FAMILY, facts.fib())?;
        Err(AddressError::Overlap {
            address: wanted,
            other: of_other((index, other)).unwrap_or(address).into(),
            interface: self.ports().name(index)?,
            table,
        })
    }

    /// Whether an interface may change to another table.
    ///
    /// # Errors
    /// It has addresses, which belong to its old one.
    fn check_moves(&self, interface: SwIfIndex) -> Result<(), AddressError> {
        let facts = self.facts(interface);
        let addresses = Self::prefixes(&facts);
        if addresses.is_empty() {
            return Ok(());
        }
        Err(AddressError::HasAddresses {
            interface: self.ports().name(interface)?,
            table: self.routes().id_of(Self::FAMILY, facts.fib())?,
            addresses: list(addresses),
        })
    }

    /// Whether an interface can borrow from another, or stop borrowing.
    ///
    /// # Errors
    /// One of them is not there, they use different tables, the interface lends itself, or the other borrows.
    fn check_borrows(&self, interface: SwIfIndex, lender: Option<SwIfIndex>) -> Result<(), AddressError> {
        let ports = self.ports();
        let (name, facts) = (ports.name(interface)?, self.facts(interface));
        let Some(lender) = lender else {
            // As VPP: one that borrows nothing stops doing so without complaint.
            return Ok(());
        };
        let (of, lender_name) = (self.facts(lender), ports.name(lender)?);
        let borrower = self.borrowers(interface).into_iter().next();
        let why = if lender == interface {
            "it cannot lend to itself".to_owned()
        } else if let Some(borrower) = borrower {
            format!("{} borrows from {name}", ports.name(borrower)?)
        } else if let Some(beyond) = of.lender() {
            format!("{lender_name} has none of its own, use {}", ports.name(beyond)?)
        } else if of.fib() != facts.fib() {
            let id = |fib| self.routes().id_of(Self::FAMILY, fib);
            format!("{name} uses table {} and {lender_name} table {}", id(facts.fib())?, id(of.fib())?)
        } else {
            return Ok(());
        };
        Err(AddressError::Unnumbered { interface: name, lender: lender_name, why })
    }

    /// The interfaces that borrow from one.
    fn borrowers(&self, lender: SwIfIndex) -> Vec<SwIfIndex> {
        self.connected().borrow().borrowers(lender)
    }
}
