//! Feature arcs: declared, put in order, enabled per interface.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use shoal_buffer::SwIfIndex;

use super::{Arcs, Graph, GraphError};
use crate::feature::{ALL_INTERFACES, MAX_FEATURES, order, unknown};
use crate::feature::{Arc as FeatureArc, ArcSide, ArcSpec, ArcTable, FeatureSpec};
use crate::node::{Edge, NodeIndex};

/// What was enabled on an interface before and after a change of its features on an arc, as in
/// [`FeatureArc::enabled`](crate::FeatureArc::enabled).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeatureChange {
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

pub(super) fn no_arc(arcs: &Arcs, name: &str) -> GraphError {
    GraphError::NoArc(name.to_owned(), arcs.specs.iter().map(|s| s.name).collect())
}

impl Graph {
    /// Declares an arc; before [`Graph::build`].
    pub fn add_arc(&self, spec: ArcSpec) {
        self.arcs.borrow_mut().specs.push(spec);
    }

    /// Makes an arc end at another node: for a module that takes over from the one which declared the arc; before
    /// [`Graph::build`].
    ///
    /// # Errors
    /// The arc is unknown.
    pub fn set_arc_end(&self, arc: &str, end: &'static str) -> Result<(), GraphError> {
        let mut arcs = self.arcs.borrow_mut();
        match arcs.specs.iter_mut().find(|s| s.name == arc) {
            Some(spec) => spec.end = end,
            None => return Err(no_arc(&arcs, arc)),
        }
        Ok(())
    }

    /// Tells `watcher` of each interface that gets its first feature on an arc or loses its last one, from now on.
    ///
    /// # Errors
    /// The arc is unknown.
    pub fn watch_arc(&self, arc: &str, watcher: impl Fn(SwIfIndex) + 'static) -> Result<(), GraphError> {
        let number = self.arc(arc)?.number;
        self.arcs.borrow_mut().watchers.push((number, Rc::new(watcher)));
        Ok(())
    }

    /// Tells `watcher` of each change of an interface's features on an arc, from now on.
    pub fn watch_features(&self, arc: &FeatureArc, watcher: impl Fn(SwIfIndex, FeatureChange) + 'static) {
        self.arcs.borrow_mut().feature_watchers.push((arc.number, Rc::new(watcher)));
    }

    /// Tells who watches an arc that an interface's features on it are not what they were.
    pub(super) fn tell_watchers(&self, handle: &FeatureArc, interface: SwIfIndex, before: u64) {
        let change = FeatureChange { before, after: handle.enabled(interface) };
        if change.before == change.after {
            return;
        }
        let (all, each) = {
            let arcs = self.arcs.borrow();
            (arcs.watchers.clone(), arcs.feature_watchers.clone())
        };
        if (change.before == 0) != (change.after == 0) {
            all.iter()
                .filter(|(number, _)| *number == handle.number)
                .for_each(|(_, watcher)| watcher(interface));
        }
        each.iter()
            .filter(|(number, _)| *number == handle.number)
            .for_each(|(_, watcher)| watcher(interface, change));
    }

    /// An arc's name and side.
    pub(crate) fn arc_facts(&self, arc: &FeatureArc) -> (&'static str, ArcSide) {
        let arcs = self.arcs.borrow();
        arcs.tables.get(usize::from(arc.number)).map_or(("", ArcSide::All), |table| (table.name, table.side))
    }

    /// A feature's position on an arc, after [`Graph::build`].
    ///
    /// # Errors
    /// There is no such feature.
    pub(crate) fn feature_position(&self, arc: &FeatureArc, feature: &str) -> Result<usize, GraphError> {
        let arcs = self.arcs.borrow();
        let features = arcs.tables.get(usize::from(arc.number)).map_or(&[][..], |table| &table.features);
        features.iter().position(|(name, _)| name == feature).ok_or_else(|| {
            GraphError::NoFeature(feature.to_owned(), features.iter().map(|(name, _)| name.clone()).collect())
        })
    }

    /// Names of the features of an arc whose bits are set.
    pub fn feature_names(&self, arc: &FeatureArc, bits: u64) -> Vec<String> {
        let arcs = self.arcs.borrow();
        let features = arcs.tables.get(usize::from(arc.number)).map_or(&[][..], |table| &table.features);
        let named = features.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
        named.map(|(_, (name, _))| name.clone()).collect()
    }

