//! The feature arcs that both families have, and the feature that keeps packets of interfaces without the family away.

use std::rc::Rc;

use shoal_graph::{ArcSide, ArcSpec, FeatureSpec, Graph, GraphError};
use shoal_interface::{Event, Interfaces};
use shoal_module::{Control, InitError};

use crate::IpFamily;

/// Nodes that the arcs of a family start at.
struct Starts<F>(std::marker::PhantomData<F>);

impl<F: IpFamily> Starts<F> {
    const INPUT: &'static [&'static str] = &[F::NODES.input, F::NODES.options];
    const REWRITE: &'static [&'static str] = &[F::NODES.rewrite];
    const LOCAL: &'static [&'static str] = &[F::NODES.local];
    const PUNT: &'static [&'static str] = &[F::NODES.punt];
    const DROP: &'static [&'static str] = &[F::NODES.drop, F::NODES.not_enabled];
}

/// Declares the arcs of a family.
pub fn add_arcs<F: IpFamily>(graph: &Graph) {
    let (arcs, nodes) = (F::ARCS, F::NODES);
    let arc = |name, side, starts, end| graph.add_arc(ArcSpec { name, side, starts, end });
    arc(arcs.unicast, ArcSide::Receive, Starts::<F>::INPUT, nodes.lookup);
    arc(arcs.multicast, ArcSide::Receive, Starts::<F>::INPUT, nodes.lookup);
    arc(arcs.output, ArcSide::Send, Starts::<F>::REWRITE, "interface-output");
    arc(arcs.local, ArcSide::Receive, Starts::<F>::LOCAL, nodes.local_end);
    arc(arcs.punt, ArcSide::All, Starts::<F>::PUNT, "error-punt");
    arc(arcs.drop, ArcSide::All, Starts::<F>::DROP, "error-drop");
}

/// Keeps the family's `not-enabled` node on the input arcs of all interfaces but those on which the family runs.
///
/// # Errors
/// There is no control plane of interfaces.
pub fn follow_enabled<F: IpFamily>(control: &Control, graph: &Graph) -> Result<(), InitError> {
    for arc in [F::ARCS.unicast, F::ARCS.multicast] {
        graph.add_feature(FeatureSpec { arc, node: F::NODES.not_enabled, before: &[], after: &[] });
    }
    control.get::<Interfaces>()?.subscribe(|control: &Rc<Control>, event| {
        let (interface, off) = match event {
            Event::Created(interface) => (interface, true),
            event => match F::enabled(event) {
                Some((interface, enabled)) => (interface, !enabled),
                None => return,
            },
        };
        let Ok(graph) = control.graph() else { return };
        let set = |arc| graph.enable_feature(arc, F::NODES.not_enabled, interface, off);
        let result: Result<(), GraphError> =
            [F::ARCS.unicast, F::ARCS.multicast].into_iter().try_for_each(set);
        if let Err(e) = result {
            tracing::error!(%interface, node = F::NODES.not_enabled, "{e}");
        }
    });
    Ok(())
}
