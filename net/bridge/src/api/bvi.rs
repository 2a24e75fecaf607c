//! `bvi_create`, `bvi_delete`.

use shoal_interface::{InterfaceError, SwIfIndex};
use shoal_message::{InterfaceIndex, MacAddress, Message, Retval};
use shoal_module::api::{Call, Request};

use super::bridges;

/// Creates an interface that can be a bridge domain's routed one.
#[derive(Message)]
#[message(request, reply = BviCreateReply)]
pub struct BviCreate {
    /// Its MAC address; zero for one of its own.
    pub mac: MacAddress,
    /// The number in its name; all bits set for the first free one.
    #[preset(4294967295)]
    pub user_instance: u32,
}

/// The new interface.
#[derive(Message)]
#[message(reply)]
pub struct BviCreateReply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

impl Request for BviCreate {
    fn handle(self, call: &Call) -> Result<BviCreateReply, Retval> {
        let mac = Some(shoal_wire::MacAddress(self.mac.0)).filter(|mac| !mac.is_zero());
        let instance = Some(self.user_instance).filter(|n| *n != u32::MAX);
        let created = bridges(call)?.interfaces.create_bvi(mac, instance).map_err(|e| match e {
            InterfaceError::Exists(_) | InterfaceError::Range { .. } => Retval::INVALID_REGISTRATION,
            InterfaceError::NotPossible(..) => Retval::INVALID_VALUE,
            e => e.into(),
        })?;
        Ok(BviCreateReply { retval: 0, sw_if_index: InterfaceIndex(created.0) })
    }
}

/// Deletes such an interface.
#[derive(Message)]
#[message(request)]
pub struct BviDelete {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

impl Request for BviDelete {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        bridges(call)?.interfaces.delete_bvi(SwIfIndex(self.sw_if_index.0)).map_err(|e| match e {
            InterfaceError::NotPossible(..) => Retval::INVALID_SW_IF_INDEX,
            e => e.into(),
        })
    }
}
