//! The control plane: on or off, and what all its parts share.

mod bindings;
mod error;
mod interfaces;
mod log;
mod pool;
mod sync;

pub use bindings::Listed;
pub use error::Nat64Error;
pub use interfaces::{Side, Sides};
pub use pool::Address;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::{Adjacencies, Family};
use shoal_fib::{Fib, FibIndex, FibTables, ProxyRoutes, Source};
use shoal_graph::process::{Receiver, channel};
use shoal_graph::superpath::WithState;
use shoal_graph::{FeatureSpec, Graph, HandOver, StateKey, StatefulNode};
use shoal_interface::{Event, Interfaces, SwIfIndex};
use shoal_ip4::{AddressEvent, Ip4};
use shoal_ip6::Ip6;
use shoal_module::{Control, InitError};
use shoal_nat_state::sync::{Synced, SyncedFeatures};
use shoal_nat44::export::Export;
use shoal_reassembly::Reassembly;
use shoal_syslog::Syslog;
use shoal_translate46::Prefix64;
use shoal_wire::Ip6Prefix;

use crate::config::{Config, Inside, Limits, Outside, Timeouts};
use crate::node::in2out::In2out;
use crate::node::out2in::Out2in;
use crate::node::stage::Nat64Stages;
use crate::session_stores::SessionStores;
use crate::sessions::{LONGEST, Record};
use crate::shared::{Shared, ThreadEvent};
use pool::Pool;

/// The user name for shallow reassembly.
const USER: &str = "nat64";
/// Sessions that wait to be logged.
const WAITING: usize = 1 << 12;
/// Bindings and sessions of a worker for each bucket of VPP's tables.
const OF_A_BUCKET: u32 = 10;
/// The most a worker keeps of each.
const MOST: u32 = 1 << 26;

/// How NAT64 is switched on: VPP's sizes, each bucket standing for ten of a worker. 0: as usual.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Enable {
    /// Of bindings; usually 1,024.
    pub bib_buckets: u32,
    /// Of sessions; usually 2,048.
    pub st_buckets: u32,
}

impl Enable {
    fn limits(self) -> Limits {
        let usual = Limits::default();
        let of = |buckets: u32, usual: u32| {
            if buckets == 0 { usual } else { buckets.saturating_mul(OF_A_BUCKET).min(MOST) }
        };
        Limits {
            bindings: of(self.bib_buckets, usual.bindings),
            sessions: of(self.st_buckets, usual.sessions),
        }
    }
}

/// What is configured while NAT64 is on.
#[derive(Default)]
struct State {
    on: Option<Enable>,
    config: Config,
    sides: BTreeMap<SwIfIndex, Sides>,
    pool: Vec<Pool>,
    followed: BTreeSet<SwIfIndex>,
    /// Static bindings; the VRF of each is that of its table.
    statics: BTreeMap<Inside, Outside>,
    prefixes: BTreeMap<u32, Prefix64>,
    routes: ProxyRoutes,
    /// Tables that may not go: how often each is used.
    held: BTreeMap<FibIndex, u32>,
}

/// NAT64 of this router.
pub struct Nat64 {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    ip4: Rc<Ip4>,
    fib: Rc<Fib>,
    reassembly: Rc<Reassembly>,
    syslog: Rc<Syslog>,
    shared: Arc<Shared>,
    keeping: StateKey<SessionStores>,
    state: RefCell<State>,
    told: Receiver<ThreadEvent>,
    export: Rc<Export>,
    /// Whether another router forwards.
    is_standby: Cell<bool>,
}

/// What drops packets without a session of its own, where an interface has both: NAT64 lets pass what is not for its pool.
const NAT44: [&str; 4] = ["nat44-ed-out2in", "nat44-ed-classify", "nat44-ei-out2in", "nat44-ei-classify"];

