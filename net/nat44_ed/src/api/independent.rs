//! Messages that VPP does not have: shared addresses whose mappings do not depend on the remote host. Their names begin with `shoal_`.

use std::net::Ipv4Addr;

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};

use super::{all, nat};
use crate::SharedAddress;
use crate::bindings::Filtering;

/// Messages of Shoal alone.
pub static API: ApiPart = ApiPart {
    file: "shoal_nat44",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<ShoalNat44IndependentMappingSet>(),
        ApiMessage::dump::<ShoalNat44IndependentMappingDump>(),
        ApiMessage::sent::<ShoalNat44IndependentMappingDetails>(),
    ],
};

/// The number of a filtering in messages: 0 endpoint independent, 1 address dependent, 2 address and port dependent.
fn number(filtering: Filtering) -> u8 {
    Filtering::NAMES.iter().position(|(named, _)| *named == filtering).unwrap_or(0) as u8
}

/// Has a host's port keep one outside port towards all remote hosts, on shared addresses, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct ShoalNat44IndependentMappingSet {
    pub is_add: bool,
    /// The interface whose address is shared; all bits set for a range of addresses.
    #[preset(4294967295)]
    pub sw_if_index: InterfaceIndex,
    pub first_ip_address: Ipv4Addr,
    pub last_ip_address: Ipv4Addr,
    /// Who may send to the port: 0 all, 1 addresses the host has sent to, 2 addresses and ports it has sent to.
    pub filtering: u8,
}

impl Request for ShoalNat44IndependentMappingSet {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let nat = nat(call)?;
        let named = Filtering::NAMES.get(usize::from(self.filtering)).ok_or(Retval::INVALID_VALUE)?;
        let filtering = self.is_add.then_some(named.0);
        Ok(if self.sw_if_index == InterfaceIndex::NONE {
            nat.set_independent((self.first_ip_address, self.last_ip_address), filtering)
        } else {
            nat.set_interface_independent(SwIfIndex(self.sw_if_index.0), filtering)
        }?)
    }
}

/// Asks for shared addresses whose mappings do not depend on the remote host.
#[derive(Message)]
#[message(request, details = ShoalNat44IndependentMappingDetails)]
pub struct ShoalNat44IndependentMappingDump {}

/// A shared address whose mappings do not depend on the remote host.
#[derive(Message)]
#[message(reply)]
pub struct ShoalNat44IndependentMappingDetails {
    /// The interface it follows; all bits set for none.
    pub sw_if_index: InterfaceIndex,
    /// The address; of an interface 0.0.0.0.
    pub ip_address: Ipv4Addr,
    pub filtering: u8,
}

impl Dump for ShoalNat44IndependentMappingDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = ShoalNat44IndependentMappingDetails> + 'static {
        all(call, crate::Nat44::independent).map(|(address, filtering)| {
            let (sw_if_index, ip_address) = match address {
                SharedAddress::Address(address) => (InterfaceIndex::NONE, address),
                SharedAddress::OfInterface(interface) => (InterfaceIndex(interface.0), Ipv4Addr::UNSPECIFIED),
            };
            ShoalNat44IndependentMappingDetails { sw_if_index, ip_address, filtering: number(filtering) }
        })
    }
}
