//! Address families, and what a link is told that a packet is.

use std::fmt;
use std::net::IpAddr;

use shoal_interface::IfData;
use shoal_wire::EtherType;

/// An address family.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Family {
    /// IPv4.
    Ip4,
    /// IPv6.
    Ip6,
}

impl Family {
    /// Both.
    pub const ALL: [Family; 2] = [Family::Ip4, Family::Ip6];

    /// The family of an address.
    pub const fn of(addr: IpAddr) -> Family {
        if addr.is_ipv4() { Family::Ip4 } else { Family::Ip6 }
    }

    /// VPP's short name: `ip4`, `ip6`.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Ip4 => "ip4",
            Family::Ip6 => "ip6",
        }
    }

    /// VPP's long name: `ipv4`, `ipv6`.
    pub const fn long_name(self) -> &'static str {
        match self {
            Family::Ip4 => "ipv4",
            Family::Ip6 => "ipv6",
        }
    }

    /// The longest prefix length.
    pub const fn max_len(self) -> u8 {
        match self {
            Family::Ip4 => 32,
            Family::Ip6 => 128,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What an adjacency carries. It may differ from the family of the next hop: an IPv4 packet may go via an IPv6
/// neighbour (RFC 8950).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Link {
    /// IPv4 packets.
    Ip4 = 0,
    /// IPv6 packets.
    Ip6 = 1,
}

impl Link {
    /// How many there are.
    pub const COUNT: usize = 2;

    /// What a link-layer header says of such packets.
    pub const fn ether_type(self) -> EtherType {
        match self {
            Link::Ip4 => EtherType::IP4,
            Link::Ip6 => EtherType::IP6,
        }
    }

    /// The longest such packet an interface carries.
    pub fn mtu(self, data: &IfData) -> u16 {
        match self {
            Link::Ip4 => data.ip4_mtu(),
            Link::Ip6 => data.ip6_mtu(),
        }
    }
}

impl From<Family> for Link {
    fn from(family: Family) -> Link {
        match family {
            Family::Ip4 => Link::Ip4,
            Family::Ip6 => Link::Ip6,
        }
    }
}
