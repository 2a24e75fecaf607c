//! The control plane: which sources of which interfaces are checked, and how.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::Adjacencies;
use shoal_fib::{Family, Fib, FibIndex, Source};
use shoal_graph::{FeatureSpec, Graph, PacketNode};
use shoal_interface::{Event, Interfaces, SwIfIndex};
use shoal_module::{Control, InitError};

use crate::UrpfError;
use crate::node::check::Check;
use crate::tables::Tables;

/// Whose source is checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Direction {
    /// That of packets which come in by an interface.
    Rx,
    /// That of packets which go out by it.
    Tx,
}

/// How much is asked of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Nothing.
    Off,
    /// That it is reached at all.
    Loose,
    /// That it is reached by the interface the packet came in by; or not by the one it goes out by.
    Strict,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Direction::Rx => "rx",
            Direction::Tx => "tx",
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Mode::Off => "off",
            Mode::Loose => "loose",
            Mode::Strict => "strict",
        })
    }
}

type Key = (SwIfIndex, Family, Direction);

/// What is asked of the sources of an interface's packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The interface.
    pub interface: SwIfIndex,
    /// The packets' family.
    pub family: Family,
    /// Which packets.
    pub direction: Direction,
    /// How much is asked.
    pub mode: Mode,
    /// The table sources are looked up in; `None`: the interface's own.
    pub table: Option<FibIndex>,
}

/// Which sources are checked.
pub struct Urpf {
    interfaces: Rc<Interfaces>,
    fib: Rc<Fib>,
    /// By family and direction.
    tables: [[Tables; 2]; 2],
    all: RefCell<BTreeMap<Key, Setting>>,
}

/// The arc and the feature of a setting, unless it is off.
fn feature(family: Family, direction: Direction, mode: Mode) -> Option<(&'static str, &'static str)> {
    use Direction::{Rx, Tx};
    use Family::{Ip4, Ip6};
    use Mode::{Loose, Off, Strict};
    let arc = match (family, direction) {
        (Ip4, Rx) => shoal_ip4::UNICAST_ARC,
        (Ip4, Tx) => shoal_ip4::OUTPUT_ARC,
        (Ip6, Rx) => shoal_ip6::UNICAST_ARC,
        (Ip6, Tx) => shoal_ip6::OUTPUT_ARC,
    };
    let node = match (family, direction, mode) {
        (_, _, Off) => return None,
        (Ip4, Rx, Loose) => Check::<false, false, false>::NAME,
        (Ip4, Rx, Strict) => Check::<false, false, true>::NAME,
        (Ip4, Tx, Loose) => Check::<false, true, false>::NAME,
        (Ip4, Tx, Strict) => Check::<false, true, true>::NAME,
        (Ip6, Rx, Loose) => Check::<true, false, false>::NAME,
        (Ip6, Rx, Strict) => Check::<true, false, true>::NAME,
        (Ip6, Tx, Loose) => Check::<true, true, false>::NAME,
        (Ip6, Tx, Strict) => Check::<true, true, true>::NAME,
    };
    Some((arc, node))
}

/// The nodes of one family, in the order of their arcs.
pub struct FamilyNodes<const IP6: bool> {
    /// Loose, of the receiving interface.
    pub rx_loose: Arc<Check<IP6, false, false>>,
    /// Strict, of the receiving interface.
    pub rx_strict: Arc<Check<IP6, false, true>>,
    /// Loose, of the sending interface.
    pub tx_loose: Arc<Check<IP6, true, false>>,
    /// Strict, of the sending interface.
    pub tx_strict: Arc<Check<IP6, true, true>>,
}

/// The nodes that superpaths share with the graph.
pub struct UrpfNodes {
    /// Those of IPv4.
    pub ip4: FamilyNodes<false>,
    /// Those of IPv6.
    pub ip6: FamilyNodes<true>,
}

/// What all nodes read.
struct Parts {
    graph: Rc<Graph>,
    adjacencies: Rc<Adjacencies>,
    interfaces: Rc<Interfaces>,
    fib: Rc<Fib>,
}

impl Parts {
    fn add<const IP6: bool, const TX: bool, const STRICT: bool>(
        &self,
        tables: &Tables,
    ) -> Result<Arc<Check<IP6, TX, STRICT>>, InitError> {
        let node = Arc::new(Check::<IP6, TX, STRICT> {
            fib: self.fib.tables(),
            adjacencies: self.adjacencies.table(),
            interfaces: self.interfaces.table(),
            tables: tables.clone(),
        });
        self.graph.add_packet_shared(Arc::clone(&node))?;
        let family = if IP6 { Family::Ip6 } else { Family::Ip4 };
        let direction = if TX { Direction::Tx } else { Direction::Rx };
        let mode = if STRICT { Mode::Strict } else { Mode::Loose };
        if let Some((arc, name)) = feature(family, direction, mode) {
            self.graph.add_feature(FeatureSpec { arc, node: name, before: &[], after: &[] });
        }
        Ok(node)
    }
}

