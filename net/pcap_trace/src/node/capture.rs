//! `pcap-rx` and `pcap-tx`: keep copies of packets of a capture.
//! device-input -> **pcap-rx** -> the next feature or device-input-arc-end
//! <name>-output -> **pcap-tx** -> the next feature or interface-output-arc-end

use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_derive::{NextNodes, TraceLine};
use shoal_graph::{Clock, Cx, Edge, NoError, PacketNode};

use crate::store::Store;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next feature, or the end of the arc.
    To(Edge),
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("sw_if_index {interface}")]
pub struct Trace {
    interface: u32,
}

/// Keeps received packets.
pub struct PcapRx {
    /// Where.
    pub store: Arc<Store>,
    /// When they came.
    pub clock: Clock,
}

/// Keeps packets on their way out.
pub struct PcapTx {
    /// Where.
    pub store: Arc<Store>,
    /// When they went.
    pub clock: Clock,
}

macro_rules! capture {
    ($node:ident, $name:literal, $side:ident) => {
        impl PacketNode for $node {
            const NAME: &'static str = $name;
            type Next = Next;
            type Error = NoError;
            type Trace = Trace;

            fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, NoError> {
                let interface = pkt.$side();
                cx.trace(pkt, || Trace { interface: interface.0 });
                self.store.take(pkt, interface, self.clock.wall(cx.now()));
                Ok(Next::To(cx.next_feature(pkt)))
            }
        }
    };
}

capture!(PcapRx, "pcap-rx", rx);
capture!(PcapTx, "pcap-tx", tx);
