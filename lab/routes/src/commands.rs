//! The table as lines of the CLI.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fastrand::Rng;

use crate::table;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// IPv4 prefixes.
    pub ip4: usize,
    /// IPv6 prefixes.
    pub ip6: usize,
    /// Neighbours that routes lead to, of each family.
    pub next_hops: u16,
    /// Routes of a hundred that lead to an address which another route leads to.
    pub recursive: u8,
    /// The first IPv4 neighbour; the others follow.
    pub first4: Ipv4Addr,
    /// The first IPv6 neighbour.
    pub first6: Ipv6Addr,
    /// The same seed gives the same table.
    pub seed: u64,
}

impl Wanted {
    /// A table of the Internet's size.
    pub const INTERNET: Wanted = Wanted {
        ip4: 1_000_000,
        ip6: 230_000,
        next_hops: 200,
        recursive: 20,
        first4: Ipv4Addr::new(10, 0, 1, 2),
        first6: Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, 2),
        seed: 1,
    };
}

/// Where the routes are that recursive ones resolve by: one /32 or /128 for each neighbour.
const LOOPBACKS4: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 0);
const LOOPBACKS6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xffff, 0, 0, 0, 0, 0, 0);

/// Writes the commands.
///
/// # Errors
/// The output's.
pub fn write(wanted: &Wanted, out: &mut impl Write) -> io::Result<()> {
    routes(wanted, |network, len, via| writeln!(out, "ip route add {network}/{len} via {via}"))
}

/// Does something with each route: its network, its length and its next hop.
///
/// # Errors
/// Those of what is done.
pub fn routes(wanted: &Wanted, mut each: impl FnMut(IpAddr, u8, IpAddr) -> io::Result<()>) -> io::Result<()> {
    let mut rng = Rng::with_seed(wanted.seed ^ 0x726f_7574_6573);
    let four = |first: Ipv4Addr, n: u16| IpAddr::V4(Ipv4Addr::from_bits(first.to_bits() + u32::from(n)));
    let six = |first: Ipv6Addr, n: u16| IpAddr::V6(Ipv6Addr::from_bits(first.to_bits() + u128::from(n)));
    for n in 0..wanted.next_hops {
        if wanted.ip4 > 0 && wanted.recursive > 0 {
            each(four(LOOPBACKS4, n), 32, four(wanted.first4, n))?;
        }
        if wanted.ip6 > 0 && wanted.recursive > 0 {
            each(six(LOOPBACKS6, n), 128, six(wanted.first6, n))?;
        }
    }
    let mut pick = |direct: &dyn Fn(u16) -> IpAddr, recursive: &dyn Fn(u16) -> IpAddr| {
        let n = rng.u16(0..wanted.next_hops.max(1));
        if rng.u8(0..100) < wanted.recursive { recursive(n) } else { direct(n) }
    };
    for (network, len) in table::ip4(wanted.ip4, wanted.seed) {
        let via = pick(&|n| four(wanted.first4, n), &|n| four(LOOPBACKS4, n));
        each(network.into(), len, via)?;
    }
    for (network, len) in table::ip6(wanted.ip6, wanted.seed) {
        let via = pick(&|n| six(wanted.first6, n), &|n| six(LOOPBACKS6, n));
        each(network.into(), len, via)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(wanted: &Wanted) -> Vec<String> {
        let mut text = Vec::new();
        write(wanted, &mut text).unwrap();
        String::from_utf8(text).unwrap().lines().map(str::to_owned).collect()
    }

    const WANTED: Wanted = Wanted { ip4: 3_000, ip6: 2_000, next_hops: 20, ..Wanted::INTERNET };

    #[test]
    fn each_route_has_a_line_and_a_fifth_is_recursive() {
        let lines = lines(&WANTED);
        assert_eq!(lines.len(), 40 + 5_000);
        let recursive = lines.iter().filter(|l| l.contains("via 10.255.") || l.contains("via fd00:ffff:"));
        let recursive = recursive.count();
        assert!((800..1_200).contains(&recursive), "{recursive}");
    }

    #[test]
    fn without_recursive_routes_there_are_no_loopbacks() {
        let lines = lines(&Wanted { recursive: 0, ..WANTED });
        assert_eq!(lines.len(), 5_000);
        assert!(!lines.iter().any(|l| l.contains("10.255.0.")));
    }
}
