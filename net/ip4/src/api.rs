//! The binary API of IPv4 on interfaces: what clients are answered. Messages about both families are with IPv6.

use shoal_message::Retval;

use crate::Ip4Error;

/// VPP's number for what is wrong with an operation on an interface.
pub fn retval(error: &Ip4Error) -> Retval {
    match error {
        Ip4Error::Duplicate { .. } => Retval::DUPLICATE_IF_ADDRESS,
        Ip4Error::Overlap { .. } => Retval::ADDRESS_IN_USE,
        Ip4Error::NotAHost { .. } => Retval::INVALID_VALUE,
        Ip4Error::NoAddress { .. } => Retval::ADDRESS_NOT_FOUND_FOR_INTERFACE,
        Ip4Error::HasAddresses { .. } => Retval::ADDRESS_FOUND_FOR_INTERFACE,
        Ip4Error::Unnumbered { .. } | Ip4Error::IsUnnumbered(..) | Ip4Error::NotUnnumbered(_) => {
            Retval::UNEXPECTED_INTF_STATE
        }
        Ip4Error::Fib(e) => shoal_fib::api::retval(e),
        Ip4Error::Interface(_) => Retval::INVALID_SW_IF_INDEX,
        Ip4Error::Table(_) => Retval::UNSPECIFIED,
    }
}
