//! From path lists to what forwards.
//!
//! A list's recursive path leads through the list that decides the entry which covers its next hop. Each list keeps
//! what it leads to, so one is resolved from those it leads through without going further. A change concerns the
//! lists it happens to and whatever leads through them; these are found first and resolved in order, each after those
//! it leads through. Lists that lead through each other in a circle have no such order: their paths along the circle
//! lead nowhere, as VPP has it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_adj::{AdjIndex, AdjKind, Family, Link, MOST_BUCKETS, Member};
use shoal_buffer::SwIfIndex;
use shoal_interface::IfFlags;
use shoal_wire::IpPrefix;

use crate::change::State;
use crate::list::{List, ListId, Tracked};
use crate::{FibError, FibIndex, PathState, Via};

/// One thing that forwards.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Target {
    NoRoute,
    Special(AdjKind),
    Lookup(FibIndex),
    SourceLookup(FibIndex),
    Neighbour(SwIfIndex, IpAddr),
    /// The same, for packets up to a length.
    Capped(SwIfIndex, IpAddr, u16),
    Glean(SwIfIndex, IpAddr),
    Broadcast(SwIfIndex),
    ReceivedBy(SwIfIndex),
    Bridged(SwIfIndex),
    Node(&'static str),
}

/// A target and its share.
pub(crate) type WeightedTarget = (Target, u64);

/// Where a next hop is that an entry covers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Place {
    /// Behind this neighbour.
    Behind(SwIfIndex, IpAddr),
    /// On this link.
    On(SwIfIndex),
}

/// A place and its share.
pub(crate) type WeightedPlace = (Place, u64);

/// A next hop that somebody looks up.
#[derive(Default)]
pub(crate) struct Tracker {
    /// The longest entry that covers it, and the list that decides there.
    pub cover: Option<(IpPrefix, ListId)>,
    /// The lists with a path to it.
    pub users: BTreeSet<ListId>,
}

/// What was found of a list.
#[derive(Default)]
struct ListResolution {
    ways: Vec<WeightedTarget>,
    led: [Vec<WeightedPlace>; 2],
    looped: bool,
}

/// The shares of a path's weight, so that small ones are still told apart.
const UNIT: u128 = 1 << 20;

/// Adds up shares of the same thing; keeps as many as a balance can have.
fn add<T: Ord + Copy>(all: &mut BTreeMap<T, u64>, what: T, weight: u128) {
    if let Some(sum) = all.get_mut(&what) {
        *sum = sum.saturating_add(weight as u64);
    } else if all.len() < MOST_BUCKETS {
        all.insert(what, weight.max(1) as u64);
    }
}

/// One of several that lead through each other, and how far a search for circles has come with it.
#[derive(Default)]
struct CycleSearch {
    order: usize,
    low: usize,
    /// Covers still to be looked at.
    next: usize,
    on_stack: bool,
}

impl State {
    /// The lists that a list's recursive paths lead through.
    fn covers(&self, id: ListId) -> Vec<ListId> {
        let Some(list) = self.lists.get(id) else { return Vec::new() };
        let cover = |path: &crate::Path| self.cover_list(path.via);
        list.paths().iter().filter_map(cover).collect()
    }

    fn cover_list(&self, via: Via) -> Option<ListId> {
        let (Via::Recursive { next_hop, fib } | Via::PathMtu { peer: next_hop, fib, .. }) = via else {
            return None;
        };
        self.trackers.get(&(fib, next_hop))?.cover.map(|(_, list)| list)
    }

    /// Resolves lists again, and all that lead through them, and points their adjacencies to what was found.
    pub(crate) fn renew(&mut self, changed: Vec<ListId>) {
        if changed.is_empty() {
            return;
        }
        let concerned = self.dependants(changed);
        for circle in self.in_order(&concerned) {
            let members: HashSet<ListId> = circle.iter().copied().collect();
            for id in &circle {
                let found = self.find(*id, &members);
                self.settle(*id, found);
            }
        }
    }

