//! What the table asks of an address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address of one family.
pub trait Address: Copy + Ord + fmt::Debug + fmt::Display + Into<IpAddr> + Send + 'static {
    /// The address, if it is of this family.
    fn of(address: IpAddr) -> Option<Self>;
    /// Whether it can be one host's.
    fn is_host(self) -> bool;
    /// How many addresses there are from this one on, itself among them; no more than can be counted.
    fn rest(self) -> u32;
    /// The `n`th address behind this one; beyond the last it starts at the first.
    fn plus(self, n: u32) -> Self;
}

impl Address for Ipv4Addr {
    fn of(address: IpAddr) -> Option<Self> {
        if let IpAddr::V4(address) = address { Some(address) } else { None }
    }

    fn is_host(self) -> bool {
        !self.is_unspecified() && !self.is_multicast() && !self.is_broadcast()
    }

    fn rest(self) -> u32 {
        (u32::MAX - self.to_bits()).saturating_add(1)
    }

    fn plus(self, n: u32) -> Self {
        Ipv4Addr::from_bits(self.to_bits().wrapping_add(n))
    }
}

impl Address for Ipv6Addr {
    fn of(address: IpAddr) -> Option<Self> {
        if let IpAddr::V6(address) = address { Some(address) } else { None }
    }

    fn is_host(self) -> bool {
        !self.is_unspecified() && !self.is_multicast() && !self.is_loopback()
    }

    fn rest(self) -> u32 {
        u32::try_from((u128::MAX - self.to_bits()).saturating_add(1)).unwrap_or(u32::MAX)
    }

    fn plus(self, n: u32) -> Self {
        Ipv6Addr::from_bits(self.to_bits().wrapping_add(u128::from(n)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_up_to_the_last_address() {
        assert_eq!(Ipv4Addr::new(255, 255, 255, 250).rest(), 6);
        assert_eq!(Ipv4Addr::UNSPECIFIED.rest(), u32::MAX);
        assert_eq!(Ipv6Addr::from_bits(u128::MAX - 1).rest(), 2);
        assert_eq!(Ipv6Addr::LOCALHOST.rest(), u32::MAX);
    }

    #[test]
    fn an_address_is_of_one_family() {
        let (four, six) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
        assert_eq!((Ipv4Addr::of(six), Ipv6Addr::of(four)), (None, None));
        assert!(!Ipv6Addr::LOCALHOST.is_host() && !Ipv4Addr::BROADCAST.is_host());
    }
}
