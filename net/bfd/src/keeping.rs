//! What each thread does at its own times: packets of sessions that are up are sent, and missed.
//!
//! The main thread gives each session that is up to one thread ([`Keeping::owner`]). That one sends its packets and looks whether any
//! comes; what the session is then is the main thread's to decide. Sessions move with workers that come and go.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use shoal_adj::{AdjKind, AdjTable};
use shoal_buffer::Flags;
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_fib::FibIndex;
use shoal_graph::clock::Time;
use shoal_graph::counter::Combined;
use shoal_graph::process::Sender;
use shoal_graph::{FrameCx, NextNodes as _, NodeIndex, Shares, Stateful};
use shoal_interface::IfTable;

use crate::auth::Key;
use crate::control::Hop;
use crate::packet::{AUTH_LEN, Echo, LEN};
use crate::session::{Nanos, Session, Vital};
use crate::shared::{Plan, SharedSession};
use crate::template::Template;

/// Sessions that are seen to before packets are.
const AT_ONCE: usize = 256;
/// Nanoseconds between the end of a session's time and the verdict. Packets that this or another thread has in hand are heard
/// meanwhile: a thread that was stopped for a while finds its clock first.
const GRACE: Nanos = 2_000_000;
/// How often a thread may be stopped just then.
const MOST_STOPS: u8 = 1;

/// What a thread says of a session that nothing was heard of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expired {
    /// Its number among the counters.
    pub index: u32,
    /// Of which plan.
    pub version: u32,
}

/// Where packets go.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To a neighbour.
    #[node("ip4-rewrite")]
    Rewrite4,
    /// The same.
    #[node("ip6-rewrite")]
    Rewrite6,
    /// To another router.
    #[node("ip4-lookup")]
    Lookup4,
    /// The same.
    #[node("ip6-lookup")]
    Lookup6,
}

/// How a packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// To a neighbour that is known.
    Rewrite,
    /// To one that is asked for.
    Ask,
    /// As the forwarding table says.
    Lookup,
}

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// packets not sent, no buffer was free
    #[counter("no-buffer")]
    NoBuffer,
}

/// When a session is seen to.
struct Due {
    at: Time,
    session: Arc<SharedSession>,
    version: u32,
    /// Its time is over.
    late: Option<Late>,
}

/// A session whose time is over, and which may be heard of yet.
#[derive(Clone, Copy)]
struct Late {
    /// When it was heard of last, and its echo packets.
    heard: (Option<Nanos>, Nanos),
    /// How often the thread came to it much later than it was to.
    stops: u8,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.cmp(&other.at)
    }
}

/// Sessions of one thread.
#[derive(Default)]
pub struct Held {
    due: BinaryHeap<Reverse<Due>>,
    /// So many are there before those that are none any more go.
    most: usize,
}

/// Times of a thread that may be those of plans of before, whatever happens.
const FEW: usize = 64;

impl Held {
    /// Sees to a session from now on. One plan of it may be there already: it lets go of that when it comes to it.
    pub fn take(&mut self, session: Arc<SharedSession>, version: u32) {
        if self.due.len() >= self.most.max(FEW) {
            // Who says something new with each packet fills no memory.
            self.due.retain(|Reverse(due)| due.session.is_version(due.version));
            self.most = 2 * self.due.len();
        }
        self.due.push(Reverse(Due { at: Time(0), session, version, late: None }));
    }

    /// Numbers of its sessions, and perhaps of some that were taken back just now.
    pub fn sessions(&self) -> BTreeSet<u32> {
        self.due.iter().map(|Reverse(due)| due.session.index).collect()
    }
}

/// What threads need for sessions that are up.
pub struct Keeping {
    /// How packets go to neighbours.
    pub adjacencies: AdjTable,
    /// In which table others are looked for.
    pub interfaces: IfTable,
    /// By which echo packets are signed.
    pub secret: Key,
    /// To the main thread.
    pub tell: Sender<Expired>,
    /// Packets sent.
    pub tx: Combined,
    /// Echo packets sent.
    pub echo_tx: Combined,
    /// Nodes that ask for neighbours, IPv4's and IPv6's: they come later than this one.
    pub askers: OnceLock<(NodeIndex, NodeIndex)>,
    /// Threads that see to sessions. Only the main thread looks.
    pub workers: Mutex<Vec<usize>>,
}

