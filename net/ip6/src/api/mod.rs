//! Messages of the binary API: IPv4 and IPv6 on interfaces.

mod addresses;
mod enable;
pub mod interface;
mod unnumbered;

use shoal_message::Retval;
use shoal_module::api::{ApiMessage, ApiPart, Folder};

use crate::Ip6Error;

/// Messages that VPP has in `ip.api`.
pub static IP: ApiPart = ApiPart {
    file: "ip",
    folder: Folder::Core,
    version: "3.2.0",
    messages: &[
        ApiMessage::dump::<addresses::IpAddressDump>(),
        ApiMessage::sent::<addresses::IpAddressDetails>(),
        ApiMessage::dump::<addresses::IpDump>(),
        ApiMessage::sent::<addresses::IpDetails>(),
        ApiMessage::dump::<unnumbered::IpUnnumberedDump>(),
        ApiMessage::sent::<unnumbered::IpUnnumberedDetails>(),
        ApiMessage::request::<enable::SwInterfaceIp6EnableDisable>(),
        ApiMessage::request::<enable::SwInterfaceIp4EnableDisable>(),
        ApiMessage::request::<enable::SwInterfaceIp6SetLinkLocalAddress>(),
        ApiMessage::request::<enable::SwInterfaceIp6GetLinkLocalAddress>(),
        ApiMessage::sent::<enable::SwInterfaceIp6GetLinkLocalAddressReply>(),
    ],
};

/// VPP's number for what is wrong with an operation on an interface.
pub fn retval(error: &Ip6Error) -> Retval {
    match error {
        Ip6Error::Duplicate { .. } => Retval::DUPLICATE_IF_ADDRESS,
        Ip6Error::Overlap { .. } => Retval::ADDRESS_IN_USE,
        Ip6Error::NotAHost { .. } | Ip6Error::NotLinkLocal(_) => Retval::INVALID_VALUE,
        Ip6Error::NoAddress { .. } => Retval::ADDRESS_NOT_FOUND_FOR_INTERFACE,
        Ip6Error::InUse { .. } | Ip6Error::HasAddresses { .. } => Retval::ADDRESS_FOUND_FOR_INTERFACE,
        Ip6Error::NotEnabled(_) => Retval::IP6_NOT_ENABLED,
        Ip6Error::Unnumbered { .. } | Ip6Error::IsUnnumbered(..) | Ip6Error::NotUnnumbered(_) => {
            Retval::UNEXPECTED_INTF_STATE
        }
        Ip6Error::Fib(e) => shoal_fib::api::retval(e),
        Ip6Error::Interface(_) => Retval::INVALID_SW_IF_INDEX,
        Ip6Error::Adj(_) | Ip6Error::Graph(_) | Ip6Error::Table(_) => Retval::UNSPECIFIED,
    }
}
