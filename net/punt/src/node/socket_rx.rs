//! `punt-socket-rx`: packets that clients have sent enter the graph.
//! the main thread -> **punt-socket-rx** -> interface-output | ip4-lookup | ip6-lookup

use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};

/// The node's name.
pub(crate) const SOCKET_RX: &str = "punt-socket-rx";

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Out, as it is.
    #[node("interface-output")]
    Output,
    /// By the table of an interface.
    #[node("ip4-lookup")]
    Ip4,
    /// By the table of an interface.
    #[node("ip6-lookup")]
    Ip6,
}

/// What is counted here: what clients sent, and why it goes nowhere.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RxError {
    /// Socket RX
    #[counter("socket_rx")]
    #[severity(info)]
    Rx,
    /// Socket RX error
    #[counter("socket_rx_error")]
    Socket,
    /// short or long message
    #[counter("readv")]
    Readv,
    /// unsupported action
    #[counter("action")]
    Action,
    /// no such interface
    #[counter("interface")]
    Interface,
    /// packet to be routed is none of its family
    #[counter("malformed")]
    Malformed,
    /// buffer allocation failure
    #[counter("nobuffer")]
    NoBuffer,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("rx sw_if_index {rx} tx sw_if_index {tx}")]
pub(crate) struct Trace {
    rx: u32,
    tx: u32,
}

/// Sends packets of clients on.
pub(crate) struct SocketRx;

impl PacketNode for SocketRx {
    const NAME: &'static str = SOCKET_RX;
    type Next = Next;
    type Error = RxError;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, RxError> {
        let (rx, tx) = (pkt.rx(), pkt.tx());
        cx.trace(pkt, || Trace { rx: rx.0, tx: tx.0 });
        cx.count(RxError::Rx, 1);
        if tx != SwIfIndex::NONE {
            return Ok(Next::Output);
        }
        // Its version was looked at when it was taken.
        match pkt.data().first().map(|byte| byte >> 4) {
            Some(4) => Ok(Next::Ip4),
            Some(6) => Ok(Next::Ip6),
            _ => Err(RxError::Malformed),
        }
    }
}
