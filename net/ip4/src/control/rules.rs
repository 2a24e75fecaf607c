//! Where the rules that both families have find IPv4.

use std::cell::RefCell;
use std::collections::BTreeSet;

use shoal_adj::Family;
use shoal_fib::{Connected, Fib};
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_ip::{AddressError, Addresses};
use shoal_wire::Ip4Prefix;

use super::Ip4;
use super::address::OnInterface;

impl Addresses for Ip4 {
    type Prefix = Ip4Prefix;
    type Facts = OnInterface;
    const FAMILY: Family = Family::Ip4;

    fn ports(&self) -> &Interfaces {
        &self.interfaces
    }

    fn routes(&self) -> &Fib {
        &self.fib
    }

    fn connected(&self) -> &RefCell<Connected<OnInterface>> {
        &self.on
    }

    fn marked(&self) -> &RefCell<BTreeSet<(SwIfIndex, Ip4Prefix)>> {
        &self.marked
    }

    fn prefixes(facts: &OnInterface) -> &[Ip4Prefix] {
        &facts.addresses
    }

    fn delete(&self, interface: SwIfIndex, address: Ip4Prefix) -> Result<(), AddressError> {
        self.del_address(interface, address)
    }
}
