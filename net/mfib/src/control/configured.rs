//! Configured entries, for those who write them down.

use std::collections::BTreeMap;
use std::net::IpAddr;

use shoal_adj::Family;
use shoal_fib::FibIndex;

use super::{Change, EntryState, Member, Mfib, Place, Prefix, Source};
use crate::flags::{EntryFlags, ItfFlags};

impl Prefix {
    /// The group, how many of its bits count, and the source, if it is of one.
    pub fn parts(&self) -> (IpAddr, u8, Option<IpAddr>) {
        (self.group, self.len, self.source)
    }
}

impl Mfib {
    /// The flags that operators and clients have set for the entries of a table.
    pub fn said(&self, family: Family, table: FibIndex) -> Vec<(Prefix, Change)> {
        let state = self.state(family).borrow();
        let of = state.entries.iter().filter(|((t, _), _)| *t == table.0);
        let said = |((_, prefix), held): (&Place, &EntryState)| {
            let (mut flags, mut members) = (EntryFlags::default(), BTreeMap::<Member, ItfFlags>::new());
            for said in [Source::Api, Source::Cli].into_iter().filter_map(|source| held.said.get(&source)) {
                flags = flags.with(said.flags);
                for (member, more) in &said.members {
                    let all = members.entry(*member).or_default();
                    *all = all.with(*more);
                }
            }
            let change = Change { flags, members: members.into_iter().collect() };
            (!change.is_empty()).then_some((*prefix, change))
        };
        of.filter_map(said).collect()
    }
}
