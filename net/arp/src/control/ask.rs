//! Questions without an answer yet: repeated by the clock, with the packets that wait for the answer.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use shoal_adj::AdjKind;
use shoal_buffer::Buffer;
use shoal_graph::clock::Time;
use shoal_wire::{Ip4Prefix, MacAddress};

use super::Neighbours;
use crate::Key;
use crate::counters::Kind;
use crate::message::{NotSent, Waiting};
use crate::request::Question;

/// How often a neighbour is asked before it is given up (RFC 4861 MAX_UNICAST_SOLICIT; VPP's figure too).
const TRIES: u32 = 3;
/// How long each answer may take (RFC 1122 section 2.3.2.1: no more than one request per second).
const PATIENCE: Duration = Duration::from_secs(1);
/// Most neighbours asked for at a time on account of waiting packets.
pub(super) const MOST_ASKED: usize = 1024;
/// Most packets that wait for one neighbour.
pub(crate) const MOST_HELD_EACH: usize = 4;
/// Most packets that wait in all, so that silence cannot empty the buffer pool.
pub(super) const MOST_HELD: usize = 1024;
/// Old entries asked for anew at a time, and how soon the next ones follow.
const MOST_PROBED: usize = 256;
const BETWEEN_PROBES: Duration = Duration::from_millis(100);

struct Ask {
    tries: u32,
    next: Time,
    source: Ipv4Addr,
    held: Vec<Buffer>,
}

/// All open questions.
#[derive(Default)]
pub(super) struct Asking {
    asks: BTreeMap<Key, Ask>,
    held: usize,
}

impl Asking {
    pub(super) fn is_asked(&self, key: Key) -> bool {
        self.asks.contains_key(&key)
    }

    fn take(&mut self, key: Key) -> Option<Ask> {
        let ask = self.asks.remove(&key)?;
        self.held -= ask.held.len();
        Some(ask)
    }

    /// Keeps a packet; hands it back when there is no room. The neighbour was asked just now.
    fn keep(&mut self, waiting: Waiting, now: Time) -> Result<(), Buffer> {
        let Waiting { interface, next_hop, source, buffer } = waiting;
        let key = (interface, next_hop);
        if self.held >= MOST_HELD || (self.asks.len() >= MOST_ASKED && !self.asks.contains_key(&key)) {
            return Err(buffer);
        }
        let fresh = || Ask { tries: 1, next: now.after(PATIENCE), source, held: Vec::new() };
        let ask = self.asks.entry(key).or_insert_with(fresh);
        if ask.held.len() >= MOST_HELD_EACH {
            return Err(buffer);
        }
        ask.held.push(buffer);
        self.held += 1;
        Ok(())
    }
}

impl Neighbours {
    /// A packet waits for its neighbour's answer.
    pub(crate) fn wait(&self, waiting: Waiting) {
        let key = (waiting.interface, waiting.next_hop);
        if !self.interfaces.data(key.0).is_ok_and(|d| d.is_up()) {
            return self.not_sent(key, waiting.buffer, NotSent::Gone);
        }
        if self.table.borrow().get(key).is_some() {
            // The answer came while the packet was on its way here.
            return self.send_on(key, waiting.buffer);
        }
        let kept = self.asking.borrow_mut().keep(waiting, self.graph.clock().now());
        match kept {
            Ok(()) => self.ring(),
            Err(buffer) => self.not_sent(key, buffer, NotSent::Refused),
        }
    }

    /// How many packets wait.
    pub fn held(&self) -> usize {
        self.asking.borrow().held
    }

    /// A neighbour answered: what waited for it leaves.
    pub(super) fn answered(&self, key: Key) {
        let ask = self.asking.borrow_mut().take(key);
        ask.into_iter().flat_map(|ask| ask.held).for_each(|buffer| self.send_on(key, buffer));
    }

    /// Sends a packet to a neighbour that is known now: to the rewrite node, because the lookup has been done.
    fn send_on(&self, key: Key, mut buffer: Buffer) {
        let adj = self.installed.borrow().get(&key).map(|i| i.adj);
        let ready = adj.filter(|adj| self.adjacencies.get(*adj).kind() == AdjKind::Rewrite);
        let (Some(adj), Ok(rewrite)) = (ready, self.graph.node("ip4-rewrite")) else {
            return self.not_sent(key, buffer, NotSent::Gone);
        };
        let mut main = self.graph.main();
        main.cache().packet(&mut buffer).meta_mut().adj = adj.0;
        main.inject(rewrite, buffer);
        self.counters.held_sent.add(0, key.0.0 as usize, 1);
    }

