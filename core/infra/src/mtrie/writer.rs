//! The trie's one writer.
//!
//! For each slot it remembers the length of the prefix that filled it. So a prefix may be inserted
//! in any order: it fills the slots whose prefix is not longer. And it is removed by giving the
//! slots it filled to the prefix that covers it.
//!
//! A node (the root or a ply) is named by `Node`; level 0 is the root, whose slots stand for /16s,
//! those of level 1 for /24s and so on, those of the last level for addresses.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

mod begins;
mod buckets;

pub use begins::Begins;

use super::address::{WIDE_LEVELS, level_of, slot_length, width};
use super::{Address, Entry, LINE, MOST_LINES, Mtrie, ROOT, USED, first_slot};
use crate::budget::{self, NoMemory};
use crate::qsbr;
use crate::raw::arena::{StableArena, StableBox};
use crate::sync::{Arc, Mutex, lock};

/// The one writer of a [`Mtrie`].
pub struct MtrieWriter<A> {
    trie: Arc<Mtrie<A>>,
    /// Per slot of the root: the length of the prefix that filled it, 0 when none.
    root_lengths: StableBox<[AtomicU8; ROOT]>,
    /// The same per slot of all plies.
    lengths: StableArena<AtomicU8>,
    /// Per ply, at its first line: how many slots hold a ply or were filled by a prefix longer than the ply's own
    /// address. At none, all slots are alike and the ply can go.
    deeper: StableArena<AtomicU32>,
    /// Plies that readers are done with.
    free: Arc<Mutex<Kinds<Vec<u32>>>>,
    /// Lines from here on were never used.
    untouched: usize,
    /// Lines up to here are taken of the budget.
    taken: usize,
    /// A list for a moment, kept for its memory.
    fresh: Vec<u32>,
    in_use: Kinds<usize>,
}

/// Bytes of a slot: for readers, and its length.
const PER_SLOT: usize = size_of::<u32>() + size_of::<u8>();
/// Bytes of a line, with its count.
const LINE_BYTES: usize = LINE * PER_SLOT + size_of::<u32>();

/// Something for each kind of ply.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
struct Kinds<T> {
    wide: T,
    narrow: T,
}

impl<T> Kinds<T> {
    fn of(&mut self, level: u8) -> &mut T {
        if level <= WIDE_LEVELS { &mut self.wide } else { &mut self.narrow }
    }
}

impl Kinds<usize> {
    fn sum(self) -> usize {
        self.wide + self.narrow
    }

    /// Lines that so many plies take.
    fn lines(self) -> usize {
        self.wide * MOST_LINES + self.narrow
    }
}

/// Why nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateError {
    /// No ply is left of this many. Some may come back by `qsbr::reclaim`.
    Full {
        /// How many plies the trie was made for.
        max_plies: usize,
    },
    /// The trie may not grow any more.
    NoMemory(NoMemory),
    /// A prefix length above the bits of an address, or a cover that is not shorter than the prefix.
    BadLength(u8),
    /// A value above 2^31 - 1.
    BadValue(u32),
}

impl fmt::Display for UpdateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UpdateError::Full { max_plies } => write!(f, "all {max_plies} plies are in use"),
            UpdateError::NoMemory(why) => why.fmt(f),
            UpdateError::BadLength(len) => write!(f, "prefix length {len} is not possible here"),
            UpdateError::BadValue(value) => write!(f, "value {value} is above {}", u32::MAX >> 1),
        }
    }
}

impl std::error::Error for UpdateError {}

#[derive(Clone, Copy)]
enum Node {
    Root,
    Ply(u32),
}

/// A change of the slots of one prefix.
#[derive(Clone, Copy)]
struct Change {
    len: u8,
    new: Entry,
    new_len: u8,
    /// Only slots filled by exactly `len` (a removal), or all up to it (an insertion).
    only_own: bool,
}

impl Change {
    fn applies_to(self, filled_by: u8) -> bool {
        if self.only_own { filled_by == self.len } else { filled_by <= self.len }
    }
}

impl<A: Address> MtrieWriter<A> {
    pub(super) fn new(trie: Arc<Mtrie<A>>) -> io::Result<Self> {
        let slots = trie.slots.capacity();
        Ok(MtrieWriter {
            trie,
            root_lengths: StableBox::zeroed()?,
            lengths: StableArena::with_capacity(slots)?,
            deeper: StableArena::with_capacity(slots / LINE)?,
            free: Arc::default(),
            untouched: MOST_LINES,
            taken: MOST_LINES,
            fresh: Vec::new(),
            in_use: Kinds::default(),
        })
    }

