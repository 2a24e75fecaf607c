//! Ports of workers: those of a shared address are divided into ranges, one for each worker, so that answers find their session.

use shoal_nat::tuple::{ICMP, TCP, UDP};

/// The first port that is given out.
pub const FIRST_PORT: u16 = 1024;
const PORTS: u32 = 65536 - FIRST_PORT as u32;

/// VPP's hash of an address: its bytes, the last one of the address as the highest, added up.
pub fn fold(address: u32) -> u32 {
    let a = address.swap_bytes();
    a.wrapping_add(a >> 8).wrapping_add(a >> 16).wrapping_add(a >> 24)
}

/// Whether packets of a protocol have ports.
pub fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | ICMP)
}

/// Ports of a worker: the first, and how many.
pub fn range(nth: usize, workers: usize) -> (u16, u32) {
    let each = PORTS / workers.max(1) as u32;
    (FIRST_PORT.saturating_add((each * nth as u32) as u16), each)
}

/// The worker, by its place among so many, that an address picks.
pub fn by_address(address: u32, workers: usize) -> usize {
    fold(address) as usize % workers.max(1)
}

/// The worker whose range has a port; of ports that are not given out, the one that an address picks.
pub fn by_port(port: u16, otherwise: u32, workers: usize) -> usize {
    let each = PORTS / workers.max(1) as u32;
    match port.checked_sub(FIRST_PORT) {
        Some(offset) => (u32::from(offset) / each) as usize % workers.max(1),
        None => by_address(otherwise, workers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_an_address_is_vpps() {
        assert_eq!(fold(0x0a00_0001), 0x0100_000a_u32.wrapping_add(0x01_0000 + 0x0100 + 1));
    }

    #[test]
    fn a_port_of_a_worker_picks_that_worker() {
        for workers in 1..9 {
            for nth in 0..workers {
                let (first, count) = range(nth, workers);
                for port in [first, first + (count - 1) as u16] {
                    assert_eq!(by_port(port, 7, workers), nth);
                }
            }
        }
    }
}
