//! The control plane: on or off, and what all its parts share.

mod independent;
mod interfaces;
mod log;
mod mappings;
mod pool;
mod session_stores;
mod sessions;
mod settings;
mod sync;

pub use independent::SharedAddress;
pub use interfaces::{Side, Sides};
pub use mappings::{Balanced, Spec};
pub use pool::{Address, OfInterface, Purpose};
pub use session_stores::SessionStores;
pub use sessions::{Slice, User};
pub use settings::Enable;
pub use shoal_nat44::NatError;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::{Adjacencies, Family};
use shoal_fib::{Fib, FibTables, ProxyRoutes};
use shoal_graph::process::{Receiver, channel};
use shoal_graph::superpath::WithState;
use shoal_graph::{FeatureSpec, Graph, HandOver, StateKey, StatefulStagedNode};
use shoal_interface::{Event, Interfaces, SwIfIndex};
use shoal_ip4::{AddressEvent, Ip4};
use shoal_module::{Control, InitError};
use shoal_nat_state::sync::{Synced, SyncedFeatures};
use shoal_nat44::export::Export;
use shoal_nat44::held::HeldTables;
use shoal_nat44::pool::AddressPool;
use shoal_nat44::reach::{Outside, Reach};
use shoal_nat44::session_events::NewsChannel;
use shoal_nat44::translated::Translated;
use shoal_reassembly::Reassembly;
use shoal_syslog::Syslog;

use crate::bindings::Filtering;
use crate::config::Config;
use crate::error::{In2outError, Out2inError};
use crate::node::fast::{BOTH, Fast, IN2OUT, OUT2IN, OUTPUT};
use crate::node::slow::Slow;
use crate::node::stage::Nat44Stages;
use crate::sessions::{Event as SessionEvent, Session};
use crate::shared::{Shared, ThreadEvent};
use mappings::Static;

/// What threads may tell before the main thread hears it.
const WAITING: usize = 1 << 12;
/// Shallow reassembly, which comes first.
const SV: &[&str] = &["ip4-sv-reassembly-feature"];
const SV_OUTPUT: &[&str] = &["ip4-sv-reassembly-output-feature"];

/// What is configured while NAT is on.
#[derive(Default)]
struct State {
    on: Option<Enable>,
    config: Config,
    pool: AddressPool,
    twice: AddressPool,
    followed: BTreeSet<OfInterface>,
    independent: BTreeMap<SharedAddress, Filtering>,
    statics: Vec<Static>,
    vrf_tables: BTreeMap<u32, Vec<u32>>,
    limits: BTreeMap<u32, u32>,
    /// Routes by which the router answers for pool addresses.
    routes: ProxyRoutes,
}

/// NAT44 of this router.
pub struct Nat44 {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    ip4: Rc<Ip4>,
    fib: Rc<Fib>,
    translated: Translated,
    shared: Arc<Shared>,
    keeping: StateKey<SessionStores>,
    held: HeldTables,
    state: RefCell<State>,
    syslog: Rc<Syslog>,
    told: Receiver<ThreadEvent>,
    /// Sessions that commands have ended, which collectors do not know yet.
    ended: RefCell<VecDeque<(SessionEvent, Session)>>,
    export: Rc<Export>,
    /// Whether another router forwards.
    is_standby: Cell<bool>,
}

/// Adds the nodes.
fn add_nodes(
    graph: &Graph,
    shared: &Arc<Shared>,
    keeping: &StateKey<SessionStores>,
) -> Result<(), InitError> {
    let s = || Arc::clone(shared);
    let nodes = [
        ("nat44-in2out-worker-handoff", graph.add_stateful_staged(Fast::<IN2OUT> { shared: s() }, keeping)?),
        ("nat44-out2in-worker-handoff", graph.add_stateful_staged(Fast::<OUT2IN> { shared: s() }, keeping)?),
        ("nat44-handoff-classify", graph.add_stateful_staged(Fast::<BOTH> { shared: s() }, keeping)?),
        (
            "nat44-in2out-output-worker-handoff",
            graph.add_stateful_staged(Fast::<OUTPUT> { shared: s() }, keeping)?,
        ),
    ];
    for (name, node) in nodes {
        graph.add_frame_named(name, HandOver::new(node))?;
    }
    let reasons = std::marker::PhantomData;
    graph.add_stateful_frame(Slow::<IN2OUT, In2outError> { shared: s(), reasons }, keeping)?;
    graph.add_stateful_frame(Slow::<OUTPUT, In2outError> { shared: s(), reasons }, keeping)?;
    let reasons = std::marker::PhantomData;
    graph.add_stateful_frame(Slow::<OUT2IN, Out2inError> { shared: s(), reasons }, keeping)?;
    for node in [Fast::<IN2OUT>::NAME, Fast::<OUT2IN>::NAME, Fast::<BOTH>::NAME] {
        graph.add_feature(FeatureSpec { arc: shoal_ip4::UNICAST_ARC, node, before: &[], after: SV });
    }
    let node = Fast::<OUTPUT>::NAME;
    graph.add_feature(FeatureSpec { arc: shoal_ip4::OUTPUT_ARC, node, before: &[], after: SV_OUTPUT });
    Ok(())
}

