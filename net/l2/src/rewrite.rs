//! Tag rewriting: which tags are taken off a frame, and which are put in their place.
//!
//! What a port does to frames that come in by it, it does the other way round to those that go out: what was taken off is
//! put back, with the ids that the port itself takes, and what was put on is taken off.

use std::fmt;

use shoal_buffer::Packet;
use shoal_ethernet::{Inner, Match, TagKind, Tags, Vid};
use shoal_infra::{Zeroable, zeroable_struct};
use shoal_interface::{ProviderSaid, TagsSaid};
use shoal_wire::EtherType;

/// Bytes of the addresses a frame begins with.
const ADDRESSES: usize = 12;
/// Bytes of a tag.
const TAG: usize = 4;

zeroable_struct! {
    /// What is done to the tags of a frame. All zero: nothing.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Rewrite {
        /// Bytes of tags that are taken off.
        pop: u8,
        /// Bytes of tags that are put on.
        push: u8,
        tags: [u8; 8],
    }
}

/// A tag to be put on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag {
    /// Its type: 0x8100 or 0x88a8.
    pub kind: EtherType,
    /// Its id.
    pub id: Vid,
}

impl Rewrite {
    fn new(pop: usize, tags: &[Tag]) -> Self {
        let mut rewrite =
            Rewrite { pop: (pop * TAG) as u8, push: (tags.len() * TAG) as u8, ..Rewrite::zeroed() };
        for (to, tag) in rewrite.tags.chunks_exact_mut(TAG).zip(tags) {
            let (EtherType(kind), id) = (tag.kind, tag.id.number());
            let [a, b] = kind.to_be_bytes();
            let [c, d] = id.to_be_bytes();
            to.copy_from_slice(&[a, b, c, d]);
        }
        rewrite
    }

    /// Whether it does anything.
    #[inline(always)]
    pub fn is_some(&self) -> bool {
        self.pop | self.push != 0
    }

    /// Itself, if it does anything.
    #[inline(always)]
    pub fn used(&self) -> Option<&Rewrite> {
        self.is_some().then_some(self)
    }

    /// Rewrites a frame's tags. `None`, and the frame is as it was: it has too few, or there is no room for more.
    #[inline]
    pub fn apply(&self, pkt: &mut Packet<'_>) -> Option<()> {
        let (pop, push) = (usize::from(self.pop), usize::from(self.push));
        let data = pkt.data();
        let addresses: [u8; ADDRESSES] = *data.first_chunk()?;
        if data.len() < ADDRESSES + pop || !has_tags(data, pop / TAG) {
            return None;
        }
        if push > pop {
            pkt.push(push - pop)?;
        } else {
            pkt.pull(pop - push)?;
        }
        let data = pkt.data_mut();
        data.get_mut(..ADDRESSES)?.copy_from_slice(&addresses);
        data.get_mut(ADDRESSES..ADDRESSES + push)?.copy_from_slice(self.tags.get(..push)?);
        Some(())
    }

    /// Whether a frame begins with the tags that are put on: types and ids, priorities do not count.
    pub fn carries_pushed(&self, frame: &[u8]) -> bool {
        let push = usize::from(self.push);
        let (Some(has), Some(wants)) = (frame.get(ADDRESSES..ADDRESSES + push), self.tags.get(..push)) else {
            return false;
        };
        has.chunks_exact(TAG).zip(wants.chunks_exact(TAG)).all(|(has, wants)| same_tag(has, wants))
    }
}

/// Whether two tags are of one type and have one id; priorities do not count.
pub(crate) fn same_tag(has: &[u8], wants: &[u8]) -> bool {
    match (has, wants) {
        ([kind @ .., high, low], [wanted @ .., wanted_high, wanted_low]) => {
            kind == wanted && high & 0x0f == wanted_high & 0x0f && low == wanted_low
        }
        _ => false,
    }
}

/// Whether a frame has that many tags: none, one or two.
fn has_tags(frame: &[u8], tags: usize) -> bool {
    tags == 0 || Tags::of_frame(frame).is_some_and(|has| usize::from(has.count) >= tags)
}

/// The operations, by VPP's names and numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TagOp {
    /// Nothing.
    #[default]
    Disabled,
    /// Puts one tag on.
    Push1,
    /// Puts two tags on.
    Push2,
    /// Takes one tag off.
    Pop1,
    /// Takes two tags off.
    Pop2,
    /// One for one.
    Translate11,
    /// Two for one.
    Translate12,
    /// One for two.
    Translate21,
    /// Two for two.
    Translate22,
}

impl TagOp {
    /// All, by their numbers in the API.
    pub const ALL: [TagOp; 9] = [
        TagOp::Disabled,
        TagOp::Push1,
        TagOp::Push2,
        TagOp::Pop1,
        TagOp::Pop2,
        TagOp::Translate11,
        TagOp::Translate12,
        TagOp::Translate21,
        TagOp::Translate22,
    ];

