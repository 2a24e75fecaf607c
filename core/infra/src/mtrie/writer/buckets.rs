//! What the writer does to buckets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use super::super::bucket::{self, Item, LONGEST, MOST, WORDS};
use super::super::{Address, Entry, LINE, first_slot};
use super::{Change, MtrieWriter, Node, UpdateError, slot_of, store};
use crate::mtrie::address::{WIDE_LEVELS, slot_length};
use crate::qsbr;
use crate::sync::lock;

/// Prefixes of a bucket, and one more.
type Items = Vec<Item>;

impl<A: Address> MtrieWriter<A> {
    /// Whether there are buckets for prefixes of this length.
    pub(super) fn may_be_in_bucket(len: u8) -> bool {
        A::LEVELS > WIDE_LEVELS && len > slot_length(WIDE_LEVELS) && len <= LONGEST
    }

    fn upper(addr: A) -> u64 {
        addr.upper()
    }

    fn word(&self, line: usize, at: usize) -> Option<&AtomicU32> {
        self.trie.slots.get(first_slot(line) + at)
    }

    pub(super) fn words(&self, line: usize) -> [u32; WORDS] {
        let word = |at| self.word(line, at).map_or(0, |word| word.load(Ordering::Relaxed));
        std::array::from_fn(word)
    }

    /// The length of the prefix that filled what is no prefix of the bucket.
    fn rest_length(&self, line: usize) -> Option<&AtomicU8> {
        self.lengths.get(first_slot(line))
    }

    pub(super) fn rest(&self, line: usize) -> (Entry, u8) {
        let entry = self.word(line, 0).map_or(0, |word| word.load(Ordering::Relaxed));
        (Entry(entry), self.rest_length(line).map_or(0, |length| length.load(Ordering::Relaxed)))
    }

    /// Writes a bucket that no reader sees.
    fn write(&self, line: usize, (rest, rest_length): (Entry, u8), items: &[Item]) {
        const { assert!(WORDS == LINE, "a bucket is a line") }
        for (at, word) in bucket::words(rest, items).into_iter().enumerate() {
            if let Some(slot) = self.word(line, at) {
                slot.store(word, Ordering::Relaxed);
            }
        }
        if let Some(length) = self.rest_length(line) {
            length.store(rest_length, Ordering::Relaxed);
        }
    }

    /// Makes the slot of a leaf a bucket of one prefix.
    pub(super) fn new_bucket(&mut self, line: u32, node: Node, level: u8, addr: A, change: Change) {
        let slot = slot_of(addr, level);
        let rest = (self.entry(node, slot), self.length(node, slot));
        let item = Item { upper: Self::upper(addr), len: change.len, entry: change.new };
        self.write(line as usize, rest, &[item]);
        self.set(node, level, slot, Entry::bucket(line), slot_length(level) + 1);
    }

    /// Inserts a prefix into a bucket: changes its entry, puts it behind the others, makes a new bucket of all, or makes
    /// a ply of them.
    pub(super) fn insert_into(
        &mut self,
        line: usize,
        node: Node,
        level: u8,
        addr: A,
        change: Change,
    ) -> Result<(), UpdateError> {
        let (words, upper) = (self.words(line), Self::upper(addr));
        if change.len <= LONGEST {
            if let Some(place) = bucket::place_of(&words, upper, change.len) {
                store(self.word(line, bucket::entry_of(place)), change.new.0);
                return Ok(());
            }
            let item = Item { upper, len: change.len, entry: change.new };
            if let Some(stores) = bucket::addition(&words, item) {
                for (at, value) in stores {
                    store(self.word(line, at), value);
                }
                return Ok(());
            }
        }
        let mut fresh = std::mem::take(&mut self.fresh);
        let items = self.items(line, upper);
        let done = if Self::may_be_in_bucket(change.len) && items.len() < MOST {
            self.copy(line, node, level, addr, change, &mut fresh)
        } else {
            self.burst(line, node, level, addr, change, &mut fresh)
        };
        self.fresh = fresh;
        done
    }

    fn items(&self, line: usize, upper: u64) -> Items {
        bucket::items(&self.words(line), upper).flatten().collect()
    }

    /// Puts a new bucket with one more prefix in the place of one that has room.
    fn copy(
        &mut self,
        line: usize,
        node: Node,
        level: u8,
        addr: A,
        change: Change,
        fresh: &mut Vec<u32>,
    ) -> Result<(), UpdateError> {
        self.take_plies(level, level, 1, fresh)?;
        if let Some(new) = fresh.pop() {
            self.write_with(new as usize, line, addr, change);
            self.set(node, level, slot_of(addr, level), Entry::bucket(new), slot_length(level) + 1);
            self.retire(line);
        }
        Ok(())
    }

