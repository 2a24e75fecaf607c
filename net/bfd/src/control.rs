//! The control plane: sessions, keys, and what is sent for them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::{Rc, Weak};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use shoal_adj::{AdjIndex, Adjacencies, Family, Link};
use shoal_fib::Fib;
use shoal_graph::counter::{Combined, Number, Simple};
use shoal_graph::process::Sender;
use shoal_graph::{Deadlines, Graph, StateKey};
use shoal_infra::Published;
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_ip::{InterfaceSet, ListenerTable, Listeners};
use shoal_ip4::{Ip4, Ip4Family};
use shoal_ip6::{Ip6, Ip6Family};
use shoal_module::{Control, InitError};

use crate::auth::{AuthType, Key};
use crate::error::BfdError;
use crate::fib;
use crate::keeping::Keeping;
use crate::node::MULTI_HOP;
use crate::packet::State;
use crate::reception::Reception;
use crate::session::{Nanos, Parameters, Session, Todo};
use crate::shared::{Known, SharedSession};

mod change;
mod keys;
mod serving;
mod wire;

pub(crate) use serving::Ends;
use serving::Served;

/// Sessions there may be, and keys.
const MOST: usize = 1 << 16;
/// The type of service of packets unless it is set: CS6, as VPP's.
pub const TOS: u8 = 192;

/// How far the other end is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Hop {
    /// A neighbour on this interface.
    Single(SwIfIndex),
    /// Several hops away.
    Multi,
}

/// What a session is known by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionKey {
    /// How far the other end is.
    pub hop: Hop,
    /// Our address.
    pub local: IpAddr,
    /// Its address.
    pub peer: IpAddr,
}

/// A session, for display.
#[derive(Clone, Debug)]
pub struct SessionInfo {
    /// Its number among the counters.
    pub index: u32,
    /// What it is known by.
    pub key: SessionKey,
    /// What is known of it.
    pub session: Session,
    /// Packets and bytes: received, sent, echo packets received and sent.
    pub counts: [(u64, u64); 4],
    /// A daemon asked for it: it is no configuration.
    pub is_offloaded: bool,
    /// The lowest TTL with which its packets are taken.
    pub least_ttl: u8,
}

/// From where echo packets seem to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EchoSource {
    /// An interface.
    pub interface: SwIfIndex,
    /// The address of its IPv4 packets, if there can be one.
    pub ip4: Option<Ipv4Addr>,
    /// The same of IPv6.
    pub ip6: Option<Ipv6Addr>,
}

struct Entry {
    key: SessionKey,
    session: Session,
    is_offloaded: bool,
    /// By which its packets go to a neighbour whatever the forwarding table says.
    probe: Option<AdjIndex>,
    /// The lowest TTL with which packets are taken.
    least_ttl: u8,
    /// What other threads know of it.
    shared: Arc<SharedSession>,
    /// Who sees to it.
    served: Served,
    /// When its next packet was due, when its thread was found to be late.
    late: Option<Nanos>,
}

struct Counts {
    rx: Combined,
    tx: Combined,
    echo_rx: Combined,
    echo_tx: Combined,
    /// Sessions: IPv4 and IPv6 to neighbours, and over several hops.
    sessions: [Number; 4],
    no_session: Simple,
    admin_down: Simple,
    verification: Simple,
    mismatch: Simple,
    echo_bad: Simple,
    ttl: Simple,
}

#[derive(Default)]
struct Sessions {
    all: BTreeMap<u32, Entry>,
    by_key: HashMap<SessionKey, u32>,
    by_discr: HashMap<u32, u32>,
    deadlines: Deadlines,
}

type Observer = Rc<dyn Fn(SessionKey, &Session)>;