impl Nat44 {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let (ip4, reassembly) = (control.get::<Ip4>()?, control.get::<Reassembly>()?);
        let tables = FibTables::clone(&*control.get::<FibTables>()?);
        let adjacencies = control.get::<Adjacencies>()?.table();
        let of_interfaces = (interfaces.table(), ip4.table());
        let syslog = control.get::<Syslog>()?;
        let export = Export::of(control)?;
        let (tell, told) = channel(WAITING);
        let shared = Shared::new(
            graph.counters(),
            Reach::new(tables, adjacencies),
            of_interfaces,
            reassembly.words(),
            NewsChannel::new((syslog.gate(), export.gate()), tell),
        )?;
        let shared = Arc::new(shared);
        let keeping = graph.add_state(SessionStores::new(Arc::clone(&shared)))?;
        add_nodes(&graph, &shared, &keeping)?;
        control.put(Nat44Stages {
            in2out: WithState::new(Fast { shared: Arc::clone(&shared) }, &keeping),
            out2in: WithState::new(Fast { shared: Arc::clone(&shared) }, &keeping),
        });
        let nat = Rc::new(Nat44 {
            graph,
            interfaces: Rc::clone(&interfaces),
            ip4: Rc::clone(&ip4),
            held: HeldTables::new(control.get::<Fib>()?),
            fib: control.get::<Fib>()?,
            translated: Translated::new(interfaces::NODES, Rc::clone(&interfaces), reassembly),
            shared,
            keeping,
            state: RefCell::default(),
            syslog,
            told,
            ended: RefCell::default(),
            export,
            is_standby: Cell::default(),
        });
        let name = (sync::NUMBER, "nat44-ed");
        let synced = Synced::new(name, Rc::clone(&nat.graph), nat.keeping.clone(), &nat);
        SyncedFeatures::of(control).add(Rc::new(synced));
        let weak = Rc::downgrade(&nat);
        interfaces.subscribe(move |_, event| {
            if let Some(nat) = weak.upgrade() {
                nat.follow(event);
            }
        });
        let weak = Rc::downgrade(&nat);
        ip4.subscribe(move |_, event| {
            if let Some(nat) = weak.upgrade() {
                let (AddressEvent::Added(interface, _)
                | AddressEvent::Removed(interface, _)
                | AddressEvent::Borrowed(interface)) = event;
                nat.follow_addresses(interface);
            }
        });
        Ok(nat)
    }

    fn follow(&self, event: Event) {
        match event {
            Event::Created(interface) => self.shared.counters.ensure(interface.0 as usize + 1),
            Event::Deleting(interface) => self.forget_interface(interface),
            Event::Ip4(interface, _) if self.translated.has(interface) => self.publish(),
            _ => {}
        }
    }

    /// Whether NAT is on.
    pub fn is_on(&self) -> bool {
        self.state.borrow().on.is_some()
    }

    /// Sessions there may be on all workers together, while NAT is on.
    pub fn most_sessions(&self) -> Option<usize> {
        let sessions = self.state.borrow().on.as_ref()?.sessions as usize;
        Some(sessions * self.keeping.feature().workers().len())
    }

    fn on(&self) -> Result<(), NatError> {
        if self.is_on() { Ok(()) } else { Err(NatError::Off("nat44")) }
    }

    /// Has packets see what is configured now.
    fn publish(&self) {
        if let Err(e) = self.publish_all() {
            tracing::warn!("ports of shared addresses are not one host's alone: {e}");
        }
    }

    /// The same, for what may fail.
    fn publish_all(&self) -> Result<(), NatError> {
        let mut state = self.state.borrow_mut();
        let outside = self.sides().into_iter().filter(|(_, sides)| sides.outside);
        let outside: Vec<SwIfIndex> = outside.map(|(interface, _)| interface).collect();
        let tables =
            outside.iter().copied().chain(self.outputs()).map(|interface| self.ip4.fib_of(interface).0);
        let tables: BTreeSet<u32> = tables.collect();
        let seen = |pool: &AddressPool| pool.seen(&self.fib, &self.ip4, &self.interfaces);
        let (pool, twice) = (seen(&state.pool), seen(&state.twice));
        let table = |vrf: &u32| self.fib.index_of(Family::Ip4, *vrf).map(|fib| fib.0).ok();
        let limits = state.limits.iter().filter_map(|(vrf, limit)| Some((table(vrf)?, *limit))).collect();
        let ways = state
            .vrf_tables
            .iter()
            .filter_map(|(vrf, to)| Some((table(vrf)?, to.iter().filter_map(table).collect())));
        let ways = ways.collect();
        let independent = state.independent_addresses();
        let config = &mut state.config;
        config.outside = Outside { interfaces: outside, tables, ways, table: config.outside.table };
        (config.pool, config.twice, config.limits) = (pool, twice, limits);
        config.workers = self.keeping.feature().workers();
        config.standby = self.is_standby.get();
        let is_other = config.independent != independent;
        config.independent = independent.clone();
        let sessions = config.sessions;
        self.shared.config.replace(config.clone());
        drop(state);
        self.answer_for_pool();
        if is_other { self.hold_ports(independent, sessions) } else { Ok(()) }
    }
}
