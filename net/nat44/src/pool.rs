//! Addresses that hosts share, and those of them that follow an interface.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use shoal_adj::Family;
use shoal_fib::{Fib, FibIndex};
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_ip4::Ip4;
use shoal_wire::Ip4Prefix;

use crate::NatError;

/// Addresses of one command at most.
const MOST_AT_ONCE: u32 = 1 << 16;

/// An address as packets see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolAddress {
    /// The address.
    pub address: u32,
    /// The forwarding table whose hosts use it; `None`: all.
    pub table: Option<u32>,
    /// The interface whose network it is in, with the network's address and mask.
    pub network: Option<(SwIfIndex, u32, u32)>,
}

/// An address as it was configured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolEntry {
    /// The address.
    pub address: Ipv4Addr,
    /// The VRF whose hosts use it; `None`: all.
    pub vrf: Option<u32>,
    /// The interface it follows.
    pub from: Option<SwIfIndex>,
}

/// Addresses, in the order in which they were given.
#[derive(Clone, Debug, Default)]
pub struct AddressPool(Vec<PoolEntry>);

/// A range of addresses.
///
/// # Errors
/// The last is below the first, or there are more than 65536.
pub fn range(first: Ipv4Addr, last: Ipv4Addr) -> Result<impl Iterator<Item = Ipv4Addr>, NatError> {
    if last < first || last.to_bits() - first.to_bits() >= MOST_AT_ONCE {
        return Err(NatError::Range(first, last));
    }
    Ok((first.to_bits()..=last.to_bits()).map(Ipv4Addr::from_bits))
}

impl AddressPool {
    /// All of them.
    pub fn entries(&self) -> &[PoolEntry] {
        &self.0
    }

    /// Whether an address is among them.
    pub fn has(&self, address: Ipv4Addr) -> bool {
        self.0.iter().any(|entry| entry.address == address)
    }

    /// Adds one.
    pub fn push(&mut self, entry: PoolEntry) {
        self.0.push(entry);
    }

    /// Takes one out, if it is there.
    pub fn remove(&mut self, address: Ipv4Addr) -> Option<PoolEntry> {
        let at = self.0.iter().position(|entry| entry.address == address)?;
        Some(self.0.remove(at))
    }

    /// The address that follows an interface.
    pub fn of_interface(&self, interface: SwIfIndex) -> Option<Ipv4Addr> {
        self.0.iter().find(|entry| entry.from == Some(interface)).map(|entry| entry.address)
    }

    /// Takes all out.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Addresses as packets see them.
    pub fn seen(&self, fib: &Fib, ip4: &Ip4, interfaces: &Interfaces) -> Vec<PoolAddress> {
        let seen = |entry: &PoolEntry| {
            let table = entry.vrf.and_then(|vrf| fib.index_of(Family::Ip4, vrf).ok());
            let network_of = |interface: SwIfIndex| {
                let of = ip4.addresses(interface);
                let network = of.iter().find(|prefix| prefix.contains(entry.address))?;
                Some((interface, network.network().to_bits(), network.mask_bits()))
            };
            let network = interfaces.indices().into_iter().find_map(network_of);
            PoolAddress { address: entry.address.to_bits(), table: table.map(|table| table.0), network }
        };
        self.0.iter().map(seen).collect()
    }

    /// Routes by which the router answers for the addresses, in the tables of interfaces to the outside: they are its own.
    pub fn routes(
        &self,
        ip4: &Ip4,
        outside: impl Iterator<Item = SwIfIndex>,
    ) -> BTreeMap<(FibIndex, Ip4Prefix), SwIfIndex> {
        let mut wanted = BTreeMap::new();
        for interface in outside {
            let fib = ip4.fib_of(interface);
            for entry in &self.0 {
                wanted.entry((fib, Ip4Prefix::host(entry.address))).or_insert(interface);
            }
        }
        wanted
    }
}
