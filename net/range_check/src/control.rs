//! The control plane: what may pass, and where it is asked.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_fib::{Family, Fib, FibError, FibIndex, Source};
use shoal_graph::FeatureSpec;
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_module::{Control, InitError};
use shoal_wire::Ip4Prefix;

use crate::node::{Check, RX, TX};
use crate::ranges::{PortRange, Ranges, table};
use crate::{RangeError, Verdict};

/// Most ranges of a prefix.
const MOST: usize = 64;

/// By which tables packets of an interface are checked; `None` for no table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Setting {
    /// TCP that goes in to the hosts: sent by the interface.
    pub tcp_in: Option<u32>,
    /// TCP that they send out: received by it.
    pub tcp_out: Option<u32>,
    /// UDP that goes in.
    pub udp_in: Option<u32>,
    /// UDP that they send out.
    pub udp_out: Option<u32>,
}

impl Setting {
    fn tables(self) -> [Option<u32>; 4] {
        [self.tcp_in, self.tcp_out, self.udp_in, self.udp_out]
    }

    fn features(self) -> [(&'static str, &'static str, bool); 2] {
        [
            (shoal_ip4::UNICAST_ARC, RX, self.tcp_out.or(self.udp_out).is_some()),
            (shoal_ip4::OUTPUT_ARC, TX, self.tcp_in.or(self.udp_in).is_some()),
        ]
    }
}

/// Prefixes of one table and their ranges, in order.
type Prefixes = BTreeMap<Ip4Prefix, Vec<PortRange>>;

/// What may pass, and where it is asked.
pub struct RangeCheck {
    fib: Rc<Fib>,
    interfaces: Rc<Interfaces>,
    ranges: Ranges,
    tables: RefCell<BTreeMap<u32, Prefixes>>,
    settings: RefCell<BTreeMap<SwIfIndex, Setting>>,
}

impl RangeCheck {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Self, InitError> {
        let (graph, ranges) = (control.graph()?, Ranges::new());
        graph.add_packet(Check::<false>::new(ranges.clone()))?;
        graph.add_packet(Check::<true>::new(ranges.clone()))?;
        let rx = FeatureSpec { arc: shoal_ip4::UNICAST_ARC, node: RX, before: &[], after: &[] };
        let tx = FeatureSpec { arc: shoal_ip4::OUTPUT_ARC, node: TX, before: &[], after: &[] };
        graph.add_feature(rx);
        graph.add_feature(tx);
        Ok(RangeCheck {
            fib: control.get()?,
            interfaces: control.get()?,
            ranges,
            tables: RefCell::default(),
            settings: RefCell::default(),
        })
    }

    fn checked(table: u32, ranges: &[PortRange]) -> Result<(), RangeError> {
        if table == 0 {
            return Err(RangeError::DefaultTable);
        }
        if ranges.is_empty() {
            return Err(RangeError::NoRange);
        }
        match ranges.iter().find(|range| range.low == 0 || range.low > range.high) {
            Some(range) => Err(RangeError::Range(*range)),
            None => Ok(()),
        }
    }

    fn network(prefix: Ip4Prefix) -> Ip4Prefix {
        Ip4Prefix::new(prefix.network(), prefix.len()).unwrap_or(prefix)
    }

    /// Hosts of a prefix may speak to these ports.
    ///
    /// # Errors
    /// The table or a range cannot be, or there are too many.
    pub fn add(&self, table: u32, prefix: Ip4Prefix, ranges: &[PortRange]) -> Result<(), RangeError> {
        Self::checked(table, ranges)?;
        let prefix = Self::network(prefix);
        let mut all = self.known(table, prefix);
        for range in ranges {
            if !all.contains(range) {
                all.push(*range);
            }
        }
        if all.len() > MOST {
            return Err(RangeError::TooMany(MOST));
        }
        if !self.tables.borrow().contains_key(&table) {
            let index = self.table(table)?;
            self.fib.lock(Family::Ip4, index, Source::Cli)?;
        }
        self.tables.borrow_mut().entry(table).or_default().insert(prefix, all);
        self.publish();
        Ok(())
    }

    fn known(&self, table: u32, prefix: Ip4Prefix) -> Vec<PortRange> {
        self.tables.borrow().get(&table).and_then(|t| t.get(&prefix)).cloned().unwrap_or_default()
    }

    /// The forwarding table of a number, which is made if need be.
    fn table(&self, id: u32) -> Result<FibIndex, FibError> {
        match self.fib.index_of(Family::Ip4, id) {
            Ok(index) => Ok(index),
            Err(_) => self.fib.add_table(Family::Ip4, id, None),
        }
    }

    /// They may no longer.
    ///
    /// # Errors
    /// They might not before.
    pub fn remove(&self, table: u32, prefix: Ip4Prefix, ranges: &[PortRange]) -> Result<(), RangeError> {
        Self::checked(table, ranges)?;
        let prefix = Self::network(prefix);
        let mut all = self.known(table, prefix);
        if let Some(range) = ranges.iter().find(|range| !all.contains(range)) {
            return Err(RangeError::NotThere { prefix, range: *range, table });
        }
        all.retain(|range| !ranges.contains(range));
        let mut tables = self.tables.borrow_mut();
        let prefixes = tables.entry(table).or_default();
        if all.is_empty() {
            prefixes.remove(&prefix);
        } else {
            prefixes.insert(prefix, all);
        }
        if prefixes.is_empty() {
            tables.remove(&table);
            if let Ok(index) = self.fib.index_of(Family::Ip4, table) {
                self.fib.unlock(Family::Ip4, index, Source::Cli);
            }
        }
        drop(tables);
        self.publish();
        Ok(())
    }

