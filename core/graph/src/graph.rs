//! The control side of the graph: nodes, edges and arcs are put together here and changed while packets flow.
//!
//! Threads learn the nodes that are new or have changed, and the change waits until all have taken them over, so that
//! whatever is published afterwards (an adjacency, a bit of an arc) finds the edges it names. A change costs what is
//! changed, not what there is.

use std::any::TypeId;
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use shoal_buffer::slot::Slots;
use shoal_buffer::{MAX_INTERFACES, Pool, PoolConfig, SwIfIndex};

use crate::clock::Clock;
use crate::counter::{Counters, Names};
use crate::dispatch::{
    Deleted, Dispatch, FrameRunner, NotDispatched, PacketRunner, PlainRunner, ResolvingRunner, StagedRunner,
};
use crate::error_drop::{Drop, DropTap, ErrorDrop, ErrorNames};
use crate::event_log::EventLog;
use crate::feature::{ArcSpec, ArcTable, FeatureSpec};
use crate::lane::{GraphCounters, Lane};
use crate::monitor::Monitoring;
use crate::node::{
    ErrorCounter, ErrorCounters, FrameNode, NextNodes, NoError, NodeIndex, PacketNode, StagedNode,
};
use crate::observer::{MakeObserver, ObservationId};
use crate::state::StateMaker;
use crate::superpath::{Binder, Chain, ChainRunner, MOST_NODES, Plain, ResolvingNode, SuperpathInfo};
use crate::thread::ThreadShared;
use crate::topology::{NodeKind, Topology};
use crate::trace::{TraceStore, Tracer};
use crate::trace_filter::FilterFunctions;
use crate::worker::Worker;

mod arcs;
mod ask;
mod draft;
mod edges;
mod error;
mod followers;
mod look;
mod states;
mod threads;

pub use arcs::FeatureChange;
use draft::{Edges, NodeDraft};
pub use error::GraphError;
pub use look::NodeBrief;
pub use threads::QueueInfo;

/// Most nodes a graph holds.
const MAX_NODES: usize = 1 << 16;
/// Most error counters of all nodes together.
const MAX_ERRORS: usize = 1 << 18;

/// How a graph is made.
#[derive(Clone, Debug)]
pub struct GraphConfig {
    /// The buffer pool.
    pub buffers: PoolConfig,
    /// Address space of the stats segment in bytes.
    pub stats_bytes: usize,
    /// The clock.
    pub clock: Clock,
}

impl Default for GraphConfig {
    fn default() -> Self {
        GraphConfig { buffers: PoolConfig::default(), stats_bytes: 4 << 30, clock: Clock::real() }
    }
}

type Watcher = Rc<dyn Fn(SwIfIndex)>;
type FeatureWatcher = Rc<dyn Fn(SwIfIndex, FeatureChange)>;

#[derive(Default)]
struct Arcs {
    specs: Vec<ArcSpec>,
    features: Vec<FeatureSpec>,
    tables: Vec<Arc<ArcTable>>,
    /// Features that modules have which this router may do without; `None`: not told yet.
    known: Option<BTreeSet<&'static str>>,
    /// By an arc's number: the watchers to call when it is empty no more, or empty again.
    watchers: Vec<(u8, Watcher)>,
    /// By an arc's number: the watchers to call at every change.
    feature_watchers: Vec<(u8, FeatureWatcher)>,
    /// Interfaces that run another one's features besides their own.
    followers: followers::Followers,
}

/// The graph of one router, owned by its main thread.
#[allow(clippy::struct_field_names)] // they are the counters of the graph, beside those of everybody
pub struct Graph {
    clock: Clock,
    pool: Arc<Pool>,
    counters: Arc<Counters>,
    graph_counters: GraphCounters,
    if_names: Names,
    error_names: Arc<ErrorNames>,
    traces: Arc<TraceStore>,
    filters: FilterFunctions,
    drop_tap: Arc<DropTap>,
    events: Arc<EventLog>,
    nodes: RefCell<Vec<NodeDraft>>,
    by_name: RefCell<BTreeMap<Arc<str>, NodeIndex>>,
    /// Places of deleted nodes.
    free: RefCell<BTreeSet<NodeIndex>>,
    arcs: RefCell<Arcs>,
    built: Cell<bool>,
    drop: Cell<NodeIndex>,
    /// What threads know, for those that come.
    topology: RefCell<Topology>,
    /// Nodes, and whether arcs, that threads do not know yet.
    changed: RefCell<Vec<NodeIndex>>,
    arcs_changed: Cell<bool>,
    /// Several changes are made: threads receive them at the end.
    held: Cell<bool>,
    copied: Cell<u64>,
    main: RefCell<Worker>,
    threads: RefCell<threads::Threads>,
    /// A worker came or went while a thread was stuck, which has yet to give up what belongs to others now.
    reshards_late: Cell<bool>,
    /// What features keep on each thread, by slot.
    makers: RefCell<Vec<Arc<dyn StateMaker>>>,
    monitoring: Cell<Monitoring>,
    observations: RefCell<BTreeMap<ObservationId, MakeObserver>>,
    /// What they keep in packets.
    slots: RefCell<Slots>,
}

