//! `ip4-full-reassembly-feature`, `ip6-full-reassembly-feature`: put datagrams together. RFC 791, 3.2; RFC 8200, 4.5; RFC 5722.
//! features of `ip4-unicast` -> **ip4-full-reassembly-feature** -> the next feature | ip4-icmp-error
//! the end of a tunnel -> **ip6-full-reassembly-custom** -> ip6-lookup, and by it to the end of the tunnel
//!
//! A frame node, because it keeps packets, makes one of many, and gives packets to other threads. Fragments for this
//! router come to the same node under the name `ip4-local-full-reassembly`, what other threads hand over to
//! `ip4-full-reassembly-handoff`, which hands nothing on.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use shoal_buffer::{Buffer, Flags, Frame};
use shoal_derive::TraceLine;
use shoal_graph::{FrameCx, NextNodes as _, NodeIndex, StatefulFrameNode};

use super::ToIcmp;
pub use super::full_error::Error;
use crate::family::{Family, Fault, Fragment, Problem};
use crate::join::join;
use crate::state::{EXPIRED_AT_ONCE, Full, FullTable, Shard, Ticket, tell};
use crate::table::{CompleteDatagram, Items, Outcome, ReleaseReason, Table};

/// What `show trace` says.
struct Trace<K> {
    fragment: Fragment<K>,
    /// The thread that puts it together, if it is another.
    elsewhere: Option<usize>,
}

impl<K: fmt::Display> fmt::Display for Trace<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fragment { key, arrival, .. } = &self.fragment;
        let more = if arrival.more { ", more" } else { "" };
        writeln!(f, "{key}")?;
        write!(f, "fragment[{}, {}{more}] ", arrival.start, arrival.end.saturating_sub(1))?;
        match self.elsewhere {
            Some(thread) => write!(f, "goes to thread {thread}"),
            None => f.write_str("is taken in"),
        }
    }
}

/// The node that sees the whole of what is for this router or for the end of a tunnel; known once the graph is built.
#[derive(Clone, Debug, Default)]
pub struct Receiver(Arc<AtomicU32>);

impl Receiver {
    /// Says which.
    pub fn set(&self, node: NodeIndex) {
        self.0.store(node.number(), Ordering::Relaxed);
    }

    fn get(&self) -> NodeIndex {
        NodeIndex::from_number(self.0.load(Ordering::Relaxed))
    }
}

/// Where fragments are from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// An arc, among packets that are none.
    Arc,
    /// They are for this router or the end of a tunnel.
    Local(Receiver),
    /// Another thread saw that this one owns them.
    Elsewhere,
}

/// Puts datagrams together.
pub struct FullNode<F: Family> {
    /// Who owns which datagram, within which limits.
    pub full: Arc<Full<F>>,
    /// Where fragments are from.
    pub origin: Origin,
}

/// What the table asks of a node.
struct Hooks<'a, 'b, F: Family> {
    cx: &'a mut FrameCx<'b>,
    node: &'a FullNode<F>,
}

impl<F: Family> Items<Buffer> for Hooks<'_, '_, F> {
    fn same(&mut self, old: &mut Buffer, new: &mut Buffer) -> bool {
        let cache = self.cx.cache();
        let (old, new) = (cache.packet(old), cache.packet(new));
        let (Ok(a), Ok(b)) = (F::read(&old, 0), F::read(&new, 0)) else { return false };
        // Both are as long as they say, and say the same place.
        let new = new.segments().flatten().skip(b.header);
        old.segments().flatten().skip(a.header).eq(new)
    }

    fn trim(&mut self, item: &mut Buffer, front: u32, back: u32) -> bool {
        F::trim(&mut self.cx.cache().packet(item), front as usize, back as usize).is_some()
    }

    fn gone(&mut self, mut item: Buffer, why: ReleaseReason, first: bool) {
        if why == ReleaseReason::Timeout {
            tell(&mut self.cx.cache().packet(&mut item), why, first);
            self.cx.send_to(self.node.full.expired_node(), item);
        } else {
            self.cx.drop(item, Error::from(why));
        }
    }
}

