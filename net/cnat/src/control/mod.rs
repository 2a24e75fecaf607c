//! The control plane: what all its parts share, interfaces, routes.

pub mod endpoint;
mod error;
mod routes;
mod session_stores;
mod sessions;
pub mod snat;
pub mod translations;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use shoal_adj::{AdjKind, Adjacencies};
use shoal_fib::{Fib, FibIndex, FibTables};
use shoal_graph::process::Processes;
use shoal_graph::superpath::WithState;
use shoal_graph::{FeatureSpec, Graph, HandOver, StateKey};
use shoal_interface::{Event, Interfaces, SwIfIndex};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_module::{Control, InitError};
use shoal_reassembly::{Reassembly, Side, Version};

pub use error::CnatError;
pub use session_stores::SessionStores;
pub use sessions::Slice;

use crate::config::{Config, Limits};
use crate::node::place::{NODES, names};
use crate::node::stage::CnatStages;
use crate::node::translate::Translate;
use crate::shared::Shared;
use endpoint::Addresses;
use routes::Routes;
use snat::SnatState;
use translations::Translations;

/// The user of shallow reassembly.
const USER: &str = "cnat";

/// Features of an interface: arc, node, and what comes before it.
const FEATURES: [(&str, usize, &[&str]); 4] = [
    (shoal_ip4::UNICAST_ARC, 0, &["ip4-not-enabled", "ip4-sv-reassembly-feature"]),
    (shoal_ip6::UNICAST_ARC, 1, &["ip6-not-enabled", "ip6-sv-reassembly-feature"]),
    (shoal_ip4::OUTPUT_ARC, 2, &["ip4-sv-reassembly-output-feature"]),
    (shoal_ip6::OUTPUT_ARC, 3, &["ip6-sv-reassembly-output-feature"]),
];

/// Where ports of fragments are to be known.
const PLACES: [(Version, Side); 4] = [
    (Version::Ip4, Side::Input),
    (Version::Ip6, Side::Input),
    (Version::Ip4, Side::Output),
    (Version::Ip6, Side::Output),
];

#[derive(Default)]
struct State {
    config: Config,
    translations: Translations,
    snat: SnatState,
    features: BTreeSet<SwIfIndex>,
    routes: Routes,
}

/// Cloud NAT of this router.
pub struct Cnat {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    fib: Rc<Fib>,
    ip4: Rc<Ip4>,
    ip6: Rc<Ip6>,
    reassembly: Rc<Reassembly>,
    adjacencies: Rc<Adjacencies>,
    shared: Arc<Shared>,
    keeping: StateKey<SessionStores>,
    is_open: Cell<bool>,
    state: RefCell<State>,
}

/// Adds the nodes.
fn add_nodes(
    graph: &Graph,
    shared: &Arc<Shared>,
    keeping: &StateKey<SessionStores>,
) -> Result<(), InitError> {
    fn add<const NODE: usize>(
        graph: &Graph,
        shared: &Arc<Shared>,
        keeping: &StateKey<SessionStores>,
    ) -> Result<(), InitError> {
        let node = graph.add_stateful_staged(Translate::<NODE> { shared: Arc::clone(shared) }, keeping)?;
        graph.add_frame_named(names(NODE).1, HandOver::new(node))?;
        Ok(())
    }
    let all: [_; NODES] = [add::<0>, add::<1>, add::<2>, add::<3>, add::<4>, add::<5>, add::<6>, add::<7>];
    all.iter().try_for_each(|add| add(graph, shared, keeping))?;
    for (arc, node, after) in FEATURES {
        graph.add_feature(FeatureSpec { arc, node: names(node).0, before: &[], after });
    }
    Ok(())
}

