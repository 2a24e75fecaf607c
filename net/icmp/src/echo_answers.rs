//! Answers to echo requests of this router, from the nodes to the senders of the requests.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_graph::clock::Time;
use shoal_graph::process::{Receiver, Sender, channel};
use shoal_wire::{Icmp4Type, Icmp6Type, icmp4, icmp6};

/// Answers on their way from the nodes.
pub(crate) const CHANNEL: usize = 1024;

/// What came back for an echo request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Its reply.
    Reply,
    /// An error about it, by type and code.
    Icmp4(Icmp4Type, u8),
    /// The same of ICMPv6.
    Icmp6(Icmp6Type, u8),
}

impl Answer {
    /// Whether the request had no hops left on its way.
    pub fn is_expired(self) -> bool {
        match self {
            Answer::Reply => false,
            Answer::Icmp4(kind, code) => {
                kind == Icmp4Type::TIME_EXCEEDED && code == icmp4::code::TTL_EXCEEDED_IN_TRANSIT
            }
            Answer::Icmp6(kind, code) => {
                kind == Icmp6Type::TIME_EXCEEDED && code == icmp6::code::HOP_LIMIT_EXCEEDED_IN_TRANSIT
            }
        }
    }
}

/// An answer to an echo request of ours: its reply, or an error that quotes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EchoAnswer {
    /// The identifier of the request.
    pub id: u16,
    /// The sequence number of the request.
    pub sequence: u16,
    /// What came: an echo reply or an error.
    pub answer: Answer,
    /// Who sent it.
    pub from: IpAddr,
    /// The TTL or hop limit it arrived with.
    pub ttl: u8,
    /// Bytes of the ICMP message.
    pub bytes: usize,
    /// When it arrived.
    pub at: Time,
}

/// Which identifiers somebody waits for: one bit each, so that strangers' replies end in the node.
#[derive(Clone)]
pub(crate) struct Wanted(Arc<[AtomicU64]>);

impl Default for Wanted {
    fn default() -> Self {
        Wanted((0..1 << 10).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Wanted {
    fn place(&self, id: u16) -> Option<(&AtomicU64, u64)> {
        Some((self.0.get(usize::from(id >> 6))?, 1 << (id & 63)))
    }

    pub(crate) fn has(&self, id: u16) -> bool {
        self.place(id).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    fn add(&self, id: u16) {
        if let Some((word, bit)) = self.place(id) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    fn remove(&self, id: u16) {
        if let Some((word, bit)) = self.place(id) {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }
}

/// Who waits for which identifier.
#[derive(Default)]
pub(crate) struct Listeners {
    wanted: Wanted,
    by_id: RefCell<HashMap<u16, Sender<EchoAnswer>>>,
    next: RefCell<u16>,
}

impl Listeners {
    /// Identifiers need not be secret, but two routers should not begin with the same.
    pub(crate) fn new() -> Rc<Self> {
        let listeners = Listeners::default();
        *listeners.next.borrow_mut() = RandomState::new().hash_one(0u8) as u16;
        Rc::new(listeners)
    }

    pub(crate) fn wanted(&self) -> Wanted {
        self.wanted.clone()
    }

    /// A free identifier, and the way its answers come; `None` when all are in use.
    pub(crate) fn listen(self: &Rc<Self>, capacity: usize) -> Option<Listener> {
        let start = *self.next.borrow();
        let free = |id: &u16| !self.by_id.borrow().contains_key(id);
        let id = (0..=u16::MAX).map(|n| start.wrapping_add(n)).find(free)?;
        *self.next.borrow_mut() = id.wrapping_add(1);
        let (sender, heard) = channel(capacity);
        self.by_id.borrow_mut().insert(id, sender);
        self.wanted.add(id);
        Some(Listener { id, heard, listeners: Rc::downgrade(self) })
    }

    /// Passes an answer on; one too many for its listener is lost.
    pub(crate) fn deliver(&self, heard: EchoAnswer) {
        if let Some(sender) = self.by_id.borrow().get(&heard.id) {
            let _ = sender.try_send(heard);
        }
    }
}

/// One sender of echo requests: its identifier and the answers. Dropping it ends the wait.
pub struct Listener {
    id: u16,
    heard: Receiver<EchoAnswer>,
    listeners: Weak<Listeners>,
}

impl Listener {
    /// The identifier its requests carry.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// The next answer.
    pub async fn next(&self) -> EchoAnswer {
        match self.heard.recv().await {
            Ok(heard) => heard,
            // The router's ICMP is gone, so no answer will ever come.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(listeners) = self.listeners.upgrade() {
            listeners.wanted.remove(self.id);
            listeners.by_id.borrow_mut().remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(id: u16) -> EchoAnswer {
        let (answer, from) = (Answer::Reply, IpAddr::from([127, 0, 0, 1]));
        EchoAnswer { id, sequence: 1, answer, from, ttl: 64, bytes: 8, at: Time(0) }
    }

    #[test]
    fn answers_reach_the_client_that_asked_and_none_after_it() {
        let listeners = Rc::new(Listeners::default());
        *listeners.next.borrow_mut() = u16::MAX;
        let (a, b) = (listeners.listen(1).unwrap(), listeners.listen(1).unwrap());
        assert_eq!((a.id(), b.id()), (u16::MAX, 0));
        listeners.deliver(heard(0));
        listeners.deliver(heard(0));
        assert_eq!((a.heard.len(), b.heard.len()), (0, 1));
        assert!(listeners.wanted().has(0) && !listeners.wanted().has(1));
        drop(b);
        assert!(!listeners.wanted().has(0) && listeners.wanted().has(u16::MAX));
        listeners.deliver(heard(0));
        assert_eq!(listeners.by_id.borrow().len(), 1);
    }

    #[test]
    fn the_last_identifier_is_not_given_twice() {
        let listeners = Rc::new(Listeners::default());
        let all: Vec<_> = (0..=u16::MAX).map(|_| listeners.listen(1).unwrap()).collect();
        assert!(listeners.listen(1).is_none());
        drop(all);
        assert!(listeners.listen(1).is_some());
    }
}
