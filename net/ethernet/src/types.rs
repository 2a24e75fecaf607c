//! Which node gets frames of which type.

use std::sync::Arc;

use shoal_graph::Edge;
use shoal_infra::{Guard, Published};
use shoal_wire::EtherType;

/// The types that modules have registered, as packets see them. Clones are the same table. IPv4 and IPv6 are not among
/// them: `ethernet-input` knows the way of those without a look-up.
#[derive(Clone)]
pub struct TypeTable(Arc<Published<Vec<(EtherType, Edge)>>>);

impl TypeTable {
    pub(crate) fn new() -> Self {
        TypeTable(Arc::new(Published::new(Vec::new())))
    }

    pub(crate) fn add(&self, kind: EtherType, edge: Edge) {
        let mut all = self.0.get().to_vec();
        all.push((kind, edge));
        all.sort_unstable_by_key(|(kind, _)| *kind);
        self.0.replace(all);
    }

    pub(crate) fn remove(&self, kind: EtherType) {
        let mut all = self.0.get().to_vec();
        all.retain(|(of, _)| *of != kind);
        self.0.replace(all);
    }

    /// The edge of `ethernet-input` that leads to the node for a type.
    pub fn find(&self, kind: EtherType, guard: Guard<'_>) -> Option<Edge> {
        let all = self.0.load(guard);
        let at = all.binary_search_by_key(&kind, |(kind, _)| *kind).ok()?;
        all.get(at).map(|(_, edge)| *edge)
    }
}
