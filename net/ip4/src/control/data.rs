//! What packets read of IPv4 on an interface.

use shoal_infra::{Guard, TwinTable};
use shoal_interface::SwIfIndex;

/// Each interface's primary address, its network's mask and who lends it, as packets see them. Clones are the same table.
#[derive(Clone)]
pub struct Ip4IfTable(pub(super) TwinTable<[u32; 3]>);

impl Ip4IfTable {
    /// The interface's first address (host order), 0 when it has none.
    #[inline(always)]
    pub fn primary(&self, interface: SwIfIndex, guard: Guard<'_>) -> u32 {
        self.0.load(interface.0 as usize, guard)[0]
    }

    /// The interface that lends an unnumbered one its addresses.
    pub fn lender(&self, interface: SwIfIndex, guard: Guard<'_>) -> Option<SwIfIndex> {
        let [_, _, lender] = *self.0.load(interface.0 as usize, guard);
        lender.checked_sub(1).map(SwIfIndex)
    }

    /// Whether an address is in the network of the interface's first address.
    pub fn is_on_link(&self, interface: SwIfIndex, address: u32, guard: Guard<'_>) -> bool {
        let [own, mask, _] = *self.0.load(interface.0 as usize, guard);
        own != 0 && (own ^ address) & mask == 0
    }
}
