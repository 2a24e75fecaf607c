//! Advertisements: version 3 (RFC 9568) and version 2 (RFC 3768).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_wire::IpProtocol;
use shoal_wire::checksum::Sum;

/// Bytes in front of the addresses.
const HEADER: usize = 8;
/// Type and version of an advertisement.
const VERSION_2: u8 = 0x21;
const VERSION_3: u8 = 0x31;
/// Bytes of version 2's authentication, which nothing uses any more.
const AUTHENTICATION: usize = 8;
/// Version 3 has 12 bits for the interval.
pub const LONGEST_INTERVAL: u16 = 4095;

/// Which version a virtual router speaks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Version {
    /// RFC 3768: IPv4 alone, intervals of seconds.
    V2,
    /// RFC 9568.
    #[default]
    V3,
}

impl Version {
    /// Its number.
    pub const fn number(self) -> u8 {
        match self {
            Version::V2 => 2,
            Version::V3 => 3,
        }
    }
}

/// What one router of a virtual router tells the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Advertisement {
    /// The version.
    pub version: Version,
    /// Which virtual router.
    pub vr_id: u8,
    /// How much the sender wants to be active; 0: it is no more.
    pub priority: u8,
    /// How often it tells so, in hundredths of a second.
    pub interval: u16,
    /// How many addresses it names.
    pub addresses: u8,
    /// The first one.
    pub first: IpAddr,
}

/// Why a packet is no advertisement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Invalid {
    /// Neither version.
    Version,
    /// No advertisement.
    Type,
    /// Too short for what it says.
    Length,
    /// It names no address.
    Addresses,
    /// Its checksum is wrong.
    Checksum,
    /// It has a password, which nothing here checks.
    Authentication,
}

fn pseudo(sum: &mut Sum, (src, dst): (IpAddr, IpAddr), length: usize) {
    *sum = match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => Sum::pseudo_ip4(src, dst, IpProtocol::VRRP, length as u16),
        (IpAddr::V6(src), IpAddr::V6(dst)) => Sum::pseudo_ip6(src, dst, IpProtocol::VRRP, length as u32),
        _ => Sum::new(),
    };
}

fn checksum(ends: Option<(IpAddr, IpAddr)>, bytes: &[u8]) -> u16 {
    let mut sum = Sum::new();
    if let Some(ends) = ends {
        pseudo(&mut sum, ends, bytes.len());
    }
    sum.add(bytes);
    sum.finish()
}

impl Advertisement {
    /// Reads what is behind the IP header.
    ///
    /// # Errors
    /// It is no advertisement of a version that is known.
    pub fn read(ends: (IpAddr, IpAddr), bytes: &[u8]) -> Result<Advertisement, Invalid> {
        let header: [u8; HEADER] = *bytes.first_chunk().ok_or(Invalid::Length)?;
        let [kind, vr_id, priority, addresses, high, low, ..] = header;
        let is_ip6 = ends.0.is_ipv6();
        let version = match kind >> 4 {
            2 if !is_ip6 => Version::V2,
            3 => Version::V3,
            _ => return Err(Invalid::Version),
        };
        if kind & 15 != 1 {
            return Err(Invalid::Type);
        }
        let size = if is_ip6 { 16 } else { 4 };
        let tail = if version == Version::V2 { AUTHENTICATION } else { 0 };
        let length = HEADER + usize::from(addresses) * size + tail;
        let message = bytes.get(..length).ok_or(Invalid::Length)?;
        if addresses == 0 {
            return Err(Invalid::Addresses);
        }
        let interval = match version {
            // Its upper byte says how it is authenticated, the lower one is in seconds.
            Version::V2 if high != 0 => return Err(Invalid::Authentication),
            Version::V2 => u16::from(low) * 100,
            Version::V3 => u16::from_be_bytes([high, low]) & LONGEST_INTERVAL,
        };
        // Routers differ in whether the checksum of version 3 covers IPv4's addresses (RFC 5798 said so, RFC 9568 does not).
        let without = !is_ip6 && checksum(None, message) == 0;
        let with = version == Version::V3 && checksum(Some(ends), message) == 0;
        if !without && !with {
            return Err(Invalid::Checksum);
        }
        let rest = message.get(HEADER..).unwrap_or_default();
        let first = if is_ip6 {
            rest.first_chunk::<16>().map(|bytes| IpAddr::V6(Ipv6Addr::from(*bytes)))
        } else {
            rest.first_chunk::<4>().map(|bytes| IpAddr::V4(Ipv4Addr::from(*bytes)))
        };
        let first = first.ok_or(Invalid::Length)?;
        Ok(Advertisement { version, vr_id, priority, interval, addresses, first })
    }

