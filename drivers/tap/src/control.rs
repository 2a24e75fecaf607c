//! The control plane of TAPs: create, delete, show.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_graph::process::{Processes, Receiver, Sender, channel};
use shoal_graph::{Graph, NoNext, NodeIndex};
use shoal_interface::{
    Create, Device, Event, IfFlags, InterfaceError, Interfaces, Queue, SwIfIndex, TxPlacement,
};
use shoal_link::{Layer, mac_or_random};
use shoal_module::{Control, InitError};
use shoal_wire::MacAddress;

use crate::kept::{self, KeptImages};
use crate::pair::{self, FramePath, Pair, RingSizes};
use crate::port::{Port, RingFacts};
use crate::rx::{self, NODE, TapRx};
use crate::tx::TapTx;
use crate::{
    Carrier, Coalesce, Error, Lifetime, Mode, NetnsRef, Offload, Tap, TapConfig, VhostNet, host, watch,
};

/// MTU of the host's side unless the operator says otherwise.
const HOST_MTU: u32 = 1500;
/// Most queues of a kind that a TAP may have.
const MAX_QUEUES: u32 = 64;
/// News of queues that wait for the control plane.
const EVENT_QUEUE_LEN: usize = 64;

/// A TAP to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateTap {
    /// The number in its name; the lowest free one if none.
    pub id: Option<u32>,
    /// The router's MAC address on it; a random one if none.
    pub mac: Option<MacAddress>,
    /// Receive queues, flows spread over them; 1 if none.
    pub rx_queues: Option<u32>,
    /// Transmit queues; one for each thread if none.
    pub tx_queues: Option<u32>,
    /// Entries of the rings of vhost-net, receive and transmit, 256 if none; without vhost-net checked and shown only.
    pub ring_sizes: [Option<u32>; 2],
    /// Whether frames cross by vhost-net.
    pub vhost: VhostNet,
    /// Whether packets to the host are merged.
    pub coalesce: Coalesce,
    /// The interface itself and the host's side of it.
    pub tap: TapConfig,
}

/// What `show tap` prints of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapInfo {
    /// Its interface.
    pub index: SwIfIndex,
    /// Its name in the router.
    pub name: String,
    /// The number in its name.
    pub id: u32,
    /// How it was made; the names and addresses are what they became.
    pub config: CreateTap,
    /// Transmit queues.
    pub tx_queues: usize,
    /// The host's number of it.
    pub host_ifindex: u32,
    /// Whether the host sees a cable plugged in.
    pub carrier: bool,
    /// The host has deleted it.
    pub gone: bool,
    /// Frames refused: too long, or a wrong vnet header.
    pub refused: u64,
    /// Whether frames cross by vhost-net, and if not, why.
    pub vhost: Result<VhostInfo, String>,
}

/// What `show tap` prints of the rings of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VhostInfo {
    /// Entries of each ring, receive and transmit.
    pub ring_sizes: [u16; 2],
    /// Entries that came back and made no sense.
    pub malformed: u64,
    /// How often the kernel was woken.
    pub kicks: u64,
    /// How often it woke a receive queue.
    pub interrupts: u64,
}

pub(crate) struct TapInterface {
    pub(crate) tap: Tap,
    id: u32,
    config: CreateTap,
    way: FramePath,
    pub(crate) port: Arc<Port>,
    interfaces: Weak<Interfaces>,
    input: NodeIndex,
    layer: Layer,
    /// The queues that receive, once more: what sends is made of them.
    queues: RefCell<Vec<Pair>>,
    /// Whether the host sees the cable plugged in while the interface is up.
    plugged: Cell<bool>,
    /// It is an earlier process's: until the start is over Linux sees no change of its carrier and state.
    waits: Cell<bool>,
    /// Whether Linux may use it from then on.
    wanted_up: Cell<Option<bool>>,
}

/// All TAPs of one router.
pub struct Taps {
    interfaces: Rc<Interfaces>,
    graph: Rc<Graph>,
    input: NodeIndex,
    all: RefCell<Vec<Rc<TapInterface>>>,
    news: Sender<SwIfIndex>,
    processes: Rc<Processes>,
    pub(crate) kept: KeptImages,
}

fn count(what: &'static str, asked: Option<u32>, default: usize) -> Result<usize, Error> {
    match asked {
        Some(n) if !(1..=MAX_QUEUES).contains(&n) => {
            Err(Error::Config { what, value: n.into(), rule: "from 1 to 64" })
        }
        Some(n) => Ok(n as usize),
        None => Ok(default),
    }
}

