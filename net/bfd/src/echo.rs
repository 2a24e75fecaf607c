//! The echo function's source: an interface of whose network echo packets seem to come.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_interface::SwIfIndex;

use crate::control::{Bfd, EchoSource};

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

    /// The address from which echo packets to a peer are sent: the one that is shown, or, where that is no host's (10.0.0.0 next to
    /// 10.0.0.1), the one after it. Packets from an address that is no host's would not be taken when they come back.
    pub(crate) fn echo_address(&self, peer: IpAddr) -> Option<IpAddr> {
        let EchoSource { interface, ip4, ip6 } = self.echo_source()?;
        if !peer.is_ipv4() {
            let shown = ip6?;
            let own = self.ip6.addresses(interface).into_iter().find(|own| next_to6(own.addr()) == shown)?;
            // That of all routers of the network (RFC 4291, 2.6.1).
            let is_no_host = own.len() < 127 && own.network() == shown;
            let two = Ipv6Addr::from_bits(own.addr().to_bits() ^ 2);
            return Some(IpAddr::V6(if is_no_host { two } else { shown }));
        }
        let shown = ip4?;
        let own = self.ip4.addresses(interface).into_iter().find(|own| next_to4(own.addr()) == shown)?;
        let is_no_host = own.len() < 31 && (own.network() == shown || own.broadcast() == Some(shown));
        Some(IpAddr::V4(if is_no_host { Ipv4Addr::from_bits(own.addr().to_bits() ^ 2) } else { shown }))
    }
}

fn next_to4(own: Ipv4Addr) -> Ipv4Addr {
    Ipv4Addr::from_bits(own.to_bits() ^ 1)
}

fn next_to6(own: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(own.to_bits() ^ 1)
}
