//! VLAN tags: how a frame's are read, and which sub-interface they lead to.
//!
//! A frame may have up to two tags that mean something, as in VPP: an outer one of type 0x8100, 0x88a8, 0x9100 or 0x9200,
//! and behind it one of type 0x8100. A third one is noticed, not read. Ids of outer tags of type 0x88a8 are looked up
//! among those of 802.1ad, all others among those of 802.1Q. Of the sub-interfaces of a port that a frame's ids fit, the
//! first that takes its number of tags gets it: outer and inner id, outer id and any inner one, outer id, all others.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_infra::StableArena;
use shoal_interface::{Exact, Inner, MAX_INTERFACES, Match, SwIfIndex, TagKind, Vid};
use shoal_wire::EtherType;

use crate::blocks::{BlockWriter, Blocks};

/// Bytes of a tag.
const TAG: usize = 4;
/// Where the type stands in a frame.
const TYPE: usize = 12;

/// Whether a type is that of an outer tag.
#[inline(always)]
pub(crate) fn is_outer(kind: EtherType) -> bool {
    // IPv4 is below all of them.
    kind.0 >= 0x8100 && matches!(kind.0, 0x8100 | 0x88a8 | 0x9100 | 0x9200)
}

/// The tags of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tags {
    /// How many there are: 1 to 3, 3 for more.
    pub count: u8,
    /// Whether the outer one's type is that of 802.1ad.
    pub dot1ad: bool,
    /// The outer id.
    pub outer: Vid,
    /// The inner id, of two or more.
    pub inner: Vid,
}

impl Tags {
    /// Reads them. `None`: there are none, or the frame ends within them or the type behind.
    #[inline(always)]
    pub fn of_frame(frame: &[u8]) -> Option<Tags> {
        match frame.first_chunk() {
            Some(head) => Tags::of_head(head),
            None => Tags::of_short(frame),
        }
    }

    /// Those of a frame that is long enough for two tags and the type behind: what all real ones are.
    #[inline(always)]
    fn of_head(head: &[u8; TYPE + 2 * TAG + 2]) -> Option<Tags> {
        let [.., first, outer, second, inner, third] = head.as_chunks::<2>().0 else { return None };
        let kind = |bytes: &[u8; 2]| EtherType(u16::from_be_bytes(*bytes));
        let first = kind(first);
        if !is_outer(first) {
            return None;
        }
        let (outer, dot1ad) = (Vid::of_tag(*outer), first == EtherType::QINQ);
        if kind(second) != EtherType::VLAN {
            return Some(Tags { count: 1, dot1ad, outer, inner: Vid::NONE });
        }
        let count = if kind(third) == EtherType::VLAN { 3 } else { 2 };
        Some(Tags { count, dot1ad, outer, inner: Vid::of_tag(*inner) })
    }

    /// Those of a shorter one.
    #[cold]
    fn of_short(frame: &[u8]) -> Option<Tags> {
        let mut head = [0; TYPE + 2 * TAG + 2];
        head.get_mut(..frame.len())?.copy_from_slice(frame);
        // What is not there reads as 0, which is no type of a tag.
        Tags::of_head(&head).filter(|tags| frame.len() >= TYPE + tags.len() + 2)
    }

    /// Bytes that those take which mean something.
    #[inline(always)]
    pub fn len(&self) -> usize {
        usize::from(self.count.min(2)) * TAG
    }

    /// Never: there is one at least.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// A sub-interface and whether its match is exact; 0 is none.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Candidate(u32);

impl Candidate {
    const BITS: u32 = 17;
    const MASK: u64 = (1 << Self::BITS) - 1;
    const EXACT: u32 = MAX_INTERFACES as u32;

    fn new(interface: SwIfIndex, exact: Exact) -> Self {
        Candidate(interface.0 | if exact == Exact::Yes { Self::EXACT } else { 0 })
    }

