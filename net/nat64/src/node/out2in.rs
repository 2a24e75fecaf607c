//! `nat64-out2in`, `nat64-hairpinning`: packets of the IPv4 Internet to addresses that IPv6 hosts share.
//! features of `ip4-unicast` -> **nat64-out2in** -> ip6-lookup | ip4-icmp-error | another thread | the next feature
//! nat64-in2out -> **nat64-hairpinning** -> ip6-lookup | ip4-icmp-error | another thread

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use shoal_buffer::{Flags, Packet};
use shoal_derive::NextNodes;
use shoal_fib::FibIndex;
use shoal_graph::{Counts, Cx, Edge, NextNodes, StatefulNode, Ticket};
use shoal_ip4::IcmpError;
use shoal_nat::Kind;
use shoal_translate46::{
    Ends, Head, HeaderFields, LEAST_MTU, ParsedPacket, carried4, error_to6, read4, to6, too_long4,
};
use shoal_wire::Ip4Header;

use super::{Error, ICMP_HEADER, Trace, how, protocol, remote, replace, tcp_flags, trim, whole};
use crate::config::{Config, Inside, Outside};
use crate::session_stores::SessionStores;
use crate::sessions::{Record, Remote, Sessions};
use crate::shared::Shared;
use crate::tcp::State;

/// Where packets go.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// As an IPv6 packet.
    #[node("ip6-lookup")]
    Lookup,
    /// It has come too far, or is too long: its sender gets an error.
    #[node("ip4-icmp-error")]
    IcmpError,
    /// Another thread has its session.
    #[node("nat64-out2in-handoff")]
    Handoff,
    /// The same, of a packet between two hosts.
    #[node("nat64-hairpinning-handoff")]
    HairpinHandoff,
    /// It is for no host.
    Feature(Edge),
}

/// The code of both nodes.
pub struct Out2in<const HAIRPIN: bool> {
    pub(crate) shared: Arc<Shared>,
}

impl<const HAIRPIN: bool> Out2in<HAIRPIN> {
    /// The thread that a packet's binding is on, if that is another.
    fn elsewhere(pkt: &mut Packet<'_>, outside: Outside, config: &Config, cx: &Cx<'_, Self>) -> Option<Next> {
        let thread = config.of_outside(&outside);
        (thread != cx.thread()).then(|| {
            *pkt.scratch::<Ticket>() = Ticket { thread: thread as u32 };
            if HAIRPIN { Next::HairpinHandoff } else { Next::Handoff }
        })
    }

    /// The host of a session that begins, if the port is bound. RFC 6146, 3.5: filtering is endpoint-independent.
    #[cold]
    fn accept(
        &self,
        (outside, remote, flags): (Outside, Remote, u8),
        sessions: &mut Sessions,
        config: &Config,
        cx: &Cx<'_, Self>,
    ) -> Result<Option<Inside>, Error> {
        let accepted = sessions.accept((outside, remote), config, cx.now());
        self.shared.count(cx.thread(), sessions);
        let accepted = accepted.inspect_err(|why| self.shared.tell_refusal(*why, config, cx.now()));
        let Some(inside) = accepted? else { return Ok(None) };
        self.shared.tell(true, Record { inside, outside, remote, state: State::Closed });
        sessions.of_internet(outside, remote, flags, cx.now());
        Ok(Some(inside))
    }

    /// What the new header says, and whether the packet is this router's own from now on. RFC 7915, 4: what IPv4 allows to fragment
    /// this router fragments, as its own, of which no other node takes a hop off.
    fn how(pkt: &Packet<'_>, seen: &ParsedPacket<Ipv4Addr>) -> (HeaderFields, bool) {
        let (how, as_own) = (how(pkt, seen), !seen.dont_fragment);
        let hops = if as_own { seen.hops.saturating_sub(1) } else { seen.hops };
        (HeaderFields { hops, ..how }, as_own)
    }