impl Cnat {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let (ip4, ip6) = (control.get::<Ip4>()?, control.get::<Ip6>()?);
        let reassembly = control.get::<Reassembly>()?;
        let tables = FibTables::clone(&*control.get::<FibTables>()?);
        let adjacencies = control.get::<Adjacencies>()?;
        let (ways, words) = ((tables, adjacencies.table()), reassembly.words());
        let shared = Shared::new(graph.counters(), interfaces.table(), ways, words)?;
        let shared = Arc::new(shared);
        let keeping = graph.add_state(SessionStores::new(Arc::clone(&shared)))?;
        add_nodes(&graph, &shared, &keeping)?;
        control.put(CnatStages {
            input4: WithState::new(Translate { shared: Arc::clone(&shared) }, &keeping),
            input6: WithState::new(Translate { shared: Arc::clone(&shared) }, &keeping),
            output4: WithState::new(Translate { shared: Arc::clone(&shared) }, &keeping),
            output6: WithState::new(Translate { shared: Arc::clone(&shared) }, &keeping),
        });
        let cnat = Rc::new(Cnat {
            graph,
            interfaces: Rc::clone(&interfaces),
            fib: control.get::<Fib>()?,
            ip4: Rc::clone(&ip4),
            ip6: Rc::clone(&ip6),
            reassembly,
            adjacencies,
            shared,
            keeping,
            is_open: Cell::new(false),
            state: RefCell::default(),
        });
        let weak = Rc::downgrade(&cnat);
        interfaces.subscribe(move |_, event| {
            if let (Event::Deleting(interface), Some(cnat)) = (event, weak.upgrade()) {
                cnat.forget_interface(interface);
            }
        });
        let weak = Rc::downgrade(&cnat);
        ip4.subscribe(move |_, event| {
            use shoal_ip4::AddressEvent::{Added, Borrowed, Removed};
            let (Added(interface, _) | Removed(interface, _) | Borrowed(interface)) = event;
            if let Some(cnat) = weak.upgrade() {
                cnat.follow_addresses(interface);
            }
        });
        let weak = Rc::downgrade(&cnat);
        ip6.subscribe(move |_, event| {
            use shoal_ip6::AddressEvent::{Added, Borrowed, Removed};
            let (Added(interface, _) | Removed(interface, _) | Borrowed(interface)) = event;
            if let Some(cnat) = weak.upgrade() {
                cnat.follow_addresses(interface);
            }
        });
        Ok(cnat)
    }

    fn addresses(&self) -> Addresses<'_> {
        Addresses { ip4: &self.ip4, ip6: &self.ip6 }
    }

    /// The address that comes from somewhere, now.
    pub fn address_of(&self, from: endpoint::AddressSource) -> Option<IpAddr> {
        self.addresses().of(from)
    }

    /// Whether new connections may go to an address.
    pub fn is_ready(&self, from: endpoint::AddressSource) -> bool {
        let Some(address) = self.address_of(from) else { return false };
        let adj = self.adjacencies.first(self.fib.lookup(FibIndex::DEFAULT, address));
        let nowhere =
            [AdjKind::None, AdjKind::Drop, AdjKind::Unreachable, AdjKind::Prohibit, AdjKind::Closed];
        !nowhere.contains(&adj.kind())
    }

    /// Interfaces.
    pub fn interfaces(&self) -> &Rc<Interfaces> {
        &self.interfaces
    }

    /// Forwarding tables.
    pub fn fib(&self) -> &Rc<Fib> {
        &self.fib
    }

    /// Limits of sessions.
    pub fn limits(&self) -> Limits {
        self.state.borrow().config.limits
    }

    /// Sets limits of sessions, before there are any.
    pub fn set_limits(&self, limits: Limits) {
        let state = &mut *self.state.borrow_mut();
        state.config.limits = limits;
        self.publish(state);
    }

    /// Has packets see what is configured now.
    fn publish(&self, state: &mut State) {
        state.config.workers = self.keeping.feature().workers();
        self.shared.config.replace(state.config.clone());
    }

    /// Sessions there may be on all workers together, once there may be any.
    pub fn most_sessions(&self) -> Option<usize> {
        let workers = self.keeping.feature().workers().len();
        self.is_open.get().then(|| self.limits().sessions as usize * workers)
    }

    /// Seconds since the router's clock began.
    pub fn seconds(&self) -> f64 {
        self.graph.clock().now().0 as f64 / 1e9
    }

    /// Has threads keep sessions from now on.
    fn open(&self) -> Result<(), CnatError> {
        if self.is_open.get() {
            return Ok(());
        }
        let feature = self.keeping.feature();
        self.publish(&mut self.state.borrow_mut());
        let (now, limits) = (self.graph.clock().now(), self.limits());
        feature.set(true);
        let done =
            self.graph.on_every_state(&self.keeping, move |_, sessions| sessions.open(&limits, now))?;
        if let Some(why) = done.into_values().find_map(Result::err) {
            feature.set(false);
            return Err(CnatError::Memory(why.to_string()));
        }
        self.is_open.set(true);
        Ok(())
    }

    /// Translates packets of an interface, or does so no more.
    ///
    /// # Errors
    /// There is no such interface, or there is no memory for sessions.
    pub fn set_feature(&self, interface: SwIfIndex, on: bool) -> Result<(), CnatError> {
        self.interfaces.name(interface)?;
        if self.state.borrow().features.contains(&interface) == on {
            return Ok(());
        }
        if on {
            self.open()?;
        }
        if let Err(e) = self.apply_feature(interface, on) {
            if on && let Err(e) = self.apply_feature(interface, false) {
                tracing::warn!(%interface, "cnat stays: {e}");
            }
            return Err(e);
        }
        let features = &mut self.state.borrow_mut().features;
        if on {
            features.insert(interface)
        } else {
            features.remove(&interface)
        };
        Ok(())
    }

    fn apply_feature(&self, interface: SwIfIndex, on: bool) -> Result<(), CnatError> {
        for (version, side) in PLACES {
            self.reassembly.use_sv((interface, version, side), USER, on)?;
        }
        for (arc, node, _) in FEATURES {
            self.interfaces.enable_feature(arc, names(node).0, interface, on)?;
        }
        Ok(())
    }

    /// Interfaces whose packets are translated.
    pub fn features(&self) -> Vec<SwIfIndex> {
        self.state.borrow().features.iter().copied().collect()
    }

    fn forget_interface(&self, interface: SwIfIndex) {
        if let Err(e) = self.set_feature(interface, false) {
            tracing::warn!(%interface, "cnat stays: {e}");
        }
        {
            let mut state = self.state.borrow_mut();
            state.snat.lists.retain(|(of, _)| *of != interface);
            for spec in state.snat.specs.values_mut().filter(|spec| spec.interface == Some(interface)) {
                spec.interface = None;
            }
        }
        self.publish_snat();
        self.follow_addresses(interface);
    }

    /// An interface has other addresses now.
    fn follow_addresses(&self, interface: SwIfIndex) {
        if !self.is_open.get() {
            return;
        }
        self.follow_endpoints(interface);
        self.publish_snat();
        if let Err(e) = self.follow_routes() {
            tracing::warn!(%interface, "cnat: routes stay: {e}");
        }
    }

    /// Publishes how many sessions there are, again and again.
    pub(crate) async fn scan(self: Rc<Self>, processes: Rc<Processes>, every: Duration) {
        loop {
            processes.sleep(every).await;
            self.shared.sessions();
        }
    }
}
