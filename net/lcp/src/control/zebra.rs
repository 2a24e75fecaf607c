//! Routes of zebra that come by a connection of its own (FPM), and not a second time by way of the kernel.
// A namespace is a key of maps, `None` for the router's own: it is handed on as it is there.
#![allow(clippy::ref_option)]

use shoal_interface::HostRoute;

use super::mirror::Mirror;
use super::slices::{Change, Fate};
use super::*;

/// Whether zebra gives the kernel routes under this `RTPROT_` number: its own, and those of FRR's daemons from bgpd to srte.
fn is_zebra(protocol: u8) -> bool {
    const ZEBRA: u8 = 11;
    const BABEL: u8 = 42;
    matches!(protocol, ZEBRA | BABEL | 186..=198)
}

impl Lcp {
    /// The first interface with an image in a namespace that is the wanted one, by itself and by the image's name.
    pub fn find_phy(
        &self,
        netns: Option<&str>,
        is_wanted: impl Fn(SwIfIndex, &str) -> bool,
    ) -> Option<SwIfIndex> {
        let pairs = self.pairs.borrow();
        let mut all = pairs.iter().filter(|(_, pair)| pair.netns.as_deref() == netns);
        all.find(|(phy, pair)| is_wanted(**phy, &pair.name)).map(|(phy, _)| *phy)
    }

    /// Tells of each pair or VRF that comes or goes, by its namespace.
    pub fn subscribe(&self, tell: impl Fn(Option<&str>) + 'static) {
        self.observers.borrow_mut().push(Rc::new(tell));
    }

    /// What is by the pairs and VRFs of a namespace may be possible now, or not any more.
    pub(super) fn tell_observers(&self, netns: &Option<String>) {
        let observers = self.observers.borrow().clone();
        for tell in observers {
            tell(netns.as_deref());
        }
    }

    pub(super) fn comes_by_connection(&self, netns: &Option<String>, route: &HostRoute) -> bool {
        is_zebra(route.protocol) && self.by_connection.borrow().contains(netns)
    }

    /// Zebra's routes of a namespace come by a connection: from now on what the kernel tells of them is passed over, and what it
    /// told before goes; or they come by the connection no more, and the kernel is asked.
    pub fn zebra_is_connected(self: &Rc<Self>, netns: &Option<String>, connected: bool) {
        if !connected {
            if self.by_connection.borrow_mut().remove(netns) {
                self.listen_again(netns);
            }
            return;
        }
        if !self.by_connection.borrow_mut().insert(netns.clone()) {
            return;
        }
        self.change_routes(netns, OfZebra);
    }
}

/// Zebra's routes go.
struct OfZebra;

impl Change for OfZebra {
    fn concerns(&self, _: &Mirror, route: &HostRoute) -> bool {
        is_zebra(route.protocol)
    }

    fn change(&self, route: &mut HostRoute) -> Fate {
        if is_zebra(route.protocol) { Fate::Goes } else { Fate::Stays }
    }
}
