//! The control plane of Ethernet: which node gets frames of which type, and which sub-interface those with tags.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use shoal_graph::{Graph, NodeIndex};
use shoal_interface::{Event, IfFlags, InterfaceError, Interfaces, Need, SwIfIndex};
use shoal_module::{Control, InitError};
use shoal_wire::{EtherType, MacAddress};

use crate::types::TypeTable;
use crate::vlan::{Exact, Inner, Match, Taken, VlanTable, VlanWriter, is_outer};

/// Why a sub-interface cannot be; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubError {
    /// Only Ethernet has tags.
    #[error("{0} is not an Ethernet interface, so its frames have no tags")]
    NotEthernet(String),
    /// The interface is a sub-interface.
    #[error("{0} is a sub-interface and has none of its own; use {1}")]
    IsSub(String, String),
    /// Id 0 of an outer tag means that there is none.
    #[error("a tag with VLAN 0 carries a priority and no VLAN: choose one from 1 to 4095")]
    NoVlan,
    /// The interface has a sub-interface of this number.
    #[error("{0} exists already")]
    Exists(String),
    /// Another sub-interface takes the same frames.
    #[error("vlan is already in use: {0} takes these frames")]
    InUse(String),
    /// No room for more ids.
    #[error("there is no room for the ids of more sub-interfaces")]
    Full,
    /// It is none.
    #[error("{0} is not a sub-interface")]
    NotSub(String),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}

/// A sub-interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sub {
    /// The interface its frames come in by.
    pub port: SwIfIndex,
    /// Its number on that interface.
    pub number: u32,
    /// The frames it takes.
    pub takes: Match,
}

/// Who gets frames without tags.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Untagged {
    /// The port.
    Ports,
    /// A sub-interface.
    Subs,
}

/// Ethernet on all interfaces.
pub struct Ethernet {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    input: NodeIndex,
    types: TypeTable,
    /// Who has registered which type.
    owners: RefCell<BTreeMap<EtherType, &'static str>>,
    vlans: RefCell<VlanWriter>,
    subs: RefCell<BTreeMap<SwIfIndex, Sub>>,
    /// By port and number.
    by_number: RefCell<BTreeMap<(SwIfIndex, u32), SwIfIndex>>,
    /// The edge to the node for frames of interfaces in layer 2.
    l2: Arc<AtomicU16>,
}

impl Ethernet {
    pub(crate) fn new(
        control: &Rc<Control>,
        input: NodeIndex,
        types: TypeTable,
        vlans: VlanWriter,
        l2: Arc<AtomicU16>,
    ) -> Result<Rc<Self>, InitError> {
        let interfaces = control.get::<Interfaces>()?;
        let ethernet = Rc::new(Ethernet {
            graph: control.graph()?,
            interfaces: Rc::clone(&interfaces),
            input,
            types,
            owners: RefCell::new(BTreeMap::from([(EtherType::IP4, "ip4"), (EtherType::IP6, "ip6")])),
            vlans: RefCell::new(vlans),
            subs: RefCell::default(),
            by_number: RefCell::default(),
            l2,
        });
        let weak = Rc::downgrade(&ethernet);
        interfaces.subscribe(move |_, event| {
            if let (Some(ethernet), Event::Deleting(interface)) = (weak.upgrade(), event) {
                ethernet.forget(interface);
            }
        });
        Ok(ethernet)
    }

    /// What packets read of tags.
    pub fn vlans(&self) -> VlanTable {
        self.vlans.borrow().table().clone()
    }

    /// Sends frames of a type to a node, for a module of this name; at the start.
    ///
    /// # Errors
    /// Another module has the type, it is that of a tag or a length, or there is no such node.
    pub fn register(&self, kind: EtherType, node: &str, module: &'static str) -> Result<(), InitError> {
        if kind.0 < EtherType::MIN || is_outer(kind) {
            return Err(InitError::Other(format!("0x{:04x} is not the type of a protocol", kind.0)));
        }
        if let Some(other) = self.owners.borrow().get(&kind) {
            let why = format!("frames of type {kind} go to module {other} already");
            return Err(InitError::Other(why));
        }
        let edge = self.graph.add_edge(self.input, self.graph.node(node)?)?;
        self.owners.borrow_mut().insert(kind, module);
        self.types.add(kind, edge);
        Ok(())
    }

    /// The node that gets frames of interfaces in layer 2.
    ///
    /// # Errors
    /// There is no such node.
    pub fn set_l2_input(&self, node: &str) -> Result<(), InitError> {
        let edge = self.graph.add_edge(self.input, self.graph.node(node)?)?;
        self.l2.store(edge.0, Ordering::Relaxed);
        Ok(())
    }

    /// The types that have an owner, by number.
    pub fn types(&self) -> Vec<(EtherType, &'static str)> {
        self.owners.borrow().iter().map(|(kind, module)| (*kind, *module)).collect()
    }

