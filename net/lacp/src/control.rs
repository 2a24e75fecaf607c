//! All ports that speak LACP.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use shoal_bond::{Bonds, MemberEvent, Mode};
use shoal_ethernet::Ethernet;
use shoal_graph::clock::Time;
use shoal_graph::counter::Number;
use shoal_graph::process::Sender;
use shoal_graph::{Edge, Graph, PacketNode};
use shoal_infra::Published;
use shoal_interface::{Event, IfFlags, Interfaces, SwIfIndex};
use shoal_module::{Control, InitError};
use shoal_wire::EtherType;

use crate::machine::Port;
use crate::node::{LacpInput, ReceivedPdu};
use crate::pdu::{End, Message, SLOW_PROTOCOLS, State};

/// VPP's, and the lowest there is.
const SYSTEM_PRIORITY: u16 = 0xffff;
/// VPP's.
const PORT_PRIORITY: u16 = 0xff;

/// What was counted of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// LACPDUs that came and could be read.
    pub good: u64,
    /// And that could not.
    pub bad: u64,
    /// LACPDUs that were sent.
    pub sent: u64,
    /// Markers that came.
    pub markers: u64,
    /// When the last LACPDU came.
    pub last_heard: Option<Time>,
    /// When the last one was sent.
    pub last_sent: Option<Time>,
}

struct PortEntry {
    bond: SwIfIndex,
    port: Port,
    counts: Counts,
    /// Whether the other end is this router.
    is_loop: bool,
    /// What statistics clients read: this end's state and the other's.
    gauges: Option<[Number; 2]>,
}

/// A port, for display.
#[derive(Clone, Debug)]
pub struct Look {
    /// The member.
    pub index: SwIfIndex,
    /// Its bond.
    pub bond: SwIfIndex,
    /// Its state machines.
    pub port: Port,
    /// What was counted.
    pub counts: Counts,
    /// Whether the other end is this router.
    pub is_loop: bool,
}

/// The control plane of LACP.
pub struct Lacp {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    bonds: Rc<Bonds>,
    ethernet: Rc<Ethernet>,
    all: RefCell<BTreeMap<SwIfIndex, PortEntry>>,
    ports: Arc<Published<BTreeSet<SwIfIndex>>>,
    /// Where frames of slow protocols go once there is a port.
    edge: Cell<Option<Edge>>,
    bell: Sender<()>,
}

impl Lacp {
    pub(crate) fn new(control: &Rc<Control>, bell: Sender<()>) -> Result<Rc<Self>, InitError> {
        let lacp = Rc::new(Lacp {
            graph: control.graph()?,
            interfaces: control.get()?,
            bonds: control.get()?,
            ethernet: control.get()?,
            all: RefCell::default(),
            ports: Arc::new(Published::new(BTreeSet::new())),
            edge: Cell::new(None),
            bell,
        });
        let weak = Rc::downgrade(&lacp);
        lacp.bonds.subscribe(move |event| {
            let Some(lacp) = weak.upgrade() else { return };
            match event {
                MemberEvent::Added { bond, member } => lacp.add(bond, member),
                MemberEvent::Left { bond, member } => lacp.forget(bond, member),
            }
        });
        let weak = Rc::downgrade(&lacp);
        lacp.interfaces.subscribe(move |_, event| {
            if let (Some(lacp), Event::Admin(index, _) | Event::Link(index, _) | Event::Mac(index)) =
                (weak.upgrade(), event)
            {
                lacp.renew(index);
            }
        });
        Ok(lacp)
    }

    pub(crate) fn ports(&self) -> Arc<Published<BTreeSet<SwIfIndex>>> {
        Arc::clone(&self.ports)
    }

    /// Edges are numbered when the graph is built.
    pub(crate) fn take_edge(&self, control: &Control) -> Result<(), InitError> {
        self.edge.set(Some(control.get::<Ethernet>()?.edge_to(LacpInput::NAME)?));
        Ok(())
    }

    fn now(&self) -> Time {
        self.graph.clock().now()
    }

    fn ring(&self) {
        // One that is in the bell already will do.
        let _ = self.bell.try_send(());
    }

    fn works(&self, index: SwIfIndex) -> bool {
        let needed = IfFlags::ADMIN_UP.set(IfFlags::LINK_UP, true);
        self.interfaces.data(index).is_ok_and(|data| data.flags().all(needed))
    }

    fn add(&self, bond: SwIfIndex, index: SwIfIndex) {
        let Some(of) = self.bonds.get(bond).filter(|bond| bond.how.mode == Mode::Lacp) else { return };
        let Some(member) = of.members.iter().find(|member| member.index == index) else { return };
        if let Some(edge) = self.edge.get()
            && !self.ethernet.give(EtherType::SLOW_PROTOCOLS, edge, crate::MODULE.name)
        {
            let taken =
                self.ethernet.types().iter().any(|(kind, module)| {
                    *kind == EtherType::SLOW_PROTOCOLS && *module != crate::MODULE.name
                });
            if taken {
                tracing::error!(
                    "LACP of bonds hears nothing: frames of type 0x8809 go to another feature, such as `lcp ethertype enable 0x8809'"
                );
            }
        }
        let state = State::AGGREGATION
            .set(State::ACTIVITY, !member.how.passive)
            .set(State::TIMEOUT, !member.how.long_timeout);
        let actor = End {
            system_priority: SYSTEM_PRIORITY,
            system: self.interfaces.data(bond).map(|data| data.mac().0).unwrap_or_default(),
            key: bond.0 as u16,
            port_priority: PORT_PRIORITY,
            port: index.0 as u16,
            state,
        };
        let gauge = |what: &str| self.graph.counters().gauge(&format!("/if/lacp/{bond}/{index}/{what}"));
        let gauges = gauge("state").and_then(|own| Ok([own, gauge("partner-state")?])).ok();
        let (port, counts) = (Port::new(actor), Counts::default());
        self.all.borrow_mut().insert(index, PortEntry { bond, port, counts, is_loop: false, gauges });
        self.publish();
        self.renew(index);
    }