/// BFD of this router.
pub struct Bfd {
    control: Weak<Control>,
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    fib: Rc<Fib>,
    adjacencies: Rc<Adjacencies>,
    pub(crate) ip4: Rc<Ip4>,
    pub(crate) ip6: Rc<Ip6>,
    sessions: RefCell<Sessions>,
    keys: RefCell<BTreeMap<u32, Key>>,
    /// With which echo packets are signed.
    secret: Key,
    pub(crate) echo_by: Cell<Option<SwIfIndex>>,
    tos: Cell<u8>,
    multi_hop: Cell<bool>,
    /// Interfaces with sessions, IPv4 and IPv6: others' packets are for a daemon on Linux.
    own: [Arc<InterfaceSet>; 2],
    bell: Sender<()>,
    observers: RefCell<Vec<Observer>>,
    counts: Counts,
    /// What threads keep of sessions that are up.
    keeping: StateKey<Keeping>,
    reception: Arc<Reception>,
    /// When all threads hear of sessions that were made or deleted, if any were.
    publish_at: Cell<Option<Nanos>>,
    published_at: Cell<Nanos>,
    /// When is looked next whether threads see to their sessions.
    audit_at: Cell<Option<Nanos>>,
    /// Changes with what is the same in all plans.
    plans: Cell<u32>,
}

impl Bfd {
    pub(crate) fn new(control: &Rc<Control>) -> Result<(Self, Ends), InitError> {
        let graph = control.graph()?;
        let counters = graph.counters();
        let sessions = |name: &str| counters.gauge(&format!("/bfd/{name}"));
        let dropped = |name: &str| {
            let counter = counters.simple(&format!("/bfd/dropped/{name}"), 1)?;
            counter.ensure(1);
            Ok::<_, InitError>(counter)
        };
        let of_sessions = |name: &str| counters.combined(&format!("/bfd/{name}"), MOST);
        let counts = Counts {
            rx: of_sessions("rx-session-counters")?,
            tx: of_sessions("tx-session-counters")?,
            echo_rx: of_sessions("rx-session-echo-counters")?,
            echo_tx: of_sessions("tx-session-echo-counters")?,
            sessions: [
                sessions("udp4/sessions")?,
                sessions("udp6/sessions")?,
                sessions("udp4/sessions_mh")?,
                sessions("udp6/sessions_mh")?,
            ],
            no_session: dropped("no-session")?,
            admin_down: dropped("admin-down")?,
            verification: dropped("failed-verification")?,
            mismatch: dropped("address-mismatch")?,
            echo_bad: dropped("echo")?,
            ttl: dropped("ttl")?,
        };
        // The keys of a hash are the operating system's random numbers.
        let word = || RandomState::new().hash_one(0_u8).to_be_bytes();
        let secret: Vec<u8> = [word(), word()].concat();
        let secret = Key::new(AuthType::KeyedSha1, &secret)
            .ok_or_else(|| InitError::Other("no secret of echo packets".to_owned()))?;
        let (interfaces, adjacencies) = (control.get::<Interfaces>()?, control.get::<Adjacencies>()?);
        let (tell, ends) = serving::channels();
        let keeping = graph.add_state(Keeping {
            adjacencies: adjacencies.table(),
            interfaces: interfaces.table(),
            secret,
            tell: tell.expired,
            tx: counts.tx.clone(),
            echo_tx: counts.echo_tx.clone(),
            askers: OnceLock::new(),
            workers: Mutex::default(),
        })?;
        let reception = Arc::new(Reception {
            known: Published::new(Known::default()),
            secret,
            of_sessions: tell.of_sessions,
            of_strangers: tell.of_strangers,
            is_behind: AtomicBool::new(false),
            no_session: counts.no_session.clone(),
            mismatch: counts.mismatch.clone(),
            echo_bad: counts.echo_bad.clone(),
            rx: counts.rx.clone(),
            echo_rx: counts.echo_rx.clone(),
        });
        let bfd = Bfd {
            control: Rc::downgrade(control),
            interfaces,
            fib: control.get()?,
            adjacencies,
            ip4: control.get()?,
            ip6: control.get()?,
            sessions: RefCell::default(),
            keys: RefCell::default(),
            secret,
            echo_by: Cell::new(None),
            tos: Cell::new(TOS),
            multi_hop: Cell::new(false),
            own: Default::default(),
            bell: tell.bell,
            observers: RefCell::default(),
            counts,
            keeping,
            reception,
            publish_at: Cell::new(None),
            published_at: Cell::new(0),
            audit_at: Cell::new(None),
            plans: Cell::new(0),
            graph,
        };
        Ok((bfd, ends))
    }

