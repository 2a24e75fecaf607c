//! What a device is to do, and the addresses of the test network.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// What a device is to do between its two ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scenario {
    /// How frames get from one port to the other.
    pub forwarding: Forwarding,
    /// The addresses on both sides.
    pub addresses: Addresses,
    /// Routed networks behind each side, 1 to 256 (the third octet, or byte 7 of an IPv6 address).
    pub networks: u16,
    /// More routes that no frame takes, for sweeps over table sizes.
    pub routes: u32,
    /// Workers of the device.
    pub workers: u16,
    /// Largest IP packet of the ports.
    pub mtu: u16,
}

/// How frames get from one port to the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "nat")]
pub enum Forwarding {
    /// IPv4 and IPv6 routing.
    Route,
    /// Each port's frames to the other, unseen.
    CrossConnect,
    /// A learning bridge.
    Bridge,
    /// Routing with source NAT from left to right.
    Snat(Nat),
}

impl Forwarding {
    /// As users write it.
    pub const fn name(&self) -> &'static str {
        match self {
            Forwarding::Route => "route",
            Forwarding::CrossConnect => "cross-connect",
            Forwarding::Bridge => "bridge",
            Forwarding::Snat(_) => "snat",
        }
    }
}

/// Addresses that a NAT hides others behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nat {
    /// First of the pool.
    pub first: Ipv4Addr,
    /// Last of it, included.
    pub last: Ipv4Addr,
}

/// Which IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Family {
    /// IPv4.
    #[serde(rename = "4")]
    Ip4,
    /// IPv6.
    #[serde(rename = "6")]
    Ip6,
}

/// The addresses on both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// Beside the left port.
    pub left: SideAddresses,
    /// Beside the right port.
    pub right: SideAddresses,
}

/// One side's addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideAddresses {
    /// The device's own.
    pub device4: Ipv4Addr,
    /// The tester's.
    pub tester4: Ipv4Addr,
    /// Length of the network that both are in.
    pub length4: u8,
    /// The device's own.
    pub device6: Ipv6Addr,
    /// The tester's.
    pub tester6: Ipv6Addr,
    /// Length of the network that both are in.
    pub length6: u8,
    /// The tester's MAC: the device has it as a static neighbour.
    pub tester_mac: [u8; 6],
    /// More networks that the device reaches through the tester at this side, in words of `ip route`: T-Rex's 16.0.0.0/8.
    pub behind4: Vec<(Ipv4Addr, u8)>,
    /// The same for IPv6.
    pub behind6: Vec<(Ipv6Addr, u8)>,
}

impl Default for Addresses {
    /// RFC 2544's 198.18.0.0/15 and RFC 5180's 2001:2::/48, halved; .1 is the device, .2 the tester.
    fn default() -> Self {
        let side = |octet: u8, half: u16, mac: u8| SideAddresses {
            device4: Ipv4Addr::new(198, octet, 0, 1),
            tester4: Ipv4Addr::new(198, octet, 0, 2),
            length4: 24,
            device6: Ipv6Addr::new(0x2001, 2, 0, half, 0, 0, 0, 1),
            tester6: Ipv6Addr::new(0x2001, 2, 0, half, 0, 0, 0, 2),
            length6: 64,
            tester_mac: [2, 0, 0, 0, 0x5a, mac],
            behind4: Vec::new(),
            behind6: Vec::new(),
        };
        Addresses { left: side(18, 0, 1), right: side(19, 0x8000, 2) }
    }
}
