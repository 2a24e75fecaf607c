//! `nat64-in2out`, `nat64-in2out-slowpath`: packets of IPv6 hosts to the IPv4 Internet.
//! features of `ip6-unicast` -> **nat64-in2out** -> ip4-lookup | nat64-in2out-slowpath | nat64-hairpinning | ip6-icmp-error |
//! another thread | the next feature
//!
//! The first sees to packets of sessions that there are, the other to those that begin one.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use shoal_buffer::{Flags, Packet};
use shoal_derive::NextNodes;
use shoal_fib::FibIndex;
use shoal_graph::{Counts, Cx, Edge, NextNodes, StatefulNode, Ticket};
use shoal_ip6::IcmpError;
use shoal_nat::Kind;
use shoal_translate46::{Ends, Head, ParsedPacket, Prefix64, carried6, error_to4, read6, to4, too_long6};
use shoal_wire::Ip6Header;

use super::{Error, ICMP_HEADER, Trace, how, protocol, remote, replace, tcp_flags, trim, whole};
use crate::config::{Config, Inside, Outside};
use crate::session_stores::SessionStores;
use crate::sessions::{Record, Remote, Sessions};
use crate::shared::Shared;
use crate::tcp::State;

/// Where packets go.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// As an IPv4 packet.
    #[node("ip4-lookup")]
    Lookup,
    /// It begins a session.
    #[node("nat64-in2out-slowpath")]
    SlowPath,
    /// As an IPv4 packet to another host of this router.
    #[node("nat64-hairpinning")]
    Hairpin,
    /// It has come too far, or is too long: its sender gets an error.
    #[node("ip6-icmp-error")]
    IcmpError,
    /// Another thread has its session.
    #[node("nat64-in2out-handoff")]
    Handoff,
    /// It is not for the IPv4 Internet.
    Feature(Edge),
}

/// The code of both nodes.
pub struct In2out<const SLOW: bool> {
    pub(crate) shared: Arc<Shared>,
}

/// What holds for the hosts of a packet's table.
struct Hosts<'a> {
    config: &'a Config,
    table: u32,
    prefix: Prefix64,
}

impl<const SLOW: bool> In2out<SLOW> {
    fn table(&self, pkt: &Packet<'_>) -> u32 {
        pkt.meta().fib().map_or_else(|| self.shared.interfaces.ip6_table(pkt.rx()), |fib| fib.0)
    }

    /// Where a packet goes that is not translated here and now.
    fn elsewhere(
        pkt: &mut Packet<'_>,
        inside: &Inside,
        hops: u8,
        config: &Config,
        cx: &Cx<'_, Self>,
    ) -> Option<Next> {
        let thread = config.of_inside(inside);
        if thread != cx.thread() {
            *pkt.scratch::<Ticket>() = Ticket { thread: thread as u32 };
            return Some(Next::Handoff);
        }
        if hops <= 1 {
            IcmpError::HOP_LIMIT.ask(pkt);
            return Some(Next::IcmpError);
        }
        None
    }

    /// What stands for the host in a session that begins.
    #[cold]
    fn begin(
        &self,
        (inside, remote, flags): (&Inside, Remote, u8),
        sessions: &mut Sessions,
        config: &Config,
        cx: &Cx<'_, Self>,
    ) -> Result<Outside, Error> {
        let began = sessions.begin((inside, remote), config, cx.thread(), cx.now());
        self.shared.count(cx.thread(), sessions);
        self.shared.tell_bindings(sessions);
        let outside = began.inspect_err(|why| self.shared.tell_refusal(*why, config, cx.now()))?;
        self.shared.tell(true, Record { inside: *inside, outside, remote, state: State::Closed });
        sessions.of_host(inside, remote, flags, cx.now());
        Ok(outside)
    }

    /// A packet has its IPv4 headers, and goes by the main table.
    fn leave(&self, head: &Head, kind: Kind, pkt: &mut Packet<'_>, cx: &Cx<'_, Self>) -> Result<(), Error> {
        self.put_on(head, kind, pkt, cx)?;
        pkt.meta_mut().set_fib(Some(FibIndex::DEFAULT));
        Ok(())
    }

