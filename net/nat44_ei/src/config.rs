//! What packets read of the configuration: one version of it, replaced as a whole.

use std::net::Ipv4Addr;

use shoal_nat::Tuple;
use shoal_nat44::mapping::Mappings;
use shoal_nat44::pool::PoolAddress;
use shoal_nat44::ports::{FIRST_PORT, fold};
use shoal_nat44::reach::Outside;
use shoal_wire::Ip4Prefix;

pub use shoal_nat::Timeouts;

/// Hosts, and ports, are divided into so many parts. A part is one worker's, so that both directions of a session meet there and
/// stay together when workers come and go.
pub const PARTS: u32 = 64;
/// Ports of a part.
pub const PORTS_OF_PART: u32 = (65536 - FIRST_PORT as u32) / PARTS;

/// Which hosts are translated, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// All of them: by static mappings, and by shared addresses.
    #[default]
    Dynamic,
    /// Those of static mappings, with a session for each port.
    StaticTracked,
    /// Those of static mappings, without sessions.
    Static,
}

/// What becomes of a packet that would begin a session when its host has as many as it may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AtUserLimit {
    /// The host's session that was not used for longest ends for it, as in VPP.
    #[default]
    Recycle,
    /// It is dropped: no session that lives ends for another (RFC 6888, REQ-11).
    Drop,
}

/// How a port of a shared address is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Algorithm {
    /// Any of all addresses.
    #[default]
    Default,
    /// One of those that MAP-E gives to this port set, of the first address.
    MapE {
        /// The port set.
        psid: u16,
        /// Bits before it.
        offset: u8,
        /// Its bits.
        length: u8,
        /// Whether the bits have the order of RFC 7597, from the highest; VPP's order is from the lowest.
        rfc7597: bool,
    },
    /// One of a block of ports that the host has of its own, so that a log needs a line for a block only.
    Blocks {
        /// Ports of a block.
        size: u16,
        /// Blocks of a host at most.
        most: u8,
    },
    /// One of a range, of the first address.
    Range {
        /// The first.
        first: u16,
        /// The last.
        last: u16,
    },
}

/// One version of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Whether NAT is on.
    pub on: bool,
    /// Which packets are translated.
    pub mode: Mode,
    /// Whether packets that belong to no session and no mapping pass from outside.
    pub forwarding: bool,
    /// The largest segment a TCP connection may ask for; 0: any.
    pub mss: u16,
    /// How long sessions live.
    pub timeouts: Timeouts,
    /// Hosts of a worker at most.
    pub users: u32,
    /// Sessions of a worker at most.
    pub sessions: u32,
    /// Sessions of a host at most.
    pub user_sessions: u32,
    /// What becomes of packets of hosts that have so many.
    pub at_user_limit: AtUserLimit,
    /// The table of hosts, by default.
    pub inside_table: u32,
    /// Where the outside is.
    pub outside: Outside,
    /// Addresses that hosts share.
    pub pool: Vec<PoolAddress>,
    /// Static mappings.
    pub mappings: Mappings,
    /// How ports are chosen.
    pub algorithm: Algorithm,
    /// Which addresses may be shared ones, or of mappings.
    pub known: AddressFilter,
    /// Threads that forward.
    pub workers: Vec<usize>,
    /// Seconds after which the other router hears of a session's packets again; 0: there is none.
    pub refresh: u32,
    /// Destinations that hosts reach with their own addresses.
    pub exempt: Vec<Ip4Prefix>,
    /// Where another router's sessions are heard of.
    pub listener: Option<(u32, u16)>,
}

impl Config {
    /// Whether hosts share an address.
    pub fn is_pool(&self, address: u32) -> bool {
        self.pool.iter().any(|pool| pool.address == address)
    }

    /// Whether hosts reach a destination with their own addresses (RFC 6888, REQ-6).
    pub fn is_exempt(&self, address: u32) -> bool {
        self.exempt.iter().any(|prefix| prefix.contains(Ipv4Addr::from_bits(address)))
    }

