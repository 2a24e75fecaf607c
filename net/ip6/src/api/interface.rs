//! Messages of addresses and tables of interfaces that VPP has in `interface.api`: they speak of both families, so they
//! are here, where both are known.

use std::net::IpAddr;
use std::rc::Rc;

use shoal_fib::FibError;
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_ip4::{Ip4, Ip4Error};
use shoal_message::{AddressWithPrefix, InterfaceIndex, Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};
use shoal_wire::{Ip4Prefix, Ip6Prefix};

use crate::{BorrowError, Ip6, Ip6Error, set_unnumbered};

/// The messages.
pub static API: ApiPart = ApiPart {
    file: "interface",
    folder: Folder::Core,
    version: "3.2.4",
    messages: &[
        ApiMessage::request::<SwInterfaceSetIpDirectedBroadcast>(),
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

fn of_fib(error: &FibError) -> Retval {
    if matches!(error, FibError::NoTable { .. }) { Retval::NO_SUCH_FIB } else { Retval::UNSPECIFIED }
}

/// What VPP says of what is wrong with an IPv4 address.
fn of_ip4(error: Ip4Error) -> Retval {
    match error {
        Ip4Error::Duplicate { .. } => Retval::DUPLICATE_IF_ADDRESS,
        Ip4Error::Overlap { .. } => Retval::ADDRESS_IN_USE,
        Ip4Error::NotAHost { .. } => Retval::INVALID_VALUE,
        Ip4Error::NoAddress { .. } => Retval::ADDRESS_NOT_FOUND_FOR_INTERFACE,
        Ip4Error::HasAddresses { .. } => Retval::ADDRESS_FOUND_FOR_INTERFACE,
        Ip4Error::Unnumbered { .. } | Ip4Error::IsUnnumbered(..) | Ip4Error::NotUnnumbered(_) => {
            Retval::UNEXPECTED_INTF_STATE
        }
        Ip4Error::Fib(error) => of_fib(&error),
        Ip4Error::Interface(error) => error.into(),
        Ip4Error::Table(_) => Retval::UNSPECIFIED,
    }
}

/// The same of IPv6.
fn of_ip6(error: Ip6Error) -> Retval {
    match error {
        Ip6Error::Duplicate { .. } => Retval::DUPLICATE_IF_ADDRESS,
        Ip6Error::Overlap { .. } => Retval::ADDRESS_IN_USE,
        Ip6Error::NotAHost { .. } | Ip6Error::NotLinkLocal(_) => Retval::INVALID_VALUE,
        Ip6Error::NoAddress { .. } => Retval::ADDRESS_NOT_FOUND_FOR_INTERFACE,
        Ip6Error::HasAddresses { .. } => Retval::ADDRESS_FOUND_FOR_INTERFACE,
        Ip6Error::Unnumbered { .. } | Ip6Error::IsUnnumbered(..) | Ip6Error::NotUnnumbered(_) => {
            Retval::UNEXPECTED_INTF_STATE
        }
        Ip6Error::Fib(error) => of_fib(&error),
        Ip6Error::Interface(error) => error.into(),
        _ => Retval::UNSPECIFIED,
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
        let interface = existing(call, self.sw_if_index)?;
        both(call)?.0.set_directed_broadcast(interface, self.enable).map_err(of_ip4)
    }
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
            ip4.del_all(interface).map_err(of_ip4)?;
            ip6.del_all(interface).map_err(of_ip6)?;
            return Ok(());
        }
        let AddressWithPrefix(prefix) = self.prefix;
        match prefix.address {
            IpAddr::V4(address) => {
                let address =
                    Ip4Prefix::new(address, prefix.len).map_err(|_| Retval::INVALID_PREFIX_LENGTH)?;
                let done = if self.is_add { Ip4::add_address } else { Ip4::del_address };
                done(&ip4, interface, address).map_err(of_ip4)
            }
            IpAddr::V6(address) => {
                let address =
                    Ip6Prefix::new(address, prefix.len).map_err(|_| Retval::INVALID_PREFIX_LENGTH)?;
                let done = if self.is_add { Ip6::add_address } else { Ip6::del_address };
                done(&ip6, interface, address).map_err(of_ip6)
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
        four.map_err(of_ip4).and(six.map_err(of_ip6))
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
            ip6.set_table(interface, self.vrf_id).map_err(of_ip6)
        } else {
            ip4.set_table(interface, self.vrf_id).map_err(of_ip4)
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
            ip6.table_id(interface).map_err(of_ip6)?
        } else {
            ip4.table_id(interface).map_err(of_ip4)?
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
        set_unnumbered(&ip4, &ip6, interface, self.is_add.then_some(lender)).map_err(|e| match e {
            BorrowError::Ip4(e) => of_ip4(e),
            BorrowError::Ip6(e) => of_ip6(e),
        })
    }
}
