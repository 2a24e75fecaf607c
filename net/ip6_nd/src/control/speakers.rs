//! Which router hosts of a link hear advertisements of: this one, or the virtual routers that it is (RFC 9568 8.2.3).

use std::net::Ipv6Addr;

use shoal_interface::SwIfIndex;
use shoal_wire::MacAddress;

use super::Nd;

/// A virtual router, while this router has its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VirtualSpeaker {
    /// Its link-local address.
    pub address: Ipv6Addr,
    /// Its MAC address.
    pub mac: MacAddress,
}

impl Nd {
    /// There is a virtual router of this number on an interface. As long as there is, hosts hear its advertisements and none of this
    /// router's own, so that the way out that they learn is one that does not go with a router: this router sends them while it has the
    /// virtual router's addresses, and is silent while another one has.
    pub fn set_virtual_router(&self, interface: SwIfIndex, number: u8, speaker: Option<VirtualSpeaker>) {
        if !self.has_virtual_routers(interface) {
            // RFC 4861 6.2.5: hosts that have heard of this router itself hear that it is none any more.
            self.stop_advertising(interface);
        }
        let before = self.virtual_routers.borrow_mut().insert((interface, number), speaker);
        if before != Some(speaker) {
            self.follow_link_local(interface);
        }
    }

    /// The virtual router of this number is no more. Another router may be it: hosts hear of no end.
    pub fn remove_virtual_router(&self, interface: SwIfIndex, number: u8) {
        if self.virtual_routers.borrow_mut().remove(&(interface, number)).is_some() {
            self.follow_link_local(interface);
        }
    }

    /// Virtual routers of an interface by number, with what this router speaks as.
    pub fn virtual_routers(&self, interface: SwIfIndex) -> Vec<(u8, Option<VirtualSpeaker>)> {
        let all = self.virtual_routers.borrow();
        all.range((interface, 0)..=(interface, u8::MAX)).map(|((_, number), who)| (*number, *who)).collect()
    }

    fn has_virtual_routers(&self, interface: SwIfIndex) -> bool {
        self.virtual_routers.borrow().range((interface, 0)..=(interface, u8::MAX)).next().is_some()
    }

    /// The routers that hosts of a link hear advertisements of.
    pub(super) fn speakers(&self, interface: SwIfIndex) -> Vec<VirtualSpeaker> {
        if self.has_virtual_routers(interface) {
            return self.virtual_routers(interface).into_iter().filter_map(|(_, speaker)| speaker).collect();
        }
        let address = self.links.now(interface).and_then(|link| link.link_local());
        let own = address.zip(self.interfaces.data(interface).ok());
        own.map(|(address, data)| VirtualSpeaker { address, mac: data.mac() }).into_iter().collect()
    }
}
