//! Messages of addresses and tables of interfaces, of both families, that VPP has in `interface.api`.

use std::net::IpAddr;
use std::rc::Rc;

use shoal_interface::{Interfaces, SwIfIndex};
use shoal_ip::Addresses as _;
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_message::{AddressWithPrefix, InterfaceIndex, Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};
use shoal_wire::{Ip4Prefix, Ip6Prefix};

use crate::set_unnumbered;

/// The messages.
pub static API: ApiPart = ApiPart {
    file: "interface",
    folder: Folder::Core,
    version: "3.2.4",
    messages: &[
        ApiMessage::request::<SwInterfaceAddDelAddress>(),
        ApiMessage::request::<SwInterfaceAddressReplaceBegin>(),
        ApiMessage::request::<SwInterfaceAddressReplaceEnd>(),
        ApiMessage::request::<SwInterfaceSetTable>(),
        ApiMessage::request::<SwInterfaceGetTable>(),
        ApiMessage::sent::<SwInterfaceGetTableReply>(),
        ApiMessage::request::<SwInterfaceSetUnnumbered>(),
    ],
};

fn both(call: &Call) -> Result<(Rc<Ip4>, Rc<Ip6>), Retval> {
    let missing = |_| Retval::UNSPECIFIED;
    Ok((call.get().map_err(missing)?, call.get().map_err(missing)?))
}

/// The interface, if it is there.
fn existing(call: &Call, index: InterfaceIndex) -> Result<SwIfIndex, Retval> {
    let interfaces = call.get::<Interfaces>().map_err(|_| Retval::UNSPECIFIED)?;
    let index = SwIfIndex(index.0);
    interfaces.data(index)?;
    Ok(index)
}

/// Gives an interface an address, or takes one or all away.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceAddDelAddress {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Whether it is given.
    pub is_add: bool,
    /// Whether all addresses of both families are taken away; nothing else counts then.
    pub del_all: bool,
    /// The address and the length of its network.
    pub prefix: AddressWithPrefix,
}

impl Request for SwInterfaceAddDelAddress {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let ((ip4, ip6), interface) = (both(call)?, existing(call, self.sw_if_index)?);
        if self.del_all {
            ip4.del_all(interface).map_err(Retval::from)?;
            ip6.del_all(interface).map_err(Retval::from)?;
            return Ok(());
        }
        let AddressWithPrefix(prefix) = self.prefix;
        match prefix.address {
            IpAddr::V4(address) => {
                let address =
                    Ip4Prefix::new(address, prefix.len).map_err(|_| Retval::INVALID_PREFIX_LENGTH)?;
                let done = if self.is_add { Ip4::add_address } else { Ip4::del_address };
                done(&ip4, interface, address).map_err(Retval::from)
            }
            IpAddr::V6(address) => {
                let address =
                    Ip6Prefix::new(address, prefix.len).map_err(|_| Retval::INVALID_PREFIX_LENGTH)?;
                let done = if self.is_add { Ip6::add_address } else { Ip6::del_address };
                done(&ip6, interface, address).map_err(Retval::from)
            }
        }
    }
}

/// Marks all addresses of all interfaces: those that are not given again before
/// `sw_interface_address_replace_end` go then.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceAddressReplaceBegin {}

impl Request for SwInterfaceAddressReplaceBegin {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (ip4, ip6) = both(call)?;
        ip4.replace_begin();
        ip6.replace_begin();
        Ok(())
    }
}

/// Takes all marked addresses away that were not given again.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceAddressReplaceEnd {}

impl Request for SwInterfaceAddressReplaceEnd {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (ip4, ip6) = both(call)?;
        // Both, whatever becomes of the first.
        let (four, six) = (ip4.replace_end(), ip6.replace_end());
        four.map_err(Retval::from).and(six.map_err(Retval::from))
    }
}

/// Has packets received on an interface looked up in another table.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceSetTable {
    /// The interface, which has no addresses of the family.
    pub sw_if_index: InterfaceIndex,
    /// Whether it is the table of IPv6 packets.
    pub is_ipv6: bool,
    /// The table.
    pub vrf_id: u32,
}

impl Request for SwInterfaceSetTable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let ((ip4, ip6), interface) = (both(call)?, existing(call, self.sw_if_index)?);
        if self.is_ipv6 {
            ip6.set_table(interface, self.vrf_id).map_err(Retval::from)
        } else {
            ip4.set_table(interface, self.vrf_id).map_err(Retval::from)
        }
    }
}

/// Asks in which table packets received on an interface are looked up.
#[derive(Message)]
#[message(request, reply = SwInterfaceGetTableReply)]
pub struct SwInterfaceGetTable {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Whether it is the table of IPv6 packets.
    pub is_ipv6: bool,
}

/// A table.
#[derive(Message)]
#[message(reply)]
pub struct SwInterfaceGetTableReply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The table.
    pub vrf_id: u32,
}

impl Request for SwInterfaceGetTable {
    fn handle(self, call: &Call) -> Result<SwInterfaceGetTableReply, Retval> {
        let ((ip4, ip6), interface) = (both(call)?, existing(call, self.sw_if_index)?);
        let vrf_id = if self.is_ipv6 {
            ip6.table_id(interface).map_err(Retval::from)?
        } else {
            ip4.table_id(interface).map_err(Retval::from)?
        };
        Ok(SwInterfaceGetTableReply { retval: 0, vrf_id })
    }
}

/// Lets an interface speak from the addresses of another, or no longer.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceSetUnnumbered {
    /// The interface that has the addresses.
    pub sw_if_index: InterfaceIndex,
    /// The interface that is to speak from them.
    pub unnumbered_sw_if_index: InterfaceIndex,
    /// Whether it does.
    pub is_add: bool,
}

impl Request for SwInterfaceSetUnnumbered {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (ip4, ip6) = both(call)?;
        let lender = existing(call, self.sw_if_index)?;
        let interface = existing(call, self.unnumbered_sw_if_index);
        let interface = interface.map_err(|_| Retval::INVALID_SW_IF_INDEX_2)?;
        set_unnumbered(&ip4, &ip6, interface, self.is_add.then_some(lender)).map_err(Retval::from)
    }
}
