//! Entries as clients set them: a new setting replaces the previous one, and what is not set again may go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use shoal_adj::Family;
use shoal_buffer::SwIfIndex;
use shoal_fib::FibIndex;

use super::{Change, How, Member, Mfib, Place, Prefix, Source, take_back};
use crate::table::EVERY_TABLE;
use crate::{EntryFlags, MfibError};

/// What is not set again, by table.
pub(super) type Stale = BTreeMap<(Family, FibIndex), BTreeSet<Prefix>>;

/// A packet that raised a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signal {
    /// The index of its table.
    pub table: FibIndex,
    /// Its entry.
    pub prefix: Prefix,
    /// The interface that received it.
    pub interface: SwIfIndex,
}

impl Mfib {
    /// Says exactly this of an entry, which is made if it is not there, and of members of it; other members stay as they
    /// are.
    ///
    /// # Errors
    /// The table is not there or full, or the flags make no sense.
    pub fn set(
        &self,
        table: FibIndex,
        prefix: Prefix,
        source: Source,
        change: &Change,
    ) -> Result<(), MfibError> {
        self.fib.table(prefix.family(), table)?;
        self.update(table.0, prefix, source, change, How::Exactly)?;
        if let (Source::Api, Some(stale)) =
            (source, self.stale.borrow_mut().get_mut(&(prefix.family(), table)))
        {
            stale.remove(&prefix);
        }
        Ok(())
    }

    /// Takes back a source's flags of some members, or of all if none are named; with the last one go its flags of the
    /// entry. Members without flags are no error.
    ///
    /// # Errors
    /// There is no such table.
    pub fn take_members(
        &self,
        table: FibIndex,
        prefix: Prefix,
        source: Source,
        members: &[Member],
    ) -> Result<(), MfibError> {
        self.fib.table(prefix.family(), table)?;
        let mut state = self.state(prefix.family()).borrow_mut();
        let place: Place = (table.0, prefix);
        let Some(held) = state.entries.get_mut(&place) else { return Ok(()) };
        take_back(held, source, |said| {
            if members.is_empty() {
                said.members.clear();
            }
            said.members.retain(|member, _| !members.contains(member));
            if said.members.is_empty() {
                said.flags = EntryFlags::default();
            }
        });
        self.publish(&mut state, place);
        Ok(())
    }

    fn said_by(&self, family: Family, table: FibIndex, source: Source) -> BTreeSet<Prefix> {
        let state = self.state(family).borrow();
        let mine = |((t, prefix), held): (&Place, &super::EntryState)| {
            (*t == table.0 && held.said.contains_key(&source)).then_some(*prefix)
        };
        state.entries.iter().filter_map(mine).collect()
    }

    /// A client begins to say everything of a table again.
    pub fn replace_begin(&self, family: Family, table: FibIndex) {
        let all = self.said_by(family, table, Source::Api);
        self.stale.borrow_mut().insert((family, table), all);
    }

    /// It has: what it did not say again goes.
    ///
    /// # Errors
    /// There is no such table.
    pub fn replace_end(&self, family: Family, table: FibIndex) -> Result<(), MfibError> {
        let stale = self.stale.borrow_mut().remove(&(family, table)).unwrap_or_default();
        stale.iter().try_for_each(|prefix| self.take_members(table, *prefix, Source::Api, &[]))
    }

    /// All flags that clients set in a table go.
    ///
    /// # Errors
    /// There is no such table.
    pub fn flush(&self, family: Family, table: FibIndex) -> Result<(), MfibError> {
        let all = self.said_by(family, table, Source::Api);
        all.iter().try_for_each(|prefix| self.take_members(table, *prefix, Source::Api, &[]))
    }

    /// The packets that were signalled since the last call: one of each entry and interface at most.
    pub fn take_signals(&self, family: Family) -> Vec<Signal> {
        let (state, data) = (self.state(family).borrow(), self.table(family));
        let of = |((table, prefix), held): (&Place, &super::EntryState)| {
            let now = data.entry_now(held.id);
            let mine = now.itfs.iter().filter(|itf| itf.signalled.swap(false, Ordering::Relaxed));
            let table = FibIndex(if *table == EVERY_TABLE { 0 } else { *table });
            let signal = |itf: &super::ItfData| Signal { table, prefix: *prefix, interface: itf.interface };
            mine.map(signal).collect::<Vec<_>>()
        };
        state.entries.iter().flat_map(of).collect()
    }
}
