//! Address prefixes and ranges as operators write them, with errors that name the nearest right value.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::plain;

/// Why a prefix or range is refused. `text` is what was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PrefixError {
    /// The part before the slash, or an end of a range, is no address.
    Address {
        /// What was written.
        text: String,
        /// `IPv4`, `IPv6` or `IPv4 or IPv6`.
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
    let wrong = |_| PrefixError::Address { text: shown(text), family: "IPv6", nearest: None };
    plain::ip6(text).map_or_else(|| text.parse(), Ok).map_err(wrong)
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

/// A prefix of either family, told apart by its colons.
///
/// ```
/// use shoal_wire::IpPrefix;
/// let prefix: IpPrefix = "2001:db8::1/64".parse()?;
/// assert_eq!(prefix.normalized().to_string(), "2001:db8::/64");
/// assert!(!prefix.contains([10, 0, 0, 1].into()));
/// # Ok::<(), shoal_wire::prefix::PrefixError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpPrefix {
    /// IPv4.
    Ip4(Ip4Prefix),
    /// IPv6.
    Ip6(Ip6Prefix),
}

/// The same expression for both families.
macro_rules! either {
    ($self:expr, $prefix:ident => $value:expr) => {
        match $self {
            Self::Ip4($prefix) => $value,
            Self::Ip6($prefix) => $value,
        }
    };
}

impl IpPrefix {
    /// A prefix of `len` bits; an error beyond 32 or 128.
    pub fn new(addr: IpAddr, len: u8) -> Result<Self, PrefixError> {
        Ok(match addr {
            IpAddr::V4(addr) => Self::Ip4(Ip4Prefix::new(addr, len)?),
            IpAddr::V6(addr) => Self::Ip6(Ip6Prefix::new(addr, len)?),
        })
    }

    /// The prefix of one address.
    pub const fn host(addr: IpAddr) -> Self {
        match addr {
            IpAddr::V4(addr) => Self::Ip4(Ip4Prefix::host(addr)),
            IpAddr::V6(addr) => Self::Ip6(Ip6Prefix::host(addr)),
        }
    }

    /// The address as written.
    pub fn addr(&self) -> IpAddr {
        either!(self, prefix => prefix.addr().into())
    }

    /// The prefix length in bits.
    #[allow(clippy::len_without_is_empty, reason = "a prefix is never empty")]
    pub const fn len(&self) -> u8 {
        either!(self, prefix => prefix.len())
    }

    /// The longest prefix length of the family, in bits.
    pub const fn max_len(&self) -> u8 {
        match self {
            Self::Ip4(_) => Ip4Prefix::MAX_LEN,
            Self::Ip6(_) => Ip6Prefix::MAX_LEN,
        }
    }

    /// The IPv4 prefix, if it is one.
    pub const fn ip4(&self) -> Option<Ip4Prefix> {
        match *self {
            Self::Ip4(prefix) => Some(prefix),
            Self::Ip6(_) => None,
        }
    }

    /// The IPv6 prefix, if it is one.
    pub const fn ip6(&self) -> Option<Ip6Prefix> {
        match *self {
            Self::Ip4(_) => None,
            Self::Ip6(prefix) => Some(prefix),
        }
    }

    /// The lowest address.
    pub fn network(&self) -> IpAddr {
        either!(self, prefix => prefix.network().into())
    }

    /// `addr` is of the same family and its first `len` bits are this prefix's.
    pub const fn contains(&self, addr: IpAddr) -> bool {
        match (self, addr) {
            (Self::Ip4(prefix), IpAddr::V4(addr)) => prefix.contains(addr),
            (Self::Ip6(prefix), IpAddr::V6(addr)) => prefix.contains(addr),
            _ => false,
        }
    }

    /// Every address of `other` is in this prefix.
    pub const fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ip4(prefix), Self::Ip4(other)) => prefix.covers(other),
            (Self::Ip6(prefix), Self::Ip6(other)) => prefix.covers(other),
            _ => false,
        }
    }

    /// The address has bits below the prefix length.
    pub const fn has_host_bits(&self) -> bool {
        either!(self, prefix => prefix.has_host_bits())
    }

    /// The prefix with its host bits cleared: what a table stores.
    pub const fn normalized(&self) -> Self {
        match self {
            Self::Ip4(prefix) => Self::Ip4(prefix.normalized()),
            Self::Ip6(prefix) => Self::Ip6(prefix.normalized()),
        }
    }

    /// Itself, or an error naming the network when host bits are set.
    pub fn require_network(self) -> Result<Self, PrefixError> {
        either!(self, prefix => prefix.require_network().map(Self::from))
    }
}

impl From<Ip4Prefix> for IpPrefix {
    fn from(prefix: Ip4Prefix) -> Self {
        Self::Ip4(prefix)
    }
}

impl From<Ip6Prefix> for IpPrefix {
    fn from(prefix: Ip6Prefix) -> Self {
        Self::Ip6(prefix)
    }
}

impl FromStr for IpPrefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        if let Some(prefix) = plain::prefix4(text) {
            return Ok(Self::Ip4(prefix));
        }
        let parsed = if text.as_bytes().contains(&b':') {
            text.parse().map(Self::Ip6)
        } else {
            text.parse().map(Self::Ip4)
        };
        parsed.map_err(|error| match error {
            // Without a nearest address nothing says which family was meant.
            PrefixError::Address { text, nearest: None, .. } if !text.contains(':') => {
                PrefixError::Address { text, family: "IPv4 or IPv6", nearest: None }
            }
            error => error,
        })
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        either!(self, prefix => prefix.fmt(f))
    }
}

impl fmt::Debug for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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
    fn a_prefix_of_either_family_keeps_to_its_own() {
        let (four, six): (IpPrefix, IpPrefix) =
            ("10.1.2.3/8".parse().unwrap(), "fe80::1/10".parse().unwrap());
        assert_eq!(
            four.normalized().to_string() + " " + &six.normalized().to_string(),
            "10.0.0.0/8 fe80::/10"
        );
        assert_eq!((four.len(), four.max_len(), six.len(), six.max_len()), (8, 32, 10, 128));
        assert!(
            four.contains([10, 9, 9, 9].into()) && !four.contains(six.addr()) && !six.contains(four.addr())
        );
        assert!(six.contains("febf::".parse().unwrap()) && !six.contains("fec0::".parse().unwrap()));
        assert!(six.covers(&IpPrefix::host(six.addr())) && !IpPrefix::from(Ip6Prefix::ANY).covers(&four));
        assert!(four.has_host_bits() && four.require_network().is_err());
        assert_eq!(IpPrefix::new(four.network(), 8), four.normalized().require_network());
        assert_eq!((four.ip4().is_some(), four.ip6(), six.ip4()), (true, None, None));
        for (text, want) in [
            ("1.2.3.4/33", "1.2.3.4/33: prefix length must be 0 to 32, nearest 32"),
            ("::/129", "::/129: prefix length must be 0 to 128, nearest 128"),
            ("::1", "::1: prefix length missing, nearest ::1/128"),
            ("x/8", "x: not an IPv4 or IPv6 address"),
            (":x/8", ":x: not an IPv6 address"),
            ("1.2.3.999/8", "1.2.3.999: not an IPv4 address, nearest 1.2.3.255"),
        ] {
            assert_eq!(text.parse::<IpPrefix>().unwrap_err().to_string(), want);
        }
        assert!(IpPrefix::new(six.addr(), 129).is_err());
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
