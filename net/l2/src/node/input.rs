//! `l2-input`: what is to become of a frame that is not routed.
//! ethernet-input -> **l2-input** -> features of `l2-input` | a feature's node | l2-output
//!
//! `l2-input-feat-arc-end` goes on where the features of the arc `l2-input` end.

use std::fmt;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::superpath::Plain;
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};
use shoal_infra::Guard;
use shoal_interface::SwIfIndex;
use shoal_wire::{EthernetHeader, MacAddress};

use crate::bitmap::{Bitmap, Input, Place};
use crate::table::{L2Data, Path, Step};

/// Where a packet goes next. Nodes of features have the same ways out.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Out of the interface it is connected to.
    #[node("l2-output")]
    Output,
    /// A feature that no node runs.
    #[node("feature-bitmap-drop")]
    BitmapDrop,
    /// A feature's node.
    To(Edge),
}

/// The edge of [`Next::Output`].
pub(crate) const OUTPUT: Edge = Edge(1);
/// The edge of [`Next::BitmapDrop`].
const BITMAP_DROP: Edge = Edge(2);

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// L2 input packets
    #[counter("l2input")]
    Packets,
    /// frame is shorter than an Ethernet header
    TooShort,
    /// interface is not in L2 mode
    NotL2,
}

/// What `show trace` says.
pub struct Trace {
    rx: SwIfIndex,
    dst: MacAddress,
    src: MacAddress,
    features: Bitmap,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "l2-input: sw_if_index {} dst {} src {} [", self.rx, self.dst, self.src)?;
        let there = Input::ALL.iter().filter(|feature| self.features.has(**feature));
        there.map(|feature| feature.node()).try_for_each(|name| write!(f, "{name} "))?;
        f.write_str("]")
    }
}

/// The code of `l2-input` (`END` false) and of the end of its arc.
pub struct L2Input<const END: bool> {
    /// The way through the features.
    pub path: Path,
    /// The arc of features.
    pub arc: FeatureArc,
}

impl<const END: bool> PacketNode for L2Input<END> {
    const NAME: &'static str = if END { "l2-input-feat-arc-end" } else { "l2-input" };
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let header = *pkt.header::<EthernetHeader>().ok_or(Error::TooShort)?;
        let rx = pkt.rx();
        cx.trace(pkt, || {
            let features = self.path.features(self.path.data(rx, cx.guard()), pkt);
            Trace { rx, dst: header.dst(), src: header.src(), features }
        });
        if !END {
            cx.count(Error::Packets, 1);
        }
        let mut from = END.then_some(Place::from(Input::Arc));
        loop {
            return Ok(match self.path.next(pkt, from, cx.guard()) {
                Step::Off => return Err(Error::NotL2),
                Step::Xconnect(peer) => {
                    pkt.meta_mut().tx = peer;
                    Next::Output
                }
                Step::Feature(edge) => Next::To(edge),
                Step::End | Step::NoFeature => Next::BitmapDrop,
                Step::Arc => {
                    if let Some(edge) = cx.start_arc(&self.arc, rx, pkt) {
                        Next::To(edge)
                    } else {
                        // The last feature of the arc has just gone.
                        from = Some(Input::Arc.into());
                        continue;
                    }
                }
            });
        }
    }
}

/// Frames are plain that are cross-connected and nothing else. By itself the node counts all that need no arc for a frame at
/// a time.
impl Plain for L2Input<false> {
    type Facts<'g> = &'g L2Data;

    #[inline(always)]
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<&'g L2Data> {
        Some(self.path.data(interface, guard)).filter(|data| data.is_plain_xconnect())
    }

    #[inline(always)]
    fn facts_alone<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<&'g L2Data> {
        Some(self.path.data(interface, guard)).filter(|data| data.is_on())
    }

    #[inline(always)]
    fn plain(&self, data: &L2Data, pkt: &mut Packet<'_>) -> bool {
        if pkt.header::<EthernetHeader>().is_none() {
            return false;
        }
        pkt.meta_mut().tx = SwIfIndex(data.peer);
        true
    }

    #[inline(always)]
    fn edge(&self, data: &L2Data, pkt: &mut Packet<'_>) -> Option<Edge> {
        let features = self.path.start(data, pkt);
        match self.path.step(data, features) {
            Step::Feature(edge) => Some(edge),
            Step::Xconnect(peer) => {
                pkt.meta_mut().tx = peer;
                Some(OUTPUT)
            }
            // A frame that is cut short has no features.
            Step::NoFeature => Some(BITMAP_DROP),
            Step::End | Step::Arc | Step::Off => None,
        }
    }

    fn count(&self, _: SwIfIndex, packets: u64, _: u64, cx: &Cx<'_, Self>) {
        cx.count(Error::Packets, packets);
    }
}