    /// What the nodes need.
    pub(crate) fn reception(&self) -> Arc<Reception> {
        Arc::clone(&self.reception)
    }

    /// All nodes are there.
    pub(crate) fn set_askers(&self) {
        if let (Ok(ip4), Ok(ip6)) = (self.graph.node("ip4-arp"), self.graph.node("ip6-discover-neighbor")) {
            // It is called once.
            let _ = self.keeping.feature().askers.set((ip4, ip6));
        }
    }

    fn now(&self) -> Nanos {
        self.graph.clock().now().0
    }

    /// Hears of each change of a session's state.
    pub fn observe(&self, observe: impl Fn(SessionKey, &Session) + 'static) {
        self.observers.borrow_mut().push(Rc::new(observe));
    }

    /// The type of service of packets.
    pub fn tos(&self) -> u8 {
        self.tos.get()
    }

    /// Sets it.
    pub fn set_tos(&self, tos: u8) {
        self.tos.set(tos);
        self.plan_again();
    }

    /// Shares ports with daemons on Linux: what comes in by an interface without a session is theirs.
    pub(crate) fn share(&self, port: u16, listeners: &Listeners, family: Family) {
        let [ip4, ip6] = &self.own;
        if !listeners.share_udp(port, if family == Family::Ip4 { ip4 } else { ip6 }) {
            tracing::warn!("bfd: port {port} is not shared with Linux: too many are");
        }
    }

    /// A session was made or deleted: what comes by its interface is for sessions here as long as there is one.
    fn claim(&self, key: SessionKey) {
        let Hop::Single(interface) = key.hop else { return };
        let sessions = self.sessions.borrow();
        let is_own =
            |other: &SessionKey| other.hop == key.hop && other.local.is_ipv4() == key.local.is_ipv4();
        let [ip4, ip6] = &self.own;
        let set = if key.local.is_ipv4() { ip4 } else { ip6 };
        set.set(interface, sessions.by_key.contains_key(&key) || sessions.by_key.keys().any(is_own));
    }

    /// Takes packets of sessions over several hops from now on.
    pub fn enable_multi_hop(&self) {
        if self.multi_hop.replace(true) {
            return;
        }
        let Some(control) = self.control.upgrade() else { return };
        let edge =
            |local: &str, node: &str| self.graph.add_edge(self.graph.node(local)?, self.graph.node(node)?);
        let both = (edge("ip4-local", "bfd-udp4-input"), edge("ip6-local", "bfd-udp6-input"));
        if let (Ok(ip4), Ok(ip6)) = both {
            if let Ok(listeners) = control.get::<ListenerTable<Ip4Family>>() {
                listeners.set_udp(MULTI_HOP, Some(ip4));
            }
            if let Ok(listeners) = control.get::<ListenerTable<Ip6Family>>() {
                listeners.set_udp(MULTI_HOP, Some(ip6));
            }
        }
    }

    /// Whether these are taken.
    pub fn is_multi_hop(&self) -> bool {
        self.multi_hop.get()
    }

    fn check(&self, key: SessionKey) -> Result<(), BfdError> {
        let host = |address: IpAddr| !address.is_unspecified() && !address.is_multicast();
        if key.local.is_ipv4() != key.peer.is_ipv4() || !host(key.local) || !host(key.peer) {
            return Err(BfdError::Addresses(key.local, key.peer));
        }
        if let Hop::Single(interface) = key.hop {
            self.interfaces.data(interface)?;
        }
        Ok(())
    }

    fn check_parameters(parameters: Parameters) -> Result<(), BfdError> {
        if parameters.detect_mult == 0 {
            return Err(BfdError::Zero("detect-mult"));
        }
        if parameters.desired_min_tx == 0 {
            return Err(BfdError::Zero("desired-min-tx"));
        }
        Ok(())
    }