    /// Names features that modules have which this router may do without: features may come before or after them. From
    /// now on a constraint that names any other is an error.
    pub fn know_features(&self, names: impl IntoIterator<Item = &'static str>) {
        self.arcs.borrow_mut().known.get_or_insert_default().extend(names);
    }

    /// Names in constraints that no feature has, those of `wanted` among them; each is a line.
    pub(super) fn unknown_features(&self, wanted: &[FeatureSpec]) -> Vec<String> {
        let arcs = self.arcs.borrow();
        let Some(known) = &arcs.known else { return Vec::new() };
        let all: Vec<FeatureSpec> = arcs.features.iter().chain(wanted).copied().collect();
        // One that is there, but on other arcs, is not to be mistaken for one this router does without.
        let there: BTreeSet<&str> = all.iter().map(|feature| feature.node).collect();
        let elsewhere = known.iter().filter(|name| !there.contains(**name)).copied().collect();
        let of = |arc: &str| all.iter().filter(|f| f.arc == arc).copied().collect::<Vec<_>>();
        let names: BTreeSet<&'static str> = all.iter().map(|feature| feature.arc).collect();
        names.into_iter().flat_map(|arc| unknown(&of(arc), &elsewhere)).collect()
    }

    /// Declares a feature; before [`Graph::build`].
    pub fn add_feature(&self, spec: FeatureSpec) {
        self.arcs.borrow_mut().features.push(spec);
    }

    /// Whether features could be declared: their arcs are there, have room, and their constraints fit those declared
    /// before. Nothing is changed; before [`Graph::build`].
    ///
    /// # Errors
    /// The arc is unknown or full, features want to come before each other, or before or after one that there is not.
    pub fn check_features(&self, wanted: &[FeatureSpec]) -> Result<(), GraphError> {
        let arcs = self.arcs.borrow();
        for spec in wanted {
            let Some(arc) = arcs.specs.iter().find(|s| s.name == spec.arc) else {
                return Err(no_arc(&arcs, spec.arc));
            };
            let of_arc = |f: &&FeatureSpec| f.arc == spec.arc;
            let all: Vec<FeatureSpec> =
                arcs.features.iter().filter(of_arc).chain(wanted.iter().filter(of_arc)).copied().collect();
            if all.len() > MAX_FEATURES {
                return Err(GraphError::TooMany("features on an arc", MAX_FEATURES));
            }
            order(&all).map_err(|names| GraphError::Circle(arc.name, names))?;
        }
        let unknown = self.unknown_features(wanted);
        if unknown.is_empty() { Ok(()) } else { Err(GraphError::Unknown(unknown)) }
    }

    /// A handle on an arc, for nodes where it starts. May be asked for before [`Graph::build`], as long as the arc
    /// was declared.
    ///
    /// # Errors
    /// The arc is unknown, or there is no memory for it.
    pub fn arc(&self, name: &str) -> Result<FeatureArc, GraphError> {
        let mut arcs = self.arcs.borrow_mut();
        if let Some(table) = arcs.tables.iter().find(|t| t.name == name) {
            return Ok(table.handle.clone());
        }
        let Some(spec) = arcs.specs.iter().find(|s| s.name == name).copied() else {
            return Err(no_arc(&arcs, name));
        };
        let handle = FeatureArc::new(arcs.tables.len() as u8)?;
        let table =
            ArcTable { name: spec.name, features: Vec::new(), handle: handle.clone(), side: spec.side };
        arcs.tables.push(Arc::new(table));
        Ok(handle)
    }

    /// Makes a node added after [`Graph::build`] one where an arc starts.
    ///
    /// # Errors
    /// The arc is unknown or has no end yet.
    pub fn start_arc_at(&self, node: NodeIndex, arc: &str) -> Result<(), GraphError> {
        let (number, targets) = {
            let arcs = self.arcs.borrow();
            let unknown = || no_arc(&arcs, arc);
            let table = arcs.tables.iter().find(|t| t.name == arc).ok_or_else(unknown)?;
            let end = arcs.specs.iter().find(|s| s.name == arc).ok_or_else(unknown)?.end;
            let end = self.node(end)?;
            (table.handle.number, table.features.iter().map(|(_, n)| *n).chain([end]).collect::<Vec<_>>())
        };
        self.join_arc(node, number, &targets)?;
        self.publish()
    }

