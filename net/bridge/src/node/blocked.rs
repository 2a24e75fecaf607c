//! `l2-blocked`: frames of a port that is blocked end here.
//! l2-input -> **l2-blocked** -> error-drop

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::{Cx, PacketNode};
use shoal_l2::InputNext as Next;

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// port is blocked, stations moved there too often
    #[counter("blocked")]
    Blocked,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("l2-blocked: sw_if_index {rx}")]
pub struct Trace {
    rx: u32,
}

/// Drops them.
pub struct Blocked;

impl PacketNode for Blocked {
    const NAME: &'static str = "l2-blocked";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        cx.trace(pkt, || Trace { rx: pkt.rx().0 });
        Err(Error::Blocked)
    }
}
