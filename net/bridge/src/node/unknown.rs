//! `l2-uu-fwd`: what is for an unknown station, or asks for one, goes to one interface.
//! l2-fwd | l2-input -> **l2-uu-fwd** -> l2-output

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::{Cx, PacketNode};
use shoal_l2::{InputNext as Next, Path};

use crate::table::DomainTable;

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// L2 UU fwd
    #[counter("l2uufwd")]
    Packets,
    /// the domain has no such interface any more, or the packet came by it
    #[counter("no_interface")]
    NoInterface,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("l2-uu-fwd: sw_if_index {rx}")]
pub struct Trace {
    rx: u32,
}

/// Sends it there.
pub struct UnknownForward {
    /// The way through the features.
    pub path: Path,
    /// All domains.
    pub table: DomainTable,
}

impl PacketNode for UnknownForward {
    const NAME: &'static str = "l2-uu-fwd";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let (rx, guard) = (pkt.rx(), cx.guard());
        cx.trace(pkt, || Trace { rx: rx.0 });
        let domain = self.path.data(rx, guard).domain();
        let to = self.table.domain(domain, guard).unknown.filter(|to| *to != rx);
        pkt.meta_mut().tx = to.ok_or(Error::NoInterface)?;
        cx.count(Error::Packets, 1);
        Ok(Next::Output)
    }
}
