//! Adjacencies that belong to a route's path list: they stand for one other adjacency, or for many.
//!
//! Leaves keep the index while what is behind it changes, so that a next hop that comes or goes is one store (or, for
//! many members, one for each bucket that moves), whatever the number of prefixes.

use std::collections::BTreeMap;

use shoal_buffer::SwIfIndex;

use super::{AdjError, Adjacencies, Key};
use crate::buckets::{Block, Buckets};
use crate::fill::{self, Filled, MOST_BUCKETS, Spread};
use crate::{Adj, AdjIndex, AdjKind, Link};

/// One of those that an adjacency of a path list stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// The adjacency. It is no balance and stands for no other.
    pub adj: AdjIndex,
    /// Its share, compared with the others'; at least 1.
    pub weight: u64,
}

/// What a path list's adjacency stands for.
#[derive(Default)]
pub(super) struct Own {
    members: Vec<Member>,
    spread: Spread,
    block: Option<Block>,
}

/// How much of the tables is used, for `show capacity`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Adjacencies in use.
    pub adjacencies: usize,
    /// Most there may be.
    pub most_adjacencies: usize,
    /// Those of path lists that stand for one other.
    pub aliases: usize,
    /// Those of path lists that stand for many.
    pub balances: usize,
    /// Buckets in use.
    pub buckets: usize,
    /// Most there may be.
    pub most_buckets: usize,
    /// Bytes of memory in use, about.
    pub bytes: usize,
}

/// Members of one adjacency only once, those that hold no lock of their own any more besides.
fn merged(members: &[Member]) -> (Vec<Member>, Vec<AdjIndex>) {
    let (mut all, mut twice): (Vec<Member>, Vec<AdjIndex>) = Default::default();
    for member in members {
        let weight = member.weight.max(1);
        let room = all.len() < MOST_BUCKETS;
        if let Some(same) = all.iter_mut().find(|m| m.adj == member.adj) {
            same.weight += weight;
            twice.push(member.adj);
        } else if room {
            all.push(Member { weight, ..*member });
        } else {
            twice.push(member.adj);
        }
    }
    (all, twice)
}

/// Members as buckets are filled with them.
fn weights(members: &[Member]) -> Vec<(u32, u64)> {
    members.iter().map(|member| (member.adj.0, member.weight)).collect()
}

impl Adjacencies {
    /// An adjacency that looks up a packet's source in another table of the link's family, locked once more.
    ///
    /// # Errors
    /// The table is full.
    pub fn source_lookup_in(&self, link: Link, table: u32) -> Result<AdjIndex, AdjError> {
        self.lock(Key::SourceLookup(link, table))
    }

    /// A new adjacency that stands for others, locked once. It takes over the lock that the caller holds on each
    /// member. Beyond 1024 members the last ones get nothing. Where both spread resiliently, members that `before` stands for, too, have
    /// the buckets that they have there.
    ///
    /// # Errors
    /// A table is full; the locks are still the caller's.
    pub fn create_own(
        &self,
        members: &[Member],
        spread: Spread,
        before: Option<AdjIndex>,
    ) -> Result<AdjIndex, AdjError> {
        let before = before.and_then(|before| self.filled(before));
        let index = self.fresh_index()?;
        self.begin(index);
        self.own.borrow_mut().insert(index, Own { spread, ..Own::default() });
        if let Err(e) = self.set_members_after(index, members, before) {
            self.own.borrow_mut().remove(&index);
            self.give_index_back(index);
            return Err(e);
        }
        self.enter(index, Key::Own(index));
        Ok(index)
    }

    /// A new adjacency that is found by no key, locked once; its record is the caller's to keep right.
    ///
    /// # Errors
    /// The table is full.
    pub fn create_fixed(&self, adj: Adj) -> Result<AdjIndex, AdjError> {
        let index = self.fresh_index()?;
        if let Err(e) = self.store_record(index, adj.of(index)) {
            self.give_index_back(index);
            return Err(e);
        }
        self.enter(index, Key::Own(index));
        Ok(index)
    }

    /// Gives an adjacency of [`Adjacencies::create_fixed`] another record.
    pub fn set_fixed(&self, index: AdjIndex, adj: Adj) {
        if let Err(e) = self.store_record(index, adj.of(index)) {
            tracing::warn!(%index, "adjacency keeps its old state: {e}");
        }
    }

