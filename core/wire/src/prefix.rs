//! Address prefixes and ranges as operators write them, with errors that name the nearest right value.

use std::error::Error;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Why a prefix or range is refused. `text` is what was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PrefixError {
    /// The part before the slash, or an end of a range, is no address.
    Address {
        /// What was written.
        text: String,
        /// `IPv4` or `IPv6`.
        family: &'static str,
        /// An address that looks like it, if one does.
        nearest: Option<String>,
    },
    /// There is no slash.
    NoLength {
        /// What was written.
        text: String,
        /// The length of a host prefix.
        max: u8,
    },
    /// The length is no number or too large.
    Length {
        /// What was written.
        text: String,
        /// The longest length.
        max: u8,
    },
    /// Bits below the length are set where a network is wanted.
    HostBits {
        /// What was written.
        text: String,
        /// The network it is in.
        nearest: String,
    },
    /// The first address of a range is above the last.
    Reversed {
        /// The range the right way round.
        nearest: Ip4Range,
    },
}

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { text, family, nearest } => {
                write!(f, "{text}: not an {family} address")?;
                nearest.iter().try_for_each(|n| write!(f, ", nearest {n}"))
            }
            Self::NoLength { text, max } => write!(f, "{text}: prefix length missing, nearest {text}/{max}"),
            Self::Length { text, max } => {
                // A length that is no number at all has no nearest one.
                let number = text.rsplit('/').next().is_some_and(all_digits);
                write!(f, "{text}: prefix length must be 0 to {max}")?;
                if number { write!(f, ", nearest {max}") } else { Ok(()) }
            }
            Self::HostBits { text, nearest } => write!(f, "{text}: host bits are set, nearest {nearest}"),
            Self::Reversed { nearest: Ip4Range { first, last } } => {
                write!(f, "{last}-{first}: range is reversed, nearest {first}-{last}")
            }
        }
    }
}

impl Error for PrefixError {}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// `text` cut to what an error message can carry.
fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

fn split(text: &str, max: u8) -> Result<(&str, u8), PrefixError> {
    let Some((addr, len)) = text.split_once('/') else {
        return Err(PrefixError::NoLength { text: shown(text), max });
    };
    match len.parse() {
        Ok(n) if n <= max && all_digits(len) => Ok((addr, n)),
        _ => Err(PrefixError::Length { text: shown(text), max }),
    }
}

fn parse_ip4(text: &str) -> Result<Ipv4Addr, PrefixError> {
    text.parse().map_err(|_| {
        // Four numbers of which some are too large: the nearest address has 255 there.
        let octets: Vec<u8> = text
            .split('.')
            .filter(|p| all_digits(p))
            .map(|p| p.parse().map_or(255, |n: u64| n.min(255) as u8))
            .collect();
        let nearest = match octets[..] {
            [a, b, c, d] if text.split('.').count() == 4 => Some(Ipv4Addr::new(a, b, c, d).to_string()),
            _ => None,
        };
        PrefixError::Address { text: shown(text), family: "IPv4", nearest }
    })
}

