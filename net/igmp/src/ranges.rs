//! Groups of which listeners name their sources (SSM, RFC 4607); all others are for any source.

use std::net::Ipv4Addr;

use shoal_wire::Ip4Prefix;

use crate::Igmp;

/// Prefixes of groups with sources, in the order in which they were configured.
pub(crate) struct Ranges(Vec<Ip4Prefix>);

impl Default for Ranges {
    fn default() -> Self {
        // RFC 4607, 1.
        Ranges(Ip4Prefix::new(Ipv4Addr::new(232, 0, 0, 0), 8).into_iter().collect())
    }
}

impl Ranges {
    /// Whether listeners of a group name its sources.
    pub fn is_ssm(&self, group: Ipv4Addr) -> bool {
        self.0.iter().any(|prefix| prefix.contains(group))
    }
}

/// What groups are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupKind {
    /// Any source.
    Asm,
    /// Sources that listeners name.
    Ssm,
}

impl Igmp {
    /// Says what the groups of a prefix are for. A longer or shorter prefix keeps its setting.
    pub fn set_range(&self, prefix: Ip4Prefix, kind: GroupKind) {
        let network = Ip4Prefix::new(prefix.network(), prefix.len()).unwrap_or(prefix);
        let mut ranges = self.ranges.borrow_mut();
        let there = ranges.0.iter().position(|known| *known == network);
        match (kind, there) {
            (GroupKind::Ssm, None) => ranges.0.push(network),
            (GroupKind::Asm, Some(at)) => drop(ranges.0.remove(at)),
            _ => {}
        }
    }

    /// The prefixes of groups with sources.
    pub fn ranges(&self) -> Vec<Ip4Prefix> {
        self.ranges.borrow().0.clone()
    }
}
