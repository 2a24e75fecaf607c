//! `error-punt`: packets for the host that no feature of a punt arc took.
//! ip4-punt | ip6-punt | the last feature of their arcs -> **error-punt** -> error-drop

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::{Cx, NoNext, PacketNode};

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// no host takes punted packets
    Punt,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("rx: sw_if_index {rx}")]
pub struct Trace {
    rx: u32,
}

/// Counts punts of the receiving interface, and drops.
pub struct ErrorPunt;

impl PacketNode for ErrorPunt {
    const NAME: &'static str = "error-punt";
    type Next = NoNext;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<NoNext, Error> {
        let rx = pkt.rx();
        cx.trace(pkt, || Trace { rx: rx.0 });
        cx.counters().punt.add(cx.thread(), rx.0 as usize, 1);
        Err(Error::Punt)
    }
}