    /// Gives a packet its IPv4 headers.
    #[inline(always)]
    pub(super) fn put_on(
        &self,
        head: &Head,
        kind: Kind,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Result<(), Error> {
        replace(pkt, head, (Flags::GSO_TCP6, Flags::GSO_TCP4))?;
        self.translated(kind, pkt, cx);
        Ok(())
    }

    /// Counts a packet that has been translated.
    #[inline(always)]
    pub(super) fn translated(&self, kind: Kind, pkt: &Packet<'_>, cx: &Cx<'_, Self>) {
        self.shared.in2out.add(kind, cx.thread(), pkt.rx());
        cx.count(Error::In2out, 1);
    }

    /// An ICMP error of a host about a packet that it has got, or of a router on the way.
    #[cold]
    fn error(
        &self,
        seen: &ParsedPacket<Ipv6Addr>,
        hosts: &Hosts<'_>,
        (sessions, pkt): (&Sessions, &mut Packet<'_>),
        cx: &Cx<'_, Self>,
    ) -> Result<Next, Error> {
        let Hosts { config, table, prefix } = *hosts;
        if seen.kind != Kind::Error {
            return Err(Error::BadIcmpType);
        }
        let at = usize::from(seen.header) + ICMP_HEADER;
        let carried = carried6(pkt.data().get(at..).ok_or(Error::Malformed)?)?;
        let ends = carried.ends;
        let inside = Inside { address: ends.dst, port: ends.dport, protocol: protocol(&carried), table };
        if let Some(next) = Self::elsewhere(pkt, &inside, seen.hops, config, cx) {
            return Ok(next);
        }
        if !prefix.contains(ends.src) {
            return Err(Error::NoTranslation);
        }
        let outside = sessions.peek_inside(&inside).ok_or(Error::NoTranslation)?;
        let far = prefix.extract(seen.ends.dst);
        let how = how(pkt, seen);
        trim(pkt, seen)?;
        // A router on the way has no address of its own in IPv4: the host's stands for it.
        let to = Ends { src: outside.address, dst: far, sport: 0, dport: 0 };
        let sport = if carried.kind == Kind::Query { outside.port } else { ends.sport };
        let src = prefix.extract(ends.src);
        let carried_to = Ends { src, dst: outside.address, sport, dport: outside.port };
        let head = error_to4(pkt.data_mut(), (seen, &carried), (&to, &carried_to), &how)?;
        self.leave(&head, seen.kind, pkt, cx)?;
        Ok(onward(config, far))
    }

    fn one(
        &self,
        sessions: &mut Sessions,
        pkt: &mut Packet<'_>,
        cx: &mut Cx<'_, Self>,
    ) -> Result<Next, Error> {
        let config = self.shared.config.load(cx.guard());
        let dst = pkt.header::<Ip6Header>().ok_or(Error::Malformed)?.dst();
        let table = self.table(pkt);
        let prefix = config.prefix(table);
        if !prefix.contains(dst) {
            return Ok(Next::Feature(cx.next_feature(pkt)));
        }
        let mut seen = read6(pkt.data())?;
        whole(&self.shared, pkt, &mut seen)?;
        if matches!(seen.kind, Kind::Error | Kind::OtherIcmp) {
            return self.error(&seen, &Hosts { config, table, prefix }, (sessions, pkt), cx);
        }
        let inside =
            Inside { address: seen.ends.src, port: seen.ends.sport, protocol: protocol(&seen), table };
        if let Some(next) = Self::elsewhere(pkt, &inside, seen.hops, config, cx) {
            return Ok(next);
        }
        let far = prefix.extract(dst);
        let payload = pkt.meta().gso_piece().unwrap_or(seen.payload.into());
        let mtu = || self.shared.mtu_to_internet(far, cx.guard());
        if let Some(longest) = too_long6(seen.fragment.is_some(), payload, mtu) {
            IcmpError::too_big(longest).ask(pkt);
            return Ok(Next::IcmpError);
        }
        let (remote, flags) = (remote(&seen, far, seen.ends.dport), tcp_flags(pkt, &seen));
        let outside = match sessions.of_host(&inside, remote, flags, cx.now()) {
            Some(outside) => outside,
            None if SLOW => self.begin((&inside, remote, flags), sessions, config, cx)?,
            None => return Ok(Next::SlowPath),
        };
        let how = how(pkt, &seen);
        trim(pkt, &seen)?;
        let dport = if seen.kind == Kind::Query { outside.port } else { seen.ends.dport };
        let to = Ends { src: outside.address, dst: far, sport: outside.port, dport };
        let head = to4(pkt.data_mut(), &seen, &to, &how)?;
        self.leave(&head, seen.kind, pkt, cx)?;
        Ok(onward(config, far))
    }
}

/// Where a packet goes that has been translated.
fn onward(config: &Config, far: Ipv4Addr) -> Next {
    if config.is_shared(far) { Next::Hairpin } else { Next::Lookup }
}

impl<const SLOW: bool> Counts for In2out<SLOW> {
    type Error = Error;
}

impl<const SLOW: bool> StatefulNode for In2out<SLOW> {
    const NAME: &'static str = if SLOW { "nat64-in2out-slowpath" } else { "nat64-in2out" };
    type Feature = SessionStores;
    type Next = Next;
    type Trace = Trace;

    fn packet(
        &self,
        sessions: &mut Sessions,
        pkt: &mut Packet<'_>,
        cx: &mut Cx<'_, Self>,
    ) -> Result<Next, Error> {
        let interface = pkt.rx();
        let done = self.one(sessions, pkt, cx);
        let way = if SLOW { "NAT64-in2out-slowpath" } else { "NAT64-in2out" };
        let next = done.map_or(0, |next| next.edge().0);
        cx.trace(pkt, || Trace { way, interface: interface.0, next });
        if done.is_err() {
            self.shared.in2out.drop(cx.thread(), interface);
        }
        done
    }
}
