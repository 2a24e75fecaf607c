//! The control plane: what is punted, where to and how much of it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixDatagram;
use std::path::Path as FilePath;
use std::rc::Rc;
use std::sync::Arc;

use async_io::Async;
use shoal_adj::Family;
use shoal_fib::{Fib, HeldPathList, Path};
use shoal_graph::{ALL_INTERFACES, Edge, Graph};
use shoal_icmp::limiter::Rate;
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_ip::{ListenerTable, Listeners};
use shoal_ip4::Ip4Family;
use shoal_ip6::Ip6Family;
use shoal_module::{Control, InitError};
use shoal_wire::IpProtocol;

use crate::node::{Item, Kind, PuntKey, RxError, TxError, V4, V6};
use crate::reasons::OURS;
use crate::sockets::{Sent, Sockets};
use crate::{PuntClass, PuntError, PuntReason, Reasons, Shared};

/// What of the packets for this router is punted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum L4 {
    /// Packets to a port of UDP.
    Udp(u16),
    /// Packets to all ports of UDP without a listener here.
    AllUdp,
    /// A port of TCP, which is not possible.
    Tcp(u16),
    /// All of TCP.
    AllTcp,
    /// Another protocol.
    Protocol(u8),
}

/// Whether it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegistrationState {
    /// From now on.
    Punted,
    /// No more.
    NotPunted,
}

/// By which interface packets came in: one, or all without an entry of their own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rx {
    /// All others.
    All,
    /// This one.
    Interface(SwIfIndex),
}

/// One kind of packets that is punted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Registered {
    /// Whose.
    pub family: Family,
    /// Which.
    pub l4: L4,
}

/// One way of punted packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redirect {
    /// By which interface they came in.
    pub rx: Rx,
    /// Where they go.
    pub paths: Rc<[Path]>,
}

/// What there is of one family.
struct Side {
    family: Family,
    listeners: Arc<Listeners>,
    shared: Shared,
    edge: Cell<Edge>,
    /// The edges to the nodes of sockets: of ports, and of protocols.
    sockets: Cell<[Edge; 2]>,
    /// Ports that were given to the punt node because of [`L4::AllUdp`], so that all of them can be given back.
    all_udp: Cell<bool>,
    registered: RefCell<BTreeSet<L4>>,
    redirects: RefCell<BTreeMap<Rx, HeldPathList>>,
    rate: Cell<Option<Rate>>,
}

/// Protocols that this router answers itself.
const OWN: [IpProtocol; 3] = [IpProtocol::UDP, IpProtocol::ICMP, IpProtocol::ICMP6];

/// What the host gets.
pub struct Punt {
    graph: Rc<Graph>,
    fib: Rc<Fib>,
    interfaces: Rc<Interfaces>,
    sides: [Side; 2],
    sockets: Sockets,
    reasons: Rc<Reasons>,
    /// The edge from `punt-dispatch` to the node of sockets.
    exceptions: Cell<Edge>,
    counters: RefCell<Counters>,
}

/// Where what happens on the main thread is counted: at the nodes of sockets, by their names' order, and at the one by
/// which clients' packets come in.
#[derive(Default)]
struct Counters {
    sent: BTreeMap<&'static str, [usize; 2]>,
    received: BTreeMap<u32, usize>,
}

impl L4 {
    fn words(self) -> String {
        match self {
            L4::Udp(port) => format!("UDP port {port}"),
            L4::AllUdp => "UDP".into(),
            L4::Tcp(port) => format!("TCP port {port}"),
            L4::AllTcp => "TCP".into(),
            L4::Protocol(protocol) => format!("protocol {protocol}"),
        }
    }
}

impl Side {
    fn new(family: Family, listeners: Arc<Listeners>, shared: Shared) -> Side {
        Side {
            family,
            listeners,
            shared,
            edge: Cell::new(Edge::DROP),
            sockets: Cell::new([Edge::DROP; 2]),
            all_udp: Cell::new(false),
            registered: RefCell::default(),
            redirects: RefCell::default(),
            rate: Cell::new(None),
        }
    }

