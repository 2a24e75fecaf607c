//! The control plane: on or off, and what all its parts share.

mod ha;
mod interfaces;
mod ipfix;
mod log;
mod mappings;
mod pool;
mod sessions;
mod settings;

pub use ha::{Failover, Listener};
pub use mappings::Spec;
pub use pool::Address;
pub use sessions::{Listed, Slice};
pub use settings::Enable;
pub use shoal_nat::{Side, Sides};
pub use shoal_nat44::NatError;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use shoal_adj::Adjacencies;
use shoal_fib::{Fib, FibTables, ProxyRoutes};
use shoal_graph::process::{Receiver, channel};
use shoal_graph::superpath::WithState;
use shoal_graph::{FeatureSpec, Graph, HandOver, StateKey, StatefulStagedNode};
use shoal_interface::{Event, Interfaces, SwIfIndex};
use shoal_ip4::{AddressEvent, Ip4};
use shoal_module::{Control, InitError};
use shoal_nat44::export::Export;
use shoal_nat44::held::HeldTables;
use shoal_nat44::pool::AddressPool;
use shoal_nat44::reach::{Outside, Reach};
use shoal_nat44::session_events::NewsChannel;
use shoal_nat44::translated::Translated;
use shoal_reassembly::Reassembly;
use shoal_syslog::Syslog;

use crate::config::{AddressFilter, Config};
use crate::error::{Error, Out2inError};
use crate::node::fast::{BOTH, Fast, HAIRPIN, IN2OUT, OUT2IN, OUTPUT};
use crate::node::slow::Slow;
use crate::node::stage::Nat44EiStages;
use crate::session_stores::SessionStores;
use crate::shared::{Shared, ThreadEvent};
use ha::Replication;
use mappings::Static;

/// Shallow reassembly, which comes first.
const SV: &[&str] = &["ip4-sv-reassembly-feature"];
const SV_OUTPUT: &[&str] = &["ip4-sv-reassembly-output-feature"];
/// Frames that wait between two of VPP's workers.
const QUEUE_LENGTH: u32 = 64;
/// Changes of sessions that wait to be sent.
const WAITING: usize = 1 << 14;

/// What is configured while NAT is on.
#[derive(Default)]
struct State {
    on: Option<Enable>,
    config: Config,
    pool: AddressPool,
    followed: BTreeSet<SwIfIndex>,
    statics: Vec<Static>,
    /// Routes by which the router answers for its addresses.
    routes: ProxyRoutes,
}

/// Endpoint-independent NAT44 of this router.
pub struct Nat44Ei {
    control: Weak<Control>,
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    ip4: Rc<Ip4>,
    fib: Rc<Fib>,
    translated: Translated,
    syslog: Rc<Syslog>,
    shared: Arc<Shared>,
    keeping: StateKey<SessionStores>,
    held: HeldTables,
    state: RefCell<State>,
    told: Receiver<ThreadEvent>,
    /// What commands have done to sessions and is still to be passed on.
    changed: RefCell<VecDeque<ThreadEvent>>,
    replication: Replication,
    export: Rc<Export>,
    queue_length: Cell<u32>,
}

fn slow<const WAY: u8, E>(shared: Arc<Shared>) -> Slow<WAY, E> {
    Slow { shared, reasons: std::marker::PhantomData }
}

/// Adds the nodes.
fn add_nodes(
    graph: &Graph,
    shared: &Arc<Shared>,
    keeping: &StateKey<SessionStores>,
) -> Result<(), InitError> {
    let s = || Arc::clone(shared);
    let nodes = [
        (
            "nat44-ei-in2out-worker-handoff",
            graph.add_stateful_staged(Fast::<IN2OUT> { shared: s() }, keeping)?,
        ),
        (
            "nat44-ei-out2in-worker-handoff",
            graph.add_stateful_staged(Fast::<OUT2IN> { shared: s() }, keeping)?,
        ),
        ("nat44-ei-handoff-classify", graph.add_stateful_staged(Fast::<BOTH> { shared: s() }, keeping)?),
        (
            "nat44-ei-in2out-output-worker-handoff",
            graph.add_stateful_staged(Fast::<OUTPUT> { shared: s() }, keeping)?,
        ),
        ("nat44-ei-hairpinning-handoff", graph.add_stateful_frame(slow::<HAIRPIN, Error>(s()), keeping)?),
    ];
    for (name, node) in nodes {
        graph.add_frame_named(name, HandOver::new(node))?;
    }
    graph.add_stateful_frame(slow::<IN2OUT, Error>(s()), keeping)?;
    graph.add_stateful_frame(slow::<OUTPUT, Error>(s()), keeping)?;
    graph.add_stateful_frame(slow::<OUT2IN, Out2inError>(s()), keeping)?;
    for node in [Fast::<IN2OUT>::NAME, Fast::<OUT2IN>::NAME, Fast::<BOTH>::NAME] {
        graph.add_feature(FeatureSpec { arc: shoal_ip4::UNICAST_ARC, node, before: &[], after: SV });
    }
    let node = Fast::<OUTPUT>::NAME;
    graph.add_feature(FeatureSpec { arc: shoal_ip4::OUTPUT_ARC, node, before: &[], after: SV_OUTPUT });
    Ok(())
}

