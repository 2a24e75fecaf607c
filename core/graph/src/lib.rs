//! The graph runtime: nodes, frames, dispatch, feature arcs, threads, handoff, trace and counters.
//!
//! A node author writes what happens to one packet ([`PacketNode`]); the runtime owns the vector loop,
//! prefetching, enqueueing, counting and tracing. The engine knows no protocols.
//!
//! Where to look: [`node`] for what a node is, [`Cx`] for what it may ask for while a packet is in its hands,
//! [`Graph`] for how nodes, edges and arcs are put together and changed, [`Worker`] for the loop a thread
//! runs, [`state`] for what a feature keeps on each thread, [`FrameCx::replicate`] for packets
//! that go to many, [`superpath`] for chains of nodes fused at compile time.
#![deny(unsafe_code)]

pub mod clock;
pub mod counter;
mod cx;
mod deadlines;
mod dispatch;
mod error_drop;
pub mod event_log;
mod feature;
mod graph;
pub mod hand_over;
pub mod handoff;
mod lane;
mod ledger;
mod monitor;
pub mod node;
mod observer;
pub mod process;
#[allow(unsafe_code)]
mod raw;
mod replicate;
mod rx;
mod spin;
pub mod stall;
pub mod state;
pub mod superpath;
pub mod thread;
mod topology;
pub mod trace;
mod trace_filter;
mod worker;

pub use clock::Clock;
pub use cx::{Cx, FrameCx};
pub use deadlines::Deadlines;
pub use error_drop::{DropTap, DropWatch};
pub use feature::{ALL_INTERFACES, Arc as FeatureArc, ArcSide, ArcSpec, FeatureSpec};
pub use graph::{FeatureChange, Graph, GraphConfig, GraphError, NodeBrief, QueueInfo};
pub use hand_over::{HandOver, Ticket};
pub use handoff::RingInfo;
pub use lane::{FrameCounts, GraphCounters, Lane};
pub use ledger::{DispatchLedger, SlowestCall};
pub use monitor::{BufferMoves, Monitoring};
pub use node::{
    Counts, Edge, ErrorCounter, ErrorCounters, FrameNode, GROUP, NextNodes, NoError, NoNext, NodeIndex,
    PacketNode, Severity, StagedNode, StatefulFrameNode, StatefulNode, StatefulStagedNode,
};
pub use observer::{MakeObserver, ObservationId, Observed, Observer};
pub use replicate::{ReplicaTarget, Replicated};
pub use rx::{QueueCount, QueueId, RxMode, RxQueue};
pub use state::{Shares, StateKey, Stateful};
pub use topology::{NodeInfo, NodeKind};
pub use trace_filter::{FilterFunction, FilterFunctions, FilterInfo, FilterUse};
pub use worker::{Round, Worker};

/// Most threads a router has: the main thread and 63 workers.
pub const MAX_THREADS: usize = 64;
