//! Which addresses can be a host's.

use shoal_ip::AddressError;
use shoal_wire::Ip6Prefix;

/// RFC 4291, 2.5 and 2.7: what may be the address of a host.
pub(super) fn check_host(address: Ip6Prefix) -> Result<(), AddressError> {
    let addr = address.addr();
    let why = if addr.is_unspecified() {
        "it is nobody's"
    } else if address.len() == 0 {
        "its network would be everything"
    } else if addr.is_multicast() {
        "it is a group's"
    } else {
        return Ok(());
    };
    Err(AddressError::NotAHost { address: address.into(), why, nearest: None })
}
