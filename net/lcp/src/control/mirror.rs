//! What Linux does with images, taken over: whether they are up, addresses, neighbours and routes.
//!
//! One listener for each namespace with images. Of a prefix the route with the lowest metric counts whose next hops leave
//! by images; the others wait, for the image they need or for the better one to go.
// A namespace is a key of maps, `None` for the router's own: it is handed on as it is there.
#![allow(clippy::ref_option)]

use std::borrow::Cow;

use shoal_fib::{Family, Fib, Path, Source, Via};
use shoal_interface::{
    EventOrigin, HostEvent, HostLink, HostListener, HostNextHops, HostPath, HostRoute, HostWay, Resolved,
};
use shoal_neighbor::Families;
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_wire::{IpPrefix, MacAddress};

use super::listing::Seen;
use super::multicast::MulticastRoutes;
use super::netlink::{Check, Difference, Subject, Watch};
use super::next_hops::resilient;
use super::routes::{Installed, Key, Routes};
use super::slices::{Change, Fate};
use super::tables::{Held, MAIN};
use super::*;

/// What is known of one namespace.
pub(super) struct Mirror {
    /// The kernel is heard while it is there.
    pub(super) listening: Option<Box<dyn HostListener>>,
    /// The last pair has gone, and what was told before this time goes.
    pub(super) left: Option<u64>,
    /// Interfaces that are down.
    pub(super) down: BTreeSet<u32>,
    /// The kernel's interfaces.
    pub(super) links: BTreeMap<u32, HostLink>,
    /// Images that have become part of something else, or of nothing, since all was listed last; and those of which the listing under
    /// way says what there is.
    pub(super) moved: BTreeSet<u32>,
    pub(super) settling: BTreeSet<u32>,
    /// IPv6 addresses that the kernel has taken from them.
    pub(super) dropped: BTreeSet<(u32, (IpAddr, u8))>,
    /// Why a VLAN or VRF is not followed, by its link or that which is part of it; how often that was.
    pub(super) refused: BTreeMap<u32, String>,
    pub(super) refusals: u64,
    /// The tables of this router that Linux's main table is.
    pub(super) main: TablePair,
    /// How often each table of this router is needed.
    pub(super) held: Held,
    /// Tables of VRFs that routes lead by, by the VRF.
    pub(super) looked_up: BTreeMap<(u32, Family), u32>,
    pub(super) routes: Routes,
    /// Next hops and groups that routes name by number.
    pub(super) next_hops: HostNextHops,
    /// Prefixes with unusable routes only.
    pub(super) pending: BTreeSet<Key>,
    pub(super) neighbors: BTreeSet<(u32, IpAddr)>,
    pub(super) addresses: BTreeSet<(u32, (IpAddr, u8))>,
    pub(super) seen: Option<Seen>,
    pub(super) watch: Watch,
    pub(super) multicast: MulticastRoutes,
}

impl Mirror {
    /// How packets of a route leave.
    pub(super) fn way<'a>(&'a self, route: &'a HostRoute) -> Cow<'a, HostWay> {
        // Without a known number it is what the kernel has written out.
        match route.next_hop_id.and_then(|id| self.known_way(id)) {
            Some(way) => Cow::Owned(way),
            None => Cow::Borrowed(&route.way),
        }
    }

    /// How packets leave by a number, if that is known.
    pub(super) fn known_way(&self, id: u32) -> Option<HostWay> {
        match self.next_hops.resolve(id) {
            Resolved::Known(way) => Some(way),
            _ => None,
        }
    }
}

/// Routes that a listing has not named go; which check has found that.
struct Unnamed(Option<Check>);

impl Change for Unnamed {
    fn concerns(&self, _: &Mirror, _: &HostRoute) -> bool {
        true
    }

    fn change(&self, _: &mut HostRoute) -> Fate {
        Fate::Goes
    }

