//! What other routers of a link say. RFC 4861 6.2.7: it is compared, not obeyed.

use std::net::Ipv6Addr;

use shoal_graph::clock::Time;
use shoal_interface::SwIfIndex;
use shoal_wire::MacAddress;
use shoal_wire::nd::RaFlags;

use super::{Nd, of};
use crate::Key;
use crate::fact::AdvertisedLink;

/// Most routers remembered of one link: a host that makes up more finds no more room.
const MOST_ROUTERS: usize = 32;

/// A router's last advertisement.
#[derive(Clone, Copy)]
pub(crate) struct ReceivedAdvertisement {
    pub(crate) said: AdvertisedLink,
    pub(crate) at: Time,
    pub(crate) count: u64,
}

impl Nd {
    /// Routers heard on an interface, and their last advertisements.
    pub(crate) fn routers(&self, interface: SwIfIndex) -> Vec<(Ipv6Addr, ReceivedAdvertisement)> {
        self.routers.borrow().range(of(interface)).map(|((_, from), heard)| (*from, *heard)).collect()
    }

    pub(super) fn router_advertised(&self, key: Key, mac: Option<MacAddress>, said: AdvertisedLink) {
        if let Some(mac) = mac {
            self.advertised_router(key, mac);
        }
        let now = self.now();
        let known = self.routers.borrow().get(&key).copied();
        if known.is_none() && self.routers.borrow().range(of(key.0)).count() >= MOST_ROUTERS {
            return;
        }
        let count = known.map_or(0, |old| old.count) + 1;
        self.routers.borrow_mut().insert(key, ReceivedAdvertisement { said, at: now, count });
        if known.is_none_or(|old| old.said != said) {
            self.compare(key, &said);
        }
    }

    /// RFC 4861 6.2.7: routers of a link that contradict each other leave hosts with the last router's values.
    fn compare(&self, (interface, from): Key, said: &AdvertisedLink) {
        let ours = self.ra_config(interface);
        if ours.suppressed() || self.is_host(interface) {
            return;
        }
        let both = |flag: RaFlags| said.flags.contains(flag) == ours.flags().contains(flag);
        let mtu = self.link_mtu(interface);
        let differ = [
            (said.hop_limit != 0 && said.hop_limit != ours.hop_limit, "hop limit"),
            (!both(RaFlags::MANAGED), "managed flag"),
            (!both(RaFlags::OTHER), "other flag"),
            (said.mtu.is_some_and(|theirs| theirs != mtu), "MTU"),
        ];
        let names: Vec<&str> = differ.iter().filter(|(differs, _)| *differs).map(|(_, name)| *name).collect();
        if !names.is_empty() {
            let name = self.name(interface);
            self.say(format!("{name}: router {from} advertises another {}", names.join(", ")));
        }
    }
}