    /// These lists and whatever leads through them.
    fn dependants(&self, mut open: Vec<ListId>) -> HashSet<ListId> {
        let mut seen = HashSet::new();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            if let Some(list) = self.lists.get(id) {
                let users =
                    list.followers.iter().filter_map(|at| self.trackers.get(at)).flat_map(|t| &t.users);
                open.extend(users.copied());
            }
        }
        seen
    }

    /// Circles of lists that lead through each other (most are of one list), each after those it leads through:
    /// Tarjan's algorithm, without recursion, because a chain may be long.
    fn in_order(&self, among: &HashSet<ListId>) -> Vec<Vec<ListId>> {
        let mut visits: HashMap<ListId, CycleSearch> = HashMap::new();
        let (mut circles, mut stack) = (Vec::new(), Vec::new());
        let mut roots: Vec<ListId> = among.iter().copied().collect();
        roots.sort_unstable();
        for root in roots {
            if visits.contains_key(&root) {
                continue;
            }
            let mut way = vec![(root, self.covers(root))];
            Self::enter(root, &mut visits, &mut stack);
            while let Some((id, covers)) = way.last() {
                let id = *id;
                let Some(visit) = visits.get_mut(&id) else { break };
                if let Some(cover) = covers.get(visit.next).copied() {
                    visit.next += 1;
                    match visits.get(&cover) {
                        _ if !among.contains(&cover) => {}
                        None => {
                            Self::enter(cover, &mut visits, &mut stack);
                            way.push((cover, self.covers(cover)));
                        }
                        Some(seen) if seen.on_stack => {
                            let low = seen.order;
                            Self::lower(&mut visits, id, low);
                        }
                        Some(_) => {}
                    }
                    continue;
                }
                let (order, low) = (visit.order, visit.low);
                way.pop();
                if let Some((above, _)) = way.last() {
                    Self::lower(&mut visits, *above, low);
                }
                if order == low {
                    let from = stack.iter().rposition(|other| *other == id).unwrap_or(0);
                    let circle = stack.split_off(from);
                    for member in &circle {
                        if let Some(visit) = visits.get_mut(member) {
                            visit.on_stack = false;
                        }
                    }
                    circles.push(circle);
                }
            }
        }
        circles
    }

    fn enter(id: ListId, visits: &mut HashMap<ListId, CycleSearch>, stack: &mut Vec<ListId>) {
        let order = visits.len();
        visits.insert(id, CycleSearch { order, low: order, next: 0, on_stack: true });
        stack.push(id);
    }

    fn lower(visits: &mut HashMap<ListId, CycleSearch>, id: ListId, low: usize) {
        if let Some(visit) = visits.get_mut(&id) {
            visit.low = visit.low.min(low);
        }
    }

    /// Where a list leads, from where those lead that it leads through; `circle` is of those that lead back to it.
    fn find(&self, id: ListId, circle: &HashSet<ListId>) -> ListResolution {
        let mut found = ListResolution::default();
        let Some(list) = self.lists.get(id) else { return found };
        for (live, led) in [true, false].into_iter().zip(0..2usize) {
            let mut ways: BTreeMap<Target, u64> = BTreeMap::new();
            let mut places: BTreeMap<Place, u64> = BTreeMap::new();
            let (mut best_way, mut best_place) = (None, None);
            for path in list.paths().iter() {
                // Sorted by preference: the first that leads somewhere bars those of a higher value.
                let (way_open, place_open) = (
                    best_way.is_none_or(|p| p == path.preference),
                    best_place.is_none_or(|p| p == path.preference),
                );
                if !way_open && !place_open {
                    break;
                }
                let weight = u128::from(path.weight) * UNIT;
                if let Via::PathMtu { peer, mtu, .. } = path.via {
                    let shares = self.without_path_mtu(path.via);
                    let each =
                        shares.iter().map(|(target, share)| (capped(*target, peer, mtu), u128::from(*share)));
                    each.for_each(|(target, share)| add(&mut ways, target, share));
                    continue;
                }
                let through = self.through(path.via, live, circle, &mut found.looped);
                let sum: u128 = through.iter().map(|(_, w)| u128::from(*w)).sum();
                for (place, share) in through {
                    let weight = weight * u128::from(share) / sum.max(1);
                    if place_open {
                        add(&mut places, place, weight);
                        best_place = Some(path.preference);
                    }
                    if way_open {
                        add(&mut ways, self.target(place, list.link()), weight);
                        best_way = Some(path.preference);
                    }
                }
                if way_open && let Some(target) = self.end(path.via, list.link(), live) {
                    add(&mut ways, target, weight);
                    best_way = Some(path.preference);
                }
                if place_open && let Some(place) = self.place(path.via, live) {
                    add(&mut places, place, weight);
                    best_place = Some(path.preference);
                }
            }
            if found.ways.is_empty() {
                found.ways = ways.into_iter().collect();
            }
            if let Some(slot) = found.led.get_mut(led) {
                *slot = places.into_iter().collect();
            }
        }
        found
    }

    /// Where packets to a host go when the length of the way there is not known.
    fn without_path_mtu(&self, via: Via) -> &[WeightedTarget] {
        let cover = self.cover_list(via).and_then(|id| self.lists.get(id));
        cover.map_or(&[], |list| list.ways.as_slice())
    }

    /// Where a recursive path's next hop is.
    fn through(
        &self,
        via: Via,
        live: bool,
        circle: &HashSet<ListId>,
        looped: &mut bool,
    ) -> Vec<WeightedPlace> {
        let (Via::Recursive { next_hop, .. }, Some(cover)) = (via, self.cover_list(via)) else {
            return Vec::new();
        };
        if circle.contains(&cover) {
            *looped = true;
            return Vec::new();
        }
        if self.failed.contains(&(None, next_hop)) {
            return Vec::new();
        }
        let Some(list) = self.lists.get(cover) else { return Vec::new() };
        let [up, all] = &list.led;
        let behind = |(place, weight): &WeightedPlace| match place {
            Place::On(interface) => (Place::Behind(*interface, next_hop), *weight),
            behind @ Place::Behind(..) => (*behind, *weight),
        };
        let led = if live { up } else { all };
        let is_up = |(place, _): &WeightedPlace| {
            !live || matches!(place, Place::Behind(i, a) if self.is_up(*i, Some(*a)))
        };
        led.iter().map(behind).filter(is_up).collect()
    }

    /// Where a next hop is that an entry with this path covers. One that is this router, or that is thrown away,
    /// reaches no neighbour.
    fn place(&self, via: Via, live: bool) -> Option<Place> {
        let (interface, place, next_hop) = match via {
            Via::NextHop { interface, next_hop } => {
                (interface, Place::Behind(interface, next_hop), Some(next_hop))
            }
            Via::Attached { interface, .. } => (interface, Place::On(interface), None),
            _ => return None,
        };
        (!live || self.is_up(interface, next_hop)).then_some(place)
    }

    fn target(&self, place: Place, link: Link) -> Target {
        match place {
            Place::Behind(interface, next_hop) => self.neighbour(interface, next_hop, link),
            Place::On(interface) => self.neighbour(interface, unspecified(link), link),
        }
    }

    /// What a path that is not recursive leads to.
    fn end(&self, via: Via, link: Link, live: bool) -> Option<Target> {
        let target = match via {
            Via::Recursive { .. } | Via::PathMtu { .. } => return None,
            Via::NextHop { interface, next_hop } => self.neighbour(interface, next_hop, link),
            Via::Attached { interface, source } if self.has_neighbours(interface) => {
                let fits = Link::from(Family::of(source)) == link;
                Target::Glean(interface, if fits { source } else { unspecified(link) })
            }
            Via::Attached { interface, .. } => Target::Neighbour(interface, unspecified(link)),
            Via::Broadcast { interface } => Target::Broadcast(interface),
            Via::InterfaceRx { interface } => Target::ReceivedBy(interface),
            Via::Dvr { interface } => Target::Bridged(interface),
            Via::Node(node) => Target::Node(node),
            Via::Local { .. } => Target::Special(AdjKind::Local),
            Via::Lookup(fib) => Target::Lookup(fib),
            Via::SourceLookup(fib) => Target::SourceLookup(fib),
            Via::Punt => Target::Special(AdjKind::Punt),
            Via::NoRoute => Target::NoRoute,
            Via::Drop => Target::Special(AdjKind::Drop),
            Via::Unreachable => Target::Special(AdjKind::Unreachable),
            Via::Prohibit => Target::Special(AdjKind::Prohibit),
        };
        let next_hop = if let Via::NextHop { next_hop, .. } = via { Some(next_hop) } else { None };
        let decides = !matches!(via, Via::Local { .. });
        let interface = via.interface().filter(|_| live && decides);
        interface.is_none_or(|interface| self.is_up(interface, next_hop)).then_some(target)
    }

    /// On a link between two there is one neighbour, whatever its address.
    fn neighbour(&self, interface: SwIfIndex, next_hop: IpAddr, link: Link) -> Target {
        let next_hop = if self.has_neighbours(interface) { next_hop } else { unspecified(link) };
        Target::Neighbour(interface, next_hop)
    }

    /// Whether there are stations on an interface's link that are told apart by their addresses.
    pub(crate) fn has_neighbours(&self, interface: SwIfIndex) -> bool {
        let flags = self.interfaces.data(interface).map(|data| data.flags());
        flags.is_ok_and(|flags| flags.has(IfFlags::ETHERNET) && !flags.has(IfFlags::POINT_TO_POINT))
    }

    /// Whether packets can be sent there, as far as anybody knows.
    pub(crate) fn is_up(&self, interface: SwIfIndex, next_hop: Option<IpAddr>) -> bool {
        let up = IfFlags::ADMIN_UP.set(IfFlags::LINK_UP, true);
        self.interfaces.data(interface).is_ok_and(|d| d.flags().all(up))
            && next_hop.is_none_or(|next_hop| {
                // A route that has no other way leads to it all the same: its adjacency is closed.
                !self.down.contains(&(interface, next_hop))
                    && !self.failed.contains(&(Some(interface), next_hop))
            })
    }

    /// Points a list's adjacency to what was found.
    fn settle(&mut self, id: ListId, found: ListResolution) {
        let ListResolution { ways, led, looped } = found;
        let Some(list) = self.lists.get_mut(id) else { return };
        list.led = led;
        list.state = match (ways.is_empty(), looped) {
            (false, _) => PathState::Resolved,
            (true, true) => PathState::Loop,
            (true, false) => PathState::Unresolved,
        };
        if list.ways == ways || List::is_plain(list.paths()) {
            list.ways = ways;
            return;
        }
        let (own, link) = (list.adj, list.link());
        let pointed = self.lock_all(&ways, link).and_then(|members| {
            self.adjacencies.set_members(own, &members).map_err(|e| {
                self.unlock_all(&members);
                e.into()
            })
        });
        if let Err(e) = pointed {
            tracing::warn!("routes keep their old way: {e}");
            return;
        }
        if let Some(list) = self.lists.get_mut(id) {
            list.ways = ways;
        }
    }

    /// Resolves a list that was just made in the place of another one, if there was one, and gives it its adjacency.
    pub(crate) fn begin(&mut self, id: ListId, before: Option<ListId>) -> Result<(), FibError> {
        let before = before.map(|before| self.adj_of(before));
        let mut found = self.find(id, &HashSet::from([id]));
        let Some(list) = self.lists.get(id) else { return Ok(()) };
        let (paths, link) = (list.paths().clone(), list.link());
        let adj = match found.ways.as_slice() {
            [(target, _)] if List::is_plain(&paths) => self.lock(*target, link)?,
            _ => {
                let members = self.lock_all(&found.ways, link)?;
                self.adjacencies.create_own(&members, List::spread(&paths), before).inspect_err(|_| {
                    self.unlock_all(&members);
                })?
            }
        };
        if let Some(list) = self.lists.get_mut(id) {
            list.adj = adj;
            list.ways = std::mem::take(&mut found.ways);
        }
        let ways = self.lists.get(id).map(|l| l.ways.clone()).unwrap_or_default();
        self.settle(id, ListResolution { ways, ..found });
        Ok(())
    }

    fn lock_all(&self, ways: &[WeightedTarget], link: Link) -> Result<Vec<Member>, FibError> {
        let mut members: Vec<Member> = Vec::with_capacity(ways.len());
        for (target, weight) in ways {
            match self.lock(*target, link) {
                Ok(adj) => members.push(Member { adj, weight: *weight }),
                Err(e) => {
                    self.unlock_all(&members);
                    return Err(e);
                }
            }
        }
        Ok(members)
    }

    /// The adjacency for a target, locked once more.
    fn lock(&self, target: Target, link: Link) -> Result<AdjIndex, FibError> {
        Ok(match target {
            Target::NoRoute => AdjIndex::NONE,
            Target::Special(kind) => self.adjacencies.special(kind)?,
            Target::Lookup(fib) => self.adjacencies.lookup_in(link, fib.0)?,
            Target::SourceLookup(fib) => self.adjacencies.source_lookup_in(link, fib.0)?,
            Target::Neighbour(interface, next_hop) => {
                self.adjacencies.neighbour(interface, link, next_hop)?
            }
            Target::Capped(interface, next_hop, mtu) => {
                self.adjacencies.capped(interface, link, next_hop, mtu)?
            }
            Target::Glean(interface, source) => self.adjacencies.glean(interface, source)?,
            Target::Broadcast(interface) => self.adjacencies.broadcast(interface)?,
            Target::ReceivedBy(interface) => self.adjacencies.received_by(interface, link)?,
            Target::Bridged(interface) => self.adjacencies.bridged(interface, link)?,
            Target::Node(node) => self.adjacencies.to_node(node, link)?,
        })
    }

    fn unlock_all(&self, members: &[Member]) {
        for member in members {
            self.unlock(member.adj);
        }
    }

    pub(crate) fn unlock(&self, adj: AdjIndex) {
        if adj != AdjIndex::NONE {
            self.adjacencies.unlock(adj);
        }
    }

    /// The entry that covers a next hop now.
    pub(crate) fn cover_of(&self, (fib, next_hop): Tracked) -> Option<(IpPrefix, ListId)> {
        let table = self.table(Family::of(next_hop), fib)?;
        let (prefix, slot) = table.longest(next_hop, u8::MAX)?;
        if let Some(list) = slot.route() {
            return Some((prefix, list));
        }
        // Nothing but the way's length is known of the host itself.
        let (prefix, slot) = table.longest(next_hop, prefix.len())?;
        Some((prefix, slot.route()?))
    }

    /// The next hops an entry covers, or did, may have another cover: the lists with a path to one that has.
    pub(crate) fn covers_changed(&mut self, fib: FibIndex, prefix: &IpPrefix) -> Vec<ListId> {
        let inside = self.trackers.inside(fib, prefix);
        let near = |cover: &Option<(IpPrefix, ListId)>| cover.is_none_or(|(c, _)| c.len() <= prefix.len());
        let inside: Vec<Tracked> = inside.filter(|(_, t)| near(&t.cover)).map(|(at, _)| *at).collect();
        let mut changed = Vec::new();
        for at in inside {
            let cover = self.cover_of(at);
            let Some(tracker) = self.trackers.get_mut(&at) else { continue };
            if tracker.cover == cover {
                continue;
            }
            let old = std::mem::replace(&mut tracker.cover, cover);
            changed.extend(tracker.users.iter().copied());
            self.follow(at, old, cover);
        }
        changed
    }

    fn follow(&mut self, at: Tracked, old: Option<(IpPrefix, ListId)>, new: Option<(IpPrefix, ListId)>) {
        if let Some(list) = old.and_then(|(_, id)| self.lists.get_mut(id)) {
            list.followers.remove(&at);
        }
        if let Some(list) = new.and_then(|(_, id)| self.lists.get_mut(id)) {
            list.followers.insert(at);
        }
    }

    pub(crate) fn track(&mut self, id: ListId, at: Tracked) {
        if self.trackers.get(&at).is_none() {
            let cover = self.cover_of(at);
            self.trackers.insert(at, Tracker { cover, users: BTreeSet::new() });
            self.follow(at, None, cover);
        }
        if let Some(tracker) = self.trackers.get_mut(&at) {
            tracker.users.insert(id);
        }
    }

    pub(crate) fn untrack(&mut self, id: ListId, at: Tracked) {
        let Some(tracker) = self.trackers.get_mut(&at) else { return };
        tracker.users.remove(&id);
        if tracker.users.is_empty() {
            let cover = tracker.cover;
            self.trackers.remove(&at);
            self.follow(at, cover, None);
        }
    }
}

/// The way to a host for packets up to a length. Ends and other tables are none.
fn capped(target: Target, peer: IpAddr, mtu: u16) -> Target {
    match target {
        Target::Neighbour(interface, next_hop) => Target::Capped(interface, next_hop, mtu),
        Target::Glean(interface, _) => Target::Capped(interface, peer, mtu),
        other => other,
    }
}

pub(crate) fn unspecified(link: Link) -> IpAddr {
    match link {
        Link::Ip4 => Ipv4Addr::UNSPECIFIED.into(),
        Link::Ip6 => Ipv6Addr::UNSPECIFIED.into(),
    }
}