fn check_rings(sizes: [Option<u32>; 2]) -> Result<(), Error> {
    let wrong = sizes.into_iter().flatten().find(|n| !n.is_power_of_two() || *n > 32_768);
    let (what, rule) = ("ring size", "a power of two up to 32768");
    wrong.map_or(Ok(()), |n| Err(Error::Config { what, value: n.into(), rule }))
}

/// What a TAP's device can do.
fn abilities(flags: IfFlags, offload: Offload) -> IfFlags {
    let (gso, checksum) = (offload == Offload::Gso, offload != Offload::Nothing);
    flags.set(IfFlags::TX_GSO, gso).set(IfFlags::TX_CHECKSUM, checksum)
}

impl Taps {
    pub(crate) fn new(control: &Rc<Control>) -> Result<(Rc<Self>, Receiver<SwIfIndex>), InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let input = graph.add_input::<NoNext, rx::Error>(NODE)?;
        let (news, heard) = channel(EVENT_QUEUE_LEN);
        let (all, processes) = (RefCell::default(), control.processes()?);
        let kept = KeptImages::inherited();
        let taps = Taps { interfaces: Rc::clone(&interfaces), graph, input, all, news, processes, kept };
        let taps = Rc::new(taps);
        let weak = Rc::downgrade(&taps);
        interfaces.subscribe(move |_, event| {
            if let (Event::Deleting(index), Some(taps)) = (event, weak.upgrade()) {
                if let Ok(tap) = taps.of(index) {
                    kept::forget(&tap.tap);
                }
                taps.all.borrow_mut().retain(|t| t.port.index() != index);
            }
        });
        Ok((taps, heard))
    }

    /// Makes a TAP, as `tapN` (`tunN` in tun mode). It starts admin down, the host's side unplugged.
    ///
    /// # Errors
    /// A number is out of range, the number is taken, or the host refuses; nothing is left behind then.
    pub fn create(&self, create: &CreateTap) -> Result<SwIfIndex, Error> {
        let rx = count("number of receive queues", create.rx_queues, 1)?;
        let tx = count("number of transmit queues", create.tx_queues, self.graph.threads().len())?;
        check_rings(create.ring_sizes)?;
        let kind = if create.tap.mode == Mode::Tap { "tap" } else { "tun" };
        let taken = |id: u32| self.interfaces.by_name(&format!("{kind}{id}")).is_some();
        let id = create.id.or_else(|| (0..=u32::from(u16::MAX)).find(|id| !taken(*id))).unwrap_or(0);
        let name = format!("{kind}{id}");
        if taken(id) {
            return Err(InterfaceError::Exists(name).into());
        }
        let mut config = create.clone();
        config.tap.queues = rx;
        if create.tap.mode == Mode::Tap {
            config.mac = Some(mac_or_random(create.mac));
            config.tap.host.mac = Some(mac_or_random(create.tap.host.mac.map(MacAddress)).0);
        }
        // What is known to fail, before anything is made.
        let way = pair::decide(create)?;
        let (tap, queues) = Tap::create(&config.tap)?;
        config.tap.name = Some(tap.name().to_owned());
        let (way, queues) = pair::open(&tap, queues, way, create.vhost)?;
        // The kernel spreads the host's frames over all open queues, so sending needs the same ones, not more.
        let senders = queues.iter().cycle().take(tx).map(Pair::sender).collect::<Result<Vec<_>, _>>()?;
        let port = Port::new(self.interfaces.table(), senders, self.news.clone(), create.tap.mode);
        port.set_offload(create.tap.offload);
        port.set_coalesce(create.coalesce);
        let port = Arc::new(port);
        if create.tap.lifetime != Lifetime::Inherited {
            tap.set_carrier(Carrier::Off)?;
        }
        let index = self.enter(&name, id, tap, config, way, &port)?;
        let finish = |tap: Rc<TapInterface>| tap.watch(&self.processes).and_then(|()| tap.add_queues(queues));
        if let Err(e) = self.of(index).and_then(finish) {
            let _ = self.interfaces.delete(index);
            return Err(e);
        }
        Ok(index)
    }

    fn enter(
        &self,
        name: &str,
        id: u32,
        tap: Tap,
        config: CreateTap,
        way: FramePath,
        port: &Arc<Port>,
    ) -> Result<SwIfIndex, Error> {
        let ethernet = config.tap.mode == Mode::Tap;
        let mtu = config.tap.host.mtu.unwrap_or(HOST_MTU).min(65_535) as u16;
        let mac = config.mac.unwrap_or(MacAddress::ZERO);
        let interfaces = Rc::downgrade(&self.interfaces);
        let layer = match config.tap.mode {
            Mode::Tap => Layer::Ethernet,
            Mode::Tun => Layer::Ip { ip6: self.graph.node("ip6-input").ok() },
        };
        let (port, input, queues) = (Arc::clone(port), self.input, RefCell::default());
        let waits = Cell::new(config.tap.lifetime == Lifetime::Inherited);
        let tap = Rc::new(TapInterface {
            tap,
            id,
            config,
            way,
            port,
            interfaces,
            input,
            layer,
            queues,
            plugged: Cell::new(true),
            waits,
            wanted_up: Cell::default(),
        });
        let flags = abilities(IfFlags::default(), tap.port.offload()).set(IfFlags::ETHERNET, ethernet);
        let rx_next = if ethernet { "ethernet-input" } else { "ip4-input" };
        let device = Rc::clone(&tap) as Rc<dyn Device>;
        let create = Create { name, mac, mtu, flags, rx_next, device };
        let index = self.interfaces.create(&create, TapTx { port: Arc::clone(&tap.port) })?;
        tap.port.set_index(index);
        self.all.borrow_mut().push(tap);
        Ok(index)
    }

    /// Deletes a TAP, and with it, unless it is persistent, the host's interface.
    ///
    /// # Errors
    /// The interface is no TAP.
    pub fn delete(&self, index: SwIfIndex) -> Result<(), Error> {
        self.of(index)?;
        Ok(self.interfaces.delete(index)?)
    }

    /// What packets of a TAP may owe from now on, on both ways.
    ///
    /// # Errors
    /// The interface is no TAP, the host has deleted it, or refuses; nothing is changed then.
    pub fn set_offload(&self, index: SwIfIndex, offload: Offload) -> Result<(), Error> {
        let tap = self.of(index)?;
        tap.tap.set_offload(offload)?;
        // Packets that are made for another wish on their way here are sent as they are allowed to be then.
        tap.port.set_offload(offload);
        Ok(self.interfaces.modify(index, |d| d.with_flags(abilities(d.flags(), offload)))?)
    }

    /// What packets of a TAP may owe.
    ///
    /// # Errors
    /// The interface is no TAP.
    pub fn offload(&self, index: SwIfIndex) -> Result<Offload, Error> {
        Ok(self.of(index)?.port.offload())
    }

    /// Whether packets to the host are merged from now on.
    ///
    /// # Errors
    /// The interface is no TAP.
    pub fn set_coalesce(&self, index: SwIfIndex, coalesce: Coalesce) -> Result<(), Error> {
        self.of(index)?.port.set_coalesce(coalesce);
        Ok(())
    }

    /// All TAPs, or one of them.
    ///
    /// # Errors
    /// The interface is no TAP.
    pub fn list(&self, only: Option<SwIfIndex>) -> Result<Vec<TapInfo>, Error> {
        match only {
            Some(index) => Ok(vec![self.info(&*self.of(index)?)]),
            None => Ok(self.all.borrow().iter().map(|t| self.info(t)).collect()),
        }
    }

    /// A TAP comes and goes with what a feature made it for.
    pub(crate) fn follows(&self, index: SwIfIndex) -> Result<(), InterfaceError> {
        self.interfaces.set_follows(index)
    }

    pub(crate) fn processes(&self) -> &Rc<Processes> {
        &self.processes
    }

    /// Changes the host's side of a TAP, or looks at it.
    pub(crate) fn change<T: Send>(
        &self,
        index: SwIfIndex,
        f: impl FnOnce(u32) -> Result<T, Error> + Send,
    ) -> Result<T, String> {
        self.of(index).and_then(|tap| tap.tap.change(f)).map_err(|e| e.to_string())
    }

    fn of(&self, index: SwIfIndex) -> Result<Rc<TapInterface>, Error> {
        let found = self.all.borrow().iter().find(|t| t.port.index() == index).cloned();
        found.ok_or_else(|| Error::NoTap {
            name: self.interfaces.name(index).unwrap_or_else(|_| format!("sw_if_index {index}")),
            taps: self
                .all
                .borrow()
                .iter()
                .filter_map(|t| self.interfaces.name(t.port.index()).ok())
                .collect(),
        })
    }

    fn info(&self, tap: &TapInterface) -> TapInfo {
        let index = tap.port.index();
        let mut config = tap.config.clone();
        (config.tap.offload, config.coalesce) = (tap.port.offload(), tap.port.coalesce());
        let queues = tap.queues.borrow().len();
        if queues != config.tap.queues {
            (config.tap.queues, config.rx_queues) = (queues, Some(queues as u32));
        }
        TapInfo {
            index,
            name: self.interfaces.name(index).unwrap_or_default(),
            id: tap.id,
            config,
            tx_queues: tap.port.tx_queues(),
            host_ifindex: tap.tap.ifindex(),
            carrier: tap.plugged.get()
                && !tap.port.is_gone()
                && self.interfaces.data(index).is_ok_and(|d| d.is_up()),
            gone: tap.port.is_gone(),
            refused: tap.port.refused.load(Ordering::Relaxed),
            vhost: tap.vhost(),
        }
    }

    /// Has the service manager keep a TAP for the next start.
    pub(crate) fn keep(&self, index: SwIfIndex) {
        if let Ok(tap) = self.of(index) {
            kept::keep(&tap.tap);
        }
    }

    /// Lets the host use its side of a TAP, or no longer.
    pub(crate) fn set_host_up(&self, index: SwIfIndex, up: bool) -> Result<(), Error> {
        let tap = self.of(index)?;
        if tap.waits.get() {
            tap.wanted_up.set(Some(up));
            return Ok(());
        }
        tap.tap.change(|index| host::set_up(index, up))
    }

    /// The start is over: what earlier processes left is as it is configured now.
    pub(crate) fn settle(&self) {
        let waiting: Vec<_> =
            self.all.borrow().iter().filter(|tap| tap.waits.replace(false)).cloned().collect();
        for tap in waiting {
            let is_up = self.interfaces.data(tap.port.index()).is_ok_and(|d| d.is_up());
            let host =
                tap.wanted_up.take().map_or(Ok(()), |up| tap.tap.change(|index| host::set_up(index, up)));
            if let Err(error) = tap.show_carrier(is_up).and(host) {
                tracing::warn!("{}: its state in Linux is another: {error}", tap.tap.name());
            }
        }
        self.kept.let_the_rest_go();
    }

    /// Shows the host a cable that is plugged in while the interface is up, or one that is pulled.
    pub(crate) fn set_carrier(&self, index: SwIfIndex, plugged: bool) -> Result<(), Error> {
        let tap = self.of(index)?;
        tap.plugged.set(plugged);
        tap.show_carrier(self.interfaces.data(index).is_ok_and(|d| d.is_up()))
    }

    /// Looks at all TAPs after a queue has found its interface deleted by the host.
    fn look(&self) {
        let gone: Vec<_> = self.all.borrow().iter().filter(|t| t.port.is_gone()).cloned().collect();
        for tap in gone {
            let index = tap.port.index();
            let up = self.interfaces.data(index).is_ok_and(|d| d.flags().has(IfFlags::LINK_UP));
            if up && self.interfaces.set_link(index, false).is_ok() {
                let name = self.interfaces.name(index).unwrap_or_default();
                let what = format!("{name}: the host has deleted its interface {}", tap.tap.name());
                tracing::warn!("{what}");
                self.graph.events().write(0, what);
            }
        }
    }
}

