//! `l2-output`: a frame that is not routed goes out.
//! l2-input | any feature -> **l2-output** -> features of `l2-output` | a feature's node | `<interface>-output`
//!
//! Tags are rewritten and the split-horizon group is checked here, before the features. `l2-output-feat-arc-end` goes on
//! where the features of the arc `l2-output` end.

use std::fmt;
use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_ethernet::{Tags, VlanTable};
use shoal_graph::superpath::{DirectingNode, Plain};
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};
use shoal_infra::Guard;
use shoal_interface::{IfTable, SwIfIndex};
use shoal_wire::{ArpHeader, ArpOpcode, EtherType, EthernetHeader, MacAddress};

use crate::bitmap::{Bitmap, Output, Place};
use crate::rewrite::Rewrite;
use crate::table::{L2Data, Path, Step};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Its interface.
    #[node("interface-output")]
    Interface,
    /// A feature that no node runs.
    #[node("feature-bitmap-drop")]
    BitmapDrop,
    /// A feature's node, or the interface's own output node.
    To(Edge),
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// L2 output packets
    #[counter("l2output")]
    Packets,
    /// L2 EFP filter pre-rewrite drops
    #[counter("efp_drop")]
    EfpBefore,
    /// L2 EFP filter post-rewrite drops
    #[counter("efp_post_drop")]
    EfpBehind,
    /// L2 output tag rewrite drops
    #[counter("vtr_drop")]
    Rewrite,
    /// L2 split horizon drops
    #[counter("shg_drop")]
    SplitHorizon,
    /// L2 output to interface not in L2 mode or deleted
    #[counter("bad_intf")]
    BadInterface,
}

/// What `show trace` says: where a packet is, and what follows its addresses.
pub struct Trace {
    node: &'static str,
    interface: SwIfIndex,
    bytes: [u8; 24],
}

impl Trace {
    pub(crate) fn new(node: &'static str, interface: SwIfIndex, pkt: &Packet<'_>) -> Self {
        let mut bytes = [0; 24];
        pkt.copy_to(&mut bytes);
        Trace { node, interface, bytes }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (addresses, data) = self.bytes.split_at(12);
        let mac = |at: usize| addresses.get(at..).and_then(|b| b.first_chunk()).copied().unwrap_or_default();
        let (dst, src) = (MacAddress(mac(0)), MacAddress(mac(6)));
        write!(f, "{}: sw_if_index {} dst {dst} src {src} data", self.node, self.interface)?;
        data.iter().try_for_each(|byte| write!(f, " {byte:02x}"))
    }
}

/// What the filter of tags asks.
#[derive(Clone)]
pub struct Filter {
    /// Which sub-interface takes which tags.
    pub vlans: VlanTable,
    /// All interfaces.
    pub interfaces: IfTable,
}

/// The code of `l2-output` (`END` false) and of the end of its arc.
pub struct L2Output<const END: bool> {
    /// The way through the features.
    pub path: Path,
    /// The arc of features.
    pub arc: FeatureArc,
    /// The filter of tags.
    pub filter: Arc<Filter>,
}

impl<const END: bool> PacketNode for L2Output<END> {
    const NAME: &'static str = if END { "l2-output-feat-arc-end" } else { "l2-output" };
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let (tx, guard) = (pkt.tx(), cx.guard());
        let data = self.path.data(tx, guard);
        if !END {
            cx.count(Error::Packets, 1);
            let ready = self.prepare(data, pkt, guard);
            cx.trace(pkt, || Trace::new("l2-output", tx, pkt));
            ready?;
        }
        let mut from = END.then_some(Place::from(Output::Arc));
        loop {
            return Ok(match self.path.next(pkt, from, guard) {
                Step::Off | Step::Xconnect(_) => return Err(Error::BadInterface),
                Step::End if data.out_edge != 0 => Next::To(Edge(data.out_edge)),
                Step::End => Next::Interface,
                Step::Feature(edge) => Next::To(edge),
                Step::NoFeature => Next::BitmapDrop,
                Step::Arc => {
                    if let Some(edge) = cx.start_arc(&self.arc, tx, pkt) {
                        Next::To(edge)
                    } else {
                        from = Some(Output::Arc.into());
                        continue;
                    }
                }
            });
        }
    }
}

