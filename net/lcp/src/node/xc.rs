//! `linux-cp-xc`: IP and ARP that the kernel sends, tagged or not, goes out as it is, by the interface the kernel has an image of. Frames
//! of other types are not for the network unless an operator lets them pass, as in VPP: they go on.
//! features of `device-input` -> **linux-cp-xc** -> interface-output | the next feature

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_interface::IfTable;
use shoal_wire::{EtherType, EthernetHeader};

use crate::peers::Peers;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Out.
    #[node("interface-output")]
    Output,
    /// Somebody else's.
    Feature(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// pair was deleted while the packet was on its way
    Gone,
    /// no headroom for the sub-interface's tags
    NoHeadroom,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("linux-cp-xc: host {rx} -> {tx}")]
pub(crate) struct Trace {
    rx: u32,
    tx: u32,
}

/// Crosses.
pub(crate) struct Xc {
    pub peers: Peers,
    pub interfaces: IfTable,
}

impl PacketNode for Xc {
    const NAME: &'static str = "linux-cp-xc";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        let tx = self.peers.of(rx).ok_or(Error::Gone)?;
        let kind = pkt.header::<EthernetHeader>().map(EthernetHeader::ether_type);
        let (ip, tags) =
            ([EtherType::IP4, EtherType::IP6, EtherType::ARP], [EtherType::VLAN, EtherType::QINQ]);
        if !kind.is_some_and(|kind| ip.contains(&kind) || tags.contains(&kind)) {
            return Ok(Next::Feature(cx.next_feature(pkt)));
        }
        cx.trace(pkt, || Trace { rx: rx.0, tx: tx.0 });
        // The image of a sub-interface is a port of its own: its frames have no tags.
        self.interfaces.get(tx, cx.guard()).tag(pkt).ok_or(Error::NoHeadroom)?;
        pkt.meta_mut().tx = tx;
        Ok(Next::Output)
    }
}
