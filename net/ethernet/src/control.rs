//! The control plane of Ethernet: which node gets frames of which type, and which sub-interface those with tags.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use shoal_graph::{Edge, Graph, NodeIndex};
use shoal_interface::{Event, Exact, IfFlags, Inner, InterfaceError, Interfaces, Match, Sub, SwIfIndex};
use shoal_module::{Control, InitError};
use shoal_wire::EtherType;

use crate::llc::{LlcTable, Snap};
use crate::types::TypeTable;
use crate::vlan::{MatchConflict, VlanTable, VlanWriter, is_outer};

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
    /// Frames of a bond's member are the bond's.
    #[error("{0} is a member of {1}: create the sub-interface on {1}")]
    Member(String, String),
    /// The interface has a sub-interface of this number.
    #[error("{0} exists already")]
    Exists(String),
    /// A number that no VLAN has.
    #[error("there is no VLAN {0}: choose one from 1 to 4095")]
    NoSuchVlan(u32),
    /// Not implemented, as in VPP.
    #[error(
        "an outer tag of any VLAN is not implemented: name a VLAN, 1 to 4095, or create one with `default'"
    )]
    OuterAny,
    /// What VPP refuses too.
    #[error("inner-dot1q any exact-match is unsupported: leave out exact-match, or name the inner tag")]
    AnyExact,
    /// Another sub-interface takes the same frames.
    #[error("vlan is already in use: {0} takes these frames")]
    InUse(String),
    /// No room for more ids.
    #[error("there is no room for the ids of more sub-interfaces")]
    Full,
    /// It is none.
    #[error("{0} is not a sub-interface")]
    NotSub(String),
    /// It goes with its pipe.
    #[error("{0} is an end of {1}: delete {1}")]
    End(String, String),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}

/// The bond that an interface is a member of.
type BondOf = Box<dyn Fn(SwIfIndex) -> Option<SwIfIndex>>;

/// The owner of frames without tags.
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
    /// The owner of each registered type.
    owners: RefCell<BTreeMap<EtherType, &'static str>>,
    vlans: RefCell<VlanWriter>,
    /// Knows the bond that an interface is a member of.
    bonds: RefCell<Option<BondOf>>,
    /// The edge to the node for frames of interfaces in layer 2.
    l2: Arc<AtomicU16>,
    /// The owners of 802.3 frames.
    llc: LlcTable,
}

