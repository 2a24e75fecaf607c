//! A domain: how addresses and ports of customers follow from each other (RFC 7597, 5).

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_nat::Shards;
use shoal_translate46::Prefix64;
use shoal_wire::{Ip4Prefix, Ip6Prefix};

/// Bits of an IPv6 address that MAP gives a customer: the interface identifier is the rest.
const CUSTOMER_BITS: u8 = 64;

/// What an operator says of a domain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// The customers' shared IPv4 addresses.
    pub ip4: Ip4Prefix,
    /// The customers' IPv6 prefixes begin with this.
    pub ip6: Ip6Prefix,
    /// What stands for the Internet in IPv6: with 128 bits the relay's address (MAP-E), else a prefix (MAP-T, RFC 6052).
    pub ip6_src: Ip6Prefix,
    /// Bits of the IPv4 address and the port set in a customer's prefix.
    pub ea_bits: u8,
    /// Ports below 2^(16 - offset) are no customer's, unless it is 0.
    pub psid_offset: u8,
    /// Bits of the port set.
    pub psid_length: u8,
    /// Bytes of a packet in the domain at most; 0: what the way carries.
    pub mtu: u16,
    /// A name.
    pub tag: String,
}

/// Why parameters are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidDomain {
    /// Offset and length of the port set need more than the 16 bits of a port.
    #[error("psid-offset and psid-len are {0} bits together, a port has 16")]
    Ports(u8),
    /// A customer's prefix would be longer than 64 bits.
    #[error("ip6-pfx and the bits of address and port set are {0} bits together, at most 64")]
    Prefix(u16),
    /// The bits of a customer's prefix hold no address and port set.
    #[error("ea-bits-len is {given}, address and port set need {needed}")]
    EaBits {
        /// What it is.
        given: u8,
        /// What is needed.
        needed: u8,
    },
    /// RFC 6052, 2.2 has no such length.
    #[error("ip6-src has {0} bits, expected 32, 40, 48, 56, 64, 96 or 128")]
    Source(u8),
}

/// A domain.
#[derive(Clone, Debug)]
pub struct Domain {
    /// What an operator says of it.
    pub parameters: Parameters,
    /// Port sets with an address of their own; there are none, or one for each port set that is served.
    pub rules: Shards<u16, Ipv6Addr>,
    suffix_shift: u8,
    /// Bits of the IPv4 address in a customer's prefix, and where they are in its first half.
    suffix: (u64, u32),
    psid_shift: u8,
    /// The same of the port set.
    psid: (u64, u32),
    /// The least port that is a customer's.
    first_port: u16,
    /// Whether a customer has more than one IPv4 address.
    is_prefix: bool,
}

fn mask(bits: u8) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

impl Domain {
    /// A domain without rules.
    ///
    /// # Errors
    /// The parameters do not fit each other.
    pub fn new(parameters: Parameters) -> Result<Domain, InvalidDomain> {
        let Parameters { ea_bits, psid_offset, psid_length, .. } = parameters;
        let ports = psid_offset.saturating_add(psid_length);
        if ports > 16 {
            return Err(InvalidDomain::Ports(ports));
        }
        let (ip4, ip6) = (parameters.ip4.len(), parameters.ip6.len());
        let free = 32 - ip4;
        let is_prefix = ea_bits < free;
        let (suffix_shift, suffix_len) = if is_prefix { (free - ea_bits, ea_bits) } else { (0, free) };
        // Without such bits, or in a prefix of a single customer, addresses are as they are given, or as rules say.
        if ea_bits > 0 && ip6 < 128 {
            let whole = u16::from(ip6) + u16::from(suffix_len) + u16::from(psid_length);
            if whole > u16::from(CUSTOMER_BITS) {
                return Err(InvalidDomain::Prefix(whole));
            }
            let needed = suffix_len + psid_length;
            if !is_prefix && ea_bits < needed {
                return Err(InvalidDomain::EaBits { given: ea_bits, needed });
            }
        }
        let source = parameters.ip6_src.len();
        if !matches!(source, 32 | 40 | 48 | 56 | 64 | 96 | 128) {
            return Err(InvalidDomain::Source(source));
        }
        let psid_shift = 16 - ports;
        // A prefix that is longer has no such bits.
        let suffix_at = CUSTOMER_BITS.saturating_sub(ip6.saturating_add(suffix_len));
        let psid_at = suffix_at.saturating_sub(psid_length);
        let (suffix, psid) = if ea_bits > 0 {
            ((mask(suffix_len), suffix_at.into()), (mask(psid_length), psid_at.into()))
        } else {
            Default::default()
        };
        let is_all = psid_length == 0 || psid_offset == 0;
        let first_port = if is_all { 0 } else { 1u16.checked_shl(u32::from(16 - psid_offset)).unwrap_or(0) };
        let rules = Shards::default();
        Ok(Domain { parameters, rules, suffix_shift, suffix, psid_shift, psid, first_port, is_prefix })
    }

