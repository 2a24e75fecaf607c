//! The control plane: create, delete, modify, show, and what sessions do to queues.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_graph::process::{Receiver, Sender, channel};
use shoal_graph::{Graph, NoNext, NodeIndex, RxMode};
use shoal_interface::{Create, Device, Event, IfFlags, InterfaceError, Interfaces, SwIfIndex, TxPlacement};
use shoal_link::{Listener, mac_or_random};
use shoal_module::{Control, InitError, RuntimeDir};
use shoal_wire::MacAddress;

use crate::config::{CreateVhost, Role};
use crate::features::Features;
use crate::memory::Trust;
use crate::port::Port;
use crate::queue::{Queue, Sender as Ring};
use crate::rx::{self, NODE, VhostRx};
use crate::session::{Gate, Rings, Session};
use crate::socket::{self, Word, path_of};
use crate::task;
use crate::tx::{TxQueue, VhostTx};
use crate::{Detail, Error, RingInfo, VhostInfo};

/// Largest packet an interface takes at first, without its Ethernet header.
const MTU: u16 = 9000;
/// News of queues that wait for the control plane.
const EVENT_QUEUE_LEN: usize = 64;
/// Most interfaces: numbers in their names.
const MOST: u32 = 65_536;

/// One interface, as the control plane and `show hardware-interfaces` see it.
pub(crate) struct Vhost {
    config: RefCell<CreateVhost>,
    path: RefCell<PathBuf>,
    number: Cell<u32>,
    pub(crate) port: Arc<Port>,
    /// Ends the task that listens or connects when it goes.
    life: RefCell<Option<AcceptTask>>,
    /// While a front end is there; what takes the reason to end it.
    session: RefCell<Option<(Session, Sender<String>)>>,
    /// Why there is no guest.
    why: RefCell<String>,
    /// How often a front end has come.
    connections: Cell<u64>,
    /// Front ends that were turned away.
    pub(crate) refused: Cell<u64>,
    /// Receive queues that are there, by number; those of rings, not those that rest.
    queues: RefCell<Vec<u32>>,
    /// Where the operator has put queues, and how they are waited for, by their number.
    kept: RefCell<BTreeMap<u32, (usize, RxMode)>>,
}

/// What a task that waits for front ends lives by.
struct AcceptTask {
    _listener: Option<Rc<Listener>>,
    _end: Sender<()>,
}

impl Vhost {
    pub(crate) fn index(&self) -> SwIfIndex {
        self.port.index()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.path.borrow().clone()
    }

    /// Notes why there is no guest.
    pub(crate) fn note(&self, why: String) {
        *self.why.borrow_mut() = why;
    }

    /// Whether a front end is there.
    pub(crate) fn is_busy(&self) -> bool {
        self.session.borrow().is_some()
    }

    /// Ends the connection, if there is one, for a reason.
    fn stop(&self, why: &str) {
        if let Some((_, stop)) = &*self.session.borrow() {
            // Full: it is being stopped already.
            let _ = stop.try_send(why.to_owned());
        }
    }
}

/// All vhost-user interfaces of one router.
pub struct Vhosts {
    control: Weak<Control>,
    interfaces: Rc<Interfaces>,
    graph: Rc<Graph>,
    input: NodeIndex,
    runtime_dir: PathBuf,
    trust: Trust,
    all: RefCell<Vec<Rc<Vhost>>>,
    news: Sender<SwIfIndex>,
}

pub(crate) fn name_of(number: u32) -> String {
    format!("VirtualEthernet0/0/{number}")
}

