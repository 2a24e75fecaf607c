//! Packets to shared addresses.

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_buffer::{Flags, Packet, SwIfIndex};
use shoal_fib::FibIndex;
use shoal_graph::superpath::{Crossing, Pass, StatefulCrossOptional, StatefulOptional};
use shoal_graph::{Counts, Cx, StatefulFrameNode};
use shoal_infra::Guard;
use shoal_nat::{PortPacket, Rewrite, Sum, Tuple};
use shoal_wire::{Ip4Header, Ip6Header};

use super::NEAR;
use crate::config::Config;
use crate::node::Error;
use crate::node::ce::encapsulate;
use crate::node::out2in::Out2in;
use crate::session_stores::SessionStores;
use crate::sessions::{Outside, Query, Sessions, outside_key};

/// What holds for the packets of an interface.
#[derive(Clone, Copy)]
pub struct SharedAddressFacts<'g> {
    /// If packets of the interface get to shared addresses.
    config: Option<&'g Config>,
    /// The table that tunnels of its packets go by.
    table: FibIndex,
}

impl SharedAddressFacts<'_> {
    #[inline(always)]
    fn is_shared(&self, address: Ipv4Addr) -> bool {
        self.config.is_some_and(|config| config.is_shared(address))
    }
}

impl Counts for Out2in {
    type Error = Error;
}

impl StatefulOptional for Out2in {
    const NAME: &'static str = <Self as StatefulFrameNode>::NAME;
    type Feature = SessionStores;
    type Facts<'g> = SharedAddressFacts<'g>;

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> SharedAddressFacts<'g> {
        let interfaces = &self.shared.interfaces;
        let by_main_table = FibIndex(interfaces.ip4_table(interface)) == FibIndex::DEFAULT;
        SharedAddressFacts {
            config: Some(self.shared.config.load(guard)).filter(|_| by_main_table),
            table: FibIndex(interfaces.ip6_table(interface)),
        }
    }

    /// Its packets have a route to it.
    fn pass(&self, _: &mut Sessions, _: Self::Facts<'_>, _: &mut Packet<'_>, _: &Cx<'_, Self>) -> Pass {
        Pass::On
    }
}

/// What a packet to a shared address looks for.
#[derive(Clone, Copy, PartialEq, Default)]
pub struct SharedAddressQuery {
    /// Of no key for packets without ports.
    search: Query,
    dst: u32,
}

#[inline(always)]
const fn outside(seen: &PortPacket, tuple: Tuple) -> Outside {
    Outside { address: Ipv4Addr::from_bits(tuple.dst), port: tuple.dport, protocol: seen.protocol() }
}

impl StatefulCrossOptional for Out2in {
    type Query = SharedAddressQuery;
    type Destination = u128;

    fn is_far(sessions: &Sessions) -> bool {
        sessions.len() > NEAR
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>, offset: usize) -> SharedAddressQuery {
        if let Some(seen) = pkt.data().get(offset..).and_then(PortPacket::read) {
            let tuple = seen.tuple();
            let search = Query::of(outside_key(outside(&seen, tuple)));
            return SharedAddressQuery { search, dst: tuple.dst };
        }
        let dst = pkt.header_at::<Ip4Header>(offset).map_or(0, Ip4Header::dst_u32);
        SharedAddressQuery { dst, ..SharedAddressQuery::default() }
    }

    #[inline(always)]
    fn begin(sessions: &mut Sessions, facts: SharedAddressFacts<'_>, query: &mut SharedAddressQuery) -> bool {
        if !facts.is_shared(Ipv4Addr::from_bits(query.dst)) {
            return false;
        }
        sessions.begin(&mut query.search);
        true
    }

    #[inline(always)]
    fn seek(sessions: &mut Sessions, query: &mut SharedAddressQuery) {
        sessions.seek(&mut query.search);
    }

    #[inline(always)]
    fn fetch(sessions: &mut Sessions, query: &mut SharedAddressQuery) {
        sessions.fetch(&query.search);
    }

    #[inline(always)]
    fn destination(sessions: &mut Sessions, query: &SharedAddressQuery) -> Option<u128> {
        sessions.b4_of(&query.search).map(Ipv6Addr::to_bits)
    }

    #[inline(always)]
    fn cross(
        &self,
        sessions: &mut Sessions,
        facts: SharedAddressFacts<'_>,
        query: Option<&SharedAddressQuery>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Crossing {
        match PortPacket::read(pkt.data()) {
            Some(seen) if facts.is_shared(Ipv4Addr::from_bits(seen.tuple().dst)) => {
                let query = query.map(|query| &query.search);
                Crossing::from(self.established(&seen, query, (sessions, facts), pkt, cx))
            }
            _ => Crossing::On,
        }
    }
}

impl Out2in {
    /// Translates a packet and puts it into its tunnel; `None`: it is left as it was.
    #[inline(always)]
    fn established(
        &self,
        seen: &PortPacket,
        query: Option<&Query>,
        (sessions, facts): (&mut Sessions, SharedAddressFacts<'_>),
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Option<()> {
        let aftr = facts.config?.aftr?;
        let flags = pkt.flags();
        if seen.ttl <= 1
            || pkt.headroom() < Ip6Header::LEN
            || flags.has(Flags::GSO)
            || flags.has(Flags::L4_CHECKSUM_OFFLOAD)
        {
            return None;
        }
        let tuple = seen.tuple();
        let outside = outside(seen, tuple);
        let becomes = pkt.len() + Ip6Header::LEN;
        if becomes > Ip6Header::MIN_MTU {
            let b4 = sessions.peek_into(outside)?.b4;
            if becomes > usize::from(self.shared.mtu((facts.table, b4), cx.guard())) {
                return None;
            }
        }
        let inside = sessions.into(query, outside, (pkt.len(), seen.flags), cx.now())?;
        let to = Tuple { dst: inside.address.to_bits(), dport: inside.port, ..tuple };
        Rewrite::new(tuple, to, seen.protocol()).write_port_packet(
            pkt.data_mut(),
            seen.is_tcp,
            Sum::Whole,
        )?;
        encapsulate(pkt, (aftr.ip6, inside.b4), false).ok()?;
        cx.count(Error::Out2in, 1);
        Some(())
    }
}
