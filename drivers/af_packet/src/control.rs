//! The control plane of host interfaces: create, delete, follow the kernel.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_graph::{Graph, NoNext, NodeIndex};
use shoal_interface::{
    Create, Device, Event, IfFlags, InterfaceError, Interfaces, Queue, SwIfIndex, TxPlacement,
};
use shoal_link::{
    AdminState, Layer, Link, LinkChange, LinkEvent, LinkWatch, Stations, mac_or_random, set_admin_state,
    set_mtu,
};
use shoal_module::cli::nearest;
use shoal_module::{Control, InitError};
use shoal_wire::MacAddress;

use crate::port::Port;
use crate::queue::{QueueConfig, TxOffload};
use crate::rx::{HostRx, NODE};
use crate::tx::HostTx;
use crate::{Error, Qdisc, RingVersion, RxConfig, RxHandle, RxRing, rx, watch};

/// Most queues of a kind that an interface may have.
const MAX_QUEUES: u32 = 64;
/// What an interface can do while the kernel does it.
const OFFLOADS: IfFlags = IfFlags::TX_CHECKSUM.set(IfFlags::TX_GSO, true);
/// MTUs an interface of this router may have.
const MTUS: std::ops::RangeInclusive<u32> = 64..=65_535;

/// What the frames of a host interface begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// An Ethernet header.
    #[default]
    Ethernet,
    /// An IP header: the kernel's interface has no link layer (tun, wireguard).
    Ip,
}

/// A host interface to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateHostInterface {
    /// The kernel's name of it.
    pub name: String,
    /// The router's MAC address on it; a random one if none.
    pub mac: Option<MacAddress>,
    /// Receive queues, flows spread over them; 1 if none.
    pub rx_queues: Option<u32>,
    /// Transmit queues; one for each thread if none.
    pub tx_queues: Option<u32>,
    /// What frames begin with.
    pub mode: Mode,
    /// Whether sent frames pass the kernel's queueing discipline.
    pub qdisc: Qdisc,
    /// How the kernel lays received frames out.
    pub version: RingVersion,
    /// Who completes checksums and cuts large packets. Past the queueing discipline it is always the router.
    pub offload: TxOffload,
}

impl Default for CreateHostInterface {
    /// As `create host-interface` without further words.
    fn default() -> Self {
        CreateHostInterface {
            name: String::new(),
            mac: None,
            rx_queues: None,
            tx_queues: None,
            mode: Mode::default(),
            qdisc: Qdisc::Use,
            version: RingVersion::default(),
            offload: TxOffload::default(),
        }
    }
}

/// One host interface, as the control plane and `show hardware-interfaces` see it.
pub(crate) struct HostInterface {
    hosts: Weak<HostInterfaces>,
    /// The kernel's name, as it is now.
    pub(crate) name: RefCell<String>,
    /// The kernel's interface; none while it is gone.
    pub(crate) link: RefCell<Option<Link>>,
    pub(crate) port: Arc<Port>,
    /// The queues as they are, which may be others than were asked for.
    pub(crate) config: Cell<QueueConfig>,
    /// The first receive queue.
    pub(crate) first: RefCell<RxHandle>,
    /// What was asked for.
    asked: CreateHostInterface,
    /// What the kernel's interface takes in; none where it has no Ethernet header, or is gone.
    stations: RefCell<Option<Stations>>,
    /// The router's MAC address.
    mac: Cell<MacAddress>,
    /// Whether frames for all stations are wanted.
    all_frames: Cell<bool>,
    /// Geometry of the receive rings that are open, or were last.
    ring: Cell<RxConfig>,
    /// How often the kernel's interface vanished.
    vanished: Cell<u32>,
}

/// All host interfaces of one router.
pub struct HostInterfaces {
    control: Weak<Control>,
    pub(crate) interfaces: Rc<Interfaces>,
    graph: Rc<Graph>,
    input: NodeIndex,
    all: RefCell<Vec<Rc<HostInterface>>>,
    watching: Cell<bool>,
}

fn is_up(link: &Link) -> bool {
    link.admin == AdminState::Up && link.running
}

fn mtu_of(link: &Link) -> u16 {
    link.mtu.clamp(*MTUS.start(), *MTUS.end()) as u16
}