    fn gone(&self, mirror: &mut Mirror, (table, prefix): &Key) {
        mirror.watch.note_by(self.0, Subject::Route(*table, *prefix, None), Difference::Gone);
    }
}

/// Routes by an image or VRF that came or went are decided again.
pub(super) struct LedBy(pub u32);

impl Change for LedBy {
    fn concerns(&self, mirror: &Mirror, route: &HostRoute) -> bool {
        let leads = |path: &HostPath| path.host_index == self.0;
        matches!(&*mirror.way(route), HostWay::Via(paths) if paths.iter().any(leads))
    }

    fn change(&self, _: &mut HostRoute) -> Fate {
        Fate::Changes
    }
}

pub(super) fn group(address: IpAddr) -> bool {
    address.is_multicast() || matches!(address, IpAddr::V6(a) if a.is_unicast_link_local())
}

impl Lcp {
    /// Hears what happens in a namespace from now on, if it is not heard already.
    pub(super) fn listen(&self, netns: &Option<String>) {
        let is_left = self.with(netns, |mirror| mirror.left.is_some());
        if !self.follows_linux.get() || is_left == Some(false) {
            return;
        }
        // Of one that is being left, what it has put into the forwarding table: what is not told again goes.
        let old = self.mirrors.borrow_mut().remove(netns);
        let (main, held, looked_up, routes) = if let Some(old) = old {
            (old.main, old.held, old.looked_up, old.routes)
        } else {
            let nth = self.mirrors_made.replace(self.mirrors_made.get() + 1);
            (TablePair::default(), Held::new(), BTreeMap::new(), Routes::of_mirror(nth))
        };
        let mirror = Mirror {
            listening: None,
            left: None,
            down: BTreeSet::new(),
            links: BTreeMap::new(),
            moved: BTreeSet::new(),
            settling: BTreeSet::new(),
            dropped: BTreeSet::new(),
            refused: BTreeMap::new(),
            refusals: 0,
            main,
            held,
            looked_up,
            routes,
            next_hops: HostNextHops::default(),
            pending: BTreeSet::new(),
            neighbors: BTreeSet::new(),
            addresses: BTreeSet::new(),
            seen: None,
            watch: Watch::default(),
            multicast: MulticastRoutes::default(),
        };
        self.mirrors.borrow_mut().insert(netns.clone(), mirror);
        self.begin_listening(netns);
    }

    /// Hears a namespace from the beginning: what there is comes again.
    pub(super) fn listen_again(&self, netns: &Option<String>) {
        let before = self.with(netns, |mirror| mirror.listening.take());
        if before.is_some() {
            drop(before);
            self.begin_listening(netns);
        }
    }

    fn begin_listening(&self, netns: &Option<String>) {
        let (Some(control), Ok(side)) = (self.control.upgrade(), self.host_side()) else { return };
        let (weak, place) = (Rc::downgrade(&control), netns.clone());
        let hear = move |events| {
            if let Some(control) = weak.upgrade()
                && let Ok(lcp) = control.get::<Lcp>()
            {
                lcp.hear_many(&place, events);
            }
        };
        match side.listen(netns.as_deref(), Box::new(hear)) {
            Ok(listening) => {
                if let Some(mirror) = self.mirrors.borrow_mut().get_mut(netns) {
                    mirror.listening = Some(listening);
                }
            }
            Err(e) => {
                self.mirrors.borrow_mut().remove(netns);
                tracing::warn!("linux-cp: what Linux does with images is not followed: {e}");
            }
        }
    }

    /// A pair came or went: routes that leave by it are decided again, and a namespace without pairs is heard no longer.
    pub(super) fn pairs_changed(&self, netns: &Option<String>, host_index: u32) {
        self.change_routes(netns, LedBy(host_index));
        self.tell_observers(netns);
        let any = self.pairs.borrow().values().any(|pair| pair.netns == *netns && pair.host_index != 0);
        self.decide_all_multicast(netns, !any);
        if any {
            return self.decide_main(netns);
        }
        self.leave(netns);
    }

