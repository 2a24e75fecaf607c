//! `ip4-replicate`, `ip6-replicate`: one packet for each interface of the entry, and one for this router if it listens.
//! the RPF check -> **replicate** -> rewrite | local delivery | itself, with what is left to do
//!
//! A frame node, because one packet becomes many. Copies share the payload, for nothing behind the headers is changed on
//! the way out; but this router itself gets a copy of every byte. The last taker gets the packet itself.
//!
//! However many interfaces an entry has, one call makes at most [`MOST_COPIES`]: packets that need more come round again
//! behind what was made, which is sent meanwhile. So copies of one burst do not use up all buffers.

use std::marker::PhantomData;

use shoal_adj::{AdjIndex, AdjKind, AdjTable};
use shoal_buffer::{Buffer, Flags, Frame, Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::{Edge, FrameCx, FrameNode, NextNodes, ReplicaTarget};
use shoal_infra::Guard;

use super::mark::Mark;
use crate::MfibTable;
use crate::family::Ip;
use crate::table::EntryData;

/// Most copies made in one call, but for one more of each packet.
const MOST_COPIES: usize = 1024;

/// Where a packet goes next: an edge.
#[derive(Clone, Copy)]
pub(crate) struct Next<F>(u16, PhantomData<F>);

impl<F: Ip> NextNodes for Next<F> {
    const NAMES: &'static [&'static str] = F::REPLICATE_NEXT;

    fn edge(self) -> Edge {
        Edge(self.0)
    }
}

const REWRITE: Edge = Edge(1);
const LOCAL: Edge = Edge(2);
const AGAIN: Edge = Edge(3);

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// copies made
    #[severity(info)]
    Copies,
    /// no buffer for a copy
    NoBuffer,
    /// only the interface it came by is left
    #[severity(info)]
    NoOther,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("replicate: entry {entry} copy {copy}")]
pub(crate) struct Trace {
    entry: u32,
    copy: u32,
}

/// Makes copies.
pub(crate) struct Replicate<F> {
    pub table: MfibTable,
    pub adjacencies: AdjTable,
    pub family: PhantomData<F>,
}

/// Who takes a packet.
#[derive(Clone, Copy)]
enum ReplicaOwner {
    Local,
    Out(AdjIndex),
}

/// One taker of an entry's packets, and the place behind it.
#[derive(Clone, Copy)]
struct Place {
    who: ReplicaOwner,
    entry: u32,
    behind: u32,
}

impl ReplicaTarget for Place {
    type Trace = Trace;

    fn address(&self, pkt: &mut Packet<'_>) -> Edge {
        let meta = pkt.meta_mut();
        match self.who {
            ReplicaOwner::Local => {
                // No error is sent about it: RFC 1122, 3.2.2; RFC 4443, 2.4 (e.3).
                meta.flags = meta.flags.with(Flags::LINK_MULTICAST);
                LOCAL
            }
            ReplicaOwner::Out(adj) => {
                meta.adj = adj.0;
                REWRITE
            }
        }
    }

    fn trace(&self) -> Trace {
        Trace { entry: self.entry, copy: self.behind - 1 }
    }

    fn wants_all(&self) -> bool {
        matches!(self.who, ReplicaOwner::Local)
    }
}

impl<F: Ip> Replicate<F> {
    /// The first taker from place `from` on. A packet never leaves by the interface it came by.
    fn taker(
        &self,
        entry: &EntryData,
        (from, mark, rx): (u32, Mark, SwIfIndex),
        guard: Guard<'_>,
    ) -> Option<Place> {
        if from == 0 && entry.local {
            return Some(Place { who: ReplicaOwner::Local, entry: mark.entry, behind: 1 });
        }
        if mark.on_link != 0 {
            return None;
        }
        let first = from.max(1);
        let places = entry.out.get(first as usize - 1..).unwrap_or_default();
        (first..).zip(places).find_map(|(place, index)| {
            let adj = self.adjacencies.get(*index, guard);
            let goes = adj.kind() == AdjKind::Multicast && adj.tx() != rx;
            goes.then_some(Place { who: ReplicaOwner::Out(*index), entry: mark.entry, behind: place + 1 })
        })
    }

    fn one(&self, mut buffer: Buffer, most: &mut usize, cx: &mut FrameCx<'_>) {
        let guard = cx.guard();
        let mut pkt = cx.cache().packet(&mut buffer);
        let (mark, rx) = (*pkt.scratch::<Mark>(), pkt.rx());
        let entry = self.table.entry(mark.entry, guard);
        let after = |from| self.taker(entry, (from, mark, rx), guard);
        let takers = std::iter::successors(after(mark.done), |place| after(place.behind));
        let done = cx.replicate(buffer, takers, most);
        cx.count(Error::Copies, done.copies as u64);
        cx.count(Error::NoBuffer, done.missed as u64);
        match done.left {
            None => {}
            Some((buffer, None)) => cx.drop(buffer, Error::NoOther),
            Some((mut buffer, Some(place))) => {
                *cx.cache().packet(&mut buffer).scratch::<Mark>() = Mark { done: place.behind - 1, ..mark };
                cx.send(AGAIN, buffer);
            }
        }
    }
}

impl<F: Ip> FrameNode for Replicate<F> {
    const NAME: &'static str = F::REPLICATE;
    type Next = Next<F>;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let mut most = MOST_COPIES;
        for buffer in frame.drain() {
            self.one(buffer, &mut most, cx);
        }
    }
}
