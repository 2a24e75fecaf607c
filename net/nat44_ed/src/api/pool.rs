//! Addresses that hosts share.

use std::net::Ipv4Addr;

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval};
use shoal_module::api::{Call, Dump, Request};

use super::{NatConfigFlags, TWICE_NAT, all, nat, vrf};
use crate::{OfInterface, Purpose};

fn purpose(flags: NatConfigFlags) -> Purpose {
    if flags.has(TWICE_NAT) { Purpose::Twice } else { Purpose::Pool }
}

fn flags(purpose: Purpose) -> NatConfigFlags {
    NatConfigFlags(if purpose == Purpose::Twice { TWICE_NAT } else { 0 })
}

/// Shares an interface's first address, also when that changes, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct Nat44AddDelInterfaceAddr {
    pub is_add: bool,
    pub sw_if_index: InterfaceIndex,
    pub flags: NatConfigFlags,
}

impl Request for Nat44AddDelInterfaceAddr {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let nat = nat(call)?;
        let of = OfInterface { interface: SwIfIndex(self.sw_if_index.0), purpose: purpose(self.flags) };
        Ok(if self.is_add { nat.follow_interface(of) } else { nat.unfollow_interface(of) }?)
    }
}

/// Asks for interfaces whose addresses are shared.
#[derive(Message)]
#[message(request, details = Nat44InterfaceAddrDetails)]
pub struct Nat44InterfaceAddrDump {}

/// An interface whose address is shared.
#[derive(Message)]
#[message(reply)]
pub struct Nat44InterfaceAddrDetails {
    pub sw_if_index: InterfaceIndex,
    pub flags: NatConfigFlags,
}

impl Dump for Nat44InterfaceAddrDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44InterfaceAddrDetails> + 'static {
        all(call, super::super::control::Nat44::followed).map(|of| Nat44InterfaceAddrDetails {
            sw_if_index: InterfaceIndex(of.interface.0),
            flags: flags(of.purpose),
        })
    }
}

/// Shares a range of addresses, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct Nat44AddDelAddressRange {
    pub first_ip_address: Ipv4Addr,
    pub last_ip_address: Ipv4Addr,
    /// The VRF whose hosts share them; all bits set for all.
    pub vrf_id: u32,
    pub is_add: bool,
    pub flags: NatConfigFlags,
}

impl Request for Nat44AddDelAddressRange {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let nat = nat(call)?;
        let range = (self.first_ip_address, self.last_ip_address);
        let purpose = purpose(self.flags);
        Ok(if self.is_add {
            nat.add_addresses(range, purpose, vrf(self.vrf_id))
        } else {
            nat.del_addresses(range, purpose)
        }?)
    }
}

/// Asks for addresses that are shared.
#[derive(Message)]
#[message(request, details = Nat44AddressDetails)]
pub struct Nat44AddressDump {}

/// An address that is shared.
#[derive(Message)]
#[message(reply)]
pub struct Nat44AddressDetails {
    pub ip_address: Ipv4Addr,
    pub flags: NatConfigFlags,
    pub vrf_id: u32,
}

impl Dump for Nat44AddressDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44AddressDetails> + 'static {
        all(call, super::super::control::Nat44::addresses).map(|address| Nat44AddressDetails {
            ip_address: address.address,
            flags: flags(address.purpose),
            vrf_id: address.vrf.unwrap_or(u32::MAX),
        })
    }
}
