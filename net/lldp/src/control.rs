//! The announcements on each interface, and the neighbours heard.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use shoal_ethernet::Ethernet;
use shoal_graph::clock::Time;
use shoal_graph::process::Sender;
use shoal_graph::{Edge, Graph, PacketNode};
use shoal_infra::Published;
use shoal_interface::{Event, IfFlags, InterfaceError, Interfaces, SwIfIndex};
use shoal_module::{Control, InitError};
use shoal_wire::EtherType;

use crate::node::{LldpInput, ReceivedNeighbour};
use crate::pdu::{NEAREST_BRIDGE, Neighbor, OwnAnnouncement};

/// Bytes of a name, a description or an object identifier.
pub(crate) const MOST_TEXT: usize = 255;
/// Bytes of an object identifier.
pub(crate) const MOST_OID: usize = 128;
/// Between a change and its announcement, so that many changes are one.
const SOON: Duration = Duration::from_millis(100);

/// Why a setting cannot be; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LldpError {
    /// A number does not fit.
    #[error("invalid {what} `{value}' (out of range <{least},{most}>)")]
    Range {
        /// Which.
        what: &'static str,
        /// What was wanted.
        value: u32,
        /// The lowest that is possible.
        least: u32,
        /// The highest.
        most: u32,
    },
    /// A text is too long.
    #[error("{0} is longer than {1} bytes")]
    TooLong(&'static str, usize),
    /// Only links of Ethernet have such neighbours.
    #[error("{0} {1}, so its link has no other end")]
    Unfit(String, &'static str),
    /// Another feature takes the frames.
    #[error("frames of type 0x88cc go to module {0}")]
    Taken(String),
    /// There is no such interface.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}

/// What is the same on all interfaces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The router's name.
    pub system_name: String,
    /// For how many intervals an announcement holds.
    pub tx_hold: u32,
    /// Seconds between PDUs.
    pub tx_interval: u32,
}

impl Settings {
    /// What `tx_hold` can be.
    pub const HOLD: (u32, u32) = (1, 100);
    /// What `tx_interval` can be, in seconds.
    pub const INTERVAL: (u32, u32) = (1, 3600);

    fn ttl(&self) -> u16 {
        u16::try_from(self.tx_hold * self.tx_interval + 1).unwrap_or(u16::MAX)
    }
}

impl Default for Settings {
    fn default() -> Self {
        // By default it has the machine's name.
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Settings { system_name: host.trim().to_owned(), tx_hold: 4, tx_interval: 30 }
    }
}

/// The settings of one interface.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OnInterface {
    /// What it is for.
    pub description: String,
    /// An address the router is managed by.
    pub management_ip4: Option<Ipv4Addr>,
    /// The same of IPv6.
    pub management_ip6: Option<Ipv6Addr>,
    /// Which object of SNMP describes it.
    pub management_oid: Vec<u8>,
}

struct InterfaceEntry {
    on: OnInterface,
    heard: Option<(Neighbor, Time)>,
    last_sent: Option<Time>,
    next: Time,
}

/// An interface, for display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Look {
    /// Which.
    pub index: SwIfIndex,
    /// Its settings.
    pub on: OnInterface,
    /// What the neighbour says, and when it last did.
    pub heard: Option<(Neighbor, Time)>,
    /// When the last PDU was sent.
    pub last_sent: Option<Time>,
}

/// The control plane of LLDP.
pub struct Lldp {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    ethernet: Rc<Ethernet>,
    settings: RefCell<Settings>,
    all: RefCell<BTreeMap<SwIfIndex, InterfaceEntry>>,
    enabled: Arc<Published<BTreeSet<SwIfIndex>>>,
    edge: Cell<Option<Edge>>,
    bell: Sender<()>,
}

