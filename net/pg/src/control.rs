//! The control plane of the packet generator.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_graph::{FeatureSpec, Graph, NoNext, NodeIndex, PacketNode};
use shoal_interface::{
    Create, DEVICE_INPUT_ARC, Event, IfFlags, InterfaceError, Interfaces, SwIfIndex, random_mac,
};
use shoal_module::{Control, InitError};
use shoal_wire::MacAddress;

use crate::capture::Capture;
use crate::interface::{Interface, Mode, PgDevice, Port};
use crate::node::{inject::InjectQueue, input, mac_filter::MacFilter, tx::Tx};
use crate::{PgError, Sink};

mod streams;

pub use streams::{Change, StreamInfo};

/// MTU of a new interface, as VPP's.
const MTU: u16 = 9000;

/// What a new packet-generator interface is like.
#[derive(Clone, Debug, Default)]
pub struct CreateInterface {
    /// The number in its name.
    pub id: u32,
    /// Its MAC address; random when left out.
    pub mac: Option<MacAddress>,
    /// Payload bytes of each piece of a large packet; `None`: it takes no large packets.
    pub gso_size: Option<u16>,
    /// Whether received pieces may be joined into large packets.
    pub coalesce: bool,
    /// Whether checksums of received packets are left open, as a host leaves them to a device.
    pub checksum_offload: bool,
    /// What its packets begin with.
    pub mode: Mode,
}

/// The packet generator.
pub struct Pg {
    pub(crate) graph: Rc<Graph>,
    pub(crate) interfaces: Rc<Interfaces>,
    pub(crate) input: NodeIndex,
    all: RefCell<BTreeMap<u32, Interface>>,
    streams: RefCell<BTreeMap<u32, streams::Stream>>,
}

