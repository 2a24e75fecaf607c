//! Packets of the IPv4 Internet.

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_buffer::{Flags, Packet, SwIfIndex};
use shoal_graph::superpath::{Crossing, Pass, StatefulCrossOptional, StatefulOptional};
use shoal_graph::{Cx, StatefulNode};
use shoal_infra::Guard;
use shoal_nat::{Kind, Sum};
use shoal_translate46::{Ends, LEAST_MTU, Prefix64, WithPorts, read4, to6};
use shoal_wire::{Ip4Header, Ip6Header};

use super::{DIFFERENCE, IP4, NEAR, is_plain, kind};
use crate::config::{Config, Inside, Outside};
use crate::node::out2in::Out2in;
use crate::node::{how, is_of_other_protocol, protocol, remote, tcp_flags, trim};
use crate::session_stores::SessionStores;
use crate::sessions::{Query, Sessions, from_internet_key, shared_of};

/// What holds for the packets of an interface to the Internet.
#[derive(Clone, Copy)]
pub struct InternetFacts<'g> {
    config: &'g Config,
    /// The table that IPv6 packets of the interface go by.
    table: u32,
    /// What stands for the Internet there.
    prefix: Prefix64,
}

impl StatefulOptional for Out2in<false> {
    const NAME: &'static str = <Self as StatefulNode>::NAME;
    type Feature = SessionStores;
    type Facts<'g> = InternetFacts<'g>;

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> InternetFacts<'g> {
        let (config, table) = (self.shared.config.load(guard), self.shared.interfaces.ip6_table(interface));
        InternetFacts { config, table, prefix: config.prefix(table) }
    }

    fn pass(
        &self,
        _: &mut Sessions,
        facts: InternetFacts<'_>,
        pkt: &mut Packet<'_>,
        _: &Cx<'_, Self>,
    ) -> Pass {
        let is_other = pkt.header::<Ip4Header>().is_some_and(|ip| !facts.config.is_shared(ip.dst()));
        if is_other { Pass::On } else { Pass::Leave }
    }
}

impl StatefulCrossOptional for Out2in<false> {
    type Query = Query;
    type Destination = u128;

    fn is_far(sessions: &Sessions) -> bool {
        sessions.len() > NEAR
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>, offset: usize) -> Query {
        match pkt.data().get(offset..).and_then(WithPorts::read4) {
            Some(WithPorts { ends, protocol, .. }) => {
                let outside = Outside { address: ends.dst, port: ends.dport, protocol };
                Query::of(from_internet_key(outside, (ends.src, ends.sport)))
            }
            None => query_of_other(pkt, offset),
        }
    }

    #[inline(always)]
    fn begin(sessions: &mut Sessions, facts: InternetFacts<'_>, query: &mut Query) -> bool {
        let key = query.key();
        if !facts.config.is_shared(shared_of(key)) {
            return false;
        }
        if key[3] != 0 {
            *query = sessions.begin_search(*key);
        }
        true
    }

    #[inline(always)]
    fn seek(sessions: &mut Sessions, query: &mut Query) {
        sessions.seek(query);
    }

    #[inline(always)]
    fn fetch(sessions: &mut Sessions, query: &mut Query) {
        sessions.fetch(query);
    }

    #[inline(always)]
    fn destination(sessions: &mut Sessions, query: &Query) -> Option<u128> {
        sessions.host_of(query).map(Ipv6Addr::to_bits)
    }