impl Lldp {
    pub(crate) fn new(control: &Rc<Control>, bell: Sender<()>) -> Result<Rc<Self>, InitError> {
        let lldp = Rc::new(Lldp {
            graph: control.graph()?,
            interfaces: control.get()?,
            ethernet: control.get()?,
            settings: RefCell::default(),
            all: RefCell::default(),
            enabled: Arc::new(Published::new(BTreeSet::new())),
            edge: Cell::new(None),
            bell,
        });
        let weak = Rc::downgrade(&lldp);
        lldp.interfaces.subscribe(move |_, event| {
            let Some(lldp) = weak.upgrade() else { return };
            match event {
                Event::Deleting(index) => lldp.forget(index),
                Event::Link(index, false) | Event::Admin(index, false) => lldp.lost(index),
                Event::Link(index, true)
                | Event::Admin(index, true)
                | Event::Mac(index)
                | Event::Name(index) => {
                    lldp.soon(index);
                }
                _ => {}
            }
        });
        Ok(lldp)
    }

    pub(crate) fn enabled(&self) -> Arc<Published<BTreeSet<SwIfIndex>>> {
        Arc::clone(&self.enabled)
    }

    /// Edges are numbered when the graph is built.
    pub(crate) fn take_edge(&self, control: &Control) -> Result<(), InitError> {
        self.edge.set(Some(control.get::<Ethernet>()?.edge_to(LldpInput::NAME)?));
        Ok(())
    }

    fn now(&self) -> Time {
        self.graph.clock().now()
    }

    fn ring(&self) {
        // One that is in the bell already will do.
        let _ = self.bell.try_send(());
    }

    fn publish(&self) {
        self.enabled.replace(self.all.borrow().keys().copied().collect());
    }

    /// What is the same on all interfaces.
    pub fn settings(&self) -> Settings {
        self.settings.borrow().clone()
    }

    /// Sets what is the same on all interfaces.
    ///
    /// # Errors
    /// A number is out of range, or the name too long.
    pub fn set(&self, settings: Settings) -> Result<(), LldpError> {
        for (what, value, (least, most)) in [
            ("tx-hold", settings.tx_hold, Settings::HOLD),
            ("tx-interval", settings.tx_interval, Settings::INTERVAL),
        ] {
            if !(least..=most).contains(&value) {
                return Err(LldpError::Range { what, value, least, most });
            }
        }
        if settings.system_name.len() > MOST_TEXT {
            return Err(LldpError::TooLong("the system name", MOST_TEXT));
        }
        self.settings.replace(settings);
        let all: Vec<SwIfIndex> = self.all.borrow().keys().copied().collect();
        for index in all {
            self.soon(index);
        }
        Ok(())
    }

    fn take_frames(&self) -> Result<(), LldpError> {
        let Some(edge) = self.edge.get() else { return Ok(()) };
        if self.ethernet.give(EtherType::LLDP, edge, crate::MODULE.name) {
            return Ok(());
        }
        let types = self.ethernet.types();
        let owner = types.iter().find(|(kind, _)| *kind == EtherType::LLDP).map(|(_, module)| *module);
        match owner {
            Some(owner) if owner != crate::MODULE.name => Err(LldpError::Taken(owner.to_owned())),
            _ => Ok(()),
        }
    }

    /// Switches it on on an interface, or says something else there.
    ///
    /// # Errors
    /// The interface has no link of Ethernet, a text is too long, or another feature takes the frames.
    pub fn enable(&self, index: SwIfIndex, on: OnInterface) -> Result<(), LldpError> {
        let name = self.interfaces.name(index)?;
        if let Some(why) = self.interfaces.lacks_link(index)? {
            return Err(LldpError::Unfit(name, why));
        }
        if on.description.len() > MOST_TEXT {
            return Err(LldpError::TooLong("the description", MOST_TEXT));
        }
        if on.management_oid.len() > MOST_OID {
            return Err(LldpError::TooLong("the object identifier", MOST_OID));
        }
        self.take_frames()?;
        let next = self.now();
        let mut all = self.all.borrow_mut();
        let held = all.entry(index).or_insert_with(|| InterfaceEntry {
            on: on.clone(),
            heard: None,
            last_sent: None,
            next,
        });
        (held.on, held.next) = (on, next);
        drop(all);
        self.publish();
        self.tick();
        self.ring();
        Ok(())
    }

