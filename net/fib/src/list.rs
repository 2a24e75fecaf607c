//! Path lists: the paths of a route, shared by all entries that have the same ones.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

use shoal_adj::{AdjIndex, Family, Link, Spread};
use shoal_buffer::SwIfIndex;

use crate::address::Keyed;
use crate::resolve::{WeightedPlace, WeightedTarget};
use crate::{FibIndex, Path, PathState, Via};

/// A path list's number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct ListId(pub u32);

/// A next hop that is looked up, in the table (of the next hop's family) it is looked up in.
pub(crate) type Tracked = (FibIndex, IpAddr);

/// What makes two lists the same: whose packets they carry, and where to.
#[derive(Clone)]
pub(crate) struct ListKey {
    pub family: Family,
    pub paths: Rc<[Path]>,
}

/// One path list.
pub(crate) struct List {
    pub key: ListKey,
    pub users: usize,
    /// Where it leads now: an adjacency for each, which its own one stands for, or, of a plain list, that one itself.
    pub ways: Vec<WeightedTarget>,
    pub state: PathState,
    /// What entries' leaves hold; the list has a lock on it. It stays the same as long as the list lives.
    pub adj: AdjIndex,
    /// What a next hop leads to that this list's entries cover: first what is up, then all.
    pub led: [Vec<WeightedPlace>; 2],
    /// The next hops that are covered by an entry this list decides.
    pub followers: BTreeSet<Tracked>,
}

impl List {
    /// Sorted, so that the same paths in another order are the same list; first come those of the lowest preference.
    pub fn paths(&self) -> &Rc<[Path]> {
        &self.key.paths
    }

    pub fn link(&self) -> Link {
        Link::from(self.key.family)
    }

    /// The next hops it looks up.
    pub fn tracked(paths: &[Path]) -> BTreeSet<Tracked> {
        let next_hop = |p: &Path| match p.via {
            Via::Recursive { next_hop, fib } | Via::PathMtu { peer: next_hop, fib, .. } => {
                Some((fib, next_hop))
            }
            _ => None,
        };
        paths.iter().filter_map(next_hop).collect()
    }

    /// Bytes a list of these paths takes, with its adjacency, its place among the lists and what follows its next hops:
    /// rather too many.
    pub fn bytes(paths: &[Path]) -> usize {
        768 + size_of_val(paths) * 4
    }

    /// Whether it always leads to the same adjacency, and so shares that with others.
    pub fn is_plain(paths: &[Path]) -> bool {
        matches!(paths, [only] if !matches!(only.via, Via::Recursive { .. } | Via::PathMtu { .. }))
    }

    pub fn spread(paths: &[Path]) -> Spread {
        paths.iter().map(|p| p.spread).max().unwrap_or_default()
    }
}

/// All path lists.
#[derive(Default)]
pub(crate) struct Lists {
    slots: Vec<Option<List>>,
    free: Vec<ListId>,
    /// By family and paths.
    by_paths: [HashMap<Rc<[Path]>, ListId, Keyed>; 2],
    /// By where paths lead.
    by_place: BTreeSet<(Place, ListId)>,
}

/// Where a path leads: an interface, or none if its next hop is looked up, and a next hop, if it names one. Those of an interface
/// stand side by side, and those of one next hop there, too: of a thousand neighbours that fail together each is found at once.
type Place = (Option<SwIfIndex>, Option<IpAddr>);

/// The address that stands behind all others.
const LAST: IpAddr = IpAddr::V6(Ipv6Addr::from_bits(u128::MAX));

/// The places that paths name.
fn places(paths: &[Path]) -> impl Iterator<Item = Place> {
    paths.iter().filter_map(|path| match path.via {
        Via::NextHop { interface, next_hop } => Some((Some(interface), Some(next_hop))),
        Via::Recursive { next_hop, .. } => Some((None, Some(next_hop))),
        via => via.interface().map(|interface| (Some(interface), None)),
    })
}

impl Lists {
    fn of(&mut self, family: Family) -> &mut HashMap<Rc<[Path]>, ListId, Keyed> {
        let [ip4, ip6] = &mut self.by_paths;
        match family {
            Family::Ip4 => ip4,
            Family::Ip6 => ip6,
        }
    }

    pub fn find(&self, family: Family, paths: &[Path]) -> Option<ListId> {
        let [ip4, ip6] = &self.by_paths;
        let all = match family {
            Family::Ip4 => ip4,
            Family::Ip6 => ip6,
        };
        all.get(paths).copied()
    }

    pub fn get(&self, id: ListId) -> Option<&List> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    /// The first one of a number from `from` on.
    pub fn from(&self, from: ListId) -> Option<(ListId, &List)> {
        let mut slots = self.slots.iter().enumerate().skip(from.0 as usize);
        slots.find_map(|(at, slot)| slot.as_ref().map(|list| (ListId(at as u32), list)))
    }

    pub fn get_mut(&mut self, id: ListId) -> Option<&mut List> {
        self.slots.get_mut(id.0 as usize)?.as_mut()
    }

    /// Whether entries could not name another one.
    pub fn is_full(&self) -> bool {
        self.free.is_empty() && self.slots.len() > ListId::MOST.0 as usize
    }

    /// A new list without users that leads nowhere yet.
    pub fn create(&mut self, key: ListKey) -> ListId {
        let list = List {
            key: key.clone(),
            users: 0,
            ways: Vec::new(),
            state: PathState::Unresolved,
            adj: AdjIndex::NONE,
            led: Default::default(),
            followers: BTreeSet::new(),
        };
        let id = self.free.pop().unwrap_or(ListId(self.slots.len() as u32));
        match self.slots.get_mut(id.0 as usize) {
            Some(slot) => *slot = Some(list),
            None => self.slots.push(Some(list)),
        }
        self.by_place.extend(places(&key.paths).map(|place| (place, id)));
        self.of(key.family).insert(key.paths, id);
        id
    }

    pub fn remove(&mut self, id: ListId) -> Option<List> {
        let list = self.slots.get_mut(id.0 as usize)?.take()?;
        self.of(list.key.family).remove(&list.key.paths);
        for place in places(&list.key.paths) {
            self.by_place.remove(&(place, id));
        }
        self.free.push(id);
        Some(list)
    }

    /// The lists with a path that names an interface.
    pub fn naming(&self, interface: SwIfIndex) -> impl Iterator<Item = (ListId, &List)> {
        let (first, last) = ((Some(interface), None), (Some(interface), Some(LAST)));
        let ids: BTreeSet<ListId> = self.at(first, last).collect();
        ids.into_iter().filter_map(|id| Some((id, self.get(id)?)))
    }

    /// The lists with a path that leads to a next hop on an interface, or whose next hop on the interface is the packet's own.
    pub fn leading_to(&self, interface: SwIfIndex, next_hop: IpAddr) -> BTreeSet<ListId> {
        let (any, this) = ((Some(interface), None), (Some(interface), Some(next_hop)));
        self.at(any, any).chain(self.at(this, this)).collect()
    }

    /// The lists with a path that looks this next hop up.
    pub fn looking_up(&self, next_hop: IpAddr) -> BTreeSet<ListId> {
        let this = (None, Some(next_hop));
        self.at(this, this).collect()
    }

    fn at(&self, first: Place, last: Place) -> impl Iterator<Item = ListId> + '_ {
        self.by_place.range((first, ListId(0))..=(last, ListId(u32::MAX))).map(|(_, id)| *id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (ListId, &List)> {
        (0u32..).map(ListId).zip(&self.slots).filter_map(|(id, slot)| Some((id, slot.as_ref()?)))
    }
}
