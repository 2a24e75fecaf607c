//! `ip4-dvr-reinject`, `ip6-dvr-reinject`: the last feature of the output arc, where packets that a route has bridged go on in
//! layer 2.
//! ip4-dvr-dpo | a feature -> **ip4-dvr-reinject** -> l2-output | the next feature

use shoal_buffer::{Flags, Packet};
use shoal_derive::{NextNodes, TraceLine};
use shoal_graph::{Cx, Edge, NoError, PacketNode};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Bridged.
    #[node("l2-output")]
    Out,
    /// Routed like others.
    Feature(Edge),
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("sw_if_index {tx}")]
pub struct Trace {
    tx: u32,
}

/// Tells packets that are bridged from those that are routed.
pub struct Reinject<const IP6: bool>;

pub(crate) const fn name(ip6: bool) -> &'static str {
    if ip6 { "ip6-dvr-reinject" } else { "ip4-dvr-reinject" }
}

impl<const IP6: bool> PacketNode for Reinject<IP6> {
    const NAME: &'static str = name(IP6);
    type Next = Next;
    type Error = NoError;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, NoError> {
        cx.trace(pkt, || Trace { tx: pkt.tx().0 });
        if !pkt.flags().has(Flags::BRIDGED_BY_ROUTE) {
            return Ok(Next::Feature(cx.next_feature(pkt)));
        }
        let meta = pkt.meta_mut();
        meta.flags = meta.flags.without(Flags::BRIDGED_BY_ROUTE);
        Ok(Next::Out)
    }
}
