//! `l2-flood`: a frame goes to all members of its domain but the one it came by, and those of its split-horizon group.
//! l2-input | l2-fwd -> **l2-flood** -> l2-output | l2-to-bvi | l2-flood-more
//!
//! A frame node, because one packet becomes many. Copies share the payload, for members change tags at most; the BVI gets
//! a copy of every byte. The last member gets the packet itself.
//!
//! One call makes at most [`MOST_COPIES`]: packets that need more come round again by `l2-flood-more`, behind what was
//! made, which is sent meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use shoal_buffer::{Buffer, Frame, Packet};
use shoal_derive::ErrorCounters;
use shoal_graph::{Edge, FrameCx, FrameNode, ReplicaTarget};
use shoal_interface::IfTable;
use shoal_l2::{InputNext as Next, Path, is_unbound};
use shoal_wire::EthernetHeader;

use super::{Trace, to_bvi};
use crate::table::{DomainTable, Member};

/// Most copies made in one call, but for one more of each packet.
const MOST_COPIES: usize = 1024;

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// L2 flood packets
    #[counter("l2flood")]
    Packets,
    /// L2 replication failures
    #[counter("repl_fail")]
    Failures,
    /// L2 replication complete
    #[counter("no_members")]
    Complete,
    /// BVI L3 mac mismatch
    #[counter("bvi_bad_mac")]
    BviMac,
    /// BVI packet with unhandled ethertype
    #[counter("bvi_ethertype")]
    BviType,
}

/// Floods; with `MORE`, packets that come round again.
pub struct Flood<const MORE: bool> {
    /// The way through the features.
    pub path: Path,
    /// All domains.
    pub table: DomainTable,
    /// All interfaces.
    pub interfaces: IfTable,
    /// The edge to `l2-to-bvi`.
    pub to_bvi: Edge,
    /// The edge to `l2-flood-more`.
    pub more: Arc<AtomicU16>,
}

impl Flood<false> {
    /// The one for packets that come round again.
    pub(crate) fn again(&self) -> Flood<true> {
        Flood {
            path: self.path.clone(),
            table: self.table.clone(),
            interfaces: self.interfaces.clone(),
            to_bvi: self.to_bvi,
            more: Arc::clone(&self.more),
        }
    }
}

/// The edge of [`Next::Output`].
const OUTPUT: Edge = Edge(1);

/// A member that gets a frame.
#[derive(Clone, Copy)]
struct Place {
    member: Member,
    /// Its place among the members.
    at: u32,
    to_bvi: Edge,
}

impl ReplicaTarget for Place {
    type Trace = String;

    fn address(&self, pkt: &mut Packet<'_>) -> Edge {
        let interface = self.member.interface;
        if self.member.is_bvi {
            to_bvi::turn(pkt, interface);
            return self.to_bvi;
        }
        pkt.meta_mut().tx = interface;
        OUTPUT
    }

    fn trace(&self) -> String {
        format!("l2-flood: to sw_if_index {}", self.member.interface)
    }

    fn wants_all(&self) -> bool {
        self.member.is_bvi
    }
}

impl<const MORE: bool> Flood<MORE> {
    fn one(&self, mut buffer: Buffer, most: &mut usize, cx: &mut FrameCx<'_>) {
        let guard = cx.guard();
        let mut pkt = cx.cache().packet(&mut buffer);
        let rx = pkt.rx();
        let from = self.path.data(rx, guard);
        if !MORE {
            cx.trace(&pkt, || Trace::new("l2-flood:", &pkt, from.domain()));
        }
        let done = if MORE { *pkt.scratch::<u32>() } else { 0 };
        let group = if from.is_bvi() && is_unbound(&pkt) { 0 } else { from.group() };
        let dst = pkt.header::<EthernetHeader>().map(EthernetHeader::dst);
        // The BVI routes what is for its own address, or a group's.
        let is_for = |member: &Member| {
            !member.is_bvi
                || dst.is_some_and(|dst| {
                    let bvi = self.interfaces.get(member.interface, guard);
                    dst.is_multicast() || dst == bvi.mac() || self.interfaces.takes(bvi, dst, guard)
                })
        };
        let members = &self.table.domain(from.domain(), guard).members;
        let to_bvi = self.to_bvi;
        let others = || {
            let all = (0_u32..).zip(members.iter()).skip(done as usize);
            all.filter(|(_, member)| member.interface != rx && (group == 0 || member.group != group))
        };
        let takers = others().filter(|(_, member)| is_for(member)).map(|(at, member)| Place {
            member: *member,
            at,
            to_bvi,
        });
        let made = cx.replicate(buffer, takers, most);
        if made.missed > 0 {
            cx.count(Error::Failures, made.missed as u64);
        }
        match made.left {
            None => {}
            Some((buffer, None)) => {
                let only_bvi = others().next().is_some();
                cx.drop(buffer, if only_bvi { Error::BviMac } else { Error::Complete });
            }
            Some((mut buffer, Some(place))) => {
                *cx.cache().packet(&mut buffer).scratch::<u32>() = place.at;
                cx.send(Edge(self.more.load(Ordering::Relaxed)), buffer);
            }
        }
    }
}

impl<const MORE: bool> FrameNode for Flood<MORE> {
    const NAME: &'static str = if MORE { "l2-flood-more" } else { "l2-flood" };
    type Next = Next;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let mut most = MOST_COPIES;
        if !MORE {
            cx.count(Error::Packets, frame.len() as u64);
        }
        for buffer in frame.drain() {
            self.one(buffer, &mut most, cx);
        }
    }
}
