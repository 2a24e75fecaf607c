//! Packets of IPv6 hosts.

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_buffer::{Flags, Packet, SwIfIndex};
use shoal_fib::FibIndex;
use shoal_graph::superpath::{Crossing, Pass, StatefulCrossOptional, StatefulOptional};
use shoal_graph::{Cx, StatefulNode};
use shoal_infra::Guard;
use shoal_nat::{Kind, Sum};
use shoal_translate46::{Ends, Prefix64, WithPorts, read6, to4, too_long6};
use shoal_wire::Ip6Header;

use super::{DIFFERENCE, IP4, NEAR, is_plain, kind};
use crate::config::{Config, Inside};
use crate::node::in2out::In2out;
use crate::node::{how, is_of_other_protocol, protocol, remote, tcp_flags, trim};
use crate::session_stores::SessionStores;
use crate::sessions::{Query, Sessions, from_host_key, remote_of};

/// What holds for the packets of an interface with hosts.
#[derive(Clone, Copy)]
pub struct HostFacts<'g> {
    config: &'g Config,
    prefix: Prefix64,
    table: u32,
    /// Whether IPv4 packets of the interface go by the main table, as translated ones do.
    by_main_table: bool,
}

impl StatefulOptional for In2out<false> {
    const NAME: &'static str = <Self as StatefulNode>::NAME;
    type Feature = SessionStores;
    type Facts<'g> = HostFacts<'g>;

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> HostFacts<'g> {
        let (config, interfaces) = (self.shared.config.load(guard), &self.shared.interfaces);
        let table = interfaces.ip6_table(interface);
        let by_main_table = FibIndex(interfaces.ip4_table(interface)) == FibIndex::DEFAULT;
        HostFacts { config, prefix: config.prefix(table), table, by_main_table }
    }

    fn pass(&self, _: &mut Sessions, facts: HostFacts<'_>, pkt: &mut Packet<'_>, _: &Cx<'_, Self>) -> Pass {
        let for_hosts = pkt.header::<Ip6Header>().is_some_and(|ip| !facts.prefix.contains(ip.dst()));
        if for_hosts { Pass::On } else { Pass::Leave }
    }
}

/// What a host's packet looks for.
#[derive(Clone, Copy, PartialEq, Default)]
pub struct HostQuery {
    /// Without the table and the remote address, until it begins; of no key for packets without ports.
    search: Query,
    dst: u128,
}

impl StatefulCrossOptional for In2out<false> {
    type Query = HostQuery;
    type Destination = u32;

    fn is_far(sessions: &Sessions) -> bool {
        sessions.len() > NEAR
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>, offset: usize) -> HostQuery {
        match pkt.data().get(offset..).and_then(WithPorts::read6) {
            Some(WithPorts { ends, protocol, .. }) => {
                let inside = Inside { address: ends.src, port: ends.sport, protocol, table: 0 };
                let key = from_host_key(&inside, (Ipv4Addr::UNSPECIFIED, ends.dport));
                HostQuery { search: Query::of(key), dst: ends.dst.to_bits() }
            }
            None => query_of_other(pkt, offset),
        }
    }

    #[inline(always)]
    fn begin(sessions: &mut Sessions, facts: HostFacts<'_>, query: &mut HostQuery) -> bool {
        let HostQuery { search, dst } = query;
        let dst = Ipv6Addr::from_bits(*dst);
        if !facts.prefix.contains(dst) {
            return false;
        }
        let [high, low, _, last] = *search.key();
        if last != 0 {
            let far = facts.prefix.extract(dst).to_bits();
            let key = [high, low, u64::from(facts.table) << 32 | u64::from(far), last];
            *search = sessions.begin_search(key);
        }
        true
    }

    #[inline(always)]
    fn seek(sessions: &mut Sessions, query: &mut HostQuery) {
        sessions.seek(&mut query.search);
    }

    #[inline(always)]
    fn destination(_: &mut Sessions, query: &HostQuery) -> Option<u32> {
        Some(remote_of(query.search.key()).0.to_bits())
    }

