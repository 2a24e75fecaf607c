//! Sub-interfaces as others see them: which frames of a port they take, and the tags of those they send.

use shoal_buffer::SwIfIndex;
use shoal_wire::EtherType;

/// A VLAN's number, 0 to 4095.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Vid(u16);

impl Vid {
    /// The number of a tag that carries a priority and no VLAN.
    pub const NONE: Vid = Vid(0);

    /// A number that a VLAN can have; `None` above 4095.
    pub fn new(number: u16) -> Option<Vid> {
        (number < 4096).then_some(Vid(number))
    }

    /// The number.
    pub fn number(self) -> u16 {
        self.0
    }

    /// What the second half of a tag says, without priority and drop eligibility.
    pub fn of_tag(tag: [u8; 2]) -> Vid {
        Vid(u16::from_be_bytes(tag) & 0x0fff)
    }
}

/// Which ids of inner tags a sub-interface takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inner {
    /// None: it goes by the outer tag alone.
    None,
    /// Every one.
    Any,
    /// This one.
    Id(Vid),
}

/// Whether frames with further tags are taken too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exact {
    /// Not those. Only such sub-interfaces can be routed.
    Yes,
    /// Those too.
    No,
}

/// Which table an outer tag is looked up in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TagKind {
    /// 802.1Q, and the types used before 802.1ad.
    Dot1q,
    /// 802.1ad.
    Dot1ad,
}

/// Which frames of a port a sub-interface takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Match {
    /// Those with tags that no other one takes.
    Default,
    /// Those without, instead of the port itself.
    Untagged,
    /// What the other end of its pipe sends; none of the port's own.
    End,
    /// Those with these tags.
    Tags {
        /// The outer tag's kind.
        kind: TagKind,
        /// Its id.
        outer: Vid,
        /// The inner ones.
        inner: Inner,
        /// Whether no others may follow.
        exact: Exact,
    },
}

impl Match {
    /// Frames with one 802.1Q tag: what a sub-interface takes that is configured by its VLAN only.
    pub fn exact_dot1q(outer: Vid) -> Match {
        Match::Tags { kind: TagKind::Dot1q, outer, inner: Inner::None, exact: Exact::Yes }
    }

    /// Whether IP can run on a sub-interface: it must say exactly which tags its frames have.
    pub fn is_exact(self) -> bool {
        match self {
            Match::Default => false,
            Match::Untagged | Match::End => true,
            Match::Tags { inner, exact, .. } => exact == Exact::Yes && inner != Inner::Any,
        }
    }

    /// How many tags it names; `inner-dot1q any` is one of them.
    pub fn tag_count(self) -> u8 {
        match self {
            Match::Default | Match::Untagged | Match::End => 0,
            Match::Tags { inner: Inner::None, .. } => 1,
            Match::Tags { .. } => 2,
        }
    }

    /// The tags of a frame that the router itself sends by it: type and id of each.
    pub(crate) fn tags(self) -> [u8; 8] {
        let Match::Tags { kind, outer, inner, .. } = self else { return [0; 8] };
        let kind = match kind {
            TagKind::Dot1q => EtherType::VLAN,
            TagKind::Dot1ad => EtherType::QINQ,
        };
        let outer = tag(kind, outer);
        let inner = match inner {
            Inner::Id(id) => tag(EtherType::VLAN, id),
            Inner::None | Inner::Any => [0; 4],
        };
        let mut tags = [0; 8];
        let both = outer.iter().chain(&inner);
        tags.iter_mut().zip(both).for_each(|(to, from)| *to = *from);
        tags
    }
}

/// A tag's type and id.
fn tag(kind: EtherType, id: Vid) -> [u8; 4] {
    (u32::from(kind.0) << 16 | u32::from(id.0)).to_be_bytes()
}

/// A sub-interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sub {
    /// The interface its frames come in by.
    pub port: SwIfIndex,
    /// Its number on that interface.
    pub number: u32,
    /// The frames it takes.
    pub takes: Match,
}
