//! The control plane of proxy ARP: whose requests are answered for others. RFC 1027.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

use shoal_fib::{Family, Fib, FibError, FibIndex, Source};
use shoal_infra::{Guard, Published};
use shoal_interface::{Event, IfFlags, InterfaceError, Interfaces, SwIfIndex};
use shoal_module::{Control, InitError};

/// Most ranges of all tables.
const MOST_RANGES: usize = 4096;

/// Addresses of a table that are answered for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Range {
    /// The table.
    pub fib: FibIndex,
    /// The first address.
    pub first: Ipv4Addr,
    /// The last one.
    pub last: Ipv4Addr,
}

/// Why an operation on proxy ARP failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// The interface is not there.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The table is not there.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// The range ends before it begins.
    #[error("{0} to {1} is empty: the first address must not be above the last one")]
    Empty(Ipv4Addr, Ipv4Addr),
    /// An address in the range is no host's.
    #[error("{0} to {1} has addresses of no host: groups, 0.0.0.0/8 or 255.255.255.255")]
    NoHosts(Ipv4Addr, Ipv4Addr),
    /// There is no such range; the nearest one there is.
    #[error("{first} to {last} is not answered for in table {table}{nearest}", nearest = near(*.nearest))]
    NoRange {
        /// The first address asked for.
        first: Ipv4Addr,
        /// The last one.
        last: Ipv4Addr,
        /// The table.
        table: u32,
        /// The range that begins nearest.
        nearest: Option<Range>,
    },
    /// There are as many ranges as may be.
    #[error("{0} ranges are answered for, and there may be no more")]
    Full(usize),
    /// The interface has no stations.
    #[error("{0} is not an Ethernet interface: it does not use ARP")]
    NotEthernet(String),
}

fn near(nearest: Option<Range>) -> String {
    nearest.map_or_else(String::new, |r| format!(", nearest {} to {}", r.first, r.last))
}

/// What packets read.
#[derive(Clone, Default)]
struct Table {
    ranges: BTreeSet<Range>,
    interfaces: BTreeSet<SwIfIndex>,
}

/// The proxied addresses and interfaces, as packets see them. Clones are the same.
#[derive(Clone)]
pub(crate) struct ProxyTable(Arc<Published<Table>>);

impl ProxyTable {
    pub(crate) fn new() -> Self {
        ProxyTable(Arc::new(Published::new(Table::default())))
    }

    /// Whether requests received by an interface are answered for others at all.
    pub(crate) fn is_on(&self, interface: SwIfIndex, guard: Guard<'_>) -> bool {
        self.0.load(guard).interfaces.contains(&interface)
    }

    /// Whether an address is answered for in a table.
    pub(crate) fn answers(&self, fib: FibIndex, address: Ipv4Addr, guard: Guard<'_>) -> bool {
        let begun = Range { fib, first: Ipv4Addr::UNSPECIFIED, last: Ipv4Addr::UNSPECIFIED }..=Range {
            fib,
            first: address,
            last: Ipv4Addr::BROADCAST,
        };
        // Ranges may lie within each other, so the nearest beginning is not enough.
        self.0.load(guard).ranges.range(begun).rev().any(|range| range.last >= address)
    }
}

/// Proxy ARP of this router.
pub struct ProxyArp {
    interfaces: Rc<Interfaces>,
    fib: Rc<Fib>,
    table: ProxyTable,
    now: RefCell<Table>,
}

impl ProxyArp {
    pub(crate) fn new(control: &Rc<Control>, table: ProxyTable) -> Result<Rc<Self>, InitError> {
        let interfaces = control.get::<Interfaces>()?;
        interfaces.subscribe(|control, event| {
            if let (Ok(proxy), Event::Deleting(interface)) = (control.get::<ProxyArp>(), event)
                && proxy.now.borrow().interfaces.contains(&interface)
            {
                proxy.change(|table| _ = table.interfaces.remove(&interface));
            }
        });
        Ok(Rc::new(ProxyArp { interfaces, fib: control.get()?, table, now: RefCell::default() }))
    }

