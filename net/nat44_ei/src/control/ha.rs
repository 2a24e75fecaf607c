//! Another router learns of sessions as they come and go, so that it can go on when this one fails.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use shoal_datagram::{Checksum, Datagram};
use shoal_fib::FibIndex;
use shoal_graph::Graph;
use shoal_graph::clock::Time;
use shoal_graph::counter::Simple;
use shoal_graph::process::{Receiver, channel};
use shoal_ip::ListenerTable;
use shoal_ip4::Ip4Family;
use shoal_module::api::ClientIndex;

use super::{Nat44Ei, NatError, Slice};
use crate::ha_wire::{CHANGE, Change, HEADER, Header};
use crate::node::ha::{HaDatagram, HaInput};
use crate::sessions::{Event, Record, Session, Sessions, inside_key, outside_key, tick};

/// As VPP sends them.
const TTL: u8 = 254;
/// Bytes of IPv4's and UDP's headers.
const HEADERS: usize = 28;
/// The longest datagram's packet, whatever the path could take.
const MOST_MTU: u32 = 1500;
/// Changes wait so long for others.
const FLUSH: Duration = Duration::from_secs(1);
/// A datagram is sent again after so long.
const AGAIN: Duration = Duration::from_secs(2);
/// So often.
const TRIES: u32 = 3;
/// Datagrams that wait to be acknowledged.
const MOST_UNANSWERED: usize = 1 << 14;
/// The same while all sessions are sent.
const MOST_OF_RESYNC: usize = 512;
/// How often sessions are sent while all are.
const RESYNC: Duration = Duration::from_millis(20);
/// Datagrams that came and wait to be read.
const WAITING: usize = 256;

/// Where this router hears of another's sessions, and sends from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listener {
    /// Its own address.
    pub address: Ipv4Addr,
    /// The port.
    pub port: u16,
    /// The longest packet of the way between the two.
    pub path_mtu: u32,
}

impl Listener {
    /// VPP's path MTU, by default.
    pub const PATH_MTU: u32 = 512;
}

/// The other router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failover {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its port.
    pub port: u16,
    /// Seconds after which it hears again of a session that is used.
    pub refresh: u32,
}

impl Failover {
    /// VPP's interval, by default.
    pub const REFRESH: u32 = 10;
}

/// A datagram that was not acknowledged yet.
struct UnackedDatagram {
    bytes: Vec<u8>,
    sent: Time,
    tries: u32,
    of_resync: bool,
}

/// All sessions are being sent.
struct Resync {
    next: Option<Slice>,
    missed: u32,
    client: Option<(ClientIndex, u32)>,
}

#[derive(Default)]
struct Ha {
    listener: Option<Listener>,
    failover: Option<Failover>,
    sequence: u32,
    /// Changes of each thread's sessions that wait for others.
    waiting: BTreeMap<usize, Vec<Change>>,
    unanswered: BTreeMap<u32, UnackedDatagram>,
    /// When what waits is sent.
    flush_at: Option<Time>,
    /// When datagrams that were not acknowledged are looked at.
    check_at: Option<Time>,
    resync: Option<Resync>,
}

/// What is counted.
struct Counts {
    received: [Simple; 3],
    sent: [Simple; 3],
    acks_received: Simple,
    acks_sent: Simple,
    retries: Simple,
    missed: Simple,
}

impl Counts {
    fn new(graph: &Graph) -> io::Result<Self> {
        let one = |name: &str| {
            let counter = graph.counters().simple(&format!("/nat44-ei/ha/{name}"), 1)?;
            counter.ensure(1);
            Ok::<_, io::Error>(counter)
        };
        let events = |way: &str| {
            Ok::<_, io::Error>([
                one(&format!("add-event-{way}"))?,
                one(&format!("del-event-{way}"))?,
                one(&format!("refresh-event-{way}"))?,
            ])
        };
        Ok(Counts {
            received: events("recv")?,
            sent: events("send")?,
            acks_received: one("ack-recv")?,
            acks_sent: one("ack-send")?,
            retries: one("retry-count")?,
            missed: one("missed-count")?,
        })
    }