impl Vhosts {
    pub(crate) fn new(
        control: &Rc<Control>,
        trust: Trust,
    ) -> Result<(Rc<Self>, Receiver<SwIfIndex>), InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let input = graph.add_input::<NoNext, rx::Error>(NODE)?;
        let (news, heard) = channel(EVENT_QUEUE_LEN);
        let runtime_dir =
            control.get::<RuntimeDir>().map_or_else(|_| "/run/shoal".into(), |dir| dir.0.clone());
        let vhosts = Rc::new(Vhosts {
            control: Rc::downgrade(control),
            interfaces: Rc::clone(&interfaces),
            graph,
            input,
            runtime_dir,
            trust,
            all: RefCell::default(),
            news,
        });
        let weak = Rc::downgrade(&vhosts);
        interfaces.subscribe(move |_, event| {
            if let (Event::Deleting(index), Some(vhosts)) = (event, weak.upgrade()) {
                vhosts.forget(index);
            }
        });
        Ok((vhosts, heard))
    }

    /// Makes an interface, as `VirtualEthernet0/0/N`. It starts admin down, without a guest.
    ///
    /// # Errors
    /// The socket or the number is taken, or the system lets nothing listen there; nothing is left behind then.
    pub fn create(self: &Rc<Self>, create: &CreateVhost) -> Result<SwIfIndex, Error> {
        let path = self.free_path(&create.socket, None)?;
        let number = self.free_number(create.number)?;
        let life = Self::open(create.role, &path)?;
        let mut config = create.clone();
        config.mac = Some(mac_or_random(create.mac));
        let vhost = Rc::new(Vhost {
            config: RefCell::new(config),
            path: RefCell::new(path),
            number: Cell::new(number),
            port: Arc::new(Port::new(self.interfaces.table(), self.news.clone())),
            life: RefCell::default(),
            session: RefCell::default(),
            why: RefCell::new("never connected".into()),
            connections: Cell::new(0),
            refused: Cell::new(0),
            queues: RefCell::default(),
            kept: RefCell::default(),
        });
        let index = self.enter(number, &vhost)?;
        self.begin_task(&vhost, life)?;
        Ok(index)
    }

    fn free_path(&self, socket: &str, but: Option<&Rc<Vhost>>) -> Result<PathBuf, Error> {
        let path = path_of(socket, &self.runtime_dir)?;
        let other = |v: &&Rc<Vhost>| *v.path.borrow() == path && but.is_none_or(|but| !Rc::ptr_eq(but, v));
        if let Some(by) = self.all.borrow().iter().find(other) {
            let by = self.interfaces.name(by.index())?;
            return Err(Error::Taken { file: path.display().to_string(), by });
        }
        Ok(path)
    }

    fn free_number(&self, wanted: Option<u32>) -> Result<u32, Error> {
        let taken = |number: u32| self.interfaces.by_name(&name_of(number)).is_some();
        let number = wanted.or_else(|| (0..MOST).find(|n| !taken(*n))).unwrap_or(MOST);
        if taken(number) { Err(InterfaceError::Exists(name_of(number)).into()) } else { Ok(number) }
    }

    /// The socket of a server.
    fn open(role: Role, path: &std::path::Path) -> Result<Option<Rc<Listener>>, Error> {
        match role {
            Role::Server => Ok(Some(Rc::new(socket::listen(path)?))),
            Role::Client => Ok(None),
        }
    }

    /// Waits for front ends, or goes to find one.
    fn begin_task(self: &Rc<Self>, vhost: &Rc<Vhost>, listener: Option<Rc<Listener>>) -> Result<(), Error> {
        let processes = self.control.upgrade().and_then(|c| c.processes().ok()).ok_or(Error::Ends)?;
        let (end, ended) = channel(1);
        let (vhosts, weak) = (Rc::downgrade(self), Rc::downgrade(vhost));
        match &listener {
            Some(listener) => {
                let listener = Rc::downgrade(listener);
                let task = task::listen(vhosts, weak, listener, ended, (*processes).clone());
                processes.spawn_unlisted(task);
            }
            None => processes.spawn_unlisted(task::connect(vhosts, weak, ended, (*processes).clone())),
        }
        *vhost.life.borrow_mut() = Some(AcceptTask { _listener: listener, _end: end });
        Ok(())
    }

    fn enter(&self, number: u32, vhost: &Rc<Vhost>) -> Result<SwIfIndex, Error> {
        let mac = vhost.config.borrow().mac.unwrap_or(MacAddress::ZERO);
        let flags = IfFlags::TX_CHECKSUM.set(IfFlags::TX_GSO, true).set(IfFlags::ETHERNET, true);
        let device = Rc::clone(vhost) as Rc<dyn Device>;
        let name = name_of(number);
        let create = Create { name: &name, mac, mtu: MTU, flags, rx_next: "ethernet-input", device };
        let index = self.interfaces.create(&create, VhostTx { port: Arc::clone(&vhost.port) })?;
        vhost.port.set_index(index);
        self.all.borrow_mut().push(Rc::clone(vhost));
        if let Err(e) = self.add_queue(vhost, 0, None, Gate::Shut) {
            let _ = self.interfaces.delete(index);
            return Err(e.into());
        }
        Ok(index)
    }

    /// Makes an interface of another socket, or of the other role, out of one; its guest is sent away.
    ///
    /// # Errors
    /// It is none of ours, or the new socket or number is taken; nothing changes then.
    pub fn modify(self: &Rc<Self>, index: SwIfIndex, to: &CreateVhost) -> Result<(), Error> {
        let vhost = self.of(index)?;
        let path = self.free_path(&to.socket, Some(&vhost))?;
        let number = match to.number.filter(|n| *n != vhost.number.get()) {
            Some(number) => Some(self.free_number(Some(number))?),
            None => None,
        };
        // A server's file is its own: it goes before another takes its place.
        let old = if *vhost.path.borrow() == path { vhost.life.take() } else { None };
        drop(old);
        let listener = match Self::open(to.role, &path) {
            Ok(listener) => listener,
            Err(error) => {
                // As it was, as far as that can be had.
                if vhost.life.borrow().is_none() {
                    let (role, path) = (vhost.config.borrow().role, vhost.path());
                    let listener = Self::open(role, &path).ok().flatten();
                    self.begin_task(&vhost, listener)?;
                }
                return Err(error);
            }
        };
        if let Some(number) = number {
            self.interfaces.rename(index, &name_of(number))?;
            vhost.number.set(number);
        }
        vhost.stop("interface modified");
        *vhost.path.borrow_mut() = path;
        let mut config = vhost.config.borrow_mut();
        (config.socket, config.role, config.gso) = (to.socket.clone(), to.role, to.gso);
        drop(config);
        self.begin_task(&vhost, listener)
    }

    /// Adds a receive queue; one without a ring rests.
    fn add_queue(
        &self,
        vhost: &Vhost,
        number: u32,
        queue: Option<Queue>,
        gate: Gate,
    ) -> Result<(), InterfaceError> {
        let (index, open) = (vhost.index(), gate == Gate::Open);
        let queue = Box::new(VhostRx::new(Arc::clone(&vhost.port), number, queue, open));
        let kept = vhost.kept.borrow().get(&number).copied();
        // A thread that has gone since is none.
        let there = |thread: &usize| self.graph.threads().iter().any(|t| t.index == *thread);
        let thread = kept.map(|(thread, _)| thread).filter(there);
        let new = shoal_interface::Queue { number, node: self.input, queue, thread };
        self.interfaces.add_queue(index, new)?;
        if let Some((_, mode)) = kept {
            self.interfaces.set_rx_mode(index, Some(number), mode)?;
        }
        Ok(())
    }

    /// Takes a receive queue away, but keeps the operator's settings of it.
    fn remove_queue(&self, vhost: &Vhost, number: u32) -> Result<(), InterfaceError> {
        let index = vhost.index();
        if let Some(old) = self.interfaces.queues(index)?.into_iter().find(|q| q.queue == number) {
            vhost.kept.borrow_mut().insert(number, (old.thread, old.mode));
            drop(self.interfaces.remove_queue(index, number)?);
        }
        Ok(())
    }

    /// A front end is there; gives what tells its task to stop.
    pub(crate) fn begin(&self, vhost: &Vhost) -> Receiver<String> {
        let (stop, stopped) = channel(1);
        let session = Session::new(Features::offered(vhost.config.borrow().mask), self.trust);
        *vhost.session.borrow_mut() = Some((session, stop));
        vhost.connections.set(vhost.connections.get() + 1);
        vhost.note("the guest's driver is not ready".into());
        vhost.port.take_broken();
        stopped
    }

    /// A front end has sent a message; gives the answer.
    pub(crate) fn hear(&self, vhost: &Vhost, word: Word) -> Result<Option<Vec<u8>>, String> {
        // Taken out meanwhile: a listener for queues that come and go may look at all interfaces.
        let taken = vhost.session.take();
        let Some((mut session, stop)) = taken else { return Err("interface deleted".into()) };
        let answer = session.hear(word.header, &word.body, word.fds, &Attached { vhosts: self, vhost });
        let ready = session.is_ready();
        *vhost.session.borrow_mut() = Some((session, stop));
        self.set_link(vhost, ready);
        answer.map_err(|fault| fault.to_string())
    }

    fn set_link(&self, vhost: &Vhost, up: bool) {
        let index = vhost.index();
        let was = self.interfaces.data(index).is_ok_and(|d| d.flags().has(IfFlags::LINK_UP));
        if up != was {
            let name = self.interfaces.name(index).unwrap_or_default();
            vhost.note(if up { String::new() } else { "the guest's driver is not ready".into() });
            tracing::info!("{name}: the guest is {}", if up { "ready" } else { "not ready" });
            self.must(&name, self.interfaces.set_link(index, up));
        }
    }

    /// The front end is gone, or was sent away.
    pub(crate) fn end(&self, vhost: &Rc<Vhost>, why: &str) {
        let Some((mut session, _)) = vhost.session.take() else { return };
        // One that is being deleted has no queues any more.
        if !self.all.borrow().iter().any(|v| Rc::ptr_eq(v, vhost)) {
            return;
        }
        session.stop_all(&Attached { vhosts: self, vhost });
        let index = vhost.index();
        let name = self.interfaces.name(index).unwrap_or_default();
        let what = format!("{name}: disconnected: {why}");
        tracing::warn!("{what}");
        self.graph.events().write(0, what);
        self.must(&name, self.interfaces.set_link(index, false));
        vhost.note(why.to_owned());
    }

    fn must(&self, name: &str, result: Result<(), InterfaceError>) {
        if let Err(e) = result {
            let what = format!("{name}: {e}");
            tracing::warn!("{what}");
            self.graph.events().write(0, what);
        }
    }

    /// An interface is about to be deleted: its tasks hear of it when their ends of the channels go.
    fn forget(&self, index: SwIfIndex) {
        let at = self.all.borrow().iter().position(|v| v.index() == index);
        let Some(at) = at else { return };
        let vhost = self.all.borrow_mut().remove(at);
        vhost.life.take();
        let session = vhost.session.take();
        (0..crate::session::MOST_PAIRS).for_each(|pair| vhost.port.set_tx(pair, None));
        drop(session);
    }

    /// Deletes an interface.
    ///
    /// # Errors
    /// It is none of ours.
    pub fn delete(&self, index: SwIfIndex) -> Result<(), Error> {
        self.of(index)?;
        Ok(self.interfaces.delete(index)?)
    }

    fn of(&self, index: SwIfIndex) -> Result<Rc<Vhost>, Error> {
        let found = self.all.borrow().iter().find(|v| v.index() == index).cloned();
        found.ok_or_else(|| Error::NoVhost {
            name: self.interfaces.name(index).unwrap_or_else(|_| format!("sw_if_index {index}")),
            there: self.all.borrow().iter().filter_map(|v| self.interfaces.name(v.index()).ok()).collect(),
        })
    }

    /// All vhost-user interfaces, or one of them.
    ///
    /// # Errors
    /// It is none of ours.
    pub fn list(&self, only: Option<SwIfIndex>, detail: Detail) -> Result<Vec<VhostInfo>, Error> {
        match only {
            Some(index) => Ok(vec![self.info(&*self.of(index)?, detail)]),
            None => Ok(self.all.borrow().iter().map(|v| self.info(v, detail)).collect()),
        }
    }

    fn info(&self, vhost: &Vhost, detail: Detail) -> VhostInfo {
        let index = vhost.index();
        let slot = vhost.session.borrow();
        let session = slot.as_ref().map(|(session, _)| session);
        let config = vhost.config.borrow().clone();
        let rings = session.map(Session::rings).unwrap_or_default();
        VhostInfo {
            index,
            name: self.interfaces.name(index).unwrap_or_default(),
            number: vhost.number.get(),
            path: vhost.path.borrow().display().to_string(),
            connected: session.is_some(),
            ready: session.is_some_and(Session::is_ready),
            why: vhost.why.borrow().clone(),
            connections: vhost.connections.get(),
            refused: vhost.refused.get(),
            offered: Features::offered(config.mask),
            features: session.map(Session::features).unwrap_or_default(),
            protocol: session.map(Session::protocol).unwrap_or_default(),
            regions: session.and_then(Session::memory).map(|m| m.regions().collect()).unwrap_or_default(),
            rings: rings.iter().enumerate().filter_map(|(n, ring)| RingInfo::of(n, ring, detail)).collect(),
            config,
        }
    }

    /// Looks at all interfaces after a queue has found that its guest writes what cannot be.
    fn look(&self) {
        let broken: Vec<_> = self.all.borrow().iter().filter(|v| v.port.take_broken()).cloned().collect();
        for vhost in broken {
            vhost.stop("the guest has written a ring index or a chain that cannot be");
        }
    }
}

