//! `l2-input`: what is to become of a frame that is not routed.
//! ethernet-input -> **l2-input** -> features of `l2-input` | a feature's node | l2-output
//!
//! `l2-input-feat-arc-end` goes on where the features of the arc `l2-input` end.

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};
use shoal_interface::SwIfIndex;
use shoal_wire::{EthernetHeader, MacAddress};

use crate::bitmap::{Input, Place};
use crate::table::{Path, Step};

/// Where a packet goes next.
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

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
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
}

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "l2-input: sw_if_index {} dst {} src {}", self.rx, self.dst, self.src)
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
        cx.trace(pkt, || Trace { rx, dst: header.dst(), src: header.src() });
        let mut from = END.then_some(Place::from(Input::Arc));
        loop {
            return Ok(match self.path.next(pkt, from, cx.guard()) {
                Step::Off => return Err(Error::NotL2),
                Step::Xconnect(peer) => {
                    pkt.meta_mut().tx = peer;
                    Next::Output
                }
                Step::Feature(edge) => Next::To(edge),
                Step::End | Step::Nobody => Next::BitmapDrop,
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