    fn count(counters: &[Simple; 3], event: Event) {
        let [begins, ends, used] = counters;
        let counter = match event {
            Event::Begins => begins,
            Event::Ends => ends,
            Event::Used => used,
        };
        counter.add(0, 0, 1);
    }
}

/// What this router and another know of each other's sessions.
pub(super) struct Replication {
    state: RefCell<Ha>,
    counts: Counts,
    heard: Receiver<HaDatagram>,
    /// Rung when there is something to send.
    bell: shoal_graph::process::Sender<()>,
    rung: Receiver<()>,
}

impl Replication {
    pub fn new(graph: &Graph) -> Result<Self, shoal_module::InitError> {
        let (tell, heard) = channel(WAITING);
        let (bell, rung) = channel(1);
        graph.add_packet(HaInput { tell })?;
        Ok(Replication { state: RefCell::default(), counts: Counts::new(graph)?, heard, bell, rung })
    }

    /// Seconds after which a used session is sent again; 0: there is no other router.
    pub fn refresh(&self) -> u32 {
        self.state.borrow().failover.map_or(0, |failover| failover.refresh.max(1))
    }
}

/// A change as a thread says it.
fn change(event: Event, record: &Record) -> Change {
    Change { event, session: record.session, packets: record.packets, bytes: record.bytes }
}

impl Nat44Ei {
    fn ring(&self) {
        let _ = self.replication.bell.try_send(());
    }

    /// Where this router listens.
    pub fn listener(&self) -> Option<Listener> {
        self.replication.state.borrow().listener
    }

    /// The other router.
    pub fn failover(&self) -> Option<Failover> {
        self.replication.state.borrow().failover
    }

    /// Listens for another router's sessions; port 0: does so no more.
    ///
    /// # Errors
    /// The port is used.
    pub fn set_listener(&self, listener: Listener) -> Result<(), NatError> {
        let control = self.control.upgrade().ok_or(NatError::Disabled("nat44 ei"))?;
        let unable =
            |e: String| NatError::Value(format!("port {} cannot be listened at: {e}", listener.port));
        let table = control.get::<ListenerTable<Ip4Family>>().map_err(|e| unable(e.to_string()))?;
        let old = self.listener();
        if listener.port != 0 && old.map(|old| old.port) != Some(listener.port) {
            if table.udp(listener.port).is_some() {
                return Err(unable("another part of the router has it".to_owned()));
            }
            let edge = self.graph.add_edge(self.graph.node("ip4-local")?, self.graph.node("nat44-ei-ha")?);
            table.set_udp(listener.port, Some(edge?));
        }
        if let Some(old) = old.filter(|old| old.port != listener.port) {
            table.set_udp(old.port, None);
        }
        self.replication.state.borrow_mut().listener = (listener.port != 0).then_some(listener);
        self.renew_replication();
        Ok(())
    }

    /// Tells another router of sessions; port 0: does so no more.
    pub fn set_failover(&self, failover: Failover) {
        self.replication.state.borrow_mut().failover = (failover.port != 0).then_some(failover);
        self.renew_replication();
    }

    fn renew_replication(&self) {
        let mut state = self.replication.state.borrow_mut();
        if state.listener.is_none() || state.failover.is_none() {
            state.waiting.clear();
            state.unanswered.clear();
            state.resync = None;
        }
        drop(state);
        self.renew_listening();
        self.publish();
    }

    pub(super) fn stop_replication(&self) {
        if let Some(listener) = self.listener()
            && let Some(control) = self.control.upgrade()
            && let Ok(table) = control.get::<ListenerTable<Ip4Family>>()
        {
            table.set_udp(listener.port, None);
        }
        self.replication.state.take();
        self.renew_listening();
    }

