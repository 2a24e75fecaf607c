//! `l2-patch`: what an interface receives goes out of another one, whatever it is; for tests of drivers.
//! device-input -> **l2-patch** -> interface-output

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};

use crate::patch::Peers;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The other interface.
    #[node("interface-output")]
    Output,
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// L2 patch packets
    #[counter("patched")]
    #[severity(info)]
    Patched,
    /// L2 patch misconfigured drops
    #[counter("dropped")]
    Dropped,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("L2_PATCH: rx {rx} tx {tx}")]
pub struct Trace {
    rx: u32,
    tx: u32,
}

/// Sends on.
pub struct Patch {
    pub(crate) peers: Peers,
}

impl PacketNode for Patch {
    const NAME: &'static str = "l2-patch";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        let tx = self.peers.of(rx).ok_or(Error::Dropped)?;
        cx.trace(pkt, || Trace { rx: rx.0, tx: tx.0 });
        cx.count(Error::Patched, 1);
        pkt.meta_mut().tx = tx;
        Ok(Next::Output)
    }
}
