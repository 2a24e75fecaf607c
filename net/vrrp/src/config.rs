//! What is configured of a virtual router.

use std::net::IpAddr;

use shoal_adj::Family;
use shoal_interface::SwIfIndex;
use shoal_wire::MacAddress;

use crate::packet::Version;

/// What a virtual router is known by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VrKey {
    /// The interface.
    pub interface: SwIfIndex,
    /// Its number, the same on all routers: 1 to 255.
    pub vr_id: u8,
    /// The family of its addresses.
    pub family: Family,
}

impl VrKey {
    /// The MAC address of the router that has the addresses (RFC 9568, 7.3).
    pub fn mac(&self) -> MacAddress {
        let family = if self.family == Family::Ip4 { 1 } else { 2 };
        MacAddress([0, 0, 0x5e, 0, family, self.vr_id])
    }
}

/// What is configured of a virtual router.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// What it is known by.
    pub key: VrKey,
    /// How much this router wants the addresses: 1 to 255.
    pub priority: u8,
    /// Hundredths of a second between advertisements.
    pub interval: u16,
    /// Takes the addresses from a router of lower priority.
    pub preempt: bool,
    /// Answers packets to the addresses although they are not its own.
    pub accept: bool,
    /// Advertisements go to peers, not to all routers of the link.
    pub unicast: bool,
    /// Which version it speaks.
    pub version: Version,
    /// The addresses.
    pub addresses: Vec<IpAddr>,
}

impl Config {
    /// VPP's defaults.
    pub const PRIORITY: u8 = 100;
    /// A second.
    pub const INTERVAL: u16 = 100;

    /// As VPP's, without addresses.
    pub fn new(key: VrKey) -> Self {
        Config {
            key,
            priority: Config::PRIORITY,
            interval: Config::INTERVAL,
            preempt: true,
            accept: false,
            unicast: false,
            version: Version::V3,
            addresses: Vec::new(),
        }
    }
}