fn graph_counters(counters: &Counters) -> io::Result<GraphCounters> {
    Ok(GraphCounters {
        rx: counters.combined("/if/rx", MAX_INTERFACES)?,
        tx: counters.combined("/if/tx", MAX_INTERFACES)?,
        drops: counters.simple("/if/drops", MAX_INTERFACES)?,
        punt: counters.simple("/if/punt", MAX_INTERFACES)?,
        rx_no_buf: counters.simple("/if/rx-no-buf", MAX_INTERFACES)?,
        rx_miss: counters.simple("/if/rx-miss", MAX_INTERFACES)?,
        rx_error: counters.simple("/if/rx-error", MAX_INTERFACES)?,
        tx_error: counters.simple("/if/tx-error", MAX_INTERFACES)?,
        errors: counters.simple("/node/errors", MAX_ERRORS)?,
        calls: counters.simple("/sys/node/calls", MAX_NODES)?,
        vectors: counters.simple("/sys/node/vectors", MAX_NODES)?,
        clocks: counters.simple("/sys/node/clocks", MAX_NODES)?,
        suspends: counters.simple("/sys/node/suspends", MAX_NODES)?,
    })
}

impl Graph {
    /// A graph with the drop nodes and the main thread, nothing else.
    ///
    /// # Errors
    /// The system gives no memory.
    pub fn new(config: GraphConfig) -> Result<Rc<Self>, GraphError> {
        let pool = Pool::new(config.buffers)?;
        let counters = Counters::new(config.stats_bytes)?;
        // VPP's clients expect these three first.
        for name in ["/sys/heartbeat", "/sys/last_stats_clear", "/sys/boottime"] {
            counters.scalar(name)?;
        }
        let graph_counters = graph_counters(&counters)?;
        let if_names = counters.names("/if/names");
        let traces = Arc::new(TraceStore::default());
        let shared = ThreadShared::new(0, "vpp_main".into())?;
        let lane = Lane::new(0, pool.cache(), graph_counters.clone(), Tracer::new(0, Arc::clone(&traces)));
        let main = Worker::new(lane, Topology::empty(), Arc::clone(&shared), config.clock.clone());
        let graph = Graph {
            events: Arc::new(EventLog::new(config.clock.clone())),
            clock: config.clock,
            pool,
            counters,
            graph_counters,
            if_names,
            error_names: Arc::default(),
            traces,
            filters: FilterFunctions::default(),
            drop_tap: Arc::default(),
            nodes: RefCell::default(),
            by_name: RefCell::default(),
            free: RefCell::default(),
            arcs: RefCell::default(),
            built: Cell::new(false),
            drop: Cell::new(NodeIndex(0)),
            topology: RefCell::new(Topology::empty()),
            changed: RefCell::default(),
            arcs_changed: Cell::new(false),
            held: Cell::new(false),
            copied: Cell::new(0),
            main: RefCell::new(main),
            threads: RefCell::new(threads::Threads::new(shared)),
            reshards_late: Cell::new(false),
            makers: RefCell::default(),
            monitoring: Cell::default(),
            observations: RefCell::default(),
            slots: RefCell::default(),
        };
        let names = Arc::clone(&graph.error_names);
        graph.drop.set(graph.add_frame(ErrorDrop { names, tap: Arc::clone(&graph.drop_tap) })?);
        graph.add_frame(Drop)?;
        Ok(Rc::new(graph))
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The buffer pool.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The directory of counters.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Counters of interfaces and nodes.
    pub fn graph_counters(&self) -> &GraphCounters {
        &self.graph_counters
    }

    /// The names of interfaces in the stats segment.
    pub fn if_names(&self) -> &Names {
        &self.if_names
    }

    /// All traces.
    pub fn traces(&self) -> &Arc<TraceStore> {
        &self.traces
    }

    /// The event log.
    pub fn events(&self) -> &Arc<EventLog> {
        &self.events
    }

    fn add(
        &self,
        name: &str,
        kind: NodeKind,
        logic: Arc<dyn Dispatch>,
        next: &'static [&'static str],
        errors: &'static [ErrorCounter],
        fan: Option<TypeId>,
    ) -> Result<NodeIndex, GraphError> {
        if self.by_name.borrow().contains_key(name) {
            return Err(GraphError::Exists(name.to_owned()));
        }
        let name: Arc<str> = name.into();
        let error_base = self.error_names.add(&name, errors);
        let total = error_base as usize + errors.len();
        if total > MAX_ERRORS {
            return Err(GraphError::TooMany("error counters", MAX_ERRORS));
        }
        self.graph_counters.errors.ensure(total);
        for at in error_base as usize..total {
            // The number may have been a deleted node's.
            self.graph_counters.errors.zero(at);
        }
        self.publish_errors(&name, error_base, errors);
        let draft = NodeDraft {
            name: Arc::clone(&name),
            kind,
            logic,
            next_names: next,
            edges: Edges::new(1 + next.len(), self.drop.get()),
            connected: false,
            errors,
            error_base,
            arcs: Vec::new(),
            fan,
            trace: Arc::default(),
            deleted: false,
            edges_of: None,
            edges_for: Vec::new(),
            changed: false,
        };
        let index = self.place(draft)?;
        self.by_name.borrow_mut().insert(name, index);
        self.touch(index);
        if self.built.get()
            && let Err(e) = self.connect(index).and_then(|()| self.publish())
        {
            let _ = self.remove(index);
            return Err(e);
        }
        Ok(index)
    }

