//! The control plane: who the other router is, and who of both forwards.

mod link;
mod pump;
mod role;
mod view;

pub(crate) use role::family_word;
pub use view::{FeatureView, View};

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use shoal_graph::Graph;
use shoal_graph::clock::Time;
use shoal_graph::process::{Receiver, channel};
use shoal_interface::{Event, Interfaces};
use shoal_ip::ListenerTable;
use shoal_ip4::Ip4Family;
use shoal_ip6::Ip6Family;
use shoal_module::{Control, InitError};
use shoal_nat_state::sync::{Bell, Role, SyncedFeature, SyncedFeatures};
use shoal_redundancy::Redundancy;

use crate::association::Association;
use crate::config::{Peer, RoleSource, Timers};
use crate::counters::SyncCounters;
use crate::error::SyncError;
use crate::node::{Input, ReceivedDatagram, Reception};
use crate::window::{ReceiveWindow, SendWindow};

/// Datagrams of the other router that may wait to be read.
const WAITING: usize = 512;
/// Hellos of a router that does not know this one, that may.
const STRANGERS: usize = 16;
/// Sessions that were refused, as they are shown.
const REFUSED: usize = 64;

/// A kind of NAT, as far as all of its sessions are concerned.
#[derive(Clone, Copy, Default)]
struct OfFeature {
    /// The other router is to be reported all.
    tells_all: bool,
    /// When that was begun last.
    told_at: Option<Time>,
    /// It was on when it was looked at last.
    was_on: bool,
    /// Sessions of the other router whose tuples were taken, when it was looked at last.
    taken: u64,
    /// When the other router was asked for all.
    asked_at: Option<Time>,
}

struct State {
    peer: Option<Peer>,
    timers: Timers,
    source: RoleSource,
    /// When that was set, and whether its BFD session has been up since.
    role_since: Time,
    was_met: bool,
    /// Active or standby, whether there is another router or not.
    role: Role,
    association: Association,
    up_since: Option<Time>,
    peer_is_active: bool,
    send: SendWindow,
    receive: ReceiveWindow,
    /// Records of the next datagram.
    out: Vec<u8>,
    ack_due: bool,
    next_hello: Time,
    next_send: Time,
    next_second: Time,
    answered: Time,
    features: Vec<OfFeature>,
    refused: VecDeque<String>,
}

/// What this router and another know of each other's sessions.
pub struct SessionSync {
    control: Weak<Control>,
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    redundancy: Rc<Redundancy>,
    features: Vec<Rc<dyn SyncedFeature>>,
    reception: Arc<Reception>,
    bell: Arc<Bell>,
    counters: SyncCounters,
    state: RefCell<State>,
}

/// The ends of channels that the processes take.
pub(crate) struct ChannelEnds {
    pub(crate) known: Receiver<ReceivedDatagram>,
    pub(crate) strange: Receiver<ReceivedDatagram>,
    pub(crate) rung: Receiver<()>,
}

impl SessionSync {
    pub(crate) fn new(control: &Rc<Control>) -> Result<(Rc<Self>, ChannelEnds), InitError> {
        let graph = control.graph()?;
        let (known, known_end) = channel(WAITING);
        let (strange, strange_end) = channel(STRANGERS);
        let (wire, rung) = channel(1);
        let reception = Arc::new(Reception::new(known, strange));
        graph.add_packet(Input::<false> { reception: Arc::clone(&reception) })?;
        graph.add_packet(Input::<true> { reception: Arc::clone(&reception) })?;
        let features = SyncedFeatures::of(control).all();
        let counters = SyncCounters::new(&graph)?;
        for feature in &features {
            counters.add(&**feature)?;
        }
        let state = State {
            peer: None,
            timers: Timers::default(),
            source: RoleSource::default(),
            role_since: Time(0),
            was_met: false,
            role: Role::Active,
            association: Association::new(fastrand::Rng::new()),
            up_since: None,
            peer_is_active: false,
            send: SendWindow::default(),
            receive: ReceiveWindow::default(),
            out: Vec::new(),
            ack_due: false,
            next_hello: Time(0),
            next_send: Time(0),
            next_second: Time(0),
            answered: Time(0),
            features: vec![OfFeature::default(); features.len()],
            refused: VecDeque::new(),
        };
        let sync = Rc::new(SessionSync {
            control: Rc::downgrade(control),
            interfaces: control.get()?,
            redundancy: Redundancy::of(control),
            features,
            reception,
            bell: Arc::new(Bell::new(wire)),
            counters,
            state: RefCell::new(state),
            graph,
        });
        sync.follow(control)?;
        Ok((sync, ChannelEnds { known: known_end, strange: strange_end, rung }))
    }

