//! Feature arcs: named places in the graph where features join, per interface, in an order they declare.

use std::sync::atomic::{AtomicU64, Ordering};

use shoal_buffer::SwIfIndex;
use shoal_infra::StableArena;

use crate::node::{Edge, NodeIndex};

/// Most interfaces an arc can be configured for.
pub(crate) const MAX_INTERFACES: usize = 1 << 20;
/// Most features on one arc: one bit each.
pub(crate) const MAX_FEATURES: usize = 64;

/// Which interface's features an arc runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArcSide {
    /// The one the packet came in by.
    Receive,
    /// The one it goes out by.
    Send,
    /// Nobody's: features enabled on [`EVERYBODY`] run for the packets of all interfaces.
    All,
}

/// The interface that stands for all on an arc that is nobody's; it has no packets of its own.
pub const EVERYBODY: SwIfIndex = SwIfIndex(0);

/// What a module declares of an arc.
#[derive(Clone, Copy, Debug)]
pub struct ArcSpec {
    /// The arc's name: `ip4-unicast`.
    pub name: &'static str,
    /// Whose features run.
    pub side: ArcSide,
    /// Nodes whose packets start on the arc.
    pub starts: &'static [&'static str],
    /// The node packets go to after the last feature.
    pub end: &'static str,
}

/// What a feature declares: a node that joins an arc.
#[derive(Clone, Copy, Debug)]
pub struct FeatureSpec {
    /// The arc's name.
    pub arc: &'static str,
    /// The feature's node.
    pub node: &'static str,
    /// Features it must come before.
    pub before: &'static [&'static str],
    /// Features it must come after.
    pub after: &'static [&'static str],
}

/// An arc after its features were put in order.
pub(crate) struct ArcTable {
    pub(crate) name: &'static str,
    /// Feature nodes in order.
    pub(crate) features: Vec<(String, NodeIndex)>,
    pub(crate) handle: Arc,
    pub(crate) side: ArcSide,
}

/// A handle on an arc: per interface, a bit for each enabled feature.
///
/// Nodes where an arc starts keep one; asking it costs one load.
#[derive(Clone, Debug)]
pub struct Arc {
    pub(crate) number: u8,
    bits: StableArena<AtomicU64>,
}

impl Arc {
    pub(crate) fn new(number: u8) -> std::io::Result<Self> {
        Ok(Arc { number, bits: StableArena::with_capacity(MAX_INTERFACES)? })
    }

    /// Features enabled on an interface, a bit for each position on the arc.
    #[inline(always)]
    pub fn enabled(&self, interface: SwIfIndex) -> u64 {
        self.bits.get(interface.0 as usize).map_or(0, |b| b.load(Ordering::Relaxed))
    }

    /// Whether any feature is enabled on an interface.
    #[inline(always)]
    pub fn any(&self, interface: SwIfIndex) -> bool {
        self.enabled(interface) != 0
    }

    pub(crate) fn set(&self, interface: SwIfIndex, feature: usize, on: bool) -> bool {
        let Some(cell) = self.bits.get(interface.0 as usize) else { return false };
        let bit = 1u64 << (feature % MAX_FEATURES);
        if on {
            cell.fetch_or(bit, Ordering::Relaxed)
        } else {
            cell.fetch_and(!bit, Ordering::Relaxed)
        };
        true
    }

    pub(crate) fn clear(&self, interface: SwIfIndex) {
        if let Some(cell) = self.bits.get(interface.0 as usize) {
            cell.store(0, Ordering::Relaxed);
        }
    }
}

/// The first enabled position at or after `from`, or `end`.
#[inline(always)]
pub(crate) fn next_position(enabled: u64, from: usize, end: usize) -> usize {
    let left = if from >= MAX_FEATURES { 0 } else { enabled >> from };
    if left == 0 { end } else { from + left.trailing_zeros() as usize }
}

/// The edge that leads to a position, given the edge to position 0.
#[inline(always)]
pub(crate) fn edge_to(base: u16, position: usize) -> Edge {
    Edge(base + position as u16)
}

/// Orders features so that every `before` and `after` holds; ties go by declaration.
///
/// # Errors
/// The names on a circle of constraints.
pub(crate) fn order(specs: &[FeatureSpec]) -> Result<Vec<usize>, Vec<&'static str>> {
    let position = |name: &str| specs.iter().position(|s| s.node == name);
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); specs.len()];
    for (i, spec) in specs.iter().enumerate() {
        for later in spec.before.iter().filter_map(|n| position(n)) {
            if let Some(list) = before.get_mut(later) {
                list.push(i);
            }
        }
        for earlier in spec.after.iter().filter_map(|n| position(n)) {
            if let Some(list) = before.get_mut(i) {
                list.push(earlier);
            }
        }
    }
    let mut ordered: Vec<usize> = Vec::with_capacity(specs.len());
    while ordered.len() < specs.len() {
        let ready = (0..specs.len()).find(|i| {
            !ordered.contains(i)
                && before.get(*i).is_some_and(|list| list.iter().all(|b| ordered.contains(b)))
        });
        let Some(ready) = ready else {
            let circle = (0..specs.len()).filter(|i| !ordered.contains(i));
            return Err(circle.filter_map(|i| specs.get(i)).map(|s| s.node).collect());
        };
        ordered.push(ready);
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(
        node: &'static str,
        before: &'static [&'static str],
        after: &'static [&'static str],
    ) -> FeatureSpec {
        FeatureSpec { arc: "a", node, before, after }
    }

    #[test]
    fn features_are_ordered_by_their_constraints() {
        let specs = [spec("nat", &[], &["acl"]), spec("acl", &[], &[]), spec("policer", &["acl"], &[])];
        let names: Vec<_> = order(&specs).unwrap().into_iter().map(|i| specs[i].node).collect();
        assert_eq!(names, ["policer", "acl", "nat"]);
    }

    #[test]
    fn a_circle_of_constraints_is_an_error_that_names_it() {
        let specs = [spec("a", &["b"], &[]), spec("b", &["a"], &[]), spec("c", &[], &[])];
        assert_eq!(order(&specs).unwrap_err(), ["a", "b"]);
    }

    #[test]
    fn the_next_enabled_feature_is_found_or_the_end() {
        assert_eq!(next_position(0b1010, 0, 4), 1);
        assert_eq!(next_position(0b1010, 2, 4), 3);
        assert_eq!(next_position(0b1010, 4, 4), 4);
        assert_eq!(next_position(u64::MAX, 64, 64), 64);
    }
}
