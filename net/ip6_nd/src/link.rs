//! What packets may know of this router on a link: its addresses, its networks, its groups.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::sync::Arc;

use shoal_infra::{Guard, Published};
use shoal_interface::SwIfIndex;
use shoal_wire::ip6_address::is_link_local;
use shoal_wire::{Ip6Prefix, MacAddress};

/// How sure it is that an address is this router's alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressState {
    /// The link is being asked (RFC 4862 5.4): it is not answered for and not spoken from.
    Tentative,
    /// It is ours.
    Ours,
    /// Somebody else has it.
    Duplicate,
}

/// This router on one link.
#[derive(Clone, Default)]
pub struct Link {
    pub(crate) addresses: BTreeMap<Ipv6Addr, AddressState>,
    /// Networks of the addresses.
    pub(crate) networks: Vec<Ip6Prefix>,
    /// Anycast addresses of the networks' routers (RFC 4291 2.6.1).
    pub(crate) anycast: BTreeSet<Ipv6Addr>,
    /// Addresses that are answered for on behalf of others.
    pub(crate) proxied: BTreeSet<Ipv6Addr>,
    /// Addresses that this router has for the time being, shared with other routers, and the MAC address that goes with each.
    pub(crate) virtual_addresses: BTreeMap<Ipv6Addr, MacAddress>,
}

impl Link {
    /// Whether an address is one of this router, alone or with others.
    pub fn is_own(&self, address: Ipv6Addr) -> bool {
        self.own(address).is_some() || self.anycast.contains(&address)
    }

    /// An address of this router.
    pub fn own(&self, address: Ipv6Addr) -> Option<AddressState> {
        self.addresses.get(&address).copied()
    }

    /// Whether a unicast address is one of a station on this link.
    pub fn is_on_link(&self, address: Ipv6Addr) -> bool {
        !address.is_multicast()
            && (is_link_local(address) || self.networks.iter().any(|network| network.contains(address)))
    }

    /// Our address to speak to `target` from: one in its network, else the link-local one, else any.
    pub fn source_for(&self, target: Ipv6Addr) -> Option<Ipv6Addr> {
        let ours = || self.addresses.iter().filter(|(_, s)| **s == AddressState::Ours).map(|(a, _)| *a);
        let near = |a: &Ipv6Addr| {
            let of_both = |n: &&Ip6Prefix| n.contains(*a) && n.contains(target);
            !is_link_local(target) && self.networks.iter().any(|n| of_both(&n))
        };
        ours().find(near).or_else(|| self.link_local()).or_else(|| ours().next())
    }

    /// Our link-local address, once it is ours.
    pub fn link_local(&self) -> Option<Ipv6Addr> {
        let ours = self.addresses.iter().filter(|(_, s)| **s == AddressState::Ours);
        ours.map(|(a, _)| *a).find(|a| is_link_local(*a))
    }
}

/// Links that are published one by one.
type Chunk = Box<[Published<Option<Arc<Link>>>]>;
/// Links in a chunk: only the list of chunks is copied when there are more interfaces than ever.
const CHUNK: usize = 64;

/// All links by interface. Clones are the same table.
#[derive(Clone)]
pub struct Links(Arc<Published<Vec<Arc<Chunk>>>>);

/// The chunk of an interface, and its place in there.
fn place(interface: SwIfIndex) -> (usize, usize) {
    let at = interface.0 as usize;
    (at / CHUNK, at % CHUNK)
}

impl Default for Links {
    fn default() -> Self {
        Links(Arc::new(Published::new(Vec::new())))
    }
}

impl Links {
    /// This router on a link; `None` when it has no address there.
    #[inline]
    pub fn get<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<&'g Link> {
        let (chunk, at) = place(interface);
        self.0.load(guard).get(chunk)?.get(at)?.load(guard).as_deref()
    }

    /// The same for the control plane.
    pub(crate) fn now(&self, interface: SwIfIndex) -> Option<Arc<Link>> {
        let (chunk, at) = place(interface);
        (*self.0.get().get(chunk)?.get(at)?.get()).clone()
    }

    pub(crate) fn set(&self, interface: SwIfIndex, link: Option<Link>) {
        let (chunk, at) = place(interface);
        let mut all = self.0.get();
        if all.len() <= chunk {
            let mut more = (*all).clone();
            more.resize_with(chunk + 1, || Arc::new((0..CHUNK).map(|_| Published::new(None)).collect()));
            all = Arc::new(more);
            self.0.replace_arc(Arc::clone(&all));
        }
        if let Some(slot) = all.get(chunk).and_then(|chunk| chunk.get(at)) {
            slot.replace(link.map(Arc::new));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip6(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    fn link() -> Link {
        let mut link = Link { networks: vec!["2001:db8::/64".parse().unwrap()], ..Link::default() };
        link.addresses.insert(ip6("2001:db8::1"), AddressState::Ours);
        link.addresses.insert(ip6("fe80::1"), AddressState::Ours);
        link
    }

    #[test]
    fn speaks_from_the_network_of_whom_it_speaks_to() {
        let mut link = link();
        assert_eq!(link.source_for(ip6("2001:db8::9")), Some(ip6("2001:db8::1")));
        assert_eq!(link.source_for(ip6("fe80::9")), Some(ip6("fe80::1")));
        assert_eq!(link.source_for(ip6("2001:db9::9")), Some(ip6("fe80::1")));
        link.addresses.insert(ip6("2001:db8::1"), AddressState::Tentative);
        assert_eq!(link.source_for(ip6("2001:db8::9")), Some(ip6("fe80::1")));
        link.addresses.insert(ip6("fe80::1"), AddressState::Duplicate);
        assert_eq!(link.source_for(ip6("2001:db8::9")), None);
    }

    #[test]
    fn knows_who_is_on_the_link() {
        let link = link();
        assert!(link.is_on_link(ip6("2001:db8::ffff")) && link.is_on_link(ip6("fe80::5")));
        assert!(!link.is_on_link(ip6("2001:db8:0:1::1")) && !link.is_on_link(ip6("ff02::1")));
    }
}