    /// The interface, if there is one and it takes `count` tags, where an exact match has `own`.
    #[inline(always)]
    fn taking(self, count: u8, own: u8) -> Option<SwIfIndex> {
        let fits = if self.0 & Self::EXACT != 0 { count == own } else { count >= own };
        (self.0 != 0 && fits).then_some(SwIfIndex(self.0 & (Self::EXACT - 1)))
    }
}

/// What stands by an outer id.
#[derive(Clone, Copy)]
struct OfOuter(u64);

impl OfOuter {
    fn only(self) -> Candidate {
        Candidate((self.0 & Candidate::MASK) as u32)
    }

    fn any(self) -> Candidate {
        Candidate((self.0 >> Candidate::BITS & Candidate::MASK) as u32)
    }

    /// The root of the tree of inner ids.
    fn inner(self) -> u32 {
        (self.0 >> (2 * Candidate::BITS)) as u32
    }

    fn of(Candidate(only): Candidate, Candidate(any): Candidate, inner: u32) -> Self {
        OfOuter(
            u64::from(only) | u64::from(any) << Candidate::BITS | u64::from(inner) << (2 * Candidate::BITS),
        )
    }
}

const _: () = assert!(MAX_INTERFACES == 1 << 16, "an interface and a bit are 17 bits");

/// The halves of a word.
fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

fn word(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Which sub-interfaces take which frames of a port, as packets see it. Clones are the same table.
#[derive(Clone)]
pub struct VlanTable {
    /// For each port two words: the roots of its trees, 802.1Q low and 802.1ad high; and the sub-interfaces that take all
    /// other tagged frames, low, and untagged ones, high.
    ports: StableArena<AtomicU64>,
    blocks: Blocks,
}

impl VlanTable {
    fn cell(&self, port: SwIfIndex, which: usize) -> Option<&AtomicU64> {
        self.ports.get(port.0 as usize * 2 + which)
    }

    fn load(&self, port: SwIfIndex, which: usize) -> (u32, u32) {
        halves(self.cell(port, which).map_or(0, |cell| cell.load(Ordering::Acquire)))
    }

    /// Who takes frames without tags: a sub-interface, or the port itself.
    #[inline(always)]
    pub fn untagged(&self, port: SwIfIndex) -> SwIfIndex {
        let (_, untagged) = self.load(port, 1);
        Candidate(untagged).taking(0, 0).unwrap_or(port)
    }

    /// Who takes frames with these tags; `None`: no interface.
    #[inline(always)]
    pub fn tagged(&self, port: SwIfIndex, tags: &Tags) -> Option<SwIfIndex> {
        if tags.outer == Vid::NONE {
            // A tag that carries a priority only is none.
            return Some(self.untagged(port));
        }
        let (dot1q, dot1ad) = self.load(port, 0);
        let outer = OfOuter(self.blocks.get(if tags.dot1ad { dot1ad } else { dot1q }, tags.outer.number()));
        if tags.count > 1 {
            let inner = Candidate(self.blocks.get(outer.inner(), tags.inner.number()) as u32);
            if let Some(sub) = inner.taking(tags.count, 2).or_else(|| outer.any().taking(tags.count, 2)) {
                return Some(sub);
            }
        }
        outer.only().taking(tags.count, 1).or_else(|| {
            let (default, _) = self.load(port, 1);
            Candidate(default).taking(tags.count, 1)
        })
    }
}

/// Why a sub-interface cannot take what it is to take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MatchConflict {
    /// Another one takes it.
    By(SwIfIndex),
    /// There is no block left.
    Full,
}

/// The one who changes the table.
pub(crate) struct VlanWriter {
    table: VlanTable,
    blocks: BlockWriter,
}

impl VlanWriter {
    pub(crate) fn new() -> io::Result<Self> {
        let blocks = BlockWriter::new()?;
        let ports = StableArena::with_capacity(MAX_INTERFACES * 2)?;
        let table = VlanTable { ports, blocks: blocks.blocks().clone() };
        Ok(VlanWriter { table, blocks })
    }

    pub(crate) fn table(&self) -> &VlanTable {
        &self.table
    }

