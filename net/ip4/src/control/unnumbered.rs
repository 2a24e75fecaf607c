//! Unnumbered interfaces: they run IPv4 with the addresses of another. RFC 1812, 2.2.7.
//!
//! A borrowed address brings no connected network: a host behind such an interface is reached by a route that names it,
//! or is learnt by ARP, which believes stations of the lender's networks there. Addresses of its own are still the
//! router's, with their networks, as in VPP; what it says itself comes from the borrowed one.

use shoal_interface::SwIfIndex;
use shoal_ip::{AddressError, Addresses as _};
use shoal_wire::Ip4Prefix;

use super::address::OnInterface;
use super::{AddressEvent, Ip4};

/// The mask packets read of a borrowed address: only itself is known to be on the link.
const ALONE: u32 = u32::MAX;

impl Ip4 {
    /// Lets an interface run IPv4 with the addresses of another one, or no longer.
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
