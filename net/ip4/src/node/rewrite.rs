//! `ip4-rewrite`: take a hop off, put the neighbour's header in front. RFC 1812, 5.2 and 5.3.1.
//! ip4-lookup -> **ip4-rewrite** -> `<interface>-output` | ip4-icmp-error | ip4-frag

use shoal_adj::{Adj, AdjIndex, AdjTable};
use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_wire::Ip4Header;

use crate::{Headers, IcmpError};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Its sender is told that it goes no further.
    #[node("ip4-icmp-error")]
    IcmpError,
    /// It is too long and may be cut.
    #[node("ip4-frag")]
    Frag,
    /// The neighbour's interface.
    #[fan]
    Output(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// ip4 header is cut short
    TooShort,
    /// ip4 ttl <= 1
    #[counter("time_expired")]
    #[severity(warn)]
    TtlExpired,
    /// ip4 MTU exceeded and DF set
    #[counter("mtu_exceeded")]
    #[severity(warn)]
    MtuExceeded,
    /// no headroom for the new header
    NoHeadroom,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("tx_sw_if_index {tx} dpo-idx {adj} : ipv4 via {next_hop} mtu:{mtu}")]
#[line("{headers}")]
pub struct Trace {
    tx: u32,
    adj: u32,
    next_hop: std::net::Ipv4Addr,
    mtu: u16,
    headers: Headers,
}

/// Puts rewrites in front.
pub struct Ip4Rewrite {
    /// All adjacencies.
    pub adjacencies: AdjTable,
}

/// The size on the wire of the largest piece a packet becomes.
#[cold]
fn piece(pkt: &Packet<'_>, total: u16) -> u16 {
    let meta = pkt.meta();
    if meta.flags.has(Flags::GSO) {
        // The device cuts it; what counts is one piece.
        meta.gso_header.saturating_add(meta.gso_size)
    } else {
        total
    }
}

#[cold]
fn too_long(pkt: &mut Packet<'_>, mtu: u16, may_cut: bool, cx: &Cx<'_, Ip4Rewrite>) -> Next {
    if may_cut {
        return Next::Frag;
    }
    cx.count(Error::MtuExceeded, 1);
    IcmpError::too_big(mtu).ask(pkt);
    Next::IcmpError
}

#[cold]
fn expired(pkt: &mut Packet<'_>, cx: &Cx<'_, Ip4Rewrite>) -> Next {
    cx.count(Error::TtlExpired, 1);
    IcmpError::TTL.ask(pkt);
    Next::IcmpError
}

/// Puts an Ethernet header in front, or whatever else the adjacency holds.
#[inline(always)]
fn put_in_front(pkt: &mut Packet<'_>, adj: &Adj) -> Option<()> {
    if let Some(rewrite) = adj.ethernet_rewrite() {
        pkt.push(14)?;
        *pkt.data_mut().first_chunk_mut::<14>()? = *rewrite;
        return Some(());
    }
    longer(pkt, adj.rewrite())
}

#[cold]
fn longer(pkt: &mut Packet<'_>, rewrite: &[u8]) -> Option<()> {
    pkt.push(rewrite.len())?;
    pkt.data_mut().get_mut(..rewrite.len())?.copy_from_slice(rewrite);
    Some(())
}

impl PacketNode for Ip4Rewrite {
    const NAME: &'static str = "ip4-rewrite";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    #[inline(always)]
    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let index = AdjIndex(pkt.meta().adj);
        let adj = self.adjacencies.get(index, cx.guard());
        let flags = pkt.flags();
        let ip = pkt.header_mut::<Ip4Header>().ok_or(Error::TooShort)?;
        let (total, may_cut) = (ip.total_length(), !ip.dont_fragment());
        if total > adj.mtu && piece(pkt, total) > adj.mtu {
            return Ok(too_long(pkt, adj.mtu, may_cut, cx));
        }
        let tx = adj.tx();
        if !flags.has(Flags::LOCALLY_ORIGINATED) {
            let ip = pkt.header_mut::<Ip4Header>().ok_or(Error::TooShort)?;
            if ip.ttl() <= 1 {
                return Ok(expired(pkt, cx));
            }
            ip.decrement_ttl();
        }
        put_in_front(pkt, adj).ok_or(Error::NoHeadroom)?;
        pkt.meta_mut().tx = tx;
        cx.trace(pkt, || Trace {
            tx: tx.0,
            adj: index.0,
            next_hop: adj.next_hop.into(),
            mtu: adj.mtu,
            headers: Headers::of(pkt),
        });
        Ok(Next::Output(adj.edge()))
    }
}
