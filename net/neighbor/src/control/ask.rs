//! Questions without an answer yet: repeated by the clock, with the packets that wait for the answer.

use std::collections::BTreeMap;
use std::time::Duration;

use shoal_adj::{AdjKind, Link};
use shoal_buffer::Buffer;
use shoal_graph::clock::Time;
use shoal_wire::MacAddress;

use super::{Neighbours, State};
use crate::message::{NotSent, Waiting};
use crate::table::Key;
use crate::{Address, Protocol, Question, SilentPolicy};

/// How often a neighbour is asked before it is given up (RFC 4861 MAX_UNICAST_SOLICIT; VPP's figure too).
const TRIES: u32 = 3;
/// How long each answer may take (RFC 4861 RETRANS_TIMER; RFC 1122 section 2.3.2.1: no more than one request per second).
const PATIENCE: Duration = Duration::from_secs(1);
/// Most neighbours asked for at a time on account of waiting packets.
pub(super) const MOST_ASKED: usize = 1024;
/// Most packets that wait for one neighbour.
pub const MOST_HELD_EACH: usize = 4;
/// Most packets that wait in all, so that silence cannot empty the buffer pool.
pub(super) const MOST_HELD: usize = 1024;
/// Old entries asked for again at a time, and how soon the next ones follow.
const MOST_PROBED: usize = 256;
const BETWEEN_PROBES: Duration = Duration::from_millis(100);
/// Most questions open at a time, on whatever account.
const MOST_PROBES: usize = 4096;

struct PendingRequest<A> {
    tries: u32,
    next: Time,
    source: Option<A>,
    held: Vec<(Link, Buffer)>,
}

/// All open questions.
pub(super) struct Asking<A> {
    asks: BTreeMap<Key<A>, PendingRequest<A>>,
    held: usize,
}

impl<A> Default for Asking<A> {
    fn default() -> Self {
        Asking { asks: BTreeMap::new(), held: 0 }
    }
}

impl<A: Address> Asking<A> {
    fn is_asked(&self, key: Key<A>) -> bool {
        self.asks.contains_key(&key)
    }

    fn take(&mut self, key: Key<A>) -> Option<PendingRequest<A>> {
        let ask = self.asks.remove(&key)?;
        self.held -= ask.held.len();
        Some(ask)
    }

    /// A neighbour was asked just now on a link without stations that answer by themselves: what a program answers
    /// counts, but it is asked no more, and no packet waits.
    fn note(&mut self, key: Key<A>, source: A, now: Time) {
        if self.asks.len() < MOST_ASKED {
            let next = now.after(PATIENCE);
            let ask = || PendingRequest { tries: TRIES, next, source: Some(source), held: Vec::new() };
            self.asks.entry(key).or_insert_with(ask).next = next;
        }
    }

    /// Keeps a packet; hands it back when there is no room. The neighbour was asked just now.
    fn keep(&mut self, waiting: Waiting<A>, now: Time) -> Result<(), Buffer> {
        let Waiting { interface, next_hop, source, link, buffer } = waiting;
        let key = (interface, next_hop);
        if self.held >= MOST_HELD || (self.asks.len() >= MOST_ASKED && !self.asks.contains_key(&key)) {
            return Err(buffer);
        }
        let fresh =
            || PendingRequest { tries: 1, next: now.after(PATIENCE), source: Some(source), held: Vec::new() };
        let ask = self.asks.entry(key).or_insert_with(fresh);
        if ask.held.len() >= MOST_HELD_EACH {
            return Err(buffer);
        }
        ask.held.push((link, buffer));
        self.held += 1;
        Ok(())
    }
}

impl<P: Protocol> Neighbours<P> {
    /// A packet waits for its neighbour's answer.
    pub fn wait(&self, waiting: Waiting<P::Addr>) {
        let key = (waiting.interface, waiting.next_hop);
        if !self.interfaces.data(key.0).is_ok_and(|d| d.is_up()) {
            return self.not_sent(key, waiting.link, waiting.buffer, NotSent::Gone);
        }
        if self.table.borrow().get(key).is_some() {
            // The answer came while the packet was on its way here.
            self.used(key);
            return self.send_on(key, waiting.link, waiting.buffer);
        }
        let link = waiting.link;
        if !self.interfaces.has_stations(key.0) {
            self.asking.borrow_mut().note(key, waiting.source, self.graph.clock().now());
            self.ring();
            return self.not_sent(key, link, waiting.buffer, NotSent::Refused);
        }
        let kept = self.asking.borrow_mut().keep(waiting, self.graph.clock().now());
        match kept {
            Ok(()) => self.ring(),
            Err(buffer) => self.not_sent(key, link, buffer, NotSent::Refused),
        }
    }

