//! Unnumbered interfaces: they run IPv6 with a link-local address of their own and the other addresses of another
//! interface.
//!
//! A borrowed address brings no connected network: a host behind such an interface is reached by a route that names it,
//! or is learnt by neighbour discovery.

use shoal_interface::SwIfIndex;
use shoal_ip::{AddressError, Addresses as _};
use shoal_wire::Ip6Prefix;

use super::{AddressEvent, Ip6, Ip6Info};

impl Ip6 {
    /// Lets an interface speak from the addresses of another one, or no longer.
    ///
    /// # Errors
    /// One of them is not there, they use different tables, the interface lends itself, or the other borrows.
    pub fn set_unnumbered(
        &self,
        interface: SwIfIndex,
        lender: Option<SwIfIndex>,
    ) -> Result<(), AddressError> {
        if lender.is_some() {
            self.interfaces.check_routable(interface)?;
        }
        self.check_borrows(interface, lender)?;
        let old = self.on(interface);
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

    /// A lender has other addresses now: groups and neighbour discovery follow.
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
