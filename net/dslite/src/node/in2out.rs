//! `dslite-in2out`, `dslite-in2out-slowpath`: packets of hosts that come out of tunnels.
//! ip6-lookup -> **dslite-in2out** -> ip4-lookup | dslite-in2out-slowpath | ip6-local | ip6-full-reassembly-custom | another thread

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use shoal_buffer::{Buffer, Frame, Packet};
use shoal_derive::NextNodes;
use shoal_graph::clock::Time;
use shoal_graph::{FrameCx, NextNodes, StatefulFrameNode, Ticket};
use shoal_nat::icmp::Quoted;
use shoal_nat::{Kind, ParsedPacket, Rewrite, Sum, Tuple};
use shoal_wire::{Ip6Header, IpProtocol};

use super::ce::tunnelled;
use super::{Error, Trace};
use crate::session_stores::SessionStores;
use crate::sessions::{Inside, Outside, Query, Record, Refusal, Sessions};
use crate::shared::Shared;

/// Where packets go.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Out of the tunnel and translated.
    #[node("ip4-lookup")]
    Lookup,
    /// To the router itself: the tunnel's end answers pings.
    #[node("ip6-local")]
    Local,
    /// Fragments of tunnel packets: whole ones come back. RFC 6333, 5.3.
    #[node("ip6-full-reassembly-custom")]
    Reassembly,
    /// The first one of a session.
    #[node("dslite-in2out-slowpath")]
    SlowPath,
    /// Another thread has its session.
    #[node("dslite-in2out-handoff")]
    Handoff,
}

/// The code of both nodes.
pub struct In2out<const SLOW: bool> {
    pub(crate) shared: Arc<Shared>,
}

/// An ICMP type that asks for an echo.
const ECHO_REQUEST: u8 = 8;

/// Reads the packet in a tunnel's packet: where it begins is behind the IPv6 header.
pub(super) fn read(pkt: &Packet<'_>) -> Result<ParsedPacket, Error> {
    let inner = tunnelled(pkt)?;
    let seen = ParsedPacket::read(inner).ok_or(Error::Malformed)?;
    if seen.fragment && !seen.first { Err(Error::Fragments) } else { Ok(seen) }
}

/// The host's side of a session, by a packet of it.
#[inline(always)]
pub(super) const fn inside(b4: Ipv6Addr, Tuple { src, sport, .. }: Tuple, protocol: u8) -> Inside {
    Inside { b4, address: Ipv4Addr::from_bits(src), port: sport, protocol }
}