pub(crate) fn count(what: &'static str, asked: Option<u32>, default: usize) -> Result<usize, Error> {
    match asked {
        Some(n) if !(1..=MAX_QUEUES).contains(&n) => {
            Err(Error::Config { what, value: n.into(), rule: "from 1 to 64" })
        }
        Some(n) => Ok(n as usize),
        None => Ok(default),
    }
}

impl HostInterfaces {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let input = graph.add_input::<NoNext, rx::Error>(NODE)?;
        let hosts = Rc::new(HostInterfaces {
            control: Rc::downgrade(control),
            interfaces: Rc::clone(&interfaces),
            graph,
            input,
            all: RefCell::default(),
            watching: Cell::new(false),
        });
        let weak = Rc::downgrade(&hosts);
        interfaces.subscribe(move |_, event| {
            if let (Event::Deleting(index), Some(hosts)) = (event, weak.upgrade()) {
                hosts.forget(index);
            }
        });
        Ok(hosts)
    }

    /// The kernel's names of all host interfaces.
    pub fn names(&self) -> Vec<String> {
        self.all.borrow().iter().map(|h| h.name.borrow().clone()).collect()
    }

    /// All host interfaces with their kernel names.
    pub fn list(&self) -> Vec<(SwIfIndex, String)> {
        self.all.borrow().iter().map(|h| (h.port.index(), h.name.borrow().clone())).collect()
    }

    /// The host interface of a kernel name.
    ///
    /// # Errors
    /// There is none; the nearest is named.
    pub fn named(&self, name: &str) -> Result<SwIfIndex, Error> {
        let index = self.all.borrow().iter().find(|h| *h.name.borrow() == name).map(|h| h.port.index());
        index.ok_or_else(|| {
            let names = self.names();
            let near = nearest(name, names.iter().map(String::as_str)).map(str::to_owned);
            Error::NoHostInterface { name: name.into(), nearest: near }
        })
    }

    /// Chooses who completes checksums and cuts large packets.
    ///
    /// # Errors
    /// It is no host interface, it sends past the queueing discipline, where the kernel does nothing, or the kernel
    /// refuses.
    pub fn set_offload(&self, index: SwIfIndex, offload: TxOffload) -> Result<(), Error> {
        let found = self.all.borrow().iter().find(|h| h.port.index() == index).cloned();
        let Some(host) = found else {
            let (name, nearest) = (self.interfaces.name(index)?, self.names().into_iter().next());
            return Err(Error::NoHostInterface { name, nearest });
        };
        let config = QueueConfig { offload, ..host.config.get() };
        if config.qdisc == Qdisc::Bypass && offload == TxOffload::Kernel {
            let why = "it sends past the kernel's queueing discipline, so the router completes checksums";
            return Err(InterfaceError::NotPossible(self.interfaces.name(index)?, why.into()).into());
        }
        let link = host.link.borrow().as_ref().map(|l| l.index);
        if let Some(link) = link {
            host.port.replace_tx(config.open_tx(link)?);
        }
        host.config.set(config);
        // A packet that was made for the other one on its way here is completed by either.
        let kernel = offload == TxOffload::Kernel;
        Ok(self.interfaces.modify(index, |d| d.with_flags(d.flags().set(OFFLOADS, kernel)))?)
    }

    /// All host interfaces and what was asked for, with the names the kernel has for them now.
    pub(crate) fn made(&self) -> Vec<(SwIfIndex, CreateHostInterface)> {
        let made = |host: &Rc<HostInterface>| {
            let (name, config) = (host.name.borrow().clone(), host.config.get());
            let bypass = config.qdisc == Qdisc::Bypass;
            let offload = if bypass { host.asked.offload } else { config.offload };
            // Also where they were changed afterwards.
            let rx_queues =
                if config.rx == 1 { host.asked.rx_queues.and(Some(1)) } else { Some(config.rx as u32) };
            let asked = CreateHostInterface { name, rx_queues, offload, ..host.asked.clone() };
            (host.port.index(), asked)
        };
        self.all.borrow().iter().map(made).collect()
    }

    /// Takes a kernel interface into the router, as `host-NAME`. It starts admin down.
    ///
    /// # Errors
    /// The kernel has no such interface or refuses; a number is out of range; the interface is taken already. Nothing
    /// is left behind then.
    pub fn create(self: &Rc<Self>, create: &CreateHostInterface) -> Result<SwIfIndex, Error> {
        self.watch()?;
        let link = find(&create.name)?;
        let layer = self.layer(create.mode, &link)?;
        let config = QueueConfig {
            rx: count("number of receive queues", create.rx_queues, 1)?,
            tx: count("number of transmit queues", create.tx_queues, self.graph.threads().len())?,
            qdisc: create.qdisc,
            version: create.version,
            // Past its queueing discipline the kernel does nothing for devices that cannot do it themselves.
            offload: if create.qdisc == Qdisc::Bypass { TxOffload::Router } else { create.offload },
            layer,
        };
        let name = format!("host-{}", create.name);
        if self.interfaces.by_name(&name).is_some() {
            return Err(InterfaceError::Exists(name).into());
        }
        let (rings, tx) = config.open(&link)?;
        let first = first_of(&rings)?;
        let (ethernet, rx_next) = match layer {
            Layer::Ethernet => (true, "ethernet-input"),
            Layer::Ip { .. } => (false, "ip4-input"),
        };
        let mac = if ethernet { mac_or_random(create.mac) } else { MacAddress::ZERO };
        let port = Arc::new(Port::new(self.interfaces.table(), tx));
        let host = Rc::new(HostInterface {
            hosts: Rc::downgrade(self),
            name: RefCell::new(create.name.clone()),
            link: RefCell::new(Some(link.clone())),
            port: Arc::clone(&port),
            config: Cell::new(config),
            first: RefCell::new(first),
            asked: create.clone(),
            stations: RefCell::new(None),
            mac: Cell::new(mac),
            all_frames: Cell::new(false),
            ring: Cell::new(config.ring(&link)),
            vanished: Cell::new(0),
        });
        host.take_stations(&link)?;
        let kernel = config.offload == TxOffload::Kernel;
        let flags = IfFlags::default()
            .set(OFFLOADS, kernel)
            .set(IfFlags::ETHERNET, ethernet)
            .set(IfFlags::LINK_UP, is_up(&link));
        let device = Rc::clone(&host) as Rc<dyn Device>;
        let create = Create { name: &name, mac, mtu: mtu_of(&link), flags, rx_next, device };
        let index = self.interfaces.create(&create, HostTx { port: Arc::clone(&port) })?;
        port.set_index(index);
        self.all.borrow_mut().push(Rc::clone(&host));
        if let Err(e) = self.add_queues(&host, 0, rings) {
            let _ = self.interfaces.delete(index);
            return Err(e);
        }
        Ok(index)
    }

    /// Gives a kernel interface back, by its kernel name.
    ///
    /// # Errors
    /// It is not one of the router's.
    pub fn delete(&self, name: &str) -> Result<(), Error> {
        let index = self.named(name)?;
        Ok(self.interfaces.delete(index)?)
    }

    fn layer(&self, mode: Mode, link: &Link) -> Result<Layer, Error> {
        match (mode, link.mac) {
            (Mode::Ethernet, Some(_)) => Ok(Layer::Ethernet),
            (Mode::Ip, None) => Ok(Layer::Ip { ip6: self.graph.node("ip6-input").ok() }),
            (Mode::Ethernet, None) => Err(Error::Mode { name: link.name.clone(), has: "no", mode: "ip" }),
            (Mode::Ip, Some(_)) => Err(Error::Mode { name: link.name.clone(), has: "an", mode: "ethernet" }),
        }
    }

    /// Places receive queues, numbered from `from` on.
    pub(crate) fn add_queues(
        &self,
        host: &HostInterface,
        from: usize,
        rings: Vec<RxRing>,
    ) -> Result<(), Error> {
        let index = host.port.index();
        for (number, ring) in (from as u32..).zip(rings) {
            let queue = Box::new(HostRx::new(Arc::clone(&host.port), ring, number, host.config.get().layer));
            self.interfaces.put_queue(index, Queue { number, node: self.input, queue, thread: None })?;
        }
        Ok(())
    }

    /// An interface is about to be deleted: its sockets are closed when its queues go.
    fn forget(&self, index: SwIfIndex) {
        let at = self.all.borrow().iter().position(|h| h.port.index() == index);
        if let Some(at) = at {
            let host = self.all.borrow_mut().remove(at);
            host.port.replace_tx(Vec::new());
        }
    }

    /// Starts following the kernel, with the first host interface.
    fn watch(self: &Rc<Self>) -> Result<(), Error> {
        if self.watching.get() {
            return Ok(());
        }
        let watch = LinkWatch::open()?;
        let control = self.control.upgrade().ok_or_else(|| Error::NoWatch("it ends".into()))?;
        let processes = control.processes().map_err(|e| Error::NoWatch(e.to_string()))?;
        processes.spawn(watch::NAME, watch::run(watch, Rc::downgrade(self))?);
        self.watching.set(true);
        Ok(())
    }

    /// The kernel announced a change.
    pub(crate) fn link_event(&self, event: &LinkEvent) {
        let all = self.all.borrow().clone();
        for host in all {
            let known = host.link.borrow().as_ref().map(|l| l.index);
            if known == Some(event.link.index) {
                self.changed(&host, event);
            } else if known.is_none()
                && *host.name.borrow() == event.link.name
                && event.change != LinkChange::Deleted
            {
                self.reopen(&host, &event.link);
            }
        }
    }

    fn changed(&self, host: &HostInterface, event: &LinkEvent) {
        let (index, link) = (host.port.index(), &event.link);
        if event.change == LinkChange::Deleted {
            *host.link.borrow_mut() = None;
            *host.stations.borrow_mut() = None;
            host.vanished.set(host.vanished.get() + 1);
            self.say(&format!(
                "host-{0}: the kernel's interface {0} is gone, waiting for it",
                host.name.borrow()
            ));
            self.must("link down", self.interfaces.set_link(index, false));
            return;
        }
        *host.link.borrow_mut() = Some(link.clone());
        self.must("the frames it takes in", host.follow_mac(host.mac.get()));
        match &event.change {
            LinkChange::Renamed { from } => {
                self.say(&format!(
                    "the kernel's interface {from} of this router is called {} now",
                    link.name
                ));
                host.name.borrow_mut().clone_from(&link.name);
            }
            LinkChange::Mtu => {
                let set = self.interfaces.follow_mtu(index, mtu_of(link));
                self.must("the kernel's MTU", set);
            }
            _ => {}
        }
        self.must("link", self.interfaces.set_link(index, is_up(link)));
    }

    /// An interface of the name has come back: new rings and queues on it. What fails is tried again at the
    /// interface's next change.
    fn reopen(&self, host: &HostInterface, link: &Link) {
        let index = host.port.index();
        let wanted = self.interfaces.data(index).is_ok_and(|d| d.is_up());
        let opened = (|| {
            if wanted && link.admin == AdminState::Down {
                set_admin_state(link.index, AdminState::Up)?;
            }
            let (rings, tx) = host.config.get().open(link)?;
            host.take_stations(link)?;
            host.ring.set(host.config.get().ring(link));
            host.port.replace_tx(tx);
            *host.first.borrow_mut() = first_of(&rings)?;
            self.add_queues(host, 0, rings)
        })();
        let name = host.name.borrow();
        match opened {
            Ok(()) => {
                *host.link.borrow_mut() = Some(link.clone());
                self.say(&format!("host-{name}: the kernel's interface {name} is back"));
                let mtu = self.interfaces.follow_mtu(index, mtu_of(link));
                self.must("the kernel's MTU", mtu);
                self.must("link", self.interfaces.set_link(index, is_up(link)));
            }
            Err(e) => self.say(&format!("host-{name}: the kernel's interface {name} is back, but: {e}")),
        }
    }

    fn say(&self, what: &str) {
        tracing::warn!("{what}");
        self.graph.events().write(0, what);
    }

    fn must<E: std::fmt::Display>(&self, what: &str, result: Result<(), E>) {
        if let Err(e) = result {
            self.say(&format!("host interface, {what}: {e}"));
        }
    }
}

