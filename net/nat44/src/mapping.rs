//! Static mappings: which address and port outside leads to which inside.

use std::net::Ipv4Addr;
use std::sync::Arc;

use shoal_interface::SwIfIndex;
use shoal_message::InterfaceIndex;
use shoal_nat::Shards;

/// Whether the outside host is hidden from the inside one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum TwiceNat {
    /// It is not.
    #[default]
    No,
    /// It is.
    Always,
    /// If it is the inside host itself.
    OfItself,
}

/// A host that serves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Local {
    /// Its address.
    pub address: u32,
    /// Its port; 0 for a mapping of whole addresses.
    pub port: u16,
    /// How likely it is chosen, compared with others.
    pub probability: u8,
    /// The VRF it is in.
    pub vrf: u32,
    /// Its table.
    pub table: u32,
}

/// Where a mapping's outside address comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum External {
    /// It is this.
    Address(u32),
    /// It is the interface's first.
    Interface(SwIfIndex),
}

impl External {
    /// As messages say it: the interface's, if one is named.
    pub fn of_message(address: Ipv4Addr, interface: InterfaceIndex) -> Self {
        match interface {
            InterfaceIndex::NONE => External::Address(address.to_bits()),
            InterfaceIndex(interface) => External::Interface(SwIfIndex(interface)),
        }
    }

    /// The interface, as messages say it.
    pub fn interface(self) -> InterfaceIndex {
        match self {
            External::Interface(SwIfIndex(interface)) => InterfaceIndex(interface),
            External::Address(_) => InterfaceIndex::NONE,
        }
    }
}

/// A mapping.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// Outside address and port; port 0 with protocol 0 for whole addresses.
    pub external: (u32, u16),
    /// The protocol; 0: all.
    pub protocol: u8,
    /// Who serves: several if it is balanced, or if an identity mapping is there for several tables.
    pub locals: Vec<Local>,
    /// Whether the outside host is hidden.
    pub twice: TwiceNat,
    /// Whether sessions begin outside only.
    pub out2in_only: bool,
    /// Whether addresses stay what they are.
    pub identity: bool,
    /// Whether a back end is chosen; its clients keep it for so many seconds.
    pub balanced: Option<u32>,
    /// The address that stands for outside hosts, if it is a certain one.
    pub pool_address: Option<u32>,
    /// The interface whose address it has.
    pub interface: Option<SwIfIndex>,
    /// What an operator calls it.
    pub tag: String,
}

impl Mapping {
    /// Whether it is one of whole addresses.
    pub fn is_address_only(&self) -> bool {
        self.protocol == 0
    }

    /// The outside port of packets to a port.
    pub fn external_port(&self, port: u16) -> u16 {
        if self.is_address_only() { port } else { self.external.1 }
    }
}

/// Outside address, port and protocol.
pub type ExternalKey = (u32, u16, u8);
/// Inside address, port, table and protocol.
pub type LocalKey = (u32, u16, u32, u8);

/// What a packet's inside address and port say of its worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkerChoice {
    /// The host's sessions are on one.
    ByHost,
    /// Each client's sessions are on one.
    ByClient,
}

/// All mappings as packets see them.
#[derive(Clone, Debug, Default)]
pub struct Mappings {
    external: Shards<ExternalKey, Arc<Mapping>>,
    local: Shards<LocalKey, Arc<Mapping>>,
    /// Hosts of mappings, with how many there are: also of those that begin outside only.
    served: Shards<ExternalKey, (u32, WorkerChoice)>,
}

impl Mappings {
    /// The mapping of packets to an outside address: one of the port comes first.
    #[inline]
    pub fn external(&self, address: u32, port: u16, protocol: u8) -> Option<&Arc<Mapping>> {
        if self.external.is_empty() {
            return None;
        }
        self.exact(address, port, protocol).or_else(|| self.external.get(&(address, 0, 0)))
    }

    /// The mapping of an outside port.
    pub fn exact(&self, address: u32, port: u16, protocol: u8) -> Option<&Arc<Mapping>> {
        if port == 0 || protocol == 0 { None } else { self.external.get(&(address, port, protocol)) }
    }

    /// The mapping of packets from an inside address: one of the port first, then of the address, in the packet's table and then
    /// in the other.
    pub fn local(
        &self,
        (address, port, protocol): ExternalKey,
        table: u32,
        otherwise: u32,
    ) -> Option<&Arc<Mapping>> {
        if self.local.is_empty() {
            return None;
        }
        let of = |port, protocol| {
            let there = self.local.get(&(address, port, table, protocol));
            there.or_else(|| self.local.get(&(address, port, otherwise, protocol)))
        };
        let exact = if port == 0 || protocol == 0 { None } else { of(port, protocol) };
        exact.or_else(|| of(0, 0))
    }

    /// Whether sessions of an inside address and port are at a certain worker.
    pub fn served(&self, address: u32, port: u16, protocol: u8) -> Option<WorkerChoice> {
        if self.served.is_empty() {
            return None;
        }
        let of = |key| self.served.get(&key).map(|(_, served)| *served);
        of((address, port, protocol)).or_else(|| of((address, 0, 0)))
    }

    /// Puts a mapping in.
    pub fn insert(&mut self, mapping: Mapping) {
        let mapping = Arc::new(mapping);
        let protocol = mapping.protocol;
        let (address, port) = mapping.external;
        self.external.insert((address, port, protocol), Arc::clone(&mapping));
        for local in &mapping.locals {
            if !mapping.out2in_only {
                self.local.insert((local.address, local.port, local.table, protocol), Arc::clone(&mapping));
            }
            let served =
                if mapping.balanced.is_some() { WorkerChoice::ByClient } else { WorkerChoice::ByHost };
            let key = (local.address, local.port, protocol);
            let count = self.served.get(&key).map_or(0, |(count, _)| *count);
            self.served.insert(key, (count + 1, served));
        }
    }

    /// Takes one out.
    pub fn remove(&mut self, key: ExternalKey) -> Option<Arc<Mapping>> {
        let mapping = self.external.remove(&key)?;
        for local in &mapping.locals {
            let at = (local.address, local.port, local.table, mapping.protocol);
            if self.local.get(&at).is_some_and(|there| Arc::ptr_eq(there, &mapping)) {
                self.local.remove(&at);
            }
            let key = (local.address, local.port, mapping.protocol);
            match self.served.get(&key).copied() {
                Some((count, served)) if count > 1 => {
                    self.served.insert(key, (count - 1, served));
                }
                _ => {
                    self.served.remove(&key);
                }
            }
        }
        Some(mapping)
    }

    /// Whether a host has a mapping by which its own packets are translated.
    pub fn has_local(&self, key: &LocalKey) -> bool {
        self.local.get(key).is_some()
    }

    /// Whether there is a mapping of exactly this.
    pub fn has_external(&self, key: &ExternalKey) -> bool {
        self.external.get(key).is_some()
    }
}
