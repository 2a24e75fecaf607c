//! Messages: `nat66.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::net::Ipv6Addr;
use std::rc::Rc;

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};

pub use shoal_nat::NatConfigFlags;

use crate::{Mapping, Nat66, Nat66Error, Side};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "nat66",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<Nat66PluginEnableDisable>(),
        ApiMessage::request::<Nat66AddDelInterface>(),
        ApiMessage::dump::<Nat66InterfaceDump>(),
        ApiMessage::sent::<Nat66InterfaceDetails>(),
        ApiMessage::request::<Nat66AddDelStaticMapping>(),
        ApiMessage::dump::<Nat66StaticMappingDump>(),
        ApiMessage::sent::<Nat66StaticMappingDetails>(),
    ],
};

const OUTSIDE: u8 = NatConfigFlags::OUTSIDE;
const INSIDE: u8 = NatConfigFlags::INSIDE;

impl From<Nat66Error> for Retval {
    fn from(error: Nat66Error) -> Self {
        match error {
            Nat66Error::Off => Retval::UNSUPPORTED,
            Nat66Error::AlreadyOn => Retval::FEATURE_ALREADY_ENABLED,
            Nat66Error::AlreadyOff => Retval::FEATURE_ALREADY_DISABLED,
            Nat66Error::InterfaceExists(_) | Nat66Error::MappingExists => Retval::VALUE_EXIST,
            Nat66Error::NoInterface(_) | Nat66Error::NoMapping => Retval::NO_SUCH_ENTRY,
            Nat66Error::Address(_) | Nat66Error::TooMany => Retval::INVALID_VALUE,
            Nat66Error::Fib(error) => shoal_fib::api::retval(&error),
            Nat66Error::Interface(error) => error.into(),
        }
    }
}

fn nat(call: &Call) -> Result<Rc<Nat66>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

/// Switches NAT66 on or off.
#[derive(Message)]
#[message(request)]
pub struct Nat66PluginEnableDisable {
    pub outside_vrf: u32,
    pub enable: bool,
}

impl Request for Nat66PluginEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let nat = nat(call)?;
        Ok(if self.enable { nat.enable(self.outside_vrf) } else { nat.disable() }?)
    }
}

/// Puts an interface on a side, or takes it from there.
#[derive(Message)]
#[message(request)]
pub struct Nat66AddDelInterface {
    pub is_add: bool,
    /// Inside if that bit is set, outside otherwise.
    pub flags: NatConfigFlags,
    pub sw_if_index: InterfaceIndex,
}

impl Request for Nat66AddDelInterface {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let side = if self.flags.0 & INSIDE != 0 { Side::Inside } else { Side::Outside };
        Ok(nat(call)?.set_side(SwIfIndex(self.sw_if_index.0), side, self.is_add)?)
    }
}

/// Asks for interfaces on sides.
#[derive(Message)]
#[message(request, details = Nat66InterfaceDetails)]
pub struct Nat66InterfaceDump {}

/// An interface on a side.
#[derive(Message)]
#[message(reply)]
pub struct Nat66InterfaceDetails {
    pub flags: NatConfigFlags,
    pub sw_if_index: InterfaceIndex,
}

impl Dump for Nat66InterfaceDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat66InterfaceDetails> + 'static {
        let all = nat(call).map(|nat| nat.sides()).unwrap_or_default();
        all.into_iter().map(|(interface, side)| {
            let flags = NatConfigFlags(if side == Side::Inside { INSIDE } else { OUTSIDE });
            Nat66InterfaceDetails { flags, sw_if_index: InterfaceIndex(interface.0) }
        })
    }
}

/// Has a host be known outside by another address, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct Nat66AddDelStaticMapping {
    pub is_add: bool,
    pub local_ip_address: Ipv6Addr,
    pub external_ip_address: Ipv6Addr,
    /// The host's.
    pub vrf_id: u32,
}

impl Request for Nat66AddDelStaticMapping {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (nat, local, external) = (nat(call)?, self.local_ip_address, self.external_ip_address);
        let done = if self.is_add {
            nat.add_mapping(local, external, self.vrf_id)
        } else {
            nat.del_mapping(local, external, self.vrf_id)
        };
        Ok(done?)
    }
}

/// Asks for mappings.
#[derive(Message)]
#[message(request, details = Nat66StaticMappingDetails)]
pub struct Nat66StaticMappingDump {}

/// A mapping, and what was translated by it.
#[derive(Message)]
#[message(reply)]
pub struct Nat66StaticMappingDetails {
    pub local_ip_address: Ipv6Addr,
    pub external_ip_address: Ipv6Addr,
    pub vrf_id: u32,
    pub total_bytes: u64,
    pub total_pkts: u64,
}

impl Dump for Nat66StaticMappingDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat66StaticMappingDetails> + 'static {
        let all = nat(call).map(|nat| nat.mappings()).unwrap_or_default();
        all.into_iter().map(|Mapping { local, external, vrf, packets, bytes }| Nat66StaticMappingDetails {
            local_ip_address: local,
            external_ip_address: external,
            vrf_id: vrf,
            total_bytes: bytes,
            total_pkts: packets,
        })
    }
}