    /// A function of its own: it is long, and its loop has more registers without it.
    #[inline(never)]
    fn cross(
        &self,
        sessions: &mut Sessions,
        facts: HostFacts<'_>,
        query: Option<&HostQuery>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Crossing {
        match WithPorts::read6(pkt.data()) {
            Some(seen) if !facts.prefix.contains(seen.ends.dst) => Crossing::On,
            Some(seen) => Crossing::from(self.with_ports(&seen, query, (sessions, facts), pkt, cx)),
            None => self.cross_other(sessions, facts, pkt.reborrow(), cx),
        }
    }
}

/// Of a packet without ports it is known whether it is for NAT64.
#[inline(never)]
fn query_of_other(pkt: &Packet<'_>, offset: usize) -> HostQuery {
    let dst = pkt.header_at::<Ip6Header>(offset).map_or(0, Ip6Header::dst_u128);
    HostQuery { dst, ..HostQuery::default() }
}

impl In2out<false> {
    /// A query, or a packet with extension headers.
    #[inline(never)]
    fn cross_other(
        &self,
        sessions: &mut Sessions,
        facts: HostFacts<'_>,
        mut pkt: Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Crossing {
        match pkt.header::<Ip6Header>() {
            None => Crossing::Leave,
            Some(ip) if !facts.prefix.contains(ip.dst()) => Crossing::On,
            Some(_) => Crossing::from(self.established(sessions, facts, &mut pkt, cx)),
        }
    }

    /// Translates a packet of a session that there is; `None`: it is left as it was.
    #[inline(always)]
    fn with_ports(
        &self,
        seen: &WithPorts<Ipv6Addr>,
        query: Option<&HostQuery>,
        (sessions, facts): (&mut Sessions, HostFacts<'_>),
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Option<()> {
        let HostFacts { config, prefix, table, by_main_table } = facts;
        let WithPorts { ends, protocol, payload, .. } = *seen;
        let inside = Inside { address: ends.src, port: ends.sport, protocol, table };
        let far = prefix.extract(ends.dst);
        if seen.hops <= 1 || !by_main_table || config.is_shared(far) {
            return None;
        }
        let total = usize::from(payload) + Ip6Header::LEN;
        if self.is_too_long(payload, far, pkt, cx) || pkt.len() < total {
            return None;
        }
        // Whose sessions these are it has no need to ask: only the worker that has them finds them.
        let (query, key) = (query.map(|query| &query.search), from_host_key(&inside, (far, ends.dport)));
        let (src, sport) = sessions.from_host(query, key, seen.flags, cx.now())?;
        pkt.trim_to(total)?;
        let to = Ends { src, dst: far, sport, dport: ends.dport };
        let (sum, id) = (Sum::of(pkt), pkt.number() as u16);
        seen.to4(pkt.data_mut(), &to, (sum, id))?;
        pkt.pull(DIFFERENCE)?;
        is_of_other_protocol(pkt, (Flags::GSO_TCP6, Flags::GSO_TCP4));
        self.translated(kind(protocol), pkt, cx);
        Some(())
    }

    /// Whether a packet that is no fragment would be too long for its way, or for IPv4, whose length counts its header, too.
    #[inline(always)]
    fn is_too_long(&self, payload: u16, far: Ipv4Addr, pkt: &Packet<'_>, cx: &Cx<'_, Self>) -> bool {
        let longest = pkt.meta().gso_piece().unwrap_or(payload.into());
        let mtu = || self.shared.mtu_to_internet(far, cx.guard());
        payload > u16::MAX - IP4 as u16 || too_long6(false, longest, mtu).is_some()
    }

    /// The same of a query, or a packet with extension headers.
    fn established(
        &self,
        sessions: &mut Sessions,
        facts: HostFacts<'_>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Option<()> {
        let HostFacts { config, prefix, table, by_main_table } = facts;
        let seen = read6(pkt.data()).ok().filter(is_plain).filter(|_| by_main_table)?;
        let inside =
            Inside { address: seen.ends.src, port: seen.ends.sport, protocol: protocol(&seen), table };
        let far = prefix.extract(seen.ends.dst);
        if config.of_inside(&inside) != cx.thread()
            || config.is_shared(far)
            || self.is_too_long(seen.payload, far, pkt, cx)
        {
            return None;
        }
        let (remote, flags) = (remote(&seen, far, seen.ends.dport), tcp_flags(pkt, &seen));
        let outside = sessions.of_host(&inside, remote, flags, cx.now())?;
        let how = how(pkt, &seen);
        trim(pkt, &seen).ok()?;
        let dport = if seen.kind == Kind::Query { outside.port } else { seen.ends.dport };
        let to = Ends { src: outside.address, dst: far, sport: outside.port, dport };
        let head = to4(pkt.data_mut(), &seen, &to, &how).ok()?;
        self.put_on(&head, seen.kind, pkt, cx).ok()
    }
}