macro_rules! prefix {
    ($name:ident, $addr:ty, $bits:ty, $max:literal, $parse:expr, $family:literal, $example:literal) => {
        #[doc = concat!("An ", $family, " address with a prefix length; the address may have host bits, as an interface")]
        #[doc = "address has."]
        #[doc = ""]
        #[doc = "```"]
        #[doc = concat!("let prefix: shoal_wire::", stringify!($name), " = \"", $example, "\".parse()?;")]
        #[doc = concat!("assert_eq!(prefix.to_string(), \"", $example, "\");")]
        #[doc = "assert!(prefix.contains(prefix.addr()) && prefix.has_host_bits());"]
        #[doc = "# Ok::<(), shoal_wire::prefix::PrefixError>(())"]
        #[doc = "```"]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            addr: $addr,
            len: u8,
        }

        impl $name {
            /// The longest prefix length, in bits.
            pub const MAX_LEN: u8 = $max;
            /// Every address.
            pub const ANY: Self = Self { addr: <$addr>::UNSPECIFIED, len: 0 };

            /// A prefix of `len` bits; an error beyond [`MAX_LEN`](Self::MAX_LEN).
            pub fn new(addr: $addr, len: u8) -> Result<Self, PrefixError> {
                if len > $max {
                    return Err(PrefixError::Length { text: format!("{addr}/{len}"), max: $max });
                }
                Ok(Self { addr, len })
            }

            /// The prefix of one address.
            pub const fn host(addr: $addr) -> Self {
                Self { addr, len: $max }
            }

            /// The address as written.
            pub const fn addr(&self) -> $addr {
                self.addr
            }

            /// The prefix length in bits.
            #[allow(clippy::len_without_is_empty, reason = "a prefix is never empty")]
            pub const fn len(&self) -> u8 {
                self.len
            }

            /// `len` ones, then zeroes.
            pub const fn mask_bits(&self) -> $bits {
                match <$bits>::MAX.checked_shl($max - self.len as u32) {
                    Some(mask) => mask,
                    None => 0,
                }
            }

            /// The lowest address.
            pub const fn network(&self) -> $addr {
                <$addr>::from_bits(self.addr.to_bits() & self.mask_bits())
            }

            /// The highest address.
            const fn highest(&self) -> $addr {
                <$addr>::from_bits(self.addr.to_bits() | !self.mask_bits())
            }

            /// The first `len` bits of `addr` are this prefix's.
            pub const fn contains(&self, addr: $addr) -> bool {
                (addr.to_bits() ^ self.addr.to_bits()) & self.mask_bits() == 0
            }

            /// Every address of `other` is in this prefix.
            pub const fn covers(&self, other: &Self) -> bool {
                self.len <= other.len && self.contains(other.addr)
            }

            /// The address has bits below the prefix length.
            pub const fn has_host_bits(&self) -> bool {
                self.addr.to_bits() & !self.mask_bits() != 0
            }

            /// The prefix with its host bits cleared: what a table stores.
            pub const fn normalized(&self) -> Self {
                Self { addr: self.network(), len: self.len }
            }

            /// Itself, or an error naming the network when host bits are set.
            pub fn require_network(self) -> Result<Self, PrefixError> {
                if self.has_host_bits() {
                    let nearest = self.normalized().to_string();
                    return Err(PrefixError::HostBits { text: self.to_string(), nearest });
                }
                Ok(self)
            }
        }

        impl FromStr for $name {
            type Err = PrefixError;

            fn from_str(text: &str) -> Result<Self, PrefixError> {
                let (addr, len) = split(text, $max)?;
                let parse: fn(&str) -> Result<$addr, PrefixError> = $parse;
                Ok(Self { addr: parse(addr)?, len })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}/{}", self.addr, self.len)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

prefix!(Ip4Prefix, Ipv4Addr, u32, 32, parse_ip4, "IPv4", "10.0.0.1/24");
prefix!(Ip6Prefix, Ipv6Addr, u128, 128, parse_ip6, "IPv6", "2001:db8::1/64");

fn parse_ip6(text: &str) -> Result<Ipv6Addr, PrefixError> {
    text.parse().map_err(|_| PrefixError::Address { text: shown(text), family: "IPv6", nearest: None })
}

impl Ip4Prefix {
    /// The directed broadcast address: the highest address. Prefixes of 31 and 32 bits have none
    /// (RFC 3021).
    pub const fn broadcast(&self) -> Option<Ipv4Addr> {
        if self.len >= 31 { None } else { Some(self.highest()) }
    }

    /// The mask as an address: `255.255.255.0`.
    pub const fn netmask(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.mask_bits())
    }

    /// The addresses of the prefix.
    pub const fn range(&self) -> Ip4Range {
        Ip4Range { first: self.network(), last: self.highest() }
    }
}

impl Ip6Prefix {
    /// The highest address; IPv6 has no broadcast.
    pub const fn last(&self) -> Ipv6Addr {
        self.highest()
    }
}

/// IPv4 addresses from `first` to `last`, both included: `10.0.0.1-10.0.0.9` or one address.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ip4Range {
    first: Ipv4Addr,
    last: Ipv4Addr,
}

impl Ip4Range {
    /// A range; an error when `first` is above `last`.
    pub fn new(first: Ipv4Addr, last: Ipv4Addr) -> Result<Self, PrefixError> {
        if first > last {
            return Err(PrefixError::Reversed { nearest: Self { first: last, last: first } });
        }
        Ok(Self { first, last })
    }

    /// The lowest address.
    pub const fn first(&self) -> Ipv4Addr {
        self.first
    }

    /// The highest address.
    pub const fn last(&self) -> Ipv4Addr {
        self.last
    }

