//! The echo function's source: an interface of whose network echo packets seem to come.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_interface::SwIfIndex;
use shoal_wire::Ip6Prefix;

use crate::control::{Bfd, EchoSource, Hop, SessionKey};

impl Bfd {
    /// Addresses from which echo packets can be sent: those next to the interface's own. The other end sends such a packet back
    /// without a redirect, and nothing answers at it (RFC 5881, 4).
    fn usable(&self, interface: SwIfIndex) -> (Option<Ipv4Addr>, Option<Ipv6Addr>) {
        let ip4 = self.ip4.addresses(interface).into_iter().find(|address| address.len() < 32);
        let ip6 = self.ip6.addresses(interface).into_iter().find(|address| {
            address.len() < 128 && !address.addr().is_unicast_link_local() && !address.addr().is_multicast()
        });
        (ip4.map(|address| next_to4(address.addr())), ip6.map(|address| next_to6(address.addr())))
    }

    /// The source of echo packets, if it is set.
    pub fn echo_source(&self) -> Option<EchoSource> {
        self.echo_by.get().map(|interface| {
            let (ip4, ip6) = self.usable(interface);
            EchoSource { interface, ip4, ip6 }
        })
    }

    /// The address from which echo packets of a session are sent: the one that is shown, or, where that is no host's (10.0.0.0 next to
    /// 10.0.0.1), the one after it. Packets from an address that is no host's would not be taken when they come back. Without an echo
    /// source a session that is to have the function by itself has the address next to its own one, or, where that is link-local and
    /// would not be forwarded, to another one of its interface.
    pub(crate) fn echo_address(&self, key: SessionKey, is_wished: bool) -> Option<IpAddr> {
        let (interface, near) = match (self.echo_by.get(), key.hop) {
            (Some(interface), _) => (interface, None),
            (None, Hop::Single(interface)) if is_wished => (interface, Some(key.local)),
            _ => return None,
        };
        if key.peer.is_ipv4() {
            let mut all = self.ip4.addresses(interface).into_iter().filter(|own| own.len() < 32);
            let own = all.find(|own| near.is_none_or(|near| near == IpAddr::V4(own.addr())))?;
            let shown = next_to4(own.addr());
            let is_no_host = own.len() < 31 && (own.network() == shown || own.broadcast() == Some(shown));
            return Some(IpAddr::V4(if is_no_host {
                Ipv4Addr::from_bits(own.addr().to_bits() ^ 2)
            } else {
                shown
            }));
        }
        let is_forwarded = |own: &Ip6Prefix| {
            own.len() < 128 && !own.addr().is_unicast_link_local() && !own.addr().is_multicast()
        };
        let all: Vec<Ip6Prefix> = self.ip6.addresses(interface).into_iter().filter(is_forwarded).collect();
        let own = all.iter().find(|own| near == Some(IpAddr::V6(own.addr()))).or(all.first())?;
        let shown = next_to6(own.addr());
        // That of all routers of the network (RFC 4291, 2.6.1).
        let is_no_host = own.len() < 127 && own.network() == shown;
        Some(IpAddr::V6(if is_no_host { Ipv6Addr::from_bits(own.addr().to_bits() ^ 2) } else { shown }))
    }
}

fn next_to4(own: Ipv4Addr) -> Ipv4Addr {
    Ipv4Addr::from_bits(own.to_bits() ^ 1)
}

fn next_to6(own: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(own.to_bits() ^ 1)
}