impl Pg {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let graph = control.graph()?;
        let interfaces = control.get::<Interfaces>()?;
        let input = graph.add_input::<NoNext, input::Error>(input::NAME)?;
        graph.add_packet(MacFilter { interfaces: interfaces.table() })?;
        // Frames that are for somebody else are not worth a way to another thread.
        graph.add_feature(FeatureSpec {
            arc: DEVICE_INPUT_ARC,
            node: MacFilter::NAME,
            before: &["worker-handoff"],
            after: &[],
        });
        let pg =
            Rc::new(Pg { graph, interfaces, input, all: RefCell::default(), streams: RefCell::default() });
        let weak = Rc::downgrade(&pg);
        pg.interfaces.subscribe(move |_, event| {
            let Some(pg) = weak.upgrade() else { return };
            pg.heard(event);
        });
        Ok(pg)
    }

    fn heard(&self, event: Event) {
        if let Event::Deleting(index) = event {
            // Any interface may have streams.
            self.delete_streams_of(index);
        }
        if self.of(event.interface()).is_none() {
            return;
        }
        match event {
            // The other end of the link is this process: it is there as soon as the operator wants it.
            Event::Admin(index, up) => {
                let _ = self.interfaces.set_link(index, up);
            }
            Event::Deleting(index) => {
                let injects =
                    self.all.borrow().values().find(|i| i.index == index).and_then(|i| i.injects.get());
                if let Some(queue) = injects {
                    let _ = self.graph.remove_queue(queue);
                }
                self.all.borrow_mut().retain(|_, i| i.index != index);
            }
            _ => {}
        }
    }

    /// The interface of a number, or `None` if it is not a packet generator's.
    fn of(&self, index: SwIfIndex) -> Option<Arc<Port>> {
        self.all.borrow().values().find(|i| i.index == index).map(|i| Arc::clone(&i.port))
    }

    fn port(&self, index: SwIfIndex) -> Result<Arc<Port>, PgError> {
        self.of(index)
            .ok_or_else(|| self.no_interface(self.interfaces.name(index).unwrap_or(index.to_string())))
    }

    fn no_interface(&self, name: String) -> PgError {
        let near = self.all.borrow().keys().next().map(|id| format!("pg{id}"));
        PgError::NoInterface(name, near)
    }

    /// Creates `pg<id>`, admin down; the one that is there already if there is one.
    ///
    /// # Errors
    /// The input node of its mode is not part of this router, or interfaces refuse.
    pub fn create_interface(&self, create: &CreateInterface) -> Result<SwIfIndex, PgError> {
        if let Some(there) = self.interface(create.id) {
            return Ok(there);
        }
        let name = format!("pg{}", create.id);
        let port = Port::new(create);
        let mut flags = IfFlags::TX_CHECKSUM.set(IfFlags::ETHERNET, create.mode == Mode::Ethernet);
        flags = flags.set(IfFlags::TX_GSO, create.gso_size.is_some());
        let device = PgDevice { id: create.id, port: Arc::clone(&port) };
        let mac = match create.mode {
            Mode::Ethernet => create.mac.unwrap_or_else(random_mac),
            Mode::Ip4 | Mode::Ip6 => create.mac.unwrap_or(MacAddress::ZERO),
        };
        let new = Create {
            name: &name,
            mac,
            mtu: MTU,
            flags,
            rx_next: create.mode.node(),
            device: Rc::new(device),
        };
        let tx = Tx { port: Arc::clone(&port), clock: self.graph.clock().clone() };
        let index = self.interfaces.create(&new, tx)?;
        let interface = Interface { index, port, injects: Cell::new(None), made: create.clone() };
        self.all.borrow_mut().insert(create.id, interface);
        Ok(index)
    }

    /// The interface with this number in its name.
    pub fn interface(&self, id: u32) -> Option<SwIfIndex> {
        self.all.borrow().get(&id).map(|i| i.index)
    }

    /// All packet-generator interfaces, and how each was made.
    pub(crate) fn made(&self) -> Vec<(SwIfIndex, CreateInterface)> {
        let made = |i: &Interface| {
            let coalesce = i.port.coalesce.load(Ordering::Relaxed);
            CreateInterface { coalesce, ..i.made.clone() }
        };
        self.all.borrow().values().map(|i| (i.index, made(i))).collect()
    }

    /// All packet-generator interfaces.
    pub fn interfaces(&self) -> Vec<SwIfIndex> {
        self.all.borrow().values().map(|i| i.index).collect()
    }

    /// Takes an interface away, with the streams that come from it.
    ///
    /// # Errors
    /// It is no packet-generator interface.
    pub fn delete_interface(&self, index: SwIfIndex) -> Result<(), PgError> {
        self.port(index)?;
        // `heard` does the rest.
        Ok(self.interfaces.delete(index)?)
    }

    /// Lets an interface that takes large packets merge small ones that it sends, or not.
    ///
    /// # Errors
    /// It is no packet-generator interface.
    pub fn set_coalesce(&self, index: SwIfIndex, on: bool) -> Result<(), PgError> {
        self.port(index)?.coalesce.store(on, Ordering::Relaxed);
        Ok(())
    }

    /// Takes only frames an Ethernet card would take, or all.
    ///
    /// # Errors
    /// It is no packet-generator interface, or its packets have no Ethernet header.
    pub fn filter_macs(&self, index: SwIfIndex, on: bool) -> Result<(), PgError> {
        let mode = self.port(index)?.mode;
        if mode != Mode::Ethernet {
            let why = format!("mode {mode} has no MAC addresses to filter by");
            return Err(InterfaceError::NotPossible(self.interfaces.name(index)?, why).into());
        }
        Ok(self.interfaces.enable_feature(DEVICE_INPUT_ARC, MacFilter::NAME, index, on)?)
    }

    /// Begins to write what an interface sends into a file that is not there yet.
    ///
    /// # Errors
    /// The file exists, or a capture runs.
    pub fn capture(&self, index: SwIfIndex, path: &Path, count: Option<u64>) -> Result<(), PgError> {
        let port = self.port(index)?;
        if path.exists() {
            return Err(PgError::FileExists(path.to_owned()));
        }
        let name = self.interfaces.name(index)?;
        port.watch(|outlets| {
            if let Some(running) = &outlets.capture {
                return Err(PgError::CaptureRuns(name, running.path().to_owned()));
            }
            outlets.capture = Some(Capture::new(path.to_owned(), port.mode.link_type(), count));
            Ok(())
        })
    }

    /// Ends a capture and tells how many packets it took; `None` when none was running.
    ///
    /// # Errors
    /// It is no packet-generator interface.
    pub fn end_capture(&self, index: SwIfIndex) -> Result<Option<u64>, PgError> {
        let port = self.port(index)?;
        Ok(port.watch(|outlets| outlets.capture.take()).map(|c| c.written()))
    }

    /// Keeps what an interface sends in a sink of this process, from now on.
    ///
    /// # Errors
    /// It is no packet-generator interface.
    pub fn attach_sink(&self, index: SwIfIndex) -> Result<Arc<Sink>, PgError> {
        let port = self.port(index)?;
        Ok(port.watch(|outlets| Arc::clone(outlets.sink.get_or_insert_with(Arc::default))))
    }

    /// Hands a packet to an interface as received; it enters the graph in the next round.
    ///
    /// # Errors
    /// It is no packet-generator interface.
    pub fn inject(&self, index: SwIfIndex, packet: Vec<u8>) -> Result<(), PgError> {
        let port = self.port(index)?;
        let first = self.all.borrow().values().any(|i| i.index == index && i.injects.get().is_none());
        if first {
            // The graph's, not the interface's: there is no device behind it to be listed or placed.
            let queue = InjectQueue { port: Arc::clone(&port), interfaces: self.interfaces.table(), index };
            let name = self.interfaces.name(index)?;
            let queue = self.graph.add_queue(&name, 0, self.input, None, Box::new(queue))?;
            let all = self.all.borrow();
            all.values().filter(|i| i.index == index).for_each(|i| i.injects.set(Some(queue)));
        }
        port.inject(packet);
        self.graph.threads().iter().for_each(|t| self.graph.wake(t.index));
        Ok(())
    }
}