    /// Switches it off on an interface, which says so once more.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn disable(&self, index: SwIfIndex) -> Result<(), LldpError> {
        self.interfaces.name(index)?;
        if self.all.borrow().contains_key(&index) {
            self.send(index, 0);
            self.forget(index);
        }
        Ok(())
    }

    fn forget(&self, index: SwIfIndex) {
        if self.all.borrow_mut().remove(&index).is_some() {
            self.publish();
            self.ring();
        }
    }

    /// The neighbour has gone.
    fn lost(&self, index: SwIfIndex) {
        if let Some(held) = self.all.borrow_mut().get_mut(&index) {
            held.heard = None;
        }
    }

    /// Something has changed: it is announced soon.
    fn soon(&self, index: SwIfIndex) {
        let next = self.now().after(SOON);
        if let Some(held) = self.all.borrow_mut().get_mut(&index) {
            held.next = held.next.min(next);
            self.ring();
        }
    }

    /// A neighbour has spoken.
    pub(crate) fn hear(&self, heard: &ReceivedNeighbour) {
        let now = self.now();
        if let Some(held) = self.all.borrow_mut().get_mut(&heard.interface) {
            // A time of zero: it goes.
            held.heard = (heard.neighbor.ttl > 0).then_some((heard.neighbor, now));
        }
        self.ring();
    }

    /// Says what is due, and forgets whose time is over.
    pub(crate) fn tick(&self) {
        let now = self.now();
        let settings = self.settings();
        let mut due = Vec::new();
        for (index, held) in self.all.borrow_mut().iter_mut() {
            if let Some((neighbor, at)) = &held.heard
                && now.since(*at) >= Duration::from_secs(neighbor.ttl.into())
            {
                held.heard = None;
            }
            if held.next <= now {
                held.next = now.after(Duration::from_secs(settings.tx_interval.into()));
                due.push(*index);
            }
        }
        for index in due {
            if self.send(index, settings.ttl())
                && let Some(held) = self.all.borrow_mut().get_mut(&index)
            {
                held.last_sent = Some(now);
            }
        }
    }

    /// When [`Lldp::tick`] is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let all = self.all.borrow();
        let ends = |held: &InterfaceEntry| {
            let (neighbor, at) = held.heard.as_ref()?;
            Some(at.after(Duration::from_secs(neighbor.ttl.into())))
        };
        all.values().flat_map(|held| [Some(held.next), ends(held)]).flatten().min()
    }

    /// Sends a PDU; false where there is no link, or no buffer.
    fn send(&self, index: SwIfIndex, ttl: u16) -> bool {
        let (Ok(data), Ok(name)) = (self.interfaces.data(index), self.interfaces.name(index)) else {
            return false;
        };
        if !data.flags().all(IfFlags::ADMIN_UP.set(IfFlags::LINK_UP, true)) {
            return false;
        }
        let (all, settings) = (self.all.borrow(), self.settings.borrow());
        let Some(InterfaceEntry { on, .. }) = all.get(&index) else { return false };
        let own = OwnAnnouncement {
            mac: data.mac(),
            port: &name,
            ttl,
            description: &on.description,
            system: &settings.system_name,
            management: (on.management_ip4, on.management_ip6, index.0, &on.management_oid),
        };
        self.interfaces.send_frame(index, NEAREST_BRIDGE, EtherType::LLDP, &own.bytes())
    }

    /// All interfaces where it is switched on.
    pub fn list(&self) -> Vec<Look> {
        let look = |(index, held): (&SwIfIndex, &InterfaceEntry)| {
            let InterfaceEntry { on, heard, last_sent, .. } = held;
            Look { index: *index, on: on.clone(), heard: *heard, last_sent: *last_sent }
        };
        self.all.borrow().iter().map(look).collect()
    }
}
