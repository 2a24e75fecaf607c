//! `device-input`: received frames of interfaces with features on the arc of that name.
//! a driver's input node -> **device-input** -> the first feature | device-input-arc-end
//!
//! Interfaces without such features do not pass here: their frames go straight to where the arc ends.

use shoal_buffer::Packet;
use shoal_derive::{NextNodes, TraceLine};
use shoal_graph::{Cx, Edge, FeatureArc, NoError, PacketNode};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The last feature was disabled while the packet was on its way.
    #[node("device-input-arc-end")]
    End,
    /// The first feature.
    To(Edge),
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("rx: sw_if_index {rx}")]
pub struct Trace {
    rx: u32,
}

/// Starts packets on the arc.
pub struct DeviceInput {
    /// The arc.
    pub arc: FeatureArc,
}

impl PacketNode for DeviceInput {
    const NAME: &'static str = "device-input";
    type Next = Next;
    type Error = NoError;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, NoError> {
        let rx = pkt.rx();
        cx.trace(pkt, || Trace { rx: rx.0 });
        Ok(cx.start_arc(&self.arc, rx, pkt).map_or(Next::End, Next::To))
    }
}
