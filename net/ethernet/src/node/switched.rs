//! `ethernet-input` as the first node of chains for interfaces in layer 2.

use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_graph::superpath::Plain;
use shoal_graph::{Cx, PacketNode};
use shoal_infra::Guard;
use shoal_interface::{IfFlags, SwIfIndex};
use shoal_wire::EthernetHeader;

use super::input::{Error, EthernetInput, Next, Trace};
use crate::vlan::{Tags, is_outer};

/// Frames of an interface that is up and in layer 2, if no sub-interface takes them.
pub struct SwitchedInput(pub Arc<EthernetInput>);

impl PacketNode for SwitchedInput {
    const NAME: &'static str = EthernetInput::NAME;
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    /// It is part of chains, and no node of the graph.
    fn packet(&self, _: &mut Packet<'_>, _: &mut Cx<'_, Self>) -> Result<Next, Error> {
        Err(Error::None)
    }
}

impl Plain for SwitchedInput {
    type Facts<'g> = ();

    #[inline(always)]
    fn facts(&self, interface: SwIfIndex, guard: Guard<'_>) -> Option<()> {
        let flags = self.0.interfaces.get(interface, guard).flags();
        let plain =
            flags.all(IfFlags::L2) && flags.all(IfFlags::ADMIN_UP) && !flags.has(IfFlags::UNTAGGED_SUB);
        plain.then_some(())
    }

    #[inline(always)]
    fn plain(&self, (): (), pkt: &mut Packet<'_>) -> bool {
        let Some(header) = pkt.header::<EthernetHeader>() else { return false };
        if !is_outer(header.ether_type()) {
            return true;
        }
        let tags = Tags::of_frame(pkt.data());
        tags.is_some_and(|tags| self.0.vlans.tagged(pkt.rx(), &tags).is_none())
    }
}
