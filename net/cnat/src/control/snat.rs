//! Shared source addresses, and which packets get one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_adj::Family;
use shoal_fib::{FibIndex, Source};
use shoal_interface::SwIfIndex;
use shoal_wire::IpPrefix;

use super::endpoint::AddressSource;
use super::translations::is_one_host;
use super::{Cnat, CnatError};
use crate::config::{Config, Snat};
use crate::policy::{List, Policy, PolicyKind};
use crate::prefixes::Prefixes;
use crate::translation::bits;
use shoal_nat::Shards;

/// What is special about shared addresses. Bits are VPP's.
pub mod flags {
    /// Accepted; packets go on where they would have gone.
    pub const BUFFER_NEXT: u8 = 1;
    /// There is no route to the addresses: answers are translated that features see, no others.
    pub const NO_CLIENT: u8 = 2;
    /// Packets that came by tables without shared addresses get these.
    pub const USE_AS_DEFAULT: u8 = 4;
    /// All that mean something.
    pub const ALL: u8 = BUFFER_NEXT | NO_CLIENT | USE_AS_DEFAULT;
}

/// Shared addresses as they are given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnatSpec {
    /// The number of the tables that packets come by.
    pub table: u32,
    /// That of the tables that answers come by.
    pub back_table: u32,
    /// IPv4's; unspecified: none, or the interface's.
    pub ip4: Ipv4Addr,
    /// IPv6's.
    pub ip6: Ipv6Addr,
    /// Whose addresses are taken where none is given.
    pub interface: Option<SwIfIndex>,
    /// See [`flags`].
    pub flags: u8,
}

impl SnatSpec {
    /// No addresses.
    pub const NONE: SnatSpec = SnatSpec {
        table: 0,
        back_table: 0,
        ip4: Ipv4Addr::UNSPECIFIED,
        ip6: Ipv6Addr::UNSPECIFIED,
        interface: None,
        flags: flags::USE_AS_DEFAULT,
    };

    fn is_empty(&self) -> bool {
        self.ip4.is_unspecified() && self.ip6.is_unspecified() && self.interface.is_none()
    }

    /// Where the address of a family comes from.
    pub fn from(&self, family: Family) -> Option<AddressSource> {
        let given: IpAddr = if family == Family::Ip6 { self.ip6.into() } else { self.ip4.into() };
        if !given.is_unspecified() {
            return Some(AddressSource::Given(given));
        }
        self.interface.map(|interface| AddressSource::Interface(interface, family))
    }
}

/// All of it.
#[derive(Default)]
pub(super) struct SnatState {
    /// By table.
    pub specs: BTreeMap<u32, SnatSpec>,
    /// Forwarding tables that may not go, by the same number.
    held: BTreeMap<u32, Vec<(Family, FibIndex)>>,
    pub kind: PolicyKind,
    pub lists: BTreeSet<(SwIfIndex, List)>,
    pub excluded: BTreeSet<IpPrefix>,
}

const FAMILIES: [Family; 2] = [Family::Ip4, Family::Ip6];

impl Cnat {
    /// Sets the addresses that packets share which come by a table; without any, there are none any more.
    ///
    /// # Errors
    /// There is no such table or interface, or an address is no host's.
    pub fn set_snat(&self, spec: SnatSpec) -> Result<(), CnatError> {
        for address in [IpAddr::V4(spec.ip4), IpAddr::V6(spec.ip6)] {
            if !address.is_unspecified() && !is_one_host(address) {
                return Err(CnatError::NotOneHost(address));
            }
        }
        if spec.flags & !flags::ALL != 0 {
            let (value, nearest) = (spec.flags.into(), (spec.flags & flags::ALL).into());
            return Err(CnatError::Value { what: "snat flags", value, nearest });
        }
        if let Some(interface) = spec.interface {
            self.interfaces.name(interface)?;
        }
        for table in [spec.table, spec.back_table] {
            if FAMILIES.iter().all(|family| self.fib.index_of(*family, table).is_err()) {
                return Err(CnatError::NoTable(table));
            }
        }
        self.open()?;
        let new = if spec.is_empty() { None } else { Some(spec) };
        let held = match &new {
            Some(new) => self.hold_tables(new)?,
            None => Vec::new(),
        };
        let old = self.put_snat(spec.table, new);
        self.publish_snat();
        if let Err(e) = self.follow_routes() {
            self.put_snat(spec.table, old);
            self.publish_snat();
            self.follow_routes()?;
            self.release_tables(&held);
            return Err(e);
        }
        let before = self.state.borrow_mut().snat.held.insert(spec.table, held);
        self.release_tables(&before.unwrap_or_default());
        Ok(())
    }

    fn tables_of(&self, spec: &SnatSpec) -> Vec<(Family, FibIndex)> {
        let both = |table| FAMILIES.map(|family| Some((family, self.fib.index_of(family, table).ok()?)));
        [spec.table, spec.back_table].map(both).into_iter().flatten().flatten().collect()
    }

    /// Tables stay as long as connections that come by them share an address.
    fn hold_tables(&self, spec: &SnatSpec) -> Result<Vec<(Family, FibIndex)>, CnatError> {
        let all = self.tables_of(spec);
        for (n, (family, table)) in all.iter().enumerate() {
            if let Err(e) = self.fib.lock(*family, *table, Source::Feature) {
                self.release_tables(all.get(..n).unwrap_or_default());
                return Err(e.into());
            }
        }
        Ok(all)
    }

