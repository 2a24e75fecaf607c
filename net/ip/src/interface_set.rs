//! A set of interfaces that packets ask while the control plane changes it.

use std::sync::atomic::{AtomicU64, Ordering};

use shoal_buffer::{MAX_INTERFACES, SwIfIndex};

/// A bit for each interface there can be.
pub struct InterfaceSet(Box<[AtomicU64]>);

impl Default for InterfaceSet {
    fn default() -> Self {
        InterfaceSet((0..MAX_INTERFACES.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }
}

impl InterfaceSet {
    fn place(&self, interface: SwIfIndex) -> Option<(&AtomicU64, u64)> {
        Some((self.0.get(interface.0 as usize / 64)?, 1 << (interface.0 % 64)))
    }

    /// Whether an interface is in the set.
    pub fn has(&self, interface: SwIfIndex) -> bool {
        self.place(interface).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
    }

    /// Puts an interface into the set, or takes it out.
    pub fn set(&self, interface: SwIfIndex, is_in: bool) {
        let Some((word, bit)) = self.place(interface) else { return };
        if is_in {
            word.fetch_or(bit, Ordering::AcqRel);
        } else {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_come_and_go_one_by_one() {
        let set = InterfaceSet::default();
        set.set(SwIfIndex(64), true);
        set.set(SwIfIndex(65), true);
        set.set(SwIfIndex(64), false);
        assert!(!set.has(SwIfIndex(64)) && set.has(SwIfIndex(65)) && !set.has(SwIfIndex(1)));
        // No interface, and one beyond all.
        set.set(SwIfIndex::NONE, true);
        assert!(!set.has(SwIfIndex::NONE));
    }
}
