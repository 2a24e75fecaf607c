//! Messages: `nat44_ei.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

mod ha;
pub mod interface;
mod mapping;
pub mod own;
mod pool;
mod session;
pub mod settings;

pub(crate) use ha::resynced;

use std::rc::Rc;

use shoal_message::{Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder};

use crate::Nat44Ei;

/// What a mapping, an interface or a session is, and how NAT was switched on.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("NAT44_EI_NONE", 0)]
#[entry("NAT44_EI_STATIC_MAPPING_ONLY", 1)]
#[entry("NAT44_EI_CONNECTION_TRACKING", 2)]
#[entry("NAT44_EI_OUT2IN_DPO", 4)]
#[entry("NAT44_EI_ADDR_ONLY_MAPPING", 8)]
#[entry("NAT44_EI_IF_INSIDE", 16)]
#[entry("NAT44_EI_IF_OUTSIDE", 32)]
#[entry("NAT44_EI_STATIC_MAPPING", 64)]
pub struct Nat44EiConfigFlags(pub u8);

impl Nat44EiConfigFlags {
    const STATIC_MAPPING_ONLY: u8 = 1;
    const CONNECTION_TRACKING: u8 = 2;
    const OUT2IN_DPO: u8 = 4;
    const ADDR_ONLY: u8 = 8;
    const INSIDE: u8 = 16;
    const OUTSIDE: u8 = 32;
    const STATIC: u8 = 64;

    const fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }
}

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "nat44_ei",
    folder: Folder::Plugins,
    version: "1.1.1",
    messages: &[
        ApiMessage::request::<settings::Nat44EiPluginEnableDisable>(),
        ApiMessage::request::<settings::Nat44EiShowRunningConfig>(),
        ApiMessage::sent::<settings::Nat44EiShowRunningConfigReply>(),
        ApiMessage::request::<settings::Nat44EiSetLogLevel>(),
        ApiMessage::request::<settings::Nat44EiSetWorkers>(),
        ApiMessage::dump::<settings::Nat44EiWorkerDump>(),
        ApiMessage::sent::<settings::Nat44EiWorkerDetails>(),
        ApiMessage::request::<settings::Nat44EiIpfixEnableDisable>(),
        ApiMessage::request::<settings::Nat44EiSetTimeouts>(),
        ApiMessage::request::<settings::Nat44EiSetAddrAndPortAllocAlg>(),
        ApiMessage::request::<settings::Nat44EiGetAddrAndPortAllocAlg>(),
        ApiMessage::sent::<settings::Nat44EiGetAddrAndPortAllocAlgReply>(),
        ApiMessage::request::<settings::Nat44EiSetMssClamping>(),
        ApiMessage::request::<settings::Nat44EiGetMssClamping>(),
        ApiMessage::sent::<settings::Nat44EiGetMssClampingReply>(),
        ApiMessage::request::<settings::Nat44EiForwardingEnableDisable>(),
        ApiMessage::request::<settings::Nat44EiSetFqOptions>(),
        ApiMessage::request::<settings::Nat44EiShowFqOptions>(),
        ApiMessage::sent::<settings::Nat44EiShowFqOptionsReply>(),
        ApiMessage::request::<ha::Nat44EiHaSetListener>(),
        ApiMessage::request::<ha::Nat44EiHaSetFailover>(),
        ApiMessage::request::<ha::Nat44EiHaGetListener>(),
        ApiMessage::sent::<ha::Nat44EiHaGetListenerReply>(),
        ApiMessage::request::<ha::Nat44EiHaGetFailover>(),
        ApiMessage::sent::<ha::Nat44EiHaGetFailoverReply>(),
        ApiMessage::request::<ha::Nat44EiHaFlush>(),
        ApiMessage::request::<ha::Nat44EiHaResync>(),
        ApiMessage::sent::<ha::Nat44EiHaResyncCompletedEvent>(),
        ApiMessage::request::<pool::Nat44EiAddDelAddressRange>(),
        ApiMessage::dump::<pool::Nat44EiAddressDump>(),
        ApiMessage::sent::<pool::Nat44EiAddressDetails>(),
        ApiMessage::request::<pool::Nat44EiAddDelInterfaceAddr>(),
        ApiMessage::dump::<pool::Nat44EiInterfaceAddrDump>(),
        ApiMessage::sent::<pool::Nat44EiInterfaceAddrDetails>(),
        ApiMessage::request::<interface::Nat44EiInterfaceAddDelFeature>(),
        ApiMessage::dump::<interface::Nat44EiInterfaceDump>(),
        ApiMessage::sent::<interface::Nat44EiInterfaceDetails>(),
        ApiMessage::request::<interface::Nat44EiInterfaceAddDelOutputFeature>(),
        ApiMessage::dump::<interface::Nat44EiInterfaceOutputFeatureDump>(),
        ApiMessage::sent::<interface::Nat44EiInterfaceOutputFeatureDetails>(),
        ApiMessage::request::<interface::Nat44EiAddDelOutputInterface>(),
        ApiMessage::get::<interface::Nat44EiOutputInterfaceGet>(),
        ApiMessage::sent::<interface::Nat44EiOutputInterfaceGetReply>(),
        ApiMessage::sent::<interface::Nat44EiOutputInterfaceDetails>(),
        ApiMessage::request::<mapping::Nat44EiAddDelStaticMapping>(),
        ApiMessage::dump::<mapping::Nat44EiStaticMappingDump>(),
        ApiMessage::sent::<mapping::Nat44EiStaticMappingDetails>(),
        ApiMessage::request::<mapping::Nat44EiAddDelIdentityMapping>(),
        ApiMessage::dump::<mapping::Nat44EiIdentityMappingDump>(),
        ApiMessage::sent::<mapping::Nat44EiIdentityMappingDetails>(),
        ApiMessage::request::<session::Nat44EiDelSession>(),
        ApiMessage::request::<session::Nat44EiDelUser>(),
        ApiMessage::dump::<session::Nat44EiUserDump>(),
        ApiMessage::sent::<session::Nat44EiUserDetails>(),
        ApiMessage::dump::<session::Nat44EiUserSessionDump>(),
        ApiMessage::sent::<session::Nat44EiUserSessionDetails>(),
        ApiMessage::dump::<session::Nat44EiUserSessionV2Dump>(),
        ApiMessage::sent::<session::Nat44EiUserSessionV2Details>(),
    ],
};

/// A VRF, or none.
fn vrf(number: u32) -> Option<u32> {
    (number != u32::MAX).then_some(number)
}

fn nat(call: &Call) -> Result<Rc<Nat44Ei>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

/// What a dump has while NAT is on, and nothing otherwise.
fn all<T>(call: &Call, list: impl FnOnce(&Nat44Ei) -> Vec<T>) -> std::vec::IntoIter<T> {
    nat(call).map(|nat| list(&nat)).unwrap_or_default().into_iter()
}