    /// Adds a prefix or changes its value. Bits of `addr` (host order) beyond `len` are ignored.
    /// A value of 0 reads as no route but hides shorter prefixes.
    pub fn insert(&mut self, addr: A, len: u8, value: u32) -> Result<(), UpdateError> {
        let addr = network(addr, len)?;
        let new = leaf(value)?;
        let change = Change { len, new, new_len: len, only_own: false };
        let last = level_of(len);
        let (mut node, mut level) = (Node::Root, 0);
        while level < last {
            let entry = self.entry(node, slot_of(addr, level));
            match (entry.as_ply(), entry.as_bucket()) {
                (Some(child), _) => node = Node::Ply(child as u32),
                (_, Some(line)) => return self.insert_into(line, node, level, addr, change),
                _ => return self.insert_below(node, level, addr, change),
            }
            level += 1;
        }
        self.apply_to_slots(node, level, addr, change);
        Ok(())
    }

    /// Inserts a prefix that needs plies or a bucket below `node`, which has none where it lies.
    fn insert_below(&mut self, node: Node, level: u8, addr: A, change: Change) -> Result<(), UpdateError> {
        let mut fresh = std::mem::take(&mut self.fresh);
        let in_bucket = Self::may_be_in_bucket(change.len);
        let last = if in_bucket { level.max(WIDE_LEVELS) } else { level_of(change.len) };
        let taken = self.take_plies(level, last, usize::from(in_bucket), &mut fresh);
        if taken.is_ok() {
            self.insert_chain(node, level, addr, change, &mut fresh);
        }
        self.fresh = fresh;
        taken
    }

    /// Inserts a prefix below `node` through new plies, the first of which is the last in the list; the first is a
    /// bucket, if the prefix may be in one.
    fn insert_chain(&mut self, node: Node, level: u8, addr: A, change: Change, fresh: &mut Vec<u32>) {
        let bucket = usize::from(Self::may_be_in_bucket(change.len));
        let (mut below, mut at, mut top) = (node, level, None);
        while fresh.len() > bucket
            && let Some(child) = fresh.pop()
        {
            let slot = slot_of(addr, at);
            self.fill(below, at, slot, child);
            if top.is_some() {
                self.link(below, at, slot, child);
            }
            top = top.or(Some(child));
            (below, at) = (Node::Ply(child), at + 1);
        }
        match fresh.pop() {
            Some(line) => self.new_bucket(line, below, at, addr, change),
            None => self.apply_to_slots(below, at, addr, change),
        }
        // Linked only now, so that a reader finds all of them with the change made.
        if let Some(top) = top {
            self.link(node, level, slot_of(addr, level), top);
        }
    }

    /// Applies `change` to the slots of `node` that the prefix is made of. No ply of this node or above it can have
    /// become one of slots all alike by an insertion: those changed are filled by a prefix longer than its own.
    fn apply_to_slots(&mut self, node: Node, level: u8, addr: A, change: Change) {
        let first = slot_of(addr, level);
        for slot in first..first + (1 << (slot_length(level) - change.len)) {
            self.apply(node, level, slot, change);
        }
    }

    /// Removes a prefix that was inserted. `cover` is the value and length of the longest shorter
    /// prefix that covers it, if there is one. Removing what is not there changes nothing.
    pub fn remove(&mut self, addr: A, len: u8, cover: Option<(u32, u8)>) -> Result<(), UpdateError> {
        let addr = network(addr, len)?;
        let (new, new_len) = match cover {
            None => (Entry::NONE, 0),
            Some((_, cover_len)) if cover_len >= len => {
                return Err(UpdateError::BadLength(cover_len));
            }
            Some((value, cover_len)) => (leaf(value)?, cover_len),
        };
        self.update(Node::Root, 0, addr, Change { len, new, new_len, only_own: true });
        Ok(())
    }

    /// Bytes of memory in use: the root, the plies in use, and what the writer keeps per slot and ply. Plies that
    /// wait to be used again are not counted.
    pub fn bytes(&self) -> usize {
        ROOT * PER_SLOT + self.in_use.lines() * LINE_BYTES
    }