    fn taken(&self, l4: L4) -> PuntError {
        PuntError::Taken { what: l4.words(), family: self.family.name() }
    }

    fn set_udp(&self, port: u16, to: Option<Edge>) {
        self.listeners.set_udp(port, to);
    }

    /// Gives a port to the punt node, if it is free.
    fn take_port(&self, port: u16) -> bool {
        let free = self.listeners.udp(port).is_none_or(|edge| edge == self.edge.get());
        if free {
            self.set_udp(port, Some(self.edge.get()));
        }
        free
    }

    /// Gives a port back that the punt node has.
    fn give_port(&self, port: u16) {
        if self.listeners.udp(port) == Some(self.edge.get()) {
            self.set_udp(port, None);
        }
    }

    /// Packets to a port go to a socket, if the port is free or the punt node's.
    fn take_port_for_socket(&self, port: u16) -> Result<(), PuntError> {
        let [to, _] = self.sockets.get();
        match self.listeners.udp(port) {
            Some(edge) if edge != self.edge.get() && edge != to => Err(self.taken(L4::Udp(port))),
            _ => {
                self.set_udp(port, Some(to));
                Ok(())
            }
        }
    }

    fn take_protocol_for_socket(&self, n: u8) -> Result<(), PuntError> {
        let [_, to] = self.sockets.get();
        match self.listeners.protocol(IpProtocol(n)) {
            Some(edge) if edge != self.edge.get() && edge != to => Err(self.taken(L4::Protocol(n))),
            _ => {
                self.listeners.set_protocol(IpProtocol(n), Some(to));
                Ok(())
            }
        }
    }

    /// They go where they went before.
    fn give_from_socket(&self, what: PuntClass) {
        let (registered, punt) = (self.registered.borrow(), self.edge.get());
        match what {
            PuntClass::Udp(_, port) => {
                let punted = self.all_udp.get() || registered.contains(&L4::Udp(port));
                self.set_udp(port, punted.then_some(punt));
            }
            PuntClass::Protocol(_, n) => {
                let all_tcp = IpProtocol(n) == IpProtocol::TCP && registered.contains(&L4::AllTcp);
                let punted = all_tcp || registered.contains(&L4::Protocol(n));
                self.listeners.set_protocol(IpProtocol(n), punted.then_some(punt));
            }
            PuntClass::Exception(_) => {}
        }
    }

    fn punt(&self, l4: L4) -> Result<(), PuntError> {
        let protocol = |n: u8| {
            let protocol = IpProtocol(n);
            if self.listeners.protocol(protocol).is_some_and(|edge| edge != self.edge.get()) {
                return Err(self.taken(l4));
            }
            self.listeners.set_protocol(protocol, Some(self.edge.get()));
            Ok(())
        };
        match l4 {
            L4::Udp(port) if !self.take_port(port) => return Err(self.taken(l4)),
            L4::Udp(_) => {}
            L4::AllUdp => {
                (0..=u16::MAX).for_each(|port| {
                    self.take_port(port);
                });
                self.all_udp.set(true);
            }
            L4::Tcp(port) => return Err(PuntError::TcpPort(port)),
            L4::AllTcp => protocol(IpProtocol::TCP.0)?,
            L4::Protocol(n) => protocol(n)?,
        }
        self.registered.borrow_mut().insert(l4);
        Ok(())
    }

    fn stop(&self, l4: L4) -> Result<(), PuntError> {
        if let L4::Tcp(port) = l4 {
            return Err(PuntError::TcpPort(port));
        }
        if !self.registered.borrow_mut().remove(&l4) {
            return Err(PuntError::NotPunted { what: l4.words(), family: self.family.name() });
        }
        let named = |port| self.registered.borrow().contains(&L4::Udp(port));
        match l4 {
            L4::Udp(port) if !self.all_udp.get() => self.give_port(port),
            L4::Udp(_) | L4::Tcp(_) => {}
            L4::AllUdp => {
                self.all_udp.set(false);
                (0..=u16::MAX).filter(|port| !named(*port)).for_each(|port| self.give_port(port));
            }
            L4::AllTcp => self.listeners.set_protocol(IpProtocol::TCP, None),
            L4::Protocol(n) => self.listeners.set_protocol(IpProtocol(n), None),
        }
        Ok(())
    }
}

