//! What a node is.

use std::fmt;

use shoal_buffer::{Frame, Packet};

use crate::state::Stateful;
use crate::{Cx, FrameCx};

/// A node's place in the graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(transparent)]
pub struct NodeIndex(pub(crate) u32);

impl NodeIndex {
    /// A place by its number, for tables that keep plain numbers. One that names no node leads to a drop.
    pub const fn from_number(number: u32) -> Self {
        NodeIndex(number)
    }

    /// The number `show node` prints.
    pub fn number(self) -> u32 {
        self.0
    }

    pub(crate) fn at(self) -> usize {
        self.0 as usize
    }
}

/// One way out of a node: a position in its list of next nodes.
///
/// Edge 0 of every node leads to `error-drop`; the variants of [`NextNodes`] follow from 1 on, then edges added
/// while the router runs (an interface's output node, the features of an arc).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Edge(pub u16);

impl Edge {
    /// The way every drop takes.
    pub const DROP: Edge = Edge(0);
}

/// Where a node's packets go next. Derive it: `#[derive(NextNodes)]` with `#[node("ip4-rewrite")]` on each unit
/// variant, the common one first; a variant that holds an [`Edge`] goes wherever that edge leads.
pub trait NextNodes: Copy + 'static {
    /// Names of the next nodes, in the order of their edges from 1 on.
    const NAMES: &'static [&'static str];

    /// The edge this value stands for.
    fn edge(self) -> Edge;
}

/// How grave a counted event is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// A packet was lost.
    Error,
    /// Something an operator may want to look at.
    Warn,
    /// Ordinary life.
    Info,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Severity::Error => "error",
            Severity::Warn => "warn",
            Severity::Info => "info",
        })
    }
}

/// One counter of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorCounter {
    /// Its name in the stats segment: `/err/<node>/<name>`.
    pub name: &'static str,
    /// What an operator reads in `show errors`.
    pub description: &'static str,
    /// How grave it is.
    pub severity: Severity,
    /// The node it is shown at, if that is not the one that counts: VPP counts what a rewrite finds at `ip4-input`.
    pub at: Option<&'static str>,
}

/// Why packets are dropped by a node, and what else it counts. Derive it: `#[derive(ErrorCounters)]`; the doc
/// line of each variant is its description, `#[severity(info)]` marks one that is not a loss.
pub trait ErrorCounters: Copy + 'static {
    /// All counters, in the order of the variants.
    const COUNTERS: &'static [ErrorCounter];

    /// This variant's position.
    fn index(self) -> u32;
}

/// For nodes that send everything on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoError {}

impl ErrorCounters for NoError {
    const COUNTERS: &'static [ErrorCounter] = &[];

    fn index(self) -> u32 {
        match self {}
    }
}

/// For nodes at the end of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoNext {}

impl NextNodes for NoNext {
    const NAMES: &'static [&'static str] = &[];

    fn edge(self) -> Edge {
        match self {}
    }
}

/// A node that looks at one packet at a time. Most nodes.
pub trait PacketNode: Send + Sync + Sized + 'static {
    /// Name in the graph; an instance may be registered under another.
    const NAME: &'static str;
    /// Where packets go.
    type Next: NextNodes;
    /// Why packets are dropped.
    type Error: ErrorCounters;
    /// What `show trace` says about one packet.
    type Trace: fmt::Display + Send + 'static;

    /// What happens to one packet. An `Err` is the drop: counted, traced and freed by the runtime.
    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Self::Next, Self::Error>;
}

/// What a node counts. A [`PacketNode`] has it by its own error type.
pub trait Counts {
    /// Why packets are dropped, and what else is counted.
    type Error: ErrorCounters;
}

impl<N: PacketNode> Counts for N {
    type Error = <N as PacketNode>::Error;
}

/// A node that looks at one packet at a time, with what its feature keeps on the thread.
pub trait StatefulNode: Counts + Send + Sync + Sized + 'static {
    /// Name in the graph; an instance may be registered under another.
    const NAME: &'static str;
    /// Whose state it is given.
    type Feature: Stateful;
    /// Where packets go.
    type Next: NextNodes;
    /// What `show trace` says about one packet.
    type Trace: fmt::Display + Send + 'static;

    /// As [`PacketNode::packet`], with the thread's state.
    fn packet(
        &self,
        state: &mut <Self::Feature as Stateful>::State,
        pkt: &mut Packet<'_>,
        cx: &mut Cx<'_, Self>,
    ) -> Result<Self::Next, Self::Error>;
}

