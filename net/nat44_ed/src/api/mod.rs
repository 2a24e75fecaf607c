//! Messages: `nat44_ed.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

mod independent;
mod interface;
mod mapping;
mod pool;
mod session;
mod settings;

use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_message::Retval;
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder};
pub use shoal_nat::NatConfigFlags;

use crate::Nat44;
pub use independent::API as OWN_API;
use shoal_nat44::mapping::TwiceNat;

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "nat44_ed",
    folder: Folder::Plugins,
    version: "5.5.0",
    messages: &[
        ApiMessage::request::<settings::Nat44EdPluginEnableDisable>(),
        ApiMessage::request::<settings::Nat44ForwardingEnableDisable>(),
        ApiMessage::request::<settings::NatSetTimeouts>(),
        ApiMessage::request::<settings::Nat44SetSessionLimit>(),
        ApiMessage::request::<settings::NatIpfixEnableDisable>(),
        ApiMessage::request::<settings::Nat44ShowRunningConfig>(),
        ApiMessage::sent::<settings::Nat44ShowRunningConfigReply>(),
        ApiMessage::request::<settings::NatSetWorkers>(),
        ApiMessage::dump::<settings::NatWorkerDump>(),
        ApiMessage::sent::<settings::NatWorkerDetails>(),
        ApiMessage::request::<settings::Nat44EdAddDelVrfTable>(),
        ApiMessage::request::<settings::Nat44EdAddDelVrfRoute>(),
        ApiMessage::dump::<settings::Nat44EdVrfTablesDump>(),
        ApiMessage::sent::<settings::Nat44EdVrfTablesDetails>(),
        ApiMessage::dump::<settings::Nat44EdVrfTablesV2Dump>(),
        ApiMessage::sent::<settings::Nat44EdVrfTablesV2Details>(),
        ApiMessage::request::<settings::NatSetMssClamping>(),
        ApiMessage::request::<settings::NatGetMssClamping>(),
        ApiMessage::sent::<settings::NatGetMssClampingReply>(),
        ApiMessage::request::<pool::Nat44AddDelInterfaceAddr>(),
        ApiMessage::dump::<pool::Nat44InterfaceAddrDump>(),
        ApiMessage::sent::<pool::Nat44InterfaceAddrDetails>(),
        ApiMessage::request::<pool::Nat44AddDelAddressRange>(),
        ApiMessage::dump::<pool::Nat44AddressDump>(),
        ApiMessage::sent::<pool::Nat44AddressDetails>(),
        ApiMessage::request::<interface::Nat44InterfaceAddDelFeature>(),
        ApiMessage::dump::<interface::Nat44InterfaceDump>(),
        ApiMessage::sent::<interface::Nat44InterfaceDetails>(),
        ApiMessage::request::<interface::Nat44EdAddDelOutputInterface>(),
        ApiMessage::get::<interface::Nat44EdOutputInterfaceGet>(),
        ApiMessage::sent::<interface::Nat44EdOutputInterfaceGetReply>(),
        ApiMessage::sent::<interface::Nat44EdOutputInterfaceDetails>(),
        ApiMessage::request::<mapping::Nat44AddDelStaticMapping>(),
        ApiMessage::request::<mapping::Nat44AddDelStaticMappingV2>(),
        ApiMessage::dump::<mapping::Nat44StaticMappingDump>(),
        ApiMessage::sent::<mapping::Nat44StaticMappingDetails>(),
        ApiMessage::request::<mapping::Nat44AddDelIdentityMapping>(),
        ApiMessage::dump::<mapping::Nat44IdentityMappingDump>(),
        ApiMessage::sent::<mapping::Nat44IdentityMappingDetails>(),
        ApiMessage::request::<mapping::Nat44AddDelLbStaticMapping>(),
        ApiMessage::request::<mapping::Nat44LbStaticMappingAddDelLocal>(),
        ApiMessage::dump::<mapping::Nat44LbStaticMappingDump>(),
        ApiMessage::sent::<mapping::Nat44LbStaticMappingDetails>(),
        ApiMessage::request::<session::Nat44DelSession>(),
        ApiMessage::dump::<session::Nat44UserDump>(),
        ApiMessage::sent::<session::Nat44UserDetails>(),
        ApiMessage::dump::<session::Nat44UserSessionDump>(),
        ApiMessage::sent::<session::Nat44UserSessionDetails>(),
        ApiMessage::dump::<session::Nat44UserSessionV2Dump>(),
        ApiMessage::sent::<session::Nat44UserSessionV2Details>(),
        ApiMessage::dump::<session::Nat44UserSessionV3Dump>(),
        ApiMessage::sent::<session::Nat44UserSessionV3Details>(),
    ],
};

const TWICE_NAT: u8 = NatConfigFlags::TWICE_NAT;
const SELF_TWICE_NAT: u8 = NatConfigFlags::SELF_TWICE_NAT;
const OUT2IN_ONLY: u8 = NatConfigFlags::OUT2IN_ONLY;
const ADDR_ONLY: u8 = NatConfigFlags::ADDR_ONLY;
const OUTSIDE: u8 = NatConfigFlags::OUTSIDE;
const INSIDE: u8 = NatConfigFlags::INSIDE;
const STATIC: u8 = NatConfigFlags::STATIC;
const EXT_HOST_VALID: u8 = NatConfigFlags::EXT_HOST_VALID;

/// The kind of twice-NAT that flags ask for.
fn twice(flags: NatConfigFlags) -> TwiceNat {
    match (flags.has(TWICE_NAT), flags.has(SELF_TWICE_NAT)) {
        (true, _) => TwiceNat::Always,
        (_, true) => TwiceNat::OfItself,
        _ => TwiceNat::No,
    }
}

/// The flag of a kind of twice-NAT.
fn of_twice(twice: TwiceNat) -> u8 {
    match twice {
        TwiceNat::No => 0,
        TwiceNat::Always => TWICE_NAT,
        TwiceNat::OfItself => SELF_TWICE_NAT,
    }
}

/// A VRF, or none.
fn vrf(number: u32) -> Option<u32> {
    (number != u32::MAX).then_some(number)
}

fn nat(call: &Call) -> Result<Rc<Nat44>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

/// What a dump has while NAT is on, and nothing otherwise.
fn all<T>(call: &Call, list: impl FnOnce(&Nat44) -> Vec<T>) -> std::vec::IntoIter<T> {
    nat(call).map(|nat| list(&nat)).unwrap_or_default().into_iter()
}

/// An address as messages have it.
fn ip(address: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(address)
}