impl HostInterface {
    /// Asks a kernel interface that is new to us for the frames that are wanted.
    fn take_stations(&self, link: &Link) -> Result<(), Error> {
        if link.mac.is_none() {
            return Ok(());
        }
        let mut stations = Stations::open(link.index)?;
        stations.set_all(self.all_frames.get())?;
        stations.set_own(another(link, self.mac.get()))?;
        *self.stations.borrow_mut() = Some(stations);
        Ok(())
    }

    /// The router's MAC address, or the kernel's, is another one.
    fn follow_mac(&self, mac: MacAddress) -> Result<(), Error> {
        if let (Some(stations), Some(link)) = (&mut *self.stations.borrow_mut(), &*self.link.borrow()) {
            stations.set_own(another(link, mac))?;
        }
        self.mac.set(mac);
        Ok(())
    }
}

/// The router's MAC address where it is not the kernel interface's.
fn another(link: &Link, mac: MacAddress) -> Option<MacAddress> {
    (link.mac != Some(mac.0)).then_some(mac)
}

/// The handle of the first receive queue, of which there is always one.
fn first_of(rings: &[RxRing]) -> Result<RxHandle, Error> {
    let none = Error::Config { what: "number of receive queues", value: 0, rule: "from 1 to 64" };
    rings.first().map(RxRing::handle).ok_or(none)
}