impl RingInfo {
    fn of(number: usize, ring: &crate::session::Ring, detail: Detail) -> Option<Self> {
        let (progress, vring) = (ring.running.as_ref(), ring.shown.as_ref());
        let count = |pick: fn(&crate::queue::Progress) -> u64| progress.map_or(0, |p| pick(p));
        let slots = if detail == Detail::Descriptors { ring.size } else { 0 };
        (ring.size > 0).then(|| RingInfo {
            number,
            size: ring.size,
            running: progress.is_some(),
            next: progress.map_or(0, |p| p.next.load(Ordering::Relaxed)),
            avail: vring.map(|v| (v.avail_flags(), v.avail_index())).unwrap_or_default(),
            used: vring.map(|v| (v.used_flags(), v.used_index())).unwrap_or_default(),
            kick: ring.kick_number(),
            call: ring.call.number(),
            calls: count(|p| p.calls.load(Ordering::Relaxed)),
            kicks: count(|p| p.kicks.load(Ordering::Relaxed)),
            bad: count(|p| p.bad.load(Ordering::Relaxed)),
            descs: vring.map(|v| (0..slots).map(|i| v.desc(i as u16)).collect()).unwrap_or_default(),
        })
    }
}

/// Where a session's rings go: into the queues of its interface.
struct Attached<'a> {
    vhosts: &'a Vhosts,
    vhost: &'a Vhost,
}

