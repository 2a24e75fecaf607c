//! Path lists that no prefix has: those of policies. They are resolved and followed as those of entries are.

use std::collections::BTreeMap;
use std::rc::Rc;

use shoal_adj::{AdjIndex, Family};

use super::Fib;
use crate::list::ListId;
use crate::{FibError, Path, PathState};

/// A path list that somebody holds. It is given back with [`Fib::release`].
#[derive(Debug, PartialEq, Eq)]
pub struct HeldPathList(ListId);

/// What a held path list is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldPaths {
    /// Its paths.
    pub paths: Rc<[Path]>,
    /// Whether they lead anywhere.
    pub state: PathState,
    /// The adjacency that packets take. It stays the same as long as the list is held; what is behind it follows the
    /// paths.
    pub adj: AdjIndex,
}

impl Fib {
    /// Resolves paths for a family's packets and follows them until they are given back.
    ///
    /// # Errors
    /// As [`Fib::add`].
    pub fn hold(&self, family: Family, paths: &[Path]) -> Result<HeldPathList, FibError> {
        let mut state = self.state.borrow_mut();
        let paths = state.checked(family, paths)?;
        let list = state.acquire(family, &paths)?;
        *state.held.entry(list).or_default() += 1;
        Ok(HeldPathList(list))
    }

    /// What a held list is now.
    pub fn held(&self, held: &HeldPathList) -> HeldPaths {
        let state = self.state.borrow();
        let list = state.lists.get(held.0);
        HeldPaths {
            paths: list.map_or_else(|| Rc::from([]), |l| Rc::clone(l.paths())),
            state: list.map_or(PathState::Unresolved, |l| l.state),
            adj: state.adj_of(held.0),
        }
    }

    /// Gives a held list back. Packets of this round may still take its adjacency.
    pub fn release(&self, held: HeldPathList) {
        let mut state = self.state.borrow_mut();
        let HeldPathList(list) = held;
        if let Some(count) = state.held.get_mut(&list) {
            *count -= 1;
            if *count == 0 {
                state.held.remove(&list);
            }
            state.release(list);
        }
    }
}

/// How often each list is held.
pub(crate) type Holds = BTreeMap<ListId, usize>;
