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
use shoal_translate46::{Ends, Seen, carried4, error_to6, read4, to6};
use shoal_wire::Ip4Header;

use super::{Error, ICMP_HEADER, Trace, how, protocol, remote, replace, tcp_flags, trim, whole};
use crate::config::{Config, Inside, Outside};
use crate::keeping::Keeping;
use crate::sessions::{Found, Record, Sessions};
use crate::shared::Shared;
use crate::tcp::State;

/// Where packets go.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// As an IPv6 packet.
    #[node("ip6-lookup")]
    Lookup,
    /// It has come too far: its sender is told.
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

/// A packet for a host.
struct ToHost {
    seen: Seen<Ipv4Addr>,
    /// Of an ICMP error: the packet it is about.
    carried: Option<Seen<Ipv4Addr>>,
    outside: Outside,
    remote: (Ipv4Addr, u16),
    flags: u8,
}

impl<const HAIRPIN: bool> Out2in<HAIRPIN> {
    fn read(&self, pkt: &Packet<'_>) -> Result<ToHost, Error> {
        let mut seen = read4(pkt.data())?;
        whole(&self.shared, pkt, &mut seen)?;
        let carried = match seen.kind {
            Kind::Error => {
                let at = usize::from(seen.header) + ICMP_HEADER;
                Some(carried4(pkt.data().get(at..).ok_or(Error::Malformed)?)?)
            }
            Kind::OtherIcmp => return Err(Error::BadIcmpType),
            _ => None,
        };
        // What an error is about, the host has sent.
        let (address, port, far, far_port, of) = match &carried {
            Some(carried) => {
                let ends = &carried.ends;
                (ends.src, ends.sport, ends.dst, ends.dport, carried)
            }
            None => (seen.ends.dst, seen.ends.dport, seen.ends.src, seen.ends.sport, &seen),
        };
        let outside = Outside { address, port, protocol: protocol(of) };
        let (remote, flags) = (remote(of, far, far_port), tcp_flags(pkt, &seen));
        Ok(ToHost { seen, carried, outside, remote, flags })
    }

    /// The host that a packet is for, if there is one.
    fn find(
        &self,
        to: &ToHost,
        sessions: &mut Sessions,
        config: &Config,
        cx: &Cx<'_, Self>,
    ) -> Result<Option<Found>, Error> {
        let ToHost { outside, remote, flags, .. } = to;
        if to.carried.is_some() {
            return Ok(sessions.peek_outside(*outside));
        }
        if let Some(found) = sessions.of_internet(*outside, *remote, *flags, cx.now()) {
            return Ok(Some(found));
        }
        // RFC 6146, 3.5: filtering is endpoint-independent.
        let accepted = sessions.accept((*outside, *remote), config, cx.now());
        self.shared.count(cx.thread(), sessions);
        let Some(Found { inside, outside }) = accepted? else { return Ok(None) };
        self.shared.tell(true, Record { inside, outside, remote: *remote, state: State::Closed });
        sessions.of_internet(outside, *remote, *flags, cx.now());
        Ok(Some(Found { inside, outside }))
    }

    fn translate(pkt: &mut Packet<'_>, to: &ToHost, inside: &Inside, config: &Config) -> Result<(), Error> {
        let ToHost { seen, carried, .. } = to;
        let prefix = config.prefix(inside.table);
        let mut how = how(pkt, seen);
        // RFC 7915, 4: what IPv4 allows to fragment this router fragments, as its own, of which no other node takes a hop off.
        let as_own = !seen.dont_fragment;
        how.hops = if as_own { seen.hops.saturating_sub(1) } else { seen.hops };
        trim(pkt, seen)?;
        let is_query = |seen: &Seen<_>| seen.kind == Kind::Query;
        let src = prefix.embed(seen.ends.src);
        let head = if let Some(carried) = carried {
            let new = Ends { src, dst: inside.address, sport: 0, dport: 0 };
            let dport = if is_query(carried) { inside.port } else { carried.ends.dport };
            let dst = prefix.embed(carried.ends.dst);
            let carried_to = Ends { src: inside.address, dst, sport: inside.port, dport };
            error_to6(pkt.data_mut(), (seen, carried), (&new, &carried_to), &how)?
        } else {
            let sport = if is_query(seen) { inside.port } else { seen.ends.sport };
            let new: Ends<Ipv6Addr> = Ends { src, dst: inside.address, sport, dport: inside.port };
            to6(pkt.data_mut(), seen, &new, &how)?
        };
        replace(pkt, &head, (Flags::GSO_TCP4, Flags::GSO_TCP6))?;
        let meta = pkt.meta_mut();
        if as_own {
            meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
        }
        meta.set_fib(Some(FibIndex(inside.table)));
        Ok(())
    }

    /// What has no binding: the router's own, if the address is one of its interfaces'.
    fn no_host(own: bool, pkt: &mut Packet<'_>, cx: &Cx<'_, Self>) -> Result<Next, Error> {
        if own && !HAIRPIN { Ok(Next::Feature(cx.next_feature(pkt))) } else { Err(Error::NoTranslation) }
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
            return if HAIRPIN { Err(Error::NoTranslation) } else { Ok(Next::Feature(cx.next_feature(pkt))) };
        };
        let to = match self.read(pkt) {
            Ok(to) => to,
            Err(error) => return if own { Self::no_host(own, pkt, cx) } else { Err(error) },
        };
        let thread = config.of_outside(&to.outside);
        if thread != cx.thread() {
            *pkt.scratch::<Ticket>() = Ticket { thread: thread as u32 };
            return Ok(if HAIRPIN { Next::HairpinHandoff } else { Next::Handoff });
        }
        let Some(found) = self.find(&to, sessions, config, cx)? else { return Self::no_host(own, pkt, cx) };
        if to.seen.hops <= 1 {
            IcmpError::TTL.ask(pkt);
            return Ok(Next::IcmpError);
        }
        Self::translate(pkt, &to, &found.inside, config)?;
        self.shared.out2in.add(to.seen.kind, cx.thread(), pkt.rx());
        cx.count(Error::Out2in, 1);
        Ok(Next::Lookup)
    }
}

impl<const HAIRPIN: bool> Counts for Out2in<HAIRPIN> {
    type Error = Error;
}

impl<const HAIRPIN: bool> StatefulNode for Out2in<HAIRPIN> {
    const NAME: &'static str = if HAIRPIN { "nat64-hairpinning" } else { "nat64-out2in" };
    type Feature = Keeping;
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
