//! Messages of the binary API: IPv6 without addresses of its own, and link-local addresses. Those about both families
//! are in `net/ip_interface`.

use std::net::Ipv6Addr;

use shoal_interface::{Interfaces, SwIfIndex};
use shoal_message::{InterfaceIndex, Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};

use crate::Ip6;

/// Messages that VPP has in `ip.api`.
pub static IP: ApiPart = ApiPart {
    file: "ip",
    folder: Folder::Core,
    version: "3.2.0",
    messages: &[
        ApiMessage::request::<SwInterfaceIp6EnableDisable>(),
        ApiMessage::request::<SwInterfaceIp6SetLinkLocalAddress>(),
        ApiMessage::request::<SwInterfaceIp6GetLinkLocalAddress>(),
        ApiMessage::sent::<SwInterfaceIp6GetLinkLocalAddressReply>(),
    ],
};

/// Lets IPv6 run on an interface even if it has no address, or only if it has one.
#[derive(Message)]
#[message(request, name = "sw_interface_ip6_enable_disable")]
pub struct SwInterfaceIp6EnableDisable {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Whether it runs.
    pub enable: bool,
}

/// Gives an interface a link-local address in place of the one it has.
#[derive(Message)]
#[message(request, name = "sw_interface_ip6_set_link_local_address")]
pub struct SwInterfaceIp6SetLinkLocalAddress {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The address.
    pub ip: Ipv6Addr,
}

/// Asks for the link-local address of an interface.
#[derive(Message)]
#[message(
    request,
    name = "sw_interface_ip6_get_link_local_address",
    reply = SwInterfaceIp6GetLinkLocalAddressReply
)]
pub struct SwInterfaceIp6GetLinkLocalAddress {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// The link-local address of an interface.
#[derive(Message)]
#[message(reply, name = "sw_interface_ip6_get_link_local_address_reply")]
pub struct SwInterfaceIp6GetLinkLocalAddressReply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The address.
    pub ip: Ipv6Addr,
}

fn ip6(call: &Call) -> Result<std::rc::Rc<Ip6>, Retval> {
    call.get::<Ip6>().map_err(|_| Retval::UNSPECIFIED)
}

/// Whether there is such an interface.
fn known(call: &Call, interface: SwIfIndex) -> Result<(), Retval> {
    let interfaces = call.get::<Interfaces>().map_err(|_| Retval::UNSPECIFIED)?;
    interfaces.data(interface).map(drop).map_err(|_| Retval::INVALID_SW_IF_INDEX)
}

impl Request for SwInterfaceIp6EnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (ip6, interface) = (ip6(call)?, SwIfIndex(self.sw_if_index.0));
        known(call, interface)?;
        let on = ip6.on(interface);
        if self.enable && on.explicit {
            return Err(Retval::VALUE_EXIST);
        }
        if !self.enable && !on.enabled() {
            return Err(Retval::IP6_NOT_ENABLED);
        }
        ip6.enable(interface, self.enable).map_err(Retval::from)
    }
}

impl Request for SwInterfaceIp6SetLinkLocalAddress {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let interface = SwIfIndex(self.sw_if_index.0);
        ip6(call)?.set_link_local(interface, self.ip).map_err(Retval::from)
    }
}

impl Request for SwInterfaceIp6GetLinkLocalAddress {
    fn handle(self, call: &Call) -> Result<SwInterfaceIp6GetLinkLocalAddressReply, Retval> {
        let (ip6, interface) = (ip6(call)?, SwIfIndex(self.sw_if_index.0));
        known(call, interface)?;
        let ip = ip6.link_local(interface).ok_or(Retval::IP6_NOT_ENABLED)?;
        Ok(SwInterfaceIp6GetLinkLocalAddressReply { retval: 0, ip })
    }
}
