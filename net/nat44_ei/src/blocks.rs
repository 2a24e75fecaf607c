//! Blocks of ports: a host gets some ports of an address at once, so that one line of a log says who had a port (RFC 6888, REQ-14).

use std::collections::HashMap;

use shoal_nat44::ports::FIRST_PORT;

use crate::config::{PARTS, PORTS_OF_PART, part_of_port};
use crate::sessions::Endpoint;
use crate::users::Host;

/// A block: its address and its first port.
pub type BlockKey = (u32, u16);

/// A host has a block, or has it no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockEvent {
    /// Whether it has it.
    pub begins: bool,
    /// The host and its table.
    pub host: Host,
    /// The address.
    pub address: u32,
    /// The first port.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

struct Block {
    host: Host,
    /// Ports of each protocol that are used: TCP's, UDP's, ICMP's.
    used: [u16; 3],
}

/// Blocks of a worker's hosts.
#[derive(Default)]
pub struct Blocks {
    /// Ports of a block; 0: there are none.
    size: u16,
    taken: HashMap<BlockKey, Block>,
    by_host: HashMap<Host, Vec<BlockKey>>,
    /// Blocks of each address that hosts have.
    of_address: HashMap<u32, u32>,
}

/// Where a protocol is counted.
pub fn place(protocol: u8) -> usize {
    match protocol {
        shoal_nat::tuple::TCP => 0,
        shoal_nat::tuple::UDP => 1,
        _ => 2,
    }
}

/// Blocks of a part of an address.
pub fn blocks_of_part(size: u16) -> u32 {
    PORTS_OF_PART / u32::from(size.max(1))
}

/// The first ports of a part's blocks.
pub fn firsts(part: u32, size: u16) -> impl Iterator<Item = u16> {
    let first = u32::from(FIRST_PORT) + (part % PARTS) * PORTS_OF_PART;
    (0..blocks_of_part(size)).map(move |nth| (first + nth * u32::from(size)) as u16)
}

impl Blocks {
    /// Ports of a block; 0: there are none.
    pub fn size(&self) -> u16 {
        self.size
    }

    /// Hosts have blocks of so many ports from now on; those they had are forgotten.
    pub fn set_size(&mut self, size: u16) {
        *self = Blocks { size, ..Blocks::default() };
    }

    /// The block that a port belongs to; `None`: it is in none.
    pub fn of_port(&self, (address, port): Endpoint) -> Option<BlockKey> {
        if self.size == 0 {
            return None;
        }
        let part = part_of_port(port)?;
        let offset = u32::from(port - FIRST_PORT) - part * PORTS_OF_PART;
        let nth = offset / u32::from(self.size);
        let first = firsts(part, self.size).nth(nth as usize)?;
        Some((address, first))
    }

    /// Blocks of a host, the first one first.
    pub fn of_host(&self, host: Host) -> &[BlockKey] {
        self.by_host.get(&host).map_or(&[], Vec::as_slice)
    }

    /// Whether no host has a block.
    pub fn is_free(&self, key: BlockKey) -> bool {
        !self.taken.contains_key(&key)
    }

    /// How many blocks of an address hosts have.
    pub fn count_of(&self, address: u32) -> u32 {
        self.of_address.get(&address).copied().unwrap_or(0)
    }

    /// Whether a block has a port of a protocol left.
    pub fn has_room(&self, key: BlockKey, protocol: u8) -> bool {
        let used = self.taken.get(&key).and_then(|block| block.used.get(place(protocol)));
        used.is_none_or(|used| *used < self.size)
    }

    fn event(&self, begins: bool, host: Host, (address, first): BlockKey) -> BlockEvent {
        let last = first.saturating_add(self.size.saturating_sub(1));
        BlockEvent { begins, host, address, first, last }
    }

    /// A port of a host is used: its block is the host's, if it was none's. Tells that.
    pub fn take(&mut self, host: Host, end: Endpoint, protocol: u8) -> Option<BlockEvent> {
        let key = self.of_port(end)?;
        let is_new = self.is_free(key);
        let block = self.taken.entry(key).or_insert(Block { host, used: [0; 3] });
        if block.host != host {
            return None;
        }
        if let Some(used) = block.used.get_mut(place(protocol)) {
            *used += 1;
        }
        if is_new {
            self.by_host.entry(host).or_default().push(key);
            *self.of_address.entry(key.0).or_default() += 1;
        }
        is_new.then(|| self.event(true, host, key))
    }

    /// A port of a host is used no more. Tells whether that was the last one of its block, which is the host's no more.
    pub fn release(&mut self, host: Host, end: Endpoint, protocol: u8) -> Option<BlockEvent> {
        let key = self.of_port(end)?;
        let block = self.taken.get_mut(&key).filter(|block| block.host == host)?;
        if let Some(used) = block.used.get_mut(place(protocol)) {
            *used = used.saturating_sub(1);
        }
        if block.used != [0; 3] {
            return None;
        }
        self.taken.remove(&key);
        if let Some(count) = self.of_address.get_mut(&key.0) {
            *count = count.saturating_sub(1);
        }
        if let Some(of_host) = self.by_host.get_mut(&host) {
            of_host.retain(|one| *one != key);
            if of_host.is_empty() {
                self.by_host.remove(&host);
            }
        }
        Some(self.event(false, host, key))
    }

    /// All blocks with their hosts.
    pub fn list(&self) -> Vec<BlockEvent> {
        self.taken.iter().map(|(key, block)| self.event(true, block.host, *key)).collect()
    }
}

#[cfg(test)]
mod tests {
    use shoal_nat::tuple::{TCP, UDP};

    use super::*;

    #[test]
    fn a_block_is_a_hosts_from_its_first_port_to_its_last() {
        let mut blocks = Blocks::default();
        blocks.set_size(100);
        let (host, other) = ((7, 0), (8, 0));
        let told = blocks.take(host, (9, 1030), UDP);
        let event = BlockEvent { begins: true, host, address: 9, first: 1024, last: 1123 };
        assert_eq!(told, Some(event));
        assert_eq!(blocks.take(host, (9, 1031), TCP), None);
        assert_eq!(blocks.take(other, (9, 1032), TCP), None, "it is another's");
        assert_eq!((blocks.of_host(host), blocks.of_host(other)), (&[(9, 1024)][..], &[][..]));
        assert_eq!(blocks.release(other, (9, 1031), TCP), None);
        assert_eq!(blocks.release(host, (9, 1031), TCP), None);
        assert_eq!(blocks.release(host, (9, 1030), UDP), Some(BlockEvent { begins: false, ..event }));
        assert!(blocks.is_free((9, 1024)) && blocks.list().is_empty());
    }

    #[test]
    fn every_port_of_a_block_is_in_it_and_no_block_crosses_two_parts() {
        for size in [1, 16, 63, 64, 100, 504, 1008] {
            let mut blocks = Blocks::default();
            blocks.set_size(size);
            for part in [0, 1, PARTS - 1] {
                for first in firsts(part, size) {
                    for port in [first, first + (size - 1)] {
                        assert_eq!(blocks.of_port((1, port)), Some((1, first)), "{size}");
                        assert_eq!(part_of_port(port), Some(part));
                    }
                }
            }
        }
        let mut blocks = Blocks::default();
        assert_eq!(blocks.of_port((1, 2000)), None, "there are none");
        blocks.set_size(1000);
        assert_eq!(blocks.of_port((1, 1024 + 1000)), None, "what is left over is in none");
        assert_eq!(blocks.of_port((1, 80)), None);
    }
}