    /// Checks packets of an interface by these tables, besides those it is checked by already.
    ///
    /// # Errors
    /// There is no such interface or table.
    pub fn enable(&self, interface: SwIfIndex, wanted: Setting) -> Result<(), RangeError> {
        self.interfaces.name(interface)?;
        self.known_tables(wanted)?;
        let old = self.settings.borrow().get(&interface).copied().unwrap_or_default();
        let now = Setting {
            tcp_in: wanted.tcp_in.or(old.tcp_in),
            tcp_out: wanted.tcp_out.or(old.tcp_out),
            udp_in: wanted.udp_in.or(old.udp_in),
            udp_out: wanted.udp_out.or(old.udp_out),
        };
        self.set(interface, now)
    }

    /// Ends it for what is checked by these tables.
    ///
    /// # Errors
    /// There is no such interface or table, or packets are not checked by it.
    pub fn disable(&self, interface: SwIfIndex, unwanted: Setting) -> Result<(), RangeError> {
        let name = self.interfaces.name(interface)?;
        self.known_tables(unwanted)?;
        let old = self.settings.borrow().get(&interface).copied().unwrap_or_default();
        let gone = unwanted
            .tables()
            .into_iter()
            .zip(old.tables())
            .any(|(gone, there)| gone.is_some() && gone != there);
        if gone {
            return Err(RangeError::NotChecked(name));
        }
        let left = |gone: Option<u32>, there: Option<u32>| if gone.is_some() { None } else { there };
        let now = Setting {
            tcp_in: left(unwanted.tcp_in, old.tcp_in),
            tcp_out: left(unwanted.tcp_out, old.tcp_out),
            udp_in: left(unwanted.udp_in, old.udp_in),
            udp_out: left(unwanted.udp_out, old.udp_out),
        };
        self.set(interface, now)
    }

    fn known_tables(&self, setting: Setting) -> Result<(), RangeError> {
        if setting == Setting::default() {
            return Err(RangeError::NoTables);
        }
        setting.tables().into_iter().flatten().try_for_each(|id| match id {
            0 => Err(RangeError::DefaultTable),
            id => Ok(self.fib.index_of(Family::Ip4, id).map(drop)?),
        })
    }

    fn set(&self, interface: SwIfIndex, now: Setting) -> Result<(), RangeError> {
        let old = self.settings.borrow().get(&interface).copied();
        let put = |setting: Option<Setting>| {
            let mut settings = self.settings.borrow_mut();
            match setting.filter(|setting| *setting != Setting::default()) {
                Some(setting) => settings.insert(interface, setting),
                None => settings.remove(&interface),
            };
            drop(settings);
            self.publish();
        };
        // First what packets are checked by, then that they are.
        put(Some(now));
        for (arc, node, on) in now.features() {
            if let Err(e) = self.interfaces.enable_feature(arc, node, interface, on) {
                put(old);
                return Err(e.into());
            }
        }
        Ok(())
    }

    fn publish(&self) {
        let settings = self.settings.borrow();
        let all = settings.iter().map(|(interface, setting)| (*interface, setting.tables()));
        self.ranges.publish(&self.tables.borrow(), all);
    }

    /// An interface goes.
    pub(crate) fn forget(&self, interface: SwIfIndex) {
        if self.settings.borrow().contains_key(&interface)
            && let Err(e) = self.set(interface, Setting::default())
        {
            tracing::warn!(sw_if_index = interface.0, "ports stay checked: {e}");
        }
    }

    /// All ranges: the table's number, the prefix, what it may speak to.
    pub fn list(&self) -> Vec<(u32, Ip4Prefix, Vec<PortRange>)> {
        let tables = self.tables.borrow();
        let of = |(id, prefixes): (&u32, &Prefixes)| {
            let id = *id;
            prefixes.iter().map(move |(prefix, ranges)| (id, *prefix, ranges.clone())).collect::<Vec<_>>()
        };
        tables.iter().flat_map(of).collect()
    }

    /// Where packets are checked, and by which tables.
    pub fn settings(&self) -> Vec<(SwIfIndex, Setting)> {
        self.settings.borrow().iter().map(|(interface, setting)| (*interface, *setting)).collect()
    }

    /// What a host may speak to by a table; `None` if it has no entry.
    ///
    /// # Errors
    /// There is no such table.
    pub fn ranges_of(&self, id: u32, host: Ipv4Addr) -> Result<Option<Vec<PortRange>>, RangeError> {
        self.fib.index_of(Family::Ip4, id)?;
        let tables = self.tables.borrow();
        Ok(tables.get(&id).and_then(|prefixes| table(prefixes).of(host).map(<[PortRange]>::to_vec)))
    }

    /// Whether a host may speak to a port by a table.
    ///
    /// # Errors
    /// There is no such table.
    pub fn verdict(&self, id: u32, host: Ipv4Addr, port: u16) -> Result<Verdict, RangeError> {
        self.fib.index_of(Family::Ip4, id)?;
        let tables = self.tables.borrow();
        let passes = tables.get(&id).is_some_and(|prefixes| table(prefixes).allows(host, port));
        Ok(if passes { Verdict::Pass } else { Verdict::Fail })
    }
}
