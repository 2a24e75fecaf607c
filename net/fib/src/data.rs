//! What packets read: one trie per table.

use std::fmt;
use std::sync::Arc;

use shoal_adj::AdjIndex;
use shoal_infra::{Guard, Mtrie4, Published};

/// A table's place in the list of tables. 0 is table 0, always.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct FibIndex(pub u32);

impl FibIndex {
    /// Table 0.
    pub const DEFAULT: FibIndex = FibIndex(0);
}

impl fmt::Display for FibIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

pub(crate) type Others = Vec<Option<Arc<Mtrie4>>>;

/// All tables as packets see them. Clones are the same tables.
#[derive(Clone)]
pub struct FibTables {
    /// Most packets are looked up here, so it is reached without another load.
    pub(crate) default: Mtrie4,
    /// Tables by index; place 0 is empty.
    pub(crate) others: Arc<Published<Others>>,
}

impl FibTables {
    /// The adjacency of the longest prefix that covers `addr` (host order); [`AdjIndex::NONE`] when there is no
    /// route or no such table.
    #[inline(always)]
    pub fn lookup(&self, fib: FibIndex, addr: u32, guard: Guard<'_>) -> AdjIndex {
        match self.trie(fib, guard) {
            Some(trie) => AdjIndex(trie.lookup(addr)),
            None => AdjIndex::NONE,
        }
    }

    /// A table's trie, for staged lookups: [`Mtrie4::stage1`] over a whole frame, then the next stage. What the
    /// last stage finds is an adjacency's index. `None` when there is no such table.
    #[inline(always)]
    pub fn trie<'g>(&'g self, fib: FibIndex, guard: Guard<'g>) -> Option<&'g Mtrie4> {
        if fib == FibIndex::DEFAULT { Some(&self.default) } else { self.other(fib, guard) }
    }

    /// Table 0's trie.
    #[inline(always)]
    pub fn default_trie(&self) -> &Mtrie4 {
        &self.default
    }

    fn other<'g>(&'g self, fib: FibIndex, guard: Guard<'g>) -> Option<&'g Mtrie4> {
        self.others.load(guard).get(fib.0 as usize)?.as_deref()
    }
}