impl<const END: bool> L2Output<END> {
    /// What is done to each frame before the features.
    #[inline(always)]
    fn prepare(&self, data: &L2Data, pkt: &mut Packet<'_>, guard: Guard<'_>) -> Result<(), Error> {
        self.path.apply_pbb(data, pkt, guard).ok_or(Error::Rewrite)?;
        let filters = Bitmap(data.output).has(Output::EfpFilter);
        if filters && !self.path.data(pkt.tx(), guard).rewrite_in.carries_pushed(pkt.data()) {
            return Err(Error::EfpBefore);
        }
        if let Some(rewrite) = data.rewrite_out.used() {
            rewrite.apply(pkt).ok_or(Error::Rewrite)?;
        }
        if filters && !self.takes(pkt, guard) {
            return Err(Error::EfpBehind);
        }
        if data.group != 0 && self.is_from_group(data.group, pkt, guard) {
            return Err(Error::SplitHorizon);
        }
        Ok(())
    }

    /// Whether the sub-interface that a frame goes out by is the one that would take it on its port.
    fn takes(&self, pkt: &Packet<'_>, guard: Guard<'_>) -> bool {
        let Filter { vlans, interfaces } = &*self.filter;
        let port = SwIfIndex(interfaces.get(pkt.tx(), guard).hardware);
        let taker = match Tags::of_frame(pkt.data()) {
            Some(tags) => vlans.tagged(port, &tags),
            None => Some(vlans.untagged(port)),
        };
        taker == Some(pkt.tx())
    }

    /// Whether a frame came in by another member of its sending interface's group. What this router sends by the BVI to one
    /// station, and what it asks, goes to all groups.
    #[cold]
    fn is_from_group(&self, group: u8, pkt: &Packet<'_>, guard: Guard<'_>) -> bool {
        let from = self.path.data(pkt.rx(), guard);
        from.group == group && !(from.is_bvi() && is_unbound(pkt))
    }
}

/// Whether a frame of the BVI belongs to no group: it is for one station, or asks for one.
pub fn is_unbound(pkt: &Packet<'_>) -> bool {
    let Some(header) = pkt.header::<EthernetHeader>() else { return false };
    if !header.dst().is_multicast() {
        return true;
    }
    match header.ether_type() {
        EtherType::ARP => {
            let arp = pkt.header_at::<ArpHeader>(EthernetHeader::LEN);
            arp.is_some_and(|arp| arp.opcode() == ArpOpcode::REQUEST)
        }
        EtherType::IP6 => {
            let byte = |at: usize| pkt.data().get(EthernetHeader::LEN + at).copied();
            byte(6) == Some(58) && byte(40) == Some(135)
        }
        _ => false,
    }
}

/// By itself the node counts frames to which nothing is done, run by run.
impl Plain for L2Output<false> {
    type Facts<'g> = &'g L2Data;

    #[inline(always)]
    fn interface(pkt: &Packet<'_>) -> SwIfIndex {
        pkt.tx()
    }

    #[inline(always)]
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<&'g L2Data> {
        Some(self.path.data(interface, guard))
            .filter(|data| data.plain_output().is_some() && !data.rewrite_out.is_some())
    }

    #[inline(always)]
    fn plain(&self, _: &L2Data, _: &mut Packet<'_>) -> bool {
        false
    }

    #[inline(always)]
    fn edge(&self, data: &L2Data, _: &mut Packet<'_>) -> Option<Edge> {
        Some(Edge(data.out_edge))
    }

    fn count(&self, _: SwIfIndex, packets: u64, _: u64, cx: &Cx<'_, Self>) {
        cx.count(Error::Packets, packets);
    }
}

/// Frames that are cross-connected, on a fused path.
impl DirectingNode for L2Output<false> {
    /// What is done to tags, if anything is, and where frames go then.
    type Facts<'g> = (Option<&'g Rewrite>, Edge);

    /// Of the interface that a receiving one is connected to.
    #[inline(always)]
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>> {
        let peer = SwIfIndex(self.path.data(interface, guard).peer);
        let data = self.path.data(peer, guard);
        data.plain_output().map(|edge| (data.rewrite_out.used(), edge))
    }

    #[inline(always)]
    fn direct(&self, (rewrite, edge): Self::Facts<'_>, pkt: &mut Packet<'_>) -> Option<Edge> {
        rewrite.map_or(Some(()), |rewrite| rewrite.apply(pkt)).map(|()| edge)
    }

    fn count(&self, _: SwIfIndex, packets: u64, _: u64, cx: &Cx<'_, Self>) {
        cx.count(Error::Packets, packets);
    }
}
