//! What can be wrong with a virtual router.

use std::net::IpAddr;

use shoal_adj::Family;

use super::Vrrp;
use crate::config::Config;
use crate::error::VrrpError;
use crate::machine::OWNER;
use crate::packet::{LONGEST_INTERVAL, Version};

/// Addresses of a virtual router: a message counts them in a byte.
const MOST_ADDRESSES: u32 = 255;

/// Addresses are of hosts of a family.
pub(super) fn hosts(family: Family, addresses: &[IpAddr]) -> Result<(), VrrpError> {
    let word = if family == Family::Ip4 { "IPv4" } else { "IPv6" };
    let is_host = |address: &IpAddr| {
        let special = address.is_unspecified() || address.is_multicast() || address.is_loopback();
        Family::of(*address) == family && !special
    };
    match addresses.iter().find(|address| !is_host(address)) {
        Some(other) => Err(VrrpError::Address(*other, word)),
        None => Ok(()),
    }
}

impl Vrrp {
    pub(super) fn check(&self, config: &Config) -> Result<(), VrrpError> {
        let key = config.key;
        self.interfaces.data(key.interface)?;
        let range = |what, value: u8| match value {
            0 => Err(VrrpError::Range { what, value: 0, most: 255 }),
            _ => Ok(()),
        };
        range("a VR ID of", key.vr_id)?;
        range("a priority of", config.priority)?;
        if !(1..=LONGEST_INTERVAL).contains(&config.interval) && config.version == Version::V3 {
            return Err(VrrpError::interval(config.interval));
        }
        let is_seconds = config.interval.is_multiple_of(100) && (100..=25_500).contains(&config.interval);
        if config.version == Version::V2 && (key.family == Family::Ip6 || !is_seconds) {
            return Err(VrrpError::Version(format!("{:?}, interval {}", key.family, config.interval)));
        }
        if config.addresses.is_empty() {
            return Err(VrrpError::NoAddresses);
        }
        if config.addresses.len() > MOST_ADDRESSES as usize {
            let value = config.addresses.len() as u32;
            return Err(VrrpError::Range { what: "a number of addresses of", value, most: MOST_ADDRESSES });
        }
        hosts(key.family, &config.addresses)?;
        let vrs = self.vrs.borrow();
        for entry in vrs.all.values() {
            let other = entry.config.key;
            let taken = entry.config.addresses.iter().find(|address| config.addresses.contains(address));
            if let (true, Some(taken)) = (other != key && other.interface == key.interface, taken) {
                return Err(VrrpError::InUse(*taken, other.vr_id));
            }
        }
        drop(vrs);
        self.check_owner(config)
    }

    /// The router with the highest priority has the addresses as its own.
    pub(super) fn check_owner(&self, config: &Config) -> Result<(), VrrpError> {
        if config.priority != OWNER {
            return Ok(());
        }
        let interface = config.key.interface;
        let (four, six) = (self.ip4.addresses(interface), self.ip6.addresses(interface));
        let has = |address: &IpAddr| match address {
            IpAddr::V4(address) => four.iter().any(|own| own.addr() == *address),
            IpAddr::V6(address) => {
                six.iter().any(|own| own.addr() == *address)
                    || self.ip6.link_local(interface) == Some(*address)
            }
        };
        match config.addresses.iter().find(|address| !has(address)) {
            Some(other) => Err(VrrpError::NotOwned(*other, self.name(interface))),
            None => Ok(()),
        }
    }
}
