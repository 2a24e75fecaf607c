//! What entries say, for display.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::Bound;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use shoal_adj::Family;
use shoal_fib::FibIndex;

use super::{Entry, Itf, Member, Mfib, Place, Prefix};
use crate::flags::ItfFlags;
use crate::table::EVERY_TABLE;

impl Prefix {
    /// None stands before it.
    const FIRST: Prefix = Prefix { group: IpAddr::V4(Ipv4Addr::UNSPECIFIED), len: 0, source: None };
}

impl Mfib {
    /// The number of an entry, by which packets find it, and its counters.
    pub fn number(&self, table: FibIndex, prefix: Prefix) -> Option<u32> {
        self.state(prefix.family()).borrow().entries.get(&(table.0, prefix)).map(|held| held.id)
    }

    /// Where the entries of a table are, those that every table has last. What they are is looked at while they are walked
    /// through: one that stays is met once.
    pub(crate) fn places(
        self: &Rc<Self>,
        family: Family,
        table: FibIndex,
    ) -> impl Iterator<Item = Place> + use<> {
        let mfib = Rc::clone(self);
        let (mut of, mut after) = (table.0, None);
        std::iter::from_fn(move || {
            let state = mfib.state(family).borrow();
            let from = |of: u32, after: Option<Place>| {
                let from = after.map_or(Bound::Included((of, Prefix::FIRST)), Bound::Excluded);
                state.entries.range((from, Bound::Unbounded)).next().map(|(place, _)| *place)
            };
            let found = from(of, after).filter(|(t, _)| *t == of);
            after = found.or_else(|| {
                of = EVERY_TABLE;
                from(of, after.filter(|(t, _)| *t == EVERY_TABLE))
            });
            after
        })
        .fuse()
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
