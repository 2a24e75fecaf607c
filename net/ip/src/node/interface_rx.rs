//! `interface-rx-dpo-ip4`, `interface-rx-dpo-ip6`: packets that a route has received again, as if by another interface.
//! ip4-lookup | ip6-lookup -> **interface-rx-dpo-ip4** -> ip4-input | ip6-input

use std::marker::PhantomData;

use shoal_adj::{AdjIndex, AdjTable};
use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::{Cx, Edge, NextNodes, PacketNode};
use shoal_interface::IfTable;

use crate::IpFamily;

/// Where a packet goes next: as all that is received.
#[derive(Clone, Copy, Debug)]
pub struct Next<F>(PhantomData<F>);

impl<F: IpFamily> NextNodes for Next<F> {
    const NAMES: &'static [&'static str] = F::INPUT_NEXT;

    fn edge(self) -> Edge {
        Edge(1)
    }
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
pub struct InterfaceRx<F> {
    adjacencies: AdjTable,
    interfaces: IfTable,
    family: PhantomData<F>,
}

impl<F: IpFamily> InterfaceRx<F> {
    /// One that knows all adjacencies and all interfaces.
    pub fn new(adjacencies: AdjTable, interfaces: IfTable) -> Self {
        InterfaceRx { adjacencies, interfaces, family: PhantomData }
    }
}

impl<F: IpFamily> PacketNode for InterfaceRx<F> {
    const NAME: &'static str = F::NODES.interface_rx;
    type Next = Next<F>;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next<F>, Error> {
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
        meta.flags = flags;
        meta.received_by(rx);
        cx.counters().rx.add(cx.thread(), rx.0 as usize, 1, bytes);
        Ok(Next(PhantomData))
    }
}
