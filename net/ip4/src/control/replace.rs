//! Replacing all addresses: they are marked, those that are wanted are given again, and the others go.
//!
//! Nothing changes for packets to an address that is given again.

use shoal_interface::SwIfIndex;
use shoal_wire::Ip4Prefix;

use super::{Ip4, Ip4Error};

impl Ip4 {
    /// Marks all addresses of all interfaces.
    pub fn replace_begin(&self) {
        let on = self.on.borrow();
        let all = on.iter().flat_map(|(interface, on)| on.addresses.iter().map(|a| (*interface, *a)));
        *self.marked.borrow_mut() = all.collect();
    }

    /// Takes all addresses away that are still marked.
    ///
    /// # Errors
    /// The last that stays, if any does.
    pub fn replace_end(&self) -> Result<(), Ip4Error> {
        let marked = self.marked.take();
        let left = marked.into_iter().filter(|(interface, a)| self.on(*interface).addresses.contains(a));
        let deleted: Vec<_> = left.collect();
        deleted.into_iter().fold(Ok(()), |so_far, (interface, a)| self.del_address(interface, a).and(so_far))
    }

    /// An address is given to an interface: whether it has it and had been marked.
    pub(super) fn unmark(&self, interface: SwIfIndex, address: Ip4Prefix) -> bool {
        let marked = self.marked.borrow_mut().remove(&(interface, address));
        marked && self.on(interface).addresses.contains(&address)
    }
}