    /// Whether another router receives sessions.
    pub(super) fn replicates(&self) -> bool {
        self.listener().zip(self.failover()).is_some()
    }

    /// What a thread says of a session waits to be sent.
    pub(super) fn replicate(&self, thread: usize, event: Event, record: &Record) {
        let mut state = self.replication.state.borrow_mut();
        let (Some(listener), Some(_)) = (state.listener, state.failover) else { return };
        let waiting = state.waiting.entry(thread).or_default();
        waiting.push(change(event, record));
        let is_full = waiting.len() >= room(listener);
        let is_first = state.flush_at.is_none();
        if is_first {
            state.flush_at = Some(self.graph.clock().now().after(FLUSH));
        }
        drop(state);
        if is_full {
            self.flush_thread(thread, false);
        }
        if is_first {
            self.ring();
        }
    }

    fn flush_thread(&self, thread: usize, of_resync: bool) {
        let changes = self.replication.state.borrow_mut().waiting.remove(&thread).unwrap_or_default();
        if let Some(listener) = self.listener() {
            changes.chunks(room(listener)).for_each(|changes| self.send(thread, changes, of_resync));
        }
    }

    /// Sends what waits now.
    pub fn flush(&self) {
        // Changes that threads have told come first.
        while let Ok(told) = self.told.try_recv() {
            self.pass(&told);
        }
        self.flush_all();
    }

    fn flush_all(&self) {
        self.replication.state.borrow_mut().flush_at = None;
        let threads: Vec<usize> = self.replication.state.borrow().waiting.keys().copied().collect();
        for thread in threads {
            self.flush_thread(thread, false);
        }
    }

    fn send(&self, thread: usize, changes: &[Change], of_resync: bool) {
        let count = changes.len() as u16;
        let mut state = self.replication.state.borrow_mut();
        let sequence = state.sequence;
        state.sequence = sequence.wrapping_add(1);
        let header = Header { is_ack: false, count, sequence, thread: thread as u32 };
        let mut bytes = header.write().to_vec();
        for change in changes {
            bytes.extend(change.write());
            Counts::count(&self.replication.counts.sent, change.event);
        }
        if state.unanswered.len() >= MOST_UNANSWERED {
            drop(state);
            return self.miss(of_resync);
        }
        let sent = self.graph.clock().now();
        let unanswered = UnackedDatagram { bytes: bytes.clone(), sent, tries: 0, of_resync };
        state.unanswered.insert(sequence, unanswered);
        let is_first = state.check_at.is_none();
        if is_first {
            state.check_at = Some(sent.after(AGAIN));
        }
        drop(state);
        self.send_datagram(&bytes, None);
        if is_first {
            self.ring();
        }
    }

    /// A datagram is lost.
    fn miss(&self, of_resync: bool) {
        self.replication.counts.missed.add(0, 0, 1);
        if of_resync && let Some(resync) = &mut self.replication.state.borrow_mut().resync {
            resync.missed = resync.missed.saturating_add(1);
        }
    }

    /// To the other router, or to where a datagram came from.
    fn send_datagram(&self, bytes: &[u8], answers: Option<&HaDatagram>) {
        let (listener, failover) = (self.listener(), self.failover());
        let ends = match answers {
            Some(heard) => Some((heard.to, heard.from)),
            None => listener.zip(failover).map(|(l, f)| ((l.address, l.port), (f.address, f.port))),
        };
        let Some((source, destination)) = ends else { return };
        let datagram = Datagram {
            source: (source.0.into(), source.1),
            destination: (destination.0.into(), destination.1),
            table: FibIndex::DEFAULT,
            hops: TTL,
            tos: 0,
            checksum: Checksum::Zero,
        };
        if let Err(e) = datagram.send(&self.graph, bytes) {
            tracing::debug!("sessions are not sent to {}: {e}", destination.0);
        }
    }

