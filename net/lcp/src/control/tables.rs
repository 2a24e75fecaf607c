//! Tables of this router that Linux has a use for: made when they are missing, and gone with their last user.
// A namespace is a key of maps, `None` for the router's own: it is handed on as it is there.
#![allow(clippy::ref_option)]

use shoal_fib::{Family, Fib, FibError, FibIndex, Source};

use super::*;

/// The kernel's main table, which is this router's table 0.
const MAIN: u32 = 254;
/// The kernel's table of its own addresses.
pub(super) const LOCAL: u32 = 255;

/// This router's table for one of the kernel's.
pub fn table_of(kernel: u32) -> u32 {
    if kernel == MAIN || kernel == LOCAL { 0 } else { kernel }
}

/// Who holds the tables.
const HOLDER: Source = Source::LcpRt;

/// How often a namespace needs each table.
pub(super) type Held = BTreeMap<(Family, u32), usize>;

impl Lcp {
    /// A namespace needs a table once more.
    pub(super) fn hold(
        &self,
        netns: &Option<String>,
        fib: &Fib,
        (family, id): (Family, u32),
    ) -> Result<FibIndex, FibError> {
        let is_held = self.with(netns, |mirror| mirror.held.contains_key(&(family, id))) == Some(true);
        let index = if is_held { fib.index_of(family, id) } else { fib.hold_table(family, id, HOLDER) }?;
        self.with(netns, |mirror| *mirror.held.entry((family, id)).or_default() += 1);
        Ok(index)
    }

    /// It needs it once less.
    pub(super) fn let_go(&self, netns: &Option<String>, fib: &Fib, (family, id): (Family, u32)) {
        let last = self.with(netns, |mirror| {
            let Some(count) = mirror.held.get_mut(&(family, id)) else { return false };
            *count -= 1;
            *count == 0 && mirror.held.remove(&(family, id)).is_some()
        });
        if last == Some(true)
            && let Ok(index) = fib.index_of(family, id)
        {
            fib.unlock(family, index, HOLDER);
        }
    }
}