    fn store(&self, port: SwIfIndex, which: usize, low: u32, high: u32) {
        if let Some(cell) = self.table.cell(port, which) {
            cell.store(word(low, high), Ordering::Release);
        }
    }

    fn roots(&self, port: SwIfIndex, kind: TagKind) -> u32 {
        let (dot1q, dot1ad) = self.table.load(port, 0);
        if kind == TagKind::Dot1q { dot1q } else { dot1ad }
    }

    fn set_root(&self, port: SwIfIndex, kind: TagKind, root: u32) {
        let (dot1q, dot1ad) = self.table.load(port, 0);
        match kind {
            TagKind::Dot1q => self.store(port, 0, root, dot1ad),
            TagKind::Dot1ad => self.store(port, 0, dot1q, root),
        }
    }

    /// A sub-interface takes frames of a port from now on.
    ///
    /// # Errors
    /// Another one takes them, or there is no room; nothing is changed then.
    pub(crate) fn enter(
        &mut self,
        port: SwIfIndex,
        what: Match,
        sub: SwIfIndex,
    ) -> Result<(), MatchConflict> {
        let (default, untagged) = self.table.load(port, 1);
        let free = |slot: u32| match Candidate(slot).taking(u8::MAX, u8::MAX) {
            Some(other) => Err(MatchConflict::By(other)),
            None => Ok(()),
        };
        match what {
            Match::Default => {
                free(default)?;
                self.store(port, 1, Candidate::new(sub, Exact::No).0, untagged);
            }
            Match::End => {}
            Match::Untagged => {
                free(untagged)?;
                self.store(port, 1, default, Candidate::new(sub, Exact::Yes).0);
            }
            Match::Tags { kind, outer, inner, exact } => {
                let (root, new) = (self.roots(port, kind), Candidate::new(sub, exact));
                let old = OfOuter(self.table.blocks.get(root, outer.number()));
                let there = match inner {
                    Inner::None => old.only().0,
                    Inner::Any => old.any().0,
                    Inner::Id(id) => self.table.blocks.get(old.inner(), id.number()) as u32,
                };
                free(there)?;
                let changed = match inner {
                    Inner::None => OfOuter::of(new, old.any(), old.inner()),
                    Inner::Any => OfOuter::of(old.only(), new, old.inner()),
                    Inner::Id(id) => {
                        let tree = self.blocks.set(old.inner(), id.number(), u64::from(new.0));
                        OfOuter::of(old.only(), old.any(), tree.ok_or(MatchConflict::Full)?)
                    }
                };
                let Some(root) = self.blocks.set(root, outer.number(), changed.0) else {
                    if let Inner::Id(id) = inner {
                        self.blocks.clear(changed.inner(), id.number());
                    }
                    return Err(MatchConflict::Full);
                };
                self.set_root(port, kind, root);
            }
        }
        Ok(())
    }

    /// No interface takes them any more.
    pub(crate) fn leave(&mut self, port: SwIfIndex, what: Match) {
        let (default, untagged) = self.table.load(port, 1);
        match what {
            Match::Default => self.store(port, 1, 0, untagged),
            Match::End => {}
            Match::Untagged => self.store(port, 1, default, 0),
            Match::Tags { kind, outer, inner, .. } => {
                let root = self.roots(port, kind);
                let old = OfOuter(self.table.blocks.get(root, outer.number()));
                let none = Candidate(0);
                let left = match inner {
                    Inner::None => OfOuter::of(none, old.any(), old.inner()),
                    Inner::Any => OfOuter::of(old.only(), none, old.inner()),
                    Inner::Id(id) => {
                        let tree = self.blocks.clear(old.inner(), id.number());
                        OfOuter::of(old.only(), old.any(), tree)
                    }
                };
                let root = match left.0 {
                    0 => self.blocks.clear(root, outer.number()),
                    word => self.blocks.set(root, outer.number(), word).unwrap_or(root),
                };
                self.set_root(port, kind, root);
            }
        }
    }
}