    /// Makes a session; its number among the counters. `auth`: a key's number in this router and on the wire.
    ///
    /// # Errors
    /// There is one, no such key, no such interface or address, or a number is wrong.
    pub fn add(
        &self,
        key: SessionKey,
        parameters: Parameters,
        auth: Option<(u32, u8)>,
    ) -> Result<u32, BfdError> {
        self.make(key, parameters, auth, None)
    }

    /// The same for a daemon, whose number of the session is that on the wire, if it is free. The session is not saved with the
    /// configuration.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn offload(&self, key: SessionKey, parameters: Parameters, discr: u32) -> Result<u32, BfdError> {
        self.make(key, parameters, None, Some(discr))
    }

    fn make(
        &self,
        key: SessionKey,
        parameters: Parameters,
        auth: Option<(u32, u8)>,
        wanted: Option<u32>,
    ) -> Result<u32, BfdError> {
        Self::check_parameters(parameters)?;
        self.check(key)?;
        if self.sessions.borrow().by_key.contains_key(&key) {
            return Err(BfdError::Exists);
        }
        let auth = self.auth(auth)?;
        if self.sessions.borrow().all.len() >= MOST {
            return Err(BfdError::TooMany(MOST));
        }
        if key.hop == Hop::Multi {
            self.enable_multi_hop();
        }
        let is_free = |discr: u32| discr != 0 && !self.sessions.borrow().by_discr.contains_key(&discr);
        let random = || std::iter::repeat_with(|| fastrand::u32(..)).find(|discr| is_free(*discr));
        let Some(discr) = wanted.filter(|discr| is_free(*discr)).or_else(random) else {
            return Err(BfdError::TooMany(MOST));
        };
        let now = self.now();
        let mut session = Session::new(discr, parameters, auth, fastrand::u32(..), now);
        session.can_echo = self.can_echo(key, false);
        let probe = if let Hop::Single(interface) = key.hop {
            Some(self.adjacencies.probe(interface, Link::from(Family::of(key.peer)), key.peer)?)
        } else {
            None
        };
        let index = {
            let mut sessions = self.sessions.borrow_mut();
            let used = sessions.all.keys().zip(0..).find(|(index, at)| **index != *at).map(|(_, at)| at);
            let index = used.unwrap_or(sessions.all.len() as u32);
            let shared = Arc::new(SharedSession::new(index, key, discr));
            let (is_offloaded, served) = (wanted.is_some(), Served::Here(0));
            let entry = Entry { key, session, is_offloaded, probe, least_ttl: 0, shared, served, late: None };
            sessions.all.insert(index, entry);
            sessions.by_key.insert(key, index);
            sessions.by_discr.insert(discr, index);
            index
        };
        for counter in [&self.counts.rx, &self.counts.tx, &self.counts.echo_rx, &self.counts.echo_tx] {
            counter.ensure(index as usize + 1);
            counter.zero(index as usize);
        }
        self.claim(key);
        self.count_sessions();
        self.watch(key, Some(false));
        self.publish_soon();
        self.settle(index);
        Ok(index)
    }

    fn can_echo(&self, key: SessionKey, is_wished: bool) -> bool {
        key.hop != Hop::Multi && self.echo_address(key, is_wished).is_some()
    }

    fn count_sessions(&self) {
        let sessions = self.sessions.borrow();
        let mut counts = [0u64; 4];
        for key in sessions.by_key.keys() {
            let at = usize::from(key.hop == Hop::Multi) * 2 + usize::from(key.local.is_ipv6());
            if let Some(count) = counts.get_mut(at) {
                *count += 1;
            }
        }
        for (number, count) in self.counts.sessions.iter().zip(counts) {
            number.set(count);
        }
        self.graph.counters().touch();
    }

    /// Tells the forwarding table.
    fn watch(&self, key: SessionKey, is_up: Option<bool>) {
        let interface = if let Hop::Single(interface) = key.hop { Some(interface) } else { None };
        fib::tell(&self.fib, interface, key.peer, is_up);
    }

    fn index_of(&self, key: SessionKey) -> Result<u32, BfdError> {
        self.sessions.borrow().by_key.get(&key).copied().ok_or(BfdError::None)
    }

    /// Deletes a session.
    ///
    /// # Errors
    /// There is none.
    pub fn del(&self, key: SessionKey) -> Result<(), BfdError> {
        let index = self.index_of(key)?;
        let mut sessions = self.sessions.borrow_mut();
        let Some(mut entry) = sessions.all.remove(&index) else { return Err(BfdError::None) };
        entry.take_back(0);
        sessions.by_key.remove(&key);
        sessions.by_discr.remove(&entry.session.discr);
        sessions.deadlines.set(index, None);
        drop(sessions);
        self.publish_soon();
        self.claim(key);
        self.watch(key, None);
        if let Some(probe) = entry.probe {
            self.adjacencies.unlock(probe);
        }
        self.count_sessions();
        Ok(())
    }

    /// Sets the interface of whose network echo packets seem to come, or sends none any more.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn set_echo_source(&self, interface: Option<SwIfIndex>) -> Result<(), BfdError> {
        if let Some(interface) = interface {
            self.interfaces.data(interface)?;
        }
        self.echo_by.set(interface);
        let all: Vec<(u32, SessionKey, bool)> = {
            let sessions = self.sessions.borrow();
            let of = |(index, entry): (&u32, &Entry)| (*index, entry.key, entry.session.echo_wish.is_some());
            sessions.all.iter().map(of).collect()
        };
        for (index, key, is_wished) in all {
            let can = self.can_echo(key, is_wished);
            self.with(index, |session, now| {
                session.set_can_echo(can, now);
                Todo::default()
            });
        }
        self.plan_again();
        Ok(())
    }

    /// An interface goes, and its sessions with it.
    pub(crate) fn forget(&self, interface: SwIfIndex) {
        if self.echo_by.get() == Some(interface) && self.set_echo_source(None).is_err() {
            self.echo_by.set(None);
        }
        let keys: Vec<SessionKey> = self.sessions.borrow().by_key.keys().copied().collect();
        for key in keys.into_iter().filter(|key| key.hop == Hop::Single(interface)) {
            // Clients hear that it is down before it is not there.
            if let (Ok(index), Ok(())) = (self.index_of(key), self.set_admin(key, false)) {
                tracing::info!("bfd: session {index} with {} goes with its interface", key.peer);
            }
            if let Err(e) = self.del(key) {
                tracing::warn!("bfd: {} stays: {e}", key.peer);
            }
        }
    }

    /// All sessions.
    pub fn list(&self) -> Vec<SessionInfo> {
        self.sessions.borrow().all.iter().map(|(index, entry)| self.info_of(*index, entry)).collect()
    }

    /// How one is.
    pub fn state_of(&self, key: SessionKey) -> Option<State> {
        let sessions = self.sessions.borrow();
        Some(sessions.all.get(sessions.by_key.get(&key)?)?.session.state)
    }

    /// One session.
    pub fn info(&self, key: SessionKey) -> Option<SessionInfo> {
        let sessions = self.sessions.borrow();
        let index = *sessions.by_key.get(&key)?;
        Some(self.info_of(index, sessions.all.get(&index)?))
    }

    fn info_of(&self, index: u32, entry: &Entry) -> SessionInfo {
        let counts = [&self.counts.rx, &self.counts.tx, &self.counts.echo_rx, &self.counts.echo_tx];
        SessionInfo {
            index,
            key: entry.key,
            session: entry.current(),
            counts: counts.map(|counter| counter.sum(index as usize)),
            is_offloaded: entry.is_offloaded,
            least_ttl: entry.least_ttl,
        }
    }

    /// The family of a session's addresses.
    pub fn family(key: SessionKey) -> Family {
        Family::of(key.local)
    }

    /// Nanoseconds of the clock that sessions' times are on.
    pub fn clock(&self) -> u64 {
        self.now()
    }
}
