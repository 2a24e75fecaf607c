//! What packets read of the configuration.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use shoal_nat::Shards;
use shoal_nat::maglev::bits;
use shoal_wire::{IpPrefix, IpProtocol};

use crate::vip::{Vip, VipKey};

/// Addresses that packets are sent to: family, first bits, how many.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PrefixKey {
    is_ip6: bool,
    len: u8,
    bits: u128,
}

impl PrefixKey {
    /// Of an address: the first `len` bits of its family's.
    #[inline(always)]
    pub fn new(is_ip6: bool, address: u128, len: u8) -> Self {
        let rest = if is_ip6 { 128 } else { 32 } - u32::from(len);
        let mask = u128::MAX.checked_shl(rest).unwrap_or(0);
        PrefixKey { is_ip6, len, bits: address & mask }
    }

    /// Of a prefix.
    pub fn of(prefix: &IpPrefix) -> Self {
        match prefix.addr() {
            IpAddr::V4(address) => PrefixKey::new(false, address.to_bits().into(), prefix.len()),
            IpAddr::V6(address) => PrefixKey::new(true, address.to_bits(), prefix.len()),
        }
    }
}

/// Virtual addresses by protocol and port.
pub type Ports = HashMap<(IpProtocol, u16), u32, foldhash::fast::RandomState>;

/// The virtual addresses of a prefix, by their numbers.
#[derive(Clone, Debug)]
pub enum OfPrefix {
    /// One for all packets.
    All(u32),
    /// One for each protocol and port.
    Ports(Arc<Ports>),
}

/// A server's side of a translated service: address, protocol, port.
pub type BackendKey = (u128, IpProtocol, u16);

/// What answers of servers get as their source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Front {
    /// The virtual address.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// Whose it is.
    pub vip: u32,
}

/// The configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Virtual addresses by their numbers.
    pub vips: Vec<Option<Arc<Vip>>>,
    /// Those of each prefix.
    pub prefixes: Shards<PrefixKey, OfPrefix>,
    /// Lengths of prefixes that there are, longest first: IPv4's, IPv6's.
    pub lengths: [Vec<u8>; 2],
    /// Those of UDP ports of the router: by family and port.
    pub node_ports: HashMap<(bool, u16), u32>,
    /// What answers get as their source.
    pub back: Shards<BackendKey, Front>,
    /// The source of tunnel packets.
    pub source4: Ipv4Addr,
    /// The same of IPv6.
    pub source6: Ipv6Addr,
}

/// VPP's default.
pub const NO_SOURCE4: Ipv4Addr = Ipv4Addr::BROADCAST;
/// The same of IPv6.
pub const NO_SOURCE6: Ipv6Addr = Ipv6Addr::from_bits(u128::MAX);

impl Default for Config {
    fn default() -> Self {
        Config {
            vips: Vec::new(),
            prefixes: Shards::default(),
            lengths: Default::default(),
            node_ports: HashMap::new(),
            back: Shards::default(),
            source4: NO_SOURCE4,
            source6: NO_SOURCE6,
        }
    }
}

impl Config {
    /// A virtual address.
    #[inline(always)]
    pub fn vip(&self, index: u32) -> Option<&Vip> {
        self.vips.get(index as usize)?.as_deref()
    }

    /// The virtual address that a packet is for: of the longest prefix that covers its destination.
    #[inline(always)]
    pub fn find(&self, is_ip6: bool, dst: u128, port: (IpProtocol, u16)) -> Option<&Vip> {
        for len in self.lengths.get(usize::from(is_ip6))? {
            match self.prefixes.get(&PrefixKey::new(is_ip6, dst, *len)) {
                Some(OfPrefix::All(index)) => return self.vip(*index),
                Some(OfPrefix::Ports(ports)) => return self.vip(*ports.get(&port)?),
                None => {}
            }
        }
        None
    }

    /// The same by what tells it from others.
    pub fn exactly(&self, key: &VipKey) -> Option<&Arc<Vip>> {
        let index = match (self.prefixes.get(&PrefixKey::of(&key.prefix))?, key.port) {
            (OfPrefix::All(index), None) => *index,
            (OfPrefix::Ports(ports), Some(port)) => *ports.get(&port)?,
            _ => return None,
        };
        self.vips.get(index as usize)?.as_ref()
    }

    /// Puts a virtual address in, or its new version.
    pub(crate) fn put(&mut self, vip: Vip) {
        let (key, index) = (vip.key, vip.index);
        let of_prefix = PrefixKey::of(&key.prefix);
        let now = match (key.port, self.prefixes.get(&of_prefix)) {
            (None, _) => OfPrefix::All(index),
            (Some(port), there) => {
                let mut ports = match there {
                    Some(OfPrefix::Ports(ports)) => Ports::clone(ports),
                    _ => Ports::default(),
                };
                ports.insert(port, index);
                OfPrefix::Ports(Arc::new(ports))
            }
        };
        self.prefixes.insert(of_prefix, now);
        if let Some(lengths) = self.lengths.get_mut(usize::from(key.is_ip6())) {
            lengths.push(key.prefix.len());
            lengths.sort_unstable_by(|a, b| b.cmp(a));
            lengths.dedup();
        }
        if self.vips.len() <= index as usize {
            self.vips.resize(index as usize + 1, None);
        }
        if let Some(place) = self.vips.get_mut(index as usize) {
            *place = Some(Arc::new(vip));
        }
    }

    /// Takes one out. Whether its prefix has none left.
    pub(crate) fn take(&mut self, vip: &Vip) -> bool {
        let of_prefix = PrefixKey::of(&vip.key.prefix);
        let left = match (vip.key.port, self.prefixes.get(&of_prefix)) {
            (Some(port), Some(OfPrefix::Ports(ports))) => {
                let mut ports = Ports::clone(ports);
                ports.remove(&port);
                ports
            }
            _ => Ports::default(),
        };
        let last = left.is_empty();
        if last {
            self.prefixes.remove(&of_prefix);
        } else {
            self.prefixes.insert(of_prefix, OfPrefix::Ports(Arc::new(left)));
        }
        if let Some(place) = self.vips.get_mut(vip.index as usize) {
            *place = None;
        }
        self.node_ports.retain(|_, index| *index != vip.index);
        let has = |len: u8, is_ip6: bool| {
            self.vips.iter().flatten().any(|vip| vip.key.is_ip6() == is_ip6 && vip.key.prefix.len() == len)
        };
        let lengths = [false, true].map(|is_ip6| {
            let all = self.lengths.get(usize::from(is_ip6)).cloned().unwrap_or_default();
            all.into_iter().filter(|len| has(*len, is_ip6)).collect()
        });
        self.lengths = lengths;
        last
    }
}

/// A server's side of a service.
pub fn back(server: IpAddr, protocol: IpProtocol, port: u16) -> BackendKey {
    (bits(server), protocol, port)
}