/// The thread for a session, of these.
fn owner(index: u32, workers: &[usize]) -> usize {
    let nth = index as usize % workers.len().max(1);
    workers.get(nth).copied().unwrap_or(0)
}

impl Keeping {
    /// The thread that sees to a session.
    pub fn owner(&self, index: u32) -> usize {
        owner(index, &self.workers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn shares(due: BinaryHeap<Reverse<Due>>, workers: &[usize]) -> Shares<Held> {
        let mut shares: Vec<(usize, Held)> =
            workers.iter().map(|thread| (*thread, Held::default())).collect();
        for due in due {
            let to = owner(due.0.session.index, workers);
            if let Some((_, held)) = shares.iter_mut().find(|(thread, _)| *thread == to) {
                held.due.push(due);
            }
        }
        shares.retain(|(_, held)| !held.due.is_empty());
        shares
    }

    /// Does what is due for a session; when it is due again.
    fn serve(&self, due: Due, cx: &mut FrameCx<'_>) -> Option<Due> {
        let Due { session: shared, version, .. } = &due;
        let plan = shared.plan(*version, cx.guard())?;
        let now = cx.now().0;
        let before = shared.vital();
        let mut session = plan.session.clone();
        session.set_vital(before);
        let jitter = fastrand::f64();
        let todo = session.due(now, jitter);
        if todo.changed {
            let next = self.is_late(&due, before, now)?;
            // It goes on until the main thread says otherwise.
            let mut session = plan.session.clone();
            session.set_vital(before);
            if session.is_to_send(now) {
                self.send_control((shared, plan), &mut session, jitter, cx);
                shared.note(before, session.vital());
            }
            return Some(Due { at: Time(now + GRACE), late: Some(next), ..due });
        }
        if todo.send.is_some() {
            self.send_control((shared, plan), &mut session, jitter, cx);
        }
        if let (Some(expires), Some(echo)) = (todo.echo, &plan.echo) {
            let bytes = Echo { discr: shared.discr, expires }.write(&self.secret);
            let packet = echo.with(|data| data.copy_from_slice(&bytes));
            if self.send(&packet, Way::Rewrite, (shared, plan), cx) {
                self.echo_tx.add(cx.thread(), shared.index as usize, 1, packet.data_len() as u64);
            }
        }
        shared.note(before, session.vital());
        let at = Time(session.deadline()?);
        Some(Due { at, late: None, ..due })
    }

    /// A session's time is over: what is known of that, or `None` if the main thread has been told.
    fn is_late(&self, due: &Due, vital: Vital, now: Nanos) -> Option<Late> {
        let heard = (vital.last_rx, vital.last_echo_rx);
        let Some(late) = due.late.filter(|late| late.heard == heard) else {
            return Some(Late { heard, stops: 0 });
        };
        if now > due.at.0 + GRACE && late.stops < MOST_STOPS {
            // The thread was stopped again, and has packets again.
            return Some(Late { heard, stops: late.stops + 1 });
        }
        let report = Expired { index: due.session.index, version: due.version };
        // If there is no room, there is some a moment later.
        self.tell.try_send(report).err().map(|_| Late { heard, stops: MOST_STOPS })
    }

    fn send_control(
        &self,
        (shared, plan): (&SharedSession, &Plan),
        session: &mut Session,
        jitter: f64,
        cx: &mut FrameCx<'_>,
    ) {
        let sequence = session.sends(cx.now().0, jitter);
        let signed =
            session.auth.as_ref().map(|auth| plan.control.with(|data| sign(data, sequence, &auth.key)));
        let packet = signed.as_ref().unwrap_or(&plan.control);
        let kind = plan.probe.map(|probe| self.adjacencies.get(probe, cx.guard()).kind());
        let way = match kind {
            Some(AdjKind::Rewrite) => Way::Rewrite,
            Some(AdjKind::Incomplete) => Way::Ask,
            _ => Way::Lookup,
        };
        if self.send(packet, way, (shared, plan), cx) {
            self.tx.add(cx.thread(), shared.index as usize, 1, packet.data_len() as u64);
        }
    }

    /// Sends a packet, if there is a buffer for it.
    fn send(
        &self,
        packet: &Template,
        way: Way,
        (shared, plan): (&SharedSession, &Plan),
        cx: &mut FrameCx<'_>,
    ) -> bool {
        let Ok(mut buffer) = cx.cache().alloc_data(packet.bytes()) else {
            cx.count(Error::NoBuffer, 1);
            return false;
        };
        let mut pkt = cx.cache().packet(&mut buffer);
        let front = pkt.current();
        let meta = pkt.meta_mut();
        meta.set_fib(Some(self.table(shared)));
        meta.l3 = front;
        meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
        if let Some(probe) = plan.probe.filter(|_| way != Way::Lookup) {
            meta.adj = probe.0;
        }
        match (way, packet.is_ip6(), self.askers.get()) {
            (Way::Rewrite, false, _) => cx.send(Next::Rewrite4.edge(), buffer),
            (Way::Rewrite, true, _) => cx.send(Next::Rewrite6.edge(), buffer),
            (Way::Ask, false, Some((ip4, _))) => cx.send_to(*ip4, buffer),
            (Way::Ask, true, Some((_, ip6))) => cx.send_to(*ip6, buffer),
            (_, false, _) => cx.send(Next::Lookup4.edge(), buffer),
            (_, true, _) => cx.send(Next::Lookup6.edge(), buffer),
        }
        true
    }

    fn table(&self, shared: &SharedSession) -> FibIndex {
        match shared.key.hop {
            Hop::Multi => FibIndex::DEFAULT,
            Hop::Single(interface) if shared.key.local.is_ipv6() => {
                FibIndex(self.interfaces.ip6_table(interface))
            }
            Hop::Single(interface) => FibIndex(self.interfaces.ip4_table(interface)),
        }
    }
}

/// Signs a packet's bytes, which have room for that.
fn sign(data: &mut [u8], sequence: u32, key: &Key) {
    const SEQUENCE: usize = LEN + 4;
    const HASH: usize = SEQUENCE + 4;
    if let Some(place) = data.get_mut(SEQUENCE..HASH) {
        place.copy_from_slice(&sequence.to_be_bytes());
    }
    let hash = key.hash(data.get(..HASH).unwrap_or_default());
    if let Some(place) = data.get_mut(HASH..LEN + AUTH_LEN) {
        place.copy_from_slice(&hash);
    }
}

impl Stateful for Keeping {
    const NAME: &'static str = "bfd-timer";
    type Next = Next;
    type Error = Error;
    type State = Held;

    fn make(&self, _: usize) -> Held {
        Held::default()
    }

    #[inline(always)]
    fn due(&self, held: &Held) -> Option<Time> {
        held.due.peek().map(|Reverse(due)| due.at)
    }

    fn expire(&self, held: &mut Held, cx: &mut FrameCx<'_>) {
        let now = cx.now();
        for _ in 0..AT_ONCE {
            match held.due.peek() {
                Some(Reverse(due)) if due.at <= now => {}
                _ => return,
            }
            let Some(Reverse(due)) = held.due.pop() else { return };
            if let Some(next) = self.serve(due, cx) {
                held.due.push(Reverse(next));
            }
        }
    }

    fn workers(&self, workers: &[usize]) {
        *self.workers.lock().unwrap_or_else(PoisonError::into_inner) = workers.to_vec();
    }

    fn reshard(&self, held: &mut Held, here: usize, workers: &[usize]) -> Shares<Held> {
        let mut shares = Self::shares(std::mem::take(&mut held.due), workers);
        if let Some(at) = shares.iter().position(|(thread, _)| *thread == here) {
            *held = shares.swap_remove(at).1;
        }
        shares
    }

    fn give_up(&self, ended: Held, workers: &[usize]) -> Shares<Held> {
        Self::shares(ended.due, workers)
    }

    fn adopt(&self, mine: &mut Held, mut other: Held, _: &mut FrameCx<'_>) {
        mine.due.append(&mut other.due);
    }
}

#[cfg(test)]
mod tests {
    use shoal_interface::SwIfIndex;

    use super::*;
    use crate::control::SessionKey;

    #[test]
    fn plans_that_change_all_the_time_fill_no_memory() {
        let (hop, local, peer) = (Hop::Single(SwIfIndex(1)), [10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let shared = |index| Arc::new(SharedSession::new(index, SessionKey { hop, local, peer }, index + 1));
        let all: Vec<Arc<SharedSession>> = (0..100).map(shared).collect();
        let mut held = Held::default();
        for _ in 0..1000 {
            for session in &all {
                let version = session.set_plan(None);
                held.take(Arc::clone(session), version);
            }
        }
        assert!(held.due.len() <= 201, "{}", held.due.len());
        assert_eq!(held.sessions().len(), 100);
    }
}
