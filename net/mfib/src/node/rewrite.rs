//! `ip4-rewrite-mcast`, `ip6-rewrite-mcast`: take a hop off, put the group's Ethernet header in front.
//! the replication | ip4-frag -> **rewrite** -> `<interface>-output` | features of `ip4-output`, `ip6-output` | ip4-frag | ip6-icmp-error

use std::fmt;
use std::marker::PhantomData;

use shoal_adj::{AdjIndex, AdjKind, AdjTable};
use shoal_buffer::{Flags, Packet};
use shoal_derive::ErrorCounters;
use shoal_graph::{Cx, Edge, FeatureArc, NextNodes, PacketNode};
use shoal_wire::EthernetHeader;

use crate::family::{Ip, TooLong};

/// Where a packet goes next: an edge.
#[derive(Clone, Copy)]
pub(crate) struct Next<F>(Edge, PhantomData<F>);

impl<F: Ip> NextNodes for Next<F> {
    const NAMES: &'static [&'static str] = F::REWRITE_NEXT;

    fn edge(self) -> Edge {
        self.0
    }
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// header is cut short
    TooShort,
    /// multicast ttl <= 1
    #[counter("time_expired")]
    #[severity(warn)]
    Expired,
    /// multicast packet exceeds the MTU
    #[counter("mtu_exceeded")]
    #[severity(warn)]
    MtuExceeded,
    /// no headroom for the new header
    NoHeadroom,
    /// interface went away while the packet was on its way
    Gone,
}

/// What `show trace` says.
pub(crate) struct Trace<H> {
    tx: u32,
    adj: u32,
    mtu: u16,
    headers: H,
}

impl<H: fmt::Display> fmt::Display for Trace<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tx_sw_if_index {} adj-idx {} : mcast mtu:{}", self.tx, self.adj, self.mtu)?;
        self.headers.fmt(f)
    }
}

/// Puts rewrites in front.
pub(crate) struct RewriteMcast<F> {
    pub adjacencies: AdjTable,
    /// Features of packets behind the rewrite.
    pub output: FeatureArc,
    pub family: PhantomData<F>,
}

/// Whether the device cuts the packet into pieces that are short enough.
fn fits_in_pieces(pkt: &Packet<'_>, mtu: u16) -> bool {
    let meta = pkt.meta();
    if !meta.flags.has(Flags::GSO) {
        return false;
    }
    let headers = i32::from(meta.l4) - i32::from(pkt.current()) + i32::from(meta.gso_header);
    headers >= 0 && headers + i32::from(meta.gso_size) <= i32::from(mtu)
}

impl<F: Ip> PacketNode for RewriteMcast<F> {
    const NAME: &'static str = F::REWRITE;
    type Next = Next<F>;
    type Error = Error;
    type Trace = Trace<F::Headers>;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next<F>, Error> {
        let adj = self.adjacencies.get(AdjIndex(pkt.meta().adj), cx.guard());
        if adj.kind() != AdjKind::Multicast {
            return Err(Error::Gone);
        }
        cx.trace(pkt, || Trace {
            tx: adj.tx().0,
            adj: pkt.meta().adj,
            mtu: adj.mtu,
            headers: F::headers(pkt),
        });
        let (_, group) = F::addresses(pkt).ok_or(Error::TooShort)?;
        let (hops, length) = F::hops_and_length(pkt).ok_or(Error::TooShort)?;
        let ours = pkt.flags().has(Flags::LOCALLY_ORIGINATED);
        if !ours && hops <= 1 {
            // RFC 1112, 7.2; RFC 4443, 2.4 (e.3): the sender gets no error.
            return Err(Error::Expired);
        }
        if length > usize::from(adj.mtu) && !fits_in_pieces(pkt, adj.mtu) {
            return match F::too_long(pkt, adj.mtu) {
                TooLong::Drop => Err(Error::MtuExceeded),
                TooLong::Next => Ok(Next(Edge(1), PhantomData)),
            };
        }
        if !ours {
            F::decrement(pkt).ok_or(Error::TooShort)?;
        }
        let rewrite = adj.rewrite();
        pkt.push(rewrite.len()).ok_or(Error::NoHeadroom)?;
        let front = pkt.data_mut().get_mut(..rewrite.len()).ok_or(Error::NoHeadroom)?;
        front.copy_from_slice(rewrite);
        if rewrite.len() >= EthernetHeader::LEN
            && let Some(end) = front.get_mut(6 - F::MAC_BYTES..6)
        {
            // The record has the part that all groups share.
            let bytes = F::mac_end(group);
            end.iter_mut().rev().zip(bytes.iter().rev()).for_each(|(to, from)| *to |= *from);
        }
        let l3 = pkt.current() + rewrite.len() as i16;
        let meta = pkt.meta_mut();
        (meta.tx, meta.l3) = (adj.tx(), l3);
        meta.flags = meta.flags.without(Flags::LINK_MULTICAST);
        let feature = if adj.has_features() { cx.start_arc(&self.output, adj.tx(), pkt) } else { None };
        Ok(Next(feature.unwrap_or(adj.edge()), PhantomData))
    }
}