impl Ethernet {
    pub(crate) fn new(
        control: &Rc<Control>,
        input: NodeIndex,
        types: TypeTable,
        vlans: VlanWriter,
        (l2, llc): (Arc<AtomicU16>, LlcTable),
    ) -> Result<Rc<Self>, InitError> {
        let interfaces = control.get::<Interfaces>()?;
        let ethernet = Rc::new(Ethernet {
            graph: control.graph()?,
            interfaces: Rc::clone(&interfaces),
            input,
            types,
            owners: RefCell::new(BTreeMap::from([(EtherType::IP4, "ip4"), (EtherType::IP6, "ip6")])),
            vlans: RefCell::new(vlans),
            bonds: RefCell::default(),
            l2,
            llc,
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

    /// The edge to a node that frames of more types may be sent to later; at the start.
    ///
    /// # Errors
    /// There is no such node.
    pub fn edge_to(&self, node: &str) -> Result<Edge, InitError> {
        Ok(self.graph.add_edge(self.input, self.graph.node(node)?)?)
    }

    /// Sends frames of a type to a node from now on, by an edge of [`Ethernet::edge_to`], for a module of this name. False
    /// when another module has the type, or it is that of a tag, a length, or of IP.
    pub fn give(&self, kind: EtherType, edge: Edge, module: &'static str) -> bool {
        let known = [EtherType::IP4, EtherType::IP6].contains(&kind);
        if kind.0 < EtherType::MIN || is_outer(kind) || known || self.owners.borrow().contains_key(&kind) {
            return false;
        }
        self.owners.borrow_mut().insert(kind, module);
        self.types.add(kind, edge);
        true
    }

    /// Takes a type from its owner: frames of it are dropped from now on.
    pub fn take_back(&self, kind: EtherType, module: &'static str) -> bool {
        let mut owners = self.owners.borrow_mut();
        let is_owner = owners.get(&kind) == Some(&module);
        if is_owner {
            owners.remove(&kind);
            self.types.remove(kind);
        }
        is_owner
    }

    /// Sends 802.3 frames, which have a length for a type, to a node from now on, by an edge of [`Ethernet::edge_to`]; but for
    /// those of [`Ethernet::give_snap`].
    pub fn give_llc(&self, edge: Edge) {
        self.llc.set_rest(edge);
    }

    /// Sends 802.3 frames of a protocol to a node from now on. False when there is no room for more protocols.
    pub fn give_snap(&self, protocol: Snap, edge: Edge) -> bool {
        self.llc.set(protocol, edge)
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

    /// Bonds say which interfaces are their members: frames of those are the bond's, whose sub-interfaces get them.
    pub fn set_bonds(&self, bond_of: impl Fn(SwIfIndex) -> Option<SwIfIndex> + 'static) {
        *self.bonds.borrow_mut() = Some(Box::new(bond_of));
    }

    fn bond_of(&self, port: SwIfIndex) -> Option<SwIfIndex> {
        self.bonds.borrow().as_ref().and_then(|bond_of| bond_of(port))
    }

    /// Creates a sub-interface, `<port>.<number>`, that takes some of the port's frames. It starts admin down, has the
    /// port's MAC address and MTU, and sends nothing yet.
    ///
    /// # Errors
    /// There is no such interface or it has no tags, another one takes these frames, or there is no room.
    pub fn create_sub(&self, port: SwIfIndex, number: u32, takes: Match) -> Result<SwIfIndex, SubError> {
        let name = self.interfaces.name(port)?;
        if let Some(sub) = self.sub(port) {
            return Err(SubError::IsSub(name, self.interfaces.name(sub.port)?));
        }
        if !self.interfaces.data(port)?.flags().has(IfFlags::ETHERNET) {
            return Err(SubError::NotEthernet(name));
        }
        if let Some(bond) = self.bond_of(port) {
            return Err(SubError::Member(name, self.interfaces.name(bond)?));
        }
        if matches!(takes, Match::Tags { outer, .. } if outer.number() == 0) {
            return Err(SubError::NoVlan);
        }
        if self.interfaces.sub_of(port, number).is_some() {
            return Err(SubError::Exists(format!("{name}.{number}")));
        }
        if let Match::Tags { inner: Inner::Any, exact: Exact::Yes, .. } = takes {
            return Err(SubError::AnyExact);
        }
        let index = self.interfaces.create_sub(port, number, takes)?;
        let entered = self.vlans.borrow_mut().enter(port, takes, index);
        if let Err(taken) = entered {
            self.interfaces.delete(index)?;
            return Err(match taken {
                MatchConflict::By(other) => SubError::InUse(self.interfaces.name(other)?),
                MatchConflict::Full => SubError::Full,
            });
        }
        if takes == Match::Untagged {
            self.set_untagged(port, Untagged::Subs)?;
        }
        Ok(index)
    }

    /// Deletes a sub-interface.
    ///
    /// # Errors
    /// There is no such interface, or it is none.
    pub fn delete_sub(&self, index: SwIfIndex) -> Result<(), SubError> {
        let name = || self.interfaces.name(index);
        match self.sub(index) {
            None => return Err(SubError::NotSub(name()?)),
            Some(sub) if sub.takes == Match::End => {
                return Err(SubError::End(name()?, self.interfaces.name(sub.port)?));
            }
            Some(_) => {}
        }
        Ok(self.interfaces.delete(index)?)
    }

    /// A sub-interface's place; `None` for other interfaces.
    pub fn sub(&self, index: SwIfIndex) -> Option<Sub> {
        self.interfaces.sub(index)
    }

    /// The sub-interfaces of a port, by number.
    pub fn subs_of(&self, port: SwIfIndex) -> Vec<SwIfIndex> {
        self.interfaces.subs_of(port)
    }

    /// Whether IP can run on a sub-interface: it must say exactly which tags its frames have.
    pub fn is_routable(&self, index: SwIfIndex) -> bool {
        self.sub(index).is_none_or(|sub| sub.takes.is_exact())
    }

    /// Whose frames without tags are: only then does the common way of IP ask for sub-interfaces.
    fn set_untagged(&self, port: SwIfIndex, whose: Untagged) -> Result<(), InterfaceError> {
        let on = whose == Untagged::Subs;
        self.interfaces.modify(port, |data| data.with_flags(data.flags().set(IfFlags::UNTAGGED_SUB, on)))
    }

    /// An interface goes: if it is a sub-interface, no frames are led to it any more.
    fn forget(&self, interface: SwIfIndex) {
        let Some(sub) = self.sub(interface) else { return };
        self.vlans.borrow_mut().leave(sub.port, sub.takes);
        if sub.takes == Match::Untagged
            && let Err(e) = self.set_untagged(sub.port, Untagged::Ports)
        {
            tracing::warn!(port = %sub.port, "frames without tags go a longer way: {e}");
        }
    }
}
