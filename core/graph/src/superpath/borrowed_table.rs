//! A feature's table, for look-ups ahead of packets.

use std::cell::RefCell;

use super::walk::Walk;
use crate::state::{StateKey, Stateful, States};

/// The thread's state of a feature, within reach of a look-up.
pub struct BorrowedTable<'g, F: Stateful> {
    states: &'g RefCell<States>,
    key: &'g StateKey<F>,
    thread: usize,
}

impl<F: Stateful> Clone for BorrowedTable<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Stateful> Copy for BorrowedTable<'_, F> {}

impl<'g, F: Stateful> BorrowedTable<'g, F> {
    pub(super) fn new(key: &'g StateKey<F>, walk: &Walk<'g>) -> Self {
        BorrowedTable { states: walk.common.states, key, thread: walk.common.thread }
    }

    #[inline(always)]
    pub(super) fn look<R>(&self, look: impl FnOnce(&mut F::State) -> R) -> R {
        match self.states.try_borrow_mut() {
            Ok(mut states) => look(states.lent(self.key, self.thread)),
            Err(_) => unreachable!("a look-up has no way to ask for another state"),
        }
    }
}
