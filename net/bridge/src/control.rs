//! The control plane of bridge domains: the only code that writes their tables, but for stations that packets teach.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use shoal_ethernet::EthernetInput;
use shoal_flow::Seed;
use shoal_graph::counter::Simple;
use shoal_graph::process::{Receiver, Sender, channel};
use shoal_graph::{Edge, Graph};
use shoal_interface::{Event, Interfaces, MAX_INTERFACES, SwIfIndex};
use shoal_l2::{Bitmap, Input, L2, Mode, Place, Port, Role};
use shoal_module::{Control, InitError};
use shoal_wire::MacAddress;

use crate::error::BridgeError;
use crate::fib::MacTable;
use crate::loops::LoopWatch;
use crate::node::arp_term::{ArpEvent, ArpTerm};
use crate::node::blocked::Blocked;
use crate::node::flood::Flood;
use crate::node::forward::Forward;
use crate::node::learn::Learn;
use crate::node::storm::StormControl;
use crate::node::to_bvi::ToBvi;
use crate::node::unknown::UnknownForward;
use crate::settings::Sizes;
use crate::storm::{StormLimits, StormTable};
use crate::table::{Count, DomainTable, MOST_DOMAINS};

mod domain;
mod loops;
mod macs;
mod members;
mod scan;
mod storm;

pub use domain::{Settings, Switch};
pub use loops::{LastLoop, LoopProtection, LoopState};
pub(crate) use loops::{LoopEars, watch as watch_loops};
pub use macs::{MacInfo, Provision};
pub use members::MemberInfo;
pub(crate) use scan::run as run_scan;
pub use scan::{MacNews, NewsKind, Scanned};

/// VPP's limit of learned stations, of all domains and of each.
pub const LEARN_LIMIT: u32 = 1 << 24;
/// Questions on their way to clients.
const CHANNEL: usize = 1024;

/// One domain.
#[derive(Clone, Debug)]
pub(crate) struct Domain {
    pub index: u16,
    pub settings: Settings,
    /// `None`: the default, whatever that is.
    pub learn_limit: Option<u32>,
    /// Counts flushes.
    pub sequence: u8,
    /// Members in the order they came.
    pub members: Vec<(SwIfIndex, Port)>,
    pub bvi: Option<SwIfIndex>,
    pub unknown: Option<SwIfIndex>,
    pub stations: BTreeMap<IpAddr, MacAddress>,
    pub protection: Option<LoopProtection>,
    pub loops: LoopState,
}

/// All bridge domains.
pub struct Bridges {
    pub(crate) interfaces: Rc<Interfaces>,
    pub(crate) l2: Rc<L2>,
    pub(crate) graph: Rc<Graph>,
    pub(crate) table: DomainTable,
    /// By their numbers.
    pub(crate) domains: RefCell<BTreeMap<u32, Domain>>,
    /// Indices that were given back.
    free: RefCell<BTreeSet<u16>>,
    next: Cell<u16>,
    /// By interface: counts what makes what was learned of it out of date.
    pub(crate) sequences: RefCell<BTreeMap<SwIfIndex, u8>>,
    /// How many stations may be learned of all domains, by the start-up file.
    pub(crate) all_limit: u32,
    default_limit: Cell<u32>,
    /// The addresses under which a BVI is known in its domain.
    pub(crate) bvi_macs: RefCell<BTreeMap<SwIfIndex, Vec<MacAddress>>>,
    bell: Sender<()>,
    rung: RefCell<Option<Receiver<()>>>,
    heard: RefCell<Option<Receiver<ArpEvent>>>,
    pub(crate) scan: scan::State,
    /// The client that hears of stations: its number of its own, and most stations of one event.
    pub(crate) news_client: Cell<Option<(u32, usize)>>,
    /// What packets keep of limited ports, and the limits.
    storm: StormTable,
    storm_limits: RefCell<BTreeMap<SwIfIndex, StormLimits>>,
    storm_drops: [Simple; 3],
    loop_bell: Sender<()>,
    loop_ears: RefCell<Option<LoopEars>>,
}