    /// Hears of all that may say who forwards.
    fn follow(self: &Rc<Self>, control: &Rc<Control>) -> Result<(), InitError> {
        let weak = Rc::downgrade(self);
        self.redundancy.observe(move |_| {
            if let Some(sync) = weak.upgrade() {
                sync.renew_role();
            }
        });
        let weak = Rc::downgrade(self);
        self.interfaces.subscribe(move |_, event| {
            if let (Some(sync), Event::Admin(..) | Event::Link(..) | Event::Deleted(_)) =
                (weak.upgrade(), event)
            {
                sync.renew_role();
            }
        });
        let weak = Rc::downgrade(self);
        control.get::<shoal_bfd::Bfd>()?.observe(move |_, _| {
            if let Some(sync) = weak.upgrade() {
                sync.renew_role();
            }
        });
        Ok(())
    }

    fn now(&self) -> Time {
        self.graph.clock().now()
    }

    /// The other router.
    pub fn peer(&self) -> Option<Peer> {
        self.state.borrow().peer.clone()
    }

    /// Times.
    pub fn timers(&self) -> Timers {
        self.state.borrow().timers
    }

    /// What says who forwards.
    pub fn role_source(&self) -> RoleSource {
        self.state.borrow().source
    }

    /// Sets the other router, or says that there is none.
    ///
    /// # Errors
    /// Its addresses are none of a router, or another part of this router has the port.
    pub fn set_peer(&self, peer: Option<Peer>) -> Result<(), SyncError> {
        if let Some(peer) = &peer {
            peer.check()?;
        }
        let old = self.peer();
        if old == peer {
            return Ok(());
        }
        // The port of the new one may be another part's: then all stays as it was.
        let of = |peer: &Option<Peer>| peer.as_ref().map(|peer| (peer.local.is_ipv4(), peer.port));
        if of(&old) != of(&peer) {
            if let Some((is_ip4, port)) = of(&peer) {
                self.listen(is_ip4, port, true)?;
            }
            if let Some((is_ip4, port)) = of(&old) {
                self.listen(is_ip4, port, false)?;
            }
        }
        self.go_down("the other router is another now");
        self.reception.ends.replace(peer.as_ref().map(|peer| (peer.address, peer.local)));
        let mut state = self.state.borrow_mut();
        state.peer = peer;
        state.association.forget();
        state.next_hello = Time(0);
        self.reception.set_own(state.association.own());
        drop(state);
        self.renew_role();
        self.give_roles();
        self.bell.ring();
        Ok(())
    }

    fn listen(&self, is_ip4: bool, port: u16, on: bool) -> Result<(), SyncError> {
        let Some(control) = self.control.upgrade() else { return Ok(()) };
        let (local, node) =
            if is_ip4 { ("ip4-local", "session-sync4-input") } else { ("ip6-local", "session-sync6-input") };
        let listeners = if is_ip4 {
            control.get::<ListenerTable<Ip4Family>>()?.shared()
        } else {
            control.get::<ListenerTable<Ip6Family>>()?.shared()
        };
        let edge = match on {
            true if listeners.udp(port).is_some() => return Err(SyncError::PortTaken(port)),
            true => Some(self.graph.add_edge(self.graph.node(local)?, self.graph.node(node)?)?),
            false => None,
        };
        listeners.set_udp(port, edge);
        Ok(())
    }

    /// Sets times.
    ///
    /// # Errors
    /// One is out of range.
    pub fn set_timers(&self, timers: Timers) -> Result<(), SyncError> {
        timers.check()?;
        let mut state = self.state.borrow_mut();
        state.timers = timers;
        state.next_hello = Time(0);
        drop(state);
        self.bell.ring();
        Ok(())
    }

    /// Has all sessions told again: to the other router by the one that forwards, from it to the standby.
    ///
    /// # Errors
    /// There is no other router.
    pub fn resync(&self) -> Result<(), SyncError> {
        if self.peer().is_none() {
            return Err(SyncError::NoPeer);
        }
        let mut state = self.state.borrow_mut();
        for of in &mut state.features {
            (of.tells_all, of.told_at) = (true, None);
        }
        let asks = state.role == Role::Standby && state.association.is_up();
        drop(state);
        if asks {
            self.features.iter().for_each(|feature| self.ask_for_all(feature.number()));
        }
        self.bell.ring();
        Ok(())
    }
}
