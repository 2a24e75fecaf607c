//! Addresses that interfaces have from the prefixes of a provider.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::rc::Rc;

use shoal_interface::SwIfIndex;
use shoal_ip6_nd::Nd;
use shoal_wire::Ip6Prefix;

use super::clients6::check_group;
use super::{Dhcp, DhcpError};
use crate::client_message6::Wanted;
use crate::client6::Lease6;

/// An address that an interface has from a prefix of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FromPrefix {
    /// The interface.
    pub interface: SwIfIndex,
    /// The group.
    pub group: String,
    /// The bits behind the prefix, and how many of the whole are the link's.
    pub rest: Ip6Prefix,
    /// The address, while there is a prefix.
    pub address: Option<Ip6Prefix>,
}

impl Dhcp {
    /// Prefixes that a group has.
    fn prefixes_of(&self, group: &str) -> Vec<Lease6> {
        let all = self.clients6.all.borrow();
        let of =
            all.iter().filter(|((_, wanted), client)| *wanted == Wanted::Prefixes && client.group == group);
        let mut prefixes: Vec<Lease6> =
            of.flat_map(|(_, client)| client.machine.leases.iter().copied()).collect();
        prefixes.sort_unstable_by_key(|lease| lease.prefix);
        prefixes
    }

    /// What tells hosts of prefixes, if the router is not ending.
    fn nd(&self) -> Option<Rc<Nd>> {
        self.control.upgrade().and_then(|control| control.get().ok())
    }

    /// Addresses follow the prefixes of their groups.
    pub(super) fn renew_from_prefixes(&self) {
        let uses = self.clients6.from_prefixes.borrow().clone();
        let nd = self.nd();
        for old in uses {
            let prefixes = self.prefixes_of(&old.group);
            let of =
                |lease: &Lease6| Some((combined(lease.prefix, old.rest)?, (lease.preferred, lease.valid)));
            let times: BTreeMap<Ip6Prefix, _> = prefixes.iter().filter_map(of).collect();
            let all: Vec<Ip6Prefix> = times.keys().copied().collect();
            // One that is still given stays.
            let new = old.address.filter(|address| all.contains(address)).or(all.first().copied());
            if let (Some(nd), Some(address)) = (&nd, new)
                && let Some(times) = times.get(&address)
            {
                nd.advertise_delegated(old.interface, address, *times);
            }
            if new == old.address {
                continue;
            }
            if let Some(address) = old.address {
                self.drop6(old.interface, address);
                if let Some(nd) = &nd {
                    nd.forget_delegated(old.interface, address);
                }
            }
            if let Some(address) = new {
                self.take6(old.interface, address);
            }
            let mut uses = self.clients6.from_prefixes.borrow_mut();
            if let Some(found) = uses.iter_mut().find(|found| found.is_same(&old)) {
                found.address = new;
            }
        }
    }

    /// Gives an interface an address from a group's prefix, as soon as there is one.
    ///
    /// # Errors
    /// There is no such interface, or it has that address already.
    pub fn add_from_prefix(
        &self,
        interface: SwIfIndex,
        group: &str,
        rest: Ip6Prefix,
    ) -> Result<(), DhcpError> {
        self.interfaces.data(interface)?;
        check_group(group)?;
        let new = FromPrefix { interface, group: group.to_owned(), rest, address: None };
        let mut all = self.clients6.from_prefixes.borrow_mut();
        if all.iter().any(|there| there.is_same(&new)) {
            return Err(DhcpError::FromPrefixExists(rest, group.to_owned()));
        }
        all.push(new);
        drop(all);
        self.renew_from_prefixes();
        Ok(())
    }

    /// Takes it away.
    ///
    /// # Errors
    /// There is no such interface, or it has none.
    pub fn del_from_prefix(
        &self,
        interface: SwIfIndex,
        group: &str,
        rest: Ip6Prefix,
    ) -> Result<(), DhcpError> {
        self.interfaces.data(interface)?;
        let wanted = FromPrefix { interface, group: group.to_owned(), rest, address: None };
        let mut all = self.clients6.from_prefixes.borrow_mut();
        let at = all.iter().position(|there| there.is_same(&wanted));
        let old =
            at.map(|at| all.remove(at)).ok_or_else(|| DhcpError::NoFromPrefix(rest, group.to_owned()))?;
        drop(all);
        if let Some(address) = old.address {
            self.drop6(interface, address);
            if let Some(nd) = self.nd() {
                nd.forget_delegated(interface, address);
            }
        }
        Ok(())
    }

    /// Addresses that interfaces have from prefixes.
    pub fn from_prefixes(&self) -> Vec<FromPrefix> {
        self.clients6.from_prefixes.borrow().clone()
    }
}

impl FromPrefix {
    fn is_same(&self, other: &FromPrefix) -> bool {
        (self.interface, &self.group, self.rest) == (other.interface, &other.group, other.rest)
    }
}

/// The address that has the first bits of a prefix and the last ones of another; `None`: the prefix is longer than the link's.
fn combined(prefix: Ip6Prefix, rest: Ip6Prefix) -> Option<Ip6Prefix> {
    let host = u128::MAX.checked_shr(prefix.len().into()).unwrap_or(0);
    let bits = prefix.addr().to_bits() & !host | rest.addr().to_bits() & host;
    if prefix.len() > rest.len() {
        return None;
    }
    Ip6Prefix::new(Ipv6Addr::from_bits(bits), rest.len()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_made_of_a_prefix_and_the_rest() {
        let of = |prefix: &str, rest: &str| {
            let (prefix, rest) = (prefix.parse().ok()?, rest.parse().ok()?);
            combined(prefix, rest).map(|address| address.to_string())
        };
        assert_eq!(of("2001:db8:ab00::/56", "::7:0:0:0:1/64"), Some("2001:db8:ab00:7::1/64".to_owned()));
        assert_eq!(of("2001:db8:ab00:cd::/64", "::7:0:0:0:1/64"), Some("2001:db8:ab00:cd::1/64".to_owned()));
        assert_eq!(of("2001:db8:ab00:cd00::/72", "::1/64"), None);
        assert_eq!(of("::/0", "2001:db8::1/64"), Some("2001:db8::1/64".to_owned()));
    }
}