    fn release_tables(&self, held: &[(Family, FibIndex)]) {
        for (family, table) in held {
            self.fib.unlock(*family, *table, Source::Feature);
        }
    }

    fn put_snat(&self, table: u32, spec: Option<SnatSpec>) -> Option<SnatSpec> {
        let specs = &mut self.state.borrow_mut().snat.specs;
        match spec {
            Some(spec) => specs.insert(table, spec),
            None => specs.remove(&table),
        }
    }

    /// Shared addresses by table.
    pub fn snats(&self) -> Vec<SnatSpec> {
        self.state.borrow().snat.specs.values().copied().collect()
    }

    /// Those of packets that came by any other table.
    pub fn default_snat(&self) -> Option<SnatSpec> {
        self.snats().into_iter().find(|spec| spec.flags & flags::USE_AS_DEFAULT != 0)
    }

    /// The address of a family now.
    pub fn snat_address(&self, spec: &SnatSpec, family: Family) -> Option<IpAddr> {
        self.addresses().of(spec.from(family)?)
    }

    /// Shared addresses with the table of their answers, of those that are to have a route.
    pub(super) fn snat_routes(&self) -> Vec<(u32, IpAddr)> {
        let addresses = self.addresses();
        let mut all = Vec::new();
        for spec in self.snats().iter().filter(|spec| spec.flags & flags::NO_CLIENT == 0) {
            for family in FAMILIES {
                let address = self.snat_address(spec, family);
                let table = self.fib.index_of(family, spec.back_table);
                // The router's own addresses have theirs.
                let address = address.filter(|a| addresses.interface_of(*a, &self.interfaces).is_none());
                if let (Some(address), Ok(table)) = (address, table) {
                    all.push((table.0, address));
                }
            }
        }
        all
    }

    /// Has packets see the policy, interfaces' addresses as they are now.
    pub(super) fn publish_snat(&self) {
        let snats = self.snats();
        let mut shared: Shards<(bool, u128), ()> = Shards::default();
        let mut list = Vec::new();
        for spec in &snats {
            let of = |family, table| self.fib.index_of(family, table).map(|fib| fib.0).ok();
            let addresses = FAMILIES.map(|family| self.snat_address(spec, family));
            for address in addresses.iter().flatten() {
                shared.insert((address.is_ipv6(), bits(*address)), ());
            }
            list.push(Snat {
                tables: FAMILIES.map(|family| of(family, spec.table)),
                // The table of answers is written only if it differs.
                back_tables: FAMILIES
                    .map(|family| of(family, spec.back_table).filter(|_| spec.back_table != spec.table)),
                addresses: addresses.map(|address| address.map(bits)),
                is_default: spec.flags & flags::USE_AS_DEFAULT != 0,
            });
        }
        let state = &mut *self.state.borrow_mut();
        let mut policy = Policy::new(state.snat.kind, Prefixes::new(state.snat.excluded.iter()));
        for (interface, of) in &state.snat.lists {
            policy.set(*interface, *of, true);
        }
        let config: &mut Config = &mut state.config;
        (config.snat, config.snat_addresses, config.policy) = (list, shared, policy);
        self.publish(state);
    }

    /// Sets which packets get a shared source.
    ///
    /// # Errors
    /// There is no memory for sessions.
    pub fn set_policy(&self, kind: PolicyKind) -> Result<(), CnatError> {
        self.open()?;
        self.state.borrow_mut().snat.kind = kind;
        self.publish_snat();
        Ok(())
    }

    /// Which packets get one.
    pub fn policy(&self) -> PolicyKind {
        self.state.borrow().snat.kind
    }

    /// Puts an interface on a list of the policy, or takes it off.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn set_policy_interface(&self, interface: SwIfIndex, list: List, on: bool) -> Result<(), CnatError> {
        self.interfaces.name(interface)?;
        {
            let lists = &mut self.state.borrow_mut().snat.lists;
            if on {
                lists.insert((interface, list))
            } else {
                lists.remove(&(interface, list))
            };
        }
        self.publish_snat();
        Ok(())
    }

    /// Lists of the policy.
    pub fn policy_interfaces(&self) -> Vec<(SwIfIndex, List)> {
        self.state.borrow().snat.lists.iter().copied().collect()
    }

    /// Excludes destinations, or does so no more.
    ///
    /// # Errors
    /// They are not excluded.
    pub fn set_excluded(&self, prefix: IpPrefix, on: bool) -> Result<(), CnatError> {
        let prefix = prefix.normalized();
        let changed = {
            let excluded = &mut self.state.borrow_mut().snat.excluded;
            if on { excluded.insert(prefix) } else { excluded.remove(&prefix) }
        };
        if !changed && !on {
            return Err(CnatError::NoPrefix(prefix));
        }
        self.publish_snat();
        Ok(())
    }

    /// Destinations that are excluded.
    pub fn excluded(&self) -> Vec<IpPrefix> {
        self.state.borrow().snat.excluded.iter().copied().collect()
    }
}