impl Punt {
    pub(crate) fn new(control: &Rc<Control>, shared: [Shared; 2]) -> Result<Self, InitError> {
        let listeners4 = control.get::<ListenerTable<Ip4Family>>()?.shared();
        let listeners6 = control.get::<ListenerTable<Ip6Family>>()?.shared();
        let [ip4, ip6] = shared;
        Ok(Punt {
            graph: control.graph()?,
            fib: control.get()?,
            interfaces: control.get()?,
            sides: [Side::new(Family::Ip4, listeners4, ip4), Side::new(Family::Ip6, listeners6, ip6)],
            sockets: Sockets::new(control.graph()?, control.get()?),
            reasons: control.get()?,
            exceptions: Cell::new(Edge::DROP),
            counters: RefCell::default(),
        })
    }

    /// Where packets leave for the punt arc and for sockets, of both families and of `punt-dispatch`.
    pub(crate) fn set_edges(&self, edges: [[Edge; 3]; 2], exceptions: Edge) {
        for (side, [punt, port, protocol]) in self.sides.iter().zip(edges) {
            side.edge.set(punt);
            side.sockets.set([port, protocol]);
        }
        self.exceptions.set(exceptions);
    }

    fn side(&self, family: Family) -> &Side {
        let [ip4, ip6] = &self.sides;
        match family {
            Family::Ip4 => ip4,
            Family::Ip6 => ip6,
        }
    }

    /// The UDP ports that a node takes, and its name; those that are the host's only for want of a listener are left out.
    ///
    /// # Errors
    /// The node of packets for this router is not there.
    pub fn udp_ports(&self, family: Family) -> Result<Vec<(u16, String)>, PuntError> {
        let side = self.side(family);
        let local = self.graph.node(match family {
            Family::Ip4 => "ip4-local",
            Family::Ip6 => "ip6-local",
        })?;
        let nodes = self.graph.next_nodes(local);
        let name = |edge: Edge| {
            let node =
                nodes.get(usize::from(edge.0)).and_then(|node| self.graph.node_at(node.number() as usize));
            node.map_or_else(String::new, |node| node.name.to_string())
        };
        let registered = side.registered.borrow();
        let host = |port, edge| edge == side.edge.get() && !registered.contains(&L4::Udp(port));
        let all = (1..=u16::MAX).filter_map(|port| Some((port, side.listeners.udp(port)?)));
        Ok(all.filter(|(port, edge)| !host(*port, *edge)).map(|(port, edge)| (port, name(edge))).collect())
    }

    /// Packets for this router of one kind are the host's from now on, or no more.
    ///
    /// # Errors
    /// They are somebody else's, cannot be, or were not the host's.
    pub fn set(&self, what: Registered, standing: RegistrationState) -> Result<(), PuntError> {
        if let L4::Protocol(n) = what.l4
            && (OWN.contains(&IpProtocol(n)) || IpProtocol(n) == IpProtocol::TCP)
        {
            return Err(PuntError::Protocol(n));
        }
        let side = self.side(what.family);
        match standing {
            RegistrationState::Punted => side.punt(what.l4),
            RegistrationState::NotPunted => side.stop(what.l4),
        }
    }

    /// All that is punted.
    pub fn registered(&self) -> Vec<Registered> {
        let of = |side: &Side| {
            let all = side.registered.borrow();
            all.iter().map(|l4| Registered { family: side.family, l4: *l4 }).collect::<Vec<_>>()
        };
        self.sides.iter().flat_map(of).collect()
    }

    /// Punted packets that came in by an interface, or by those without an entry of their own, take these paths.
    ///
    /// # Errors
    /// There is no such interface, or a path cannot be.
    pub fn redirect(&self, family: Family, rx: Rx, paths: &[Path]) -> Result<(), PuntError> {
        let interface = self.known(rx)?;
        let side = self.side(family);
        let held = self.fib.hold(family, paths)?;
        let way = self.fib.held(&held).adj;
        if let Err(e) = self.enable(family, true, side.rate.get().is_some()) {
            self.fib.release(held);
            return Err(e);
        }
        side.shared.ways.set(interface, Some(way));
        let old = side.redirects.borrow_mut().insert(rx, held);
        if let Some(old) = old {
            self.fib.release(old);
        }
        Ok(())
    }

