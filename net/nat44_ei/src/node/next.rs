//! The ways of packets through the nodes.

use shoal_derive::NextNodes;
use shoal_graph::Edge;

/// From hosts.
pub const IN2OUT: u8 = 0;
/// To hosts.
pub const OUT2IN: u8 = 1;
/// By an interface that is on both sides.
pub const BOTH: u8 = 2;
/// From hosts, when it is known where they go out.
pub const OUTPUT: u8 = 3;
/// To hosts, from another host.
pub const HAIRPIN: u8 = 4;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next feature.
    Feature(Edge),
    /// It needs a decision.
    #[node("nat44-ei-in2out-slowpath")]
    In2outSlow,
    /// Likewise.
    #[node("nat44-ei-out2in-slowpath")]
    Out2inSlow,
    /// Likewise.
    #[node("nat44-ei-in2out-output-slowpath")]
    OutputSlow,
    /// Another thread has its session.
    #[node("nat44-ei-in2out-worker-handoff")]
    In2outHandoff,
    /// Likewise.
    #[node("nat44-ei-out2in-worker-handoff")]
    Out2inHandoff,
    /// Likewise.
    #[node("nat44-ei-handoff-classify")]
    BothHandoff,
    /// Likewise.
    #[node("nat44-ei-in2out-output-worker-handoff")]
    OutputHandoff,
    /// It has come as far as it may.
    #[node("ip4-icmp-error")]
    IcmpError,
}
