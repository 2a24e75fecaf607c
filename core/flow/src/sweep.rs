//! All flows, some at a time: deletion in bulk, and what is shown.

use crate::entry::Armed;
use crate::expiry::Expired;
use crate::key::FlowKey;
use crate::table::FlowTable;

/// How far a walk through a table has come. A new one begins at the first flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    next: u32,
}

/// What becomes of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepAction {
    /// It stays.
    Keep,
    /// It ends now.
    Remove,
    /// It stays; its timeout has become shorter, so its timer is moved.
    Rearm,
}

impl<K: FlowKey, V: Copy> FlowTable<K, V> {
    /// Shows up to `most` places to `judge`, where there are flows, and does what it says; goes on where the same `sweep` ended.
    ///
    /// Deletes in bulk without a pause: the flows of an interface that is gone, of a rule, all. Until a sweep is done, flows that
    /// it has not come to are found; a feature to which that matters keeps in its value under which version of its settings the
    /// flow was made. Each flow that is there from the first call to the last is shown once. Places are looked at in the order
    /// they lie in memory: a few clocks for one that stays, some 200 for one that goes.
    ///
    /// ```
    /// use shoal_flow::{SweepAction, FlowTable, Settings, Sweep, Tick, Timeout};
    ///
    /// let mut table = FlowTable::<[u64; 1], u32>::new(Settings::flows(100), Tick(0))?;
    /// for n in 0..100 {
    ///     table.insert([n], n as u32 % 2, Timeout::new(0), Tick(0))?;
    /// }
    /// let mut sweep = Sweep::default();
    /// let odd = |_: &[u64; 1], value: &mut u32| if *value == 1 { SweepAction::Remove } else { SweepAction::Keep };
    /// while !table.sweep(&mut sweep, 32, odd).done {
    ///     // Packets go on here.
    /// }
    /// assert_eq!(table.len(), 50);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sweep(
        &mut self,
        sweep: &mut Sweep,
        most: usize,
        mut judge: impl FnMut(&K, &mut V) -> SweepAction,
    ) -> Expired {
        let mut removed = 0;
        for _ in 0..most {
            let flow = sweep.next;
            let Some(entry) = self.entries.get_mut(flow as usize) else {
                return Expired { removed, done: true };
            };
            sweep.next += 1;
            if !entry.is_live() {
                continue;
            }
            match judge(&entry.key, &mut entry.value) {
                SweepAction::Keep => {}
                SweepAction::Remove => {
                    self.stop(flow);
                    removed += usize::from(self.take(flow).is_some());
                }
                SweepAction::Rearm => {
                    let mut armed =
                        Armed { entries: &mut self.entries, timeouts: &self.timeouts, now: self.now };
                    self.wheel.stop(&mut armed, flow);
                    self.wheel.start(&mut armed, flow);
                }
            }
        }
        Expired { removed, done: sweep.next as usize >= self.entries.len() }
    }
}
