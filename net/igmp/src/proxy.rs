//! Proxies: what listeners of downstream links want is listened to upstream. RFC 4605.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use shoal_fib::{Family, Fib, FibIndex};
use shoal_interface::SwIfIndex;
use shoal_wire::igmp::RecordType;

use crate::control::{Listen, MOST_GROUPS, MOST_SOURCES};
use crate::{Igmp, IgmpError};

/// A proxy of one forwarding table.
pub(crate) struct Device {
    upstream: SwIfIndex,
    downstream: BTreeSet<SwIfIndex>,
    /// What is listened to upstream only because of listeners downstream: group and source.
    proxied: BTreeSet<(Ipv4Addr, Ipv4Addr)>,
}

/// All proxies, by the number of the table.
pub(crate) type Devices = BTreeMap<u32, Device>;

/// A proxy, for display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProxyInfo {
    /// The number of the table.
    pub table: u32,
    /// The link where this router listens.
    pub upstream: SwIfIndex,
    /// The links whose listeners it listens for.
    pub downstream: Vec<SwIfIndex>,
}

/// Records of a report.
type Records = Vec<(Ipv4Addr, RecordType, Vec<Ipv4Addr>)>;

impl Igmp {
    fn in_table(&self, fib: &Fib, table: u32, interface: SwIfIndex) -> Result<(), IgmpError> {
        let name = self.interfaces.name(interface)?;
        let index = FibIndex(self.interfaces.data(interface)?.fib_ip4);
        if fib.id_of(Family::Ip4, index) == Ok(table) {
            Ok(())
        } else {
            Err(IgmpError::NotInTable(name, table))
        }
    }

    /// Makes a proxy that listens on a link for those of other links.
    ///
    /// # Errors
    /// The interface is not in the table, or does not speak as a host, or the table has a proxy.
    pub fn add_proxy(&self, fib: &Fib, table: u32, upstream: SwIfIndex) -> Result<(), IgmpError> {
        self.in_table(fib, table, upstream)?;
        if !self.all.borrow().contains_key(&upstream) {
            return Err(IgmpError::NotHost(self.interfaces.name(upstream)?));
        }
        let mut devices = self.devices.borrow_mut();
        if devices.contains_key(&table) {
            return Err(IgmpError::ProxyThere(table));
        }
        devices.insert(table, Device { upstream, downstream: BTreeSet::new(), proxied: BTreeSet::new() });
        Ok(())
    }

    /// Ends a proxy.
    ///
    /// # Errors
    /// There is none.
    pub fn remove_proxy(&self, table: u32, upstream: SwIfIndex) -> Result<(), IgmpError> {
        let there = self.devices.borrow().get(&table).is_some_and(|device| device.upstream == upstream);
        if !there {
            return Err(IgmpError::NoProxy(table));
        }
        self.end_device(table);
        Ok(())
    }

    /// A proxy listens for those of another link.
    ///
    /// # Errors
    /// There is no proxy, the interface is not in its table or does not speak as a router, or it is there already.
    pub fn add_downstream(&self, fib: &Fib, table: u32, interface: SwIfIndex) -> Result<(), IgmpError> {
        if !self.devices.borrow().contains_key(&table) {
            return Err(IgmpError::NoProxy(table));
        }
        self.in_table(fib, table, interface)?;
        let name = self.interfaces.name(interface)?;
        if !self.is_router(interface) {
            return Err(IgmpError::NotRouter(name));
        }
        let mut devices = self.devices.borrow_mut();
        let new = devices.get_mut(&table).is_some_and(|device| device.downstream.insert(interface));
        drop(devices);
        if !new {
            return Err(IgmpError::Downstream(name, table));
        }
        self.merge_device(table);
        Ok(())
    }

    /// It does no longer.
    ///
    /// # Errors
    /// There is no proxy, or it did not.
    pub fn remove_downstream(&self, table: u32, interface: SwIfIndex) -> Result<(), IgmpError> {
        let name = self.interfaces.name(interface)?;
        let mut devices = self.devices.borrow_mut();
        let device = devices.get_mut(&table).ok_or(IgmpError::NoProxy(table))?;
        if !device.downstream.remove(&interface) {
            return Err(IgmpError::NotDownstream(name, table));
        }
        drop(devices);
        self.merge_device(table);
        Ok(())
    }

    /// All proxies.
    pub fn proxies(&self) -> Vec<ProxyInfo> {
        let devices = self.devices.borrow();
        let info = |(table, device): (&u32, &Device)| ProxyInfo {
            table: *table,
            upstream: device.upstream,
            downstream: device.downstream.iter().copied().collect(),
        };
        devices.iter().map(info).collect()
    }

    /// Whether a source of a group is listened to on a link for others only.
    pub fn is_proxied(&self, interface: SwIfIndex, group: Ipv4Addr, source: Ipv4Addr) -> bool {
        let devices = self.devices.borrow();
        devices
            .values()
            .any(|device| device.upstream == interface && device.proxied.contains(&(group, source)))
    }

