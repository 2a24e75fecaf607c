//! The control plane of punt sockets: which packets are whose, and the router's own socket.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use async_io::Async;
use shoal_adj::Family;
use shoal_buffer::Flags;
use shoal_graph::clock::Time;
use shoal_graph::{Graph, NodeIndex};
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_module::door::{FileError, SocketFile};
use shoal_wire::{FromBytes, Ip4Header, Ip6Header};

use crate::PuntError;
use crate::node::{Item, RxError, SOCKET_RX};

/// Bytes in front of each packet on a socket: an interface's number and what to do, both in the machine's order.
pub(crate) const DESCRIPTOR: usize = 8;
/// Longest packet of a client: IP's longest behind an Ethernet header with two tags.
pub(crate) const LONGEST: usize = 65_535 + 22;
/// Most bytes of a socket's path.
const MOST_NAME: usize = 107;
/// How long a client's socket may be gone before what was registered for it is forgotten.
const GONE: Duration = Duration::from_mins(1);

/// Which packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PuntClass {
    /// Packets for this router to a port of UDP.
    Udp(Family, u16),
    /// Packets for this router of another protocol.
    Protocol(Family, u8),
    /// Packets that a feature punts for a reason.
    Exception(u32),
}

/// What a client wants done with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// It leaves by an interface, its link header in front.
    Output = 0,
    /// IPv4: it is routed, by the table of an interface.
    Ip4 = 1,
    /// IPv6, likewise.
    Ip6 = 2,
}

impl Action {
    fn of(number: u32) -> Option<Action> {
        [Action::Output, Action::Ip4, Action::Ip6].into_iter().find(|action| *action as u32 == number)
    }
}

/// A registration, for display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registration {
    /// Which packets.
    pub what: PuntClass,
    /// The client's socket.
    pub path: PathBuf,
}

struct Client {
    path: PathBuf,
    /// Whether it has taken a packet.
    served: Cell<bool>,
    /// Since when its socket has been gone.
    gone: Cell<Option<Time>>,
}

struct Open {
    socket: Rc<Async<UnixDatagram>>,
    file: SocketFile,
    path: PathBuf,
}

/// How a packet went to its client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sent {
    /// The client has it.
    Yes,
    /// It has not: there is no reader, or it is behind.
    No,
    /// Nor will it have any: its socket has been gone for long.
    Forget,
}

/// Punt sockets of this router.
pub struct Sockets {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    open: RefCell<Option<Open>>,
    clients: RefCell<BTreeMap<PuntClass, Client>>,
}

fn check_path(path: &Path) -> Result<(), PuntError> {
    let wrong = |rule| Err(PuntError::Path { path: path.to_owned(), rule });
    match path.as_os_str().as_encoded_bytes() {
        [] => wrong("it is empty"),
        bytes if bytes.contains(&0) => wrong("it has a byte of 0"),
        bytes if bytes.len() > MOST_NAME => wrong("it has more than 107 bytes"),
        _ if !path.is_absolute() => wrong("it does not begin with /"),
        _ => Ok(()),
    }
}

impl Sockets {
    pub(crate) fn new(graph: Rc<Graph>, interfaces: Rc<Interfaces>) -> Self {
        Sockets { graph, interfaces, open: RefCell::default(), clients: RefCell::default() }
    }

    /// Opens the router's own socket, for its owner and group only.
    ///
    /// # Errors
    /// It is open, or the system refuses.
    pub(crate) fn open(&self, path: &Path) -> Result<Rc<Async<UnixDatagram>>, PuntError> {
        check_path(path)?;
        if let Some(open) = &*self.open.borrow() {
            return Err(PuntError::Open(open.path.clone()));
        }
        let probe = |path: &Path| UnixDatagram::unbound()?.connect(path);
        let (socket, file) = SocketFile::place(path, None, probe, |path| UnixDatagram::bind(path))
            .map_err(|e: FileError| PuntError::Socket(e.to_string()))?;
        let socket = Async::new(socket).map_err(|e| PuntError::Socket(e.to_string()))?;
        let socket = Rc::new(socket);
        let open = Open { socket: Rc::clone(&socket), file, path: path.to_owned() };
        *self.open.borrow_mut() = Some(open);
        Ok(socket)
    }

    /// Where clients send packets to; `None` when no socket is configured.
    pub fn path(&self) -> Option<PathBuf> {
        self.open.borrow().as_ref().map(|open| open.path.clone())
    }

    /// Packets go to a client's socket from now on. It need not be there yet.
    ///
    /// # Errors
    /// No socket is configured, or the path cannot be a client's.
    pub(crate) fn register(&self, what: PuntClass, path: &Path) -> Result<(), PuntError> {
        let ours = self.path().ok_or(PuntError::NotConfigured)?;
        check_path(path)?;
        if path == ours {
            return Err(PuntError::Path { path: ours, rule: "it is the router's own socket" });
        }
        let client = Client { path: path.to_owned(), served: Cell::default(), gone: Cell::default() };
        self.clients.borrow_mut().insert(what, client);
        Ok(())
    }

