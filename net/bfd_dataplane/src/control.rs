//! The control plane: where bfdd and the router meet, and which sessions it has asked for.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::rc::{Rc, Weak};
use std::time::Duration;

use shoal_bfd::{Bfd, EchoWish, Hop, Parameters, Session, SessionKey, State};
use shoal_graph::clock::Time;
use shoal_graph::counter::Simple;
use shoal_graph::process::{Sender, channel};
use shoal_interface::{HostSide, SwIfIndex};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_lcp::{DaemonAddress, Lcp, ListenError, accept};
use shoal_module::{Control, InitError};

use crate::message::{Message, Request, StateChange, counters, echo_reply, state_change};
use crate::server::{Bfdd, connect};

/// Where bfdd connects to by default.
pub const USUAL: &str = "127.0.0.1:50700";
/// Sessions that are held at most.
const MOST: usize = 1 << 14;
/// How long sessions stay that bfdd does not ask for again after a connection has ended.
const KEPT: Duration = Duration::from_mins(1);
/// Messages that wait for bfdd to read them. Each session has one in the worst moment.
pub(crate) const QUEUE: usize = MOST + 64;

/// What came and what became of it.
pub(crate) struct Counts {
    pub connections: Simple,
    pub turned_away: Simple,
    pub messages: Simple,
    pub malformed: Simple,
    pub refused: Simple,
    pub changes: Simple,
}

impl Counts {
    pub(crate) fn one(counter: &Simple) {
        counter.add(0, 0, 1);
    }
}

/// The connection there is.
pub(crate) struct Peer {
    pub generation: u64,
    since: Time,
    version: Cell<u8>,
    tell: Sender<Vec<u8>>,
    /// The connection ends when it is dropped.
    _open: Sender<()>,
}

/// A session that bfdd has asked for.
struct Wanted {
    request: Request,
    /// Which one it is; none while its interface or our address is not known.
    key: Option<SessionKey>,
    /// It was made for bfdd. If not, an operator has made one between the same ends, and bfdd hears of that.
    is_own: bool,
    /// The connection that asked for it last.
    generation: u64,
}

/// How bfdd and the router meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// Bfdd connects to this address.
    Listen(DaemonAddress),
    /// The router connects to it.
    Connect(DaemonAddress),
}

impl Meeting {
    /// Where they meet.
    pub fn address(&self) -> &DaemonAddress {
        let (Meeting::Listen(address) | Meeting::Connect(address)) = self;
        address
    }
}

/// What there is, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataplaneState {
    /// How bfdd and the router meet.
    pub meeting: Option<Meeting>,
    /// The connection's number, if there is one, and since when.
    pub connected: Option<(u64, Duration)>,
    /// Sessions it has asked for.
    pub sessions: usize,
    /// Of these, how many wait for an interface or an address.
    pub waiting: usize,
    /// How many are up.
    pub up: usize,
}

/// BFD sessions of FRR's bfdd.
pub struct Dataplane {
    control: Weak<Control>,
    bfd: Rc<Bfd>,
    lcp: Rc<Lcp>,
    ip4: Rc<Ip4>,
    ip6: Rc<Ip6>,
    meeting: RefCell<Option<(Meeting, Sender<()>)>>,
    peer: RefCell<Option<Peer>>,
    generation: Cell<u64>,
    wanted: RefCell<BTreeMap<u32, Wanted>>,
    by_key: RefCell<HashMap<SessionKey, u32>>,
    pub(crate) counts: Counts,
}

