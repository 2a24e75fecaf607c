//! Feature arcs: named places in the graph where features join, per interface, in an order they declare.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_buffer::{MAX_INTERFACES, SwIfIndex};
use shoal_infra::StableArena;

use crate::node::{Edge, NodeIndex};

/// Most features on one arc: one bit each.
pub(crate) const MAX_FEATURES: usize = 64;

/// Which interface's features an arc runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArcSide {
    /// The one the packet came in by.
    Receive,
    /// The one it goes out by.
    Send,
    /// Of no interface: features enabled on [`ALL_INTERFACES`] run for the packets of all interfaces.
    All,
}

/// The interface that stands for all on an arc without interfaces; it has no packets of its own.
pub const ALL_INTERFACES: SwIfIndex = SwIfIndex(0);

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

    /// Stores all features of an interface; whether there is room for it.
    pub(crate) fn store(&self, interface: SwIfIndex, bits: u64) -> bool {
        let cell = self.bits.get(interface.0 as usize);
        cell.inspect(|cell| cell.store(bits, Ordering::Relaxed)).is_some()
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

/// Orders features so that every `before` and `after` holds; ties go by declaration, and what must come before a feature comes right
/// before it, so that one that is declared late does not hold up those that do not name it.
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
    // There is no circle, so this ends.
    let mut placed = Vec::with_capacity(specs.len());
    (0..specs.len()).for_each(|at| place(at, &before, &mut placed));
    Ok(placed)
}

/// Places what must come before a feature, and the feature.
fn place(at: usize, before: &[Vec<usize>], placed: &mut Vec<usize>) {
    if placed.contains(&at) {
        return;
    }
    for earlier in before.get(at).into_iter().flatten() {
        place(*earlier, before, placed);
    }
    placed.push(at);
}

/// What is wrong with the names in `before` and `after` of the features of one arc; each is a line. `elsewhere` are the
/// features there are besides, which this router may do without.
pub(crate) fn unknown(specs: &[FeatureSpec], elsewhere: &BTreeSet<&'static str>) -> Vec<String> {
    let mut lines = Vec::new();
    for spec in specs {
        let said = spec.before.iter().map(|name| ("before", name));
        for (side, name) in said.chain(spec.after.iter().map(|name| ("after", name))) {
            if specs.iter().any(|other| other.node == *name) || elsewhere.contains(name) {
                continue;
            }
            let all = specs.iter().map(|other| other.node).chain(elsewhere.iter().copied());
            let near = all.filter(|other| *other != spec.node).min_by_key(|other| distance(name, other));
            let near = near.map(|near| format!(", the nearest is `{near}'")).unwrap_or_default();
            let (node, arc) = (spec.node, spec.arc);
            lines.push(format!("feature `{name}', {side} which `{node}' is to come on arc {arc}{near}"));
        }
    }
    lines
}

/// How many letters must be put in, left out or replaced to make one name of another.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.chars().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        next.push(i + 1);
        for ((above, right), other) in row.iter().zip(row.iter().skip(1)).zip(&to) {
            let left = next.last().copied().unwrap_or(0);
            next.push((above + usize::from(letter != *other)).min(right + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_feature_has_is_told_with_the_nearest_one() {
        let specs = [spec("nat", &["policer"], &["alc"]), spec("acl", &[], &[])];
        let known = BTreeSet::from(["policer"]);
        let line = "feature `alc', after which `nat' is to come on arc a, the nearest is `acl'";
        assert_eq!(unknown(&specs, &known), [line]);
        let alone = "feature `b', before which `a' is to come on arc a";
        assert_eq!(unknown(&[spec("a", &["b"], &[])], &BTreeSet::new()), [alone]);
    }

    #[test]
    fn distances_are_those_of_single_letters() {
        assert_eq!((distance("", ""), distance("ab", ""), distance("", "ab")), (0, 2, 2));
        assert_eq!((distance("loose", "lose"), distance("strict", "struct")), (1, 1));
    }

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
    fn one_that_is_declared_late_does_not_hold_up_those_that_do_not_name_it() {
        let specs = [
            spec("enabled", &[], &[]),
            spec("nat", &[], &["enabled"]),
            spec("limit", &[], &[]),
            spec("late", &["enabled"], &[]),
        ];
        let names: Vec<_> = order(&specs).unwrap().into_iter().map(|i| specs[i].node).collect();
        assert_eq!(names, ["late", "enabled", "nat", "limit"]);
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
