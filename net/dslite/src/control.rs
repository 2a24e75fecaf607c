//! The control plane: ends of tunnels, shared addresses, sessions.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::Adjacencies;
use shoal_fib::{Fib, FibError, FibIndex, FibTables, Path, Source, Via};
use shoal_graph::process::{Receiver, channel};
use shoal_graph::superpath::WithState;
use shoal_graph::{Graph, GraphError, HandOver, StateKey, StatefulFrameNode};
use shoal_interface::Interfaces;
use shoal_module::{Control, InitError};
use shoal_reassembly::Reassembly;
use shoal_syslog::{Facility, Message, Severity, Syslog};
use shoal_wire::IpPrefix;

use crate::config::{Config, TunnelAddresses};
use crate::node::ce::{CeDecap, CeEncap};
use crate::node::in2out::In2out;
use crate::node::out2in::Out2in;
use crate::node::stage::DsliteStages;
use crate::session_stores::SessionStores;
use crate::sessions::Record;
use crate::shared::{SessionEvent, Shared};

/// Shared addresses that one call may name.
const MOST_ADDRESSES: u32 = 1 << 12;
/// Sessions that wait to be logged.
const WAITING: usize = 1 << 12;

/// Where packets go that come to the AFTR's end of a tunnel.
pub const AFTR_NODE: &str = <In2out<false> as StatefulFrameNode>::NAME;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DsliteError {
    /// An address is shared already.
    #[error("{0} is shared already")]
    Exists(Ipv4Addr),
    /// An address is not shared.
    #[error("{0} is not shared")]
    None(Ipv4Addr),
    /// A range that ends before it begins, or is too long.
    #[error("{0} - {1} is no range of at most {MOST_ADDRESSES} addresses")]
    Range(Ipv4Addr, Ipv4Addr),
    /// The address of a tunnel's end is none of a host.
    #[error("{0} is no address of a host")]
    Address(IpAddr),
    /// The router is no B4.
    #[error("the start-up file has no `dslite {{ ce }}`: the router is no B4")]
    NoB4,
    /// The forwarding table refused.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// There is no memory for sessions.
    #[error("no memory for sessions: {0}")]
    Memory(String),
    /// A thread does not answer.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// DS-Lite of this router.
pub struct Dslite {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    fib: Rc<Fib>,
    syslog: Rc<Syslog>,
    shared: Arc<Shared>,
    keeping: StateKey<SessionStores>,
    config: RefCell<Config>,
    is_ce: Cell<bool>,
    told: Receiver<SessionEvent>,
}

fn to_node(node: &'static str) -> Path {
    Path::from(Via::Node(node))
}

/// All IPv4 packets that no other route takes.
fn everything() -> Result<IpPrefix, DsliteError> {
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    IpPrefix::new(any, 0).map_err(|_| DsliteError::Address(any))
}

fn host(address: IpAddr) -> IpPrefix {
    IpPrefix::host(address)
}

impl Dslite {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        // Its nodes must be there before those here, which send fragments to them.
        control.get::<Reassembly>()?;
        let (graph, syslog) = (control.graph()?, control.get::<Syslog>()?);
        let (tell, told) = channel(WAITING);
        let interfaces = control.get::<Interfaces>()?;
        let fib = FibTables::clone(&*control.get::<FibTables>()?);
        let tables = (interfaces.table(), fib, control.get::<Adjacencies>()?.table());
        let shared = Shared::new(graph.counters(), tables, syslog.gate(), tell)?;
        let keeping = graph.add_state(SessionStores::new(Arc::clone(&shared)))?;
        let s = || Arc::clone(&shared);
        let nodes = [
            ("dslite-in2out-handoff", graph.add_stateful_frame(In2out::<false> { shared: s() }, &keeping)?),
            ("dslite-out2in-handoff", graph.add_stateful_frame(Out2in { shared: s() }, &keeping)?),
        ];
        for (name, node) in nodes {
            graph.add_frame_named(name, HandOver::new(node))?;
        }
        graph.add_stateful_frame(In2out::<true> { shared: s() }, &keeping)?;
        graph.add_packet(CeEncap { shared: s() })?;
        graph.add_packet(CeDecap { shared: s() })?;
        control.put(DsliteStages {
            in2out: WithState::new(In2out { shared: s() }, &keeping),
            out2in: WithState::new(Out2in { shared: s() }, &keeping),
        });
        Ok(Rc::new(Dslite {
            fib: control.get::<Fib>()?,
            syslog,
            shared,
            keeping,
            config: RefCell::default(),
            is_ce: Cell::new(false),
            told,
            interfaces,
            graph,
        }))
    }

    /// The router is a B4.
    pub(crate) fn become_ce(&self) {
        self.is_ce.set(true);
    }

    /// Whether the router is a B4.
    pub fn is_ce(&self) -> bool {
        self.is_ce.get()
    }

    fn publish(&self) {
        let config = self.config.borrow().clone().published(self.keeping.feature().workers());
        let leads = !self.is_ce() && config.aftr.is_some();
        self.shared.config.replace(config);
        if let Err(e) = self.interfaces.set_routes_to(AFTR_NODE, leads) {
            tracing::warn!("dslite: packets in tunnels take no superpath: {e}");
        }
    }

    fn open(&self) -> Result<(), DsliteError> {
        let now = self.graph.clock().now();
        for thread in self.keeping.feature().workers() {
            let opened = self.graph.on_state(&self.keeping, thread, move |_, sessions| sessions.open(now))?;
            opened.map_err(|e| DsliteError::Memory(e.to_string()))?;
        }
        self.keeping.feature().set(true);
        Ok(())
    }

    /// Shares addresses among hosts behind tunnels.
    ///
    /// # Errors
    /// One is shared already, the range is none, or there is no memory.
    pub fn add_addresses(&self, (first, last): (Ipv4Addr, Ipv4Addr)) -> Result<(), DsliteError> {
        let range = range(first, last)?;
        if let Some(taken) = range.clone().find(|address| self.config.borrow().pool.contains(address)) {
            return Err(DsliteError::Exists(taken));
        }
        self.open()?;
        let mut done = Vec::new();
        for address in range {
            let path = to_node("dslite-out2in");
            if let Err(e) = self.fib.add(FibIndex::DEFAULT, host(address.into()), Source::Feature, &[path]) {
                for address in done {
                    self.forget_route(host(IpAddr::V4(address)));
                }
                return Err(e.into());
            }
            done.push(address);
        }
        self.config.borrow_mut().pool.extend(done);
        self.publish();
        Ok(())
    }

    /// Shares addresses no more; sessions by them end.
    ///
    /// # Errors
    /// One is not shared, or the range is none.
    pub fn del_addresses(&self, (first, last): (Ipv4Addr, Ipv4Addr)) -> Result<(), DsliteError> {
        let range = range(first, last)?;
        if let Some(other) = range.clone().find(|address| !self.config.borrow().pool.contains(address)) {
            return Err(DsliteError::None(other));
        }
        for address in range {
            self.forget_route(host(address.into()));
            self.config.borrow_mut().pool.remove(&address);
        }
        self.publish();
        let (pool, shared) = (self.config.borrow().pool.clone(), Arc::clone(&self.shared));
        let ended = self.graph.on_every_state(&self.keeping, move |_, sessions| {
            let gone = sessions.take_out(|record| !pool.contains(&record.outside.address));
            for record in gone {
                shared.tell(false, record);
            }
            (sessions.len(), sessions.b4s())
        })?;
        for (thread, (sessions, b4s)) in ended {
            self.shared.set_counts(thread, sessions, b4s);
        }
        Ok(())
    }

    fn forget_route(&self, prefix: IpPrefix) {
        if let Err(e) = self.fib.remove(FibIndex::DEFAULT, prefix, Source::Feature) {
            tracing::warn!("dslite: the route of {prefix} stays: {e}");
        }
    }

    /// Shared addresses.
    pub fn addresses(&self) -> Vec<Ipv4Addr> {
        self.config.borrow().pool.iter().copied().collect()
    }

    /// The AFTR's end of tunnels.
    pub fn aftr(&self) -> Option<TunnelAddresses> {
        self.config.borrow().aftr
    }

    /// The B4's end.
    pub fn b4(&self) -> Option<TunnelAddresses> {
        self.config.borrow().b4
    }

    /// Sets the AFTR's end: an AFTR takes packets there, a B4 sends them there. The unspecified address: none.
    ///
    /// # Errors
    /// It is no address of a host, or the forwarding table refuses.
    pub fn set_aftr(&self, ends: TunnelAddresses) -> Result<(), DsliteError> {
        let new = given(ends)?;
        let old = self.config.borrow().aftr;
        let everything = everything()?;
        let route = |ends: TunnelAddresses| {
            if self.is_ce() { (everything, "dslite-ce-encap") } else { (host(ends.ip6.into()), AFTR_NODE) }
        };
        self.replace_route(old.map(route), new.map(route))?;
        self.config.borrow_mut().aftr = new;
        self.publish();
        Ok(())
    }

    /// Sets the B4's end. The unspecified address: none.
    ///
    /// # Errors
    /// The router is no B4, it is no address of a host, or the forwarding table refuses.
    pub fn set_b4(&self, ends: TunnelAddresses) -> Result<(), DsliteError> {
        if !self.is_ce() {
            return Err(DsliteError::NoB4);
        }
        let new = given(ends)?;
        let old = self.config.borrow().b4;
        let route = |ends: TunnelAddresses| (host(ends.ip6.into()), "dslite-ce-decap");
        self.replace_route(old.map(route), new.map(route))?;
        self.config.borrow_mut().b4 = new;
        self.publish();
        Ok(())
    }

    fn replace_route(
        &self,
        old: Option<(IpPrefix, &'static str)>,
        new: Option<(IpPrefix, &'static str)>,
    ) -> Result<(), DsliteError> {
        if old == new {
            return Ok(());
        }
        if let Some((prefix, node)) = new {
            self.fib.add(FibIndex::DEFAULT, prefix, Source::Feature, &[to_node(node)])?;
        }
        if let Some((prefix, _)) = old {
            self.forget_route(prefix);
        }
        Ok(())
    }

    /// All sessions, by B4.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn sessions(&self) -> Result<Vec<Record>, DsliteError> {
        let all = self.graph.on_every_state(&self.keeping, |_, sessions| sessions.records())?;
        let mut records: Vec<Record> = all.into_values().flatten().collect();
        records.sort_by_key(|record| (record.inside.b4, record.inside.address, record.inside.port));
        Ok(records)
    }

    /// Logs sessions as they begin and end.
    pub(crate) async fn log(self: Rc<Self>) {
        let pace = shoal_module::cli::Pace::default();
        while let Ok((begins, record)) = self.told.recv().await {
            self.syslog.send(message(begins, &record));
            pace.give_way().await;
        }
    }
}

/// As VPP says it.
fn message(begins: bool, record: &Record) -> Message {
    let id = if begins { "APMADD" } else { "APMDEL" };
    Message::new(Facility::Local0, Severity::Informational, "NAT", id)
        .element("napmap")
        .param("SSUBIX", 0)
        .param("SV6ENC", record.inside.b4)
        .param("IATYP", "IPv4")
        .param("ISADDR", record.inside.address)
        .param("ISPORT", record.inside.port)
        .param("XATYP", "IPv4")
        .param("XSADDR", record.outside.address)
        .param("XSPORT", record.outside.port)
        .param("PROTO", record.inside.protocol)
}

fn range(first: Ipv4Addr, last: Ipv4Addr) -> Result<impl Iterator<Item = Ipv4Addr> + Clone, DsliteError> {
    let (from, to) = (first.to_bits(), last.to_bits());
    let bad = from > to || to - from >= MOST_ADDRESSES || first.is_unspecified();
    if bad { Err(DsliteError::Range(first, last)) } else { Ok((from..=to).map(Ipv4Addr::from_bits)) }
}

fn given(ends: TunnelAddresses) -> Result<Option<TunnelAddresses>, DsliteError> {
    let TunnelAddresses { ip6, .. } = ends;
    if ip6.is_multicast() || ip6.is_loopback() || ip6.is_unicast_link_local() {
        return Err(DsliteError::Address(IpAddr::V6(ip6)));
    }
    Ok((ip6 != Ipv6Addr::UNSPECIFIED).then_some(ends))
}