    /// Gives a node edges to all positions of an arc.
    fn join_arc(&self, node: NodeIndex, number: u8, targets: &[NodeIndex]) -> Result<(), GraphError> {
        let Edge(base) = self.push_edges(node, targets)?;
        if let Some(draft) = self.nodes.borrow_mut().get_mut(node.at()) {
            draft.arcs.retain(|(other, _)| *other != number);
            draft.arcs.push((number, base));
        }
        self.touch(node);
        Ok(())
    }

    pub(super) fn build_arc(&self, spec: ArcSpec) -> Result<(), GraphError> {
        let features: Vec<FeatureSpec> =
            self.arcs.borrow().features.iter().filter(|f| f.arc == spec.name).copied().collect();
        if features.len() > MAX_FEATURES {
            return Err(GraphError::TooMany("features on an arc", MAX_FEATURES));
        }
        let order = order(&features).map_err(|names| GraphError::Circle(spec.name, names))?;
        let mut unknown = Vec::new();
        let mut find = |name: &str, of: &str| {
            self.node(name).map_err(|_| unknown.push(format!("node `{name}' {of} arc {}", spec.name))).ok()
        };
        let ordered: Vec<(String, NodeIndex)> = order
            .into_iter()
            .filter_map(|i| features.get(i))
            .filter_map(|f| Some((f.node.to_owned(), find(f.node, "on")?)))
            .collect();
        let end = find(spec.end, "at the end of");
        let starts: Vec<NodeIndex> = spec.starts.iter().filter_map(|s| find(s, "at the start of")).collect();
        let Some(end) = end.filter(|_| unknown.is_empty()) else { return Err(GraphError::Unknown(unknown)) };
        let mut arcs = self.arcs.borrow_mut();
        let Some(slot) = arcs.tables.iter_mut().find(|t| t.name == spec.name) else { return Ok(()) };
        let handle = slot.handle.clone();
        let targets: Vec<NodeIndex> = ordered.iter().map(|(_, n)| *n).chain([end]).collect();
        for node in starts.iter().chain(ordered.iter().map(|(_, n)| n)) {
            self.join_arc(*node, handle.number, &targets)?;
        }
        *slot = Arc::new(ArcTable { name: spec.name, features: ordered, handle, side: spec.side });
        self.arcs_changed.set(true);
        Ok(())
    }

    /// Enables or disables a feature on an interface.
    ///
    /// # Errors
    /// The arc, the feature or the interface is unknown.
    pub fn enable_feature(
        &self,
        arc: &str,
        feature: &str,
        interface: SwIfIndex,
        on: bool,
    ) -> Result<(), GraphError> {
        let arcs = self.arcs.borrow();
        let table = arcs.tables.iter().find(|t| t.name == arc).ok_or_else(|| no_arc(&arcs, arc))?;
        if table.side == ArcSide::All && interface != ALL_INTERFACES {
            return Err(GraphError::OfAll(table.name));
        }
        let Some(position) = table.features.iter().position(|(name, _)| name == feature) else {
            let there = table.features.iter().map(|(name, _)| name.clone()).collect();
            return Err(GraphError::NoFeature(feature.to_owned(), there));
        };
        let handle = table.handle.clone();
        drop(arcs);
        let before = handle.enabled(interface);
        if !self.switch(&handle, interface, position, on) {
            return Err(GraphError::TooMany("interfaces on an arc", shoal_buffer::MAX_INTERFACES));
        }
        self.tell_watchers(&handle, interface, before);
        self.lead(&handle, interface);
        Ok(())
    }

    /// Disables everything on an interface that goes away.
    pub fn clear_features(&self, interface: SwIfIndex) {
        let handles: Vec<FeatureArc> = self.arcs.borrow().tables.iter().map(|t| t.handle.clone()).collect();
        for handle in handles {
            let before = handle.enabled(interface);
            self.arcs.borrow_mut().followers.forget(handle.number, interface);
            handle.store(interface, 0);
            self.tell_watchers(&handle, interface, before);
            self.lead(&handle, interface);
        }
    }

    /// All arcs with their features in order and whether each is enabled on `interface`.
    pub fn features(&self, interface: Option<SwIfIndex>) -> Vec<(&'static str, Vec<(String, bool)>)> {
        let arcs = self.arcs.borrow();
        let enabled = |t: &ArcTable| interface.map_or(0, |i| t.handle.enabled(i));
        let of = |t: &Arc<ArcTable>| {
            let bits = enabled(t);
            let names =
                t.features.iter().enumerate().map(|(i, (n, _))| (n.clone(), bits >> i & 1 == 1)).collect();
            (t.name, names)
        };
        arcs.tables.iter().map(of).collect()
    }
}
