//! Toy features, for tests of arcs: they count what they see, and the first one drops what it does not like.

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::{Cx, Edge, FeatureSpec, Graph, GraphError, PacketNode};
use shoal_interface::OUTPUT_ARC;

/// Names of a family's arcs.
#[derive(Clone, Copy, Debug)]
pub struct ToyArcs {
    /// Packets to one host.
    pub unicast: &'static str,
    /// Packets to groups.
    pub multicast: &'static str,
    /// Packets behind the rewrite.
    pub output: &'static str,
    /// Packets for the router.
    pub local: &'static str,
    /// Packets for the host.
    pub punt: &'static str,
    /// Packets at their end.
    pub drop: &'static str,
}

/// Declares `toy-first` and `toy-second` on the input arc, `toy-out` on the output arc of interfaces, and one on each other
/// arc of the family. All are off.
///
/// # Errors
/// They are there already.
pub fn add_toys(graph: &Graph, arcs: &ToyArcs) -> Result<(), GraphError> {
    graph.add_packet(Toy::<0>)?;
    graph.add_packet(Toy::<1>)?;
    graph.add_packet(Toy::<2>)?;
    graph.add_packet(Toy::<3>)?;
    graph.add_packet(Toy::<4>)?;
    graph.add_packet(Toy::<5>)?;
    graph.add_packet(Toy::<6>)?;
    graph.add_packet(Toy::<7>)?;
    // Declared in the wrong order on purpose: the constraint decides.
    let (node, after) = ("toy-second", &["toy-first"][..]);
    graph.add_feature(FeatureSpec { arc: arcs.unicast, node, before: &[], after });
    for (arc, node) in [
        (arcs.unicast, "toy-first"),
        (OUTPUT_ARC, "toy-out"),
        (arcs.output, "toy-ip-out"),
        (arcs.multicast, "toy-multicast"),
        (arcs.local, "toy-local"),
        (arcs.punt, "toy-punt"),
        (arcs.drop, "toy-drop"),
    ] {
        graph.add_feature(FeatureSpec { arc, node, before: &[], after: &[] });
    }
    Ok(())
}

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToyNext {
    /// The next feature.
    Feature(Edge),
}

/// What is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToyError {
    /// a toy saw the packet
    #[severity(info)]
    Seen,
    /// a toy did not like the packet
    Disliked,
}

/// The last byte of a packet that toys drop.
pub const DROPPED_BYTE: u8 = 0xd1;

/// By number.
pub const TOY_NAMES: [&str; 8] = [
    "toy-first",
    "toy-second",
    "toy-out",
    "toy-ip-out",
    "toy-multicast",
    "toy-local",
    "toy-punt",
    "toy-drop",
];

/// Counts packets and drops those whose last byte it does not like.
pub struct Toy<const N: usize>;

impl<const N: usize> PacketNode for Toy<N> {
    const NAME: &'static str = TOY_NAMES[N];
    type Next = ToyNext;
    type Error = ToyError;
    type Trace = &'static str;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<ToyNext, ToyError> {
        cx.trace(pkt, || "seen");
        cx.count(ToyError::Seen, 1);
        if N == 0 && pkt.data().last() == Some(&DROPPED_BYTE) {
            return Err(ToyError::Disliked);
        }
        Ok(ToyNext::Feature(cx.next_feature(pkt)))
    }
}