    /// The interface whose image has this number in a namespace.
    pub(super) fn phy_of(&self, netns: &Option<String>, host_index: u32) -> Option<SwIfIndex> {
        if host_index == 0 {
            return None;
        }
        let (pairs, by_index) = (self.pairs.borrow(), self.by_index.borrow());
        let here = |phy: &&SwIfIndex| pairs.get(*phy).is_some_and(|pair| pair.netns == *netns);
        by_index.get(&host_index)?.iter().find(here).copied()
    }

    pub(super) fn with<T>(&self, netns: &Option<String>, f: impl FnOnce(&mut Mirror) -> T) -> Option<T> {
        self.mirrors.borrow_mut().get_mut(netns).map(f)
    }

    /// The kernel says something of a namespace.
    pub(super) fn hear(&self, netns: &Option<String>, told: EventOrigin, event: HostEvent) {
        let is_old = self.with(netns, |mirror| {
            mirror.watch.count(told, &event);
            mirror.is_old(told, &event)
        });
        if is_old == Some(true) {
            return;
        }
        match event {
            HostEvent::Begin(cause) => {
                let now = self.now();
                self.with(netns, |mirror| {
                    mirror.seen = Some(Seen::since(mirror.routes.begin()));
                    mirror.multicast.begin();
                    let moved = std::mem::take(&mut mirror.moved);
                    mirror.settling.extend(moved);
                    mirror.watch.begin(cause, now);
                });
            }
            HostEvent::End => {
                self.sweep(netns);
                self.sweep_multicast(netns);
                self.settle(netns);
                self.expect_nothing(netns);
                let now = self.now();
                self.with(netns, |mirror| mirror.watch.end(now));
            }
            HostEvent::Link(link) => self.hear_link(netns, told, link),
            HostEvent::Gone { host_index } => self.hear_gone(netns, host_index),
            HostEvent::NextHop { id, hop } => self.hear_next_hop(netns, told, id, hop),
            HostEvent::Address { host_index, address, present } => {
                self.hear_address(netns, told, (host_index, address), present);
            }
            HostEvent::Neighbor { host_index, address, mac, by_operator } => {
                self.hear_neighbor(netns, told, (host_index, address), mac, by_operator);
            }
            HostEvent::Route { .. } => unreachable!("routes are heard in batches"),
            HostEvent::MulticastRoute { route, present } => self.hear_multicast(netns, told, route, present),
        }
    }

    fn hear_address(
        &self,
        netns: &Option<String>,
        told: EventOrigin,
        heard: (u32, (IpAddr, u8)),
        present: bool,
    ) {
        let (host_index, address) = heard;
        if group(address.0) {
            return;
        }
        let down = self.with(netns, |mirror| {
            if present {
                if mirror.addresses.insert(heard) && mirror.watch.is_check(told) {
                    mirror.watch.note(Subject::Address(heard.0, heard.1), Difference::Missing);
                }
                mirror.seen.iter_mut().for_each(|seen| seen.addresses.extend([heard]));
            } else {
                mirror.addresses.remove(&heard);
            }
            let moves = mirror.moved.contains(&host_index) || mirror.settling.contains(&host_index);
            if moves && !present && address.0.is_ipv6() {
                mirror.dropped.insert(heard);
                return true;
            }
            mirror.down.contains(&host_index)
        });
        let Some(phy) = self.phy_of(netns, host_index) else { return };
        if told == EventOrigin::Announced && self.is_expected(phy, address, present) {
            return self.forget_brought(phy, address);
        }
        // The kernel takes IPv6 addresses away from an interface that goes down; they are the router's nevertheless. What
        // becomes of those of one that moves to another table is decided when that is done.
        if !present && down == Some(true) && address.0.is_ipv6() {
            return;
        }
        if let Some(pair) = self.pairs.borrow_mut().get_mut(&phy) {
            pair.addresses.retain(|a| *a != address);
            if present {
                pair.addresses.push(address);
            } else {
                pair.lost.remove(&address);
            }
        }
        self.warn(phy, "address of its image", self.set_address(phy, address, present));
    }

