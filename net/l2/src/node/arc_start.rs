//! `l2-input-feat-arc`: packets of features that come before those of the arc `l2-input`.
//! span-l2-input -> **l2-input-feat-arc** -> the first feature of the arc | l2-input-feat-arc-end
//!
//! Packets without such features start on the arc in `l2-input` itself.

use shoal_buffer::Packet;
use shoal_derive::{NextNodes, TraceLine};
use shoal_graph::{Cx, Edge, FeatureArc, NoError, PacketNode};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The last feature was disabled while the packet was on its way.
    #[node("l2-input-feat-arc-end")]
    End,
    /// The first feature.
    To(Edge),
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("sw_if_index {rx}")]
pub struct Trace {
    rx: u32,
}

/// Starts packets on the arc.
pub struct ArcStart {
    /// The arc.
    pub arc: FeatureArc,
}

impl PacketNode for ArcStart {
    const NAME: &'static str = "l2-input-feat-arc";
    type Next = Next;
    type Error = NoError;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, NoError> {
        let rx = pkt.rx();
        cx.trace(pkt, || Trace { rx: rx.0 });
        Ok(cx.start_arc(&self.arc, rx, pkt).map_or(Next::End, Next::To))
    }
}
