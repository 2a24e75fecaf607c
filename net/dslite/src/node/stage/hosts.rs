//! Packets of hosts, in tunnels.

use std::net::Ipv6Addr;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_fib::FibIndex;
use shoal_graph::superpath::{Crossing, Pass, StatefulCrossOptional, StatefulOptional};
use shoal_graph::{Counts, Cx, StatefulFrameNode};
use shoal_infra::Guard;
use shoal_nat::{PortPacket, Rewrite, Sum, Tuple};
use shoal_wire::{Ip4Header, Ip6Header, IpProtocol};

use super::NEAR;
use crate::node::Error;
use crate::node::in2out::{In2out, decapsulate, inside};
use crate::session_stores::SessionStores;
use crate::sessions::{Key, Query, Sessions, inside_key};

/// Bytes of the shortest packet with ports.
const LEAST: usize = Ip4Header::LEN + 8;

/// What holds for the packets of an interface.
#[derive(Clone, Copy)]
pub struct TunnelFacts {
    /// Where tunnels end, if packets of the interface get there.
    end: Option<u128>,
}

impl Counts for In2out<false> {
    type Error = Error;
}

impl StatefulOptional for In2out<false> {
    const NAME: &'static str = <Self as StatefulFrameNode>::NAME;
    type Feature = SessionStores;
    type Facts<'g> = TunnelFacts;

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> TunnelFacts {
        let by_main_table = FibIndex(self.shared.interfaces.ip6_table(interface)) == FibIndex::DEFAULT;
        let aftr = self.shared.config.load(guard).aftr.filter(|_| by_main_table);
        TunnelFacts { end: aftr.map(|aftr| aftr.ip6.to_bits()) }
    }

    /// Its packets have a route to it.
    fn pass(&self, _: &mut Sessions, _: TunnelFacts, _: &mut Packet<'_>, _: &Cx<'_, Self>) -> Pass {
        Pass::On
    }
}

/// What a packet in a tunnel looks for.
#[derive(Clone, Copy, PartialEq, Default)]
pub struct TunnelQuery {
    /// Of no key for packets without ports.
    search: Query,
    /// Where the tunnel ends.
    end: u128,
    /// Where the packet in it goes.
    far: u32,
}

/// The packet in a tunnel's, as far as it is of the common case, and its tuple.
#[inline(always)]
fn ports(inner: &[u8]) -> Option<(PortPacket, Tuple)> {
    let seen = PortPacket::read(inner)?;
    Some((seen, seen.tuple()))
}

/// What it is found by.
#[inline(always)]
fn key(b4: Ipv6Addr, seen: &PortPacket, tuple: Tuple) -> Key {
    inside_key(&inside(b4, tuple, seen.protocol()))
}

impl StatefulCrossOptional for In2out<false> {
    type Query = TunnelQuery;
    type Destination = u32;

    fn is_far(sessions: &Sessions) -> bool {
        sessions.len() > NEAR
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>, offset: usize) -> TunnelQuery {
        let Some(ip) = pkt.header_at::<Ip6Header>(offset) else { return TunnelQuery::default() };
        let end = ip.dst_u128();
        let inner =
            pkt.data().get(offset + Ip6Header::LEN..).filter(|_| ip.protocol() == IpProtocol::IP_IN_IP);
        match inner.and_then(ports) {
            Some((seen, tuple)) => {
                TunnelQuery { search: Query::of(key(ip.src(), &seen, tuple)), end, far: tuple.dst }
            }
            None => TunnelQuery { end, ..TunnelQuery::default() },
        }
    }

    #[inline(always)]
    fn begin(sessions: &mut Sessions, facts: TunnelFacts, query: &mut TunnelQuery) -> bool {
        if facts.end != Some(query.end) {
            return false;
        }
        sessions.begin(&mut query.search);
        true
    }

    #[inline(always)]
    fn seek(sessions: &mut Sessions, query: &mut TunnelQuery) {
        sessions.seek(&mut query.search);
    }

    #[inline(always)]
    fn destination(_: &mut Sessions, query: &TunnelQuery) -> Option<u32> {
        Some(query.far)
    }

    #[inline(always)]
    fn cross(
        &self,
        sessions: &mut Sessions,
        facts: TunnelFacts,
        query: Option<&TunnelQuery>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Crossing {
        let Some(ip) = pkt.header::<Ip6Header>() else { return Crossing::On };
        let (b4, is_tunnel) = (ip.src(), ip.protocol() == IpProtocol::IP_IN_IP);
        if facts.end != Some(ip.dst_u128()) || !is_tunnel {
            return Crossing::On;
        }
        Crossing::from(established(b4, query.map(|query| &query.search), sessions, pkt, cx))
    }
}

/// Takes a packet out of its tunnel and translates it; `None`: it is left as it was. Whose sessions a B4's are it has no need to ask:
/// only the worker that has them finds them.
#[inline(always)]
fn established(
    b4: Ipv6Addr,
    query: Option<&Query>,
    sessions: &mut Sessions,
    pkt: &mut Packet<'_>,
    cx: &Cx<'_, In2out<false>>,
) -> Option<()> {
    let header = pkt.header_at::<Ip4Header>(Ip6Header::LEN)?;
    let total = usize::from(header.total_length());
    // The header of UDP, at least, is there and within the packet. Of one with options the sum is not looked at: it is left.
    if !header.checksum_ok() || total < LEAST || total + Ip6Header::LEN > pkt.len() {
        return None;
    }
    let (seen, tuple) = ports(pkt.data().get(Ip6Header::LEN..)?)?;
    let bytes = pkt.len() - Ip6Header::LEN;
    let outside = sessions.out(query, &inside(b4, tuple, seen.protocol()), (bytes, seen.flags), cx.now())?;
    let to = Tuple { src: outside.address.to_bits(), sport: outside.port, ..tuple };
    let inner = pkt.data_mut().get_mut(Ip6Header::LEN..)?;
    Rewrite::new(tuple, to, seen.protocol()).write_port_packet(inner, seen.is_tcp, Sum::Whole)?;
    decapsulate(pkt).ok()?;
    cx.count(Error::In2out, 1);
    Some(())
}
