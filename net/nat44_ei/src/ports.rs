//! Addresses and ports that are given out: which, and in what order they are tried.

use shoal_graph::clock::Time;
use shoal_nat44::pool::PoolAddress;
use shoal_nat44::ports::FIRST_PORT;

use crate::blocks::{blocks_of_part, firsts};
use crate::config::{Algorithm, Config, PARTS, PORTS_OF_PART, part_of_host};
use crate::sessions::{Endpoint, Sessions, tick};

/// Ports tried of one address at random, and then one after the other.
const TRIES: u32 = 24;
const IN_ORDER: u32 = 256;
/// Parts of an address in which a block is looked for that has rested. Where there is none, one that rests is taken.
const PARTS_FOR_REST: usize = 4;
/// Addresses tried. The work of a packet is bounded, however many are taken.
const ADDRESSES: usize = 4;

/// What is wanted.
pub struct Ports<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The worker.
    pub thread: usize,
    /// The host and its table.
    pub host: (u32, u32),
    /// TCP, UDP or ICMP.
    pub protocol: u8,
    /// The table of the answers.
    pub outside_table: u32,
}

/// What was found where ports were tried.
#[derive(Default)]
struct FreePort {
    /// A port that no host had lately.
    rested: Option<Endpoint>,
    /// One that a host may have had, if it was met before.
    resting: Option<Endpoint>,
}

impl Ports<'_> {
    /// A shared address and one of its ports; `None`: all that were tried are taken.
    pub fn give(&self, sessions: &mut Sessions, now: Time) -> Option<Endpoint> {
        sessions.resting.turn(tick(now));
        if let Algorithm::Blocks { size, most } = self.config.algorithm {
            return self.of_blocks(sessions, size, most);
        }
        if self.config.algorithm != Algorithm::Default {
            let first = self.config.pool.first()?;
            return self.of_address(sessions, first.address);
        }
        self.addresses().find_map(|address| self.of_address(sessions, address))
    }

    /// Shared addresses that the host may use, in the order in which they are tried.
    fn addresses(&self) -> impl Iterator<Item = u32> {
        let (host, table) = self.host;
        // RFC 4787, REQ-2: a host keeps its address. VPP begins with the one that the host's address picks; of those that are for all
        // VRFs it takes the one before.
        let start = host.swap_bytes() as usize % self.config.pool.len().max(1);
        let (before, after) = self.config.pool.split_at_checked(start).unwrap_or_default();
        let in_order = move || after.iter().chain(before);
        let own = in_order().filter(move |pool| pool.table == Some(table));
        let all = in_order().rev().filter(|pool: &&PoolAddress| pool.table.is_none());
        own.chain(all).take(ADDRESSES).map(|pool| pool.address)
    }

    /// A port of the host's blocks, or of another block if it may have one.
    fn of_blocks(&self, sessions: &mut Sessions, size: u16, most: u8) -> Option<Endpoint> {
        let mine = sessions.blocks.of_host(self.host).to_vec();
        for (address, first) in mine.iter().copied() {
            if sessions.blocks.has_room((address, first), self.protocol)
                && let Some(end) = self.of_block(sessions, address, first, size)
            {
                return Some(end);
            }
        }
        if mine.len() >= usize::from(most) {
            return None;
        }
        // RFC 4787, REQ-2: of the address it has, if that has one left.
        let own = mine.first().map(|(address, _)| *address);
        let others = self.addresses().filter(|address| Some(*address) != own);
        let (address, first) =
            own.into_iter().chain(others).find_map(|address| self.free_block(sessions, address, size))?;
        self.of_block(sessions, address, first, size)
    }

    fn of_block(&self, sessions: &mut Sessions, address: u32, first: u16, size: u16) -> Option<Endpoint> {
        let of_block = |nth: u32| first.wrapping_add((nth % u32::from(size)) as u16);
        self.one_of(sessions, address, size.into(), of_block)
    }

    /// A block that no host has: of the host's part, or of another part of this worker.
    fn free_block(&self, sessions: &mut Sessions, address: u32, size: u16) -> Option<(u32, u16)> {
        let part = part_of_host(self.host.0);
        let mine =
            || (0..PARTS).map(|nth| part + nth).filter(|part| self.config.of_part(*part) == self.thread);
        // A host that gets none asks again with each packet: that is to cost little.
        if sessions.blocks.count_of(address) >= blocks_of_part(size) * mine().count() as u32 {
            return None;
        }
        // RFC 6888, REQ-8: another host may have had it a moment ago.
        mine()
            .take(PARTS_FOR_REST)
            .find_map(|part| block_of_part(sessions, address, part, (size, true)))
            .or_else(|| mine().find_map(|part| block_of_part(sessions, address, part, (size, false))))
    }

    fn of_address(&self, sessions: &mut Sessions, address: u32) -> Option<Endpoint> {
        match self.config.algorithm {
            Algorithm::Default => {
                let (part, all) = (PORTS_OF_PART, 65536 - u32::from(FIRST_PORT));
                let first = u32::from(FIRST_PORT) + part_of_host(self.host.0) * part;
                let of_host = |nth: u32| (first + nth % part) as u16;
                let of_all = |nth: u32| (u32::from(FIRST_PORT) + nth % all) as u16;
                // A host with many sessions has all of its part, nearly: that is not to be found again with each session.
                let is_large = sessions.users.get(self.host).is_some_and(|user| user.sessions >= part);
                let own = if is_large {
                    FreePort::default()
                } else {
                    self.try_ports(sessions, address, part, of_host)
                };
                if own.rested.is_some() {
                    return own.rested;
                }
                let any = self.try_ports(sessions, address, all, of_all);
                any.rested
                    .or(own.resting)
                    .or(any.resting)
                    .or_else(|| self.in_order(sessions, address, part, of_host))
                    .or_else(|| self.in_order(sessions, address, all, of_all))
            }
            Algorithm::Range { first, last } => {
                let count = u32::from(last.saturating_sub(first)) + 1;
                let of_range = |nth: u32| first.wrapping_add((nth % count) as u16);
                self.one_of(sessions, address, count, of_range)
            }
            Algorithm::Blocks { .. } => None,
            Algorithm::MapE { psid, offset, length, rfc7597 } => {
                let set = PortSet { psid, offset, length, rfc7597 };
                self.one_of(sessions, address, set.len(), |nth| set.port(nth))
            }
        }
    }

    /// One of `count` ports that no host has.
    fn try_ports(
        &self,
        sessions: &mut Sessions,
        address: u32,
        count: u32,
        port: impl Fn(u32) -> u16,
    ) -> FreePort {
        let mut resting = None;
        for _ in 0..TRIES {
            // RFC 6056: hard to guess.
            let end = (address, port(sessions.random.below(count)));
            // RFC 6888, REQ-8: another host may have had it a moment ago.
            let rests = sessions.resting.has(end, self.protocol);
            if rests && resting.is_some() || !self.is_free(sessions, end) {
                continue;
            }
            if !rests {
                return FreePort { rested: Some(end), resting };
            }
            resting = Some(end);
        }
        FreePort { rested: None, resting }
    }

    /// One of `count` ports that no host has, whether it rests or not.
    fn in_order(
        &self,
        sessions: &mut Sessions,
        address: u32,
        count: u32,
        port: impl Fn(u32) -> u16,
    ) -> Option<Endpoint> {
        let start = sessions.random.below(count);
        let next = |nth: u32| (address, port((start + nth) % count.max(1)));
        (0..IN_ORDER.min(count)).map(next).find(|end| self.is_free(sessions, *end))
    }

    /// One of `count` ports, as it is found soonest.
    fn one_of(
        &self,
        sessions: &mut Sessions,
        address: u32,
        count: u32,
        port: impl Fn(u32) -> u16 + Copy,
    ) -> Option<Endpoint> {
        let FreePort { rested, resting } = self.try_ports(sessions, address, count, port);
        rested.or(resting).or_else(|| self.in_order(sessions, address, count, port))
    }

    fn is_free(&self, sessions: &Sessions, end: Endpoint) -> bool {
        let (address, port) = end;
        // A port of a mapping is no host's; a port of another worker would have its answers go there.
        self.config.of_port(port, address) == self.thread
            && self.config.mappings.exact(address, port, self.protocol).is_none()
            && sessions.is_free(end, self.protocol, self.outside_table)
    }
}

