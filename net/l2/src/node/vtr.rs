//! `l2-input-vtr`: rewrites the tags of a frame that came in.
//! l2-input -> **l2-input-vtr** -> the next feature

use shoal_buffer::Packet;
use shoal_derive::ErrorCounters;
use shoal_graph::superpath::Plain;
use shoal_graph::{Cx, PacketNode};
use shoal_infra::Guard;
use shoal_interface::SwIfIndex;

use super::input::Next;
use super::output::Trace;
use crate::bitmap::Input;
use crate::rewrite::Rewrite;
use crate::table::Path;

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// L2 inverter packets
    #[counter("l2_invtr")]
    Packets,
    /// L2 input tag rewrite drops
    #[counter("drop")]
    Drop,
}

/// Rewrites.
pub struct InputRewrite {
    /// The way through the features.
    pub path: Path,
}

impl PacketNode for InputRewrite {
    const NAME: &'static str = "l2-input-vtr";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let done = self.rewrite(pkt, cx.guard());
        cx.count(Error::Packets, 1);
        cx.trace(pkt, || Trace::new("l2-input-vtr", pkt.rx(), pkt));
        done.ok_or(Error::Drop)?;
        Ok(self.path.behind(pkt, Input::TagRewrite, cx.guard()).map_or(Next::BitmapDrop, Next::To))
    }
}

impl InputRewrite {
    #[inline(always)]
    fn rewrite(&self, pkt: &mut Packet<'_>, guard: Guard<'_>) -> Option<()> {
        let data = self.path.data(pkt.rx(), guard);
        if let Some(rewrite) = data.rewrite_in.used() {
            rewrite.apply(pkt)?;
        }
        self.path.apply_pbb(data, pkt, guard)
    }
}

/// On a fused path frames whose tags are not rewritten pass by.
impl Plain for InputRewrite {
    /// What is done to tags, if anything is.
    type Facts<'g> = Option<&'g Rewrite>;

    #[inline(always)]
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Option<&'g Rewrite>> {
        let data = self.path.data(interface, guard);
        (data.pbb == 0).then(|| data.rewrite_in.used())
    }

    #[inline(always)]
    fn plain(&self, rewrite: Option<&Rewrite>, pkt: &mut Packet<'_>) -> bool {
        rewrite.is_none_or(|rewrite| rewrite.apply(pkt).is_some())
    }

    fn count(&self, interface: SwIfIndex, packets: u64, _: u64, cx: &Cx<'_, Self>) {
        if self.path.data(interface, cx.guard()).rewrite_in.is_some() {
            cx.count(Error::Packets, packets);
        }
    }
}