    /// How many plies the trie is made of.
    pub fn plies(&self) -> usize {
        self.in_use.sum()
    }

    /// The trie, for one more reader.
    pub fn trie(&self) -> Arc<Mtrie<A>> {
        Arc::clone(&self.trie)
    }

    /// Applies a removal to the slots of `node` (at `level`) that the prefix covers, and to everything below them.
    /// Where there is nothing on the way, there is nothing to be removed.
    fn update(&mut self, node: Node, level: u8, addr: A, change: Change) {
        if change.len <= slot_length(level) {
            return self.apply_to_slots(node, level, addr, change);
        }
        // Exactly one slot, and the change is inside of it.
        let first = slot_of(addr, level);
        let entry = self.entry(node, first);
        if let Some(line) = entry.as_bucket() {
            return self.remove_from(line, node, level, addr, change.len);
        }
        let Some(child) = entry.as_ply() else { return };
        let child = child as u32;
        self.update(Node::Ply(child), level + 1, addr, change);
        self.collapse(node, level, first, child);
    }

    /// Applies `change` to a slot that the prefix covers wholly, and to everything below it. The lengths say which
    /// slots hold plies, so that of most entries nothing is read.
    #[inline(always)]
    fn apply(&mut self, node: Node, level: u8, slot: usize, change: Change) {
        let filled_by = self.length(node, slot);
        if filled_by > slot_length(level) {
            self.apply_below(node, level, slot, change);
        } else if change.applies_to(filled_by) {
            self.set(node, level, slot, change.new, change.new_len);
        }
    }

    fn apply_below(&mut self, node: Node, level: u8, slot: usize, change: Change) {
        let entry = self.entry(node, slot);
        if let Some(line) = entry.as_bucket() {
            return self.apply_to_rest(line, change);
        }
        let Some(child) = entry.as_ply() else { return };
        let child = child as u32;
        for below in 0..width(level + 1) {
            self.apply(Node::Ply(child), level + 1, below, change);
        }
        self.collapse(node, level, slot, child);
    }

    /// Makes `child` a ply whose slots are all what `slot` of `node` (at `level`) is now.
    fn fill(&self, node: Node, level: u8, slot: usize, child: u32) {
        self.fill_with(child, level + 1, (self.entry(node, slot), self.length(node, slot)));
    }

    /// Makes `child` a ply of this level whose slots are all alike.
    fn fill_with(&self, child: u32, level: u8, (entry, length): (Entry, u8)) {
        for slot in 0..width(level) {
            store(self.slot(Node::Ply(child), slot), entry.0);
            if let Some(to) = self.length_slot(Node::Ply(child), slot) {
                to.store(length, Ordering::Relaxed);
            }
        }
        store(self.deeper.get(child as usize), 0);
    }

    /// Puts `child` into a slot, if it is not there already.
    fn link(&self, node: Node, level: u8, slot: usize, child: u32) {
        if self.entry(node, slot) != Entry::ply(child) {
            self.set(node, level, slot, Entry::ply(child), slot_length(level) + 1);
        }
    }

    /// Replaces `child` by a leaf when all its slots are alike, and retires it.
    fn collapse(&mut self, node: Node, level: u8, slot: usize, child: u32) {
        let uniform =
            self.deeper.get(child as usize).is_some_and(|deeper| deeper.load(Ordering::Relaxed) == 0);
        if !uniform {
            return;
        }
        let leaf = self.entry(Node::Ply(child), 0);
        let length = self.length(Node::Ply(child), 0);
        self.set(node, level, slot, leaf, length);
        // Readers may still be in it; its entries stay as they are until they have left.
        *self.in_use.of(level + 1) -= 1;
        let free = Arc::clone(&self.free);
        qsbr::retire(move || lock(&free).of(level + 1).push(child));
    }

    /// Changes a slot and counts it. A slot that holds a ply has a length beyond its own.
    fn set(&self, node: Node, level: u8, slot: usize, entry: Entry, length: u8) {
        let old = self.length(node, slot);
        if let Some(to) = self.length_slot(node, slot) {
            to.store(length, Ordering::Relaxed);
        }
        if let Node::Ply(ply) = node
            && let Some(deeper) = self.deeper.get(ply as usize)
        {
            let above = slot_length(level - 1);
            let count = deeper.load(Ordering::Relaxed);
            let count = count + u32::from(length > above) - u32::from(old > above);
            deeper.store(count, Ordering::Relaxed);
        }
        store(self.slot(node, slot), entry.0);
    }