    /// The port set of a port.
    pub fn psid(&self, port: u16) -> u16 {
        let shifted = u32::from(port) >> self.psid_shift;
        (u64::from(shifted) & mask(self.parameters.psid_length)) as u16
    }

    /// Whether a port belongs to some customer.
    pub const fn is_served(&self, port: u16) -> bool {
        port >= self.first_port
    }

    /// Whether a customer's address can be found without a port.
    pub fn needs_port(&self) -> bool {
        self.parameters.psid_length > 0 || !self.rules.is_empty()
    }

    /// The IPv6 address of the customer that has an IPv4 address and port; `None`: no rule has the port set.
    pub fn customer(&self, address: Ipv4Addr, port: u16) -> Option<Ipv6Addr> {
        let psid = self.psid(port);
        if !self.rules.is_empty() {
            return self.rules.get(&psid).copied();
        }
        let ip6 = self.parameters.ip6;
        let base = ip6.network().to_bits();
        if ip6.len() == 128 {
            return Some(Ipv6Addr::from_bits(base));
        }
        let address = u64::from(address.to_bits());
        let ((suffix_mask, suffix_at), (psid_mask, psid_at)) = (self.suffix, self.psid);
        let suffix = (address >> self.suffix_shift & suffix_mask).wrapping_shl(suffix_at);
        let set = (u64::from(psid) & psid_mask).wrapping_shl(psid_at);
        let high = (base >> 64) as u64 | suffix | set;
        let low = if self.is_prefix {
            (address >> self.suffix_shift << self.suffix_shift) << 16
        } else {
            address << 16 | u64::from(psid)
        };
        Some(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low)))
    }

    /// The IPv4 address of a customer's IPv6 address, as it says it. Whether that is true, [`customer`](Self::customer) says.
    pub fn of_customer(&self, address: Ipv6Addr) -> Ipv4Addr {
        if !self.rules.is_empty() || self.parameters.ip6.len() == 128 {
            return self.parameters.ip4.addr();
        }
        let said = (address.to_bits() >> 16) as u32;
        Ipv4Addr::from_bits(said)
    }

    /// What stands for an address of the Internet (RFC 6052, 2.2).
    pub fn internet(&self, address: Ipv4Addr) -> Ipv6Addr {
        let prefix = self.parameters.ip6_src;
        // MAP-E has one address for all of it.
        Prefix64::new(prefix).map_or(prefix.network(), |prefix| prefix.embed(address))
    }

    /// The address of the Internet that an IPv6 address stands for.
    pub fn of_internet(&self, address: Ipv6Addr) -> Ipv4Addr {
        let low = || Ipv4Addr::from_bits(address.to_bits() as u32);
        Prefix64::new(self.parameters.ip6_src).map_or_else(low, |prefix| prefix.extract(address))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn domain(ip4: &str, ip6: &str, src: &str, ea_bits: u8, (psid_offset, psid_length): (u8, u8)) -> Domain {
        let parameters = Parameters {
            ip4: ip4.parse().unwrap(),
            ip6: ip6.parse().unwrap(),
            ip6_src: src.parse().unwrap(),
            ea_bits,
            psid_offset,
            psid_length,
            mtu: 0,
            tag: String::new(),
        };
        Domain::new(parameters).unwrap()
    }

    fn six(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    fn four(text: &str) -> Ipv4Addr {
        text.parse().unwrap()
    }

    #[test]
    fn the_example_of_rfc_7597_appendix_a() {
        // Example 1: 192.0.2.18, port set 0x34.
        let domain = domain("192.0.2.0/24", "2001:db8::/40", "2001:db8:ffff::1/128", 16, (6, 8));
        let customer = six("2001:db8:12:3400:0:c000:212:34");
        for port in [1232u16, 1235, 2256, 63_696, 63_699] {
            assert_eq!(domain.psid(port), 0x34, "{port}");
            assert_eq!(domain.customer(four("192.0.2.18"), port), Some(customer));
        }
        assert_eq!(domain.of_customer(customer), four("192.0.2.18"));
        assert!(!domain.is_served(1023) && domain.is_served(1024));
    }

    #[test]
    fn prefixes_whole_addresses_and_rules() {
        let prefix = domain("10.0.0.0/8", "2001:db8::/32", "2001:db8:ffff::1/128", 16, (0, 0));
        assert_eq!(prefix.customer(four("10.1.2.3"), 9), Some(six("2001:db8:102::a01:200:0")));
        let whole = domain("192.0.2.0/24", "2001:db8::/56", "2001:db8:ffff::1/128", 8, (0, 0));
        assert_eq!(whole.customer(four("192.0.2.5"), 9), Some(six("2001:db8:0:5:0:c000:205:0")));
        let mut rules = domain("192.0.2.1/32", "2001:db8::/32", "2001:db8:ffff::1/128", 0, (6, 4));
        rules.rules.insert(3, six("2001:db8:77::1"));
        assert_eq!(rules.customer(four("192.0.2.1"), 16_606), Some(six("2001:db8:77::1")));
        assert_eq!(rules.customer(four("192.0.2.1"), 16_606 + 64), None);
    }

    #[test]
    fn the_examples_of_rfc_6052() {
        let all = [
            ("2001:db8::/32", "2001:db8:c000:221::"),
            ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
            ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
            ("2001:db8:122:344::/96", "2001:db8:122:344::c000:221"),
        ];
        for (prefix, address) in all {
            let domain = domain("198.18.0.0/24", "2001:db8:f0::/48", prefix, 12, (6, 4));
            assert_eq!(domain.internet(four("192.0.2.33")), six(address), "{prefix}");
            assert_eq!(domain.of_internet(six(address)), four("192.0.2.33"), "{prefix}");
        }
    }

    #[test]
    fn without_customers_bits_a_network_is_one_customers() {
        let domain = domain("192.0.2.0/24", "2001:db8::/48", "2001:db8:ffff::1/128", 0, (0, 0));
        assert_eq!(domain.customer(four("192.0.2.33"), 80), Some(six("2001:db8:0:0:0:c000:200:0")));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let make = |ip6: &str, src: &str, ea_bits, psid_offset, psid_length| {
            Domain::new(Parameters {
                ip4: "192.0.2.0/24".parse().unwrap(),
                ip6: ip6.parse().unwrap(),
                ip6_src: src.parse().unwrap(),
                ea_bits,
                psid_offset,
                psid_length,
                mtu: 0,
                tag: String::new(),
            })
            .map(|_| ())
        };
        assert_eq!(make("2001:db8::/48", "::/128", 16, 10, 8), Err(InvalidDomain::Ports(18)));
        assert_eq!(make("2001:db8::/60", "::/128", 16, 6, 8), Err(InvalidDomain::Prefix(76)));
        assert_eq!(
            make("2001:db8::/40", "::/128", 12, 6, 8),
            Err(InvalidDomain::EaBits { given: 12, needed: 16 })
        );
        assert_eq!(make("2001:db8::/40", "::/63", 16, 6, 8), Err(InvalidDomain::Source(63)));
    }
}
