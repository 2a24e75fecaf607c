//! Trees of 12-bit numbers: what the ids of VLAN tags are looked up in.
//!
//! A tree is a block of 64 words whose words lead to blocks of 64 words, which hold the values. A port with one
//! sub-interface pays for two blocks, a kilobyte, one with all 4,094 ids for 65.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_infra::StableArena;
use shoal_infra::qsbr::Grace;

/// Words of a block.
const SIZE: usize = 64;
/// Most blocks; address space only.
const MOST: u32 = 1 << 19;

/// All blocks, as packets read them. Clones are the same. Block 0 is none.
#[derive(Clone)]
pub(crate) struct Blocks(StableArena<AtomicU64>);

impl Blocks {
    #[inline(always)]
    fn cell(&self, block: u32, at: u16) -> Option<&AtomicU64> {
        self.0.get(block as usize * SIZE + usize::from(at) % SIZE)
    }

    #[inline(always)]
    fn load(&self, block: u32, at: u16) -> u64 {
        self.cell(block, at).map_or(0, |cell| cell.load(Ordering::Acquire))
    }

    fn store(&self, block: u32, at: u16, value: u64) {
        if let Some(cell) = self.cell(block, at) {
            cell.store(value, Ordering::Release);
        }
    }

    /// What the tree of a root has for a number; 0 for nothing, as all of root 0.
    #[inline(always)]
    pub(crate) fn get(&self, root: u32, number: u16) -> u64 {
        let branch = if root == 0 { 0 } else { self.load(root, number / SIZE as u16) as u32 };
        if branch == 0 { 0 } else { self.load(branch, number) }
    }
}

/// The one who changes trees.
pub(crate) struct BlockWriter {
    blocks: Blocks,
    next: u32,
    /// Blocks that packets may still be looking at.
    free: VecDeque<(u32, Grace)>,
    /// How many words of a block are not 0.
    used: HashMap<u32, u32>,
}

impl BlockWriter {
    pub(crate) fn new() -> io::Result<Self> {
        let blocks = Blocks(StableArena::with_capacity(MOST as usize * SIZE)?);
        Ok(BlockWriter { blocks, next: 1, free: VecDeque::new(), used: HashMap::new() })
    }

    pub(crate) fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    fn take(&mut self) -> Option<u32> {
        if let Some((block, _)) = self.free.front().copied().filter(|(_, grace)| grace.is_over()) {
            self.free.pop_front();
            return Some(block);
        }
        let block = self.next;
        (block < MOST).then(|| self.next += 1)?;
        Some(block)
    }

    fn write(&mut self, block: u32, at: u16, value: u64) {
        let old = self.blocks.load(block, at);
        self.blocks.store(block, at, value);
        let used = self.used.entry(block).or_default();
        *used = *used + u32::from(value != 0) - u32::from(old != 0);
    }

    /// Gives an empty block back; tells whether it was.
    fn release(&mut self, block: u32) -> bool {
        let empty = self.used.get(&block).is_none_or(|used| *used == 0);
        if empty {
            self.used.remove(&block);
            self.free.push_back((block, Grace::start()));
        }
        empty
    }

    /// Gives a number of a tree a value that is not 0; the tree's root, which is new for root 0. `None` when there is no
    /// block left; nothing is changed then.
    pub(crate) fn set(&mut self, root: u32, number: u16, value: u64) -> Option<u32> {
        let (fresh, top) = (root == 0, number / SIZE as u16);
        let root = if fresh { self.take()? } else { root };
        let mut branch = self.blocks.load(root, top) as u32;
        if branch == 0 {
            let Some(block) = self.take() else {
                if fresh {
                    self.release(root);
                }
                return None;
            };
            branch = block;
            self.write(branch, number, value);
            self.write(root, top, u64::from(branch));
        } else {
            self.write(branch, number, value);
        }
        Some(root)
    }

    /// A number of a tree has no value any more; the tree's root, 0 when it is empty.
    pub(crate) fn clear(&mut self, root: u32, number: u16) -> u32 {
        let top = number / SIZE as u16;
        let branch = if root == 0 { 0 } else { self.blocks.load(root, top) as u32 };
        if branch == 0 {
            return root;
        }
        self.write(branch, number, 0);
        if self.release(branch) {
            self.write(root, top, 0);
            if self.release(root) {
                return 0;
            }
        }
        root
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_hold_what_was_put_in_and_give_back_their_blocks() {
        let mut writer = BlockWriter::new().unwrap();
        let (mut one, mut other) = (0, 0);
        for number in 0..4096 {
            one = writer.set(one, number, u64::from(number) + 1).unwrap();
        }
        other = writer.set(other, 7, 70).unwrap();
        let blocks = writer.blocks().clone();
        assert!((0..4096).all(|n| blocks.get(one, n) == u64::from(n) + 1));
        assert_eq!((blocks.get(other, 7), blocks.get(other, 8), blocks.get(0, 7)), (70, 0, 0));
        let most = writer.next;
        for number in 0..4096 {
            one = writer.clear(one, number);
        }
        assert_eq!((one, writer.clear(other, 7), writer.used.len()), (0, 0, 0));
        assert_eq!(writer.clear(0, 7), 0);
        assert_eq!(writer.free.len(), most as usize - 1);
    }
}
