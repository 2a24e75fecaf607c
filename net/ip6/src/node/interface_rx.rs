//! `interface-rx-dpo-ip6`: packets that a route has received again, as if by another interface.
//! ip6-lookup -> **interface-rx-dpo-ip6** -> ip6-input

use shoal_adj::{AdjIndex, AdjTable};
use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};
use shoal_interface::IfTable;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// As all that is received.
    #[node("ip6-input")]
    Input,
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// interface is down
    Down,
    /// routes have it received again and again
    TooOften,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("sw_if_index {rx}")]
pub struct Trace {
    rx: u32,
}

/// Has packets received by the interface their adjacency names.
pub struct Ip6InterfaceRx {
    /// All adjacencies.
    pub adjacencies: AdjTable,
    /// All interfaces.
    pub interfaces: IfTable,
}

impl PacketNode for Ip6InterfaceRx {
    const NAME: &'static str = "interface-rx-dpo-ip6";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let guard = cx.guard();
        let rx = self.adjacencies.get(AdjIndex(pkt.meta().adj), guard).tx();
        cx.trace(pkt, || Trace { rx: rx.0 });
        if !self.interfaces.get(rx, guard).is_up() {
            return Err(Error::Down);
        }
        // Nothing else ends a circle of such routes: the packet is not forwarded on the way.
        let flags = pkt.flags().received_again().ok_or(Error::TooOften)?;
        let bytes = pkt.len() as u64;
        let meta = pkt.meta_mut();
        (meta.flags, meta.rx, meta.tx) = (flags, rx, SwIfIndex::NONE);
        cx.counters().rx.add(cx.thread(), rx.0 as usize, 1, bytes);
        Ok(Next::Input)
    }
}