impl Device for HostInterface {
    fn set_rx_queues(&self, queues: u32) -> Result<(), String> {
        let Some(hosts) = self.hosts.upgrade() else { return Ok(()) };
        hosts.resize(self, queues).map_err(|e| e.to_string())
    }

    fn class(&self) -> &'static str {
        "af-packet"
    }

    /// As VPP does, the kernel's interface follows the operator's wish, down included.
    fn set_admin(&self, up: bool) -> Result<(), String> {
        let link = self.link.borrow().as_ref().map(|l| l.index);
        let state = if up { AdminState::Up } else { AdminState::Down };
        // While it is gone the wish is kept and done when it is back.
        link.map_or(Ok(()), |index| set_admin_state(index, state)).map_err(|e| e.to_string())
    }

    /// While the kernel's interface is gone the wish is kept and done when it is back.
    fn set_promiscuous(&self, on: bool) -> Result<(), String> {
        if let Some(stations) = &mut *self.stations.borrow_mut() {
            stations.set_all(on).map_err(|e| e.to_string())?;
        }
        self.all_frames.set(on);
        Ok(())
    }

    fn set_mac(&self, mac: MacAddress) -> Result<(), String> {
        self.follow_mac(mac).map_err(|e| e.to_string())
    }

    fn set_mtu(&self, mtu: u32) -> Result<(), String> {
        let mut link = self.link.borrow_mut();
        let Some(link) = link.as_mut() else { return Ok(()) };
        // Only ever raised: a kernel interface with a smaller MTU throws away what its neighbours may still send, and
        // the router keeps to a smaller one by itself.
        if u32::from(mtu_of(link)) >= mtu {
            return Ok(());
        }
        set_mtu(link.index, mtu).map_err(|e| e.to_string())?;
        link.mtu = mtu;
        Ok(())
    }

    fn tx_placement(&self) -> Option<&TxPlacement> {
        Some(&self.port.placement)
    }

    /// It is the kernel's at first, and follows when that changes.
    fn has_given_mtu(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        let (facts, config) = (&self.port.facts, self.config.get());
        let get = |n: &std::sync::atomic::AtomicU64| n.load(Ordering::Relaxed);
        let ring = self.ring.get();
        let mut text = String::new();
        let _ = writeln!(text, "Linux PACKET socket interface v{}", config.version);
        let _ = match &*self.link.borrow() {
            Some(link) => {
                let kind = link.kind.as_deref().unwrap_or("hardware");
                writeln!(text, "kernel interface {} (ifindex {}, {kind})", link.name, link.index)
            }
            None => writeln!(text, "kernel interface {} is gone, waiting for it", self.name.borrow()),
        };
        let _ = writeln!(text, "FEATURES:");
        if config.qdisc == Qdisc::Bypass {
            let _ = writeln!(text, "  qdisc-bpass-enabled");
        }
        if config.offload == TxOffload::Kernel {
            let _ = writeln!(text, "  cksum-gso-enabled");
        }
        if config.rx > 1 {
            let _ = writeln!(text, "  fanout-enabled");
        }
        let _ = writeln!(
            text,
            "RX Queues: {}, each {}:{} nr:{}",
            config.rx,
            if config.version == RingVersion::V3 { "block_size" } else { "frame_size" },
            ring.block_size,
            ring.blocks
        );
        let _ = writeln!(text, "TX Queues: {}", config.tx);
        let _ = write!(
            text,
            "offered {} missed {} ring freezes {} socket errors {} vanished {}",
            get(&facts.offered),
            get(&facts.missed),
            get(&facts.freezes),
            get(&facts.faults),
            self.vanished.get()
        );
        text
    }
}

/// The kernel's interface of this name.
///
/// # Errors
/// There is none, and the nearest is named.
pub(crate) fn find(name: &str) -> Result<Link, Error> {
    match Link::by_name(name) {
        Err(shoal_link::Error::NoInterface { name }) => {
            let nearest = Link::nearest_name(&name);
            Err(Error::NoInterface { name, nearest })
        }
        found => Ok(found?),
    }
}