    /// A function of its own: it is long, and its loop has more registers without it.
    #[inline(never)]
    fn cross(
        &self,
        sessions: &mut Sessions,
        facts: InternetFacts<'_>,
        query: Option<&Query>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Crossing {
        match WithPorts::read4(pkt.data()) {
            Some(seen) if !facts.config.is_shared(seen.ends.dst) => Crossing::On,
            Some(seen) => Crossing::from(self.with_ports(&seen, query, (sessions, facts), pkt, cx)),
            None => self.cross_other(sessions, facts, pkt.reborrow(), cx),
        }
    }
}

/// Of a packet without ports it is known whether it is for NAT64.
#[inline(never)]
fn query_of_other(pkt: &Packet<'_>, offset: usize) -> Query {
    let dst = pkt.header_at::<Ip4Header>(offset).map_or(0, Ip4Header::dst_u32);
    Query::of([0, 0, u64::from(dst) << 32, 0])
}

impl Out2in<false> {
    /// A query, or a packet with options.
    #[inline(never)]
    fn cross_other(
        &self,
        sessions: &mut Sessions,
        facts: InternetFacts<'_>,
        mut pkt: Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Crossing {
        match pkt.header::<Ip4Header>() {
            None => Crossing::Leave,
            Some(ip) if !facts.config.is_shared(ip.dst()) => Crossing::On,
            Some(_) => Crossing::from(self.established(sessions, facts, &mut pkt, cx)),
        }
    }

    /// Translates a packet of a session that there is; `None`: it is left as it was.
    #[inline(always)]
    fn with_ports(
        &self,
        seen: &WithPorts<Ipv4Addr>,
        query: Option<&Query>,
        (sessions, facts): (&mut Sessions, InternetFacts<'_>),
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Option<()> {
        let InternetFacts { table, prefix, .. } = facts;
        let WithPorts { ends, protocol, payload, .. } = *seen;
        let outside = Outside { address: ends.dst, port: ends.dport, protocol };
        let total = usize::from(payload) + IP4;
        if seen.hops <= 1 || pkt.headroom() < DIFFERENCE || pkt.len() < total {
            return None;
        }
        let key = from_internet_key(outside, (ends.src, ends.sport));
        let inside = sessions.from_internet(query, key, seen.flags, cx.now())?;
        if inside.table != table || self.is_too_long(payload, &inside, pkt, cx) {
            return None;
        }
        pkt.trim_to(total)?;
        pkt.push(DIFFERENCE)?;
        let src = prefix.embed(ends.src);
        let to = Ends { src, dst: inside.address, sport: ends.sport, dport: inside.port };
        let sum = Sum::of(pkt);
        seen.to6(pkt.data_mut(), &to, sum)?;
        is_of_other_protocol(pkt, (Flags::GSO_TCP4, Flags::GSO_TCP6));
        self.translated(kind(protocol), pkt, cx);
        Some(())
    }

    /// Whether a packet would be too long for its way: it is cut, or its sender hears of it.
    #[inline(always)]
    fn is_too_long(&self, payload: u16, inside: &Inside, pkt: &Packet<'_>, cx: &Cx<'_, Self>) -> bool {
        let becomes = pkt.meta().gso_piece().unwrap_or(payload.into()) + Ip6Header::LEN;
        let mtu = || self.shared.mtu_to_host((inside.table, inside.address), cx.guard());
        becomes > usize::from(LEAST_MTU) && becomes > usize::from(mtu())
    }

    /// The same of a query, or a packet with options.
    fn established(
        &self,
        sessions: &mut Sessions,
        facts: InternetFacts<'_>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Option<()> {
        let InternetFacts { config, table, .. } = facts;
        let seen = read4(pkt.data()).ok().filter(is_plain)?;
        let outside = Outside { address: seen.ends.dst, port: seen.ends.dport, protocol: protocol(&seen) };
        // UDP without a checksum gets one, which takes all of its bytes.
        let at = usize::from(seen.header);
        let bare = seen.kind == Kind::Udp && pkt.data().get(at + 6..at + 8) == Some(&[0, 0]);
        if bare || pkt.headroom() < DIFFERENCE || config.of_outside(&outside) != cx.thread() {
            return None;
        }
        let (remote, flags) = (remote(&seen, seen.ends.src, seen.ends.sport), tcp_flags(pkt, &seen));
        let inside = sessions.of_internet(outside, remote, flags, cx.now())?;
        if inside.table != table || self.is_too_long(seen.payload, &inside, pkt, cx) {
            return None;
        }
        let how = how(pkt, &seen);
        trim(pkt, &seen).ok()?;
        let sport = if seen.kind == Kind::Query { inside.port } else { seen.ends.sport };
        let src = facts.prefix.embed(seen.ends.src);
        let to = Ends { src, dst: inside.address, sport, dport: inside.port };
        let head = to6(pkt.data_mut(), &seen, &to, &how).ok()?;
        self.put_on(&head, seen.kind, pkt, cx).ok()
    }
}