    fn forget(&self, bond: SwIfIndex, index: SwIfIndex) {
        if self.all.borrow_mut().remove(&index).is_some() {
            self.graph.counters().remove_prefix(&format!("/if/lacp/{bond}/{index}/"));
            self.publish();
            self.ring();
        }
    }

    fn publish(&self) {
        self.ports.replace(self.all.borrow().keys().copied().collect());
    }

    /// The link of a member, or the address of a bond, is another.
    fn renew(&self, index: SwIfIndex) {
        let (now, enabled) = (self.now(), self.works(index));
        if let Some(held) = self.all.borrow_mut().get_mut(&index) {
            held.port.set_enabled(enabled, now);
        } else if let Ok(data) = self.interfaces.data(index) {
            let mut all = self.all.borrow_mut();
            let mut members = all.values_mut().filter(|held| held.bond == index).peekable();
            if members.peek().is_none() {
                return;
            }
            members.for_each(|held| held.port.actor.system = data.mac().0);
        } else {
            return;
        }
        self.tick();
        self.ring();
    }

    /// Something came.
    pub(crate) fn hear(&self, heard: &ReceivedPdu) {
        let now = self.now();
        let marker = {
            let mut all = self.all.borrow_mut();
            let Some(held) = all.get_mut(&heard.interface) else { return };
            match heard.message {
                Ok(Message::Lacp(pdu)) => {
                    held.counts.good += 1;
                    held.counts.last_heard = Some(now);
                    held.is_loop =
                        (pdu.actor.system, pdu.actor.key) == (held.port.actor.system, held.port.actor.key);
                    held.port.hear(&pdu, now);
                    None
                }
                Ok(Message::Marker(marker)) => {
                    held.counts.markers += 1;
                    Some(marker)
                }
                Ok(Message::MarkerResponse) => None,
                Err(_) => {
                    held.counts.bad += 1;
                    None
                }
            }
        };
        if let Some(marker) = marker {
            self.send(heard.interface, &marker.response());
        } else {
            self.tick();
            self.ring();
        }
    }

    /// Lets all ports take the steps that are due, and sends what they say.
    pub(crate) fn tick(&self) {
        let now = self.now();
        self.choose();
        let (mut to_send, mut used) = (Vec::new(), Vec::new());
        for (index, held) in self.all.borrow_mut().iter_mut() {
            let before = held.port.is_used();
            held.port.run(now);
            if held.port.is_used() != before {
                used.push((*index, !before));
            }
            if let Some(pdu) = held.port.transmit(now) {
                held.counts.sent += 1;
                held.counts.last_sent = Some(now);
                to_send.push((*index, pdu.bytes()));
            }
            if let Some([own, partner]) = &held.gauges {
                own.set(held.port.actor.state.0.into());
                partner.set(held.port.partner.state.0.into());
            }
        }
        for (index, used) in used {
            self.bonds.set_agreed(index, used);
        }
        for (index, bytes) in to_send {
            self.send(index, &bytes);
        }
    }

    /// All members of a bond have to lead to the same other end: the one of the first that knows it. A port that hears its own
    /// bond fits none.
    fn choose(&self) {
        let mut all = self.all.borrow_mut();
        let mut ends: BTreeMap<SwIfIndex, ([u8; 6], u16, u16)> = BTreeMap::new();
        let of = |port: &Port| (port.partner.system, port.partner.system_priority, port.partner.key);
        // A member of the bond stays in it.
        for used in [true, false] {
            let candidates = all.values().filter(|held| held.port.is_used() == used);
            for held in candidates.filter(|held| held.port.is_known() && !held.is_loop) {
                ends.entry(held.bond).or_insert_with(|| of(&held.port));
            }
        }
        for held in all.values_mut() {
            let end = ends.get(&held.bond);
            held.port.fits = !held.is_loop && end.is_none_or(|end| *end == of(&held.port));
        }
    }

    fn send(&self, index: SwIfIndex, bytes: &[u8]) {
        self.interfaces.send_frame(index, SLOW_PROTOCOLS, EtherType::SLOW_PROTOCOLS, bytes);
    }

    /// When [`Lacp::tick`] is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.all.borrow().values().filter_map(|held| held.port.deadline()).min()
    }

    /// All ports, by interface.
    pub fn list(&self) -> Vec<Look> {
        let look = |(index, held): (&SwIfIndex, &PortEntry)| Look {
            index: *index,
            bond: held.bond,
            port: held.port.clone(),
            counts: held.counts,
            is_loop: held.is_loop,
        };
        self.all.borrow().iter().map(look).collect()
    }
}
