//! `l2-input` and `l2-output` as parts of a chain for members of bridges.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_graph::superpath::{DirectingNode, Plain};
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_infra::Guard;
use shoal_wire::EthernetHeader;

use super::{input, output};
use crate::bitmap::Input;
use crate::node::input::L2Input;
use crate::node::output::L2Output;
use crate::table::Path;

/// Frames for one station, of members that learn and forward and do nothing else.
pub struct BridgedInput(pub Arc<L2Input<false>>);

impl PacketNode for BridgedInput {
    const NAME: &'static str = <L2Input<false> as PacketNode>::NAME;
    type Next = input::Next;
    type Error = input::Error;
    type Trace = input::Trace;

    /// It is part of chains, and no node of the graph.
    fn packet(&self, _: &mut Packet<'_>, _: &mut Cx<'_, Self>) -> Result<input::Next, input::Error> {
        Err(input::Error::NotL2)
    }
}

impl Plain for BridgedInput {
    type Facts<'g> = ();

    #[inline(always)]
    fn facts(&self, interface: SwIfIndex, guard: Guard<'_>) -> Option<()> {
        let data = self.0.path.data(interface, guard);
        let all = data.input();
        let first = all.first() == Some(Input::Learn.into());
        let second = all.without(Input::Learn).first() == Some(Input::Forward.into());
        (data.is_bridged() && first && second).then_some(())
    }

    #[inline(always)]
    fn plain(&self, (): (), pkt: &mut Packet<'_>) -> bool {
        pkt.header::<EthernetHeader>().is_some_and(|header| !header.dst().is_multicast())
    }

    fn count(&self, _: SwIfIndex, packets: u64, _: u64, cx: &Cx<'_, Self>) {
        cx.count(input::Error::Packets, packets);
    }
}

/// Frames whose sending interface is known, if nothing is done to them there but to rewrite their tags.
pub struct BridgedOutput(pub Arc<L2Output<false>>);

impl PacketNode for BridgedOutput {
    const NAME: &'static str = <L2Output<false> as PacketNode>::NAME;
    type Next = output::Next;
    type Error = output::Error;
    type Trace = output::Trace;

    /// It is part of chains, and no node of the graph.
    fn packet(&self, _: &mut Packet<'_>, _: &mut Cx<'_, Self>) -> Result<output::Next, output::Error> {
        Err(output::Error::BadInterface)
    }
}

impl DirectingNode for BridgedOutput {
    type Facts<'g> = (&'g Path, Guard<'g>);

    #[inline(always)]
    fn facts<'g>(&'g self, _: SwIfIndex, guard: Guard<'g>) -> Option<(&'g Path, Guard<'g>)> {
        Some((&self.0.path, guard))
    }

    #[inline(always)]
    fn direct(&self, (path, guard): (&Path, Guard<'_>), pkt: &mut Packet<'_>) -> Option<Edge> {
        let data = path.data(pkt.tx(), guard);
        let edge = data.plain_output()?;
        if let Some(rewrite) = data.rewrite_out.used() {
            rewrite.apply(pkt)?;
        }
        Some(edge)
    }

    fn count(&self, _: SwIfIndex, packets: u64, _: u64, cx: &Cx<'_, Self>) {
        cx.count(output::Error::Packets, packets);
    }
}