    /// Asks for a neighbour before anything is to be sent to it, once, unless it is known or being asked for.
    pub fn ask_ahead(&self, key: Key<P::Addr>) {
        let is_alone = self.interfaces.is_loopback(key.0);
        if !is_alone && self.table.borrow().get(key).is_none() && !self.is_asked(key) {
            self.ask_everybody(key, self.protocol.source_for(key));
        }
    }

    /// Whether the link has been asked for a neighbour and has not answered yet.
    pub fn is_asked(&self, key: Key<P::Addr>) -> bool {
        self.asking.borrow().is_asked(key) || self.is_dead(key)
    }

    /// How many packets wait.
    pub fn held(&self) -> usize {
        self.asking.borrow().held
    }

    /// A neighbour answered: what waited for it leaves.
    pub(super) fn answered(&self, key: Key<P::Addr>) {
        let held = self.asking.borrow_mut().take(key).map(|ask| ask.held).unwrap_or_default();
        if !held.is_empty() {
            self.used(key);
        }
        for (link, buffer) in held {
            self.send_on(key, link, buffer);
        }
    }

    /// Sends a packet to a neighbour that is known now: to the rewrite node, because the lookup has been done.
    fn send_on(&self, key: Key<P::Addr>, link: Link, mut buffer: Buffer) {
        let adj = match self.installed.borrow().get(&key) {
            Some(installed) if link == Link::from(P::FAMILY) => Some(installed.adj),
            _ => None,
        };
        // Packets of the other family hold no adjacency that is known here; one is borrowed for the moment, which
        // outlasts its last user by the time that packets need.
        let borrowed = || self.adjacencies.neighbour(key.0, link, key.1.into()).ok();
        let index = adj.or_else(|| borrowed().inspect(|adj| self.adjacencies.unlock(*adj)));
        let ready = index.filter(|adj| self.adjacencies.get(*adj).kind() == AdjKind::Rewrite);
        let (Some(adj), Ok(rewrite)) = (ready, self.graph.node(P::rewrite_node(link))) else {
            return self.not_sent(key, link, buffer, NotSent::Gone);
        };
        let mut main = self.graph.main();
        main.cache().packet(&mut buffer).meta_mut().adj = adj.0;
        main.inject(rewrite, buffer);
        self.counters.sent.add(0, key.0.0 as usize, 1);
    }

    fn not_sent(&self, key: Key<P::Addr>, link: Link, mut buffer: Buffer, why: NotSent) {
        let counter = match why {
            NotSent::Refused => &self.counters.refused,
            NotSent::Silent | NotSent::Gone => &self.counters.failed,
        };
        counter.add(0, key.0.0 as usize, 1);
        let mut main = self.graph.main();
        *main.cache().packet(&mut buffer).scratch::<u32>() = why as u32;
        match self.graph.node(P::failed_node(link)) {
            Ok(failed) => main.inject(failed, buffer),
            Err(_) => main.cache().free(buffer),
        }
    }

    /// Ends questions, and with them the wait of their packets.
    pub(super) fn give_up(&self, which: impl Fn(Key<P::Addr>) -> bool, why: NotSent) {
        let keys: Vec<Key<P::Addr>> =
            self.asking.borrow().asks.keys().copied().filter(|k| which(*k)).collect();
        for key in keys {
            let ask = self.asking.borrow_mut().take(key);
            ask.into_iter().flat_map(|ask| ask.held).for_each(|(link, b)| self.not_sent(key, link, b, why));
        }
    }

    /// When something is to be done next.
    pub fn deadline(&self) -> Option<Time> {
        let asks = self.asking.borrow().asks.values().map(|ask| ask.next).min();
        let table = self.table.borrow();
        let age = table.limits().age;
        let oldest = table.oldest().filter(|_| age > Duration::ZERO).map(|(updated, _)| updated.after(age));
        // The oldest may have been asked already and still be the oldest.
        let soon = self.graph.clock().now().after(BETWEEN_PROBES);
        let doubts = self.reach.borrow().deadline();
        asks.into_iter()
            .chain(doubts)
            .chain(self.dead_deadline())
            .chain(oldest.map(|due| due.max(soon)))
            .min()
    }

