//! `l2-storm-control`: a port brings no more frames for groups into its domain than it may, and
//! `l2-storm-control-unknown` no more for unknown stations.
//! l2-input | l2-input-feat-arc-end -> **l2-storm-control** -> the first feature behind the arc
//! l2-fwd -> **l2-storm-control-unknown** -> the next feature, which floods
//!
//! Only frames of ports with a limit get here.

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::counter::Simple;
use shoal_graph::{Cx, PacketNode};
use shoal_l2::{Input, InputNext as Next, Path};
use shoal_wire::EthernetHeader;

use crate::storm::{StormClass, StormTable};

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// broadcast frames beyond the port's limit
    #[counter("broadcast")]
    Broadcast,
    /// multicast frames beyond the port's limit
    #[counter("multicast")]
    Multicast,
    /// frames for unknown stations beyond the port's limit
    #[counter("unknown_unicast")]
    UnknownUnicast,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("l2-storm-control: sw_if_index {rx} {class} {verdict} its limit")]
pub struct Trace {
    rx: u32,
    class: &'static str,
    verdict: &'static str,
}

/// Drops what is beyond a limit; with `UNKNOWN`, of what is for unknown stations.
pub struct StormControl<const UNKNOWN: bool> {
    /// The way through the features.
    pub path: Path,
    /// The buckets.
    pub(crate) table: StormTable,
    /// What was dropped, by class and port.
    pub(crate) drops: [Simple; 3],
}

impl<const UNKNOWN: bool> PacketNode for StormControl<UNKNOWN> {
    const NAME: &'static str = if UNKNOWN { "l2-storm-control-unknown" } else { "l2-storm-control" };
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        let to_all = || pkt.header::<EthernetHeader>().is_some_and(|header| header.dst().is_broadcast());
        let class = match UNKNOWN {
            true => StormClass::UnknownUnicast,
            false if to_all() => StormClass::Broadcast,
            false => StormClass::Multicast,
        };
        let takes = self.table.takes(rx, class, cx.now());
        let verdict = if takes { "within" } else { "beyond" };
        cx.trace(pkt, || Trace { rx: rx.0, class: class.word(), verdict });
        if !takes {
            if let Some(drops) = self.drops.get(class as usize) {
                drops.add(cx.thread(), rx.0 as usize, 1);
            }
            return Err(match class {
                StormClass::Broadcast => Error::Broadcast,
                StormClass::Multicast => Error::Multicast,
                StormClass::UnknownUnicast => Error::UnknownUnicast,
            });
        }
        let place = if UNKNOWN { Input::Forward } else { Input::Arc };
        Ok(self.path.behind_limit(pkt, place, cx.guard()).map_or(Next::BitmapDrop, Next::To))
    }
}
