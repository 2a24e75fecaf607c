//! One memif and one socket, as the control plane knows them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use shoal_graph::RxMode;
use shoal_graph::process::{Receiver, Sender, channel};
use shoal_interface::{Device, SwIfIndex, TxPlacement};

use crate::config::CreateMemif;
use crate::port::Port;
use crate::rx::Layer;
use crate::session::Negotiated;
use crate::socket::Place;
use shoal_link::Listener;

/// What keeps a listener, and ends the task that waits at it when it goes.
pub(crate) type Listening = (Rc<Listener>, Sender<()>);

/// A socket of the control channel.
pub(crate) struct Socket {
    pub(crate) id: u32,
    /// As the operator has written it.
    pub(crate) filename: String,
    pub(crate) place: Place,
    /// While masters use it. The sender ends the task that listens.
    pub(crate) listening: RefCell<Option<Listening>>,
    pub(crate) peers: Rc<Cell<usize>>,
    /// Peers that were refused.
    pub(crate) refused: Cell<u64>,
    /// Why the last one was.
    pub(crate) refusal: RefCell<String>,
}

/// Counts itself among the peers of a socket.
pub(crate) struct PeerCount(pub(crate) Rc<Cell<usize>>);

impl Drop for PeerCount {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

impl Socket {
    /// A peer is refused. A peer that comes again and again appears once in the log.
    pub(crate) fn refuse(&self, why: &str) {
        self.refused.set(self.refused.get() + 1);
        let mut last = self.refusal.borrow_mut();
        if *last != why {
            why.clone_into(&mut last);
            tracing::warn!("{}: a peer was refused: {why}", self.place);
        }
    }
}

/// What is known of a peer.
pub(crate) struct Session {
    /// Takes the reason to end it.
    pub(crate) stop: Sender<String>,
    pub(crate) fd: i32,
    pub(crate) remote: String,
    /// None until packets may flow.
    pub(crate) made: Option<Negotiated>,
}

/// One memif, as the control plane and `show hardware-interfaces` see it.
pub(crate) struct Memif {
    pub(crate) config: CreateMemif,
    pub(crate) socket: Rc<Socket>,
    pub(crate) port: Arc<Port>,
    pub(crate) layer: Layer,
    pub(crate) admin_up: Cell<bool>,
    /// Wakes a slave's task.
    pub(crate) wake: Sender<()>,
    pub(crate) session: RefCell<Option<Session>>,
    /// Why there is no peer.
    pub(crate) why: RefCell<String>,
    /// How often a peer has come.
    pub(crate) connections: Cell<u64>,
    /// Where the operator has put queues, and how they are waited for, by their number.
    pub(crate) kept: RefCell<BTreeMap<u32, (usize, RxMode)>>,
}

impl Memif {
    /// Whether it is to be connected.
    pub(crate) fn is_wanted(&self) -> bool {
        self.admin_up.get()
    }

    pub(crate) fn place(&self) -> &Place {
        &self.socket.place
    }

    /// Notes why there is no peer.
    pub(crate) fn note(&self, why: String) {
        *self.why.borrow_mut() = why;
    }

    /// A peer is there; gives what tells its task to stop.
    pub(crate) fn begin(&self, fd: i32) -> Receiver<String> {
        let (stop, stopped) = channel(1);
        *self.session.borrow_mut() = Some(Session { stop, fd, remote: String::new(), made: None });
        stopped
    }

    /// Ends the connection, if there is one, and sends the peer the reason.
    pub(crate) fn stop(&self, why: &str) {
        if let Some(session) = &*self.session.borrow() {
            // Full: it is being stopped already.
            let _ = session.stop.try_send(why.to_owned());
        }
    }

    pub(crate) fn index(&self) -> SwIfIndex {
        self.port.index()
    }
}

impl Device for Memif {
    fn class(&self) -> &'static str {
        "memif"
    }

    /// There is a peer only while the interface is up.
    fn set_admin(&self, up: bool) -> Result<(), String> {
        self.admin_up.set(up);
        if up {
            // Full: it is awake already.
            let _ = self.wake.try_send(());
        } else {
            self.stop("interface is down");
        }
        Ok(())
    }

    fn tx_placement(&self) -> Option<&TxPlacement> {
        Some(&self.port.placement)
    }

    fn describe(&self) -> String {
        let session = self.session.borrow();
        let made = session.as_ref().and_then(|s| s.made.as_ref());
        let peer = made.map_or_else(
            || format!("no peer: {}", self.why.borrow()),
            |made| format!("peer {}", made.remote_interface),
        );
        format!(
            "MEMIF interface\n{} of socket {} ({}), {peer}",
            self.config.role.name(),
            self.socket.id,
            self.socket.place
        )
    }
}
