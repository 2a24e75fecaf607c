//! Packets of the IPv4 Internet.

use std::net::Ipv4Addr;

use shoal_buffer::{Flags, Packet, SwIfIndex};
use shoal_graph::superpath::{CrossOptional, Crossing, Pass, StatefulOptional};
use shoal_graph::{Cx, StatefulNode};
use shoal_infra::Guard;
use shoal_nat::{Kind, Sum};
use shoal_translate46::{Ends, LEAST_MTU, Prefix64, WithPorts, read4, to6};
use shoal_wire::{Ip4Header, Ip6Header};

use super::{DIFFERENCE, IP4, is_plain, kind};
use crate::config::{Config, Inside, Outside};
use crate::node::out2in::Out2in;
use crate::node::{how, is_of_other_protocol, protocol, remote, tcp_flags, trim, trim_to};
use crate::session_stores::SessionStores;
use crate::sessions::Sessions;

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

impl CrossOptional for Out2in<false> {
    #[inline(always)]
    fn cross(
        &self,
        sessions: &mut Sessions,
        facts: InternetFacts<'_>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Crossing {
        let Some(ip) = pkt.header::<Ip4Header>() else { return Crossing::Leave };
        if !facts.config.is_shared(ip.dst()) {
            return Crossing::On;
        }
        let done = match WithPorts::read4(pkt.data()) {
            Some(seen) => self.with_ports(&seen, (sessions, facts), pkt, cx),
            None => self.established(sessions, facts, pkt.reborrow(), cx),
        };
        if done.is_some() { Crossing::Crossed } else { Crossing::Leave }
    }
}

impl Out2in<false> {
    /// Translates a packet of a session that there is; `None`: it is left as it was.
    #[inline(always)]
    fn with_ports(
        &self,
        seen: &WithPorts<Ipv4Addr>,
        (sessions, facts): (&mut Sessions, InternetFacts<'_>),
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Option<()> {
        let InternetFacts { config, table, prefix } = facts;
        let WithPorts { ends, protocol, payload, .. } = *seen;
        let outside = Outside { address: ends.dst, port: ends.dport, protocol };
        let total = usize::from(payload) + IP4;
        if seen.hops <= 1
            || pkt.headroom() < DIFFERENCE
            || pkt.len() < total
            || config.of_outside(&outside) != cx.thread()
        {
            return None;
        }
        let inside = sessions.of_internet(outside, (ends.src, ends.sport), seen.flags, cx.now())?;
        if inside.table != table || self.is_too_long(payload, &inside, pkt, cx) {
            return None;
        }
        trim_to(total, pkt)?;
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
    #[inline(never)]
    fn established(
        &self,
        sessions: &mut Sessions,
        facts: InternetFacts<'_>,
        mut pkt: Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Option<()> {
        let (pkt, InternetFacts { config, table, .. }) = (&mut pkt, facts);
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
