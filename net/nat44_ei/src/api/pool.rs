//! Addresses that hosts share.

use std::net::Ipv4Addr;

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval};
use shoal_module::api::{Call, Dump, Request};

use super::{Nat44EiConfigFlags, all, nat, vrf};
use crate::Nat44Ei;

/// Shares a range of addresses, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiAddDelAddressRange {
    pub first_ip_address: Ipv4Addr,
    pub last_ip_address: Ipv4Addr,
    /// The VRF whose hosts share them; all bits set for all.
    pub vrf_id: u32,
    pub is_add: bool,
}

impl Request for Nat44EiAddDelAddressRange {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let nat = nat(call)?;
        let range = (self.first_ip_address, self.last_ip_address);
        Ok(if self.is_add { nat.add_addresses(range, vrf(self.vrf_id)) } else { nat.del_addresses(range) }?)
    }
}

/// Asks for addresses that are shared.
#[derive(Message)]
#[message(request, details = Nat44EiAddressDetails)]
pub struct Nat44EiAddressDump {}

/// An address that is shared.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EiAddressDetails {
    pub ip_address: Ipv4Addr,
    pub vrf_id: u32,
}

impl Dump for Nat44EiAddressDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44EiAddressDetails> + 'static {
        all(call, Nat44Ei::addresses).map(|address| Nat44EiAddressDetails {
            ip_address: address.address,
            vrf_id: address.vrf.unwrap_or(u32::MAX),
        })
    }
}

/// Shares an interface's first address, also when that changes, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiAddDelInterfaceAddr {
    pub is_add: bool,
    pub sw_if_index: InterfaceIndex,
    pub flags: Nat44EiConfigFlags,
}

impl Request for Nat44EiAddDelInterfaceAddr {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (nat, interface) = (nat(call)?, SwIfIndex(self.sw_if_index.0));
        Ok(if self.is_add { nat.follow_interface(interface) } else { nat.unfollow_interface(interface) }?)
    }
}

/// Asks for interfaces whose addresses are shared.
#[derive(Message)]
#[message(request, details = Nat44EiInterfaceAddrDetails)]
pub struct Nat44EiInterfaceAddrDump {}

/// An interface whose address is shared.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EiInterfaceAddrDetails {
    pub sw_if_index: InterfaceIndex,
}

impl Dump for Nat44EiInterfaceAddrDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44EiInterfaceAddrDetails> + 'static {
        all(call, Nat44Ei::followed)
            .map(|interface| Nat44EiInterfaceAddrDetails { sw_if_index: InterfaceIndex(interface.0) })
    }
}