    /// They do no more.
    ///
    /// # Errors
    /// They did not.
    pub fn end_redirect(&self, family: Family, rx: Rx) -> Result<(), PuntError> {
        let interface = self.known(rx)?;
        let side = self.side(family);
        let held = side.redirects.borrow_mut().remove(&rx);
        let Some(held) = held else {
            return Err(PuntError::NotRedirected { rx: self.name(rx) });
        };
        side.shared.ways.set(interface, None);
        self.fib.release(held);
        let some = !side.redirects.borrow().is_empty();
        self.enable(family, some, side.rate.get().is_some())
    }

    fn known(&self, rx: Rx) -> Result<Option<SwIfIndex>, PuntError> {
        match rx {
            Rx::All => Ok(None),
            Rx::Interface(interface) => {
                self.interfaces.data(interface)?;
                Ok(Some(interface))
            }
        }
    }

    /// The interface's name, or `all`.
    pub fn name(&self, rx: Rx) -> String {
        match rx {
            Rx::All => "all".into(),
            Rx::Interface(interface) => self.interfaces.name(interface).unwrap_or_else(|_| "deleted".into()),
        }
    }

    /// All redirects of a family.
    pub fn redirects(&self, family: Family) -> Vec<Redirect> {
        let all = self.side(family).redirects.borrow();
        all.iter().map(|(rx, held)| Redirect { rx: *rx, paths: self.fib.held(held).paths }).collect()
    }

    /// No more packets of a family are punted than this; `None`: as many as there are.
    ///
    /// # Errors
    /// It would be none.
    pub fn set_rate(&self, family: Family, rate: Option<Rate>) -> Result<(), PuntError> {
        if rate.is_some_and(|rate| rate.per_second == 0 || rate.burst == 0) {
            return Err(PuntError::NoRate);
        }
        let side = self.side(family);
        if let Some(rate) = rate {
            side.shared.limiter.set(rate);
        }
        let redirects = !side.redirects.borrow().is_empty();
        self.enable(family, redirects, rate.is_some())?;
        side.rate.set(rate);
        Ok(())
    }

    /// How many packets of a family may be punted.
    pub fn rate(&self, family: Family) -> Option<Rate> {
        self.side(family).rate.get()
    }

    /// Switches the features of a family's arc on and off.
    fn enable(&self, family: Family, redirect: bool, policer: bool) -> Result<(), PuntError> {
        let (arc, nodes) = match family {
            Family::Ip4 => (V4::ARC, [(V4::REDIRECT, redirect), (V4::POLICER, policer)]),
            Family::Ip6 => (V6::ARC, [(V6::REDIRECT, redirect), (V6::POLICER, policer)]),
        };
        for (node, on) in nodes {
            self.graph.enable_feature(arc, node, ALL_INTERFACES, on)?;
        }
        // As VPP: what this router has no use for is punted. Without a redirect its sender gets an error instead.
        let side = self.side(family);
        side.listeners.set_others(redirect.then(|| side.edge.get()));
        Ok(())
    }

    /// The sockets packets go to and come from.
    pub fn sockets(&self) -> &Sockets {
        &self.sockets
    }

    /// Why packets are punted.
    pub fn reasons(&self) -> &Reasons {
        &self.reasons
    }

