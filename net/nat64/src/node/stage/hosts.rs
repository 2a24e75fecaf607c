//! Packets of IPv6 hosts.

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_buffer::{Flags, Packet, SwIfIndex};
use shoal_fib::FibIndex;
use shoal_graph::superpath::{CrossOptional, Crossing, Pass, StatefulOptional};
use shoal_graph::{Cx, StatefulNode};
use shoal_infra::Guard;
use shoal_nat::{Kind, Sum};
use shoal_translate46::{Ends, Prefix64, WithPorts, read6, to4, too_long6};
use shoal_wire::Ip6Header;

use super::{DIFFERENCE, IP4, is_plain, kind};
use crate::config::{Config, Inside};
use crate::node::in2out::In2out;
use crate::node::{how, is_of_other_protocol, protocol, remote, tcp_flags, trim, trim_to};
use crate::session_stores::SessionStores;
use crate::sessions::Sessions;

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

impl CrossOptional for In2out<false> {
    #[inline(always)]
    fn cross(
        &self,
        sessions: &mut Sessions,
        facts: HostFacts<'_>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Crossing {
        let Some(ip) = pkt.header::<Ip6Header>() else { return Crossing::Leave };
        if !facts.prefix.contains(ip.dst()) {
            return Crossing::On;
        }
        let done = match WithPorts::read6(pkt.data()) {
            Some(seen) => self.with_ports(&seen, (sessions, facts), pkt, cx),
            None => self.established(sessions, facts, pkt.reborrow(), cx),
        };
        if done.is_some() { Crossing::Crossed } else { Crossing::Leave }
    }
}

impl In2out<false> {
    /// Translates a packet of a session that there is; `None`: it is left as it was.
    #[inline(always)]
    fn with_ports(
        &self,
        seen: &WithPorts<Ipv6Addr>,
        (sessions, facts): (&mut Sessions, HostFacts<'_>),
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Option<()> {
        let HostFacts { config, prefix, table, by_main_table } = facts;
        let WithPorts { ends, protocol, payload, .. } = *seen;
        let inside = Inside { address: ends.src, port: ends.sport, protocol, table };
        let far = prefix.extract(ends.dst);
        if seen.hops <= 1
            || !by_main_table
            || config.of_inside(&inside) != cx.thread()
            || config.is_shared(far)
        {
            return None;
        }
        let total = usize::from(payload) + Ip6Header::LEN;
        if self.is_too_long(payload, far, pkt, cx) || pkt.len() < total {
            return None;
        }
        let outside = sessions.of_host(&inside, (far, ends.dport), seen.flags, cx.now())?;
        trim_to(total, pkt)?;
        let to = Ends { src: outside.address, dst: far, sport: outside.port, dport: ends.dport };
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
    #[inline(never)]
    fn established(
        &self,
        sessions: &mut Sessions,
        facts: HostFacts<'_>,
        mut pkt: Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Option<()> {
        let pkt = &mut pkt;
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