    /// Sends all sessions to the other router; `client` hears when it has them. There may be none of either.
    ///
    /// # Errors
    /// It is being done.
    pub fn resync(&self, client: Option<(ClientIndex, u32)>) -> Result<(), NatError> {
        if !self.replicates() {
            if let (Some(client), Some(control)) = (client, self.control.upgrade()) {
                crate::api::resynced(&control, client, 0);
            }
            return Ok(());
        }
        let first = self.threads().first().copied().unwrap_or(0);
        let mut state = self.replication.state.borrow_mut();
        if state.resync.is_some() {
            return Err(NatError::Busy("sessions are being sent already"));
        }
        let next = Some(Slice { thread: first, from: 0 });
        state.resync = Some(Resync { next, missed: 0, client });
        drop(state);
        self.step_resync();
        self.ring();
        Ok(())
    }

    /// Whether all sessions are being sent.
    pub fn is_resyncing(&self) -> bool {
        self.replication.state.borrow().resync.is_some()
    }

    /// Some more sessions, if the other router keeps up.
    fn step_resync(&self) {
        let state = self.replication.state.borrow();
        let Some(slice) = state.resync.as_ref().and_then(|resync| resync.next) else { return };
        if state.unanswered.len() >= MOST_OF_RESYNC {
            return;
        }
        drop(state);
        let threads = self.threads();
        let after = || threads.iter().copied().find(|thread| *thread > slice.thread);
        let next = match self.slice(slice, |_| true) {
            Ok((records, next)) => {
                let changes: Vec<Change> =
                    records.iter().map(|record| change(Event::Begins, record)).collect();
                if let Some(listener) = self.listener() {
                    changes.chunks(room(listener)).for_each(|some| self.send(slice.thread, some, true));
                }
                next.or_else(|| after().map(|thread| Slice { thread, from: 0 }))
            }
            Err(e) => {
                tracing::warn!(thread = slice.thread, "its sessions are not sent: {e}");
                after().map(|thread| Slice { thread, from: 0 })
            }
        };
        if let Some(resync) = &mut self.replication.state.borrow_mut().resync {
            resync.next = next;
        }
    }

    fn end_resync(&self) {
        let mut state = self.replication.state.borrow_mut();
        let is_done = state.resync.as_ref().is_some_and(|resync| resync.next.is_none())
            && !state.unanswered.values().any(|one| one.of_resync);
        let done = if is_done { state.resync.take() } else { None };
        drop(state);
        if let Some(Resync { missed, client: Some((client, pid)), .. }) = done
            && let Some(control) = self.control.upgrade()
        {
            crate::api::resynced(&control, (client, pid), missed);
        }
    }

    /// What is due: changes that wait, datagrams that were not acknowledged. Tells when to come again.
    pub(crate) fn tick(&self) -> Option<Time> {
        let now = self.graph.clock().now();
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        if is_due(self.replication.state.borrow().flush_at) {
            self.flush_all();
        }
        if is_due(self.replication.state.borrow().check_at) {
            self.check_unanswered(now);
        }
        self.step_resync();
        self.end_resync();
        let state = self.replication.state.borrow();
        let sends_all = state.resync.as_ref().is_some_and(|resync| resync.next.is_some());
        let resync = sends_all.then(|| now.after(RESYNC));
        [state.flush_at, state.check_at, resync].into_iter().flatten().min()
    }

    fn check_unanswered(&self, now: Time) {
        let (mut again, mut missed) = (Vec::new(), Vec::new());
        let mut state = self.replication.state.borrow_mut();
        state.unanswered.retain(|_, one| {
            if now < one.sent.after(AGAIN) {
                return true;
            }
            if one.tries >= TRIES {
                missed.push(one.of_resync);
                return false;
            }
            one.tries += 1;
            one.sent = now;
            again.push(one.bytes.clone());
            true
        });
        state.check_at = state.unanswered.values().map(|one| one.sent.after(AGAIN)).min();
        drop(state);
        for bytes in again {
            self.replication.counts.retries.add(0, 0, 1);
            self.send_datagram(&bytes, None);
        }
        for of_resync in missed {
            self.miss(of_resync);
        }
    }

