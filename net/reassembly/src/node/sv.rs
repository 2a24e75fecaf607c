//! `ip4-sv-reassembly`, `ip6-sv-reassembly`: fragments learn what the first one of their datagram says; those that come
//! before it wait. RFC 1858; RFC 3128.
//! ip4-sv-reassembly-feature -> **ip4-sv-reassembly** -> where the fragment's ticket says
//!
//! A frame node, because it keeps packets and gives packets to other threads. What other threads hand over comes to the
//! same node under the name `ip4-sv-reassembly-handoff`, which hands nothing on.

use std::sync::Arc;

use shoal_buffer::slot::SlotKey;
use shoal_buffer::{Buffer, Frame};
use shoal_derive::ErrorCounters;
use shoal_graph::{FrameCx, NoNext, NodeIndex, StatefulFrameNode};

use super::full::Origin;
use crate::family::{Family, Fault};
use crate::l4::{L4, Words};
use crate::state::{EXPIRED_AT_ONCE, ShallowTable, Shard, Sv, Ticket};
use crate::sv_table::{SvOutcome, SvTable, Waiters};
use crate::table::{Items, ReleaseReason};

/// Why a fragment is dropped here, and what else is counted. Names and texts are VPP's where it has one.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// fragments received
    #[counter("reass_fragments_rcvd")]
    #[severity(info)]
    Received,
    /// fragments handed to another thread
    #[counter("reass_handoff")]
    #[severity(info)]
    Handoff,
    /// fragments that waited for the first
    #[counter("reass_waited")]
    #[severity(info)]
    Waited,
    /// overlapping fragments
    #[counter("reass_overlapping_fragment")]
    Overlap,
    /// fragment chain too long (drop)
    #[counter("reass_fragment_chain_too_long")]
    TooMany,
    /// drops due to concurrent reassemblies limit
    #[counter("reass_limit_reached")]
    Evicted,
    /// drops because fragments hold too many buffers
    #[counter("reass_no_buf")]
    NoBuffers,
    /// fragments dropped due to reassembly timeout
    #[counter("reass_timeout")]
    Timeout,
    /// malformed packets
    #[counter("reass_malformed_packet")]
    Malformed,
    /// first fragment hides the transport header
    #[counter("reass_missing_upper")]
    MissingUpper,
}

impl From<ReleaseReason> for Error {
    fn from(why: ReleaseReason) -> Error {
        match why {
            ReleaseReason::TooMany => Error::TooMany,
            ReleaseReason::Evicted => Error::Evicted,
            ReleaseReason::NoBuffers => Error::NoBuffers,
            ReleaseReason::Timeout => Error::Timeout,
            ReleaseReason::Duplicate
            | ReleaseReason::Overlap
            | ReleaseReason::GivenUp
            | ReleaseReason::Ecn => Error::Overlap,
        }
    }
}

/// Tells fragments what the first one says.
pub struct SvNode<F: Family> {
    /// Who owns which datagram, within which limits.
    pub sv: Arc<Sv<F>>,
    /// Where fragments are from.
    pub origin: Origin,
    /// Where each learns what the first one says.
    pub words: SlotKey<L4>,
}

struct Hooks<'a, 'b>(&'a mut FrameCx<'b>, SlotKey<L4>);

impl Items<Buffer> for Hooks<'_, '_> {
    fn same(&mut self, _: &mut Buffer, _: &mut Buffer) -> bool {
        false
    }

    fn gone(&mut self, item: Buffer, why: ReleaseReason, _: bool) {
        self.0.drop(item, Error::from(why));
    }
}

impl Waiters<Buffer> for Hooks<'_, '_> {
    fn go_on(&mut self, item: Buffer, l4: L4) {
        self.0.count(Error::Waited, 1);
        go_on(item, l4, self.1, self.0);
    }
}

/// A fragment goes where its ticket says, with the words of the first.
fn go_on(mut buffer: Buffer, l4: L4, words: SlotKey<L4>, cx: &mut FrameCx<'_>) {
    let mut pkt = cx.cache().packet(&mut buffer);
    let ticket = *pkt.scratch::<Ticket>();
    if pkt.push(usize::from(ticket.link)).is_none() {
        return cx.drop(buffer, Error::Malformed);
    }
    *words.get_mut(&mut pkt) = l4;
    cx.trace(&pkt, || l4);
    cx.send_to(NodeIndex::from_number(ticket.next), buffer);
}

impl<F: Family> SvNode<F> {
    fn one(&self, mut buffer: Buffer, table: &mut SvTable<F::Key, Buffer>, cx: &mut FrameCx<'_>) {
        let pkt = cx.cache().packet(&mut buffer);
        if !F::is_fragment(&pkt) {
            return cx.drop(buffer, Error::Malformed);
        }
        let zone = F::table(&self.sv.interfaces, pkt.rx());
        let fragment = match F::read(&pkt, zone) {
            Ok(fragment) => fragment,
            Err(Fault::MissingUpper) => return cx.drop(buffer, Error::MissingUpper),
            Err(_) => return cx.drop(buffer, Error::Malformed),
        };
        let owner = self.sv.owner(&fragment.key);
        if !matches!(self.origin, Origin::Elsewhere) && owner != cx.thread() {
            cx.count(Error::Handoff, 1);
            return cx.handoff(owner, self.sv.handoff_node(), buffer);
        }
        cx.count(Error::Received, 1);
        let l4 = if fragment.arrival.start == 0 {
            // RFC 7112, 5: the first fragment has all headers.
            let Some(l4) = F::l4(&pkt).map(Words::l4) else { return cx.drop(buffer, Error::MissingUpper) };
            Some(L4 { is_fragment: 1, ..l4 })
        } else {
            None
        };
        let limits = (self.sv.settings.limits(), cx.now());
        match table.insert(fragment.key, (fragment.arrival, l4), buffer, limits, &mut Hooks(cx, self.words)) {
            SvOutcome::Taken => {}
            SvOutcome::Known(buffer, l4) => go_on(buffer, l4, self.words, cx),
        }
    }
}

impl<F: Family> StatefulFrameNode for SvNode<F> {
    const NAME: &'static str = F::NODES.sv;
    type Feature = Sv<F>;
    type Next = NoNext;
    type Error = Error;

    fn frame(&self, shard: &mut Shard<ShallowTable<F>>, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let table = &mut shard.table;
        let (now, timeout) = (cx.now(), self.sv.settings.timeout());
        table.expire(now, timeout, EXPIRED_AT_ONCE, &mut Hooks(cx, self.words));
        frame.drain().for_each(|buffer| self.one(buffer, table, cx));
    }
}
