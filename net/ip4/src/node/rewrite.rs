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
    /// It leaves by the way it came: the sender may be told a shorter one.
    #[node("ip4-redirect")]
    Redirect,
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
    /// link-layer broadcast is not forwarded
    LinkBroadcast,
    /// next hop went away while the packet was on its way
    Gone,
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

/// Whether the device cuts the packet into pieces that are short enough.
#[cold]
fn pieces_fit(pkt: &Packet<'_>, mtu: u16) -> bool {
    let meta = pkt.meta();
    meta.gso_header.saturating_add(meta.gso_size) <= mtu
}

#[cold]
fn too_long(pkt: &mut Packet<'_>, mtu: u16, cx: &Cx<'_, Ip4Rewrite>) -> Next {
    if pkt.header::<Ip4Header>().is_some_and(|ip| !ip.dont_fragment()) {
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
fn put_in_front(pkt: &mut Packet<'_>, adj: &Adj) -> Result<(), Error> {
    if let Some(rewrite) = adj.ethernet_rewrite() {
        pkt.push(14).ok_or(Error::NoHeadroom)?;
        *pkt.data_mut().first_chunk_mut::<14>().ok_or(Error::NoHeadroom)? = *rewrite;
        return Ok(());
    }
    other(pkt, adj)
}

/// Another rewrite than an Ethernet header, or none: the adjacency may have changed since it was looked up.
#[cold]
fn other(pkt: &mut Packet<'_>, adj: &Adj) -> Result<(), Error> {
    if !adj.is_rewrite() {
        return Err(Error::Gone);
    }
    let rewrite = adj.rewrite();
    pkt.push(rewrite.len()).ok_or(Error::NoHeadroom)?;
    pkt.data_mut().get_mut(..rewrite.len()).ok_or(Error::NoHeadroom)?.copy_from_slice(rewrite);
    Ok(())
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
        let (flags, rx) = (pkt.flags(), pkt.rx());
        let (mtu, tx) = (adj.mtu, adj.tx());
        let fits_in_pieces = flags.has(Flags::GSO) && pieces_fit(pkt, mtu);
        let ip = pkt.header_mut::<Ip4Header>().ok_or(Error::TooShort)?;
        if ip.total_length() > mtu && !fits_in_pieces {
            return Ok(too_long(pkt, mtu, cx));
        }
        if tx == rx && !flags.has(Flags::REDIRECT_DONE.with(Flags::LOCALLY_ORIGINATED)) {
            return Ok(Next::Redirect);
        }
        if !flags.has(Flags::LOCALLY_ORIGINATED.with(Flags::LINK_MULTICAST)) {
            if ip.ttl() <= 1 {
                return Ok(expired(pkt, cx));
            }
            ip.decrement_ttl();
        } else if !flags.has(Flags::LOCALLY_ORIGINATED) {
            // RFC 1812, 5.3.4: every station on the link would forward its copy.
            return Err(Error::LinkBroadcast);
        }
        put_in_front(pkt, adj)?;
        pkt.meta_mut().tx = tx;
        cx.trace(pkt, || Trace {
            tx: tx.0,
            adj: index.0,
            next_hop: adj.next_hop.into(),
            mtu,
            headers: Headers::of(pkt),
        });
        Ok(Next::Output(adj.edge()))
    }
}
