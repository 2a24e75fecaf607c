//! Why packets are punted, and which node takes those of a reason: shared by both planes.
//!
//! A feature that cannot go on with a packet names a reason when the router is put together, marks the packet with it
//! ([`PuntReason::mark`]) and sends it to `punt-dispatch`. Without a taker of the reason it ends there, counted.

use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use shoal_buffer::Packet;
use shoal_graph::Edge;
use shoal_graph::counter::Combined;
use shoal_infra::StableArena;

use crate::PuntError;

/// Most reasons.
pub(crate) const MOST: usize = 256;
/// The name under which this crate takes packets.
pub(crate) const OURS: &str = "ip-punt";

/// A reason's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PuntReason(pub u32);

impl PuntReason {
    /// Says of a packet why it is sent to `punt-dispatch`.
    #[inline]
    pub fn mark(self, pkt: &mut Packet<'_>) {
        // What a lookup found is of no use any more.
        pkt.meta_mut().adj = self.0;
    }

    /// The reason of a packet.
    #[inline]
    pub fn of(pkt: &Packet<'_>) -> PuntReason {
        PuntReason(pkt.meta().adj)
    }
}

/// Which edge of `punt-dispatch` packets of a reason take. Clones are the same.
#[derive(Clone)]
pub(crate) struct ReasonEdges(StableArena<AtomicU32>);

impl ReasonEdges {
    pub fn new() -> io::Result<Self> {
        Ok(ReasonEdges(StableArena::with_capacity(MOST)?))
    }

    pub fn of(&self, reason: PuntReason) -> Option<Edge> {
        // 0 is what memory begins with, and the edge of drops.
        let edge = self.0.get(reason.0 as usize)?.load(Ordering::Acquire);
        u16::try_from(edge).ok().filter(|edge| *edge != 0).map(Edge)
    }

    fn set(&self, reason: PuntReason, edge: Option<Edge>) {
        if let Some(cell) = self.0.get(reason.0 as usize) {
            cell.store(edge.map_or(0, |edge| u32::from(edge.0)), Ordering::Release);
        }
    }
}

/// A reason, for display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReasonInfo {
    /// Its number.
    pub reason: PuntReason,
    /// Its name.
    pub name: &'static str,
    /// Who names it.
    pub from: &'static str,
    /// Who takes its packets, and by which edge of `punt-dispatch`.
    pub taker: Option<(&'static str, Edge)>,
}

struct Reason {
    name: &'static str,
    from: &'static str,
    taker: Option<(&'static str, Edge)>,
}

/// All reasons.
pub struct Reasons {
    clients: RefCell<Vec<&'static str>>,
    all: RefCell<Vec<Reason>>,
    takers: ReasonEdges,
    counts: Combined,
}

impl Reasons {
    pub(crate) fn new(takers: ReasonEdges, counts: Combined) -> Self {
        Reasons { clients: RefCell::new(vec![OURS]), all: RefCell::default(), takers, counts }
    }

    fn enter(&self, client: &'static str) {
        let mut clients = self.clients.borrow_mut();
        if !clients.contains(&client) {
            clients.push(client);
        }
    }

    /// A feature names a reason; the same name is the same reason.
    ///
    /// # Errors
    /// There are too many.
    pub fn add(&self, from: &'static str, name: &'static str) -> Result<PuntReason, PuntError> {
        self.enter(from);
        let mut all = self.all.borrow_mut();
        if let Some(at) = all.iter().position(|reason| reason.name == name) {
            return Ok(PuntReason(at as u32));
        }
        if all.len() >= MOST {
            return Err(PuntError::TooManyReasons(MOST));
        }
        all.push(Reason { name, from, taker: None });
        Ok(PuntReason(all.len() as u32 - 1))
    }

    /// Somebody takes packets of a reason by an edge of `punt-dispatch`, or no longer.
    ///
    /// # Errors
    /// There is no such reason, or another one takes them.
    pub(crate) fn take(
        &self,
        reason: PuntReason,
        by: &'static str,
        edge: Option<Edge>,
    ) -> Result<(), PuntError> {
        self.enter(by);
        let mut all = self.all.borrow_mut();
        let known = all.len();
        let entry = all.get_mut(reason.0 as usize).ok_or(PuntError::NoReason { id: reason.0, known })?;
        if let Some((other, _)) = entry.taker.filter(|(other, _)| *other != by) {
            return Err(PuntError::ReasonTaken { name: entry.name, by: other });
        }
        entry.taker = edge.map(|edge| (by, edge));
        self.takers.set(reason, edge);
        Ok(())
    }

    /// A reason by its name.
    pub fn find(&self, name: &str) -> Option<PuntReason> {
        self.all.borrow().iter().position(|reason| reason.name == name).map(|at| PuntReason(at as u32))
    }

    /// Packets and bytes that were punted for a reason.
    pub fn count(&self, reason: PuntReason) -> (u64, u64) {
        self.counts.sum(reason.0 as usize)
    }

    /// A reason's name.
    pub fn name(&self, reason: PuntReason) -> Option<&'static str> {
        self.all.borrow().get(reason.0 as usize).map(|reason| reason.name)
    }

    /// All reasons.
    pub fn list(&self) -> Vec<ReasonInfo> {
        let all = self.all.borrow();
        let info = |(at, reason): (usize, &Reason)| ReasonInfo {
            reason: PuntReason(at as u32),
            name: reason.name,
            from: reason.from,
            taker: reason.taker,
        };
        all.iter().enumerate().map(info).collect()
    }

    /// Who names reasons, or takes packets.
    pub fn clients(&self) -> Vec<&'static str> {
        let mut clients = self.clients.borrow().clone();
        clients.sort_unstable();
        clients
    }
}
