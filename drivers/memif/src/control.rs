//! The control plane of memifs: create, delete, connect, show.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_graph::process::{Processes, Receiver, Sender, channel};
use shoal_graph::{Graph, NoNext, NodeIndex};
use shoal_interface::{Create, Device, Event, IfFlags, InterfaceError, Interfaces, Queue, SwIfIndex};
use shoal_link::mac_or_random;
use shoal_module::{Control, InitError, RuntimeDir};
use shoal_wire::MacAddress;

use crate::config::{CreateMemif, Role};
use crate::memif::{Listening, Memif, PeerCount, Socket};
use crate::port::Port;
use crate::proto::{Init, Message, Mode, VERSION};
use crate::rx::{self, Layer, MemifRx, NODE};
use crate::session::{self, Negotiated, Ring};
use crate::socket::{self, Place};
use crate::tx::{MemifTx, TxQueue};
use crate::{Detail, Error, MemifInfo, RingInfo, SocketInfo};

/// The socket that is always there, and its file.
const DEFAULT_SOCKET: (u32, &str) = (0, "memif.sock");
/// Largest packet an interface takes at first, without its Ethernet header: VPP's.
const MTU: u16 = 9000;
/// Peers of one socket that may be there at once, beside one for each of its interfaces.
const STRANGERS: usize = 16;
/// News of queues that wait for the control plane.
const EVENT_QUEUE_LEN: usize = 64;
/// Most sockets.
const MOST_SOCKETS: usize = 1024;

/// All memifs of one router, and their sockets.
pub struct Memifs {
    control: Weak<Control>,
    interfaces: Rc<Interfaces>,
    graph: Rc<Graph>,
    input: NodeIndex,
    runtime_dir: PathBuf,
    sockets: RefCell<BTreeMap<u32, Rc<Socket>>>,
    all: RefCell<Vec<Rc<Memif>>>,
    news: Sender<SwIfIndex>,
}