    /// Whether an address is a shared one, or a mapping's.
    #[inline(always)]
    pub fn is_known(&self, address: u32, port: u16, protocol: u8) -> bool {
        self.known.may_have(address) && self.is_listed(address, port, protocol)
    }

    #[cold]
    fn is_listed(&self, address: u32, port: u16, protocol: u8) -> bool {
        self.is_pool(address) || self.mappings.external(address, port, protocol).is_some()
    }

    /// The thread that has a part of the hosts and ports.
    pub fn of_part(&self, part: u32) -> usize {
        let count = self.workers.len().max(1);
        self.workers.get((part % PARTS) as usize % count).copied().unwrap_or(0)
    }

    /// The thread that has the sessions of a host.
    pub fn of_host(&self, address: u32) -> usize {
        self.of_part(part_of_host(address))
    }

    /// The thread that has the session of a packet from outside, or between two hosts.
    pub fn of_outside(&self, tuple: Tuple, protocol: u8) -> usize {
        let mapping = self.mappings.external(tuple.dst, tuple.dport, protocol);
        if let Some(local) = mapping.and_then(|mapping| mapping.locals.first()) {
            return self.of_host(local.address);
        }
        self.of_port(tuple.dport, tuple.dst)
    }

    /// The thread whose hosts have a port.
    pub fn of_port(&self, port: u16, otherwise: u32) -> usize {
        part_of_port(port).map_or_else(|| self.of_host(otherwise), |part| self.of_part(part))
    }
}

/// The part a host belongs to.
pub fn part_of_host(address: u32) -> u32 {
    fold(address) % PARTS
}

/// The part a port belongs to; `None`: it is not given out.
pub fn part_of_port(port: u16) -> Option<u32> {
    Some(u32::from(port.checked_sub(FIRST_PORT)?) / PORTS_OF_PART)
}

/// A set of addresses that says of some others, too, that it has them: what packets are asked first.
#[derive(Clone, Debug, Default)]
pub struct AddressFilter {
    bits: Vec<u64>,
}

/// Bits of the set.
const BITS: u32 = 1 << 12;

impl AddressFilter {
    fn place(address: u32) -> u32 {
        (address.wrapping_mul(0x9e37_79b1) >> 8) % BITS
    }

    /// Of these addresses.
    pub fn of(addresses: impl Iterator<Item = u32>) -> Self {
        let mut bits = Vec::new();
        for address in addresses {
            bits.resize((BITS / 64) as usize, 0_u64);
            let place = Self::place(address);
            if let Some(word) = bits.get_mut((place / 64) as usize) {
                *word |= 1 << (place % 64);
            }
        }
        AddressFilter { bits }
    }

    /// Whether an address may be among them.
    #[inline(always)]
    pub fn may_have(&self, address: u32) -> bool {
        let place = Self::place(address);
        self.bits.get((place / 64) as usize).is_some_and(|word| word >> (place % 64) & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_a_hosts_part_are_at_the_hosts_worker_however_many_there_are() {
        for workers in 1..9 {
            let config = Config { workers: (1..=workers).collect(), ..Config::default() };
            for host in (0x0a00_0000..0x0a00_1000).step_by(7) {
                let part = part_of_host(host);
                for nth in [0, PORTS_OF_PART - 1] {
                    let port = FIRST_PORT + (part * PORTS_OF_PART + nth) as u16;
                    assert_eq!(config.of_port(port, 0), config.of_host(host));
                }
            }
        }
        assert_eq!(part_of_port(u16::MAX), Some(PARTS - 1));
        assert_eq!(part_of_port(1023), None);
    }

    #[test]
    fn a_filter_has_what_was_put_in_and_little_else() {
        let filter = AddressFilter::of([1, 7, 0xc000_0201].into_iter());
        assert!([1, 7, 0xc000_0201].iter().all(|address| filter.may_have(*address)));
        let others = (0x0a00_0000..0x0a00_4000).filter(|address| filter.may_have(*address)).count();
        assert!(others < 100, "{others} of 16384");
        assert!(!AddressFilter::default().may_have(1));
    }
}
