//! Which addresses can be a host's.

use shoal_ip::AddressError;
use shoal_wire::Ip6Prefix;

/// RFC 4291, 2.5: what may be the address of a host. A group's address alone is taken, as VPP takes it.
pub(super) fn check_host(address: Ip6Prefix) -> Result<(), AddressError> {
    let addr = address.addr();
    let why = if addr.is_unspecified() {
        "it stands for no address"
    } else if address.len() == 0 {
        "its network would be everything"
    } else if addr.is_multicast() && address.len() != Ip6Prefix::MAX_LEN {
        "a group has no network, use /128"
    } else {
        return Ok(());
    };
    Err(AddressError::NotAHost { address: address.into(), why, nearest: None })
}