    /// Writes the bucket `old` and one more prefix to `new`, which no reader sees; they may be the same.
    fn write_with(&self, new: usize, old: usize, addr: A, change: Change) {
        let upper = Self::upper(addr);
        let mut items = self.items(old, upper);
        let at = items.partition_point(|item| item.len <= change.len);
        items.insert(at, Item { upper, len: change.len, entry: change.new });
        self.write(new, self.rest(old), &items);
    }

    /// Puts a ply in the place of a bucket that is full, or whose prefixes get a longer one beside them.
    fn burst(
        &mut self,
        line: usize,
        node: Node,
        level: u8,
        addr: A,
        change: Change,
        fresh: &mut Vec<u32>,
    ) -> Result<(), UpdateError> {
        // A ply on each level at most, and a bucket for each prefix.
        let most = usize::from(A::LEVELS - level) + MOST + 1;
        self.take_plies(level, level, most, fresh)?;
        if let Some(top) = fresh.pop() {
            let slot = slot_of(addr, level);
            self.fill_with(top, level + 1, self.rest(line));
            for item in self.items(line, Self::upper(addr)) {
                let own = Change { len: item.len, new: item.entry, new_len: item.len, only_own: false };
                self.place(top, level + 1, A::from_upper(item.upper), own, fresh);
            }
            self.place(top, level + 1, addr, change, fresh);
            self.link(node, level, slot, top);
            self.retire(line);
        }
        self.in_use.narrow -= fresh.len();
        lock(&self.free).narrow.append(fresh);
        Ok(())
    }

    /// Inserts a prefix below a ply that no reader sees, with lines of the list.
    fn place(&mut self, ply: u32, level: u8, addr: A, change: Change, fresh: &mut Vec<u32>) {
        let (mut node, mut level) = (Node::Ply(ply), level);
        while change.len > slot_length(level) {
            let slot = slot_of(addr, level);
            let entry = self.entry(node, slot);
            let in_bucket = Self::may_be_in_bucket(change.len);
            let child = match (entry.as_ply(), entry.as_bucket()) {
                (Some(child), _) => child as u32,
                (_, Some(line)) if in_bucket && self.items(line, Self::upper(addr)).len() < MOST => {
                    return self.write_with(line, line, addr, change);
                }
                (_, Some(line)) => {
                    let Some(child) = fresh.pop() else { return };
                    self.fill_with(child, level + 1, self.rest(line));
                    let items = self.items(line, Self::upper(addr));
                    fresh.push(line as u32);
                    for item in items {
                        let own =
                            Change { len: item.len, new: item.entry, new_len: item.len, only_own: false };
                        self.place(child, level + 1, A::from_upper(item.upper), own, fresh);
                    }
                    self.link(node, level, slot, child);
                    child
                }
                _ => {
                    let Some(line) = fresh.pop() else { return };
                    if in_bucket {
                        return self.new_bucket(line, node, level, addr, change);
                    }
                    self.fill(node, level, slot, line);
                    self.link(node, level, slot, line);
                    line
                }
            };
            (node, level) = (Node::Ply(child), level + 1);
        }
        self.apply_to_slots(node, level, addr, change);
    }

    /// Removes a prefix from a bucket, and the bucket with its last one. Needs no memory.
    pub(super) fn remove_from(&mut self, line: usize, node: Node, level: u8, addr: A, len: u8) {
        let (words, upper) = (self.words(line), Self::upper(addr));
        let Some(place) = bucket::place_of(&words, upper, len) else { return };
        if bucket::items(&words, upper).flatten().count() > 1 {
            let (at, value) = bucket::removal(&words, place);
            return store(self.word(line, at), value);
        }
        let (rest, rest_length) = self.rest(line);
        self.set(node, level, slot_of(addr, level), rest, rest_length);
        self.retire(line);
    }

    /// Applies `change` to what a bucket says of all other addresses: the prefix covers the slot it is below of.
    pub(super) fn apply_to_rest(&self, line: usize, change: Change) {
        let (_, length) = self.rest(line);
        if change.applies_to(length) {
            store(self.word(line, 0), change.new.0);
            if let Some(length) = self.rest_length(line) {
                length.store(change.new_len, Ordering::Relaxed);
            }
        }
    }

    /// Readers may still be in a bucket; it stays as it is until they have left.
    fn retire(&mut self, line: usize) {
        self.in_use.narrow -= 1;
        let free = Arc::clone(&self.free);
        qsbr::retire(move || lock(&free).narrow.push(line as u32));
    }
}