    /// A packet has its IPv6 headers.
    fn leave(
        &self,
        (head, as_own): (&Head, bool),
        (kind, table): (Kind, u32),
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Result<Next, Error> {
        self.put_on(head, kind, pkt, cx)?;
        let meta = pkt.meta_mut();
        if as_own {
            meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
        }
        meta.set_fib(Some(FibIndex(table)));
        Ok(Next::Lookup)
    }

    /// Gives a packet its IPv6 headers.
    #[inline(always)]
    pub(super) fn put_on(
        &self,
        head: &Head,
        kind: Kind,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Result<(), Error> {
        replace(pkt, head, (Flags::GSO_TCP4, Flags::GSO_TCP6))?;
        self.translated(kind, pkt, cx);
        Ok(())
    }

    /// Counts a packet that has been translated.
    #[inline(always)]
    pub(super) fn translated(&self, kind: Kind, pkt: &Packet<'_>, cx: &Cx<'_, Self>) {
        self.shared.out2in.add(kind, cx.thread(), pkt.rx());
        cx.count(Error::Out2in, 1);
    }

    /// What has no binding: the router's own, if the address is one of its interfaces'.
    fn no_host(own: bool, pkt: &mut Packet<'_>, cx: &Cx<'_, Self>) -> Result<Next, Error> {
        if own && !HAIRPIN { Ok(Next::Feature(cx.next_feature(pkt))) } else { Err(Error::NoTranslation) }
    }

    /// An ICMP error about a packet that a host has sent.
    #[cold]
    fn error(
        &self,
        seen: &ParsedPacket<Ipv4Addr>,
        (config, own): (&Config, bool),
        (sessions, pkt): (&Sessions, &mut Packet<'_>),
        cx: &Cx<'_, Self>,
    ) -> Result<Next, Error> {
        if seen.kind != Kind::Error {
            return if own { Self::no_host(own, pkt, cx) } else { Err(Error::BadIcmpType) };
        }
        let at = usize::from(seen.header) + ICMP_HEADER;
        let carried = carried4(pkt.data().get(at..).ok_or(Error::Malformed)?)?;
        let ends = carried.ends;
        let outside = Outside { address: ends.src, port: ends.sport, protocol: protocol(&carried) };
        if let Some(next) = Self::elsewhere(pkt, outside, config, cx) {
            return Ok(next);
        }
        let Some(inside) = sessions.peek_outside(outside) else { return Self::no_host(own, pkt, cx) };
        if seen.hops <= 1 {
            IcmpError::TTL.ask(pkt);
            return Ok(Next::IcmpError);
        }
        let prefix = config.prefix(inside.table);
        let (how, as_own) = Self::how(pkt, seen);
        trim(pkt, seen)?;
        let to = Ends { src: prefix.embed(seen.ends.src), dst: inside.address, sport: 0, dport: 0 };
        let dport = if carried.kind == Kind::Query { inside.port } else { ends.dport };
        let dst = prefix.embed(ends.dst);
        let carried_to = Ends { src: inside.address, dst, sport: inside.port, dport };
        let head = error_to6(pkt.data_mut(), (seen, &carried), (&to, &carried_to), &how)?;
        self.leave((&head, as_own), (seen.kind, inside.table), pkt, cx)
    }

    fn one(
        &self,
        sessions: &mut Sessions,
        pkt: &mut Packet<'_>,
        cx: &mut Cx<'_, Self>,
    ) -> Result<Next, Error> {
        let config = self.shared.config.load(cx.guard());
        let dst = pkt.header::<Ip4Header>().ok_or(Error::Malformed)?.dst();
        let Some(own) = config.shares(dst) else {
            // A hairpin's destination was shared when it was sent here.
            if HAIRPIN {
                return Err(Error::NoTranslation);
            }
            return Ok(Next::Feature(cx.next_feature(pkt)));
        };
        let read = read4(pkt.data()).map_err(Error::from);
        let read = read.and_then(|mut seen| whole(&self.shared, pkt, &mut seen).map(|()| seen));
        let seen = match read {
            Ok(seen) => seen,
            Err(error) => return if own { Self::no_host(own, pkt, cx) } else { Err(error) },
        };
        if matches!(seen.kind, Kind::Error | Kind::OtherIcmp) {
            return self.error(&seen, (config, own), (sessions, pkt), cx);
        }
        let outside = Outside { address: dst, port: seen.ends.dport, protocol: protocol(&seen) };
        if let Some(next) = Self::elsewhere(pkt, outside, config, cx) {
            return Ok(next);
        }
        let (remote, flags) = (remote(&seen, seen.ends.src, seen.ends.sport), tcp_flags(pkt, &seen));
        let inside = match sessions.of_internet(outside, remote, flags, cx.now()) {
            Some(inside) => Some(inside),
            None => self.accept((outside, remote, flags), sessions, config, cx)?,
        };
        let Some(inside) = inside else { return Self::no_host(own, pkt, cx) };
        if seen.hops <= 1 {
            IcmpError::TTL.ask(pkt);
            return Ok(Next::IcmpError);
        }
        let payload = pkt.meta().gso_piece().unwrap_or(seen.payload.into());
        let mtu = || self.shared.mtu_to_host((inside.table, inside.address), cx.guard());
        if let Some(longest) = too_long4(&seen, payload, (LEAST_MTU, mtu)) {
            IcmpError::too_big(longest).ask(pkt);
            return Ok(Next::IcmpError);
        }
        let prefix = config.prefix(inside.table);
        let (how, as_own) = Self::how(pkt, &seen);
        trim(pkt, &seen)?;
        let sport = if seen.kind == Kind::Query { inside.port } else { seen.ends.sport };
        let src = prefix.embed(seen.ends.src);
        let to: Ends<Ipv6Addr> = Ends { src, dst: inside.address, sport, dport: inside.port };
        let head = to6(pkt.data_mut(), &seen, &to, &how)?;
        self.leave((&head, as_own), (seen.kind, inside.table), pkt, cx)
    }
}

impl<const HAIRPIN: bool> Counts for Out2in<HAIRPIN> {
    type Error = Error;
}

impl<const HAIRPIN: bool> StatefulNode for Out2in<HAIRPIN> {
    const NAME: &'static str = if HAIRPIN { "nat64-hairpinning" } else { "nat64-out2in" };
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
        let way = if HAIRPIN { "NAT64-hairpinning" } else { "NAT64-out2in" };
        let next = done.map_or(0, |next| next.edge().0);
        cx.trace(pkt, || Trace { way, interface: interface.0, next });
        if done.is_err() {
            self.shared.out2in.drop(cx.thread(), interface);
        }
        done
    }
}