/// The process task that hears of deleted interfaces.
pub(crate) async fn listen(heard: Receiver<SwIfIndex>, taps: Weak<Taps>) {
    while heard.recv().await.is_ok() {
        let Some(taps) = taps.upgrade() else { return };
        taps.look();
    }
}

impl TapInterface {
    /// Tells the host whether the cable is plugged in.
    fn show_carrier(&self, is_up: bool) -> Result<(), Error> {
        if self.port.is_gone() || self.waits.get() {
            return Ok(());
        }
        self.tap.set_carrier(if is_up && self.plugged.get() { Carrier::On } else { Carrier::Off })
    }

    /// Has somebody look whether the host deletes the interface. A read says so by itself, a ring does not.
    fn watch(self: &Rc<Self>, processes: &Processes) -> Result<(), Error> {
        if let FramePath::Rings(_) = self.way {
            processes.spawn_unlisted(watch::run(self.tap.watch()?, Rc::downgrade(self))?);
        }
        Ok(())
    }

    fn vhost(&self) -> Result<VhostInfo, String> {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let RingFacts { malformed, kicks, interrupts } = &self.port.rings;
        let info = |ring_sizes: RingSizes| VhostInfo {
            ring_sizes,
            malformed: load(malformed),
            kicks: load(kicks),
            interrupts: load(interrupts),
        };
        match &self.way {
            FramePath::Rings(sizes) => Ok(info(*sizes)),
            FramePath::Calls(why) => Err(why.clone()),
        }
    }

