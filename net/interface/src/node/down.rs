//! `interface-down`: on the output arc of every interface that is down, so that the others need not ask.
//! `<interface>-output` -> **interface-down** -> error-drop

use shoal_buffer::Packet;
use shoal_derive::ErrorCounters;
use shoal_graph::{Cx, NoNext, PacketNode};

/// The node's name, and the feature's.
pub const DOWN: &str = "interface-down";

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// interface is down
    #[counter("interface_down")]
    Down,
}

/// Drops everything.
pub struct Down;

impl PacketNode for Down {
    const NAME: &'static str = DOWN;
    type Next = NoNext;
    type Error = Error;
    type Trace = &'static str;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<NoNext, Error> {
        cx.trace(pkt, || "interface is down");
        Err(Error::Down)
    }
}
