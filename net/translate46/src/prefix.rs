//! IPv6 prefixes that stand for the IPv4 Internet (RFC 6052).

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_wire::Ip6Prefix;

/// The lengths that there are (RFC 6052, 2.2).
pub const LENGTHS: [u8; 6] = [32, 40, 48, 56, 64, 96];

/// Bits 64 to 71 are 0: an address goes around them.
const GAP: u32 = 64;

/// A prefix that stands for the IPv4 Internet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Prefix64(Ip6Prefix);

/// Bits of an IPv4 address in front of the gap.
fn before(length: u8) -> u32 {
    GAP.saturating_sub(length.into()).min(32)
}

impl Prefix64 {
    /// The well-known prefix 64:ff9b::/96 (RFC 6052, 2.1).
    pub fn well_known() -> Prefix64 {
        let address = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0);
        // 96 is a length that every address has.
        Prefix64(Ip6Prefix::new(address, 96).unwrap_or_else(|_| Ip6Prefix::host(address)))
    }

    /// A prefix as such; `None`: its length is none of [`LENGTHS`].
    pub fn new(prefix: Ip6Prefix) -> Option<Prefix64> {
        LENGTHS.contains(&prefix.len()).then_some(Prefix64(prefix))
    }

    /// The prefix.
    pub fn prefix(&self) -> Ip6Prefix {
        self.0
    }

    /// Whether an address is one that stands for an IPv4 address.
    pub fn contains(&self, address: Ipv6Addr) -> bool {
        self.0.contains(address)
    }

    /// What stands for an IPv4 address.
    pub fn embed(&self, address: Ipv4Addr) -> Ipv6Addr {
        let (base, address) = (self.0.network().to_bits(), u128::from(address.to_bits()));
        if self.0.len() == 96 {
            return Ipv6Addr::from_bits(base | address);
        }
        let behind = 32 - before(self.0.len());
        let (head, tail) = (address >> behind, address & ((1 << behind) - 1));
        Ipv6Addr::from_bits(base | head << 64 | tail << (56 - behind))
    }

    /// The IPv4 address that an address stands for.
    pub fn extract(&self, address: Ipv6Addr) -> Ipv4Addr {
        let bits = address.to_bits();
        if self.0.len() == 96 {
            return Ipv4Addr::from_bits(bits as u32);
        }
        let before = before(self.0.len());
        let behind = 32 - before;
        let head = (bits >> 64) & ((1 << before) - 1);
        let tail = (bits >> (56 - behind)) & ((1 << behind) - 1);
        Ipv4Addr::from_bits((head << behind | tail) as u32)
    }
}

impl fmt::Display for Prefix64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_examples_of_rfc_6052() {
        let address = Ipv4Addr::new(192, 0, 2, 33);
        for (prefix, embedded) in [
            ("2001:db8::/32", "2001:db8:c000:221::"),
            ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
            ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
            ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"),
        ] {
            let prefix = Prefix64::new(prefix.parse().unwrap()).unwrap();
            let embedded: Ipv6Addr = embedded.parse().unwrap();
            assert_eq!((prefix.embed(address), prefix.extract(embedded)), (embedded, address), "{prefix}");
            assert!(prefix.contains(embedded) && !prefix.contains("2002::".parse().unwrap()));
        }
        assert_eq!(Prefix64::well_known().to_string(), "64:ff9b::/96");
        assert_eq!(Prefix64::new("2001:db8::/33".parse().unwrap()), None);
    }
}