    /// Tags taken off, tags put on.
    pub const fn counts(self) -> (usize, usize) {
        match self {
            TagOp::Disabled => (0, 0),
            TagOp::Push1 => (0, 1),
            TagOp::Push2 => (0, 2),
            TagOp::Pop1 => (1, 0),
            TagOp::Pop2 => (2, 0),
            TagOp::Translate11 => (1, 1),
            TagOp::Translate12 => (1, 2),
            TagOp::Translate21 => (2, 1),
            TagOp::Translate22 => (2, 2),
        }
    }

    /// The one that takes off and puts on so many.
    pub fn of_counts(pop: usize, push: usize) -> Option<TagOp> {
        TagOp::ALL.into_iter().find(|op| op.counts() == (pop, push))
    }
}

/// What a port does to the tags of frames, as configured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TagRewrite {
    /// The operation.
    pub op: TagOp,
    /// The type of the first tag that is put on; a second one's is 0x8100.
    pub kind: TagKind,
    /// The ids that are put on; what an operation does not need is not looked at.
    pub ids: [Vid; 2],
}

fn type_of(kind: TagKind) -> EtherType {
    match kind {
        TagKind::Dot1q => EtherType::VLAN,
        TagKind::Dot1ad => EtherType::QINQ,
    }
}

impl TagRewrite {
    /// Nothing is done.
    pub fn none() -> Self {
        let zero = Vid::new(0).unwrap_or_else(|| unreachable!("0 is below 4096"));
        TagRewrite { op: TagOp::Disabled, kind: TagKind::Dot1q, ids: [zero; 2] }
    }

    /// What is done to frames that come in by a port and to those that go out by it; `takes`: which frames are the port's,
    /// if it is a sub-interface. `None`: they do not have so many tags.
    pub(crate) fn both_ways(self, takes: Option<Match>) -> Option<[Rewrite; 2]> {
        let (pop, push) = self.op.counts();
        let [outer, inner] = self.ids;
        let on = [Tag { kind: type_of(self.kind), id: outer }, Tag { kind: EtherType::VLAN, id: inner }];
        let own = own_tags(takes);
        Some([Rewrite::new(pop, on.get(..push)?), Rewrite::new(push, own.get(..pop)?)])
    }
}

/// The tags of frames that a port takes. That of any inner id is 0.
fn own_tags(takes: Option<Match>) -> Vec<Tag> {
    let Some(Match::Tags { kind, outer, inner, .. }) = takes else { return Vec::new() };
    let inner = match inner {
        Inner::None => None,
        Inner::Any => Vid::new(0),
        Inner::Id(id) => Some(id),
    };
    let first = Tag { kind: type_of(kind), id: outer };
    std::iter::once(first).chain(inner.map(|id| Tag { kind: EtherType::VLAN, id })).collect()
}

/// As `show interface vtr` prints it.
impl fmt::Display for TagRewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.op {
            TagOp::Disabled => return f.write_str("none"),
            TagOp::Push1 => "push-1",
            TagOp::Push2 => "push-2",
            TagOp::Pop1 => return f.write_str("pop-1"),
            TagOp::Pop2 => return f.write_str("pop-2"),
            TagOp::Translate11 => "trans-1-1",
            TagOp::Translate12 => "trans-1-2",
            TagOp::Translate21 => "trans-2-1",
            TagOp::Translate22 => "trans-2-2",
        };
        f.write_str(name)?;
        f.write_str(self.kind_word())?;
        let (_, push) = self.op.counts();
        self.ids.iter().take(push).try_for_each(|id| write!(f, " {}", id.number()))
    }
}

impl TagRewrite {
    fn kind_word(self) -> &'static str {
        match self.kind {
            TagKind::Dot1q => " dot1q",
            TagKind::Dot1ad => " dot1ad",
        }
    }

    /// As messages have it.
    pub(crate) fn said(self) -> TagsSaid {
        let op = (0..).zip(TagOp::ALL).find(|(_, op)| *op == self.op).map_or(0, |(n, _)| n);
        let is_dot1q = op != 0 && self.kind == TagKind::Dot1q;
        TagsSaid { op, is_dot1q, ids: self.ids.map(Vid::number), provider: ProviderSaid::default() }
    }

    /// As `set interface l2 tag-rewrite` takes it.
    pub fn command(&self) -> String {
        let (pop, push) = self.op.counts();
        let ids: Vec<String> = self.ids.iter().take(push).map(|id| id.number().to_string()).collect();
        match (pop, push) {
            (0, 0) => "disable".into(),
            (pop, 0) => format!("pop {pop}"),
            (0, _) => format!("push{} {}", self.kind_word(), ids.join(" ")),
            (pop, push) => format!("translate {pop}-{push}{} {}", self.kind_word(), ids.join(" ")),
        }
    }
}
