//! The binary API of IPv4 on interfaces. Messages about both families are in `net/ip_interface`.

use std::rc::Rc;

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};

use crate::Ip4;

/// Messages that VPP has in `interface.api`.
pub static INTERFACE: ApiPart = ApiPart {
    file: "interface",
    folder: Folder::Core,
    version: "3.2.4",
    messages: &[ApiMessage::request::<SwInterfaceSetIpDirectedBroadcast>()],
};

/// Messages that VPP has in `ip.api`.
pub static IP: ApiPart = ApiPart {
    file: "ip",
    folder: Folder::Core,
    version: "3.2.0",
    messages: &[ApiMessage::request::<SwInterfaceIp4EnableDisable>()],
};

fn ip4(call: &Call) -> Result<Rc<Ip4>, Retval> {
    call.get::<Ip4>().map_err(|_| Retval::UNSPECIFIED)
}

/// Lets IPv4 run on an interface even if it has no address, or only if it has one.
#[derive(Message)]
#[message(request, name = "sw_interface_ip4_enable_disable")]
pub struct SwInterfaceIp4EnableDisable {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Whether it runs.
    pub enable: bool,
}

impl Request for SwInterfaceIp4EnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        ip4(call)?.enable(SwIfIndex(self.sw_if_index.0), self.enable).map_err(Retval::from)
    }
}

/// Lets packets for the last address of a connected IPv4 network go to everybody in it, or not.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceSetIpDirectedBroadcast {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Whether they do.
    pub enable: bool,
}

impl Request for SwInterfaceSetIpDirectedBroadcast {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let interface = SwIfIndex(self.sw_if_index.0);
        ip4(call)?.set_directed_broadcast(interface, self.enable).map_err(Retval::from)
    }
}
