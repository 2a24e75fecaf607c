//! Look-ups of many keys, in stages between which memory answers.

use crate::bucket::{Bucket, SetBits, tag_of};
use crate::entry::{Flow, Handle};
use crate::key::FlowKey;
use crate::table::FlowTable;

/// Searches whose buckets are looked at together: what a processor can have under way at once is bounded.
const TOGETHER: usize = 32;
/// No flow was found yet, or no bucket is looked at.
const NONE: u32 = u32::MAX;

/// A look-up on its way: the key of one packet, and where its flow may be.
///
/// The default never begins, and finds nothing: for packets without a key. Two that are as far are equal when they look
/// for the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Search<K> {
    key: K,
    hash: u64,
    /// The first bucket, as it was when the search began. No bucket if nothing is looked for.
    bucket: u32,
    /// The number of a flow with the right tag. Its key tells whether it is the one, and still there.
    flow: u32,
}

impl<K: Default> Default for Search<K> {
    fn default() -> Self {
        Search::of(K::default())
    }
}

impl<K> Search<K> {
    /// A look-up that has not begun, for where the table is not at hand: [`FlowTable::begin`] begins it. Until then it finds
    /// nothing.
    #[inline(always)]
    pub const fn of(key: K) -> Self {
        Search { key, hash: 0, bucket: NONE, flow: NONE }
    }

    /// What is looked for.
    #[inline(always)]
    pub fn key(&self) -> &K {
        &self.key
    }

    /// The key's hash, the same for every table of the same seed: for choices that are to be the same for all packets of a flow.
    #[inline(always)]
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

impl<K: FlowKey, V: Copy> FlowTable<K, V> {
    /// The first stage: hashes a key and asks memory for its bucket.
    #[inline(always)]
    pub fn search(&self, key: K) -> Search<K> {
        let mut search = Search::of(key);
        self.begin(&mut search);
        search
    }

    /// The first stage, of a look-up that has its key.
    #[inline(always)]
    pub fn begin(&self, search: &mut Search<K>) {
        search.hash = self.seed.hash(search.key.words().as_ref());
        let bucket = self.index.first(search.hash);
        self.index.prefetch(bucket);
        search.bucket = bucket as u32;
    }

    /// The second stage, of any number of searches, best of 32 or more: compares tags and asks memory for flows that may be the
    /// ones. It may be left out; then the third takes longer.
    #[inline(always)]
    pub fn seek(&self, searches: &mut [Search<K>]) {
        searches.chunks_mut(TOGETHER).for_each(|some| self.seek_some(some));
    }

    /// The same of one.
    #[inline(always)]
    pub fn seek_one(&self, search: &mut Search<K>) {
        let Some(bucket) = self.index.bucket(search.bucket as usize) else { return };
        if !self.seek_in(bucket, search)
            && bucket.away() > 0
            && let Some(bucket) = self.index.bucket(self.index.second(search.hash))
        {
            self.seek_in(bucket, search);
        }
    }

    #[inline(always)]
    fn seek_some(&self, searches: &mut [Search<K>]) {
        let (mut open, mut bit) = (0_u32, 1);
        for search in &mut *searches {
            let this = bit;
            bit <<= 1;
            let Some(bucket) = self.index.bucket(search.bucket as usize) else { continue };
            if !self.seek_in(bucket, search) && bucket.away() > 0 {
                self.index.prefetch(self.index.second(search.hash));
                open |= this;
            }
        }
        for i in SetBits(open) {
            if let Some(search) = searches.get_mut(i as usize)
                && let Some(bucket) = self.index.bucket(self.index.second(search.hash))
            {
                self.seek_in(bucket, search);
            }
        }
    }

    /// Looks for flows with the right tag.
    #[inline(always)]
    fn seek_in(&self, bucket: &Bucket, search: &mut Search<K>) -> bool {
        let matches = bucket.matches(tag_of(search.hash));
        if matches == 0 {
            return false;
        }
        search.flow = bucket.flow(matches.trailing_zeros());
        self.entries.prefetch(search.flow as usize);
        let others = matches & (matches - 1);
        if others != 0 {
            // Few searches meet another flow with their tag.
            SetBits(others).for_each(|place| self.entries.prefetch(bucket.flow(place) as usize));
        }
        true
    }

    /// The last stage: the flow of a key, if there is one.
    #[inline(always)]
    pub fn find(&mut self, search: &Search<K>) -> Option<Flow<'_, K, V>> {
        if self.is_for(search.flow, &search.key) {
            return self.flow_at(search.flow);
        }
        self.find_again(search)
    }

    /// For what the second stage did not find, or not any more.
    #[inline(never)]
    fn find_again(&mut self, search: &Search<K>) -> Option<Flow<'_, K, V>> {
        let index = self.look_again(search)?;
        self.flow_at(index)
    }

    #[inline(always)]
    fn flow_at(&mut self, index: u32) -> Option<Flow<'_, K, V>> {
        Some(Flow { entry: self.entries.get_mut(index as usize)?, index })
    }

    /// The flow of a key, by a look-up that was done ahead if it was for that key.
    #[inline(always)]
    pub fn find_by(&mut self, ahead: Option<&Search<K>>, key: K) -> Option<Flow<'_, K, V>> {
        match ahead.filter(|ahead| ahead.key == key) {
            Some(ahead) => self.find(ahead),
            None => self.find_alone(key),
        }
    }

    /// The flow of a key whose look-up was not done ahead.
    #[inline(never)]
    fn find_alone(&mut self, key: K) -> Option<Flow<'_, K, V>> {
        let mut search = self.search(key);
        self.seek_one(&mut search);
        self.find(&search)
    }

    /// As [`find`](Self::find), without a way to change the flow.
    #[inline(always)]
    pub fn peek(&self, search: &Search<K>) -> Option<&V> {
        let index = self.index_of(search)?;
        self.entries.get(index as usize).map(|entry| &entry.value)
    }

    /// All stages at once, of one key: the handle of its flow.
    #[inline(always)]
    pub fn handle_of(&self, key: K) -> Option<Handle> {
        let hash = self.seed.hash(key.words().as_ref());
        let index = self.index.find(hash, |flow| self.is_for(flow, &key))?;
        self.entries.get(index as usize).map(|entry| Handle { index, generation: entry.generation })
    }

    #[inline(always)]
    fn index_of(&self, search: &Search<K>) -> Option<u32> {
        if self.is_for(search.flow, &search.key) { Some(search.flow) } else { self.look_again(search) }
    }

    #[inline(always)]
    fn is_for(&self, flow: u32, key: &K) -> bool {
        self.entries.get(flow as usize).is_some_and(|entry| entry.key == *key && entry.is_live())
    }

    fn look_again(&self, search: &Search<K>) -> Option<u32> {
        if search.bucket == NONE {
            return None;
        }
        self.index.find(search.hash, |flow| self.is_for(flow, &search.key))
    }
}