    fn not_sent(&self, key: Key, mut buffer: Buffer, why: NotSent) {
        let counter = match why {
            NotSent::Refused => &self.counters.held_refused,
            NotSent::Silent | NotSent::Gone => &self.counters.held_failed,
        };
        counter.add(0, key.0.0 as usize, 1);
        let mut main = self.graph.main();
        *main.cache().packet(&mut buffer).scratch::<u32>() = why as u32;
        match self.graph.node("ip4-arp-failed") {
            Ok(failed) => main.inject(failed, buffer),
            Err(_) => main.cache().free(buffer),
        }
    }

    /// Ends questions, and with them the wait of their packets.
    pub(super) fn give_up(&self, which: impl Fn(Key) -> bool, why: NotSent) {
        let keys: Vec<Key> = self.asking.borrow().asks.keys().copied().filter(|k| which(*k)).collect();
        for key in keys {
            let ask = self.asking.borrow_mut().take(key);
            ask.into_iter().flat_map(|ask| ask.held).for_each(|buffer| self.not_sent(key, buffer, why));
        }
    }

    /// When something is to be done next.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let asks = self.asking.borrow().asks.values().map(|ask| ask.next).min();
        let table = self.table.borrow();
        let age = table.limits().age;
        let oldest = table.oldest().filter(|_| age > Duration::ZERO).map(|(updated, _)| updated.after(age));
        // The oldest may have been asked already and still be the oldest.
        let soon = self.graph.clock().now().after(BETWEEN_PROBES);
        asks.into_iter().chain(oldest.map(|due| due.max(soon))).min()
    }

    /// Does what is due: asks again, gives up, asks old neighbours whether they are still there.
    pub(crate) fn tick(&self) {
        let now = self.graph.clock().now();
        let due: Vec<(Key, u32, Ipv4Addr)> = {
            let asking = self.asking.borrow();
            let due = asking.asks.iter().filter(|(_, ask)| ask.next <= now);
            due.map(|(key, ask)| (*key, ask.tries, ask.source)).collect()
        };
        for (key, tries, source) in due {
            if tries >= TRIES {
                self.silent(key);
                continue;
            }
            if let Some(ask) = self.asking.borrow_mut().asks.get_mut(&key) {
                ask.tries += 1;
                ask.next = now.after(PATIENCE);
            }
            self.ask(key, source);
        }
        self.probe_aged(now);
    }

    /// Nobody answered: the neighbour is gone, if it was ever there.
    fn silent(&self, key: Key) {
        if self.table.borrow_mut().remove(key).is_some() {
            self.uninstall(key);
        }
        self.give_up(|k| k == key, NotSent::Silent);
    }

    fn probe_aged(&self, now: Time) {
        let aged: Vec<Key> = {
            let (table, asking) = (self.table.borrow(), self.asking.borrow());
            table.aged(now).filter(|key| !asking.is_asked(*key)).take(MOST_PROBED).collect()
        };
        for key in aged {
            let source = self.source_for(key);
            let ask = Ask { tries: 1, next: now.after(PATIENCE), source, held: Vec::new() };
            self.asking.borrow_mut().asks.insert(key, ask);
            self.ask(key, source);
        }
    }

    /// Our address to ask a neighbour with; unspecified when there is none.
    fn source_for(&self, (interface, address): Key) -> Ipv4Addr {
        let addresses = self.addresses(interface);
        let on_link = addresses.iter().find(|a| a.contains(address)).or(addresses.first());
        on_link.map_or(Ipv4Addr::UNSPECIFIED, Ip4Prefix::addr)
    }

    /// Sends one question: to the neighbour itself if it is known, else to everybody.
    fn ask(&self, (interface, target): Key, source: Ipv4Addr) {
        let Ok(data) = self.interfaces.data(interface) else { return };
        if !data.is_up() || source.is_unspecified() {
            return;
        }
        let to = self.table.borrow().get((interface, target)).map_or(MacAddress::BROADCAST, |n| n.mac);
        let question = Question { interface, mac: data.mac(), source, to, target };
        let mut main = self.graph.main();
        // Without a buffer this try is lost; the next one comes by the clock.
        if let Some(buffer) = question.packet(main.cache()) {
            main.inject(self.interfaces.output_node(), buffer);
            self.counters.count_tx(Kind::Request, 0, interface);
        }
    }
}