    /// A path list's adjacency stands for others from now on: none (packets are dropped), one (its record is a copy),
    /// or many (a bucket for each share). It takes over the lock that the caller holds on each member.
    ///
    /// # Errors
    /// A table is full, and all is as it was; the locks are still the caller's.
    pub fn set_members(&self, own: AdjIndex, members: &[Member]) -> Result<(), AdjError> {
        self.set_members_after(own, members, None)
    }

    /// What an adjacency that spreads resiliently is filled with.
    fn filled(&self, own: AdjIndex) -> Option<Filled> {
        let all = self.own.borrow();
        let own = all.get(&own).filter(|own| own.spread.is_resilient())?;
        let buckets = self.buckets.borrow().read(own.block?);
        Some(Filled { buckets, members: weights(&own.members) })
    }

    fn set_members_after(
        &self,
        own: AdjIndex,
        members: &[Member],
        before: Option<Filled>,
    ) -> Result<(), AdjError> {
        let (members, twice) = merged(members);
        let (spread, old_block) = match self.own.borrow().get(&own) {
            Some(o) if o.members == members && self.is_entered(own) => {
                members.iter().map(|m| m.adj).chain(twice).for_each(|adj| self.unlock(adj));
                return Ok(());
            }
            Some(o) => (o.spread, o.block),
            None => return Err(AdjError::Table(format!("adjacency {own} is no path list's own"))),
        };
        let block = match members.as_slice() {
            [] | [_] => {
                let record = members.first().map_or(Adj::special(AdjKind::Drop), |m| self.get(m.adj));
                self.store_record(own, record)?;
                None
            }
            _ => Some(self.balance(own, &members, spread, (old_block, before))?),
        };
        let mut all = self.own.borrow_mut();
        let old = all.insert(own, Own { members: members.clone(), spread, block }).unwrap_or_default();
        drop(all);
        if let Some(gone) = old.block.filter(|old| Some(*old) != block) {
            self.buckets.borrow_mut().give_back(gone);
        }
        self.follow(own, &old.members, &members);
        old.members.iter().map(|m| m.adj).chain(twice).for_each(|adj| self.unlock(adj));
        Ok(())
    }

    fn balance(
        &self,
        own: AdjIndex,
        members: &[Member],
        spread: Spread,
        (old, before): (Option<Block>, Option<Filled>),
    ) -> Result<Block, AdjError> {
        let shares = weights(members);
        let wanted = fill::size(&shares.iter().map(|(_, weight)| *weight).collect::<Vec<_>>(), spread);
        let before = self.filled(own).or(before);
        let mut buckets = self.buckets.borrow_mut();
        let filled = match before.filter(|_| spread.is_resilient()) {
            Some(before) => fill::refilled(&before, &shares, wanted.max(before.buckets.len())),
            None => fill::fresh(&shares, wanted),
        };
        let reached = self.reached(members);
        if let Some(block) = old.filter(|block| block.len as usize == filled.len()) {
            let record = Adj::balance(block.base, block.len - 1).with_reached(reached.as_deref()).of(own);
            if self.get(own) != record {
                self.store_record(own, record)?;
            }
            buckets.write(block, &filled);
            return Ok(block);
        }
        let full = || AdjError::Table(format!("full, {} buckets", Buckets::capacity()));
        let block = buckets.take(filled.len()).ok_or_else(full)?;
        buckets.write(block, &filled);
        drop(buckets);
        let record = Adj::balance(block.base, block.len - 1).with_reached(reached.as_deref());
        let stored = self.store_record(own, record.of(own));
        if stored.is_err() {
            self.buckets.borrow_mut().give_back(block);
        }
        stored.map(|()| block)
    }

    /// The interfaces members leave by, each once; `None` when one of them leads to another table.
    fn reached(&self, members: &[Member]) -> Option<Vec<SwIfIndex>> {
        let records = || members.iter().map(|m| self.get(m.adj));
        if records().any(|adj| adj.kind() == AdjKind::Lookup) {
            return None;
        }
        let mut all: Vec<SwIfIndex> = records().filter_map(|adj| adj.way_out()).collect();
        all.sort_unstable();
        all.dedup();
        Some(all)
    }