/// What stands for a host, if it has a session. A packet of its tunnel uses it.
#[inline(always)]
pub(super) fn known(
    query: Option<&Query>,
    inside: &Inside,
    (pkt, seen): (&Packet<'_>, &ParsedPacket),
    sessions: &mut Sessions,
    now: Time,
) -> Option<Outside> {
    let bytes = pkt.len() - Ip6Header::LEN;
    sessions.out(query, inside, (bytes, seen.flags), now)
}

/// Gives the packet in a tunnel's what stands for its host.
#[inline(always)]
pub(super) fn write(pkt: &mut Packet<'_>, seen: &ParsedPacket, outside: Outside) -> Result<(), Error> {
    let Tuple { dst, dport, .. } = seen.tuple;
    let to = Tuple {
        src: outside.address.to_bits(),
        sport: outside.port,
        dst,
        dport: if seen.kind == Kind::Query { outside.port } else { dport },
    };
    let inner = pkt.data_mut().get_mut(Ip6Header::LEN..).ok_or(Error::Malformed)?;
    Rewrite::new(seen.tuple, to, seen.protocol)
        .write(inner, seen.header.into(), seen.kind, true, Sum::Whole)
        .ok_or(Error::Malformed)
}

/// Takes the IPv6 header off.
#[inline(always)]
pub(super) fn decapsulate(pkt: &mut Packet<'_>) -> Result<(), Error> {
    pkt.pull(Ip6Header::LEN).ok_or(Error::Malformed)?;
    let front = pkt.current();
    pkt.meta_mut().l3 = front;
    Ok(())
}

impl<const SLOW: bool> In2out<SLOW> {
    fn one(&self, mut buffer: Buffer, sessions: &mut Sessions, cx: &mut FrameCx<'_>) {
        let config = self.shared.config.load(cx.guard());
        let mut pkt = cx.cache().packet(&mut buffer);
        let Some(ip6) = pkt.header::<Ip6Header>().copied() else { return cx.drop(buffer, Error::Malformed) };
        if ip6.protocol() == IpProtocol::IPV6_FRAGMENTATION {
            return cx.send(Next::Reassembly.edge(), buffer);
        }
        if ip6.protocol() != IpProtocol::IP_IN_IP {
            return cx.send(Next::Local.edge(), buffer);
        }
        let thread = config.of_b4(ip6.src());
        if thread != cx.thread() {
            *pkt.scratch::<Ticket>() = Ticket { thread: thread as u32 };
            return cx.send(Next::Handoff.edge(), buffer);
        }
        let done = self.translate(&mut pkt, ip6.src(), sessions, cx);
        let next = match done {
            Ok(Some(outside)) => {
                cx.trace(&pkt, || Trace { next: Next::Lookup.edge().0, session: outside.port.into() });
                Next::Lookup
            }
            Ok(None) => {
                cx.trace(&pkt, || Trace { next: Next::SlowPath.edge().0, session: -1 });
                Next::SlowPath
            }
            Err(error) => return cx.drop(buffer, error),
        };
        if next == Next::Lookup {
            if let Err(error) = decapsulate(&mut pkt) {
                return cx.drop(buffer, error);
            }
            cx.count(Error::In2out, 1);
        }
        cx.send(next.edge(), buffer);
    }

    /// Translates the packet in the tunnel's; `None`: it has no session yet.
    fn translate(
        &self,
        pkt: &mut Packet<'_>,
        b4: Ipv6Addr,
        sessions: &mut Sessions,
        cx: &FrameCx<'_>,
    ) -> Result<Option<Outside>, Error> {
        let seen = read(pkt)?;
        match seen.kind {
            Kind::Tcp | Kind::Udp | Kind::Query => {}
            Kind::Error => {
                let host = |tuple: Tuple, protocol| inside(b4, tuple, protocol);
                return Self::error(pkt, &seen, sessions, host);
            }
            Kind::OtherIcmp => return Err(Error::BadIcmpType),
            Kind::Other => return Err(Error::UnsupportedProtocol),
        }
        let inside = inside(b4, seen.tuple, seen.protocol);
        let outside = match known(None, &inside, (pkt, &seen), sessions, cx.now()) {
            Some(outside) => outside,
            None if SLOW => self.begin(pkt, &seen, &inside, sessions, cx)?,
            None => return Ok(None),
        };
        write(pkt, &seen, outside)?;
        Ok(Some(outside))
    }

    /// An ICMP error of a host about a packet that came to it.
    fn error(
        pkt: &mut Packet<'_>,
        seen: &ParsedPacket,
        sessions: &Sessions,
        host: impl Fn(Tuple, u8) -> Inside,
    ) -> Result<Option<Outside>, Error> {
        let dst = seen.tuple.dst;
        let inner = pkt.data_mut().get_mut(Ip6Header::LEN..).ok_or(Error::Malformed)?;
        let quoted = Quoted::read(inner, seen.header.into(), None)?;
        let inside = host(quoted.answer, quoted.protocol);
        let outside = sessions.peek_out(&inside).ok_or(Error::NoTranslation)?;
        let is_query = quoted.protocol == shoal_nat::tuple::ICMP;
        let to = Tuple {
            src: outside.address.to_bits(),
            sport: outside.port,
            dport: if is_query { outside.port } else { quoted.answer.dport },
            ..quoted.answer
        };
        quoted.write(inner, seen.header.into(), (outside.address.to_bits(), dst), to)?;
        Ok(Some(outside))
    }

    /// The first packet of a session.
    fn begin(
        &self,
        pkt: &Packet<'_>,
        seen: &ParsedPacket,
        inside: &Inside,
        sessions: &mut Sessions,
        cx: &FrameCx<'_>,
    ) -> Result<Outside, Error> {
        if seen.kind == Kind::Query {
            let kind = pkt.data().get(Ip6Header::LEN + usize::from(seen.header));
            if kind != Some(&ECHO_REQUEST) {
                return Err(Error::BadIcmpType);
            }
        }
        let config = self.shared.config.load(cx.guard());
        let outside = sessions.create(inside, config, cx.thread(), cx.now()).map_err(|why| match why {
            Refusal::Full => Error::MaxSessions,
            Refusal::OutOfPorts => Error::OutOfPorts,
        })?;
        self.shared.count(cx.thread(), sessions);
        self.shared.tell(true, Record { inside: *inside, outside, packets: 0, bytes: 0 });
        known(None, inside, (pkt, seen), sessions, cx.now());
        Ok(outside)
    }
}

impl<const SLOW: bool> StatefulFrameNode for In2out<SLOW> {
    const NAME: &'static str = if SLOW { "dslite-in2out-slowpath" } else { "dslite-in2out" };
    type Feature = SessionStores;
    type Next = Next;
    type Error = Error;

    fn frame(&self, sessions: &mut Sessions, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        frame.drain().for_each(|buffer| self.one(buffer, sessions, cx));
    }
}
