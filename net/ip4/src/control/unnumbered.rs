//! Unnumbered interfaces: they run IPv4 with the addresses of another. RFC 1812, 2.2.7.
//!
//! A borrowed address brings no connected network: whoever is behind such an interface is reached by a route that
//! names it, or is learnt by ARP, which believes stations of the lender's networks there.

use shoal_interface::SwIfIndex;
use shoal_wire::Ip4Prefix;

use super::address::OnInterface;
use super::{AddressEvent, Ip4, Ip4Error};

/// The mask packets read of a borrowed address: only itself is known to be on the link.
const ALONE: u32 = u32::MAX;

impl Ip4 {
    /// Lets an interface run IPv4 with the addresses of another one, or no longer.
    ///
    /// # Errors
    /// One of them is not there, they use different tables, the interface has addresses or lends them itself, the other
    /// borrows, or it does not borrow anything.
    pub fn set_unnumbered(&self, interface: SwIfIndex, lender: Option<SwIfIndex>) -> Result<(), Ip4Error> {
        let name = self.interfaces.name(interface)?;
        let old = self.on(interface);
        match lender {
            Some(lender) => self.check_unnumbered(interface, &name, lender, &old)?,
            None if old.borrows.is_none() => return Err(Ip4Error::NotUnnumbered(name)),
            None => {}
        }
        self.apply(interface, &old, OnInterface { borrows: lender, ..old.clone() })?;
        self.tell(AddressEvent::Borrowed(interface));
        Ok(())
    }

    /// The interface that lends an unnumbered one its addresses.
    pub fn lender(&self, interface: SwIfIndex) -> Option<SwIfIndex> {
        self.on.borrow().get(&interface)?.borrows
    }

    /// The addresses an interface speaks from: its own, or those it borrows.
    pub fn spoken(&self, interface: SwIfIndex) -> Vec<Ip4Prefix> {
        let on = self.on.borrow();
        let Some(of) = on.get(&interface) else { return Vec::new() };
        match of.borrows.and_then(|lender| on.get(&lender)) {
            Some(lender) => lender.addresses.clone(),
            None => of.addresses.clone(),
        }
    }

    fn check_unnumbered(
        &self,
        interface: SwIfIndex,
        name: &str,
        lender: SwIfIndex,
        old: &OnInterface,
    ) -> Result<(), Ip4Error> {
        let (interface_name, lender_name) = (name.to_owned(), self.interfaces.name(lender)?);
        let of = self.on(lender);
        let borrower = self.borrowers(interface).into_iter().next();
        let why = if lender == interface {
            "it cannot lend to itself".to_owned()
        } else if !old.addresses.is_empty() {
            let addresses: Vec<String> = old.addresses.iter().map(ToString::to_string).collect();
            format!("{name} has addresses, remove them first: {}", addresses.join(", "))
        } else if let Some(borrower) = borrower {
            format!("{} borrows from {name}", self.interfaces.name(borrower)?)
        } else if let Some(beyond) = of.borrows {
            format!("{lender_name} has none of its own, use {}", self.interfaces.name(beyond)?)
        } else if of.fib != old.fib {
            let id = |fib| self.fib.id_of(shoal_fib::Family::Ip4, fib);
            format!("{name} uses table {} and {lender_name} table {}", id(old.fib)?, id(of.fib)?)
        } else {
            return Ok(());
        };
        Err(Ip4Error::Unnumbered { interface: interface_name, lender: lender_name, why })
    }

    pub(super) fn check_borrows_nothing(
        &self,
        interface: SwIfIndex,
        name: &str,
        on: &OnInterface,
    ) -> Result<(), Ip4Error> {
        match on.borrows {
            Some(lender) if lender != interface => {
                Err(Ip4Error::IsUnnumbered(name.to_owned(), self.interfaces.name(lender)?))
            }
            _ => Ok(()),
        }
    }

    fn borrowers(&self, lender: SwIfIndex) -> Vec<SwIfIndex> {
        self.on.borrow().borrowers(lender)
    }

    /// What packets read of a borrowed address; the interface counts from 1, so that 0 is none.
    pub(super) fn borrowed_words(&self, on: &OnInterface) -> Option<[u32; 3]> {
        let lender = on.borrows?;
        let address = self.on.borrow().get(&lender).and_then(|of| of.addresses.first().copied());
        let mask = if address.is_some() { ALONE } else { 0 };
        Some([address.map_or(0, |a| a.addr().to_bits()), mask, lender.0 + 1])
    }

    /// A lender has other addresses now.
    pub(super) fn renew_borrowers(&self, lender: SwIfIndex) {
        for interface in self.borrowers(lender) {
            if let Err(e) = self.publish_primary(interface, &self.on(interface)) {
                tracing::warn!(%interface, "it speaks from its old address: {e}");
            }
            self.tell(AddressEvent::Borrowed(interface));
        }
    }

    /// A lender is deleted.
    pub(super) fn stop_lending(&self, lender: SwIfIndex) {
        for interface in self.borrowers(lender) {
            if let Err(e) = self.set_unnumbered(interface, None) {
                tracing::warn!(%interface, "it stays unnumbered: {e}");
            }
        }
    }
}
