//! Tables that may not go while a NAT uses them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use shoal_adj::Family;
use shoal_fib::{Fib, FibError, FibIndex, Source};

/// Tables that may not go, and how often each is used.
pub struct HeldTables {
    fib: Rc<Fib>,
    held: RefCell<BTreeMap<FibIndex, u32>>,
}

impl HeldTables {
    /// None yet.
    pub fn new(fib: Rc<Fib>) -> Self {
        HeldTables { fib, held: RefCell::default() }
    }

    /// The table of a VRF, made if there is none; it stays as long as it is held.
    ///
    /// # Errors
    /// There can be no such table.
    pub fn hold(&self, vrf: u32) -> Result<FibIndex, FibError> {
        let fib = self.fib.want_table(Family::Ip4, vrf, None)?;
        self.fib.lock(Family::Ip4, fib, Source::Proxy)?;
        *self.held.borrow_mut().entry(fib).or_default() += 1;
        Ok(fib)
    }

    /// The table of a VRF is used once less.
    pub fn release(&self, vrf: u32) {
        let Ok(fib) = self.fib.index_of(Family::Ip4, vrf) else { return };
        let mut all = self.held.borrow_mut();
        let Some(held) = all.get_mut(&fib) else { return };
        *held = held.saturating_sub(1);
        if *held == 0 {
            all.remove(&fib);
        }
        drop(all);
        self.fib.unlock(Family::Ip4, fib, Source::Proxy);
    }

    /// No table is used any more.
    pub fn release_all(&self) {
        for (table, times) in self.held.take() {
            (0..times).for_each(|_| self.fib.unlock(Family::Ip4, table, Source::Proxy));
        }
    }
}
