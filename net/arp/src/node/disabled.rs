//! `arp-disabled`: an ARP packet on an interface that does not run IPv4.
//! arp-input -> **arp-disabled** -> drop

use shoal_buffer::Packet;
use shoal_derive::TraceLine;
use shoal_graph::{Cx, NoNext, PacketNode};

pub use super::error::Error;

/// What `show trace` says.
#[derive(TraceLine)]
#[line("sw_if_index {rx}")]
pub struct Trace {
    rx: u32,
}

/// Counts what is not answered.
pub(crate) struct ArpDisabled;

impl PacketNode for ArpDisabled {
    const NAME: &'static str = "arp-disabled";
    type Next = NoNext;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<NoNext, Error> {
        cx.trace(pkt, || Trace { rx: pkt.rx().0 });
        Err(Error::Disabled)
    }
}
