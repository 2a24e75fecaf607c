//! What an IPv6 address means: scopes, groups and interface identifiers (RFC 4291).
//!
//! Functions over [`Ipv6Addr`], which has the rest: `is_unspecified`, `is_loopback`, `is_multicast`.

use std::fmt;
use std::net::Ipv6Addr;

use crate::{Ip6Prefix, MacAddress};

/// `ff02::1`: every node of the link (RFC 4291 section 2.7.1).
pub const ALL_NODES: Ipv6Addr = link_group(1);
/// `ff02::2`: every router of the link (RFC 4291 section 2.7.1).
pub const ALL_ROUTERS: Ipv6Addr = link_group(2);
/// `ff02::16`: every router of the link that listens for MLDv2 reports (RFC 3810 section 5.2.14).
pub const ALL_MLD2_ROUTERS: Ipv6Addr = link_group(0x16);

const LINK_LOCAL_BITS: u128 = 0xfe80 << 112;
const SOLICITED_NODE_BITS: u128 = 0xff02_0000_0000_0000_0000_0001_ff00_0000;

const fn link_group(id: u128) -> Ipv6Addr {
    Ipv6Addr::from_bits(0xff02 << 112 | id)
}

/// How far a group reaches: the four bits after `ff` and the flags.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MulticastScope(pub u8);

macro_rules! scopes {
    ($($number:literal $name:ident $word:literal;)*) => {
        #[allow(missing_docs, reason = "the names are those of RFC 4291 section 2.7 and RFC 7346")]
        impl MulticastScope {
            $(pub const $name: Self = Self($number);)*

            /// The scope's word, if it is assigned.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($word),)*
                    _ => None,
                }
            }
        }
    };
}

scopes! {
    1 INTERFACE_LOCAL "interface-local";
    2 LINK_LOCAL "link-local";
    3 REALM_LOCAL "realm-local";
    4 ADMIN_LOCAL "admin-local";
    5 SITE_LOCAL "site-local";
    8 ORGANIZATION_LOCAL "organization-local";
    14 GLOBAL "global";
}

impl fmt::Display for MulticastScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "unknown {}", self.0),
        }
    }
}

/// The scope of a group; `None` for an address that is no multicast (RFC 4291 section 2.7).
#[inline(always)]
pub const fn multicast_scope(addr: Ipv6Addr) -> Option<MulticastScope> {
    if !addr.is_multicast() {
        return None;
    }
    Some(MulticastScope((addr.to_bits() >> 112) as u8 & 0xf))
}

/// A unicast address of the link only, in `fe80::/10` (RFC 4291 section 2.4).
#[inline(always)]
pub const fn is_link_local(addr: Ipv6Addr) -> bool {
    (addr.to_bits() ^ LINK_LOCAL_BITS) >> 118 == 0
}

/// A packet to this address never leaves the link or the node: link-local unicast, the loopback, or
/// a group of scope 0 to 2. RFC 4291 sections 2.5.3, 2.5.6 and 2.7: a router does not forward it.
#[inline]
pub const fn stays_on_link(addr: Ipv6Addr) -> bool {
    match multicast_scope(addr) {
        // Scope 0 is reserved and is treated as if it were interface-local.
        Some(scope) => scope.0 <= MulticastScope::LINK_LOCAL.0,
        None => is_link_local(addr) || addr.is_loopback(),
    }
}

/// The solicited-node group of a unicast address: `ff02::1:ff00:0/104` and its low 24 bits (RFC 4291
/// section 2.7.1).
#[inline(always)]
pub const fn solicited_node(addr: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(SOLICITED_NODE_BITS | addr.to_bits() & 0xff_ffff)
}

/// `addr` is some solicited-node group.
#[inline(always)]
pub const fn is_solicited_node(addr: Ipv6Addr) -> bool {
    (addr.to_bits() ^ SOLICITED_NODE_BITS) >> 24 == 0
}

/// The modified EUI-64 interface identifier of a MAC address: `ff:fe` in its middle, the
/// universal/local bit inverted (RFC 4291 appendix A, RFC 2464 section 4).
pub const fn interface_id(mac: MacAddress) -> u64 {
    let mac = mac.to_u64();
    (mac >> 24 << 40 | 0xff_fe00_0000 | mac & 0xff_ffff) ^ 0x0200_0000_0000_0000
}

/// The link-local address an Ethernet interface gives itself (RFC 2464 section 5).
pub const fn link_local_of(mac: MacAddress) -> Ipv6Addr {
    Ipv6Addr::from_bits(LINK_LOCAL_BITS | interface_id(mac) as u128)
}

/// The address that stateless autoconfiguration makes of an advertised prefix; `None` when prefix
/// and identifier together have not 128 bits (RFC 4862 section 5.5.3 (d)).
pub const fn autoconfigured(prefix: &Ip6Prefix, interface_id: u64) -> Option<Ipv6Addr> {
    if prefix.len() != 64 {
        return None;
    }
    Some(Ipv6Addr::from_bits(prefix.network().to_bits() | interface_id as u128))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip6(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    #[test]
    fn link_local_is_ten_bits() {
        for (text, want) in [("fe80::", true), ("febf:ffff::1", true), ("fec0::", false), ("fe7f::", false)] {
            assert_eq!(is_link_local(ip6(text)), want, "{text}");
            assert_eq!(is_link_local(ip6(text)), ip6(text).is_unicast_link_local());
        }
    }

    #[test]
    fn the_link_keeps_its_own_addresses() {
        for text in ["fe80::1", "::1", "ff00::1", "ff01::1", "ff02::1", "ff32::1"] {
            assert!(stays_on_link(ip6(text)), "{text}");
        }
        for text in ["2001:db8::1", "fc00::1", "ff05::2", "ff0e::1", "ff13::"] {
            assert!(!stays_on_link(ip6(text)), "{text}");
        }
    }

    #[test]
    fn scopes_are_read_past_the_flags() {
        assert_eq!(multicast_scope(ip6("ff3e::1")), Some(MulticastScope::GLOBAL));
        assert_eq!(multicast_scope(ip6("fe80::1")), None);
        assert_eq!(multicast_scope(ip6("ff02::1")).unwrap().to_string(), "link-local");
        assert_eq!(multicast_scope(ip6("ff07::1")).unwrap().to_string(), "unknown 7");
    }

    #[test]
    fn the_solicited_node_group_is_that_of_the_rfc() {
        // RFC 4291 2.7.1: the example of the text.
        assert_eq!(solicited_node(ip6("4037::1:800:200e:8c6c")), ip6("ff02::1:ff0e:8c6c"));
        assert!(is_solicited_node(ip6("ff02::1:ff0e:8c6c")) && !is_solicited_node(ip6("ff02::1:fe0e:8c6c")));
        assert_eq!([ALL_NODES, ALL_ROUTERS, ALL_MLD2_ROUTERS], ["ff02::1", "ff02::2", "ff02::16"].map(ip6));
    }

    #[test]
    fn an_interface_makes_its_address_of_its_mac() {
        // RFC 2464 4: the example of the text.
        let mac = MacAddress([0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde]);
        assert_eq!(link_local_of(mac), ip6("fe80::3656:78ff:fe9a:bcde"));
        let id = interface_id(mac);
        let prefix = |text: &str| text.parse::<Ip6Prefix>().unwrap();
        assert_eq!(autoconfigured(&prefix("2001:db8::9/64"), id), Some(ip6("2001:db8::3656:78ff:fe9a:bcde")));
        assert_eq!(autoconfigured(&prefix("2001:db8::/63"), id), None);
    }
}
