//! Path lists: the paths of a route, shared by all entries that have the same ones.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_adj::AdjIndex;
use shoal_wire::Ip4Prefix;

use crate::resolve::Target;
use crate::{FibIndex, Path, Via};

/// A path list's number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct ListId(pub u32);

/// A next hop that is looked up, in the table it is looked up in.
pub(crate) type Tracked = (FibIndex, Ipv4Addr);

/// One path list.
pub(crate) struct List {
    /// Sorted, so that the same paths in another order are the same list; first come those of the lowest
    /// preference.
    pub paths: Rc<[Path]>,
    pub users: usize,
    /// What it resolves to now, and the adjacency for that, which it holds a lock on.
    pub target: Target,
    pub adj: AdjIndex,
    /// The entries this list decides; kept for recursive lists only, the others' adjacency never changes.
    pub entries: HashSet<(FibIndex, Ip4Prefix)>,
    /// The next hops that are covered by an entry this list decides.
    pub followers: BTreeSet<Tracked>,
}

impl List {
    /// The next hops it looks up.
    pub fn tracked(paths: &[Path]) -> BTreeSet<Tracked> {
        let next_hop = |p: &Path| match p.via {
            Via::Recursive { next_hop, fib } => Some((fib, next_hop)),
            _ => None,
        };
        paths.iter().filter_map(next_hop).collect()
    }

    pub fn is_recursive(&self) -> bool {
        self.paths.iter().any(|p| matches!(p.via, Via::Recursive { .. }))
    }
}

/// All path lists.
#[derive(Default)]
pub(crate) struct Lists {
    slots: Vec<Option<List>>,
    free: Vec<ListId>,
    by_paths: HashMap<Rc<[Path]>, ListId>,
}

impl Lists {
    pub fn find(&self, paths: &[Path]) -> Option<ListId> {
        self.by_paths.get(paths).copied()
    }

    pub fn get(&self, id: ListId) -> Option<&List> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    pub fn get_mut(&mut self, id: ListId) -> Option<&mut List> {
        self.slots.get_mut(id.0 as usize)?.as_mut()
    }

    /// A new list without users that leads nowhere yet.
    pub fn create(&mut self, paths: Rc<[Path]>) -> ListId {
        let list = List {
            paths: Rc::clone(&paths),
            users: 0,
            target: Target::NoRoute,
            adj: AdjIndex::NONE,
            entries: HashSet::new(),
            followers: BTreeSet::new(),
        };
        let id = self.free.pop().unwrap_or(ListId(self.slots.len() as u32));
        match self.slots.get_mut(id.0 as usize) {
            Some(slot) => *slot = Some(list),
            None => self.slots.push(Some(list)),
        }
        self.by_paths.insert(paths, id);
        id
    }

    pub fn remove(&mut self, id: ListId) -> Option<List> {
        let list = self.slots.get_mut(id.0 as usize)?.take()?;
        self.by_paths.remove(&list.paths);
        self.free.push(id);
        Some(list)
    }

    pub fn iter(&self) -> impl Iterator<Item = (ListId, &List)> {
        (0u32..).map(ListId).zip(&self.slots).filter_map(|(id, slot)| Some((id, slot.as_ref()?)))
    }
}