    /// Gives an interface an address that Linux says it has, or takes it away. Of an interface that Linux has put into a VRF no
    /// configuration has it: Linux says so again.
    pub(super) fn set_address(
        &self,
        phy: SwIfIndex,
        (address, len): (IpAddr, u8),
        present: bool,
    ) -> Result<(), String> {
        let Some(control) = self.control.upgrade() else { return Ok(()) };
        let in_vrf = self.pairs.borrow().get(&phy).is_some_and(|pair| pair.vrf.is_some());
        let changed = match IpPrefix::new(address, len).map_err(|e| e.to_string())? {
            IpPrefix::Ip4(prefix) => {
                let ip4 = control.get::<Ip4>().map_err(|e| e.to_string())?;
                let change = match (present, ip4.addresses(phy).contains(&prefix)) {
                    (true, false) if in_vrf => Some(ip4.add_learnt(phy, prefix)),
                    (true, false) => Some(ip4.add_address(phy, prefix)),
                    (false, true) => Some(ip4.del_address(phy, prefix)),
                    _ => None,
                };
                change.transpose().map_err(|e| e.to_string())?.is_some()
            }
            IpPrefix::Ip6(prefix) => {
                let ip6 = control.get::<Ip6>().map_err(|e| e.to_string())?;
                let change = match (present, ip6.addresses(phy).contains(&prefix)) {
                    (true, false) => Some(ip6.add_address(phy, prefix)),
                    (false, true) => Some(ip6.del_address(phy, prefix)),
                    _ => None,
                };
                let changed = change.transpose().map_err(|e| e.to_string())?.is_some();
                if changed && present && in_vrf {
                    ip6.set_learnt(phy, prefix.addr());
                }
                changed
            }
        };
        let mut brought = present;
        if let Some(pair) = self.pairs.borrow_mut().get_mut(&phy) {
            if !present {
                pair.from_linux.remove(&(address, len));
            } else if changed {
                pair.from_linux.insert((address, len));
            }
            brought = pair.from_linux.contains(&(address, len));
        }
        self.mark_brought(phy, (address, len), brought);
        Ok(())
    }

    fn hear_neighbor(
        &self,
        netns: &Option<String>,
        told: EventOrigin,
        heard: (u32, IpAddr),
        mac: Option<MacAddress>,
        by_operator: bool,
    ) {
        let (host_index, address) = heard;
        let Some(phy) = self.phy_of(netns, host_index).filter(|_| !address.is_multicast()) else { return };
        let known = self.with(netns, |mirror| {
            mirror.seen.iter_mut().for_each(|seen| seen.neighbors.extend([heard]));
            if mac.is_none() {
                return mirror.neighbors.remove(&heard);
            }
            let is_new = mirror.neighbors.insert(heard);
            if is_new && mirror.watch.is_check(told) {
                mirror.watch.note(Subject::Neighbor(heard.0, heard.1), Difference::Missing);
            }
            !is_new
        });
        let Some(control) = self.control.upgrade() else { return };
        let family = Family::of(address);
        let Ok(neighbours) = Families::of(&control).get(family) else { return };
        let done = match mac {
            Some(mac) => {
                let origin = if by_operator { Origin::Static } else { Origin::Dynamic };
                neighbours.set_many((phy, address), mac, 1, origin, FibEntry::Wanted)
            }
            // One that only this router knows is its own business.
            None if known == Some(true) => neighbours.remove_many((phy, address), 1),
            None => return,
        };
        // It may have aged here before.
        if mac.is_some() {
            self.warn(phy, "neighbour of its image", done.map_err(|e| e.to_string()));
        }
    }