impl Bridges {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, l2) = (control.graph()?, control.get::<L2>()?);
        let interfaces = control.get::<Interfaces>()?;
        let sizes = Sizes::of(control);
        let table = DomainTable::new(MacTable::new(sizes.buckets, Seed::random())?, sizes.limit)?;
        let (told, heard) = channel(CHANNEL);
        let (loop_tell, seen) = channel(CHANNEL);
        let (loop_bell, loop_rung) = channel(1);
        let storm = StormTable::new()?;
        let drops =
            |class: &str| graph.counters().simple(&format!("/l2/storm-control/{class}"), MAX_INTERFACES);
        let storm_drops = [drops("broadcast")?, drops("multicast")?, drops("unknown-unicast")?];
        add_nodes(control, &graph, &l2, &interfaces, &table, (told, LoopWatch::new(loop_tell)?))?;
        add_guards(&graph, &l2, &storm, &storm_drops)?;
        let (bell, rung) = channel(1);
        // The domain that drops.
        l2.set_domain(0, Bitmap::default()).map_err(|e| InitError::Other(e.to_string()))?;
        let bridges = Rc::new(Bridges {
            interfaces: Rc::clone(&interfaces),
            l2: Rc::clone(&l2),
            graph,
            table,
            domains: RefCell::default(),
            free: RefCell::default(),
            next: Cell::new(1),
            sequences: RefCell::default(),
            all_limit: sizes.limit,
            default_limit: Cell::new(LEARN_LIMIT),
            bvi_macs: RefCell::default(),
            bell,
            rung: RefCell::new(Some(rung)),
            heard: RefCell::new(Some(heard)),
            scan: scan::State::default(),
            news_client: Cell::new(None),
            storm,
            storm_limits: RefCell::default(),
            storm_drops,
            loop_bell,
            loop_ears: RefCell::new(Some(LoopEars { seen, bell: loop_rung })),
        });
        let weak = Rc::downgrade(&bridges);
        l2.on_leaving(move |interface, port| {
            if let Some(bridges) = weak.upgrade() {
                bridges.left(interface, port);
            }
        });
        let weak = Rc::downgrade(&bridges);
        interfaces.add_address_source(move |interface| {
            weak.upgrade().and_then(|bridges| bridges.said_of(interface)).into_iter().collect()
        });
        let weak = Rc::downgrade(&bridges);
        interfaces.subscribe(move |_, event| {
            let Some(bridges) = weak.upgrade() else { return };
            match event {
                Event::Admin(interface, false) => bridges.flush_interface(interface),
                Event::Mac(interface) | Event::ExtraMacs(interface) => bridges.follow_bvi(interface),
                Event::Deleted(interface) => {
                    bridges.sequences.borrow_mut().remove(&interface);
                }
                _ => {}
            }
        });
        Ok(bridges)
    }

    /// What packets read of domains.
    pub fn table(&self) -> &DomainTable {
        &self.table
    }

    /// How many stations are learned, and may be.
    pub fn learned(&self) -> Count {
        self.table.count_of_all()
    }

    /// What the task that scans waits for; once.
    pub(crate) fn rung(&self) -> Option<Receiver<()>> {
        self.rung.borrow_mut().take()
    }

    /// What the task that tells clients waits for; once.
    pub(crate) fn heard(&self) -> Option<Receiver<ArpEvent>> {
        self.heard.borrow_mut().take()
    }

    /// What the task that watches for loops waits for; once.
    pub(crate) fn loop_ears(&self) -> Option<LoopEars> {
        self.loop_ears.borrow_mut().take()
    }

    pub(crate) fn ring(&self) {
        // Full: it has been rung already.
        let _ = self.bell.try_send(());
    }

    /// The number of a domain with this index.
    pub fn number_of(&self, index: u16) -> Option<u32> {
        let domains = self.domains.borrow();
        domains.iter().find(|(_, domain)| domain.index == index).map(|(number, _)| *number)
    }

    /// What `show interface address` says of a member.
    fn said_of(&self, interface: SwIfIndex) -> Option<String> {
        let Mode::Bridge(Port { domain, group, role }) = self.l2.mode(interface) else { return None };
        let number = self.number_of(domain).unwrap_or(0);
        let bvi = if role == Role::Bvi { " bvi" } else { "" };
        Some(format!("L2 bridge bd-id {number} idx {domain} shg {group}{bvi}"))
    }

    /// The index of a domain.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn index_of(&self, number: u32) -> Result<u16, BridgeError> {
        if number == 0 {
            return Ok(0);
        }
        let domains = self.domains.borrow();
        domains.get(&number).map(|domain| domain.index).ok_or(BridgeError::NoDomain(number))
    }

    /// The numbers of all domains.
    pub fn numbers(&self) -> Vec<u32> {
        self.domains.borrow().keys().copied().collect()
    }

    fn new_index(&self) -> Option<u16> {
        if let Some(index) = self.free.borrow_mut().pop_first() {
            return Some(index);
        }
        let index = self.next.get();
        if usize::from(index) + 1 >= MOST_DOMAINS {
            return None;
        }
        self.next.set(index + 1);
        Some(index)
    }
}