impl Rings for Attached<'_> {
    fn start(&self, ring: u32, queue: Queue, gate: Gate) -> Result<(), String> {
        let (pair, vhost) = (ring / 2, self.vhost);
        if ring.is_multiple_of(2) {
            // virtio 1.2, 5.1.2: even rings are those by which the guest receives.
            let sender = (gate == Gate::Open).then(|| TxQueue::new(Ring::new(queue)));
            vhost.port.set_tx(pair as usize, sender);
            return Ok(());
        }
        let text = |e: InterfaceError| e.to_string();
        // The one that rests makes room for the first that does not.
        let resting = vhost.queues.borrow().is_empty().then_some(0);
        resting.map_or(Ok(()), |number| self.vhosts.remove_queue(vhost, number)).map_err(text)?;
        self.vhosts.add_queue(vhost, pair, Some(queue), gate).map_err(text)?;
        vhost.queues.borrow_mut().push(pair);
        Ok(())
    }

    fn stop(&self, ring: u32) {
        let (pair, vhost) = (ring / 2, self.vhost);
        if ring.is_multiple_of(2) {
            return vhost.port.set_tx(pair as usize, None);
        }
        let name = name_of(vhost.number.get());
        self.vhosts.must(&name, self.vhosts.remove_queue(vhost, pair));
        vhost.queues.borrow_mut().retain(|number| *number != pair);
        if vhost.queues.borrow().is_empty() {
            self.vhosts.must(&name, self.vhosts.add_queue(vhost, 0, None, Gate::Shut));
        }
    }
}

/// The process task that hears of guests that write what cannot be.
pub(crate) async fn listen(heard: Receiver<SwIfIndex>, vhosts: Weak<Vhosts>) {
    while heard.recv().await.is_ok() {
        let Some(vhosts) = vhosts.upgrade() else { return };
        vhosts.look();
    }
}

impl Device for Vhost {
    fn class(&self) -> &'static str {
        "vhost-user"
    }

    /// The link is the guest's to say.
    fn set_admin(&self, _up: bool) -> Result<(), String> {
        Ok(())
    }

    fn tx_placement(&self) -> Option<&TxPlacement> {
        Some(&self.port.placement)
    }

    fn describe(&self) -> String {
        let (config, why) = (self.config.borrow(), self.why.borrow());
        let guest = match (self.is_busy(), why.is_empty()) {
            (true, true) => "guest ready".to_owned(),
            (true, false) => format!("connected, {why}"),
            (false, _) => format!("no guest: {why}"),
        };
        format!(
            "vhost-user interface\nsocket {} type {}, {guest}\nRX Queues: {}\nTX Queues: {}",
            self.path.borrow().display(),
            config.role.name(),
            self.queues.borrow().len(),
            self.port.connected(),
        )
    }
}
