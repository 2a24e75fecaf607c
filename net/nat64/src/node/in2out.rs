//! `nat64-in2out`, `nat64-in2out-slowpath`: packets of IPv6 hosts to the IPv4 Internet.
//! features of `ip6-unicast` -> **nat64-in2out** -> ip4-lookup | nat64-in2out-slowpath | nat64-hairpinning | ip6-icmp-error |
//! another thread | the next feature
//!
//! The first sees to packets of sessions that there are, the other to those that begin one.

use std::net::Ipv4Addr;
use std::sync::Arc;

use shoal_buffer::{Flags, Packet};
use shoal_derive::NextNodes;
use shoal_fib::FibIndex;
use shoal_graph::{Counts, Cx, Edge, NextNodes, StatefulNode, Ticket};
use shoal_ip6::IcmpError;
use shoal_nat::Kind;
use shoal_translate46::{Ends, Prefix64, Seen, carried6, error_to4, read6, to4};
use shoal_wire::Ip6Header;

use super::{Error, ICMP_HEADER, Trace, how, protocol, remote, replace, tcp_flags, trim, whole};
use crate::config::{Config, Inside, Outside};
use crate::keeping::Keeping;
use crate::sessions::{Found, Record, Sessions};
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
    /// It has come too far: its sender is told.
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

/// A packet of a host.
struct FromHost {
    seen: Seen<std::net::Ipv6Addr>,
    /// Of an ICMP error: the packet it is about.
    carried: Option<Seen<std::net::Ipv6Addr>>,
    inside: Inside,
    remote: (Ipv4Addr, u16),
    flags: u8,
}

impl<const SLOW: bool> In2out<SLOW> {
    fn table(&self, pkt: &Packet<'_>) -> u32 {
        pkt.meta().fib().map_or_else(|| self.shared.interfaces.ip6_table(pkt.rx()), |fib| fib.0)
    }

    fn read(&self, pkt: &Packet<'_>, prefix: Prefix64, table: u32) -> Result<FromHost, Error> {
        let mut seen = read6(pkt.data())?;
        whole(&self.shared, pkt, &mut seen)?;
        let carried = match seen.kind {
            Kind::Error => {
                let at = usize::from(seen.header) + ICMP_HEADER;
                Some(carried6(pkt.data().get(at..).ok_or(Error::Malformed)?)?)
            }
            Kind::OtherIcmp => return Err(Error::BadIcmpType),
            _ => None,
        };
        // The host has got, or was to get, what its error is about.
        let (address, port, far, far_port, of) = match &carried {
            Some(carried) => {
                let ends = &carried.ends;
                (ends.dst, ends.dport, ends.src, ends.sport, carried)
            }
            None => (seen.ends.src, seen.ends.sport, seen.ends.dst, seen.ends.dport, &seen),
        };
        let inside = Inside { address, port, protocol: protocol(of), table };
        let far = prefix.contains(far).then(|| prefix.extract(far)).ok_or(Error::NoTranslation)?;
        let (remote, flags) = (remote(of, far, far_port), tcp_flags(pkt, &seen));
        Ok(FromHost { seen, carried, inside, remote, flags })
    }

    /// What stands for the host; `None`: it has to begin a session.
    fn find(
        &self,
        host: &FromHost,
        sessions: &mut Sessions,
        config: &Config,
        cx: &Cx<'_, Self>,
    ) -> Result<Option<Found>, Error> {
        let FromHost { inside, remote, flags, .. } = host;
        if host.carried.is_some() {
            return sessions.peek_inside(inside).map(Some).ok_or(Error::NoTranslation);
        }
        if let Some(found) = sessions.of_host(inside, *remote, *flags, cx.now()) {
            return Ok(Some(found));
        }
        if !SLOW {
            return Ok(None);
        }
        let began = sessions.begin((inside, *remote), config, cx.thread(), cx.now());
        self.shared.count(cx.thread(), sessions);
        let Found { inside, outside } = began?;
        self.shared.tell(true, Record { inside, outside, remote: *remote, state: State::Closed });
        sessions.of_host(&inside, *remote, *flags, cx.now());
        Ok(Some(Found { inside, outside }))
    }

    fn translate(
        pkt: &mut Packet<'_>,
        host: &FromHost,
        (outside, far): (Outside, Ipv4Addr),
        prefix: Prefix64,
    ) -> Result<(), Error> {
        let FromHost { seen, carried, .. } = host;
        let how = how(pkt, seen);
        trim(pkt, seen)?;
        let is_query = |seen: &Seen<_>| seen.kind == Kind::Query;
        let head = if let Some(carried) = carried {
            // An error of a router on the way has no address of its own in IPv4: the host's stands for it.
            let to = Ends { src: outside.address, dst: far, sport: 0, dport: 0 };
            let sport = if is_query(carried) { outside.port } else { carried.ends.sport };
            let src = prefix.extract(carried.ends.src);
            let carried_to = Ends { src, dst: outside.address, sport, dport: outside.port };
            error_to4(pkt.data_mut(), (seen, carried), (&to, &carried_to), &how)?
        } else {
            let dport = if is_query(seen) { outside.port } else { seen.ends.dport };
            let to = Ends { src: outside.address, dst: far, sport: outside.port, dport };
            to4(pkt.data_mut(), seen, &to, &how)?
        };
        replace(pkt, &head, (Flags::GSO_TCP6, Flags::GSO_TCP4))
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
        let host = self.read(pkt, prefix, table)?;
        let thread = config.of_inside(&host.inside);
        if thread != cx.thread() {
            *pkt.scratch::<Ticket>() = Ticket { thread: thread as u32 };
            return Ok(Next::Handoff);
        }
        if host.seen.hops <= 1 {
            IcmpError::HOP_LIMIT.ask(pkt);
            return Ok(Next::IcmpError);
        }
        let Some(found) = self.find(&host, sessions, config, cx)? else { return Ok(Next::SlowPath) };
        let far = prefix.extract(dst);
        Self::translate(pkt, &host, (found.outside, far), prefix)?;
        pkt.meta_mut().set_fib(Some(FibIndex::DEFAULT));
        self.shared.in2out.add(host.seen.kind, cx.thread(), pkt.rx());
        cx.count(Error::In2out, 1);
        Ok(if config.is_shared(far) { Next::Hairpin } else { Next::Lookup })
    }
}

impl<const SLOW: bool> Counts for In2out<SLOW> {
    type Error = Error;
}

impl<const SLOW: bool> StatefulNode for In2out<SLOW> {
    const NAME: &'static str = if SLOW { "nat64-in2out-slowpath" } else { "nat64-in2out" };
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
        let way = if SLOW { "NAT64-in2out-slowpath" } else { "NAT64-in2out" };
        let next = done.map_or(0, |next| next.edge().0);
        cx.trace(pkt, || Trace { way, interface: interface.0, next });
        if done.is_err() {
            self.shared.in2out.drop(cx.thread(), interface);
        }
        done
    }
}
