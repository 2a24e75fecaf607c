//! Nodes that are part of a chain as well as of the graph.

use std::sync::Arc;

use shoal_buffer::Packet;

use crate::Cx;
use crate::node::{PacketNode, StagedNode};

/// A packet node shared with a chain.
pub(super) struct SharedPacket<N>(pub(super) Arc<N>);

impl<N: PacketNode> PacketNode for SharedPacket<N> {
    const NAME: &'static str = N::NAME;
    type Next = N::Next;
    type Error = N::Error;
    type Trace = N::Trace;

    #[inline(always)]
    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<N::Next, N::Error> {
        self.0.packet(pkt, &mut cx.retype())
    }
}

/// A staged node shared with a chain.
pub(super) struct SharedStaged<N>(pub(super) Arc<N>);

impl<N: StagedNode> StagedNode for SharedStaged<N> {
    const NAME: &'static str = N::NAME;
    type Next = N::Next;
    type Error = N::Error;
    type Trace = N::Trace;
    type Key = N::Key;

    #[inline(always)]
    fn prepare(&self, pkt: &Packet<'_>, cx: &mut Cx<'_, Self>) -> N::Key {
        self.0.prepare(pkt, &mut cx.retype())
    }

    #[inline(always)]
    fn seek(&self, keys: &mut [N::Key], cx: &mut Cx<'_, Self>) {
        self.0.seek(keys, &mut cx.retype());
    }

    #[inline(always)]
    fn packet(&self, key: N::Key, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<N::Next, N::Error> {
        self.0.packet(key, pkt, &mut cx.retype())
    }
}