impl Urpf {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let parts = Parts {
            graph: control.graph()?,
            adjacencies: control.get::<Adjacencies>()?,
            interfaces: control.get::<Interfaces>()?,
            fib: control.get::<Fib>()?,
        };
        let tables = [[Tables::new()?, Tables::new()?], [Tables::new()?, Tables::new()?]];
        let [[rx4, tx4], [rx6, tx6]] = &tables;
        let nodes = UrpfNodes {
            ip4: FamilyNodes {
                rx_loose: parts.add(rx4)?,
                rx_strict: parts.add(rx4)?,
                tx_loose: parts.add(tx4)?,
                tx_strict: parts.add(tx4)?,
            },
            ip6: FamilyNodes {
                rx_loose: parts.add(rx6)?,
                rx_strict: parts.add(rx6)?,
                tx_loose: parts.add(tx6)?,
                tx_strict: parts.add(tx6)?,
            },
        };
        control.put(nodes);
        let Parts { interfaces, fib, .. } = parts;
        let urpf = Rc::new(Urpf { interfaces: Rc::clone(&interfaces), fib, tables, all: RefCell::default() });
        let weak = Rc::downgrade(&urpf);
        interfaces.subscribe(move |_, event| {
            if let (Event::Deleting(index), Some(urpf)) = (event, weak.upgrade()) {
                urpf.forget(index);
            }
        });
        Ok(urpf)
    }

    fn tables(&self, family: Family, direction: Direction) -> &Tables {
        let [[rx4, tx4], [rx6, tx6]] = &self.tables;
        match (family, direction) {
            (Family::Ip4, Direction::Rx) => rx4,
            (Family::Ip4, Direction::Tx) => tx4,
            (Family::Ip6, Direction::Rx) => rx6,
            (Family::Ip6, Direction::Tx) => tx6,
        }
    }

    /// Sets how sources are checked from now on; the previous setting for the same packets is replaced.
    ///
    /// # Errors
    /// There is no such interface or table; nothing is changed then.
    pub fn set(&self, wanted: Setting) -> Result<(), UrpfError> {
        let Setting { interface, family, direction, mode, table } = wanted;
        self.interfaces.name(interface)?;
        if mode == Mode::Off {
            return self.off((interface, family, direction));
        }
        if let Some(table) = table {
            self.fib.lock(family, table, Source::Cli)?;
        }
        let old = self.all.borrow().get(&(interface, family, direction)).copied();
        self.tables(family, direction).set(interface, table);
        // The new feature first: no packet passes unchecked.
        if let Some((arc, node)) = feature(family, direction, mode) {
            self.interfaces.enable_feature(arc, node, interface, true).inspect_err(|_| {
                self.tables(family, direction).set(interface, old.and_then(|o| o.table));
                self.unlock(family, table);
            })?;
        }
        if let Some(old) = old {
            if old.mode != mode {
                self.disable(old);
            }
            self.unlock(family, old.table);
        }
        self.all.borrow_mut().insert((interface, family, direction), wanted);
        Ok(())
    }

    fn off(&self, key: Key) -> Result<(), UrpfError> {
        if let Some(old) = self.all.borrow_mut().remove(&key) {
            self.disable(old);
            self.tables(old.family, old.direction).set(old.interface, None);
            self.unlock(old.family, old.table);
        }
        Ok(())
    }

    fn disable(&self, old: Setting) {
        if let Some((arc, node)) = feature(old.family, old.direction, old.mode)
            && let Err(e) = self.interfaces.enable_feature(arc, node, old.interface, false)
        {
            tracing::warn!(interface = old.interface.0, "{node} stays: {e}");
        }
    }

    fn unlock(&self, family: Family, table: Option<FibIndex>) {
        if let Some(table) = table {
            self.fib.unlock(family, table, Source::Cli);
        }
    }

    fn forget(&self, interface: SwIfIndex) {
        let keys: Vec<Key> = self.all.borrow().keys().filter(|key| key.0 == interface).copied().collect();
        for key in keys {
            let _ = self.off(key);
        }
    }

    /// What is asked of whose sources, but where that is nothing.
    pub fn settings(&self) -> Vec<Setting> {
        self.all.borrow().values().copied().collect()
    }
}