    /// How many addresses: 1 to 2^32.
    pub const fn count(&self) -> u64 {
        self.last.to_bits() as u64 - self.first.to_bits() as u64 + 1
    }

    /// `addr` is in the range.
    pub fn contains(&self, addr: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&addr)
    }

    /// Some address is in both.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// The addresses, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = Ipv4Addr> + use<> {
        (self.first.to_bits()..=self.last.to_bits()).map(Ipv4Addr::from_bits)
    }
}

impl FromStr for Ip4Range {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Self::new(parse_ip4(first.trim())?, parse_ip4(last.trim())?)
    }
}

impl fmt::Display for Ip4Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            return write!(f, "{}", self.first);
        }
        write!(f, "{}-{}", self.first, self.last)
    }
}

impl fmt::Debug for Ip4Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip4(text: &str) -> Ip4Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn errors_name_the_nearest_right_value() {
        for (text, want) in [
            ("10.0.0.1/33", "10.0.0.1/33: prefix length must be 0 to 32, nearest 32"),
            ("10.0.0.1/x", "10.0.0.1/x: prefix length must be 0 to 32"),
            ("10.0.0.1/+8", "10.0.0.1/+8: prefix length must be 0 to 32"),
            ("10.0.0.1", "10.0.0.1: prefix length missing, nearest 10.0.0.1/32"),
            ("10.0.0.256/24", "10.0.0.256: not an IPv4 address, nearest 10.0.0.255"),
            ("10.0.0/24", "10.0.0: not an IPv4 address"),
            ("ten.0.0.1/24", "ten.0.0.1: not an IPv4 address"),
        ] {
            assert_eq!(text.parse::<Ip4Prefix>().unwrap_err().to_string(), want);
        }
        let error = "::1/129".parse::<Ip6Prefix>().unwrap_err().to_string();
        assert_eq!(error, "::1/129: prefix length must be 0 to 128, nearest 128");
        let error = ip4("10.0.0.1/24").require_network().unwrap_err().to_string();
        assert_eq!(error, "10.0.0.1/24: host bits are set, nearest 10.0.0.0/24");
    }

    #[test]
    fn the_shortest_and_the_longest_prefix_have_right_edges() {
        let any = ip4("1.2.3.4/0");
        assert_eq!((any.network(), any.broadcast()), (Ipv4Addr::UNSPECIFIED, Some(Ipv4Addr::BROADCAST)));
        assert!(any.contains(Ipv4Addr::BROADCAST));
        let host = Ip4Prefix::host([1, 2, 3, 4].into());
        assert_eq!((host.network(), host.broadcast()), ([1, 2, 3, 4].into(), None));
        assert!(!host.has_host_bits() && any.covers(&host) && !host.covers(&any));
        assert_eq!(ip4("10.0.0.0/31").broadcast(), None);
        let six: Ip6Prefix = "ff::/0".parse().unwrap();
        assert_eq!(six.normalized(), Ip6Prefix::ANY);
        assert_eq!(Ip6Prefix::host(Ipv6Addr::LOCALHOST).last(), Ipv6Addr::LOCALHOST);
    }

    #[test]
    fn a_network_ends_where_its_length_says() {
        let prefix = ip4("10.1.2.3/22");
        assert_eq!(prefix.range().to_string(), "10.1.0.0-10.1.3.255");
        assert_eq!(prefix.netmask().to_string(), "255.255.252.0");
        assert!(prefix.contains([10, 1, 3, 255].into()) && !prefix.contains([10, 1, 4, 0].into()));
    }

    #[test]
    fn ranges_count_both_ends() {
        let range: Ip4Range = "10.0.0.1 - 10.0.0.9".parse().unwrap();
        assert_eq!((range.count(), range.iter().count()), (9, 9));
        assert!(range.contains(range.last()) && range.overlaps(&ip4("10.0.0.9/32").range()));
        assert_eq!(Ip4Prefix::ANY.range().count(), 1 << 32);
        let error = "10.0.0.9-10.0.0.1".parse::<Ip4Range>().unwrap_err().to_string();
        assert_eq!(error, "10.0.0.9-10.0.0.1: range is reversed, nearest 10.0.0.1-10.0.0.9");
        assert_eq!("10.0.0.1".parse::<Ip4Range>().unwrap().to_string(), "10.0.0.1");
    }
}