    /// Gives the interface receive queues behind those it has; none when one cannot be.
    fn add_queues(&self, mut new: Vec<Pair>) -> Result<(), Error> {
        let Some(interfaces) = self.interfaces.upgrade() else { return Ok(()) };
        let (index, there) = (self.port.index(), self.queues.borrow().len());
        let receivers = new.iter_mut().map(Pair::receiver).collect::<Result<Vec<_>, _>>()?;
        for (receiver, kept) in receivers.into_iter().zip(new) {
            let number = self.queues.borrow().len() as u32;
            let queue = Box::new(TapRx::new(Arc::clone(&self.port), receiver, number, self.layer));
            let queue = Queue { number, node: self.input, queue, thread: None };
            if let Err(error) = interfaces.add_queue(index, queue) {
                self.drop_queues(there, &interfaces)?;
                return Err(error.into());
            }
            self.queues.borrow_mut().push(kept);
        }
        Ok(())
    }

    /// Takes all receive queues but the first ones away.
    fn drop_queues(&self, left: usize, interfaces: &Interfaces) -> Result<(), Error> {
        // Nothing sends by them any more; then nothing reads, and the last descriptor of each is closed. The kernel
        // spreads the host's frames over those that are left.
        let queues = self.queues.borrow();
        let senders = queues.iter().take(left).cycle().take(self.port.tx_queues()).map(Pair::sender);
        let senders = senders.collect::<Result<Vec<_>, _>>()?;
        let there = queues.len();
        drop(queues);
        for (number, sender) in senders.into_iter().enumerate() {
            self.port.replace_tx(number, sender);
        }
        for number in (left..there).rev() {
            drop(interfaces.remove_queue(self.port.index(), number as u32)?);
            self.queues.borrow_mut().truncate(number);
        }
        Ok(())
    }

