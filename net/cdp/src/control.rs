//! The announcements on all ports, and the neighbours heard.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shoal_ethernet::Ethernet;
use shoal_graph::clock::Time;
use shoal_graph::process::Sender;
use shoal_graph::{Edge, Graph, PacketNode};
use shoal_interface::{Event, IfFlags, Interfaces, SwIfIndex};
use shoal_module::{Control, InitError};
use shoal_wire::EtherType;

use crate::node::{CdpInput, ReceivedNeighbour};
use crate::pdu::{GROUP, Neighbor, OwnAnnouncement, PROTOCOL};

/// Between two announcements.
const INTERVAL: Duration = Duration::from_mins(1);
/// Between a change and its announcement, so that many changes are one.
const SOON: Duration = Duration::from_millis(100);

/// A neighbour, for display.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// The port where it is heard.
    pub index: SwIfIndex,
    /// What it says.
    pub neighbor: Neighbor,
    /// When it last spoke.
    pub heard: Time,
}

/// The control plane of CDP.
pub struct Cdp {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    ethernet: Rc<Ethernet>,
    enabled: Arc<AtomicBool>,
    all: RefCell<BTreeMap<SwIfIndex, (Neighbor, Time)>>,
    /// When this router speaks next.
    next: Cell<Time>,
    edge: Cell<Option<Edge>>,
    bell: Sender<()>,
}

impl Cdp {
    pub(crate) fn new(control: &Rc<Control>, bell: Sender<()>) -> Result<Rc<Self>, InitError> {
        let graph = control.graph()?;
        let cdp = Rc::new(Cdp {
            next: Cell::new(graph.clock().now()),
            graph,
            interfaces: control.get()?,
            ethernet: control.get()?,
            enabled: Arc::default(),
            all: RefCell::default(),
            edge: Cell::new(None),
            bell,
        });
        let weak = Rc::downgrade(&cdp);
        cdp.interfaces.subscribe(move |_, event| {
            let Some(cdp) = weak.upgrade() else { return };
            match event {
                Event::Deleting(index) | Event::Link(index, false) | Event::Admin(index, false) => {
                    cdp.all.borrow_mut().remove(&index);
                }
                Event::Link(_, true) | Event::Admin(_, true) | Event::Name(_) => cdp.soon(),
                _ => {}
            }
        });
        Ok(cdp)
    }

    pub(crate) fn enabled(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.enabled)
    }

    /// Edges are numbered when the graph is built.
    pub(crate) fn take_edge(&self, control: &Control) -> Result<(), InitError> {
        self.edge.set(Some(control.get::<Ethernet>()?.edge_to(CdpInput::NAME)?));
        Ok(())
    }

    /// Whether this router speaks and listens.
    pub fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed)
    }

    /// Speaks and listens on all ports, or no longer; then neighbours are forgotten. False when frames of too many protocols have
    /// nodes already.
    pub fn enable(&self, on: bool) -> bool {
        if on
            && let Some(edge) = self.edge.get()
            && !self.ethernet.give_snap(PROTOCOL, edge)
        {
            return false;
        }
        let was = self.enabled.swap(on, Ordering::Relaxed);
        match (was, on) {
            (false, true) => {
                self.next.set(self.now());
                self.tick();
            }
            (true, false) => self.all.borrow_mut().clear(),
            _ => {}
        }
        self.ring();
        true
    }

    fn now(&self) -> Time {
        self.graph.clock().now()
    }

    fn ring(&self) {
        // One that is in the bell already will do.
        let _ = self.bell.try_send(());
    }

    fn soon(&self) {
        if self.is_enabled() {
            self.next.set(self.next.get().min(self.now().after(SOON)));
            self.ring();
        }
    }

    /// A neighbour has spoken.
    pub(crate) fn hear(&self, heard: &ReceivedNeighbour) {
        // The port may have gone since, or the protocol.
        if self.is_enabled() && self.interfaces.name(heard.interface).is_ok() {
            self.all.borrow_mut().insert(heard.interface, (heard.neighbor, self.now()));
            self.ring();
        }
    }

    /// Speaks when it is time to, and forgets whose time is over.
    pub(crate) fn tick(&self) {
        let now = self.now();
        self.all.borrow_mut().retain(|_, (neighbor, at)| ends(neighbor, *at) > now);
        if !self.is_enabled() || self.next.get() > now {
            return;
        }
        self.next.set(now.after(INTERVAL));
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        for index in self.interfaces.indices() {
            if self.interfaces.lacks_link(index) == Ok(None) {
                self.say(index, host.trim());
            }
        }
    }

    /// When [`Cdp::tick`] is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let speaks = self.is_enabled().then(|| self.next.get());
        let all = self.all.borrow();
        all.values().map(|(neighbor, at)| ends(neighbor, *at)).chain(speaks).min()
    }

    fn say(&self, index: SwIfIndex, device: &str) {
        let (Ok(data), Ok(port)) = (self.interfaces.data(index), self.interfaces.name(index)) else { return };
        if data.flags().all(IfFlags::ADMIN_UP.set(IfFlags::LINK_UP, true)) {
            let version = concat!("Shoal ", env!("CARGO_PKG_VERSION"));
            let bytes = OwnAnnouncement { device, port: &port, version }.bytes();
            // Whether it was sent does not matter: it is sent again.
            let _ = self.interfaces.send_frame(index, GROUP, EtherType(bytes.len() as u16), &bytes);
        }
    }

    /// The neighbours, by port.
    pub fn list(&self) -> Vec<Look> {
        let look = |(index, (neighbor, heard)): (&SwIfIndex, &(Neighbor, Time))| Look {
            index: *index,
            neighbor: *neighbor,
            heard: *heard,
        };
        self.all.borrow().iter().map(look).collect()
    }
}

fn ends(neighbor: &Neighbor, heard: Time) -> Time {
    heard.after(Duration::from_secs(neighbor.ttl.into()))
}