    pub(crate) fn rung(&self) -> Receiver<()> {
        self.replication.rung.clone()
    }

    /// Reads what the other router says.
    pub(crate) async fn hear(self: Rc<Self>) {
        while let Ok(heard) = self.replication.heard.recv().await {
            self.take(&heard);
        }
    }

    fn take(&self, heard: &HaDatagram) {
        // Where there is another router, nothing else is one.
        if self.enabled().is_none() || self.failover().is_some_and(|other| other.address != heard.from.0) {
            return;
        }
        let Some(header) = Header::read(&heard.bytes) else { return };
        if header.is_ack {
            let known = self.replication.state.borrow_mut().unanswered.remove(&header.sequence);
            if known.is_some() {
                self.replication.counts.acks_received.add(0, 0, 1);
                self.end_resync();
            }
            return;
        }
        let changes = heard.bytes.get(HEADER..).unwrap_or_default().chunks_exact(CHANGE);
        let changes: Vec<Change> = changes.take(header.count.into()).filter_map(Change::read).collect();
        for change in &changes {
            Counts::count(&self.replication.counts.received, change.event);
        }
        self.take_in(changes);
        self.send_datagram(&Header { is_ack: true, count: 0, ..header }.write(), Some(heard));
        self.replication.counts.acks_sent.add(0, 0, 1);
    }

    fn take_in(&self, changes: Vec<Change>) {
        let config = self.shared.config.get();
        let mut by_thread: BTreeMap<usize, Vec<Change>> = BTreeMap::new();
        for change in changes {
            // One that begins says whose it is; of another that is not said.
            let threads = match change.event {
                Event::Begins => vec![config.of_host(change.session.inside.0)],
                Event::Ends | Event::Used => config.workers.clone(),
            };
            for thread in threads {
                by_thread.entry(thread).or_default().push(change);
            }
        }
        let outside = &config.outside;
        let mut tables = outside.tables.iter();
        let outside_table = match (tables.next(), outside.tables.len()) {
            (Some(only), 1) => *only,
            _ => outside.table,
        };
        for (thread, changes) in by_thread {
            let (shared, config) = (std::sync::Arc::clone(&self.shared), std::sync::Arc::clone(&config));
            let now = self.graph.clock().now();
            let taken = self.graph.on_state(&self.keeping, thread, move |_, sessions| {
                for change in changes {
                    let session = Session { outside_table, ..change.session };
                    take_change(sessions, &Change { session, ..change }, &config, now);
                }
                shared.count(thread, sessions);
            });
            if let Err(e) = taken {
                tracing::warn!(thread, "another router's sessions are not taken in: {e}");
            }
        }
    }
}

/// Changes of a datagram: at least one, however short the path's packets are.
fn room(listener: Listener) -> usize {
    ((listener.path_mtu.min(MOST_MTU) as usize).saturating_sub(HEADERS + HEADER) / CHANGE).max(1)
}

/// Does to a worker's sessions what another router says. What cannot be is left.
fn take_change(sessions: &mut Sessions, change: &Change, config: &crate::config::Config, now: Time) {
    let Change { event, session, packets, bytes } = *change;
    let at = tick(now);
    let before = sessions.events.len();
    match event {
        Event::Ends => {
            sessions.end(outside_key(session.outside, session.protocol, session.outside_table));
        }
        Event::Used => sessions.refresh(&session, packets, bytes, at),
        Event::Begins => {
            let key = inside_key(session.inside, session.protocol, session.inside_table);
            let host = (session.inside.0, session.inside_table);
            if sessions.find(key).is_none() && sessions.make_room(host, config).is_ok() {
                let record = Record { session, packets, bytes, age: 0, index: 0, user: 0, is_answered: true };
                sessions.take_in(&record, at);
            }
        }
    }
    // The other router knows.
    sessions.events.truncate(before);
}
