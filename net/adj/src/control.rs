//! The control plane of adjacencies: the only code that writes the table packets read.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_buffer::SwIfIndex;
use shoal_graph::{Edge, Graph, GraphError, NodeIndex};
use shoal_infra::qsbr::Grace;
use shoal_infra::{TwinTable, TwinTableWriter};
use shoal_interface::{Event, InterfaceError, Interfaces};
use shoal_module::{Control, InitError};
use shoal_wire::{EtherType, EthernetHeader, IntoBytes, MacAddress};

use crate::{Adj, AdjIndex, AdjKind, AdjTable};

/// Most adjacencies; address space only.
const CAPACITY: usize = 1 << 20;

/// Why an adjacency operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdjError {
    /// The table is full or cannot be written now.
    #[error("adjacency table: {0}")]
    Table(String),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The graph refused.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// Makes an adjacency's line from what its kind of neighbour knows now: asked again whenever something changed.
pub type Describe = Rc<dyn Fn(SwIfIndex, Ipv4Addr) -> Adj>;

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Key {
    Special(u8, u32),
    Neighbour(SwIfIndex, Ipv4Addr),
    Glean(SwIfIndex, Ipv4Addr),
    Broadcast(SwIfIndex),
}

struct Entry {
    key: Key,
    locks: usize,
}

/// All adjacencies, found by what they stand for and counted by who uses them.
pub struct Adjacencies {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    table: AdjTable,
    writer: RefCell<TwinTableWriter<Adj>>,
    by_key: RefCell<HashMap<Key, AdjIndex>>,
    entries: RefCell<BTreeMap<AdjIndex, Entry>>,
    /// Indices whose last user has gone; used again after a grace period at the earliest.
    free: RefCell<VecDeque<(AdjIndex, Grace)>>,
    /// The first index never used.
    next: Cell<u32>,
    describe: RefCell<Option<Describe>>,
    rewrite_node: RefCell<Option<NodeIndex>>,
}