    /// They do no longer; tells whether they did.
    pub(crate) fn forget(&self, what: PuntClass) -> bool {
        self.clients.borrow_mut().remove(&what).is_some()
    }

    /// All registrations.
    pub fn list(&self) -> Vec<Registration> {
        let clients = self.clients.borrow();
        clients.iter().map(|(what, client)| Registration { what: *what, path: client.path.clone() }).collect()
    }

    /// Sends a packet to its client. `bytes` is memory to be used again.
    pub(crate) fn deliver(&self, item: Item, bytes: &mut Vec<u8>) -> Sent {
        let Item { what, mut buffer } = item;
        bytes.clear();
        {
            let mut main = self.graph.main();
            let pkt = main.cache().packet(&mut buffer);
            bytes.extend(pkt.rx().0.to_ne_bytes());
            bytes.extend((Action::Output as u32).to_ne_bytes());
            pkt.segments().for_each(|segment| bytes.extend_from_slice(segment));
            main.cache().free(buffer);
        }
        let (open, clients) = (self.open.borrow(), self.clients.borrow());
        let (Some(open), Some(client)) = (open.as_ref(), clients.get(&what)) else { return Sent::No };
        match open.socket.get_ref().send_to(bytes, &client.path) {
            Ok(_) => {
                client.served.set(true);
                client.gone.set(None);
                Sent::Yes
            }
            Err(e) if is_gone(&e) && client.served.get() => {
                let now = self.graph.clock().now();
                let since = client.gone.get().unwrap_or(now);
                client.gone.set(Some(since));
                if since.after(GONE) <= now { Sent::Forget } else { Sent::No }
            }
            // It is behind, not there yet, or not for us.
            Err(_) => Sent::No,
        }
    }

    /// Sends on what a client has sent.
    ///
    /// # Errors
    /// Why it goes nowhere.
    pub(crate) fn take(&self, datagram: &[u8], node: NodeIndex) -> Result<(), RxError> {
        let (descriptor, packet) = datagram.split_first_chunk::<DESCRIPTOR>().ok_or(RxError::Readv)?;
        let ([interface, action], _) = descriptor.as_chunks::<4>() else { return Err(RxError::Readv) };
        let interface = SwIfIndex(u32::from_ne_bytes(*interface));
        let action = Action::of(u32::from_ne_bytes(*action)).ok_or(RxError::Action)?;
        // As VPP, at least an IPv4 header.
        if packet.len() < Ip4Header::LEN || packet.len() > LONGEST {
            return Err(RxError::Readv);
        }
        self.interfaces.data(interface).map_err(|_| RxError::Interface)?;
        let packet = match action {
            Action::Output => packet,
            Action::Ip4 => ip4(packet).ok_or(RxError::Malformed)?,
            Action::Ip6 => ip6(packet).ok_or(RxError::Malformed)?,
        };
        let mut main = self.graph.main();
        let mut buffer = main.cache().alloc_data(packet).map_err(|_| RxError::NoBuffer)?;
        let mut pkt = main.cache().packet(&mut buffer);
        let front = pkt.current();
        let meta = pkt.meta_mut();
        meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
        meta.l3 = front;
        match action {
            Action::Output => meta.tx = interface,
            Action::Ip4 | Action::Ip6 => meta.rx = interface,
        }
        main.inject(node, buffer);
        Ok(())
    }

    /// Counts something at a node of this crate that happened on the main thread.
    pub(crate) fn count(&self, counter: usize) {
        self.graph.graph_counters().errors.add(0, counter, 1);
    }

    /// The node clients' packets enter the graph by.
    pub(crate) fn rx_node(&self) -> Option<NodeIndex> {
        self.graph.node(SOCKET_RX).ok()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        tracing::debug!(file = ?self.file, "punt socket closed");
    }
}

/// Whether the socket a packet was sent to has no reader.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

/// An IPv4 packet, cut to the length it says, if it can be one: packets that clients send are unchecked.
fn ip4(packet: &[u8]) -> Option<&[u8]> {
    let (header, _) = Ip4Header::ref_from_prefix(packet).ok()?;
    let (first, length) = (packet.first()?, usize::from(header.total_length()));
    let fits = first >> 4 == 4 && header.header_len() >= Ip4Header::LEN && length >= header.header_len();
    if fits { packet.get(..length) } else { None }
}

/// An IPv6 packet, likewise.
fn ip6(packet: &[u8]) -> Option<&[u8]> {
    let (header, _) = Ip6Header::ref_from_prefix(packet).ok()?;
    let length = Ip6Header::LEN + usize::from(header.payload_length());
    if packet.first()? >> 4 == 6 { packet.get(..length) } else { None }
}