    /// Takes away what the kernel has not named.
    fn sweep(&self, netns: &Option<String>) {
        let gone = self.with(netns, |mirror| {
            let seen = mirror.seen.take()?;
            let links: Vec<_> =
                mirror.links.keys().filter(|index| !seen.links.contains(index)).copied().collect();
            let addresses: Vec<_> = mirror.addresses.difference(&seen.addresses).copied().collect();
            let neighbors: Vec<_> = mirror.neighbors.difference(&seen.neighbors).copied().collect();
            let next_hops: Vec<_> =
                mirror.next_hops.ids().filter(|id| !seen.next_hops.contains(id)).collect();
            let subjects = (addresses.iter().map(|(on, address)| Subject::Address(*on, *address)))
                .chain(neighbors.iter().map(|(on, address)| Subject::Neighbor(*on, *address)))
                .chain(next_hops.iter().map(|id| Subject::NextHop(*id)));
            subjects.for_each(|subject| mirror.watch.note(subject, Difference::Gone));
            let routes = Unnamed(mirror.watch.check());
            let (since, are_few) = (seen.routes_since, mirror.routes.are_few());
            Some((links, addresses, neighbors, next_hops, (routes, since, are_few)))
        });
        let Some((links, addresses, neighbors, next_hops, routes)) = gone.flatten() else { return };
        for gone in links {
            self.hear_gone(netns, gone);
        }
        for gone in addresses {
            self.hear_address(netns, EventOrigin::Listed, gone, false);
        }
        for gone in neighbors {
            self.hear_neighbor(netns, EventOrigin::Listed, gone, None, false);
        }
        let (unnamed, since, are_few) = routes;
        self.change_told_before(netns, unnamed, since, are_few);
        for id in next_hops {
            self.hear_next_hop(netns, EventOrigin::Listed, id, None);
        }
    }

    /// What this router can do with a way of a namespace, for packets of a family that are looked up in this table of the
    /// kernel; nothing if it leaves by no image and no VRF.
    pub fn paths_of(&self, netns: &Option<String>, of: (Family, u32), way: &HostWay) -> Vec<Path> {
        match way {
            HostWay::Blackhole => vec![Via::Drop.into()],
            HostWay::Unreachable => vec![Via::Unreachable.into()],
            HostWay::Prohibit => vec![Via::Prohibit.into()],
            HostWay::Via(hops) => {
                let path = |hop: &shoal_interface::HostPath| {
                    let weight = hop.weight.max(1);
                    let Some(interface) = self.phy_of(netns, hop.host_index) else {
                        // Packets that are sent into a VRF are looked up there, whatever the next hop.
                        let via = self.lookup_by(netns, of, hop.host_index)?;
                        return Some(Path::from(via).weight(weight));
                    };
                    let source = match of.0 {
                        Family::Ip4 => IpAddr::from([0; 4]),
                        Family::Ip6 => IpAddr::from([0; 16]),
                    };
                    let via = match hop.next_hop {
                        Some(next_hop) => Via::NextHop { interface, next_hop },
                        None => Via::Attached { interface, source },
                    };
                    Some(Path::from(via).weight(weight))
                };
                hops.iter().filter_map(path).collect()
            }
        }
    }

    /// Gives the forwarding table the best route of a prefix, or takes the last one away; without one that can be used the
    /// prefix is kept pending.
    pub(super) fn decide(&self, netns: &Option<String>, key: Key) {
        let is_installed = self.install(netns, key);
        self.with(netns, |mirror| {
            if !is_installed && mirror.routes.get(&key).is_some() {
                mirror.pending.insert(key)
            } else {
                mirror.pending.remove(&key)
            }
        });
    }