    fn change_queues(&self, queues: usize) -> Result<(), Error> {
        let Some(interfaces) = self.interfaces.upgrade() else { return Ok(()) };
        let there = self.queues.borrow().len();
        if queues < there {
            return self.drop_queues(queues, &interfaces);
        }
        let new = (there..queues).map(|_| Pair::open(&self.tap, &self.way)).collect::<Result<Vec<_>, _>>()?;
        self.add_queues(new)
    }
}

impl Device for TapInterface {
    fn set_rx_queues(&self, queues: u32) -> Result<(), String> {
        if self.port.is_gone() {
            return Err("the host has deleted its interface".into());
        }
        let queues = count("number of receive queues", Some(queues), 1);
        queues.and_then(|queues| self.change_queues(queues)).map_err(|e| e.to_string())
    }

    fn class(&self) -> &'static str {
        "virtio"
    }

    /// The host sees the cable plugged in while the interface is up.
    fn set_admin(&self, up: bool) -> Result<(), String> {
        self.show_carrier(up).map_err(|e| e.to_string())?;
        let Some(interfaces) = self.interfaces.upgrade() else { return Ok(()) };
        interfaces.set_link(self.port.index(), up && !self.port.is_gone()).map_err(|e| e.to_string())
    }

    fn tx_placement(&self) -> Option<&TxPlacement> {
        Some(&self.port.placement)
    }

    fn describe(&self) -> String {
        let kind = if self.config.tap.mode == Mode::Tap { "TAP" } else { "TUN" };
        let place = match self.tap.netns() {
            Some(NetnsRef::Name(name)) => format!(" in {name}"),
            Some(NetnsRef::Pid(pid)) => format!(" in pid:{pid}"),
            Some(NetnsRef::Path(path)) => format!(" in {}", path.display()),
            None => String::new(),
        };
        let life = match self.config.tap.lifetime {
            Lifetime::Temporary | Lifetime::Inherited => "",
            Lifetime::Persistent => ", persistent",
            Lifetime::Attached => ", attached",
        };
        let gone = if self.port.is_gone() { ", deleted by the host" } else { "" };
        let offloads = match self.port.offload() {
            Offload::Gso => "checksum tso4 tso6 ecn uso",
            Offload::Checksum => "checksum",
            Offload::Nothing => "none",
        };
        let by = if matches!(self.way, FramePath::Rings(_)) { ", by vhost-net" } else { "" };
        let merged = if self.port.coalesce() == Coalesce::On { ", packets are merged" } else { "" };
        format!(
            "Linux {kind} interface {} (ifindex {}{place}{life}{gone}{by})\nRX Queues: {}\nTX Queues: {}\n\
             offloads: {offloads}{merged}, refused frames {}",
            self.tap.name(),
            self.tap.ifindex(),
            self.queues.borrow().len(),
            self.port.tx_queues(),
            self.port.refused.load(Ordering::Relaxed),
        )
    }
}
