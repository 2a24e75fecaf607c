//! The control plane of adjacencies: the only code that writes the table packets read.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;

use shoal_buffer::SwIfIndex;
use shoal_graph::{Edge, FeatureArc, Graph, GraphError, NodeIndex};
use shoal_infra::qsbr::Grace;
use shoal_infra::{TwinTable, TwinTableWriter};
use shoal_interface::{Event, IfFlags, InterfaceError, Interfaces, LinkHeader};
use shoal_module::{Control, InitError};
use shoal_wire::MacAddress;

use crate::buckets::Buckets;
use crate::{Adj, AdjIndex, AdjKind, AdjTable, Family, Link};

mod closed;
mod counting;
mod dvr;
mod key;
mod own;
mod routes;

use counting::Counts;
pub use counting::{Counted, Counting};
pub use dvr::DvrWatch;
use key::Key;
use own::Own;
pub use own::{Member, Usage};

/// Most adjacencies; address space only.
const CAPACITY: usize = 1 << 20;

/// Why an adjacency operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdjError {
    /// The table is full or cannot be written now.
    #[error("adjacency table: {0}")]
    Table(String),
    /// No module of this router forwards such packets.
    #[error("no node {what} packets of {link:?}")]
    NoNode {
        /// Which packets.
        link: Link,
        /// What is missing.
        what: &'static str,
    },
    /// An adjacency that is not there.
    #[error("no adjacency {index}; the nearest is {nearest}")]
    NoAdjacency {
        /// The one asked for.
        index: AdjIndex,
        /// The one that is there and nearest to it.
        nearest: AdjIndex,
    },
    /// One that puts no header of its own in front.
    #[error("adjacency {0} has no header of its own to count packets by")]
    NoHeader(AdjIndex),
    /// One of all that count cannot stop alone.
    #[error("all adjacencies are counted, so adjacency {0} is: disable the counters of all first")]
    AllCount(AdjIndex),
    /// The stats segment is full.
    #[error("no room for the counter of adjacencies: {0}")]
    NoCounter(String),
    /// The stats segment is full.
    #[error("no room for the counter of routes: {0}")]
    NoRouteCounter(String),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The graph refused.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// Makes an adjacency's record from what its kind of neighbour knows now: asked again whenever something changed. Next
/// hop and link need not be put in.
pub type Describe = Rc<dyn Fn(SwIfIndex, Link, IpAddr) -> Adj>;

struct Entry {
    key: Key,
    locks: usize,
}

/// The nodes whose edges adjacencies of a link hold.
#[derive(Clone, Copy, Default)]
struct Nodes {
    rewrite: Option<NodeIndex>,
    lookup: Option<NodeIndex>,
    multicast: Option<NodeIndex>,
    dvr: Option<NodeIndex>,
}

/// All adjacencies, found by what they stand for and counted by who uses them.
pub struct Adjacencies {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    table: AdjTable,
    writer: RefCell<TwinTableWriter<Adj>>,
    by_key: RefCell<HashMap<Key, AdjIndex>>,
    entries: RefCell<BTreeMap<AdjIndex, Entry>>,
    /// Those that send by an interface, or ask there.
    by_interface: RefCell<BTreeSet<(SwIfIndex, AdjIndex)>>,
    /// Indices whose last user has gone; used again after a grace period at the earliest.
    free: RefCell<VecDeque<(AdjIndex, Grace)>>,
    /// The first index never used.
    next: Cell<u32>,
    /// Those with a path MTU of their own, beside the neighbours', and those for probes, by interface and neighbour: there may be one for each
    /// of a thousand neighbours that fail together.
    capped: RefCell<BTreeMap<(SwIfIndex, IpAddr, AdjIndex), Key>>,
    /// Neighbours to which no packets go but those that find out whether they can.
    closed: RefCell<BTreeSet<(SwIfIndex, IpAddr)>>,
    /// By the next hop's family.
    describe: RefCell<BTreeMap<Family, Describe>>,
    nodes: Cell<[Nodes; Link::COUNT]>,
    /// By link: the arc of features behind the rewrite.
    arcs: RefCell<[Option<FeatureArc>; Link::COUNT]>,
    dvr_watches: RefCell<[Option<DvrWatch>; Link::COUNT]>,
    /// Adjacencies of path lists.
    own: RefCell<BTreeMap<AdjIndex, Own>>,
    /// Those whose record is a copy of another's, by that one.
    copies: RefCell<HashMap<AdjIndex, BTreeSet<AdjIndex>>>,
    buckets: RefCell<Buckets>,
    stores: Cell<u64>,
    counts: RefCell<Counts>,
}

