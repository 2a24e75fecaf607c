//! `create_loopback`, `create_loopback_instance`, `delete_loopback`.

use shoal_message::{InterfaceIndex, MacAddress, Message, Retval};
use shoal_module::api::{Call, Request};

use super::interfaces;
use crate::{InterfaceError, SwIfIndex};

/// Creates a loopback with the first free number.
#[derive(Message)]
#[message(request, reply = CreateLoopbackReply)]
pub struct CreateLoopback {
    /// Its MAC address; zero for one of its own.
    pub mac_address: MacAddress,
}

/// The new loopback.
#[derive(Message)]
#[message(reply)]
pub struct CreateLoopbackReply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// Creates a loopback, with a given number if one is given.
#[derive(Message)]
#[message(request, reply = CreateLoopbackInstanceReply)]
pub struct CreateLoopbackInstance {
    /// Its MAC address; zero for one of its own.
    pub mac_address: MacAddress,
    /// Whether a number is given.
    pub is_specified: bool,
    /// The number in its name.
    pub user_instance: u32,
}

/// The new loopback.
#[derive(Message)]
#[message(reply)]
pub struct CreateLoopbackInstanceReply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

fn create(call: &Call, mac: MacAddress, instance: Option<u32>) -> Result<InterfaceIndex, Retval> {
    let mac = Some(shoal_wire::MacAddress(mac.0)).filter(|mac| !mac.is_zero());
    let created = interfaces(call)?.create_loopback(mac, instance).map_err(|e| match e {
        // VPP's word for a number that cannot be had.
        InterfaceError::Exists(_) | InterfaceError::Range { .. } => Retval::INVALID_REGISTRATION,
        InterfaceError::NotPossible(..) => Retval::INVALID_VALUE,
        e => e.into(),
    });
    created.map(|index| InterfaceIndex(index.0))
}

impl Request for CreateLoopback {
    fn handle(self, call: &Call) -> Result<CreateLoopbackReply, Retval> {
        let sw_if_index = create(call, self.mac_address, None)?;
        Ok(CreateLoopbackReply { retval: 0, sw_if_index })
    }
}

impl Request for CreateLoopbackInstance {
    fn handle(self, call: &Call) -> Result<CreateLoopbackInstanceReply, Retval> {
        let instance = self.is_specified.then_some(self.user_instance);
        let sw_if_index = create(call, self.mac_address, instance)?;
        Ok(CreateLoopbackInstanceReply { retval: 0, sw_if_index })
    }
}

/// Deletes a loopback.
#[derive(Message)]
#[message(request)]
pub struct DeleteLoopback {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

impl Request for DeleteLoopback {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        interfaces(call)?.delete_loopback(SwIfIndex(self.sw_if_index.0)).map_err(|e| match e {
            // VPP takes an interface that is no loopback for none at all.
            InterfaceError::NotPossible(..) => Retval::INVALID_SW_IF_INDEX,
            e => e.into(),
        })
    }
}