    /// Its bytes behind the IP header, of which `ends` are source and destination.
    pub fn write(&self, ends: (IpAddr, IpAddr), addresses: &[IpAddr]) -> Vec<u8> {
        let [high, low] = match self.version {
            Version::V2 => [0, (self.interval / 100) as u8],
            Version::V3 => self.interval.min(LONGEST_INTERVAL).to_be_bytes(),
        };
        let kind = if self.version == Version::V2 { VERSION_2 } else { VERSION_3 };
        let mut bytes = vec![kind, self.vr_id, self.priority, addresses.len() as u8, high, low, 0, 0];
        for address in addresses {
            match address {
                IpAddr::V4(address) => bytes.extend(address.octets()),
                IpAddr::V6(address) => bytes.extend(address.octets()),
            }
        }
        let covers = match self.version {
            Version::V2 => {
                bytes.extend([0; AUTHENTICATION]);
                None
            }
            Version::V3 => Some(ends),
        };
        let sum = checksum(covers, &bytes).to_be_bytes();
        if let Some(field) = bytes.get_mut(6..8) {
            field.copy_from_slice(&sum);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn advertisement(version: Version, first: &str) -> (Advertisement, Vec<IpAddr>) {
        let addresses = vec![ip(first)];
        (
            Advertisement { version, vr_id: 7, priority: 100, interval: 300, addresses: 1, first: ip(first) },
            addresses,
        )
    }

    #[test]
    fn what_is_written_is_read() {
        let four = (ip("10.0.0.1"), ip("224.0.0.18"));
        let six = (ip("fe80::1"), ip("ff02::12"));
        for (version, first, ends, length) in [
            (Version::V2, "10.0.0.9", four, 20),
            (Version::V3, "10.0.0.9", four, 12),
            (Version::V3, "fe80::9", six, 24),
        ] {
            let (said, addresses) = advertisement(version, first);
            let bytes = said.write(ends, &addresses);
            assert_eq!(bytes.len(), length);
            assert_eq!(Advertisement::read(ends, &bytes), Ok(said));
            // Padding of the link may follow.
            assert_eq!(Advertisement::read(ends, &[&bytes[..], &[0; 9]].concat()), Ok(said));
            for cut in 0..length {
                assert!(Advertisement::read(ends, &bytes[..cut]).is_err());
            }
            for bit in 0..length * 8 {
                let mut bad = bytes.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert!(Advertisement::read(ends, &bad).is_err(), "{version:?} bit {bit}");
            }
        }
    }

    #[test]
    fn keepaliveds_bytes_are_read() {
        // Version 3 without IPv4's addresses in the checksum.
        let ends = (ip("10.0.0.1"), ip("224.0.0.18"));
        let (said, addresses) = advertisement(Version::V3, "10.0.0.9");
        let mut bytes = said.write(ends, &addresses);
        bytes[6..8].fill(0);
        let sum = checksum(None, &bytes).to_be_bytes();
        bytes[6..8].copy_from_slice(&sum);
        assert_eq!(Advertisement::read(ends, &bytes), Ok(said));
    }

    #[test]
    fn others_are_refused_by_their_reason() {
        let ends = (ip("10.0.0.1"), ip("224.0.0.18"));
        let (said, addresses) = advertisement(Version::V3, "10.0.0.9");
        let bytes = said.write(ends, &addresses);
        let with = |at: usize, value: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            Advertisement::read(ends, &bytes)
        };
        assert_eq!(with(0, 0x41), Err(Invalid::Version));
        assert_eq!(with(0, 0x32), Err(Invalid::Type));
        assert_eq!(with(3, 9), Err(Invalid::Length));
        assert_eq!(with(3, 0), Err(Invalid::Addresses));
        assert_eq!(with(7, !bytes[7]), Err(Invalid::Checksum));
        let (said, addresses) = advertisement(Version::V2, "10.0.0.9");
        let mut bytes = said.write(ends, &addresses);
        bytes[4] = 1;
        assert_eq!(Advertisement::read(ends, &bytes), Err(Invalid::Authentication));
        let six = (ip("fe80::1"), ip("ff02::12"));
        assert_eq!(Advertisement::read(six, &bytes), Err(Invalid::Version));
    }
}
