//! Which server a new flow gets: Maglev's table (Eisenbud et al., NSDI 2016).
//!
//! Each server has an order of its own in which it wants the places of the table, which follows from its address alone. In turn
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

fn hash(address: IpAddr, seed: u64) -> u32 {
    let src = Ipv6Addr::from_bits(bits(address));
    let of = Flow6 { src, dst: Ipv6Addr::UNSPECIFIED, src_port: 0, dst_port: 0, protocol: IpProtocol(0) };
    of.hash(seed, Symmetry::Directed)
}

/// The order in which a server wants places.
struct Wish {
    slot: u16,
    next: u32,
    skip: u32,
}

/// A table of `len` places, a power of two, for servers, each a number and an address.
pub fn table(len: u32, servers: impl Iterator<Item = (u16, IpAddr)>) -> Vec<u16> {
    let mut table = vec![NONE; len as usize];
    let mut servers: Vec<(u16, IpAddr)> = servers.collect();
    servers.sort_by_key(|(_, address)| bits(*address));
    let mask = len.saturating_sub(1);
    // An odd step meets all places of a power of two.
    let wish =
        |(slot, address)| Wish { slot, next: hash(address, 1) & mask, skip: hash(address, 2) & mask | 1 };
    let mut wishes: Vec<Wish> = servers.into_iter().map(wish).collect();
    let mut left = if wishes.is_empty() { 0 } else { len };
    while left > 0 {
        for wish in wishes.iter_mut().take(left as usize) {
            while table.get(wish.next as usize).is_some_and(|slot| *slot != NONE) {
                wish.next = wish.next.wrapping_add(wish.skip) & mask;
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

    fn servers(n: u16) -> Vec<(u16, IpAddr)> {
        (0..n).map(|slot| (slot, IpAddr::from([10, 0, (slot >> 8) as u8, slot as u8]))).collect()
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
    fn few_places_change_when_a_server_goes() {
        let all = table(65_536, servers(10).into_iter());
        let left = table(65_536, servers(10).into_iter().filter(|(slot, _)| *slot != 4));
        let moved = all.iter().zip(&left).filter(|(before, now)| **before != 4 && before != now).count();
        // Maglev's price beside the tenth that must move: a few in a hundred.
        assert!(moved < 65_536 / 10, "{moved} places of servers that stay changed");
    }
}
