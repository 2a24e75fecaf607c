//! What packets read of the configuration: one version of it, replaced as a whole.

use std::sync::Arc;

use shoal_flow::Timeout;
use shoal_nat::Shards;

use crate::policy::Policy;
use crate::tcp::{CLOSING, OPEN};
use crate::translation::Translation;

/// Limits of sessions, from the start-up file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Sessions of a worker.
    pub sessions: u32,
    /// Sessions of one forwarding table and worker.
    pub sessions_of_table: u32,
    /// Seconds without a packet.
    pub age: u32,
    /// The same of open TCP connections.
    pub tcp_age: u32,
    /// The same of TCP connections that end.
    pub closing_age: u32,
    /// Ports tried for a connection.
    pub retries: u32,
    /// Places of Maglev's tables.
    pub maglev_len: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            sessions: 1 << 18,
            sessions_of_table: u32::MAX,
            age: 30,
            tcp_age: 3600,
            closing_age: 5,
            retries: 100,
            maglev_len: 1009,
        }
    }
}

impl Limits {
    /// Seconds of a timeout.
    pub fn seconds(&self, timeout: Timeout) -> u32 {
        match timeout {
            OPEN => self.tcp_age,
            CLOSING => self.closing_age,
            _ => self.age,
        }
    }
}

/// An address and port of a protocol; whether it is IPv6's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// Whether it is IPv6's.
    pub is_ip6: bool,
    /// The address.
    pub address: u128,
    /// The port.
    pub port: u16,
    /// TCP or UDP.
    pub protocol: u8,
}

/// Shared source addresses, for packets that came by one forwarding table of each family; `None`: there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Snat {
    /// The tables: IPv4's, IPv6's.
    pub tables: [Option<u32>; 2],
    /// The tables of the answers.
    pub back_tables: [Option<u32>; 2],
    /// The addresses.
    pub addresses: [Option<u128>; 2],
    /// Packets that came by tables that have no addresses of their own get these.
    pub is_default: bool,
}

/// One version of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Limits of sessions.
    pub limits: Limits,
    /// Translations by their numbers.
    pub translations: Vec<Option<Arc<Translation>>>,
    /// Their numbers by what packets are sent to.
    pub vips: Shards<Place, u32>,
    /// Addresses that routes lead to `ip4-cnat-tx` and its like from.
    pub clients: Shards<(bool, u128), ()>,
    /// Where connections go, and whether one worker has all of them.
    pub backends: Shards<Place, bool>,
    /// Shared source addresses, by forwarding table.
    pub snat: Vec<Snat>,
    /// All of them.
    pub snat_addresses: Shards<(bool, u128), ()>,
    /// Which packets get one.
    pub policy: Policy,
    /// Threads that forward.
    pub workers: Vec<usize>,
}

fn of_family<T: Copy>(both: &[Option<T>; 2], is_ip6: bool) -> Option<T> {
    let [ip4, ip6] = *both;
    if is_ip6 { ip6 } else { ip4 }
}

impl Config {
    /// A translation.
    #[inline(always)]
    pub fn translation(&self, id: u32) -> Option<&Translation> {
        self.translations.get(id as usize)?.as_deref()
    }

    /// The translation of what is sent somewhere.
    #[inline(always)]
    pub fn find(&self, place: &Place) -> Option<&Translation> {
        self.translation(*self.vips.get(place)?)
    }

    /// The shared source of packets that came by a forwarding table, and the table of the answers if one is configured.
    pub fn snat(&self, is_ip6: bool, table: u32) -> Option<(u128, Option<u32>)> {
        let own = self.snat.iter().find(|snat| of_family(&snat.tables, is_ip6) == Some(table));
        let snat = own.or_else(|| self.snat.iter().find(|snat| snat.is_default))?;
        Some((of_family(&snat.addresses, is_ip6)?, of_family(&snat.back_tables, is_ip6)))
    }
}
