//! `punt-dispatch`: packets that a feature punts go to those who want them for that reason.
//! a feature -> **punt-dispatch** -> exception-punt-socket | error-drop

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::counter::Combined;
use shoal_graph::{Cx, Edge, PacketNode};

use crate::reasons::{MOST, PuntReason, ReasonEdges};

/// The node's name.
pub(crate) const DISPATCH: &str = "punt-dispatch";

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// To the one who takes it.
    Feature(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// No registrations
    #[counter("no_registrations")]
    NoRegistrations,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("reason: [{reason}]")]
pub(crate) struct Trace {
    reason: u32,
}

/// Hands out packets by their reason.
pub(crate) struct Dispatch {
    pub takers: ReasonEdges,
    /// Packets and bytes by reason.
    pub counts: Combined,
}

impl PacketNode for Dispatch {
    const NAME: &'static str = DISPATCH;
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let reason = PuntReason::of(pkt);
        cx.trace(pkt, || Trace { reason: reason.0 });
        if (reason.0 as usize) < MOST {
            self.counts.add(cx.thread(), reason.0 as usize, 1, pkt.len() as u64);
        }
        self.takers.of(reason).map(Next::Feature).ok_or(Error::NoRegistrations)
    }
}