impl Adjacencies {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (table, writer) = TwinTable::with_capacity(CAPACITY)?;
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
            table: AdjTable(table),
            writer: RefCell::new(writer),
            by_key: RefCell::default(),
            entries: RefCell::default(),
            free: RefCell::default(),
            next: Cell::new(1),
            describe: RefCell::default(),
            rewrite_node: RefCell::default(),
        }))
    }

    /// The table packets read.
    pub fn table(&self) -> AdjTable {
        self.table.clone()
    }

    /// The neighbour protocol says how it describes a neighbour's adjacency.
    pub fn set_describe(&self, describe: Describe) {
        *self.describe.borrow_mut() = Some(describe);
    }

    /// The node that puts rewrites in front, whose edges adjacencies hold.
    pub fn set_rewrite_node(&self, node: NodeIndex) {
        *self.rewrite_node.borrow_mut() = Some(node);
    }

    /// The rewrite node's edge to an interface's output node.
    ///
    /// # Errors
    /// There is no such interface or it sends nothing.
    pub fn edge_to(&self, interface: SwIfIndex) -> Result<Edge, AdjError> {
        let rewrite = self.rewrite_node.borrow().ok_or_else(|| AdjError::Table("no rewrite node".into()))?;
        Ok(self.graph.add_edge(rewrite, self.interfaces.output_node_of(interface)?)?)
    }

    /// An adjacency that needs no interface, locked once more.
    ///
    /// # Errors
    /// The table is full.
    pub fn special(&self, kind: AdjKind) -> Result<AdjIndex, AdjError> {
        self.lock(Key::Special(kind as u8, 0), || Adj::special(kind))
    }

    /// An adjacency that looks up again in another table, locked once more.
    ///
    /// # Errors
    /// The table is full.
    pub fn lookup_in(&self, table: u32) -> Result<AdjIndex, AdjError> {
        self.lock(Key::Special(AdjKind::Lookup as u8, table), || Adj::lookup(table))
    }

    /// The adjacency of one neighbour, locked once more.
    ///
    /// # Errors
    /// The table is full, or there is no such interface.
    pub fn neighbour(&self, interface: SwIfIndex, next_hop: Ipv4Addr) -> Result<AdjIndex, AdjError> {
        self.interfaces.data(interface)?;
        self.lock(Key::Neighbour(interface, next_hop), || self.describe(interface, next_hop))
    }

    /// The adjacency of a connected network, locked once more; `source` is the router's address in it.
    ///
    /// # Errors
    /// The table is full, or there is no such interface.
    pub fn glean(&self, interface: SwIfIndex, source: Ipv4Addr) -> Result<AdjIndex, AdjError> {
        let mtu = self.interfaces.data(interface)?.ip4_mtu();
        self.lock(Key::Glean(interface, source), || {
            let mut adj = Adj::on(AdjKind::Glean, interface, mtu);
            adj.argument = source.to_bits();
            adj
        })
    }

    /// The adjacency of a connected network's broadcast address, locked once more.
    ///
    /// # Errors
    /// The table is full, or there is no such interface.
    pub fn broadcast(&self, interface: SwIfIndex) -> Result<AdjIndex, AdjError> {
        let adj = self.to_everybody(interface)?;
        self.lock(Key::Broadcast(interface), || adj)
    }

    /// A rewrite to the Ethernet broadcast address.
    fn to_everybody(&self, interface: SwIfIndex) -> Result<Adj, AdjError> {
        let data = self.interfaces.data(interface)?;
        let header = EthernetHeader::new(data.mac(), MacAddress::BROADCAST, EtherType::IP4);
        let adj = Adj::on(AdjKind::Rewrite, interface, data.ip4_mtu());
        Ok(adj.with_rewrite(header.as_bytes(), self.edge_to(interface)?))
    }

    fn describe(&self, interface: SwIfIndex, next_hop: Ipv4Addr) -> Adj {
        let describe = self.describe.borrow().clone();
        match describe {
            Some(describe) => describe(interface, next_hop),
            None => Adj::on(AdjKind::Incomplete, interface, 0),
        }
    }

    fn lock(&self, key: Key, make: impl FnOnce() -> Adj) -> Result<AdjIndex, AdjError> {
        let known = self.by_key.borrow().get(&key).copied();
        if let Some(index) = known {
            if let Some(entry) = self.entries.borrow_mut().get_mut(&index) {
                entry.locks += 1;
            }
            return Ok(index);
        }
        let adj = make();
        let recycled = self.recycled();
        let index = recycled.unwrap_or(AdjIndex(self.next.get()));
        if index.0 as usize >= CAPACITY {
            return Err(AdjError::Table(format!("full, {CAPACITY} adjacencies")));
        }
        self.store(index, adj)?;
        if recycled.is_none() {
            self.next.set(index.0 + 1);
        }
        self.by_key.borrow_mut().insert(key, index);
        self.entries.borrow_mut().insert(index, Entry { key, locks: 1 });
        Ok(index)
    }

    /// An index that nobody uses any more, and no packet either.
    fn recycled(&self) -> Option<AdjIndex> {
        let mut free = self.free.borrow_mut();
        let (index, grace) = free.front().copied()?;
        if !grace.is_over() {
            return None;
        }
        free.pop_front();
        Some(index)
    }

    fn store(&self, index: AdjIndex, adj: Adj) -> Result<(), AdjError> {
        let stored = self.writer.borrow_mut().store(index.0 as usize, adj);
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
        if let Some(entry) = gone {
            self.by_key.borrow_mut().remove(&entry.key);
            // Packets of this round may still hold the index, and go their way by the old line. It is used anew only
            // after the readers of now have passed.
            self.free.borrow_mut().push_back((index, Grace::start()));
        }
    }

    /// A neighbour's or an interface's facts changed: writes all adjacencies on the interface anew.
    pub fn refresh(&self, interface: SwIfIndex) {
        let mine: Vec<(AdjIndex, Key)> = {
            let entries = self.entries.borrow();
            entries
                .iter()
                .map(|(i, e)| (*i, e.key))
                .filter(|(_, k)| k.interface() == Some(interface))
                .collect()
        };
        for (index, key) in mine {
            self.renew(index, key);
        }
    }

    /// One neighbour's facts changed: writes its adjacency anew, if there is one.
    pub fn refresh_neighbour(&self, interface: SwIfIndex, next_hop: Ipv4Addr) {
        let key = Key::Neighbour(interface, next_hop);
        let index = self.by_key.borrow().get(&key).copied();
        if let Some(index) = index {
            self.renew(index, key);
        }
    }

    fn renew(&self, index: AdjIndex, key: Key) {
        let mtu = |i| self.interfaces.data(i).map_or(0, |d| d.ip4_mtu());
        let adj = match key {
            Key::Special(..) => return,
            Key::Neighbour(i, next_hop) => self.describe(i, next_hop),
            Key::Glean(i, source) => {
                let mut adj = Adj::on(AdjKind::Glean, i, mtu(i));
                adj.argument = source.to_bits();
                adj
            }
            Key::Broadcast(i) => self.to_everybody(i).unwrap_or(Adj::special(AdjKind::Drop)),
        };
        if let Err(e) = self.store(index, adj) {
            tracing::warn!(%index, "adjacency keeps its old state: {e}");
        }
    }

    /// All adjacencies: index, line, users.
    pub fn list(&self) -> Vec<(AdjIndex, Adj, usize)> {
        let writer = self.writer.borrow();
        let entries = self.entries.borrow();
        let line =
            |i: &AdjIndex| writer.get(i.0 as usize).copied().unwrap_or_else(|| Adj::special(AdjKind::None));
        entries.iter().map(|(i, e)| (*i, line(i), e.locks)).collect()
    }

    /// One adjacency's line as it is now.
    pub fn get(&self, index: AdjIndex) -> Adj {
        let writer = self.writer.borrow();
        writer.get(index.0 as usize).copied().unwrap_or_else(|| Adj::special(AdjKind::None))
    }
}

impl Key {
    fn interface(self) -> Option<SwIfIndex> {
        match self {
            Key::Special(..) => None,
            Key::Neighbour(i, _) | Key::Glean(i, _) | Key::Broadcast(i) => Some(i),
        }
    }
}