impl Adjacencies {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (table, writer) = TwinTable::with_capacity(CAPACITY)?;
        let buckets = Buckets::new()?;
        let interfaces = control.get::<Interfaces>()?;
        interfaces.subscribe(|control, event| {
            if let (Ok(adjacencies), Event::Mac(i) | Event::Mtu(i) | Event::Admin(i, _) | Event::Link(i, _)) =
                (control.get::<Adjacencies>(), event)
            {
                adjacencies.refresh(i);
            }
        });
        Ok(Rc::new(Adjacencies {
            graph: control.graph()?,
            interfaces,
            table: AdjTable {
                records: table,
                buckets: buckets.arena.clone(),
                counter: Arc::default(),
                routes: Arc::default(),
            },
            writer: RefCell::new(writer),
            by_key: RefCell::default(),
            entries: RefCell::default(),
            by_interface: RefCell::default(),
            free: RefCell::default(),
            next: Cell::new(1),
            capped: RefCell::default(),
            closed: RefCell::default(),
            describe: RefCell::default(),
            nodes: Cell::default(),
            arcs: RefCell::default(),
            dvr_watches: RefCell::default(),
            own: RefCell::default(),
            copies: RefCell::default(),
            buckets: RefCell::new(buckets),
            stores: Cell::new(0),
            counts: RefCell::default(),
        }))
    }

    /// The table packets read.
    pub fn table(&self) -> AdjTable {
        self.table.clone()
    }

    /// A neighbour protocol says how it describes the adjacencies of next hops of its family.
    pub fn set_describe(&self, family: Family, describe: Describe) {
        self.describe.borrow_mut().insert(family, describe);
    }

    /// The node that puts rewrites in front of a link's packets; adjacencies hold its edges.
    pub fn set_rewrite_node(&self, link: Link, node: NodeIndex) {
        self.change_nodes(link, |nodes| nodes.rewrite = Some(node));
    }

    /// The node that looks up where a link's packets go; incomplete adjacencies hold its edges.
    pub fn set_lookup_node(&self, link: Link, node: NodeIndex) {
        self.change_nodes(link, |nodes| nodes.lookup = Some(node));
    }

    /// The node that puts rewrites in front of a link's packets to groups.
    pub fn set_multicast_node(&self, link: Link, node: NodeIndex) {
        self.change_nodes(link, |nodes| nodes.multicast = Some(node));
    }

    /// The arc that a link's rewrite node starts by the sending interface. Adjacencies on an interface with features on
    /// it say so ([`Adj::has_features`]), which is what the rewrite node goes by: the others pay nothing.
    ///
    /// # Errors
    /// The arc is unknown.
    pub fn set_output_arc(self: &Rc<Self>, link: Link, arc: &str) -> Result<(), AdjError> {
        let handle = self.graph.arc(arc)?;
        if let Some(slot) = self.arcs.borrow_mut().get_mut(link as usize) {
            *slot = Some(handle);
        }
        let this = Rc::downgrade(self);
        self.graph.watch_arc(arc, move |interface| {
            if let Some(this) = this.upgrade() {
                this.refresh(interface);
            }
        })?;
        Ok(())
    }

    fn has_features(&self, link: Link, interface: SwIfIndex) -> bool {
        let arcs = self.arcs.borrow();
        arcs.get(link as usize).and_then(Option::as_ref).is_some_and(|arc| arc.any(interface))
    }

    fn change_nodes(&self, link: Link, change: impl FnOnce(&mut Nodes)) {
        let mut nodes = self.nodes.get();
        nodes.get_mut(link as usize).map(change);
        self.nodes.set(nodes);
    }

    fn nodes(&self, link: Link) -> Nodes {
        self.nodes.get().get(link as usize).copied().unwrap_or_default()
    }

    /// The edge of a link's rewrite node to an interface's output node.
    ///
    /// # Errors
    /// There is no such interface or it sends nothing, or no node rewrites such packets.
    pub fn edge_to(&self, link: Link, interface: SwIfIndex) -> Result<Edge, AdjError> {
        let rewrite = self.nodes(link).rewrite.ok_or(AdjError::NoNode { link, what: "rewrites" })?;
        Ok(self.graph.add_edge(rewrite, self.interfaces.output_node_of(interface)?)?)
    }

    /// The edge of a link's lookup node to the node that asks for a neighbour, for [`Adj::with_edge`].
    ///
    /// # Errors
    /// No node looks such packets up.
    pub fn edge_to_asker(&self, link: Link, asker: NodeIndex) -> Result<Edge, AdjError> {
        let lookup = self.nodes(link).lookup.ok_or(AdjError::NoNode { link, what: "looks up" })?;
        Ok(self.graph.add_edge(lookup, asker)?)
    }

    /// An adjacency that needs no interface, locked once more.
    ///
    /// # Errors
    /// The table is full.
    pub fn special(&self, kind: AdjKind) -> Result<AdjIndex, AdjError> {
        self.lock(Key::Special(kind))
    }

    /// An adjacency that looks up again in another table of the link's family, locked once more.
    ///
    /// # Errors
    /// The table is full.
    pub fn lookup_in(&self, link: Link, table: u32) -> Result<AdjIndex, AdjError> {
        self.lock(Key::Lookup(link, table))
    }

    /// The adjacency of one neighbour, for one kind of packets, locked once more. On a link where the other end needs
    /// no address the next hop is unspecified.
    ///
    /// # Errors
    /// The table is full, or there is no such interface.
    pub fn neighbour(
        &self,
        interface: SwIfIndex,
        link: Link,
        next_hop: IpAddr,
    ) -> Result<AdjIndex, AdjError> {
        self.interfaces.data(interface)?;
        self.lock(Key::Neighbour(interface, link, next_hop))
    }

    /// The adjacency of one neighbour for packets on their way to a host that longer ones do not reach (a path MTU),
    /// locked once more. It is as the neighbour's own but for the length.
    ///
    /// # Errors
    /// The table is full, or there is no such interface.
    pub fn capped(
        &self,
        interface: SwIfIndex,
        link: Link,
        next_hop: IpAddr,
        mtu: u16,
    ) -> Result<AdjIndex, AdjError> {
        self.interfaces.data(interface)?;
        self.lock(Key::Capped(interface, link, next_hop, mtu))
    }

    /// The adjacency of a connected network, locked once more; `source` is the router's address in it.
    ///
    /// # Errors
    /// The table is full, or there is no such interface.
    pub fn glean(&self, interface: SwIfIndex, source: IpAddr) -> Result<AdjIndex, AdjError> {
        self.interfaces.data(interface)?;
        self.lock(Key::Glean(interface, source))
    }

    /// The adjacency of a connected IPv4 network's broadcast address, locked once more.
    ///
    /// # Errors
    /// The table is full, or there is no such interface.
    pub fn broadcast(&self, interface: SwIfIndex) -> Result<AdjIndex, AdjError> {
        self.to_everybody(interface)?;
        self.lock(Key::Broadcast(interface))
    }

    /// The adjacency of all stations of a link that listen to a packet's group, locked once more.
    ///
    /// # Errors
    /// The table is full, there is no such interface or it sends nothing, or no node rewrites packets to groups.
    pub fn multicast(&self, interface: SwIfIndex, link: Link) -> Result<AdjIndex, AdjError> {
        self.to_group(interface, link)?;
        self.lock(Key::Multicast(interface, link))
    }

    /// The adjacency of packets that are received again, as if by an interface, locked once more.
    ///
    /// # Errors
    /// The table is full, or there is no such interface.
    pub fn received_by(&self, interface: SwIfIndex, link: Link) -> Result<AdjIndex, AdjError> {
        self.interfaces.data(interface)?;
        self.lock(Key::InterfaceRx(interface, link))
    }

    /// A rewrite to the part of a group's Ethernet address that all groups of a family share.
    fn to_group(&self, interface: SwIfIndex, link: Link) -> Result<Adj, AdjError> {
        let data = self.interfaces.data(interface)?;
        let node = self.nodes(link).multicast.ok_or(AdjError::NoNode { link, what: "rewrites multicast" })?;
        let edge = self.graph.add_edge(node, self.interfaces.output_node_of(interface)?)?;
        let group = match link {
            Link::Ip4 => MacAddress::for_ip4_multicast(Ipv4Addr::UNSPECIFIED),
            Link::Ip6 => MacAddress::for_ip6_multicast(Ipv6Addr::UNSPECIFIED),
        };
        let header = LinkHeader::new(&data, group, link.ether_type());
        let rewrite = if data.flags().has(IfFlags::ETHERNET) { &*header } else { &[] };
        let adj = Adj::on(AdjKind::Multicast, interface, link.mtu(&data)).with_link(link);
        Ok(adj.with_rewrite(rewrite, edge))
    }

    /// A rewrite to the Ethernet broadcast address.
    fn to_everybody(&self, interface: SwIfIndex) -> Result<Adj, AdjError> {
        let data = self.interfaces.data(interface)?;
        let header = LinkHeader::new(&data, MacAddress::BROADCAST, Link::Ip4.ether_type());
        let adj = Adj::on(AdjKind::Rewrite, interface, data.ip4_mtu());
        Ok(adj.with_rewrite(&header, self.edge_to(Link::Ip4, interface)?))
    }

    /// What a key's record is now.
    fn make(&self, key: Key) -> Adj {
        let adj = self.describe(key);
        if self.is_closed(key) {
            return adj.closed();
        }
        let sends = adj.is_rewrite() || adj.kind() == AdjKind::Multicast;
        adj.with_features(sends && self.has_features(adj.link(), adj.tx()))
    }

    fn describe(&self, key: Key) -> Adj {
        match key {
            Key::Special(kind) => Adj::special(kind),
            Key::Lookup(link, table) => Adj::lookup(table).with_link(link),
            Key::SourceLookup(link, table) => Adj::source_lookup(table).with_link(link),
            Key::Neighbour(interface, link, next_hop) => {
                let describe = self.describe.borrow().get(&Family::of(next_hop)).cloned();
                let adj = match describe {
                    Some(describe) => describe(interface, link, next_hop),
                    None => Adj::on(AdjKind::Incomplete, interface, 0),
                };
                adj.with_link(link).with_address(next_hop)
            }
            Key::Capped(interface, link, next_hop, mtu) => {
                let mut adj = self.describe(Key::Neighbour(interface, link, next_hop));
                adj.mtu = adj.mtu.min(mtu);
                adj
            }
            Key::Glean(interface, source) => {
                let link = Link::from(Family::of(source));
                let mtu = self.interfaces.data(interface).map_or(0, |data| link.mtu(&data));
                Adj::on(AdjKind::Glean, interface, mtu).with_link(link).with_address(source)
            }
            Key::Own(index) => self.get(index),
            Key::InterfaceRx(interface, link) => {
                Adj::on(AdjKind::InterfaceRx, interface, u16::MAX).with_link(link)
            }
            Key::Dvr(interface, link) => {
                let edge = self.edge_to_dvr(link).unwrap_or(Edge::DROP);
                Adj::on(AdjKind::Dvr, interface, u16::MAX).with_link(link).with_edge(edge)
            }
            Key::Node(node, link) => {
                let edge = self.edge_to_node(node, link).unwrap_or(Edge::DROP);
                Adj::on(AdjKind::Node, SwIfIndex(0), u16::MAX).with_link(link).with_edge(edge)
            }
            Key::Multicast(interface, link) => {
                self.to_group(interface, link).unwrap_or(Adj::special(AdjKind::Drop))
            }
            Key::Broadcast(interface) => self.to_everybody(interface).unwrap_or(Adj::special(AdjKind::Drop)),
        }
    }

    fn lock(&self, key: Key) -> Result<AdjIndex, AdjError> {
        let known = self.by_key.borrow().get(&key).copied();
        if let Some(index) = known {
            if let Some(entry) = self.entries.borrow_mut().get_mut(&index) {
                entry.locks += 1;
            }
            return Ok(index);
        }
        let adj = self.make(key);
        let index = self.fresh_index()?;
        self.begin(index);
        if let Err(e) = self.store(index, adj) {
            self.give_index_back(index);
            return Err(e);
        }
        self.by_key.borrow_mut().insert(key, index);
        if let Key::Capped(interface, _, next_hop, _) = key {
            self.capped.borrow_mut().insert((interface, next_hop, index), key);
        }
        self.enter(index, key);
        self.tell_of_dvr(key, true);
        Ok(index)
    }

    /// An index for a new adjacency.
    fn fresh_index(&self) -> Result<AdjIndex, AdjError> {
        if let Some(index) = self.recycled() {
            return Ok(index);
        }
        let next = self.next.get();
        if next as usize >= CAPACITY {
            return Err(AdjError::Table(format!("full, {CAPACITY} adjacencies")));
        }
        self.next.set(next + 1);
        Ok(AdjIndex(next))
    }

    /// Packets of this round may still hold the index, and go their way by the old record. It is reused only after the
    /// readers of now have passed.
    fn give_index_back(&self, index: AdjIndex) {
        self.free.borrow_mut().push_back((index, Grace::start()));
    }

    fn enter(&self, index: AdjIndex, key: Key) {
        self.entries.borrow_mut().insert(index, Entry { key, locks: 1 });
        self.by_interface.borrow_mut().extend(key.interface().map(|interface| (interface, index)));
    }

    fn is_entered(&self, index: AdjIndex) -> bool {
        self.entries.borrow().contains_key(&index)
    }

    /// An index without users or packets.
    fn recycled(&self) -> Option<AdjIndex> {
        let mut free = self.free.borrow_mut();
        let (index, grace) = free.front().copied()?;
        if !grace.is_over() {
            return None;
        }
        free.pop_front();
        Some(index)
    }

    /// Writes an adjacency's record, and the copies of it.
    fn store(&self, index: AdjIndex, adj: Adj) -> Result<(), AdjError> {
        let adj = self.counted(index, adj.of(index));
        let copies = self.copies.borrow();
        let Some(copies) = copies.get(&index) else { return self.store_record(index, adj) };
        let all = std::iter::once(&index).chain(copies).map(|i| (i.0 as usize, adj));
        let stored = self.writer.borrow_mut().store_many(all);
        self.stores.update(|n| n + 1 + copies.len() as u64);
        stored.map_err(|e| AdjError::Table(e.to_string()))
    }

    fn store_record(&self, index: AdjIndex, adj: Adj) -> Result<(), AdjError> {
        let stored = self.writer.borrow_mut().store(index.0 as usize, adj);
        self.stores.update(|n| n + 1);
        stored.map_err(|e| AdjError::Table(e.to_string()))
    }

    /// One user less; the last one takes the adjacency with it.
    pub fn unlock(&self, index: AdjIndex) {
        let gone = {
            let mut entries = self.entries.borrow_mut();
            let Some(entry) = entries.get_mut(&index) else { return };
            entry.locks = entry.locks.saturating_sub(1);
            if entry.locks > 0 {
                return;
            }
            entries.remove(&index)
        };
        match gone {
            Some(Entry { key: Key::Own(own), .. }) => self.end_own(own),
            Some(Entry { key, .. }) => {
                self.by_key.borrow_mut().remove(&key);
                if let Some(interface) = key.interface() {
                    self.by_interface.borrow_mut().remove(&(interface, index));
                }
                if let Key::Capped(interface, _, next_hop, _) = key {
                    self.capped.borrow_mut().remove(&(interface, next_hop, index));
                }
                self.tell_of_dvr(key, false);
            }
            None => return,
        }
        self.give_index_back(index);
    }

    /// A neighbour's or an interface's facts changed: rewrites all adjacencies on the interface.
    pub fn refresh(&self, interface: SwIfIndex) {
        let mine: Vec<(AdjIndex, Key)> = {
            let (entries, by_interface) = (self.entries.borrow(), self.by_interface.borrow());
            let of = by_interface.range((interface, AdjIndex(0))..=(interface, AdjIndex(u32::MAX)));
            of.filter_map(|(_, index)| Some((*index, entries.get(index)?.key))).collect()
        };
        for (index, key) in mine {
            self.renew(index, key);
        }
    }

    /// One neighbour's facts changed: rewrites its existing adjacencies.
    pub fn refresh_neighbour(&self, interface: SwIfIndex, next_hop: IpAddr) {
        let of = |index| (interface, next_hop, AdjIndex(index));
        let capped: Vec<(AdjIndex, Key)> = {
            let all = self.capped.borrow();
            all.range(of(0)..=of(u32::MAX)).map(|((.., index), key)| (*index, *key)).collect()
        };
        for (index, key) in capped {
            self.renew(index, key);
        }
        for link in [Link::Ip4, Link::Ip6] {
            let key = Key::Neighbour(interface, link, next_hop);
            let index = self.by_key.borrow().get(&key).copied();
            if let Some(index) = index {
                self.renew(index, key);
            }
        }
    }

    fn renew(&self, index: AdjIndex, key: Key) {
        if let Err(e) = self.store(index, self.make(key)) {
            tracing::warn!(%index, "adjacency keeps its old state: {e}");
        }
    }

    /// Whether there is an adjacency of a neighbour, for whatever packets.
    pub fn has_neighbour(&self, interface: SwIfIndex, next_hop: IpAddr) -> bool {
        let all = self.by_key.borrow();
        [Link::Ip4, Link::Ip6]
            .into_iter()
            .any(|link| all.contains_key(&Key::Neighbour(interface, link, next_hop)))
    }

    /// All adjacencies: index, line, users.
    pub fn list(&self) -> Vec<(AdjIndex, Adj, usize)> {
        let mut from = AdjIndex(0);
        let next =
            || self.at_or_after(from).inspect(|(index, ..)| from = AdjIndex(index.0.saturating_add(1)));
        std::iter::from_fn(next).collect()
    }

    /// The adjacency of this index or the next one, its line and its locks.
    pub fn at_or_after(&self, index: AdjIndex) -> Option<(AdjIndex, Adj, usize)> {
        let entries = self.entries.borrow();
        entries.range(index..).next().map(|(index, entry)| (*index, self.get(*index), entry.locks))
    }

    /// Where an adjacency leads now: its record, or, of a balance, that of its first bucket.
    pub fn first(&self, index: AdjIndex) -> Adj {
        match self.members(index).and_then(|(_, buckets)| buckets.first().copied()) {
            Some(bucket) => self.get(bucket),
            None => self.get(index),
        }
    }

    /// One adjacency's line as it is now.
    pub fn get(&self, index: AdjIndex) -> Adj {
        let writer = self.writer.borrow();
        writer.get(index.0 as usize).copied().unwrap_or_else(|| Adj::special(AdjKind::None))
    }
}