    fn publish_errors(&self, node: &str, base: u32, errors: &[ErrorCounter]) {
        for (at, counter) in (base as usize..).zip(errors) {
            self.counters.symlink(
                &format!("/err/{}/{}", counter.at.unwrap_or(node), counter.name),
                "/node/errors",
                at,
            );
        }
    }

    /// Finds a place for a node: that of a deleted one, or a new one.
    fn place(&self, draft: NodeDraft) -> Result<NodeIndex, GraphError> {
        let mut nodes = self.nodes.borrow_mut();
        let free = self.free.borrow_mut().pop_first();
        let at = free.map_or(nodes.len(), NodeIndex::at);
        if at >= MAX_NODES {
            return Err(GraphError::TooMany("nodes", MAX_NODES));
        }
        let index = NodeIndex(at as u32);
        match nodes.get_mut(at) {
            // A change that threads do not know yet stays one.
            Some(slot) => *slot = NodeDraft { changed: slot.changed, ..draft },
            None => nodes.push(draft),
        }
        let c = &self.graph_counters;
        for counter in [&c.calls, &c.vectors, &c.clocks, &c.suspends] {
            counter.zero(at);
            counter.ensure(at + 1);
        }
        Ok(index)
    }

    /// Adds a node under its type's name.
    ///
    /// # Errors
    /// The name is taken; after [`Graph::build`] also: a next node is unknown.
    pub fn add_packet<N: PacketNode>(&self, node: N) -> Result<NodeIndex, GraphError> {
        self.add_packet_named(N::NAME, node)
    }

    /// Adds a node under a name of its own.
    ///
    /// # Errors
    /// As [`Graph::add_packet`].
    pub fn add_packet_named<N: PacketNode>(&self, name: &str, node: N) -> Result<NodeIndex, GraphError> {
        self.add_packet_shared_named(name, Arc::new(node))
    }

    /// Adds a node that is also part of a chain and so shared with it.
    ///
    /// # Errors
    /// As [`Graph::add_packet`].
    pub fn add_packet_shared<N: PacketNode>(&self, node: Arc<N>) -> Result<NodeIndex, GraphError> {
        self.add_packet_shared_named(N::NAME, node)
    }

    fn add_packet_shared_named<N: PacketNode>(
        &self,
        name: &str,
        node: Arc<N>,
    ) -> Result<NodeIndex, GraphError> {
        self.add_of::<N>(name, Arc::new(PacketRunner(node)))
    }

    /// Adds a node that knows its common case: what holds for an interface is asked once while its packets follow each
    /// other, by itself as in a chain.
    ///
    /// # Errors
    /// As [`Graph::add_packet`].
    pub fn add_plain<N: Plain>(&self, node: Arc<N>) -> Result<NodeIndex, GraphError> {
        self.add_plain_named(N::NAME, node)
    }