/// A block of a part that no host has, and that has rested if `is_rested`.
fn block_of_part(
    sessions: &mut Sessions,
    address: u32,
    part: u32,
    (size, is_rested): (u16, bool),
) -> Option<(u32, u16)> {
    let of_part: Vec<u16> = firsts(part, size).collect();
    let start = sessions.random.below(of_part.len() as u32) as usize;
    let (before, after) = of_part.split_at_checked(start).unwrap_or_default();
    let mut in_order = after.iter().chain(before).map(|first| (address, *first));
    let Sessions { blocks, resting, .. } = sessions;
    in_order.find(|block| blocks.is_free(*block) && !(is_rested && resting.has_block(*block)))
}

/// Ports of a MAP-E customer (RFC 7597, 5.1).
#[derive(Clone, Copy)]
struct PortSet {
    psid: u16,
    offset: u8,
    length: u8,
    rfc7597: bool,
}

impl PortSet {
    fn rest(self) -> u32 {
        16_u32.saturating_sub(u32::from(self.offset) + u32::from(self.length))
    }

    /// Values of the bits before the port set: not 0, whose ports are well-known ones.
    fn before(self) -> u32 {
        ((1_u32 << self.offset) - 1).max(1)
    }

    fn len(self) -> u32 {
        self.before() << self.rest()
    }

    fn port(self, nth: u32) -> u16 {
        let PortSet { psid, offset, length, rfc7597 } = self;
        let (offset, length, rest) = (u32::from(offset), u32::from(length), self.rest());
        let (before, after) =
            (nth % self.before() + u32::from(offset > 0), (nth / self.before()) % (1 << rest));
        let psid = u32::from(psid);
        let port = if rfc7597 {
            before << (16 - offset).min(31) | psid << rest | after
        } else {
            before | psid << offset | after << (offset + length)
        };
        port as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_a_port_set_are_those_that_map_e_gives() {
        let set = PortSet { psid: 10, offset: 6, length: 6, rfc7597: true };
        assert_eq!(set.len(), 63 * 16);
        let all: std::collections::BTreeSet<u16> = (0..set.len()).map(|nth| set.port(nth)).collect();
        assert_eq!(all.len() as u32, set.len(), "each once");
        assert!(all.iter().all(|port| *port >= 1024 && port >> 4 & 63 == 10));
        // VPP has the bits in the other order.
        let set = PortSet { rfc7597: false, ..set };
        let all: std::collections::BTreeSet<u16> = (0..set.len()).map(|nth| set.port(nth)).collect();
        assert_eq!(all.len() as u32, set.len());
        assert!(all.iter().all(|port| port >> 6 & 63 == 10 && port & 63 != 0));
        let whole = PortSet { psid: 3, offset: 0, length: 4, rfc7597: true };
        assert_eq!((whole.len(), whole.port(0), whole.port(4095)), (4096, 3 << 12, (3 << 12) + 4095));
    }
}
