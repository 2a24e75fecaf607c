//! `feature-bitmap-drop`: packets with a feature that no node runs.
//! l2-input | any feature -> **feature-bitmap-drop**

use shoal_buffer::Packet;
use shoal_derive::ErrorCounters;
use shoal_graph::{Cx, NoNext, PacketNode};

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// bridge or cross-connect has no node for the packet
    NoNode,
}

/// Drops.
pub struct BitmapDrop;

impl PacketNode for BitmapDrop {
    const NAME: &'static str = "feature-bitmap-drop";
    type Next = NoNext;
    type Error = Error;
    type Trace = &'static str;

    fn packet(&self, _: &mut Packet<'_>, _: &mut Cx<'_, Self>) -> Result<NoNext, Error> {
        Err(Error::NoNode)
    }
}