fn add_nodes(
    graph: &Graph,
    shared: &Arc<Shared>,
    keeping: &StateKey<SessionStores>,
) -> Result<(), InitError> {
    let s = || Arc::clone(shared);
    let nodes = [
        ("nat64-in2out-handoff", graph.add_stateful(In2out::<false> { shared: s() }, keeping)?),
        ("nat64-out2in-handoff", graph.add_stateful(Out2in::<false> { shared: s() }, keeping)?),
        ("nat64-hairpinning-handoff", graph.add_stateful(Out2in::<true> { shared: s() }, keeping)?),
    ];
    for (name, node) in nodes {
        graph.add_frame_named(name, HandOver::new(node))?;
    }
    graph.add_stateful(In2out::<true> { shared: s() }, keeping)?;
    let (arc, node) = (shoal_ip6::UNICAST_ARC, In2out::<false>::NAME);
    graph.add_feature(FeatureSpec { arc, node, before: &[], after: &["ip6-sv-reassembly-feature"] });
    let (arc, node) = (shoal_ip4::UNICAST_ARC, Out2in::<false>::NAME);
    graph.add_feature(FeatureSpec { arc, node, before: &NAT44, after: &["ip4-sv-reassembly-feature"] });
    Ok(())
}

impl Nat64 {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let (ip4, reassembly) = (control.get::<Ip4>()?, control.get::<Reassembly>()?);
        // Hosts' tables must be there before packets are.
        control.get::<Ip6>()?;
        let syslog = control.get::<Syslog>()?;
        let export = Export::of(control)?;
        let (tell, told) = channel(WAITING);
        let of_packets = (interfaces.table(), reassembly.words());
        let tables = (FibTables::clone(&*control.get::<FibTables>()?), control.get::<Adjacencies>()?.table());
        let shared = Shared::new(graph.counters(), of_packets, tables, (syslog.gate(), export.gate()), tell)?;
        let keeping = graph.add_state(SessionStores::new(Arc::clone(&shared)))?;
        add_nodes(&graph, &shared, &keeping)?;
        control.put(Nat64Stages {
            in2out: WithState::new(In2out { shared: Arc::clone(&shared) }, &keeping),
            out2in: WithState::new(Out2in { shared: Arc::clone(&shared) }, &keeping),
        });
        let nat = Rc::new(Nat64 {
            graph,
            interfaces: Rc::clone(&interfaces),
            ip4: Rc::clone(&ip4),
            fib: control.get::<Fib>()?,
            reassembly,
            syslog,
            shared,
            keeping,
            state: RefCell::default(),
            told,
            export,
            is_standby: Cell::default(),
        });
        let name = (sync::NUMBER, "nat64");
        let synced = Synced::new(name, Rc::clone(&nat.graph), nat.keeping.clone(), &nat);
        SyncedFeatures::of(control).add(Rc::new(synced));
        let weak = Rc::downgrade(&nat);
        interfaces.subscribe(move |_, event| {
            if let Some(nat) = weak.upgrade() {
                match event {
                    Event::Created(interface) => nat.shared.ensure(interface.0 as usize + 1),
                    Event::Deleting(interface) => nat.forget_interface(interface),
                    _ => {}
                }
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

    /// Whether NAT64 is on.
    pub fn is_on(&self) -> bool {
        self.state.borrow().on.is_some()
    }

    /// How NAT64 was switched on, while it is.
    pub fn enabled(&self) -> Option<Enable> {
        self.state.borrow().on
    }

    fn on(&self) -> Result<(), Nat64Error> {
        if self.is_on() { Ok(()) } else { Err(Nat64Error::Off) }
    }

    /// Switches NAT64 on, without interfaces and addresses.
    ///
    /// # Errors
    /// It is on, or there is no memory for so many sessions.
    pub fn enable(&self, asked: Enable) -> Result<(), Nat64Error> {
        if self.is_on() {
            return Err(Nat64Error::AlreadyOn);
        }
        self.state.borrow_mut().config = Config { limits: asked.limits(), ..Config::default() };
        if let Err(error) = self.open_sessions() {
            self.close_sessions();
            return Err(error);
        }
        self.state.borrow_mut().on = Some(asked);
        self.keeping.feature().set(true);
        let last = self.interfaces.indices().iter().map(|index| index.0 as usize + 1).max();
        self.shared.ensure(last.unwrap_or(1));
        self.publish();
        Ok(())
    }

    fn open_sessions(&self) -> Result<(), Nat64Error> {
        let config = self.state.borrow().config.clone();
        let now = self.graph.clock().now();
        for thread in self.keeping.feature().workers() {
            let config = config.clone();
            let opened =
                self.graph.on_state(&self.keeping, thread, move |_, sessions| sessions.open(&config, now))?;
            opened.map_err(|e| Nat64Error::Memory(e.to_string()))?;
        }
        Ok(())
    }

    fn close_sessions(&self) {
        if let Err(e) = self.graph.on_every_state(&self.keeping, |_, sessions| sessions.close()) {
            tracing::warn!("sessions stay until their thread answers: {e}");
        }
        for thread in self.keeping.feature().workers() {
            self.shared.set_counts(thread, 0, 0);
        }
    }

    /// Switches NAT64 off: sessions and all that was configured go.
    ///
    /// # Errors
    /// It is off.
    pub fn disable(&self) -> Result<(), Nat64Error> {
        if !self.is_on() {
            return Err(Nat64Error::AlreadyOff);
        }
        self.leave_interfaces();
        self.keeping.feature().set(false);
        self.state.borrow_mut().pool.clear();
        self.publish();
        self.close_sessions();
        let old = std::mem::take(&mut *self.state.borrow_mut());
        for (table, times) in old.held {
            (0..times).for_each(|_| self.fib.unlock(Family::Ip6, table, Source::Proxy));
        }
        self.publish();
        Ok(())
    }

    /// Has packets see what is configured now.
    fn publish(&self) {
        let pool = self.pool_of_packets();
        let mut state = self.state.borrow_mut();
        let table = |vrf: &u32| self.fib.index_of(Family::Ip6, *vrf).map(|fib| fib.0).ok();
        let prefixes =
            state.prefixes.iter().filter_map(|(vrf, prefix)| Some((table(vrf)?, *prefix))).collect();
        let config = &mut state.config;
        config.set_pool(pool);
        config.prefixes = prefixes;
        config.workers = self.keeping.feature().workers();
        config.standby = self.is_standby.get();
        self.shared.config.replace(config.clone());
        self.shared.set_statics(state.statics.len());
        drop(state);
        self.answer_for_pool();
    }

    /// The hosts' table of a VRF, made if there is none; it stays as long as it is held.
    fn hold_table(&self, vrf: u32) -> Result<FibIndex, Nat64Error> {
        let fib = self.fib.want_table(Family::Ip6, vrf, None)?;
        self.fib.lock(Family::Ip6, fib, Source::Proxy)?;
        *self.state.borrow_mut().held.entry(fib).or_default() += 1;
        Ok(fib)
    }

    fn release_table(&self, vrf: u32) {
        let Ok(fib) = self.fib.index_of(Family::Ip6, vrf) else { return };
        let mut state = self.state.borrow_mut();
        let Some(held) = state.held.get_mut(&fib) else { return };
        *held = held.saturating_sub(1);
        if *held == 0 {
            state.held.remove(&fib);
        }
        drop(state);
        self.fib.unlock(Family::Ip6, fib, Source::Proxy);
    }

    /// The VRF of a table.
    pub fn vrf(&self, table: u32) -> u32 {
        self.fib.id_of(Family::Ip6, FibIndex(table)).unwrap_or(table)
    }

    /// How long sessions live without a packet.
    pub fn timeouts(&self) -> Timeouts {
        self.state.borrow().config.timeouts
    }

    /// Changes that.
    ///
    /// # Errors
    /// NAT64 is off, or one is out of range.
    pub fn set_timeouts(&self, timeouts: Timeouts) -> Result<(), Nat64Error> {
        self.on()?;
        let Timeouts { udp, tcp_established, tcp_transitory, icmp } = timeouts;
        for value in [udp, tcp_established, tcp_transitory, icmp] {
            if !(1..=LONGEST).contains(&value) {
                return Err(Nat64Error::Timeout(value));
            }
        }
        self.state.borrow_mut().config.timeouts = timeouts;
        self.publish();
        let set =
            self.graph.on_every_state(&self.keeping, move |_, sessions| sessions.set_timeouts(&timeouts))?;
        set.into_values().find_map(Result::err).map_or(Ok(()), |e| Err(Nat64Error::Memory(e.to_string())))
    }

    /// Prefixes that stand for the Internet, by the hosts' VRF.
    pub fn prefixes(&self) -> Vec<(u32, Prefix64)> {
        self.state.borrow().prefixes.iter().map(|(vrf, prefix)| (*vrf, *prefix)).collect()
    }

    /// What stands for an address of the Internet in a table.
    pub fn of_internet(&self, table: u32, address: std::net::Ipv4Addr) -> std::net::Ipv6Addr {
        self.shared.config.get().prefix(table).embed(address)
    }

    /// A prefix stands for the Internet in a VRF, in the place of one that does.
    ///
    /// # Errors
    /// NAT64 is off, or there is no such length.
    pub fn set_prefix(&self, vrf: u32, prefix: Ip6Prefix) -> Result<(), Nat64Error> {
        self.on()?;
        let prefix = Prefix64::new(prefix.normalized()).ok_or(Nat64Error::PrefixLength(prefix.len()))?;
        let old = self.state.borrow().prefixes.get(&vrf).copied();
        if old.is_none() {
            self.hold_table(vrf)?;
        }
        self.state.borrow_mut().prefixes.insert(vrf, prefix);
        self.publish();
        Ok(())
    }

    /// It does so no more: the VRF's own, whichever is named.
    ///
    /// # Errors
    /// NAT64 is off, there is no such length, or the VRF has none.
    pub fn del_prefix(&self, vrf: u32, prefix: Ip6Prefix) -> Result<(), Nat64Error> {
        self.on()?;
        Prefix64::new(prefix.normalized()).ok_or(Nat64Error::PrefixLength(prefix.len()))?;
        self.state.borrow_mut().prefixes.remove(&vrf).ok_or(Nat64Error::NoPrefix)?;
        self.publish();
        self.release_table(vrf);
        Ok(())
    }

    /// Ends sessions.
    fn end_sessions(
        &self,
        goes: impl Fn(&Record) -> bool + Clone + Send + 'static,
    ) -> Result<(), Nat64Error> {
        let shared = Arc::clone(&self.shared);
        let ended = self.graph.on_every_state(&self.keeping, move |_, sessions| {
            for record in sessions.take_out(&goes) {
                shared.tell(false, record);
            }
            shared.tell_bindings(sessions);
            (sessions.bindings(), sessions.len())
        })?;
        for (thread, (bindings, sessions)) in ended {
            self.shared.set_counts(thread, bindings, sessions);
        }
        Ok(())
    }

    /// All sessions, by host.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn sessions(&self) -> Result<Vec<Record>, Nat64Error> {
        let all = self.graph.on_every_state(&self.keeping, |_, sessions| sessions.records())?;
        let mut records: Vec<Record> = all.into_values().flatten().collect();
        records.sort_by_key(|record| (record.inside, record.remote));
        Ok(records)
    }

    /// How many sessions there are, and may be on all workers together, while NAT64 is on.
    pub fn used(&self) -> Option<(usize, usize)> {
        let most = self.enabled()?.limits().sessions as usize * self.keeping.feature().workers().len();
        let all = self.graph.on_every_state(&self.keeping, |_, sessions| sessions.len()).ok()?;
        Some((all.into_values().sum(), most))
    }
}