impl<F: Family> FullNode<F> {
    /// One fragment; `table` is this thread's.
    fn one(&self, mut buffer: Buffer, table: &mut Table<F::Key, Buffer>, cx: &mut FrameCx<'_>) {
        let mut pkt = cx.cache().packet(&mut buffer);
        let is_fragment = F::is_fragment(&pkt);
        match &self.origin {
            Origin::Arc => {
                let next = cx.next_feature(&mut pkt);
                if !is_fragment {
                    cx.trace(&pkt, || "not a fragment");
                    return cx.send(next, buffer);
                }
                Ticket::to(cx.target(next), cx.thread()).put(&mut pkt);
            }
            Origin::Local(receiver) => {
                Ticket { for_us: 1, ..Ticket::to(receiver.get(), cx.thread()) }.put(&mut pkt);
            }
            Origin::Elsewhere => {}
        }
        let ticket = *pkt.scratch::<Ticket>();
        if !is_fragment {
            return cx.drop(buffer, Error::Malformed);
        }
        let zone = F::table(&self.full.interfaces, pkt.rx());
        let fragment = match F::read(&pkt, zone) {
            Ok(fragment) => fragment,
            Err(fault) => return Self::refuse(buffer, fault, cx),
        };
        let owner = self.full.owner(&fragment.key);
        if !matches!(self.origin, Origin::Elsewhere) && owner != cx.thread() {
            cx.trace(&pkt, || Trace { fragment, elsewhere: Some(owner) });
            cx.count(Error::Handoff, 1);
            return cx.handoff(owner, self.full.handoff_node(), buffer);
        }
        cx.count(Error::Received, 1);
        // Padding of short frames is no part of the datagram.
        if pkt.truncate(fragment.total).is_none() {
            return cx.drop(buffer, Error::Malformed);
        }
        // It becomes part of a chain that is changed, and waits for others: what it shares would be kept from them.
        if cx.cache().make_own(&mut pkt).is_err() {
            return cx.drop(buffer, Error::NoBuffers);
        }
        cx.trace(&pkt, || Trace { fragment, elsewhere: None });
        let limits = (self.full.settings.limits(), cx.now());
        let mut hooks = Hooks { cx, node: self };
        if limits.0.datagrams > 0 && self.full.settings.timeout().is_zero() {
            // Nothing waits, not even for what came at the same time.
            table.expire(limits.1, Duration::ZERO, EXPIRED_AT_ONCE, &mut hooks);
        }
        if let Outcome::Whole(whole) =
            table.insert(fragment.key, fragment.arrival, buffer, limits, &mut hooks)
        {
            Self::finish(&whole, table, ticket, cx);
        }
    }

    /// A useless fragment; RFC 8200, 4.5 demands errors for some.
    fn refuse(mut buffer: Buffer, fault: Fault, cx: &mut FrameCx<'_>) {
        let (why, problem) = match fault {
            Fault::Malformed => (Error::Malformed, None),
            Fault::Length(at) => (Error::Length, at.map(Problem::Field)),
            Fault::TooLong(at) => (Error::TooLong, at.map(Problem::Field)),
            Fault::MissingUpper => (Error::MissingUpper, Some(Problem::MissingUpper)),
        };
        let Some(problem) = problem else { return cx.drop(buffer, why) };
        cx.count(why, 1);
        F::ask_problem(&mut cx.cache().packet(&mut buffer), problem);
        cx.send(ToIcmp::<F>::WAY.edge(), buffer);
    }

    /// Makes one packet of a whole datagram's fragments and sends it where the first one was going.
    fn finish(
        whole: &CompleteDatagram<F::Key, Buffer>,
        table: &mut Table<F::Key, Buffer>,
        last: Ticket,
        cx: &mut FrameCx<'_>,
    ) {
        let (mut tail, mut header, mut ticket): (Option<Buffer>, usize, Ticket) = (None, 0, last);
        let mut next = table.pop_last(whole);
        while let Some(mut piece) = next {
            next = table.pop_last(whole);
            let mut pkt = cx.cache().packet(&mut piece);
            header = F::read(&pkt, 0).map_or(0, |f| f.header);
            ticket = *pkt.scratch::<Ticket>();
            if next.is_some() && pkt.pull(header).is_none() {
                header = 0;
            }
            if let Some(rest) = tail.take()
                && join(cx.cache(), &mut piece, rest, next.is_none()).is_err()
            {
                // Not so: each was made its own when it came in.
                cx.drop(piece, Error::NoBuffers);
                std::iter::from_fn(|| next.take().or_else(|| table.pop_last(whole)))
                    .for_each(|left| cx.drop(left, Error::NoBuffers));
                return;
            }
            tail = Some(piece);
        }
        let Some(mut packet) = tail else { return };
        let mut pkt = cx.cache().packet(&mut packet);
        if F::finish(&mut pkt, header, whole.len as usize, whole.ecn).is_none() {
            return cx.drop(packet, Error::Internal);
        }
        let meta = pkt.meta_mut();
        // The first fragment's checksum flags do not hold for the whole.
        meta.flags = meta.flags.without(Flags::L4_CHECKSUM_OK).without(Flags::L4_CHECKSUM_OFFLOAD);
        cx.trace(&pkt, || Finished { len: whole.len, fragments: whole.fragments });
        cx.count(Error::Success, 1);
        cx.count(Error::Reassembled, u64::from(whole.fragments));
        let (node, thread) = (NodeIndex::from_number(ticket.next), usize::from(ticket.thread));
        if thread == cx.thread() { cx.send_to(node, packet) } else { cx.handoff(thread, node, packet) }
    }
}

/// What `show trace` says of the whole, under its first fragment.
#[derive(TraceLine)]
#[line("whole: {len} bytes of {fragments} fragments")]
struct Finished {
    len: u32,
    fragments: u32,
}

impl<F: Family> StatefulFrameNode for FullNode<F> {
    const NAME: &'static str = F::NODES.feature;
    type Feature = Full<F>;
    type Next = ToIcmp<F>;
    type Error = Error;

    fn frame(&self, shard: &mut Shard<FullTable<F>>, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let table = &mut shard.table;
        let (now, timeout) = (cx.now(), self.full.settings.timeout());
        // Nothing joins a datagram whose time is over, however often is looked for those.
        table.expire(now, timeout, EXPIRED_AT_ONCE, &mut Hooks { cx, node: self });
        frame.drain().for_each(|buffer| self.one(buffer, table, cx));
    }
}
