//! `linux-cp-other`: frames of types that an operator lets pass (LACP, LLDP), between an interface and its image as they
//! are.
//! ethernet-input -> **linux-cp-other** -> interface-output

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};
use shoal_interface::IfTable;
use shoal_wire::EthernetHeader;

use crate::peers::Peers;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// To the other one of the pair.
    #[node("interface-output")]
    Output,
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// interface has no image in Linux
    NoPair,
    /// frame is cut short
    TooShort,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("linux-cp-other: {rx} -> {tx}")]
pub(crate) struct Trace {
    rx: u32,
    tx: u32,
}

/// Crosses in both directions.
pub(crate) struct Other {
    pub peers: Peers,
    pub interfaces: IfTable,
}

impl PacketNode for Other {
    const NAME: &'static str = "linux-cp-other";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        let tx = self.peers.of(rx).ok_or(Error::NoPair)?;
        cx.trace(pkt, || Trace { rx: rx.0, tx: tx.0 });
        // ethernet-input has moved the front past the header, which still lies there.
        pkt.push(EthernetHeader::LEN).ok_or(Error::TooShort)?;
        self.peers.tag(&self.interfaces, (rx, tx), pkt, cx.guard()).ok_or(Error::TooShort)?;
        pkt.meta_mut().tx = tx;
        Ok(Next::Output)
    }
}