    fn slot(&self, node: Node, slot: usize) -> Option<&AtomicU32> {
        match node {
            Node::Root => self.trie.root.get(slot),
            Node::Ply(ply) => self.trie.slot(ply as usize, slot),
        }
    }

    fn length_slot(&self, node: Node, slot: usize) -> Option<&AtomicU8> {
        match node {
            Node::Root => self.root_lengths.get(slot),
            Node::Ply(ply) => self.lengths.get(first_slot(ply as usize) + slot),
        }
    }

    fn entry(&self, node: Node, slot: usize) -> Entry {
        self.slot(node, slot).map_or(Entry::NONE, |entry| Entry(entry.load(Ordering::Relaxed)))
    }

    fn length(&self, node: Node, slot: usize) -> u8 {
        self.length_slot(node, slot).map_or(0, |length| length.load(Ordering::Relaxed))
    }

    /// Takes lines for so many buckets and plies for the levels below `from` down to `to` out of the free lists or the
    /// untouched rest into an empty list; all or none. The last is for the highest level, lines of buckets come first.
    fn take_plies(
        &mut self,
        from: u8,
        to: u8,
        lines: usize,
        taken: &mut Vec<u32>,
    ) -> Result<(), UpdateError> {
        let mut wanted = Kinds::<usize> { wide: 0, narrow: lines };
        for level in from + 1..=to {
            *wanted.of(level) += 1;
        }
        let free = Arc::clone(&self.free);
        let mut free = lock(&free);
        let new = Kinds {
            wide: wanted.wide.saturating_sub(free.wide.len()),
            narrow: wanted.narrow.saturating_sub(free.narrow.len()),
        };
        let max_plies = self.trie.max_plies;
        let left = self.trie.slots.capacity() / LINE - self.untouched;
        if self.in_use.sum() + wanted.sum() > max_plies || new.lines() > left {
            return Err(UpdateError::Full { max_plies });
        }
        self.budget(new.lines()).map_err(UpdateError::NoMemory)?;
        // A bucket is as large as the plies of the last level.
        let buckets = std::iter::repeat_n(A::LEVELS, lines);
        for level in buckets.chain((from + 1..=to).rev()) {
            taken.push(free.of(level).pop().unwrap_or_else(|| {
                let ply = self.untouched as u32;
                self.untouched += width(level) / LINE;
                store(self.trie.slots.get(USED), self.untouched as u32);
                ply
            }));
            *self.in_use.of(level) += 1;
        }
        Ok(())
    }

    /// So many untouched lines will be used. Some more are asked for at a time; at the end only what is needed.
    fn budget(&mut self, lines: usize) -> Result<(), NoMemory> {
        let missing = (self.untouched + lines).saturating_sub(self.taken);
        if missing == 0 {
            return Ok(());
        }
        let some = missing.max(MOST_LINES * 4);
        if budget::take(some * LINE_BYTES).is_ok() {
            self.taken += some;
            return Ok(());
        }
        budget::take(missing * LINE_BYTES)?;
        self.taken += missing;
        Ok(())
    }
}

impl<A> Drop for MtrieWriter<A> {
    fn drop(&mut self) {
        budget::give_back((self.taken - MOST_LINES) * LINE_BYTES);
    }
}

fn store(slot: Option<&AtomicU32>, value: u32) {
    if let Some(slot) = slot {
        slot.store(value, Ordering::Release);
    }
}

/// The slot of a node of this level that `addr` is in; the first slot when it is a prefix of several.
fn slot_of<A: Address>(addr: A, level: u8) -> usize {
    if level == 0 { usize::from(addr.top()) } else { addr.digit(level) }
}

fn network<A: Address>(addr: A, len: u8) -> Result<A, UpdateError> {
    if len > A::BITS { Err(UpdateError::BadLength(len)) } else { Ok(addr.network(len)) }
}

fn leaf(value: u32) -> Result<Entry, UpdateError> {
    if value > u32::MAX >> 1 {
        return Err(UpdateError::BadValue(value));
    }
    Ok(Entry::leaf(value))
}

impl<A: Address> fmt::Debug for MtrieWriter<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MtrieWriter")
            .field("plies", &self.plies())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}