    /// Adds such a node under a name of its own.
    ///
    /// # Errors
    /// As [`Graph::add_packet`].
    pub fn add_plain_named<N: Plain>(&self, name: &str, node: Arc<N>) -> Result<NodeIndex, GraphError> {
        self.add_of::<N>(name, Arc::new(PlainRunner(node)))
    }

    fn add_of<N: PacketNode>(&self, name: &str, logic: Arc<dyn Dispatch>) -> Result<NodeIndex, GraphError> {
        let fan = Some(TypeId::of::<N>());
        self.add(name, NodeKind::Internal, logic, N::Next::NAMES, N::Error::COUNTERS, fan)
    }

    /// Adds a staged node.
    ///
    /// # Errors
    /// As [`Graph::add_packet`].
    pub fn add_staged<N: StagedNode>(&self, node: Arc<N>) -> Result<NodeIndex, GraphError> {
        let logic = Arc::new(StagedRunner(node));
        self.add(N::NAME, NodeKind::Internal, logic, N::Next::NAMES, N::Error::COUNTERS, None)
    }

    /// Adds a staged node whose answer the next node needs: it is run in stages only where that is faster.
    ///
    /// # Errors
    /// As [`Graph::add_packet`].
    pub fn add_finding<N: ResolvingNode>(&self, node: Arc<N>) -> Result<NodeIndex, GraphError> {
        let logic = Arc::new(ResolvingRunner(node));
        self.add(N::NAME, NodeKind::Internal, logic, N::Next::NAMES, N::Error::COUNTERS, None)
    }

    /// Adds a frame node under its type's name.
    ///
    /// # Errors
    /// As [`Graph::add_packet`].
    pub fn add_frame<N: FrameNode>(&self, node: N) -> Result<NodeIndex, GraphError> {
        self.add_frame_named(N::NAME, node)
    }

    /// Adds a frame node under a name of its own.
    ///
    /// # Errors
    /// As [`Graph::add_packet`].
    pub fn add_frame_named<N: FrameNode>(&self, name: &str, node: N) -> Result<NodeIndex, GraphError> {
        let logic = Arc::new(FrameRunner(node));
        self.add(name, NodeKind::Internal, logic, N::Next::NAMES, N::Error::COUNTERS, None)
    }

