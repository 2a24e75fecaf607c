//! `linux-cp-xc`: what the kernel sends goes out as it is, by the interface the kernel has an image of.
//! features of `device-input` -> **linux-cp-xc** -> interface-output

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};

use crate::peers::Peers;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Out.
    #[node("interface-output")]
    Output,
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// pair was deleted while the packet was on its way
    Gone,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("linux-cp-xc: host {rx} -> {tx}")]
pub(crate) struct Trace {
    rx: u32,
    tx: u32,
}

/// Crosses.
pub(crate) struct Xc(pub Peers);

impl PacketNode for Xc {
    const NAME: &'static str = "linux-cp-xc";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        let tx = self.0.of(rx).ok_or(Error::Gone)?;
        cx.trace(pkt, || Trace { rx: rx.0, tx: tx.0 });
        pkt.meta_mut().tx = tx;
        Ok(Next::Output)
    }
}
