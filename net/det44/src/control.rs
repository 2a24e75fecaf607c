//! The control plane: on or off, maps, interfaces, sessions.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::{Adjacencies, Family};
use shoal_fib::{Fib, FibError, FibTables, ProxyRoutes, Source};
use shoal_graph::process::{Receiver, channel};
use shoal_graph::{FeatureSpec, Graph, GraphError, HandOver, StateKey, StatefulNode};
use shoal_interface::{Event, InterfaceError, Interfaces, SwIfIndex};
use shoal_ip4::Ip4;
use shoal_message::Retval;
use shoal_module::{Control, InitError};
pub use shoal_nat::{Side, Sides};
use shoal_nat44::export::Export;
use shoal_nat44::session_events::Exhausted;
use shoal_reassembly::{Reassembly, ReassemblyError, Side as Where, Version};
use shoal_wire::Ip4Prefix;

use crate::config::{Config, FIRST_PORT, Map, Share, Timeouts};
use crate::node::{In2out, Out2in};
use crate::session_stores::SessionStores;
use crate::sessions::{Flow, LONGEST, Record};
use crate::shared::Shared;

/// The user name for shallow reassembly.
const USER: &str = "det44";

/// Hosts that wait to be told of.
const WAITING: usize = 64;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Det44Error {
    /// DET44 is off.
    #[error("det44 is disabled: det44 plugin enable")]
    Off,
    /// It is on already.
    #[error("already enabled")]
    AlreadyOn,
    /// It is off already.
    #[error("already disabled")]
    AlreadyOff,
    /// There is no memory for sessions.
    #[error("no memory for sessions: {0}")]
    Memory(String),
    /// A timeout is out of range.
    #[error("a timeout of {0} seconds is not possible: 1 to {LONGEST}, nearest {nearest}", nearest = (*.0).clamp(1, LONGEST))]
    Timeout(u32),
    /// Hosts and addresses do not go together.
    #[error("{inside} cannot share {outside}: as many hosts as addresses, up to 64512 for each")]
    Unfit {
        /// The hosts.
        inside: Ip4Prefix,
        /// The addresses.
        outside: Ip4Prefix,
    },
    /// Hosts or addresses have a map.
    #[error("{0} has a map already")]
    Exists(Ip4Prefix),
    /// There is no such map.
    #[error("there is no map of {inside} to {outside}")]
    NoMap {
        /// The hosts.
        inside: Ip4Prefix,
        /// The addresses.
        outside: Ip4Prefix,
    },
    /// The interface is on that side already.
    #[error("interface {0} is on that side already")]
    OnSide(String),
    /// It is not.
    #[error("interface {0} is not on that side")]
    NotOnSide(String),
    /// No host has the address, or the port.
    #[error("no match")]
    NoMatch,
    /// No host has ports below.
    #[error("wrong port, must be <1024-65535>")]
    Port(u16),
    /// The forwarding table refused.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// There is no such interface.
    #[error(transparent)]
    If(#[from] InterfaceError),
    /// A thread does not answer.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// Shallow reassembly refused.
    #[error(transparent)]
    Reassembly(#[from] ReassemblyError),
}

impl From<Det44Error> for Retval {
    fn from(error: Det44Error) -> Self {
        match error {
            Det44Error::Off => Retval::UNSUPPORTED,
            // As VPP, which has no name for it.
            Det44Error::AlreadyOn | Det44Error::AlreadyOff => Retval(1),
            Det44Error::Timeout(_)
            | Det44Error::Unfit { .. }
            | Det44Error::Port(_)
            | Det44Error::OnSide(_)
            | Det44Error::NotOnSide(_) => Retval::INVALID_VALUE,
            Det44Error::Exists(_) => Retval::VALUE_EXIST,
            Det44Error::NoMap { .. } | Det44Error::NoMatch => Retval::NO_SUCH_ENTRY,
            Det44Error::Memory(_) | Det44Error::Graph(_) => Retval::UNSPECIFIED,
            Det44Error::Fib(error) => shoal_fib::api::retval(&error),
            Det44Error::If(error) => error.into(),
            Det44Error::Reassembly(_) => Retval::INVALID_SW_IF_INDEX,
        }
    }
}

/// How DET44 is switched on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Enable {
    /// The VRF of hosts.
    pub inside_vrf: u32,
    /// The VRF of the world.
    pub outside_vrf: u32,
}

#[derive(Default)]
struct State {
    on: Option<Enable>,
    config: Config,
    sides: BTreeMap<SwIfIndex, Sides>,
    routes: ProxyRoutes,
}

/// DET44 of this router.
pub struct Det44 {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    ip4: Rc<Ip4>,
    fib: Rc<Fib>,
    reassembly: Rc<Reassembly>,
    shared: Arc<Shared>,
    keeping: StateKey<SessionStores>,
    state: RefCell<State>,
    export: Rc<Export>,
    told: Receiver<Exhausted>,
}

impl Det44 {
    /// Tells collectors of flow records what threads say.
    pub(crate) async fn listen(self: Rc<Self>) {
        while let Ok(what) = self.told.recv().await {
            self.export.exhausted(what);
        }
    }

    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let reassembly = control.get::<Reassembly>()?;
        let tables = FibTables::clone(&*control.get::<FibTables>()?);
        let adjacencies = control.get::<Adjacencies>()?.table();
        let export = Export::of(control)?;
        let (tell, told) = channel(WAITING);
        let of_records = (export.gate(), tell);
        let shared = Shared::new(graph.counters(), (tables, adjacencies), reassembly.words(), of_records)?;
        let keeping = graph.add_state(SessionStores::new(Arc::clone(&shared)))?;
        let s = || Arc::clone(&shared);
        let nodes = [
            ("det44-in2out-handoff", graph.add_stateful(In2out { shared: s() }, &keeping)?),
            ("det44-out2in-handoff", graph.add_stateful(Out2in::<false> { shared: s() }, &keeping)?),
            ("det44-hairpinning-handoff", graph.add_stateful(Out2in::<true> { shared: s() }, &keeping)?),
        ];
        for (name, node) in nodes {
            graph.add_frame_named(name, HandOver::new(node))?;
        }
        for node in [In2out::NAME, Out2in::<false>::NAME] {
            let (arc, after) = (shoal_ip4::UNICAST_ARC, &["ip4-sv-reassembly-feature"]);
            graph.add_feature(FeatureSpec { arc, node, before: &[], after });
        }
        let det44 = Rc::new(Det44 {
            graph,
            interfaces: Rc::clone(&interfaces),
            ip4: control.get::<Ip4>()?,
            fib: control.get::<Fib>()?,
            reassembly,
            shared,
            keeping,
            state: RefCell::default(),
            export,
            told,
        });
        let weak = Rc::downgrade(&det44);
        interfaces.subscribe(move |_, event| {
            if let (Event::Deleting(interface), Some(det44)) = (event, weak.upgrade()) {
                det44.forget_interface(interface);
            }
        });
        Ok(det44)
    }

    /// How it was switched on, while it is.
    pub fn enabled(&self) -> Option<Enable> {
        self.state.borrow().on
    }

    fn on(&self) -> Result<Enable, Det44Error> {
        self.enabled().ok_or(Det44Error::Off)
    }

    /// Switches DET44 on, without interfaces and maps.
    ///
    /// # Errors
    /// It is on, or there is no memory for sessions.
    pub fn enable(&self, asked: Enable) -> Result<(), Det44Error> {
        if self.enabled().is_some() {
            return Err(Det44Error::AlreadyOn);
        }
        let inside_table = self.fib.want_table(Family::Ip4, asked.inside_vrf, None)?;
        let outside_table = self.fib.want_table(Family::Ip4, asked.outside_vrf, None)?;
        let (timeouts, now) = (Timeouts::default(), self.graph.clock().now());
        for thread in self.keeping.feature().workers() {
            let opened = self
                .graph
                .on_state(&self.keeping, thread, move |_, sessions| sessions.open(timeouts, now))?;
            opened.map_err(|e| Det44Error::Memory(e.to_string()))?;
        }
        for table in [inside_table, outside_table] {
            self.fib.lock(Family::Ip4, table, Source::Proxy)?;
        }
        self.keeping.feature().set(true);
        let mut state = self.state.borrow_mut();
        let (inside_table, outside_table) = (inside_table.0, outside_table.0);
        state.config = Config { inside_table, outside_table, ..Config::default() };
        state.on = Some(asked);
        drop(state);
        self.publish();
        Ok(())
    }

    /// Switches DET44 off: sessions and all that was configured go.
    ///
    /// # Errors
    /// It is off.
    pub fn disable(&self) -> Result<(), Det44Error> {
        if self.enabled().is_none() {
            return Err(Det44Error::AlreadyOff);
        }
        for (interface, sides) in self.sides() {
            self.leave(interface, sides);
        }
        self.keeping.feature().set(false);
        let old = std::mem::take(&mut self.state.borrow_mut().config);
        self.state.borrow_mut().sides.clear();
        self.publish();
        if let Err(e) = self.graph.on_every_state(&self.keeping, |_, sessions| sessions.close()) {
            tracing::warn!("sessions stay until their thread answers: {e}");
        }
        for thread in self.keeping.feature().workers() {
            self.shared.set_count(thread, 0);
        }
        for table in [old.inside_table, old.outside_table] {
            self.fib.unlock(Family::Ip4, shoal_fib::FibIndex(table), Source::Proxy);
        }
        self.state.borrow_mut().on = None;
        Ok(())
    }

    fn publish(&self) {
        let mut state = self.state.borrow_mut();
        state.config.workers = self.keeping.feature().workers();
        self.shared.config.replace(state.config.clone());
        // The router answers for shared addresses, in the tables of interfaces to the outside: they are its own.
        let mut wanted = BTreeMap::new();
        for (interface, _) in state.sides.iter().filter(|(_, sides)| sides.outside) {
            let table = self.ip4.fib_of(*interface);
            for map in &state.config.maps {
                wanted.entry((table, map.outside)).or_insert(*interface);
            }
        }
        state.routes.replace(&self.fib, &wanted);
    }

    /// Maps, in the order in which they were given.
    pub fn maps(&self) -> Vec<Map> {
        self.state.borrow().config.maps.clone()
    }

    /// Hosts share addresses.
    ///
    /// # Errors
    /// DET44 is off, they do not go together, or some have a map already.
    pub fn add_map(&self, inside: Ip4Prefix, outside: Ip4Prefix) -> Result<(), Det44Error> {
        self.on()?;
        let map = Map::new(inside, outside).ok_or(Det44Error::Unfit { inside, outside })?;
        let meet = |a: Ip4Prefix, b: Ip4Prefix| a.contains(b.network()) || b.contains(a.network());
        for other in self.maps() {
            for (mine, other) in [(map.inside, other.inside), (map.outside, other.outside)] {
                if meet(mine, other) {
                    return Err(Det44Error::Exists(mine));
                }
            }
        }
        self.state.borrow_mut().config.maps.push(map);
        self.publish();
        Ok(())
    }

    /// They do no more; their sessions end.
    ///
    /// # Errors
    /// DET44 is off, or there is no such map.
    pub fn del_map(&self, inside: Ip4Prefix, outside: Ip4Prefix) -> Result<(), Det44Error> {
        self.on()?;
        let (inside, outside) = (inside.normalized(), outside.normalized());
        let at = self.maps().iter().position(|map| (map.inside, map.outside) == (inside, outside));
        let at = at.ok_or(Det44Error::NoMap { inside, outside })?;
        self.state.borrow_mut().config.maps.remove(at);
        self.publish();
        self.end_sessions(move |flow| inside.contains(flow.host)).map(drop)
    }

    fn end_sessions(
        &self,
        goes: impl Fn(&Flow) -> bool + Clone + Send + 'static,
    ) -> Result<usize, Det44Error> {
        let now = self.graph.clock().now();
        let ended = self.graph.on_every_state(&self.keeping, move |_, sessions| {
            (sessions.take_out(now, |record| goes(&record.flow)).len(), sessions.len())
        })?;
        for (thread, (_, left)) in &ended {
            self.shared.set_count(*thread, *left);
        }
        Ok(ended.into_values().map(|(ended, _)| ended).sum())
    }

    /// What a host has.
    ///
    /// # Errors
    /// No map has it.
    pub fn forward(&self, host: Ipv4Addr) -> Result<Share, Det44Error> {
        self.state.borrow().config.of_host(host).map(|map| map.forward(host)).ok_or(Det44Error::NoMatch)
    }

    /// The host that has a port.
    ///
    /// # Errors
    /// None has.
    pub fn reverse(&self, address: Ipv4Addr, port: u16) -> Result<Ipv4Addr, Det44Error> {
        if port < FIRST_PORT {
            return Err(Det44Error::Port(port));
        }
        let state = self.state.borrow();
        state.config.of_shared(address).and_then(|map| map.reverse(address, port)).ok_or(Det44Error::NoMatch)
    }

    /// Interfaces on sides.
    pub fn sides(&self) -> Vec<(SwIfIndex, Sides)> {
        self.state.borrow().sides.iter().map(|(interface, sides)| (*interface, *sides)).collect()
    }

    /// Puts an interface on a side, too, or takes it from there.
    ///
    /// # Errors
    /// DET44 is off, there is no such interface, or it is so already.
    pub fn set_side(&self, interface: SwIfIndex, side: Side, on: bool) -> Result<(), Det44Error> {
        self.on()?;
        let name = self.interfaces.name(interface)?;
        let old = self.state.borrow().sides.get(&interface).copied().unwrap_or_default();
        if old.has(side) == on {
            return Err(if on { Det44Error::OnSide(name) } else { Det44Error::NotOnSide(name) });
        }
        let sides = old.with(side, on);
        self.enable_side(interface, side, on)?;
        let mut state = self.state.borrow_mut();
        if sides == Sides::default() {
            state.sides.remove(&interface);
        } else {
            state.sides.insert(interface, sides);
        }
        drop(state);
        self.publish();
        Ok(())
    }

    fn enable_side(&self, interface: SwIfIndex, side: Side, on: bool) -> Result<(), Det44Error> {
        let (node, user) = match side {
            Side::Inside => (In2out::NAME, "det44-in"),
            Side::Outside => (Out2in::<false>::NAME, USER),
        };
        self.reassembly.use_sv((interface, Version::Ip4, Where::Input), user, on)?;
        self.interfaces.enable_feature(shoal_ip4::UNICAST_ARC, node, interface, on)?;
        Ok(())
    }

    fn leave(&self, interface: SwIfIndex, sides: Sides) {
        for side in [Side::Inside, Side::Outside] {
            if sides.has(side)
                && let Err(e) = self.enable_side(interface, side, false)
            {
                tracing::warn!(%interface, "DET44 stays: {e}");
            }
        }
    }

    fn forget_interface(&self, interface: SwIfIndex) {
        let sides = self.state.borrow_mut().sides.remove(&interface);
        if let Some(sides) = sides {
            self.leave(interface, sides);
            self.publish();
        }
    }

    /// How long sessions live without a packet.
    pub fn timeouts(&self) -> Timeouts {
        self.state.borrow().config.timeouts
    }

    /// Changes that.
    ///
    /// # Errors
    /// DET44 is off, or one is out of range.
    pub fn set_timeouts(&self, timeouts: Timeouts) -> Result<(), Det44Error> {
        self.on()?;
        let Timeouts { udp, tcp_established, tcp_transitory, icmp } = timeouts;
        for value in [udp, tcp_established, tcp_transitory, icmp] {
            if !(1..=LONGEST).contains(&value) {
                return Err(Det44Error::Timeout(value));
            }
        }
        self.state.borrow_mut().config.timeouts = timeouts;
        self.publish();
        let set =
            self.graph.on_every_state(&self.keeping, move |_, sessions| sessions.set_timeouts(timeouts))?;
        set.into_values().find_map(Result::err).map_or(Ok(()), |e| Err(Det44Error::Memory(e.to_string())))
    }

    /// All sessions, by host.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn sessions(&self) -> Result<Vec<Record>, Det44Error> {
        let now = self.graph.clock().now();
        let all = self.graph.on_every_state(&self.keeping, move |_, sessions| sessions.records(now))?;
        let mut records: Vec<Record> = all.into_values().flatten().collect();
        records.sort_by_key(|record| record.flow);
        Ok(records)
    }

    /// Ends the session of a shared address and port with a remote.
    ///
    /// # Errors
    /// There is none.
    pub fn close_out(&self, shared: (Ipv4Addr, u16), remote: (Ipv4Addr, u16)) -> Result<(), Det44Error> {
        let ended = self.end_sessions(move |flow| (flow.shared, flow.remote) == (shared, remote))?;
        if ended > 0 { Ok(()) } else { Err(Det44Error::NoMatch) }
    }

    /// Ends the session of a host and its port with a remote.
    ///
    /// # Errors
    /// There is none.
    pub fn close_in(&self, (host, port): (Ipv4Addr, u16), remote: (Ipv4Addr, u16)) -> Result<(), Det44Error> {
        let ended =
            self.end_sessions(move |flow| (flow.host, flow.port, flow.remote) == (host, port, remote))?;
        if ended > 0 { Ok(()) } else { Err(Det44Error::NoMatch) }
    }
}
