//! `sw_interface_set_mac_address`, `sw_interface_get_mac_address`, `sw_interface_add_del_mac_address`.

use shoal_message::{InterfaceIndex, MacAddress, Message, Retval};
use shoal_module::api::{Call, Request};

use super::interfaces;
use crate::SwIfIndex;

/// Gives an interface another MAC address besides its own, or takes it away.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceAddDelMacAddress {
    /// The interface.
    pub sw_if_index: u32,
    /// The address.
    pub addr: MacAddress,
    /// Whether it is given.
    pub is_add: u8,
}

impl Request for SwInterfaceAddDelMacAddress {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (interfaces, index) = (interfaces(call)?, SwIfIndex(self.sw_if_index));
        let mac = shoal_wire::MacAddress(self.addr.0);
        Ok(if self.is_add != 0 { interfaces.add_mac(index, mac) } else { interfaces.del_mac(index, mac) }?)
    }
}

/// Sets the MAC address of an interface.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceSetMacAddress {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The address of one station.
    pub mac_address: MacAddress,
}

impl Request for SwInterfaceSetMacAddress {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let mac = shoal_wire::MacAddress(self.mac_address.0);
        Ok(interfaces(call)?.set_mac(SwIfIndex(self.sw_if_index.0), mac)?)
    }
}

/// Asks for the MAC address of an interface.
#[derive(Message)]
#[message(request, reply = SwInterfaceGetMacAddressReply)]
pub struct SwInterfaceGetMacAddress {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// The MAC address of an interface.
#[derive(Message)]
#[message(reply)]
pub struct SwInterfaceGetMacAddressReply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The address; zero if its packets have no Ethernet header.
    pub mac_address: MacAddress,
}

impl Request for SwInterfaceGetMacAddress {
    fn handle(self, call: &Call) -> Result<SwInterfaceGetMacAddressReply, Retval> {
        let data = interfaces(call)?.data(SwIfIndex(self.sw_if_index.0))?;
        Ok(SwInterfaceGetMacAddressReply { retval: 0, mac_address: MacAddress(data.mac().0) })
    }
}