    /// Notes whose record is a copy of whose.
    fn follow(&self, own: AdjIndex, old: &[Member], new: &[Member]) {
        let mut copies = self.copies.borrow_mut();
        if let [only] = old
            && let Some(set) = copies.get_mut(&only.adj)
        {
            set.remove(&own);
            if set.is_empty() {
                copies.remove(&only.adj);
            }
        }
        if let [only] = new {
            copies.entry(only.adj).or_default().insert(own);
        }
    }

    /// The last user of a path list's adjacency has gone.
    pub(super) fn end_own(&self, own: AdjIndex) {
        let Some(old) = self.own.borrow_mut().remove(&own) else { return };
        self.follow(own, &old.members, &[]);
        if let Some(block) = old.block {
            self.buckets.borrow_mut().give_back(block);
        }
        old.members.iter().for_each(|m| self.unlock(m.adj));
    }

    /// What a path list's adjacency stands for, and its buckets (none when it stands for one other); `None` for any
    /// other adjacency.
    pub fn members(&self, index: AdjIndex) -> Option<(Vec<Member>, Vec<AdjIndex>)> {
        let own = self.own.borrow();
        let Own { members, block, .. } = own.get(&index)?;
        let buckets = block.map(|block| self.buckets.borrow().read(block)).unwrap_or_default();
        Some((members.clone(), buckets.into_iter().map(AdjIndex).collect()))
    }

    /// How much of the tables is used.
    pub fn usage(&self) -> Usage {
        let (own, buckets) = (self.own.borrow(), self.buckets.borrow());
        let (adjacencies, balances) =
            (self.entries.borrow().len(), own.values().filter(|o| o.block.is_some()).count());
        Usage {
            adjacencies,
            most_adjacencies: super::CAPACITY,
            aliases: own.len() - balances,
            balances,
            buckets: buckets.in_use,
            most_buckets: Buckets::capacity(),
            bytes: self.next.get() as usize * 2 * size_of::<Adj>() + buckets.in_use * 4,
        }
    }

    /// Words written to what packets read since the start: records and buckets.
    pub fn stores(&self) -> u64 {
        self.stores.get() + self.buckets.borrow().stores
    }

    /// Looks for broken invariants; each is a line.
    pub fn check(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let mut say = |adj: AdjIndex, what: String| broken.push(format!("adjacency {adj}: {what}"));
        let (own, entries) = (self.own.borrow(), self.entries.borrow());
        let mut locks: BTreeMap<AdjIndex, usize> = BTreeMap::new();
        for (index, o) in own.iter() {
            let record = self.get(*index);
            for member in &o.members {
                *locks.entry(member.adj).or_default() += 1;
                if !entries.contains_key(&member.adj) && member.adj != AdjIndex::NONE {
                    say(*index, format!("stands for {}, which has no lock", member.adj));
                }
            }
            match (o.members.as_slice(), o.block) {
                ([only], None) if record != self.get(only.adj) => {
                    say(*index, format!("is no copy of {}", only.adj));
                }
                ([_] | [], None) => {}
                (members, Some(block)) => {
                    if record.bucket_range() != Some((block.base, block.len)) {
                        say(*index, "its record does not lead to its buckets".into());
                    }
                    let buckets = self.buckets.borrow().read(block);
                    for member in members.iter().filter(|m| !buckets.contains(&m.adj.0)) {
                        say(*index, format!("{} has no bucket", member.adj));
                    }
                    for bucket in buckets.iter().filter(|b| !members.iter().any(|m| m.adj.0 == **b)) {
                        say(*index, format!("a bucket leads to {bucket}, which is no member"));
                    }
                }
                (_, None) => say(*index, "many members and no buckets".into()),
            }
        }
        for (index, entry) in entries.iter() {
            let inner = locks.get(index).copied().unwrap_or(0);
            if entry.locks < inner.max(1) {
                say(*index, format!("{} locks, but {inner} stand for it", entry.locks));
            }
            if self.get(*index).own() != *index && !own.contains_key(index) {
                say(*index, "its record is another's".into());
            }
        }
        broken
    }
}