impl Nat44Ei {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let (ip4, reassembly) = (control.get::<Ip4>()?, control.get::<Reassembly>()?);
        let tables = FibTables::clone(&*control.get::<FibTables>()?);
        let reach = Reach::new(tables, control.get::<Adjacencies>()?.table());
        let syslog = control.get::<Syslog>()?;
        let export = Export::of(control)?;
        let (tell, told) = channel(WAITING);
        let of_packets = (interfaces.table(), reassembly.words());
        let news = NewsChannel::new((syslog.gate(), export.gate()), tell);
        let shared = Shared::new(graph.counters(), reach, of_packets, news)?;
        let keeping = graph.add_state(SessionStores::new(Arc::clone(&shared)))?;
        add_nodes(&graph, &shared, &keeping)?;
        control.put(Nat44EiStages {
            in2out: WithState::new(Fast { shared: Arc::clone(&shared) }, &keeping),
            out2in: WithState::new(Fast { shared: Arc::clone(&shared) }, &keeping),
        });
        let replication = Replication::new(&graph)?;
        let nat = Rc::new(Nat44Ei {
            control: Rc::downgrade(control),
            graph,
            interfaces: Rc::clone(&interfaces),
            ip4: Rc::clone(&ip4),
            held: HeldTables::new(control.get::<Fib>()?),
            fib: control.get::<Fib>()?,
            translated: Translated::new(interfaces::NODES, Rc::clone(&interfaces), reassembly),
            syslog,
            shared,
            keeping,
            state: RefCell::default(),
            told,
            changed: RefCell::default(),
            replication,
            export,
            queue_length: Cell::new(QUEUE_LENGTH),
        });
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

    /// How NAT was switched on, while it is.
    pub fn enabled(&self) -> Option<Enable> {
        self.state.borrow().on
    }

    fn on(&self) -> Result<Enable, NatError> {
        self.enabled().ok_or(NatError::Disabled("nat44 ei"))
    }

    /// Sessions there may be on all workers together, while NAT is on.
    pub fn most_sessions(&self) -> Option<usize> {
        Some(self.enabled()?.sessions as usize * self.keeping.feature().workers().len())
    }

    /// How many frames may wait between two workers, as was configured.
    pub fn queue_length(&self) -> u32 {
        self.queue_length.get()
    }

    /// Remembers how many. Queues are as long as they need to be whatever it is.
    ///
    /// # Errors
    /// NAT is on: VPP makes its queues then.
    pub fn set_queue_length(&self, frames: u32) -> Result<(), NatError> {
        if self.enabled().is_some() {
            return Err(NatError::AlreadyOn);
        }
        self.queue_length.set(frames);
        Ok(())
    }

    /// Has packets see what is configured now.
    fn publish(&self) {
        let mut state = self.state.borrow_mut();
        let outside = self.sides().into_iter().filter(|(_, sides)| sides.outside);
        let interfaces: Vec<SwIfIndex> = outside.map(|(interface, _)| interface).collect();
        let outputs = self.outputs().into_iter().map(|(interface, _)| interface);
        let all = interfaces.iter().copied().chain(outputs);
        let tables = all.map(|interface| self.ip4.fib_of(interface).0).collect();
        let pool = state.pool.seen(&self.fib, &self.ip4, &self.interfaces);
        let external = state.statics.iter().filter_map(|one| one.external.map(|key| key.0));
        let known = AddressFilter::of(pool.iter().map(|pool| pool.address).chain(external));
        let config = &mut state.config;
        config.outside = Outside { interfaces, tables, ..std::mem::take(&mut config.outside) };
        (config.pool, config.known) = (pool, known);
        config.workers = self.keeping.feature().workers();
        config.refresh = self.replication.refresh();
        config.listener = self.listener().map(|listener| (listener.address.to_bits(), listener.port));
        self.shared.config.replace(config.clone());
        drop(state);
        self.answer_for_addresses();
    }
}