    /// Adds a frame node whose next nodes and counters are known only to the caller, not when the router is built.
    ///
    /// # Errors
    /// As [`Graph::add_packet`].
    pub fn add_frame_declared<N: FrameNode>(
        &self,
        name: &str,
        next: &'static [&'static str],
        errors: &'static [ErrorCounter],
        node: N,
    ) -> Result<NodeIndex, GraphError> {
        let logic = Arc::new(FrameRunner(node));
        self.add(name, NodeKind::Internal, logic, next, errors, None)
    }

    /// Adds the name that receive queues run under, with its counters and next nodes.
    ///
    /// # Errors
    /// As [`Graph::add_packet`].
    pub fn add_input<X: NextNodes, E: ErrorCounters>(&self, name: &str) -> Result<NodeIndex, GraphError> {
        self.add(name, NodeKind::Input, Arc::new(NotDispatched), X::NAMES, E::COUNTERS, None)
    }

    /// Adds a superpath; its nodes must have been added, the graph built.
    ///
    /// # Errors
    /// A node of the chain is not in the graph, or features do not stand in the order of their arc.
    pub fn add_superpath<L: Chain>(&self, name: &str, mut chain: L) -> Result<SuperpathInfo, GraphError> {
        const { assert!(L::NODES <= MOST_NODES, "a superpath has more nodes than are counted") };
        let mut binder = Binder::new(self);
        chain.bind(&mut binder)?;
        let Binder { nodes, passages, .. } = binder;
        let first = nodes.first().copied().unwrap_or(self.drop.get());
        let logic = Arc::new(ChainRunner { chain, nodes });
        let node = self.add(name, NodeKind::Superpath, logic, &[], NoError::COUNTERS, None)?;
        Ok(SuperpathInfo { node, first, passages })
    }

    /// The node that packets without a way go to.
    pub fn drop_node(&self) -> NodeIndex {
        self.drop.get()
    }

    /// Takes a node away. Packets that still come to it are dropped and counted.
    ///
    /// # Errors
    /// The system refused to publish the change.
    pub fn remove(&self, node: NodeIndex) -> Result<(), GraphError> {
        let name = {
            let mut nodes = self.nodes.borrow_mut();
            let Some(draft) = nodes.get_mut(node.at()).filter(|draft| !draft.deleted) else { return Ok(()) };
            draft.logic = Arc::new(Deleted);
            draft.fan = None;
            draft.deleted = true;
            draft.edges = Edges::new(1, self.drop.get());
            draft.arcs.clear();
            self.error_names.release(draft.error_base, std::mem::take(&mut draft.errors));
            let (name, of) = (std::mem::take(&mut draft.name), draft.edges_of.take());
            if let Some(owner) = of.and_then(|of| nodes.get_mut(of.at())) {
                owner.edges_for.retain(|sharer| *sharer != node);
            }
            name
        };
        self.free.borrow_mut().insert(node);
        self.by_name.borrow_mut().remove(&name);
        self.counters.remove_prefix(&format!("/err/{name}/"));
        self.touch(node);
        self.publish()
    }

    /// Calls a node otherwise; its counters stay, by the new name.
    ///
    /// # Errors
    /// The name is taken, or the system refused to publish the change.
    pub fn rename(&self, node: NodeIndex, name: &str) -> Result<(), GraphError> {
        if self.by_name.borrow().contains_key(name) {
            return Err(GraphError::Exists(name.to_owned()));
        }
        let name: Arc<str> = name.into();
        let (old, base, errors) = {
            let mut nodes = self.nodes.borrow_mut();
            let Some(draft) = nodes.get_mut(node.at()).filter(|draft| !draft.deleted) else { return Ok(()) };
            (std::mem::replace(&mut draft.name, Arc::clone(&name)), draft.error_base, draft.errors)
        };
        self.error_names.rename(base, errors.len(), &name);
        self.counters.remove_prefix(&format!("/err/{old}/"));
        self.publish_errors(&name, base, errors);
        {
            let mut by_name = self.by_name.borrow_mut();
            by_name.remove(&old);
            by_name.insert(name, node);
        }
        self.touch(node);
        self.publish()
    }

    /// A node by its name.
    ///
    /// # Errors
    /// There is none; the error has the nearest name.
    pub fn node(&self, name: &str) -> Result<NodeIndex, GraphError> {
        self.by_name.borrow().get(name).copied().ok_or_else(|| {
            let near = self
                .by_name
                .borrow()
                .keys()
                .filter(|k| k.contains(name) || name.contains(&***k))
                .min()
                .map(ToString::to_string);
            GraphError::NoNode(name.to_owned(), near)
        })
    }

    /// A node's name.
    pub fn node_name(&self, node: NodeIndex) -> String {
        self.nodes.borrow().get(node.at()).map(|n| n.name.to_string()).unwrap_or_default()
    }

    /// Connects everything: next nodes by name, arcs with their features in order; then publishes.
    ///
    /// # Errors
    /// All names that are unknown; features that want to come before each other.
    pub fn build(&self) -> Result<(), GraphError> {
        let mut unknown = Vec::new();
        let count = self.nodes.borrow().len();
        for at in 0..count {
            if let Err(GraphError::Unknown(list)) = self.connect(NodeIndex(at as u32)) {
                unknown.extend(list);
            }
        }
        let specs = self.arcs.borrow().specs.clone();
        for spec in specs {
            self.arc(spec.name)?;
            match self.build_arc(spec) {
                Err(GraphError::Unknown(list)) => unknown.extend(list),
                other => other?,
            }
        }
        unknown.extend(self.unknown_features(&[]));
        for feature in &self.arcs.borrow().features {
            if !self.arcs.borrow().specs.iter().any(|s| s.name == feature.arc) {
                unknown.push(format!("arc `{}' of feature `{}'", feature.arc, feature.node));
            }
        }
        if !unknown.is_empty() {
            return Err(GraphError::Unknown(unknown));
        }
        self.built.set(true);
        self.arcs_changed.set(true);
        self.publish()
    }

    /// The main thread's worker, for control code on that thread between rounds.
    pub fn main(&self) -> RefMut<'_, Worker> {
        self.main.borrow_mut()
    }

    /// What `show threads` prints.
    pub fn threads(&self) -> Vec<Arc<ThreadShared>> {
        self.threads.borrow().all()
    }

    /// All threads' registry.
    fn registry(&self) -> Ref<'_, threads::Threads> {
        self.threads.borrow()
    }
}
