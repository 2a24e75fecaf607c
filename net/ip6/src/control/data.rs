//! What packets read of IPv6 on an interface.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv6Addr;
use std::sync::Arc;

use shoal_adj::AdjIndex;
use shoal_infra::{Guard, Published, TwinTable};
use shoal_interface::SwIfIndex;

/// Each interface's addresses to speak from, as packets see them. Clones are the same table.
#[derive(Clone)]
pub struct Ip6IfTable(pub(super) TwinTable<[u64; 4]>);

/// Two words of an address.
pub(super) fn words(addr: Option<Ipv6Addr>) -> [u64; 2] {
    let n = addr.map_or(0, Ipv6Addr::to_bits);
    [(n >> 64) as u64, n as u64]
}

fn address([high, low]: [u64; 2]) -> Option<Ipv6Addr> {
    let n = u128::from(high) << 64 | u128::from(low);
    (n != 0).then(|| Ipv6Addr::from_bits(n))
}

impl Ip6IfTable {
    /// The interface's link-local address.
    pub fn link_local(&self, interface: SwIfIndex, guard: Guard<'_>) -> Option<Ipv6Addr> {
        let [high, low, ..] = *self.0.load(interface.0 as usize, guard);
        address([high, low])
    }

    /// The address to speak from to nodes beyond the link: the interface's own, else another one of its table's.
    pub fn global(&self, interface: SwIfIndex, guard: Guard<'_>) -> Option<Ipv6Addr> {
        let [_, _, high, low] = *self.0.load(interface.0 as usize, guard);
        address([high, low])
    }

    /// The address to answer `to` from.
    pub fn towards(&self, to: Ipv6Addr, interface: SwIfIndex, guard: Guard<'_>) -> Option<Ipv6Addr> {
        let link_local = self.link_local(interface, guard);
        if to.is_unicast_link_local() {
            return link_local;
        }
        self.global(interface, guard).or(link_local)
    }
}

type Shard = HashMap<(u32, u128), AdjIndex>;

/// Changing an entry copies all of its shard: so many that those of 10,000 interfaces have a dozen entries each.
const SHARDS: usize = 4096;

/// Where link-local addresses and groups of an interface lead: what VPP has a table per interface for, which would
/// cost a trie each. Clones are the same table.
#[derive(Clone)]
pub struct Ip6LinkTable {
    shards: Arc<[Published<Shard>]>,
    hasher: RandomState,
}

impl Default for Ip6LinkTable {
    fn default() -> Self {
        let shards = (0..SHARDS).map(|_| Published::new(Shard::new())).collect();
        Ip6LinkTable { shards, hasher: RandomState::new() }
    }
}

/// The key of all link-local addresses without an entry: no interface has this one (RFC 4291, 2.6.1).
const ANY_INTERFACE: u128 = 0xfe80 << 112;

impl Ip6LinkTable {
    fn shard(&self, key: (u32, u128)) -> Option<&Published<Shard>> {
        self.shards.get(self.hasher.hash_one(key) as usize % SHARDS)
    }

    fn get(&self, key: (u32, u128), guard: Guard<'_>) -> Option<AdjIndex> {
        self.shard(key)?.load(guard).get(&key).copied()
    }

    /// The adjacency of a link-local address or a group (host order) on an interface. `None`: a group that was not
    /// joined, or IPv6 does not run on it.
    pub fn find(&self, interface: SwIfIndex, address: u128, guard: Guard<'_>) -> Option<AdjIndex> {
        let known = self.get((interface.0, address), guard);
        let is_group = address >> 120 == 0xff;
        known.or_else(|| if is_group { None } else { self.get((interface.0, ANY_INTERFACE), guard) })
    }

    pub(super) fn set(&self, interface: SwIfIndex, address: Ipv6Addr, adj: Option<AdjIndex>) {
        let key = (interface.0, address.to_bits());
        let Some(shard) = self.shard(key) else { return };
        let mut copy = (*shard.get()).clone();
        match adj {
            Some(adj) => copy.insert(key, adj),
            None => copy.remove(&key),
        };
        shard.replace(copy);
    }

    pub(super) const ANY_INTERFACE: Ipv6Addr = Ipv6Addr::from_bits(ANY_INTERFACE);
}
