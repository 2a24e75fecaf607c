//! What entries say, for display.

use std::sync::atomic::Ordering;

use shoal_adj::Family;
use shoal_fib::FibIndex;

use super::{Entry, Itf, Member, Mfib, Place};
use crate::flags::ItfFlags;
use crate::table::EVERY_TABLE;

impl Mfib {
    /// Where the entries of a table are, those that every table has last.
    pub(crate) fn places(&self, family: Family, table: FibIndex) -> Vec<Place> {
        let state = self.state(family).borrow();
        let of = |table: u32| state.entries.keys().filter(move |(t, _)| *t == table).copied();
        of(table.0).chain(of(EVERY_TABLE)).collect()
    }

    /// The entry at a place, if it is there.
    pub(crate) fn entry_at(&self, place: Place) -> Option<Entry> {
        let (_, prefix) = place;
        let state = self.state(prefix.family()).borrow();
        let held = state.entries.get(&place)?;
        let now = self.table(prefix.family()).entry_now(held.id);
        let itf = |(member, flags): (Member, ItfFlags)| {
            let signalled = match member {
                Member::Interface(i) => now.itf(i).is_some_and(|i| i.signalled.load(Ordering::Relaxed)),
                Member::Local => false,
            };
            let flags = if signalled { flags.with(ItfFlags::SIGNAL_PRESENT) } else { flags };
            Itf { member, flags }
        };
        Some(Entry {
            prefix,
            id: held.id,
            flags: held.flags(),
            sources: held.said.keys().copied().collect(),
            interfaces: held.members().into_iter().map(itf).collect(),
            adjacencies: held.adjacencies.values().copied().collect(),
        })
    }
}
