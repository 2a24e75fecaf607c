//! Which addresses can be answered, and which cannot.

use std::net::Ipv4Addr;

/// Whether an address may be one host's: not 0/8, 127/8, a group's, reserved or everybody's (RFC 1122, 3.2.1.3).
pub(crate) fn is_host(address: Ipv4Addr) -> bool {
    let [first, ..] = address.octets();
    first != 0 && first != 127 && first < 224
}

/// Whether an address is a group's or everybody's. A network's own broadcast address is told by its route.
pub(crate) fn is_many(address: Ipv4Addr) -> bool {
    address.is_multicast() || address.is_broadcast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_are_answered() {
        for host in [[1, 0, 0, 0], [10, 0, 0, 255], [223, 255, 255, 255], [192, 168, 0, 1]] {
            assert!(is_host(host.into()), "{host:?}");
        }
        for other in [[0, 0, 0, 0], [0, 1, 2, 3], [127, 0, 0, 1], [224, 0, 0, 1], [240, 0, 0, 1], [255; 4]] {
            assert!(!is_host(other.into()), "{other:?}");
        }
        assert!(
            is_many([239, 1, 1, 1].into()) && is_many([255; 4].into()) && !is_many([10, 0, 0, 255].into())
        );
    }
}