    fn change(&self, change: impl FnOnce(&mut Table)) {
        let mut now = self.now.borrow_mut();
        change(&mut now);
        self.table.0.replace(now.clone());
    }

    /// Answers requests for addresses of a table, from `first` to `last`, on interfaces where that is switched on.
    ///
    /// # Errors
    /// There is no such table, the range is empty or holds addresses of no host, or there are too many.
    pub fn add(&self, table: u32, first: Ipv4Addr, last: Ipv4Addr) -> Result<(), ProxyError> {
        let fib = self.fib.index_of(Family::Ip4, table)?;
        if first > last {
            return Err(ProxyError::Empty(first, last));
        }
        // What lies between two hosts of these are hosts.
        let host = |a: Ipv4Addr| a.octets()[0] != 0 && !a.is_multicast() && a.octets()[0] < 240;
        if !host(first) || !host(last) {
            return Err(ProxyError::NoHosts(first, last));
        }
        let range = Range { fib, first, last };
        if self.now.borrow().ranges.contains(&range) {
            return Ok(());
        }
        if self.now.borrow().ranges.len() >= MOST_RANGES {
            return Err(ProxyError::Full(MOST_RANGES));
        }
        self.fib.lock(Family::Ip4, fib, Source::Proxy)?;
        self.change(|table| _ = table.ranges.insert(range));
        Ok(())
    }

    /// Answers for a range no longer.
    ///
    /// # Errors
    /// There is no such table or range.
    pub fn remove(&self, table: u32, first: Ipv4Addr, last: Ipv4Addr) -> Result<(), ProxyError> {
        let fib = self.fib.index_of(Family::Ip4, table)?;
        let range = Range { fib, first, last };
        if !self.now.borrow().ranges.contains(&range) {
            let now = self.now.borrow();
            let mine = now.ranges.iter().filter(|r| r.fib == fib);
            let nearest = mine.min_by_key(|r| r.first.to_bits().abs_diff(first.to_bits())).copied();
            return Err(ProxyError::NoRange { first, last, table, nearest });
        }
        self.change(|table| _ = table.ranges.remove(&range));
        self.fib.unlock(Family::Ip4, fib, Source::Proxy);
        Ok(())
    }

    /// Switches answers for others on or off on an interface.
    ///
    /// # Errors
    /// There is no such Ethernet interface.
    pub fn enable(&self, interface: SwIfIndex, on: bool) -> Result<(), ProxyError> {
        let name = self.interfaces.name(interface)?;
        if !self.interfaces.data(interface)?.flags().has(IfFlags::ETHERNET) {
            return Err(ProxyError::NotEthernet(name));
        }
        self.change(|table| {
            if on {
                table.interfaces.insert(interface);
            } else {
                table.interfaces.remove(&interface);
            }
        });
        Ok(())
    }

    /// All ranges, with the numbers of their tables.
    pub fn ranges(&self) -> Vec<(u32, Range)> {
        let now = self.now.borrow();
        let id = |range: &Range| self.fib.id_of(Family::Ip4, range.fib).unwrap_or(range.fib.0);
        now.ranges.iter().map(|range| (id(range), *range)).collect()
    }

    /// The first range behind a bound, with the number of its table.
    pub fn range_after(&self, after: Bound<Range>) -> Option<(u32, Range)> {
        let range = *self.now.borrow().ranges.range((after, Bound::Unbounded)).next()?;
        Some((self.fib.id_of(Family::Ip4, range.fib).unwrap_or(range.fib.0), range))
    }

    /// The interfaces where it is switched on.
    pub fn enabled(&self) -> Vec<SwIfIndex> {
        self.now.borrow().interfaces.iter().copied().collect()
    }
}
