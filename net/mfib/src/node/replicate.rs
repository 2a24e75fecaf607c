//! `ip4-replicate`, `ip6-replicate`: one packet for each interface of the entry, and one for this router if it listens.
//! the RPF check -> **replicate** -> rewrite | local delivery | itself, with what is left to do
//!
//! A frame node, because one packet becomes many. Copies are whole copies, bytes and all: a packet has one owner, and
//! bytes that two packets share would have to be counted, and never changed behind the headers. The last taker gets
//! the packet itself.
//!
//! However many interfaces an entry has, one call makes at most [`MOST_COPIES`]: packets that need more come round again
//! behind what was made, which is sent meanwhile. So copies of one burst do not use up all buffers.

use std::marker::PhantomData;

use shoal_adj::{AdjIndex, AdjKind, AdjTable};
use shoal_buffer::{Buffer, Flags, Frame, Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::{Edge, FrameCx, FrameNode, NextNodes};
use shoal_infra::Guard;

use super::mark::Mark;
use crate::MfibTable;
use crate::family::Ip;
use crate::table::EntryData;

/// Most copies made in one call, but for one more of each packet.
const MOST_COPIES: usize = 1024;

/// Copies of one packet that are traced with it.
const MOST_TRACED: u32 = 16;

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
struct Trace {
    entry: u32,
    copy: u32,
}

/// Makes copies.
pub(crate) struct Replicate<F> {
    pub table: MfibTable,
    pub adjacencies: AdjTable,
    pub family: PhantomData<F>,
}

/// One taker of a packet.
#[derive(Clone, Copy)]
enum Taker {
    Local,
    Out(AdjIndex),
}

impl<F: Ip> Replicate<F> {
    /// The first taker from place `from` on, and the place behind it. A packet never leaves by the interface it came by.
    fn taker(
        &self,
        entry: &EntryData,
        (from, mark, rx): (u32, Mark, SwIfIndex),
        guard: Guard<'_>,
    ) -> Option<(Taker, u32)> {
        if from == 0 && entry.local {
            return Some((Taker::Local, 1));
        }
        if mark.on_link != 0 {
            return None;
        }
        let first = from.max(1);
        let places = entry.out.get(first as usize - 1..).unwrap_or_default();
        (first..).zip(places).find_map(|(place, index)| {
            let adj = self.adjacencies.get(*index, guard);
            let goes = adj.kind() == AdjKind::Multicast && adj.tx() != rx;
            goes.then_some((Taker::Out(*index), place + 1))
        })
    }

    /// Marks a packet for its taker; returns the way.
    fn address(pkt: &mut Packet<'_>, taker: Taker) -> Edge {
        let meta = pkt.meta_mut();
        match taker {
            Taker::Local => {
                // Nobody is told of what is wrong with it: RFC 1122, 3.2.2; RFC 4443, 2.4 (e.3).
                meta.flags = meta.flags.with(Flags::LINK_MULTICAST);
                LOCAL
            }
            Taker::Out(adj) => {
                meta.adj = adj.0;
                REWRITE
            }
        }
    }

    fn one(&self, mut buffer: Buffer, left: &mut usize, cx: &mut FrameCx<'_>) {
        let guard = cx.guard();
        let mut pkt = cx.cache().packet(&mut buffer);
        let mark = *pkt.scratch::<Mark>();
        let rx = pkt.rx();
        let entry = self.table.entry(mark.entry, guard);
        let Some((mut taker, mut place)) = self.taker(entry, (mark.done, mark, rx), guard) else {
            cx.drop(buffer, Error::NoOther);
            return;
        };
        while let Some((next, behind)) = self.taker(entry, (place, mark, rx), guard) {
            if *left == 0 {
                let done = place - 1;
                *pkt.scratch::<Mark>() = Mark { done, ..mark };
                cx.send(AGAIN, buffer);
                return;
            }
            cx.trace(&pkt, || Trace { entry: mark.entry, copy: place - 1 });
            Self::copy(&pkt, taker, place <= MOST_TRACED, cx);
            *left -= 1;
            (taker, place) = (next, behind);
        }
        cx.trace(&pkt, || Trace { entry: mark.entry, copy: place - 1 });
        let edge = Self::address(&mut pkt, taker);
        cx.send(edge, buffer);
    }

    fn copy(pkt: &Packet<'_>, taker: Taker, traced: bool, cx: &mut FrameCx<'_>) {
        let Ok(mut buffer) = cx.cache().copy(pkt) else {
            cx.count(Error::NoBuffer, 1);
            return;
        };
        let mut copy = cx.cache().packet(&mut buffer);
        if traced {
            copy.meta_mut().share_trace(pkt.meta());
        }
        let edge = Self::address(&mut copy, taker);
        cx.count(Error::Copies, 1);
        cx.send(edge, buffer);
    }
}

impl<F: Ip> FrameNode for Replicate<F> {
    const NAME: &'static str = F::REPLICATE;
    type Next = Next<F>;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let mut left = MOST_COPIES;
        for buffer in frame.drain() {
            self.one(buffer, &mut left, cx);
        }
    }
}