    /// Does what is due: asks again, gives up, asks old neighbours whether they are still there.
    pub fn tick(&self) {
        let now = self.graph.clock().now();
        let due: Vec<Key<P::Addr>> = {
            let asking = self.asking.borrow();
            asking.asks.iter().filter(|(_, ask)| ask.next <= now).map(|(key, _)| *key).collect()
        };
        for key in due {
            let open = self.asking.borrow().asks.get(&key).map(|ask| (ask.tries, ask.source));
            let Some((tries, source)) = open else { continue };
            if tries >= TRIES {
                if self.interfaces.has_stations(key.0) || self.table.borrow().get(key).is_some() {
                    self.silent(key);
                } else {
                    self.give_up(|k| k == key, NotSent::Silent);
                }
                continue;
            }
            if let Some(ask) = self.asking.borrow_mut().asks.get_mut(&key) {
                ask.tries += 1;
                ask.next = now.after(PATIENCE);
            }
            self.ask(key, source);
        }
        self.doubt_due(now);
        self.ask_the_dead(now);
        self.probe_aged(now);
    }

    /// No answer came: the neighbour is gone, if it was ever there. Where entries do not age one that is known stays,
    /// and only routes with other ways avoid it.
    fn silent(&self, key: Key<P::Addr>) {
        let keeps = P::TIMING.is_some_and(|t| t.silent == SilentPolicy::Stays) && self.limits().age.is_zero();
        let known = self.table.borrow().get(key).is_some();
        let avoided = if known && keeps {
            self.fib.has_choice(key.0, key.1.into())
        } else {
            if known {
                self.table.borrow_mut().remove(key);
                self.uninstall(key);
            }
            self.adjacencies.has_neighbour(key.0, key.1.into()) && self.fib.has_choice(key.0, key.1.into())
        };
        if known && keeps && !avoided {
            self.doubt(key, State::Stale);
        }
        if avoided {
            self.avoid(key);
        }
        self.give_up(|k| k == key, NotSent::Silent);
    }

    fn probe_aged(&self, now: Time) {
        let aged: Vec<Key<P::Addr>> = {
            let (table, asking) = (self.table.borrow(), self.asking.borrow());
            table.aged(now).filter(|key| !asking.is_asked(*key)).take(MOST_PROBED).collect()
        };
        for key in aged {
            self.probe(key, now);
        }
    }

    /// Asks a neighbour that is known whether it is still there. RFC 4861 7.3.3: PROBE.
    pub(super) fn probe(&self, key: Key<P::Addr>, now: Time) {
        if self.is_asked(key) {
            return;
        }
        if self.asking.borrow().asks.len() >= MOST_PROBES {
            // Its time comes again when it is used or old.
            return self.doubt(key, State::Stale);
        }
        self.doubt(key, State::Probe);
        let source = self.protocol.source_for(key);
        let ask = PendingRequest { tries: 1, next: now.after(PATIENCE), source, held: Vec::new() };
        self.asking.borrow_mut().asks.insert(key, ask);
        self.ask(key, source);
    }

    /// Sends one question: to the neighbour itself if it is known, else to everybody.
    fn ask(&self, key: Key<P::Addr>, source: Option<P::Addr>) {
        let to = self.table.borrow().get(key).map(|n| n.mac);
        self.ask_station(key, source, to);
    }

    /// Sends one question to everybody: another station may have the address now.
    pub(super) fn ask_everybody(&self, key: Key<P::Addr>, source: Option<P::Addr>) {
        self.ask_station(key, source, None);
    }

    fn ask_station(
        &self,
        (interface, target): Key<P::Addr>,
        source: Option<P::Addr>,
        to: Option<MacAddress>,
    ) {
        let (Ok(data), Some(source)) = (self.interfaces.data(interface), source) else { return };
        if !data.is_up() {
            return;
        }
        let question = Question { interface, data, source, to, target };
        let mut main = self.graph.main();
        // Without a buffer this try is lost; the next one comes by the clock.
        if let Some(buffer) = self.protocol.question(&question, main.cache()) {
            main.inject(self.interfaces.output_node(), buffer);
        }
    }
}