    /// Creates a sub-interface, `<port>.<number>`, that takes some of the port's frames. It starts admin down, has the
    /// port's MAC address and MTU, and sends nothing yet.
    ///
    /// # Errors
    /// There is no such interface or it has no tags, another one takes these frames, or there is no room.
    pub fn create_sub(&self, port: SwIfIndex, number: u32, takes: Match) -> Result<SwIfIndex, SubError> {
        let name = self.interfaces.name(port)?;
        if let Some(sub) = self.subs.borrow().get(&port) {
            return Err(SubError::IsSub(name, self.interfaces.name(sub.port)?));
        }
        if !self.interfaces.data(port)?.flags().has(IfFlags::ETHERNET) {
            return Err(SubError::NotEthernet(name));
        }
        if matches!(takes, Match::Tags { outer, .. } if outer.number() == 0) {
            return Err(SubError::NoVlan);
        }
        if self.by_number.borrow().contains_key(&(port, number)) {
            return Err(SubError::Exists(format!("{name}.{number}")));
        }
        let index = self.interfaces.create_sub(port, number)?;
        let entered = self.vlans.borrow_mut().enter(port, takes, index);
        if let Err(taken) = entered {
            self.interfaces.delete(index)?;
            return Err(match taken {
                Taken::By(other) => SubError::InUse(self.interfaces.name(other)?),
                Taken::Full => SubError::Full,
            });
        }
        if takes == Match::Untagged {
            self.set_untagged(port, Untagged::Subs)?;
        }
        self.subs.borrow_mut().insert(index, Sub { port, number, takes });
        self.by_number.borrow_mut().insert((port, number), index);
        Ok(index)
    }

    /// Deletes a sub-interface.
    ///
    /// # Errors
    /// There is no such interface, or it is none.
    pub fn delete_sub(&self, index: SwIfIndex) -> Result<(), SubError> {
        if !self.subs.borrow().contains_key(&index) {
            return Err(SubError::NotSub(self.interfaces.name(index)?));
        }
        Ok(self.interfaces.delete(index)?)
    }

    /// A sub-interface's place; `None` for other interfaces.
    pub fn sub(&self, index: SwIfIndex) -> Option<Sub> {
        self.subs.borrow().get(&index).copied()
    }

    /// The sub-interfaces of a port, by number.
    pub fn subs_of(&self, port: SwIfIndex) -> Vec<SwIfIndex> {
        self.by_number.borrow().range((port, 0)..=(port, u32::MAX)).map(|(_, index)| *index).collect()
    }

    /// Whether IP can run on a sub-interface: it must say exactly which tags its frames have.
    pub fn is_routable(&self, index: SwIfIndex) -> bool {
        self.sub(index).is_none_or(|sub| match sub.takes {
            Match::Default => false,
            Match::Untagged => true,
            Match::Tags { inner, exact, .. } => exact == Exact::Yes && inner != Inner::Any,
        })
    }

    /// Gives a sub-interface a MAC address of its own: its port takes frames for that, too, from now on.
    ///
    /// # Errors
    /// There is no such sub-interface, the address is a group's, or the port's device cannot.
    pub fn set_sub_mac(&self, index: SwIfIndex, mac: MacAddress) -> Result<(), SubError> {
        let sub = self
            .sub(index)
            .ok_or_else(|| SubError::NotSub(self.interfaces.name(index).unwrap_or_default()))?;
        let differs = |this: &Self| -> Result<bool, InterfaceError> {
            Ok(this.interfaces.data(index)?.mac() != this.interfaces.data(sub.port)?.mac())
        };
        let before = differs(self)?;
        self.interfaces.set_mac(index, mac)?;
        match (before, differs(self)?) {
            (false, true) => self.interfaces.need_all_frames(sub.port, Need::Begins)?,
            (true, false) => self.interfaces.need_all_frames(sub.port, Need::Ends)?,
            _ => {}
        }
        Ok(())
    }

    /// Whose frames without tags are: only then does the common way of IP ask for sub-interfaces.
    fn set_untagged(&self, port: SwIfIndex, whose: Untagged) -> Result<(), InterfaceError> {
        let on = whose == Untagged::Subs;
        self.interfaces.modify(port, |data| data.with_flags(data.flags().set(IfFlags::UNTAGGED_SUB, on)))
    }

    /// An interface goes, and its sub-interfaces before it.
    fn forget(&self, interface: SwIfIndex) {
        for sub in self.subs_of(interface) {
            if let Err(e) = self.interfaces.delete(sub) {
                tracing::warn!(%sub, "a sub-interface stays without its interface: {e}");
            }
        }
        let Some(sub) = self.subs.borrow_mut().remove(&interface) else { return };
        self.by_number.borrow_mut().remove(&(sub.port, sub.number));
        self.vlans.borrow_mut().leave(sub.port, sub.takes);
        if sub.takes == Match::Untagged
            && let Err(e) = self.set_untagged(sub.port, Untagged::Ports)
        {
            tracing::warn!(port = %sub.port, "frames without tags go a longer way: {e}");
        }
        let macs = [interface, sub.port].map(|i| self.interfaces.data(i).map(|data| data.mac()).ok());
        if let [Some(own), Some(ports)] = macs
            && own != ports
            && let Err(e) = self.interfaces.need_all_frames(sub.port, Need::Ends)
        {
            tracing::warn!(port = %sub.port, "it still takes all frames: {e}");
        }
    }
}