    /// A link has no listeners any more that a proxy could listen for.
    pub(crate) fn leave_device(&self, interface: SwIfIndex) {
        let mut changed = Vec::new();
        for (table, device) in self.devices.borrow_mut().iter_mut() {
            if device.downstream.remove(&interface) {
                changed.push(*table);
            }
        }
        for table in changed {
            self.merge_device(table);
        }
    }

    /// A link is no proxy's upstream any more.
    pub(crate) fn end_upstream(&self, interface: SwIfIndex) {
        let of = |(table, device): (&u32, &Device)| (device.upstream == interface).then_some(*table);
        let tables: Vec<u32> = self.devices.borrow().iter().filter_map(of).collect();
        for table in tables {
            self.end_device(table);
        }
    }

    fn end_device(&self, table: u32) {
        if let Some(device) = self.devices.borrow_mut().get_mut(&table) {
            device.downstream.clear();
        }
        self.merge_device(table);
        self.devices.borrow_mut().remove(&table);
    }

    /// What is wanted on a link has changed.
    pub(crate) fn merge(&self, interface: SwIfIndex) {
        let of = |(table, device): (&u32, &Device)| device.downstream.contains(&interface).then_some(*table);
        let tables: Vec<u32> = self.devices.borrow().iter().filter_map(of).collect();
        for table in tables {
            self.merge_device(table);
        }
    }

    /// Listens upstream to what is wanted downstream, and to nothing else of that. It is reported once, as VPP does.
    fn merge_device(&self, table: u32) {
        let devices = self.devices.borrow();
        let Some(device) = devices.get(&table) else { return };
        let upstream = device.upstream;
        let wanted: BTreeSet<_> = device.downstream.iter().flat_map(|link| self.wanted_on(*link)).collect();
        let new: Vec<_> = wanted.difference(&device.proxied).copied().collect();
        let gone: Vec<_> = device.proxied.difference(&wanted).copied().collect();
        drop(devices);
        let mut records = Records::new();
        let mut say = |group: Ipv4Addr, kind: RecordType, source: Ipv4Addr| match records
            .iter_mut()
            .find(|(g, k, _)| (*g, *k) == (group, kind))
        {
            Some((_, _, sources)) => sources.push(source),
            None => records.push((group, kind, vec![source])),
        };
        for (group, source) in new {
            if self.take_up(upstream, group, source) {
                say(group, RecordType::ALLOW_NEW_SOURCES, source);
                self.note(table, |proxied| proxied.insert((group, source)));
            }
        }
        for (group, source) in gone {
            self.let_go(upstream, group, source);
            say(group, RecordType::BLOCK_OLD_SOURCES, source);
            self.note(table, |proxied| proxied.remove(&(group, source)));
        }
        // Any source is a mode, not a source: RFC 3376, 4.2.12.
        for (_, kind, sources) in &mut records {
            if sources.contains(&Ipv4Addr::UNSPECIFIED) {
                let joins = *kind == RecordType::ALLOW_NEW_SOURCES;
                *kind = if joins { RecordType::CHANGE_TO_EXCLUDE } else { RecordType::CHANGE_TO_INCLUDE };
                sources.clear();
            }
        }
        self.report(upstream, &records);
    }

    fn note(&self, table: u32, change: impl FnOnce(&mut BTreeSet<(Ipv4Addr, Ipv4Addr)>) -> bool) {
        if let Some(device) = self.devices.borrow_mut().get_mut(&table) {
            change(&mut device.proxied);
        }
    }

    /// Begins to listen upstream; false when that is so already, or cannot be.
    fn take_up(&self, upstream: SwIfIndex, group: Ipv4Addr, source: Ipv4Addr) -> bool {
        let mut all = self.all.borrow_mut();
        let Some(state) = all.get_mut(&upstream) else { return false };
        let known = state.groups.get(&group).cloned().unwrap_or_default();
        let full = state.groups.len() >= MOST_GROUPS && !state.groups.contains_key(&group);
        let any = source.is_unspecified();
        let there = if any { known.any } else { known.sources.contains(&source) };
        if there || full || known.sources.len() >= MOST_SOURCES {
            return false;
        }
        if self.accept(upstream, source, group, Listen::Yes).is_err() {
            return false;
        }
        let record = state.groups.entry(group).or_default();
        if any {
            record.any = true;
        } else {
            record.sources.insert(source);
        }
        true
    }

    fn let_go(&self, upstream: SwIfIndex, group: Ipv4Addr, source: Ipv4Addr) {
        if let Err(e) = self.accept(upstream, source, group, Listen::No) {
            tracing::warn!(sw_if_index = upstream.0, %group, "the multicast route stays as it is: {e}");
        }
        let mut all = self.all.borrow_mut();
        let Some(record) = all.get_mut(&upstream).and_then(|state| state.groups.get_mut(&group)) else {
            return;
        };
        if source.is_unspecified() {
            record.any = false;
        } else {
            record.sources.remove(&source);
        }
        if !record.is_wanted()
            && !record.has_news()
            && let Some(state) = all.get_mut(&upstream)
        {
            state.groups.remove(&group);
        }
    }
}
