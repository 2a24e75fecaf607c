//! What packets are checked against: shared by both planes.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;

use shoal_infra::{Guard, Published};
use shoal_interface::SwIfIndex;
use shoal_wire::{Ip4Prefix, IpProtocol};

/// Ports from one to another, both included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PortRange {
    /// The lowest.
    pub low: u16,
    /// The highest.
    pub high: u16,
}

impl PortRange {
    fn contains(self, port: u16) -> bool {
        (self.low..=self.high).contains(&port)
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} - {}", self.low, self.high)
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is not looked at.
    Bypass,
    /// It may go on.
    Pass,
    /// It may not.
    Fail,
}

/// One table: prefixes and what they may speak to, the longest in front.
#[derive(Clone, Default)]
pub(crate) struct Table(Vec<(u8, HashMap<u32, Vec<PortRange>>)>);

impl Table {
    fn new(prefixes: &BTreeMap<Ip4Prefix, Vec<PortRange>>) -> Table {
        let mut by_len: BTreeMap<u8, HashMap<u32, Vec<PortRange>>> = BTreeMap::new();
        for (prefix, ranges) in prefixes {
            let of_len = by_len.entry(prefix.len()).or_default();
            of_len.insert(prefix.network().to_bits(), ranges.clone());
        }
        Table(by_len.into_iter().rev().collect())
    }

    /// The ranges of the longest prefix that holds an address.
    pub fn of(&self, address: Ipv4Addr) -> Option<&[PortRange]> {
        self.0.iter().find_map(|(len, networks)| {
            let mask = u32::MAX.checked_shl(32 - u32::from(*len)).unwrap_or(0);
            networks.get(&(address.to_bits() & mask)).map(Vec::as_slice)
        })
    }

    /// Whether the longest prefix that holds an address has a range with a port.
    pub fn allows(&self, address: Ipv4Addr, port: u16) -> bool {
        self.of(address).is_some_and(|ranges| ranges.iter().any(|range| range.contains(port)))
    }
}

/// The tables of an interface in one direction; `None` for a protocol that does not pass.
#[derive(Clone, Default)]
pub(crate) struct Checked {
    pub tcp: Option<Arc<Table>>,
    pub udp: Option<Arc<Table>>,
}

/// All that packets are checked against, by interface: those received, and those sent.
#[derive(Clone, Default)]
struct All {
    rx: HashMap<SwIfIndex, Checked>,
    tx: HashMap<SwIfIndex, Checked>,
}

/// Clones are the same.
#[derive(Clone)]
pub(crate) struct Ranges(Arc<Published<All>>);

impl Ranges {
    pub fn new() -> Self {
        Ranges(Arc::new(Published::new(All::default())))
    }

    /// What becomes of a packet of an interface; `port` is `None` where the packet is too short to have one.
    pub fn verdict<const TX: bool>(
        &self,
        interface: SwIfIndex,
        (protocol, source, port): (IpProtocol, Ipv4Addr, Option<u16>),
        guard: Guard<'_>,
    ) -> Verdict {
        let is_tcp = protocol == IpProtocol::TCP;
        if !is_tcp && protocol != IpProtocol::UDP || source.is_multicast() || source.is_broadcast() {
            return Verdict::Bypass;
        }
        let all = self.0.load(guard);
        let checked = if TX { all.tx.get(&interface) } else { all.rx.get(&interface) };
        let table =
            checked.and_then(|checked| if is_tcp { checked.tcp.as_ref() } else { checked.udp.as_ref() });
        let passes = port.zip(table).is_some_and(|(port, table)| table.allows(source, port));
        if passes { Verdict::Pass } else { Verdict::Fail }
    }

    /// Publishes what holds from now on.
    pub fn publish(
        &self,
        tables: &BTreeMap<u32, BTreeMap<Ip4Prefix, Vec<PortRange>>>,
        interfaces: impl Iterator<Item = (SwIfIndex, [Option<u32>; 4])>,
    ) {
        let made: BTreeMap<u32, Arc<Table>> =
            tables.iter().map(|(id, prefixes)| (*id, Arc::new(Table::new(prefixes)))).collect();
        // A table without a range is one by which nothing passes.
        let of = |id: Option<u32>| made.get(&id?).map(Arc::clone);
        let mut all = All::default();
        for (interface, [tcp_in, tcp_out, udp_in, udp_out]) in interfaces {
            all.rx.insert(interface, Checked { tcp: of(tcp_out), udp: of(udp_out) });
            all.tx.insert(interface, Checked { tcp: of(tcp_in), udp: of(udp_in) });
        }
        self.0.replace(all);
    }
}

/// What a table would say, for display.
pub(crate) fn table(prefixes: &BTreeMap<Ip4Prefix, Vec<PortRange>>) -> Table {
    Table::new(prefixes)
}
