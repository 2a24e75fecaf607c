//! What packets read of IPv4 on an interface.

use std::sync::Arc;

use shoal_infra::{Guard, TwinTable};
use shoal_interface::SwIfIndex;

/// Each interface's primary address, as packets see it. Clones are the same table.
#[derive(Clone)]
pub struct Ip4IfTable(pub(super) Arc<TwinTable<u32>>);

impl Ip4IfTable {
    /// The interface's first address (host order), 0 when it has none.
    #[inline(always)]
    pub fn primary(&self, interface: SwIfIndex, guard: Guard<'_>) -> u32 {
        *self.0.load(interface.0 as usize, guard)
    }
}
