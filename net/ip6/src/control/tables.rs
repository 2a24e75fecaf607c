//! The tables that packets received on interfaces are looked up in.

use shoal_adj::Family;
use shoal_interface::SwIfIndex;
use shoal_ip::{AddressError, Addresses as _};

use super::{Ip6, Ip6Info};

impl Ip6 {
    /// Has packets received on an interface looked up in another table.
    ///
    /// # Errors
    /// There is no such interface or table, or the interface has addresses, which belong to its old one.
    pub fn set_table(&self, interface: SwIfIndex, table: u32) -> Result<(), AddressError> {
        self.follow_table(interface, table)?;
        self.fib.ask_for(Family::Ip6, self.fib_of(interface));
        Ok(())
    }

    /// The same for a feature, which does so again when it is needed: no configuration has the table for that.
    ///
    /// # Errors
    /// As [`set_table`](Self::set_table).
    pub fn follow_table(&self, interface: SwIfIndex, table: u32) -> Result<(), AddressError> {
        self.interfaces.data(interface)?;
        let fib = self.fib.index_of(Family::Ip6, table)?;
        let old = self.on(interface);
        if old.fib == fib {
            return Ok(());
        }
        self.check_moves(interface)?;
        self.apply(interface, &old, Ip6Info { fib, ..old.clone() })
    }
}