    /// Opens the router's own socket; tells what to read from.
    ///
    /// # Errors
    /// It is open, or the system refuses.
    pub(crate) fn open_socket(&self, path: &FilePath) -> Result<Rc<Async<UnixDatagram>>, PuntError> {
        let socket = self.sockets.open(path)?;
        let all = self.graph.error_counters();
        let at = |node: &str, name: &str| {
            all.iter().rposition(|(n, counter)| n == node && counter.name == name).unwrap_or(usize::MAX)
        };
        let sent = PuntKey::ALL.map(|by| {
            let name = |error: TxError| {
                <TxError as shoal_graph::ErrorCounters>::COUNTERS
                    .get(shoal_graph::ErrorCounters::index(error) as usize)
                    .map_or("", |counter| counter.name)
            };
            (by.node(), [at(by.node(), name(TxError::Tx)), at(by.node(), name(TxError::Failed))])
        });
        let received = <RxError as shoal_graph::ErrorCounters>::COUNTERS.iter().zip(0..);
        let received = received.map(|(counter, n)| (n, at(crate::node::SOCKET_RX, counter.name)));
        *self.counters.borrow_mut() = Counters { sent: BTreeMap::from(sent), received: received.collect() };
        Ok(socket)
    }

    /// Packets go to a client's socket.
    ///
    /// # Errors
    /// No socket is configured, or packets or path cannot be.
    pub fn register(&self, what: PuntClass, path: &FilePath) -> Result<(), PuntError> {
        if self.sockets.path().is_none() {
            return Err(PuntError::NotConfigured);
        }
        let old = self.sockets.list().into_iter().find(|registration| registration.what == what);
        self.sockets.register(what, path)?;
        let done = match what {
            PuntClass::Udp(_, 0 | u16::MAX) => Err(PuntError::NoPort),
            PuntClass::Udp(family, port) => self.side(family).take_port_for_socket(port),
            PuntClass::Protocol(_, n) if OWN.contains(&IpProtocol(n)) => Err(PuntError::Protocol(n)),
            PuntClass::Protocol(family, n) => self.side(family).take_protocol_for_socket(n),
            PuntClass::Exception(id) => self.reasons.take(PuntReason(id), OURS, Some(self.exceptions.get())),
        };
        if done.is_err() && old.is_none() {
            self.sockets.forget(what);
        }
        done
    }

    /// They do no longer. What did not is no mistake.
    ///
    /// # Errors
    /// No socket is configured.
    pub fn deregister(&self, what: PuntClass) -> Result<(), PuntError> {
        if self.sockets.path().is_none() {
            return Err(PuntError::NotConfigured);
        }
        if self.sockets.forget(what) {
            match what {
                PuntClass::Udp(family, _) | PuntClass::Protocol(family, _) => {
                    self.side(family).give_from_socket(what);
                }
                PuntClass::Exception(id) => self.reasons.take(PuntReason(id), OURS, None)?,
            }
        }
        Ok(())
    }

    /// Sends a packet to its client, and counts how that went.
    pub(crate) fn deliver(&self, item: Item, bytes: &mut Vec<u8>) {
        let what = item.what;
        let sent = self.sockets.deliver(item, bytes);
        let counters = self.counters.borrow().sent.get(PuntKey::of(what).node()).copied();
        if let Some([tx, error]) = counters {
            self.sockets.count(if sent == Sent::Yes { tx } else { error });
        }
        if sent == Sent::Forget {
            tracing::info!(?what, "a punt socket has been gone for a minute: its registration ends");
            // There is a socket, since it was sent by.
            let _ = self.deregister(what);
        }
    }

    /// Takes what a client has sent, and counts what is wrong with it.
    pub(crate) fn take(&self, datagram: &[u8]) {
        let node = self.sockets.rx_node();
        let done = node.map_or(Err(RxError::Socket), |node| self.sockets.take(datagram, node));
        if let Err(error) = done {
            self.count_received(error);
        }
    }

    /// The system gave nothing.
    pub(crate) fn take_failed(&self) {
        self.count_received(RxError::Socket);
    }

    fn count_received(&self, error: RxError) {
        let number = shoal_graph::ErrorCounters::index(error);
        if let Some(counter) = self.counters.borrow().received.get(&number) {
            self.sockets.count(*counter);
        }
    }

    /// An interface goes: nothing comes in by it any more.
    pub(crate) fn forget(&self, interface: SwIfIndex) {
        for family in Family::ALL {
            // Most have none.
            let _ = self.end_redirect(family, Rx::Interface(interface));
        }
    }
}
