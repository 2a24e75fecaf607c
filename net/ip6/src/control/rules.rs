//! Where the rules that both families have find IPv6.

use std::cell::RefCell;
use std::collections::BTreeSet;

use shoal_adj::Family;
use shoal_fib::{Connected, Fib};
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_ip::{AddressError, Addresses};
use shoal_wire::Ip6Prefix;

use super::{Ip6, Ip6Info};

impl Addresses for Ip6 {
    type Prefix = Ip6Prefix;
    type Facts = Ip6Info;
    const FAMILY: Family = Family::Ip6;

    fn ports(&self) -> &Interfaces {
        &self.interfaces
    }

    fn routes(&self) -> &Fib {
        &self.fib
    }

    fn connected(&self) -> &RefCell<Connected<Ip6Info>> {
        &self.on
    }

    fn marked(&self) -> &RefCell<BTreeSet<(SwIfIndex, Ip6Prefix)>> {
        &self.marked
    }

    fn prefixes(facts: &Ip6Info) -> &[Ip6Prefix] {
        &facts.addresses
    }

    fn delete(&self, interface: SwIfIndex, address: Ip6Prefix) -> Result<(), AddressError> {
        self.del_address(interface, address)
    }
}