impl Dataplane {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let graph = control.graph()?;
        let counter = |name: &str| {
            let counter = graph.counters().simple(&format!("/bfd/dataplane/{name}"), 1)?;
            counter.ensure(1);
            Ok::<_, InitError>(counter)
        };
        let counts = Counts {
            connections: counter("connections")?,
            turned_away: counter("connections-turned-away")?,
            messages: counter("messages")?,
            malformed: counter("malformed")?,
            refused: counter("refused")?,
            changes: counter("state-changes")?,
        };
        let plane = Rc::new(Dataplane {
            control: Rc::downgrade(control),
            bfd: control.get()?,
            lcp: control.get()?,
            ip4: control.get()?,
            ip6: control.get()?,
            meeting: RefCell::default(),
            peer: RefCell::default(),
            generation: Cell::new(0),
            wanted: RefCell::default(),
            by_key: RefCell::default(),
            counts,
        });
        let weak = Rc::downgrade(&plane);
        plane.bfd.observe(move |key, session| {
            if let Some(plane) = weak.upgrade() {
                plane.session_changed(key, session);
            }
        });
        Ok(plane)
    }

    /// Meets bfdd there from now on, and nowhere else. Where the router listens and the port is 0, the kernel chooses one, which is
    /// returned.
    ///
    /// # Errors
    /// It is no loopback address, or the port cannot be had: then they meet where they did before.
    pub fn meet(self: &Rc<Self>, meeting: &Meeting) -> Result<SocketAddr, ListenError> {
        let at = meeting.address().at;
        if self.meeting().as_ref() == Some(meeting) {
            return Ok(at);
        }
        let refused = |why: String| ListenError::Refused(at, why);
        let control = self.control.upgrade().ok_or_else(|| refused("the router ends".to_owned()))?;
        let processes = control.processes().map_err(|e| refused(e.to_string()))?;
        let (open, closed) = channel(1);
        match meeting {
            Meeting::Listen(address) => {
                let (socket, at) = address.bind(&control)?;
                self.stop();
                let meeting = Meeting::Listen(DaemonAddress { at, ..address.clone() });
                *self.meeting.borrow_mut() = Some((meeting, open));
                let taker = Bfdd { plane: Rc::clone(self), processes: (*processes).clone() };
                processes.spawn("bfd-dataplane", accept(taker, socket, closed, (*processes).clone()));
                Ok(at)
            }
            Meeting::Connect(address) if !at.ip().is_loopback() => Err(ListenError::NotLoopback(address.at)),
            Meeting::Connect(address) => {
                self.stop();
                *self.meeting.borrow_mut() = Some((meeting.clone(), open));
                let side = control.get::<HostSide>().ok();
                let way = (address.clone(), side);
                processes.spawn("bfd-dataplane", connect(Rc::clone(self), way, closed, (*processes).clone()));
                Ok(at)
            }
        }
    }

    /// Meets bfdd no more, ends the connection there is, and deletes its sessions.
    pub fn stop(&self) {
        self.meeting.borrow_mut().take();
        self.peer.borrow_mut().take();
        self.forget_up_to(u64::MAX);
    }

    /// How they meet.
    pub fn meeting(&self) -> Option<Meeting> {
        self.meeting.borrow().as_ref().map(|(meeting, _)| meeting.clone())
    }

    /// What there is.
    pub fn state(&self) -> DataplaneState {
        let now =
            self.control.upgrade().and_then(|control| control.graph().ok()).map(|graph| graph.clock().now());
        let peer = self.peer.borrow();
        let connected = peer.as_ref().zip(now).map(|(peer, now)| (peer.generation, now.since(peer.since)));
        let wanted = self.wanted.borrow();
        let is_up = |key: SessionKey| self.bfd.state_of(key) == Some(State::Up);
        DataplaneState {
            meeting: self.meeting(),
            connected,
            sessions: wanted.len(),
            waiting: wanted.values().filter(|wanted| wanted.key.is_none()).count(),
            up: wanted.values().filter_map(|wanted| wanted.key).filter(|key| is_up(*key)).count(),
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.peer.borrow().is_some()
    }

    /// A connection has begun: what it is told is sent by these ends. Its number.
    pub(crate) fn connected(&self, tell: Sender<Vec<u8>>, open: Sender<()>, since: Time) -> u64 {
        Counts::one(&self.counts.connections);
        let generation = self.generation.get() + 1;
        self.generation.set(generation);
        let version = Cell::new(1);
        *self.peer.borrow_mut() = Some(Peer { generation, since, version, tell, _open: open });
        generation
    }

    /// It has ended. Its sessions stay for a while, so that they do not go down when bfdd is started again.
    pub(crate) fn disconnected(self: &Rc<Self>, generation: u64) {
        self.peer.borrow_mut().take_if(|peer| peer.generation == generation);
        let Some(processes) = self.control.upgrade().and_then(|control| control.processes().ok()) else {
            return;
        };
        let plane = Rc::downgrade(self);
        processes.clone().spawn_unlisted(async move {
            processes.sleep(KEPT).await;
            if let Some(plane) = plane.upgrade() {
                plane.forget_up_to(generation);
            }
        });
    }

    /// Deletes sessions that no later connection has asked for.
    fn forget_up_to(&self, generation: u64) {
        let is_old = |wanted: &Wanted| wanted.generation <= generation;
        let old: Vec<u32> = self
            .wanted
            .borrow()
            .iter()
            .filter(|(_, wanted)| is_old(wanted))
            .map(|(discr, _)| *discr)
            .collect();
        for discr in old {
            self.forget(discr);
        }
    }

    /// Sends bfdd a message. One that does not read loses its connection, and hears all again with the next.
    fn tell(&self, message: impl FnOnce(u8) -> Vec<u8>) {
        let sent = match &*self.peer.borrow() {
            None => return,
            Some(peer) => peer.tell.try_send(message(peer.version.get())).is_ok(),
        };
        if !sent {
            tracing::warn!("bfd-dataplane: bfdd does not read what it is told, and loses its connection");
            self.peer.borrow_mut().take();
        }
    }

    /// Does what a message says.
    pub(crate) fn hear(&self, version: u8, id: u16, message: Message) {
        Counts::one(&self.counts.messages);
        if let Some(peer) = &*self.peer.borrow() {
            peer.version.set(version);
        }
        match message {
            Message::Echo(times) => self.tell(|version| echo_reply(version, id, &times)),
            Message::Add(request) => self.add(request),
            Message::Delete(discr) => self.forget(discr),
            Message::Counters(discr) => {
                let key = self.wanted.borrow().get(&discr).and_then(|wanted| wanted.key);
                let counts = key.and_then(|key| self.bfd.info(key)).map_or([(0, 0); 4], |info| info.counts);
                self.tell(|version| counters(version, id, discr, counts));
            }
            Message::Malformed => Counts::one(&self.counts.malformed),
            Message::Other => {}
        }
    }

    fn add(&self, request: Request) {
        let discr = request.discr;
        let before = self.wanted.borrow().get(&discr).is_some_and(|before| {
            let old = &before.request;
            let ends = |request: &Request| (request.is_multi_hop, request.local, request.peer);
            ends(old) == ends(&request) && old.interface == request.interface
        });
        if !before {
            self.forget(discr);
            if self.wanted.borrow().len() >= MOST {
                return Counts::one(&self.counts.refused);
            }
        }
        let generation = self.generation.get();
        let mut wanted = self.wanted.borrow_mut();
        match wanted.get_mut(&discr) {
            Some(wanted) => (wanted.request, wanted.generation) = (request, generation),
            None => {
                wanted.insert(discr, Wanted { request, key: None, is_own: false, generation });
            }
        }
        drop(wanted);
        self.decide(discr);
    }

    /// Looks again at sessions that wait, and at those whose interface has gone.
    pub(crate) fn look_again(&self) {
        let is_there = |key: SessionKey| self.bfd.state_of(key).is_some();
        let waiting: Vec<u32> = self
            .wanted
            .borrow()
            .iter()
            .filter(|(_, wanted)| !wanted.key.is_some_and(is_there))
            .map(|(discr, _)| *discr)
            .collect();
        for discr in waiting {
            self.let_go(discr);
            self.decide(discr);
        }
    }

    /// Makes a session, or changes it, as bfdd says now.
    fn decide(&self, discr: u32) {
        let Some((request, key)) = self.wanted.borrow().get(&discr).map(|w| (w.request.clone(), w.key))
        else {
            return;
        };
        let Some(key) = key.or_else(|| self.key_of(&request)) else { return };
        // The same session by another number: bfdd was started again.
        let other = self.by_key.borrow().get(&key).copied().filter(|other| *other != discr);
        let was_own =
            other.and_then(|other| self.wanted.borrow_mut().remove(&other)).is_some_and(|old| old.is_own);
        let parameters = Parameters {
            desired_min_tx: request.min_tx,
            required_min_rx: request.min_rx,
            detect_mult: request.detect_mult,
        };
        let is_own = was_own || self.wanted.borrow().get(&discr).is_some_and(|wanted| wanted.is_own);
        let done = match self.bfd.info(key) {
            None => self.bfd.offload(key, parameters, discr).map(|_| true),
            Some(_) if is_own => self.bfd.modify(key, parameters).map(|_| true),
            Some(_) => Ok(false),
        };
        let is_own = match done {
            Ok(is_own) => is_own,
            Err(error) => {
                Counts::one(&self.counts.refused);
                tracing::warn!("bfd-dataplane: no session with {}: {error}", request.peer);
                return;
            }
        };
        if is_own {
            self.bfd.set_passive(key, request.is_passive);
            let echo = request.echo.map(|(min_tx, min_rx)| EchoWish { min_tx, min_rx });
            if let Err(error) = self.bfd.set_echo_wish(key, echo) {
                Counts::one(&self.counts.refused);
                tracing::warn!("bfd-dataplane: no echo packets to {}: {error}", request.peer);
            }
            if request.is_multi_hop {
                self.bfd.set_least_ttl(key, request.least_ttl);
            }
        }
        self.by_key.borrow_mut().insert(key, discr);
        if let Some(wanted) = self.wanted.borrow_mut().get_mut(&discr) {
            (wanted.key, wanted.is_own) = (Some(key), is_own);
        }
        let Some(info) = self.bfd.info(key) else { return };
        if is_own && (info.session.state == State::AdminDown) != request.is_shut_down {
            // What follows from it is told by the session itself.
            if let Err(error) = self.bfd.set_admin(key, !request.is_shut_down) {
                tracing::warn!("bfd-dataplane: {}: {error}", request.peer);
            }
        } else if info.session.state == State::Up {
            self.session_changed(key, &info.session);
        }
    }

    /// Which session is meant; `None` while its interface or our address there is not known.
    fn key_of(&self, request: &Request) -> Option<SessionKey> {
        let Request { is_multi_hop, local, peer, interface, .. } = request;
        if *is_multi_hop {
            return Some(SessionKey { hop: Hop::Multi, local: (*local)?, peer: *peer });
        }
        let netns = self.meeting().and_then(|meeting| meeting.address().netns.clone());
        let phy = self.lcp.find_phy(netns.as_deref(), |phy, name| {
            if interface.is_empty() { self.address_towards(phy, *peer).is_some() } else { name == interface }
        })?;
        let local = local.or_else(|| self.address_towards(phy, *peer))?;
        Some(SessionKey { hop: Hop::Single(phy), local, peer: *peer })
    }

    /// Our address in a neighbour's network.
    fn address_towards(&self, interface: SwIfIndex, peer: IpAddr) -> Option<IpAddr> {
        match peer {
            IpAddr::V4(peer) => {
                let all = self.ip4.addresses(interface).into_iter();
                all.filter(|prefix| prefix.contains(peer)).map(|prefix| prefix.addr().into()).next()
            }
            IpAddr::V6(peer) if peer.is_unicast_link_local() => {
                self.ip6.link_local(interface).map(IpAddr::V6)
            }
            IpAddr::V6(peer) => {
                let all = self.ip6.addresses(interface).into_iter();
                all.filter(|prefix| prefix.contains(peer)).map(|prefix| prefix.addr().into()).next()
            }
        }
    }

    fn session_changed(&self, key: SessionKey, session: &Session) {
        let Some(discr) = self.by_key.borrow().get(&key).copied() else { return };
        let remote = &session.remote;
        let change = StateChange {
            discr,
            remote_discr: remote.discr,
            remote_demand: remote.demand,
            remote_times: [remote.desired_min_tx, remote.min_rx, remote.min_echo_rx],
            state: session.state as u8,
            diag: session.diag.0,
            remote_detect_mult: remote.detect_mult,
        };
        Counts::one(&self.counts.changes);
        self.tell(|version| state_change(version, &change));
    }

    /// A session waits again.
    fn let_go(&self, discr: u32) -> Option<(SessionKey, bool)> {
        let mut wanted = self.wanted.borrow_mut();
        let wanted = wanted.get_mut(&discr)?;
        let key = wanted.key.take()?;
        self.by_key.borrow_mut().remove(&key);
        Some((key, std::mem::take(&mut wanted.is_own)))
    }

    /// Bfdd wants a session no more.
    fn forget(&self, discr: u32) {
        let had = self.let_go(discr);
        self.wanted.borrow_mut().remove(&discr);
        if let Some((key, true)) = had
            && let Err(error) = self.bfd.del(key)
        {
            tracing::debug!("bfd-dataplane: {}: {error}", key.peer);
        }
    }
}
