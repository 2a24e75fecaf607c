//! `ip4-dvr-dpo`, `ip6-dvr-dpo`: a route has a packet bridged, behind the header it came with.
//! ip4-lookup | ip6-lookup -> **ip4-dvr-dpo** -> features of `ip4-output` | l2-output

use shoal_adj::{AdjIndex, AdjTable};
use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};
use shoal_interface::{IfFlags, IfTable};
use shoal_wire::{EtherType, EthernetHeader};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Out.
    #[node("l2-output")]
    Out,
    /// A feature of the output arc.
    Feature(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// packet has no Ethernet header to be bridged with
    NoHeader,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("sw_if_index {tx}")]
pub struct Trace {
    tx: u32,
}

/// Puts the front back to the Ethernet header.
pub struct Dpo<const IP6: bool> {
    /// All adjacencies.
    pub adjacencies: AdjTable,
    /// All interfaces.
    pub interfaces: IfTable,
    /// The features of packets that go out.
    pub output: FeatureArc,
}

pub(crate) const fn name(ip6: bool) -> &'static str {
    if ip6 { "ip6-dvr-dpo" } else { "ip4-dvr-dpo" }
}

impl<const IP6: bool> PacketNode for Dpo<IP6> {
    const NAME: &'static str = name(IP6);
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let guard = cx.guard();
        let tx = self.adjacencies.get(AdjIndex(pkt.meta().adj), guard).tx();
        cx.trace(pkt, || Trace { tx: tx.0 });
        let rx = self.interfaces.get(pkt.rx(), guard);
        // What this router made itself, and what came by a link of another kind, never had one.
        if pkt.flags().has(Flags::LOCALLY_ORIGINATED) || !rx.flags().has(IfFlags::ETHERNET) {
            return Err(Error::NoHeader);
        }
        put_back(pkt, if IP6 { EtherType::IP6 } else { EtherType::IP4 }).ok_or(Error::NoHeader)?;
        // Features find the packet behind the header by this.
        let l3 = pkt.current() + EthernetHeader::LEN as i16;
        let meta = pkt.meta_mut();
        (meta.tx, meta.l3) = (tx, l3);
        Ok(match cx.start_arc(&self.output, tx, pkt) {
            Some(edge) => {
                let meta = pkt.meta_mut();
                meta.flags = meta.flags.with(Flags::BRIDGED_BY_ROUTE);
                Next::Feature(edge)
            }
            None => Next::Out,
        })
    }
}

/// Puts the front to the header that was taken off; tags were taken out of it.
fn put_back(pkt: &mut Packet<'_>, kind: EtherType) -> Option<()> {
    pkt.push(EthernetHeader::LEN)?;
    let is_header = pkt.header::<EthernetHeader>().is_some_and(|header| header.ether_type() == kind);
    if !is_header {
        pkt.pull(EthernetHeader::LEN)?;
    }
    is_header.then_some(())
}
