//! Unnumbered interfaces: they run IPv6 with a link-local address of their own and the other addresses of another
//! interface.
//!
//! A borrowed address brings no connected network: whoever is behind such an interface is reached by a route that names
//! it, or is learnt by neighbour discovery.

use shoal_adj::Family;
use shoal_interface::SwIfIndex;
use shoal_ip4::{Ip4, Ip4Error};
use shoal_wire::Ip6Prefix;

use super::{AddressEvent, Ip6, Ip6Error, Ip6Info};

/// Why an interface cannot borrow addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BorrowError {
    /// Those of IPv4.
    #[error(transparent)]
    Ip4(#[from] Ip4Error),
    /// Those of IPv6.
    #[error(transparent)]
    Ip6(#[from] Ip6Error),
}

/// Lets an interface speak from the addresses of another one, of both families or neither, or no longer.
///
/// # Errors
/// As [`Ip6::set_unnumbered`]; nothing is changed then.
pub fn set_unnumbered(
    ip4: &Ip4,
    ip6: &Ip6,
    interface: SwIfIndex,
    lender: Option<SwIfIndex>,
) -> Result<(), BorrowError> {
    let Some(lender) = lender else {
        // Both borrow or neither does.
        let (four, six) = (ip4.set_unnumbered(interface, None), ip6.set_unnumbered(interface, None));
        four?;
        return Ok(six?);
    };
    let before = ip4.lender(interface);
    ip4.set_unnumbered(interface, Some(lender))?;
    if let Err(e) = ip6.set_unnumbered(interface, Some(lender)) {
        // Nothing is half applied.
        ip4.set_unnumbered(interface, before)?;
        return Err(e.into());
    }
    Ok(())
}

impl Ip6 {
    /// Lets an interface speak from the addresses of another one, or no longer.
    ///
    /// # Errors
    /// One of them is not there, they use different tables, the interface has addresses or lends them itself, the other
    /// borrows, or it does not borrow anything.
    pub fn set_unnumbered(&self, interface: SwIfIndex, lender: Option<SwIfIndex>) -> Result<(), Ip6Error> {
        let name = self.interfaces.name(interface)?;
        let old = self.on(interface);
        match lender {
            Some(lender) => self.check_unnumbered(interface, &name, lender, &old)?,
            None if old.borrows.is_none() => return Err(Ip6Error::NotUnnumbered(name)),
            None => {}
        }
        self.apply(interface, &old, Ip6Info { borrows: lender, ..old.clone() })?;
        self.tell(AddressEvent::Borrowed(interface));
        Ok(())
    }

    /// The addresses an unnumbered interface borrows, those that may be used.
    pub fn borrowed(&self, interface: SwIfIndex) -> Vec<Ip6Prefix> {
        self.borrowed_by(&self.on(interface))
    }

    pub(super) fn borrowed_by(&self, info: &Ip6Info) -> Vec<Ip6Prefix> {
        let on = self.on.borrow();
        let lender = info.borrows.and_then(|lender| on.get(&lender));
        lender.map(|lender| lender.usable().copied().collect()).unwrap_or_default()
    }

    fn check_unnumbered(
        &self,
        interface: SwIfIndex,
        name: &str,
        lender: SwIfIndex,
        old: &Ip6Info,
    ) -> Result<(), Ip6Error> {
        let (of, lender_name) = (self.on(lender), self.interfaces.name(lender)?);
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
            let id = |fib| self.fib.id_of(Family::Ip6, fib);
            format!("{name} uses table {} and {lender_name} table {}", id(old.fib)?, id(of.fib)?)
        } else {
            return Ok(());
        };
        Err(Ip6Error::Unnumbered { interface: name.to_owned(), lender: lender_name, why })
    }

    pub(super) fn check_borrows_nothing(&self, name: &str, on: &Ip6Info) -> Result<(), Ip6Error> {
        match on.borrows {
            Some(lender) => Err(Ip6Error::IsUnnumbered(name.to_owned(), self.interfaces.name(lender)?)),
            None => Ok(()),
        }
    }

    fn borrowers(&self, lender: SwIfIndex) -> Vec<SwIfIndex> {
        self.on.borrow().borrowers(lender)
    }

    /// A lender has other addresses now: groups and whoever asks for neighbours follow.
    pub(super) fn renew_borrowers(&self, lender: SwIfIndex) {
        for interface in self.borrowers(lender) {
            let on = self.on(interface);
            if let Err(e) = self.apply(interface, &on, on.clone()) {
                tracing::warn!(%interface, "it is in the groups of its old addresses: {e}");
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
