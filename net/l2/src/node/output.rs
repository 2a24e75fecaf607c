//! `l2-output`: a frame that is not routed goes out.
//! l2-input | any feature -> **l2-output** -> features of `l2-output` | a feature's node | interface-output
//!
//! `l2-output-feat-arc-end` goes on where the features of the arc `l2-output` end.

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};

use crate::bitmap::{Output, Place};
use crate::table::{Path, Step};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Its interface.
    #[node("interface-output")]
    Interface,
    /// A feature that no node runs.
    #[node("feature-bitmap-drop")]
    BitmapDrop,
    /// A feature's node.
    To(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// L2 output to interface not in L2 mode or deleted
    BadInterface,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("l2-output: sw_if_index {tx}")]
pub struct Trace {
    tx: u32,
}

/// The code of `l2-output` (`END` false) and of the end of its arc.
pub struct L2Output<const END: bool> {
    /// The way through the features.
    pub path: Path,
    /// The arc of features.
    pub arc: FeatureArc,
}

impl<const END: bool> PacketNode for L2Output<END> {
    const NAME: &'static str = if END { "l2-output-feat-arc-end" } else { "l2-output" };
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let tx = pkt.tx();
        cx.trace(pkt, || Trace { tx: tx.0 });
        let mut from = END.then_some(Place::from(Output::Arc));
        loop {
            return Ok(match self.path.next(pkt, from, cx.guard()) {
                Step::Off | Step::Xconnect(_) => return Err(Error::BadInterface),
                Step::End => Next::Interface,
                Step::Feature(edge) => Next::To(edge),
                Step::Nobody => Next::BitmapDrop,
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