impl Memifs {
    pub(crate) fn new(control: &Rc<Control>) -> Result<(Rc<Self>, Receiver<SwIfIndex>), InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let input = graph.add_input::<NoNext, rx::Error>(NODE)?;
        let (news, heard) = channel(EVENT_QUEUE_LEN);
        let runtime_dir =
            control.get::<RuntimeDir>().map_or_else(|_| "/run/shoal".into(), |dir| dir.0.clone());
        let memifs = Rc::new(Memifs {
            control: Rc::downgrade(control),
            interfaces: Rc::clone(&interfaces),
            graph,
            input,
            runtime_dir,
            sockets: RefCell::default(),
            all: RefCell::default(),
            news,
        });
        let (id, filename) = DEFAULT_SOCKET;
        // A runtime directory whose name is too long for a socket is found out when the socket is used.
        let place = Place::of(filename, &memifs.runtime_dir)
            .unwrap_or_else(|_| Place::File(memifs.runtime_dir.join(filename)));
        memifs.put_socket(id, filename, place);
        let weak = Rc::downgrade(&memifs);
        interfaces.subscribe(move |_, event| {
            if let (Event::Deleting(index), Some(memifs)) = (event, weak.upgrade()) {
                memifs.forget(index);
            }
        });
        Ok((memifs, heard))
    }

    fn put_socket(&self, id: u32, filename: &str, place: Place) {
        let socket = Socket {
            id,
            filename: filename.to_owned(),
            place,
            listening: RefCell::default(),
            peers: Rc::default(),
            refused: Cell::new(0),
            refusal: RefCell::default(),
        };
        self.sockets.borrow_mut().insert(id, Rc::new(socket));
    }

    /// Gives a socket a number; by default the lowest free one. The same number and file once more change nothing.
    ///
    /// # Errors
    /// The number or the file is taken, or the file cannot be a socket's.
    pub fn add_socket(&self, id: Option<u32>, filename: &str) -> Result<u32, Error> {
        let place = Place::of(filename, &self.runtime_dir)?;
        let sockets = self.sockets.borrow();
        let same = sockets.values().find(|s| s.place == place);
        let id =
            id.or_else(|| same.map(|s| s.id)).or_else(|| (1..u32::MAX).find(|id| !sockets.contains_key(id)));
        let id = id.unwrap_or(u32::MAX);
        match (sockets.get(&id), same) {
            (Some(there), _) if there.place == place => return Ok(id),
            (Some(there), _) => {
                return Err(Error::SocketExists { id, filename: there.place.to_string() });
            }
            (None, Some(other)) => {
                return Err(Error::FileTaken { id: other.id, filename: place.to_string() });
            }
            (None, None) => {}
        }
        if id == u32::MAX || sockets.len() >= MOST_SOCKETS {
            let (what, rule) = ("memif socket", "1 to 4294967294, and at most 1024 of them");
            return Err(Error::Range { what, value: id.into(), rule, nearest: 1 });
        }
        drop(sockets);
        place.make_folder(&self.runtime_dir)?;
        self.put_socket(id, filename, place);
        Ok(id)
    }

    /// Takes a socket away.
    ///
    /// # Errors
    /// There is none, it is the one that is always there, or interfaces use it.
    pub fn delete_socket(&self, id: u32) -> Result<(), Error> {
        if id == DEFAULT_SOCKET.0 {
            return Err(Error::FixedSocket(id));
        }
        let socket = self.socket(id)?;
        if let Some(user) = self.all.borrow().iter().find(|m| Rc::ptr_eq(&m.socket, &socket)) {
            return Err(Error::SocketInUse { id, by: self.interfaces.name(user.index())? });
        }
        self.sockets.borrow_mut().remove(&id);
        Ok(())
    }

    fn socket(&self, id: u32) -> Result<Rc<Socket>, Error> {
        let sockets = self.sockets.borrow();
        sockets.get(&id).cloned().ok_or_else(|| {
            let there: Vec<_> = sockets.keys().map(ToString::to_string).collect();
            Error::NoSocket { id, there: there.join(", ") }
        })
    }

    /// Makes a memif, as `memifSOCKET/ID`. It starts admin down, without a peer.
    ///
    /// # Errors
    /// A number is out of range or taken, there is no such socket, interfaces of the other role use it, or the system
    /// lets nothing listen there; nothing is left behind then.
    pub fn create(self: &Rc<Self>, create: &CreateMemif) -> Result<SwIfIndex, Error> {
        create.check()?;
        let socket = self.socket(create.socket)?;
        let name = create.name();
        let taken = |m: &Rc<Memif>| Rc::ptr_eq(&m.socket, &socket) && m.config.id == create.id;
        if self.all.borrow().iter().any(taken) || self.interfaces.by_name(&name).is_some() {
            return Err(InterfaceError::Exists(name).into());
        }
        // One end of a socket listens, the other connects: both in one router would talk to itself.
        let other = |m: &&Rc<Memif>| Rc::ptr_eq(&m.socket, &socket) && m.config.role != create.role;
        if let Some(by) = self.all.borrow().iter().find(other) {
            let (there, wanted) = (by.config.role.name(), create.role.name());
            return Err(Error::Role { id: socket.id, there, by: self.interfaces.name(by.index())?, wanted });
        }
        let ends = || Error::Ends("the router ends".into());
        let processes = self.control.upgrade().and_then(|c| c.processes().ok()).ok_or_else(ends)?;
        let layer = match create.mode {
            Mode::Ethernet => Layer::Ethernet,
            Mode::Ip => Layer::Ip { ip6: self.graph.node("ip6-input").map_err(InterfaceError::from)? },
        };
        let listener = self.listen(create.role, &socket, &processes)?;
        let mut config = create.clone();
        config.mac = (create.mode == Mode::Ethernet).then(|| mac_or_random(create.mac));
        let port = Port::new(self.interfaces.table(), create.tx_queues as usize, self.news.clone());
        let (wake, woken) = channel(1);
        let memif = Rc::new(Memif {
            config,
            socket: Rc::clone(&socket),
            port: Arc::new(port),
            layer,
            admin_up: Cell::new(false),
            wake,
            session: RefCell::default(),
            why: RefCell::new("never connected".into()),
            connections: Cell::new(0),
            kept: RefCell::default(),
        });
        let index = self.enter(&name, &memif)?;
        if let Some(listener) = listener {
            *socket.listening.borrow_mut() = Some(listener);
        }
        if create.role == Role::Slave {
            let (memifs, memif) = (Rc::downgrade(self), Rc::downgrade(&memif));
            let task = session::slave_task(memifs, memif, woken, Rc::downgrade(&processes));
            processes.spawn_unlisted(task);
        }
        Ok(index)
    }

    /// Listens for slaves, with the first master of a socket.
    fn listen(
        self: &Rc<Self>,
        role: Role,
        socket: &Rc<Socket>,
        processes: &Rc<Processes>,
    ) -> Result<Option<Listening>, Error> {
        if role == Role::Slave || socket.listening.borrow().is_some() {
            return Ok(None);
        }
        let listener = Rc::new(socket::listen(&socket.place)?);
        let (close, closed) = channel(1);
        let (memifs, at, weak) = (Rc::downgrade(self), Rc::downgrade(socket), Rc::downgrade(&listener));
        processes.spawn_unlisted(session::listen_task(memifs, at, weak, closed, Rc::downgrade(processes)));
        Ok(Some((listener, close)))
    }

    fn enter(&self, name: &str, memif: &Rc<Memif>) -> Result<SwIfIndex, Error> {
        let ethernet = memif.config.mode == Mode::Ethernet;
        let mac = memif.config.mac.unwrap_or(MacAddress::ZERO);
        let flags = IfFlags::default().set(IfFlags::ETHERNET, ethernet);
        let rx_next = if ethernet { "ethernet-input" } else { "ip4-input" };
        let device = Rc::clone(memif) as Rc<dyn Device>;
        let create = Create { name, mac, mtu: MTU, flags, rx_next, device };
        let index = self.interfaces.create(&create, MemifTx { port: Arc::clone(&memif.port) })?;
        memif.port.set_index(index);
        self.all.borrow_mut().push(Rc::clone(memif));
        if let Err(e) = self.set_queues(memif, Vec::new()) {
            let _ = self.interfaces.delete(index);
            return Err(e.into());
        }
        Ok(index)
    }

    /// Puts other receive queues in the place of those there are; without a peer, queues that rest.
    fn set_queues(&self, memif: &Memif, peers: Vec<crate::consumer::Consumer>) -> Result<(), InterfaceError> {
        let index = memif.index();
        for old in self.interfaces.queues(index)? {
            memif.kept.borrow_mut().insert(old.queue, (old.thread, old.mode));
            drop(self.interfaces.remove_queue(index, old.queue)?);
        }
        let resting = if peers.is_empty() { memif.config.rx_queues as usize } else { 0 };
        let consumers = peers.into_iter().map(Some).chain((0..resting).map(|_| None));
        for (number, consumer) in (0..).zip(consumers) {
            let queue = Box::new(MemifRx::new(Arc::clone(&memif.port), number, memif.layer, consumer));
            let kept = memif.kept.borrow().get(&number).copied();
            // A thread that has gone since is none.
            let there = |thread: &usize| self.graph.threads().iter().any(|t| t.index == *thread);
            let thread = kept.map(|(thread, _)| thread).filter(there);
            self.interfaces.add_queue(index, Queue { number, node: self.input, queue, thread })?;
            if let Some((_, mode)) = kept {
                self.interfaces.set_rx_mode(index, Some(number), mode)?;
            }
        }
        Ok(())
    }

    /// A place for a peer of a socket; none if there are too many.
    pub(crate) fn seat(&self, socket: &Rc<Socket>) -> Option<PeerCount> {
        let interfaces = self.all.borrow().iter().filter(|m| Rc::ptr_eq(&m.socket, socket)).count();
        let there = socket.peers.get();
        (there < interfaces + STRANGERS).then(|| {
            socket.peers.set(there + 1);
            PeerCount(Rc::clone(&socket.peers))
        })
    }

    /// A slave wants an interface of a socket.
    pub(crate) fn welcome(&self, socket: &Rc<Socket>, init: &Init) -> Result<Rc<Memif>, String> {
        if init.version != VERSION {
            return Err(format!("protocol version {:#06x}, must be 0x0200", init.version));
        }
        let found = self
            .all
            .borrow()
            .iter()
            .find(|m| Rc::ptr_eq(&m.socket, socket) && m.config.id == init.id)
            .cloned();
        let memif = found.ok_or_else(|| format!("no interface with id {} on this socket", init.id))?;
        let mode = memif.config.mode;
        if init.mode != Message::mode_number(mode) {
            let said = Mode::of(init.mode).map_or("another", Mode::name);
            return Err(format!("mode {said}, must be {}", mode.name()));
        }
        // Of the same length, whatever it is, and compared to its end: how long it took says nothing.
        let differ = init.secret.iter().zip(&memif.config.secret()).fold(0, |all, (a, b)| all | (a ^ b));
        if differ != 0 {
            return Err("wrong secret".into());
        }
        if !memif.is_wanted() {
            return Err("interface is down".into());
        }
        if memif.session.borrow().is_some() {
            return Err("already connected".into());
        }
        Ok(memif)
    }

    /// Packets may flow.
    pub(crate) fn attach(&self, memif: &Rc<Memif>, remote: String, made: Negotiated) -> Result<(), String> {
        let attached = self.try_attach(memif, remote, made);
        if attached.is_err() {
            memif.port.replace_tx(Vec::new());
            let _ = self.set_queues(memif, Vec::new());
        }
        attached
    }

    fn try_attach(&self, memif: &Rc<Memif>, remote: String, mut made: Negotiated) -> Result<(), String> {
        let (rx, tx) = (std::mem::take(&mut made.rx), std::mem::take(&mut made.tx));
        memif.port.take_broken();
        let mode = memif.config.mode;
        self.set_queues(memif, rx).map_err(|e| e.to_string())?;
        memif.port.replace_tx(tx.into_iter().map(|producer| TxQueue::new(producer, mode)).collect());
        let name = self.interfaces.name(memif.index()).unwrap_or_default();
        tracing::info!("{name}: connected with {} of {remote}", made.remote_interface);
        if let Some(session) = &mut *memif.session.borrow_mut() {
            (session.remote, session.made) = (remote, Some(made));
        }
        memif.connections.set(memif.connections.get() + 1);
        memif.note(String::new());
        self.interfaces.set_link(memif.index(), true).map_err(|e| e.to_string())
    }

    /// The peer is gone, or was sent away.
    pub(crate) fn detach(&self, memif: &Rc<Memif>, why: &str) {
        let session = memif.session.take();
        memif.note(why.to_owned());
        // One that is being deleted has no queues any more.
        if !self.all.borrow().iter().any(|m| Rc::ptr_eq(m, memif)) {
            return;
        }
        let index = memif.index();
        let name = self.interfaces.name(index).unwrap_or_default();
        memif.port.replace_tx(Vec::new());
        if session.is_some_and(|s| s.made.is_some()) {
            self.must(&name, self.set_queues(memif, Vec::new()));
            let what = format!("{name}: disconnected: {why}");
            tracing::warn!("{what}");
            self.graph.events().write(0, what);
        }
        self.must(&name, self.interfaces.set_link(index, false));
    }

    fn must(&self, name: &str, result: Result<(), InterfaceError>) {
        if let Err(e) = result {
            let what = format!("{name}: {e}");
            tracing::warn!("{what}");
            self.graph.events().write(0, what);
        }
    }

    /// An interface is about to be deleted: its task hears of it when its end of the channel goes.
    fn forget(&self, index: SwIfIndex) {
        let at = self.all.borrow().iter().position(|m| m.index() == index);
        let Some(at) = at else { return };
        let memif = self.all.borrow_mut().remove(at);
        memif.stop("interface deleted");
        memif.session.take();
        memif.port.replace_tx(Vec::new());
        let socket = &memif.socket;
        if !self.all.borrow().iter().any(|m| Rc::ptr_eq(&m.socket, socket)) {
            socket.listening.take();
        }
    }

    /// Deletes a memif.
    ///
    /// # Errors
    /// The interface is no memif.
    pub fn delete(&self, index: SwIfIndex) -> Result<(), Error> {
        self.of(index)?;
        Ok(self.interfaces.delete(index)?)
    }

    fn of(&self, index: SwIfIndex) -> Result<Rc<Memif>, Error> {
        let found = self.all.borrow().iter().find(|m| m.index() == index).cloned();
        found.ok_or_else(|| Error::NoMemif {
            name: self.interfaces.name(index).unwrap_or_else(|_| format!("sw_if_index {index}")),
            there: self.all.borrow().iter().filter_map(|m| self.interfaces.name(m.index()).ok()).collect(),
        })
    }

    /// All sockets.
    pub fn sockets(&self) -> Vec<SocketInfo> {
        let info = |socket: &Rc<Socket>| SocketInfo {
            id: socket.id,
            filename: match &socket.place {
                Place::File(path) => path.display().to_string(),
                place @ Place::Abstract(_) => place.to_string(),
            },
            asked: socket.filename.clone(),
            listener: socket.listening.borrow().is_some(),
            peers: socket.peers.get(),
            refused: socket.refused.get(),
            refusal: socket.refusal.borrow().clone(),
        };
        self.sockets.borrow().values().map(info).collect()
    }

    /// All memifs, or one of them.
    ///
    /// # Errors
    /// The interface is no memif.
    pub fn list(&self, only: Option<SwIfIndex>, detail: Detail) -> Result<Vec<MemifInfo>, Error> {
        match only {
            Some(index) => Ok(vec![self.info(&*self.of(index)?, detail)]),
            None => Ok(self.all.borrow().iter().map(|m| self.info(m, detail)).collect()),
        }
    }

    fn info(&self, memif: &Memif, detail: Detail) -> MemifInfo {
        let (index, facts) = (memif.index(), &memif.port.facts);
        let session = memif.session.borrow();
        let made = session.as_ref().and_then(|s| s.made.as_ref());
        let listener = memif.socket.listening.borrow().as_ref().map(|(listener, _)| listener.number());
        MemifInfo {
            index,
            name: self.interfaces.name(index).unwrap_or_default(),
            config: memif.config.clone(),
            admin_up: memif.admin_up.get(),
            connecting: session.is_some() && made.is_none(),
            connected: made.is_some(),
            why: memif.why.borrow().clone(),
            connections: memif.connections.get(),
            remote: session.as_ref().map(|s| s.remote.clone()).unwrap_or_default(),
            remote_interface: made.map(|m| m.remote_interface.clone()).unwrap_or_default(),
            listener_fd: listener,
            conn_fd: session.as_ref().map(|s| s.fd),
            regions: made.map(|m| m.regions.lens().collect()).unwrap_or_default(),
            rings: made
                .map(|m| m.rings.iter().map(|ring| RingInfo::of(ring, detail)).collect())
                .unwrap_or_default(),
            interrupts: facts.interrupts.load(Ordering::Relaxed),
            kicks: facts.kicks.load(Ordering::Relaxed),
            bad: facts.bad.load(Ordering::Relaxed),
        }
    }

    /// Looks at all memifs after a queue has found that its peer writes what cannot be.
    fn look(&self) {
        let broken: Vec<_> = self.all.borrow().iter().filter(|m| m.port.take_broken()).cloned().collect();
        for memif in broken {
            memif.stop("ring index or descriptor that cannot be");
        }
    }
}

impl RingInfo {
    fn of(ring: &Ring, detail: Detail) -> Self {
        let memory = &ring.memory;
        let slots = if detail == Detail::Descriptors { memory.size() } else { 0 };
        RingInfo {
            s2m: ring.s2m,
            index: ring.index,
            place: ring.place,
            event: ring.event,
            head: memory.head(),
            tail: memory.tail(),
            flags: memory.flags(),
            descs: (0..slots).map(|slot| memory.desc(slot)).collect(),
        }
    }
}

/// The process task that hears of peers that write what cannot be.
pub(crate) async fn listen(heard: Receiver<SwIfIndex>, memifs: Weak<Memifs>) {
    while heard.recv().await.is_ok() {
        let Some(memifs) = memifs.upgrade() else { return };
        memifs.look();
    }
}