/// Packets that [`StagedNode::seek`] is given at once: about as many loads as a processor can have under way.
pub const GROUP: usize = 32;

/// A node whose tables miss the cache: the stages run over the whole frame before the packets do, so that the
/// misses of many packets overlap.
pub trait StagedNode: Send + Sync + Sized + 'static {
    /// Name in the graph; an instance may be registered under another.
    const NAME: &'static str;
    /// Where packets go.
    type Next: NextNodes;
    /// Why packets are dropped.
    type Error: ErrorCounters;
    /// What `show trace` says about one packet.
    type Trace: fmt::Display + Send + 'static;
    /// What one packet carries from stage to stage.
    type Key: Copy + Default;

    /// Computes a packet's key and starts loading what it will need first.
    fn prepare(&self, pkt: &Packet<'_>, cx: &mut Cx<'_, Self>) -> Self::Key;

    /// Follows pointers for up to [`GROUP`] packets side by side, so that their loads overlap; called once for all
    /// packets, between [`StagedNode::prepare`] and [`StagedNode::packet`].
    #[inline(always)]
    fn seek(&self, _keys: &mut [Self::Key], _cx: &mut Cx<'_, Self>) {}

    /// What happens to one packet.
    fn packet(
        &self,
        key: Self::Key,
        pkt: &mut Packet<'_>,
        cx: &mut Cx<'_, Self>,
    ) -> Result<Self::Next, Self::Error>;
}

/// A [`StagedNode`] with what its feature keeps on the thread: for tables of the thread's own that miss the cache.
pub trait StatefulStagedNode: Counts + Send + Sync + Sized + 'static {
    /// Name in the graph; an instance may be registered under another.
    const NAME: &'static str;
    /// Whose state it is given.
    type Feature: Stateful;
    /// Where packets go.
    type Next: NextNodes;
    /// What `show trace` says about one packet.
    type Trace: fmt::Display + Send + 'static;
    /// What one packet carries from stage to stage.
    type Key: Copy + Default;

    /// As [`StagedNode::prepare`], with the thread's state.
    fn prepare(
        &self,
        state: &mut <Self::Feature as Stateful>::State,
        pkt: &Packet<'_>,
        cx: &mut Cx<'_, Self>,
    ) -> Self::Key;

    /// As [`StagedNode::seek`], with the thread's state.
    #[inline(always)]
    fn seek(
        &self,
        _state: &mut <Self::Feature as Stateful>::State,
        _keys: &mut [Self::Key],
        _cx: &mut Cx<'_, Self>,
    ) {
    }

    /// As [`StagedNode::packet`], with the thread's state.
    fn packet(
        &self,
        state: &mut <Self::Feature as Stateful>::State,
        key: Self::Key,
        pkt: &mut Packet<'_>,
        cx: &mut Cx<'_, Self>,
    ) -> Result<Self::Next, Self::Error>;
}

/// A node that needs the frame itself: drivers, handoff, replication, crypto batches. Its file says why.
pub trait FrameNode: Send + Sync + 'static {
    /// Name in the graph; an instance may be registered under another.
    const NAME: &'static str;
    /// Where packets go.
    type Next: NextNodes;
    /// Why packets are dropped.
    type Error: ErrorCounters;

    /// Takes every packet out of the frame: sends it on, drops it or frees it through `cx`. What is left inside is
    /// counted as a defect of this node and freed.
    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>);
}

/// A [`FrameNode`] with what its feature keeps on the thread: one that keeps packets, for example.
pub trait StatefulFrameNode: Send + Sync + 'static {
    /// Name in the graph; an instance may be registered under another.
    const NAME: &'static str;
    /// Whose state it is given.
    type Feature: Stateful;
    /// Where packets go.
    type Next: NextNodes;
    /// Why packets are dropped.
    type Error: ErrorCounters;

    /// As [`FrameNode::frame`], with the thread's state.
    fn frame(&self, state: &mut <Self::Feature as Stateful>::State, frame: &mut Frame, cx: &mut FrameCx<'_>);
}
