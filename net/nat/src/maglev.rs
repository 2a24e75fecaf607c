//! Which server a new flow gets: Maglev's table (Eisenbud et al., NSDI 2016).
//!
//! Each server has an order of its own in which it wants the places of the table, which follows from its address and port alone. In turn
//! each takes the next place of its order that is free. So all have the same number of places, give or take one; when a server
//! comes or goes few places change; and routers that know the same servers have the same table, in whatever order they were told.

use std::net::{IpAddr, Ipv6Addr};

use shoal_wire::IpProtocol;
use shoal_wire::hash::{Flow6, Symmetry};

/// A place that no server has: there is none.
pub const NONE: u16 = u16::MAX;

/// An address of either family in 128 bits.
pub fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// A server: its number, and the address and port that tell it from others. Services that have all ports of a server say 0.
pub type Server = (u16, IpAddr, u16);

fn hash((_, address, port): Server, seed: u64) -> u32 {
    let src = Ipv6Addr::from_bits(bits(address));
    let of = Flow6 { src, dst: Ipv6Addr::UNSPECIFIED, src_port: port, dst_port: 0, protocol: IpProtocol(0) };
    of.hash(seed, Symmetry::Directed)
}

/// The order in which a server wants places.
struct PlaceOrder {
    slot: u16,
    next: u32,
    skip: u32,
}

/// Whether steps of this size meet all places.
const fn meets_all(skip: u32, len: u32) -> bool {
    let (mut a, mut b) = (len, skip);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a == 1
}

impl PlaceOrder {
    fn new(server: Server, len: u32) -> PlaceOrder {
        let mut skip = hash(server, 2) % len;
        while !meets_all(skip, len) {
            skip = (skip + 1) % len;
        }
        PlaceOrder { slot: server.0, next: hash(server, 1) % len, skip }
    }
}

/// A table of `len` places for servers.
pub fn table(len: u32, servers: impl Iterator<Item = Server>) -> Vec<u16> {
    let mut table = vec![NONE; len as usize];
    let mut servers: Vec<Server> = servers.collect();
    servers.sort_by_key(|(_, address, port)| (bits(*address), *port));
    let mut wishes: Vec<PlaceOrder> = if len == 0 {
        Vec::new()
    } else {
        servers.into_iter().map(|server| PlaceOrder::new(server, len)).collect()
    };
    let mut left = if wishes.is_empty() { 0 } else { len };
    while left > 0 {
        for wish in wishes.iter_mut().take(left as usize) {
            while table.get(wish.next as usize).is_some_and(|slot| *slot != NONE) {
                wish.next = ((u64::from(wish.next) + u64::from(wish.skip)) % u64::from(len)) as u32;
            }
            if let Some(place) = table.get_mut(wish.next as usize) {
                *place = wish.slot;
            }
            left = left.saturating_sub(1);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "tests")]
    use super::*;

    fn servers(n: u16) -> Vec<Server> {
        (0..n).map(|slot| (slot, IpAddr::from([10, 0, (slot >> 8) as u8, slot as u8]), 0)).collect()
    }

    #[test]
    fn servers_have_equal_shares_and_the_order_they_came_in_does_not_matter() {
        for n in [1, 2, 3, 7, 100, 1024] {
            let table = table(1024, servers(n).into_iter());
            let mut shares = vec![0u32; n.into()];
            for slot in &table {
                shares[usize::from(*slot)] += 1;
            }
            let (least, most) = (shares.iter().min(), shares.iter().max());
            assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1), "{n}: {shares:?}");
            assert_eq!(table, super::table(1024, servers(n).into_iter().rev()));
        }
        // More servers than places: some have none.
        assert!(table(2, servers(5).into_iter()).iter().all(|slot| *slot != NONE));
        assert_eq!(table(4, std::iter::empty()), [NONE; 4]);
    }

    #[test]
    fn any_length_is_filled_and_ports_tell_servers_apart() {
        for len in [1, 2, 7, 9, 12, 1009, 1024] {
            assert!(table(len, servers(3).into_iter()).iter().all(|slot| *slot != NONE), "{len}");
        }
        let address = IpAddr::from([10, 0, 0, 1]);
        let table = table(1009, [(0, address, 80), (1, address, 81)].into_iter());
        let first = table.iter().filter(|slot| **slot == 0).count();
        assert!((504..=505).contains(&first), "{first}");
        assert!(super::table(0, servers(3).into_iter()).is_empty());
    }

    #[test]
    fn few_places_change_when_a_server_goes() {
        let all = table(65_536, servers(10).into_iter());
        let left = table(65_536, servers(10).into_iter().filter(|(slot, ..)| *slot != 4));
        let moved = all.iter().zip(&left).filter(|(before, now)| **before != 4 && before != now).count();
        // Maglev's price beside the tenth that must move: a few in a hundred.
        assert!(moved < 65_536 / 10, "{moved} places of servers that stay changed");
    }
}