    /// The ways of a prefix's routes, the lowest metric first: whether a routing protocol made it, the way, and the buckets of its
    /// resilient group.
    fn ways(&self, netns: &Option<String>, key: &Key) -> Vec<(bool, HostWay, Option<u16>)> {
        let of = |mirror: &mut Mirror| {
            let of_route = |route: &HostRoute| {
                let buckets = route.next_hop_id.and_then(|id| mirror.next_hops.buckets(id));
                (route.learnt(), mirror.way(route).into_owned(), buckets)
            };
            mirror.routes.get(key).map(|all| all.iter().map(of_route).collect())
        };
        self.with(netns, of).flatten().unwrap_or_default()
    }

    /// Does that; whether the forwarding table has the prefix then.
    fn install(&self, netns: &Option<String>, key: Key) -> bool {
        let (table, (address, len)) = key;
        let (family, Ok(prefix)) = (Family::of(address), IpPrefix::new(address, len)) else { return false };
        let Some(fib) = self.control.upgrade().and_then(|control| control.get::<Fib>().ok()) else {
            return false;
        };
        let usable = |(learnt, way, buckets): (bool, HostWay, Option<u16>)| {
            let paths = resilient(self.paths_of(netns, (family, table), &way), buckets);
            (!paths.is_empty()).then_some((learnt, paths))
        };
        let best = self.ways(netns, &key).into_iter().find_map(usable);
        let id = self.table_in(netns, family, table);
        let installed = |mirror: &mut Mirror| mirror.routes.known(&key).and_then(|known| known.installed);
        let before = self.with(netns, installed).flatten();
        let stays = before.is_some_and(|before| before.id == id);
        let mut now = None;
        if let Some((learnt, paths)) = &best {
            let source = if *learnt { Source::LcpRtDynamic } else { Source::LcpRt };
            let index = if stays { fib.index_of(family, id) } else { self.hold(netns, &fib, (family, id)) };
            match index {
                Err(e) => tracing::warn!("linux-cp: table {id} of Linux not taken over: {e}"),
                Ok(index) => match fib.add(index, prefix, source, paths) {
                    Ok(()) => now = Some(Installed { id, source }),
                    Err(e) => {
                        tracing::warn!("linux-cp: route {prefix} of Linux not taken over: {e}");
                        if !stays {
                            self.let_go(netns, &fib, (family, id));
                        }
                    }
                },
            }
        }
        if now != before {
            self.with(netns, |mirror| mirror.routes.set_installed(&key, now));
        }
        let Some(before) = before.filter(|before| Some(*before) != now) else { return now.is_some() };
        let taken =
            fib.index_of(family, before.id).and_then(|index| fib.remove(index, prefix, before.source));
        if let Err(e) = taken {
            tracing::debug!("linux-cp: route {prefix} of Linux: {e}");
        }
        // The table is needed once less, unless the route is there by another source.
        if now.is_none_or(|now| now.id != before.id) {
            self.let_go(netns, &fib, (family, before.id));
        }
        self.give_way_to_others(netns, key, before);
        now.is_some()
    }

    /// A namespace takes a prefix out of a table, where another one may have it, too: that one's is there from now on.
    pub(super) fn give_way_to_others(&self, netns: &Option<String>, (table, prefix): Key, gone: Installed) {
        let others: Vec<(Option<String>, Key)> = {
            let mirrors = self.mirrors.borrow();
            if mirrors.len() < 2 {
                return;
            }
            let keys = [(MAIN, prefix), (gone.id, prefix), (table, prefix)];
            let has = |mirror: &Mirror, key: &Key| {
                mirror
                    .routes
                    .known(key)
                    .and_then(|known| known.installed)
                    .is_some_and(|there| there.id == gone.id)
            };
            let of = |(other, mirror): (&Option<String>, &Mirror)| {
                let key = keys.iter().find(|key| has(mirror, key))?;
                (other != netns).then(|| (other.clone(), *key))
            };
            mirrors.iter().filter_map(of).collect()
        };
        for (other, key) in others {
            self.decide(&other, key);
        }
    }
}