/// The nodes that are part of chains.
pub struct BridgeNodes {
    /// `l2-learn`.
    pub learn: Arc<Learn>,
    /// `l2-fwd`.
    pub forward: Arc<Forward>,
}

/// Puts the nodes into the graph.
fn add_nodes(
    control: &Control,
    graph: &Rc<Graph>,
    l2: &Rc<L2>,
    interfaces: &Interfaces,
    table: &DomainTable,
    (heard, loops): (Sender<ArpEvent>, LoopWatch),
) -> Result<(), InitError> {
    let ethernet = Arc::clone(&*control.get::<Arc<EthernetInput>>()?);
    let to_bvi = graph.add_packet(ToBvi { ethernet })?;
    graph.share_edges(to_bvi, graph.node("ethernet-input")?)?;
    let to_bvi = l2.input_edge(to_bvi)?;
    let path = || l2.input_path();
    let nodes = BridgeNodes {
        learn: Arc::new(Learn { path: path(), table: table.clone(), loops }),
        forward: Arc::new(Forward {
            path: path(),
            table: table.clone(),
            interfaces: interfaces.table(),
            to_bvi,
        }),
    };
    let learn = graph.add_staged(Arc::clone(&nodes.learn))?;
    l2.register_input(Input::Learn, learn)?;
    let forward = graph.add_staged(Arc::clone(&nodes.forward))?;
    control.put(nodes);
    l2.register_input(Input::Forward, forward)?;
    let unknown = graph.add_packet(UnknownForward { path: path(), table: table.clone() })?;
    l2.register_input(Input::UnknownForward, unknown)?;
    l2.register_input(Input::ArpForward, unknown)?;
    // The one for packets that come round again leads to itself.
    let more = Arc::new(AtomicU16::new(0));
    let flood = Flood::<false> {
        path: path(),
        table: table.clone(),
        interfaces: interfaces.table(),
        to_bvi,
        more: Arc::clone(&more),
    };
    let again = graph.add_frame(flood.again())?;
    l2.join_input(again)?;
    let Edge(edge) = l2.input_edge(again)?;
    more.store(edge, Ordering::Relaxed);
    let flood = graph.add_frame(flood)?;
    l2.register_input(Input::UnknownFlood, flood)?;
    l2.register_input(Input::Flood, flood)?;
    let forward = l2.input_edge(forward)?;
    let arp_term = graph.add_packet(ArpTerm { path: path(), table: table.clone(), forward, heard })?;
    l2.register_input(Input::ArpTerm, arp_term)
}

/// Puts the nodes into the graph that stand in front of a port's features.
fn add_guards(graph: &Graph, l2: &L2, storm: &StormTable, drops: &[Simple; 3]) -> Result<(), InitError> {
    let (path, table, drops) = (l2.input_path(), storm.clone(), drops.clone());
    let groups = StormControl::<false> { path: path.clone(), table: table.clone(), drops: drops.clone() };
    l2.register_input(Place::STORM, graph.add_packet(groups)?)?;
    let unknown = graph.add_packet(StormControl::<true> { path, table, drops })?;
    l2.register_input(Place::STORM_UNKNOWN, unknown)?;
    l2.register_input(Place::BLOCKED, graph.add_packet(Blocked)?)
}
