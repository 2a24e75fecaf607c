//! Which addresses can be a host's.

use std::net::Ipv4Addr;

use shoal_ip::AddressError;
use shoal_wire::Ip4Prefix;

/// RFC 1122 3.2.1.3: what may be the address of a host.
pub(super) fn check_host(address: Ip4Prefix) -> Result<(), AddressError> {
    let addr = address.addr();
    let beside = |bits: u32| Ip4Prefix::new(Ipv4Addr::from_bits(bits), address.len()).ok();
    let (why, nearest) = if address.len() == 0 {
        ("its network would be everything", Ip4Prefix::new(addr, 1).ok())
    } else if addr.is_unspecified() || addr.octets()[0] == 0 {
        ("0.0.0.0/8 is this network", None)
    } else if addr.is_multicast() {
        ("it is a group's", None)
    } else if addr.octets()[0] >= 240 {
        ("240.0.0.0/4 is reserved", None)
    } else if address.broadcast() == Some(addr) {
        ("it is the network's broadcast address", beside(addr.to_bits() - 1))
    } else if address.broadcast().is_some() && address.network() == addr {
        ("it is the network's own", beside(addr.to_bits() + 1))
    } else {
        return Ok(());
    };
    Err(AddressError::NotAHost { address: address.into(), why, nearest: nearest.map(Into::into) })
}
