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

/// Packets that are not plainly forwarded.
const UNUSUAL: Flags =
    Flags::GSO.with(Flags::LOCALLY_ORIGINATED).with(Flags::REDIRECT_DONE).with(Flags::LINK_MULTICAST);

/// Large packets the device cuts, packets made here, packets whose sender was told a shorter way.
#[cold]
fn unusual(pkt: &mut Packet<'_>, adj: &Adj, cx: &Cx<'_, Ip4Rewrite>) -> Result<Option<Next>, Error> {
    let (flags, mtu) = (pkt.flags(), adj.mtu);
    let fits_in_pieces = flags.has(Flags::GSO) && pieces_fit(pkt, mtu);
    let ours = flags.has(Flags::LOCALLY_ORIGINATED);
    if flags.has(Flags::LINK_MULTICAST) && !ours {
        // RFC 1812, 5.3.4: every station on the link would forward its copy.
        return Err(Error::LinkBroadcast);
    }
    let redirect = adj.tx() == pkt.rx() && !ours && !flags.has(Flags::REDIRECT_DONE);
    let ip = pkt.header_mut::<Ip4Header>().ok_or(Error::TooShort)?;
    if ip.total_length() > mtu && !fits_in_pieces {
        return Ok(Some(too_long(pkt, mtu, cx)));
    }
    if !ours && ip.ttl() <= 1 {
        return Ok(Some(expired(pkt, cx)));
    }
    if redirect {
        return Ok(Some(Next::Redirect));
    }
    if !ours {
        ip.decrement_ttl();
    }
    Ok(None)
}

/// Whether the device cuts the packet into pieces that are short enough.
#[cold]
fn pieces_fit(pkt: &Packet<'_>, mtu: u16) -> bool {
    let meta = pkt.meta();
    // The network header ends where the transport header starts.
    let headers = i32::from(meta.l4) - i32::from(pkt.current()) + i32::from(meta.gso_header);
    headers >= 0 && headers + i32::from(meta.gso_size) <= i32::from(mtu)
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
        if flags.has(UNUSUAL) {
            if let Some(next) = unusual(pkt, adj, cx)? {
                return Ok(next);
            }
        } else {
            let ip = pkt.header_mut::<Ip4Header>().ok_or(Error::TooShort)?;
            if ip.total_length() > mtu {
                return Ok(too_long(pkt, mtu, cx));
            }
            if ip.ttl() <= 1 {
                return Ok(expired(pkt, cx));
            }
            if tx == rx {
                return Ok(Next::Redirect);
            }
            ip.decrement_ttl();
        }
        put_in_front(pkt, adj)?;
        pkt.meta_mut().tx = tx;
        cx.trace(pkt, || Trace {
            tx: tx.0,
            adj: index.0,
            next_hop: adj.next_hop.into(),
            mtu,
            headers: Headers::behind(adj.rewrite().len(), pkt),
        });
        Ok(Next::Output(adj.edge()))
    }
}
