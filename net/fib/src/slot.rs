//! An entry: a prefix and everybody who contributes to it.
//!
//! Nearly all entries have one contributor. He and his path list take 32 bits, which are all that a table keeps of an
//! entry; who else contributes is kept elsewhere, and the entry says that there is somebody.

use crate::Source;
use crate::list::ListId;

/// What one source wants of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Contribution {
    pub source: Source,
    pub list: ListId,
}

/// The best contribution to an entry, whether there are others, and whether it is marked: what a client contributes to it
/// goes unless the client says it again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Packed(u32);

/// Bits of the source, which is never 0.
const SOURCE: u32 = 0x1f;
/// There are other contributions.
const OTHERS: u32 = 1 << 5;
/// It is marked.
const MARK: u32 = 1 << 6;
/// Where a list's number begins.
const LIST: u32 = 7;
const _: () = assert!(Source::ALL.len() <= SOURCE as usize, "each source has a number that is not 0");

impl ListId {
    /// The highest number that an entry can have a list of.
    pub const MOST: ListId = ListId(u32::MAX >> LIST);
}

impl Packed {
    pub fn new(best: Contribution, others: bool) -> Packed {
        let others = if others { OTHERS } else { 0 };
        Packed(best.list.0 << LIST | others | (best.source as u32 + 1))
    }

    /// What is never 0.
    pub fn word(self) -> u32 {
        self.0
    }

    /// What [`word`](Self::word) was.
    pub fn from_word(word: u32) -> Packed {
        Packed(word)
    }

    pub fn best(self) -> Contribution {
        let source = Source::ALL.get((self.0 & SOURCE) as usize - 1).copied();
        Contribution { source: source.unwrap_or(Source::DefaultRoute), list: ListId(self.0 >> LIST) }
    }

    /// The same, marked.
    pub fn marked(self) -> Packed {
        Packed(self.0 | MARK)
    }

    pub fn is_marked(self) -> bool {
        self.0 & MARK != 0
    }

    pub fn has_others(self) -> bool {
        self.0 & OTHERS != 0
    }
}

/// An entry's contributions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot<'a> {
    best: Contribution,
    /// All but the best.
    others: &'a [Contribution],
    marked: bool,
}

impl<'a> Slot<'a> {
    pub fn new(packed: Packed, others: &'a [Contribution]) -> Slot<'a> {
        Slot { best: packed.best(), others, marked: packed.is_marked() }
    }

    /// Whether what a client contributes is to go unless the client adds it again.
    pub fn is_marked(&self) -> bool {
        self.marked
    }

    /// The one that decides.
    pub fn best(&self) -> Contribution {
        self.best
    }

    /// The list that decides where packets go. A path MTU does not, so that there may be none.
    pub fn route(&self) -> Option<ListId> {
        self.all().find(|c| c.source != Source::PathMtu).map(|c| c.list)
    }

    /// The source that decides where packets go, and by which list: a path MTU only without another source.
    pub fn deciding(&self) -> (Source, ListId) {
        let route = self.all().find(|c| c.source != Source::PathMtu).unwrap_or(self.best);
        (route.source, route.list)
    }

    /// Whether this source is the only one that contributes.
    pub fn is_alone(&self, source: Source) -> bool {
        self.best.source == source && self.others.is_empty()
    }

    /// All contributions, best first.
    pub fn all(&self) -> impl Iterator<Item = Contribution> + use<'a> {
        std::iter::once(self.best).chain(self.others.iter().copied())
    }

    /// What a source contributes.
    pub fn of(&self, source: Source) -> Option<ListId> {
        self.all().find(|c| c.source == source).map(|c| c.list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contribution_is_the_same_when_it_was_packed() {
        for source in Source::ALL {
            for list in [ListId(0), ListId(1), ListId::MOST] {
                let best = Contribution { source, list };
                for others in [false, true] {
                    let packed = Packed::from_word(Packed::new(best, others).word());
                    assert_eq!((packed.best(), packed.has_others()), (best, others));
                    assert_ne!(packed.word(), 0);
                    let marked = packed.marked();
                    assert_eq!((marked.best(), marked.has_others()), (best, others));
                    assert_eq!((packed.is_marked(), marked.is_marked()), (false, true));
                }
            }
        }
    }
}
