//! VPP's `lacp.api`.

use shoal_interface::Interfaces;
use shoal_message::{InterfaceIndex, MacAddress, Message, Text};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder};

use crate::machine::{Mux, Periodic, Rx};
use crate::{Lacp, Look};

/// The messages.
pub static LACP: ApiPart = ApiPart {
    file: "lacp",
    folder: Folder::Plugins,
    version: "2.0.0",
    messages: &[ApiMessage::dump::<SwInterfaceLacpDump>(), ApiMessage::sent::<SwInterfaceLacpDetails>()],
};

/// Asks for all ports that speak LACP.
#[derive(Message)]
#[message(request, details = SwInterfaceLacpDetails)]
pub struct SwInterfaceLacpDump {}

/// A port: its state machines, and what both ends say.
#[derive(Message)]
#[message(reply)]
pub struct SwInterfaceLacpDetails {
    pub sw_if_index: InterfaceIndex,
    pub interface_name: Text<64>,
    /// 1 disabled, 2 expired, 4 defaulted, 5 current.
    pub rx_state: u32,
    /// 0: it transmits.
    pub tx_state: u32,
    /// 0 detached, 1 waiting, 2 attached, 3 collecting and distributing.
    pub mux_state: u32,
    /// 0 never, 1 each second, 2 each half minute.
    pub ptx_state: u32,
    pub bond_interface_name: Text<64>,
    pub actor_system_priority: u16,
    pub actor_system: MacAddress,
    pub actor_key: u16,
    pub actor_port_priority: u16,
    pub actor_port_number: u16,
    pub actor_state: u8,
    pub partner_system_priority: u16,
    pub partner_system: MacAddress,
    pub partner_key: u16,
    pub partner_port_priority: u16,
    pub partner_port_number: u16,
    pub partner_state: u8,
}

fn details(look: &Look, interfaces: &Interfaces) -> SwInterfaceLacpDetails {
    let (actor, partner) = (look.port.actor, look.port.partner);
    SwInterfaceLacpDetails {
        sw_if_index: InterfaceIndex(look.index.0),
        interface_name: interfaces.name(look.index).unwrap_or_default().as_str().into(),
        rx_state: match look.port.rx {
            Rx::PortDisabled => 1,
            Rx::Expired => 2,
            Rx::Defaulted => 4,
            Rx::Current => 5,
        },
        tx_state: 0,
        mux_state: match look.port.mux {
            Mux::Detached => 0,
            Mux::Waiting => 1,
            Mux::Attached => 2,
            Mux::CollectingDistributing => 3,
        },
        ptx_state: match look.port.periodic {
            Periodic::No => 0,
            Periodic::Fast => 1,
            Periodic::Slow => 2,
        },
        bond_interface_name: interfaces.name(look.bond).unwrap_or_default().as_str().into(),
        actor_system_priority: actor.system_priority,
        actor_system: MacAddress(actor.system),
        actor_key: actor.key,
        actor_port_priority: actor.port_priority,
        actor_port_number: actor.port,
        actor_state: actor.state.0,
        partner_system_priority: partner.system_priority,
        partner_system: MacAddress(partner.system),
        partner_key: partner.key,
        partner_port_priority: partner.port_priority,
        partner_port_number: partner.port,
        partner_state: partner.state.0,
    }
}

impl Dump for SwInterfaceLacpDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = SwInterfaceLacpDetails> + 'static {
        let parts = call.get::<Lacp>().ok().zip(call.get::<Interfaces>().ok());
        let all = parts.iter().flat_map(|(lacp, _)| lacp.list()).collect::<Vec<_>>();
        all.into_iter()
            .filter_map(move |look| parts.as_ref().map(|(_, interfaces)| details(&look, interfaces)))
    }
}
