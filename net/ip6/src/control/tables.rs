//! The tables that packets received on interfaces are looked up in.

use shoal_adj::Family;
use shoal_interface::SwIfIndex;

use super::address::list;
use super::{Ip6, Ip6Error, Ip6Info};

impl Ip6 {
    /// The id of the table packets received on the interface are looked up in.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn table_id(&self, interface: SwIfIndex) -> Result<u32, Ip6Error> {
        self.interfaces.data(interface)?;
        Ok(self.fib.id_of(Family::Ip6, self.fib_of(interface))?)
    }

    /// Has packets received on an interface looked up in another table.
    ///
    /// # Errors
    /// There is no such interface or table, or the interface has addresses, which belong to its old one.
    pub fn set_table(&self, interface: SwIfIndex, table: u32) -> Result<(), Ip6Error> {
        let name = self.interfaces.name(interface)?;
        let fib = self.fib.index_of(Family::Ip6, table)?;
        let old = self.on(interface);
        if old.fib == fib {
            return Ok(());
        }
        if !old.addresses.is_empty() {
            let (table, addresses) = (self.fib.id_of(Family::Ip6, old.fib)?, list(&old.addresses));
            return Err(Ip6Error::HasAddresses { interface: name, table, addresses });
        }
        self.apply(interface, &old, Ip6Info { fib, ..old.clone() })
    }
}
