//! `dslite-out2in`: packets to shared addresses go into the tunnel of the host they are for.
//! ip4-lookup -> **dslite-out2in** -> ip6-lookup | ip4-icmp-error | another thread

use std::net::Ipv4Addr;
use std::sync::Arc;

use shoal_buffer::{Buffer, Frame, Packet};
use shoal_derive::NextNodes;
use shoal_graph::{FrameCx, NextNodes, StatefulFrameNode, Ticket};
use shoal_ip4::IcmpError;
use shoal_nat::icmp::Quoted;
use shoal_nat::{Kind, ParsedPacket, Rewrite, Sum, Tuple};
use shoal_wire::Ip4Header;

use super::ce::{encapsulate, may_be_cut, ready};
use super::{Error, Trace};
use crate::config::Config;
use crate::session_stores::SessionStores;
use crate::sessions::{Inside, Outside, Sessions};
use crate::shared::Shared;

/// Where packets go.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Into a tunnel.
    #[node("ip6-lookup")]
    Lookup,
    /// It has come too far: its sender gets an error.
    #[node("ip4-icmp-error")]
    IcmpError,
    /// Another thread has its session.
    #[node("dslite-out2in-handoff")]
    Handoff,
}

/// The node.
pub struct Out2in {
    pub(crate) shared: Arc<Shared>,
}

/// What a packet is for.
struct Destination {
    seen: ParsedPacket,
    /// Of an ICMP error: the packet it is about.
    quoted: Option<Quoted>,
    outside: Outside,
}

fn find(pkt: &Packet<'_>) -> Result<Destination, Error> {
    let seen = ParsedPacket::read(pkt.data()).ok_or(Error::Malformed)?;
    if seen.fragment && !seen.first {
        return Err(Error::Fragments);
    }
    let outside = |tuple: Tuple, protocol: u8| Outside {
        address: Ipv4Addr::from_bits(tuple.dst),
        port: tuple.dport,
        protocol,
    };
    match seen.kind {
        Kind::Tcp | Kind::Udp | Kind::Query => {
            Ok(Destination { seen, quoted: None, outside: outside(seen.tuple, seen.protocol) })
        }
        Kind::Error => {
            let quoted = Quoted::read(pkt.data(), seen.header.into(), None)?;
            // The answer to what it is about would come from the far end, to the shared address.
            Ok(Destination { seen, outside: outside(quoted.answer, quoted.protocol), quoted: Some(quoted) })
        }
        Kind::OtherIcmp => Err(Error::BadIcmpType),
        Kind::Other => Err(Error::UnsupportedProtocol),
    }
}

impl Out2in {
    fn one(mut buffer: Buffer, sessions: &mut Sessions, config: &Config, cx: &mut FrameCx<'_>) {
        let mut pkt = cx.cache().packet(&mut buffer);
        let found = match find(&pkt) {
            Ok(found) => found,
            Err(error) => return cx.drop(buffer, error),
        };
        let thread = config.of_port(found.outside.port);
        if thread != cx.thread() {
            *pkt.scratch::<Ticket>() = Ticket { thread: thread as u32 };
            return cx.send(Next::Handoff.edge(), buffer);
        }
        if pkt.header::<Ip4Header>().is_none_or(|ip| ip.ttl() <= 1) {
            IcmpError::TTL.ask(&mut pkt);
            return cx.send(Next::IcmpError.edge(), buffer);
        }
        match Self::translate(&mut pkt, &found, sessions, config, cx) {
            Ok(()) => {
                let session = found.outside.port.into();
                cx.trace(&pkt, || Trace { next: Next::Lookup.edge().0, session });
                cx.count(Error::Out2in, 1);
                cx.send(Next::Lookup.edge(), buffer);
            }
            Err(error) => cx.drop(buffer, error),
        }
    }

    fn translate(
        pkt: &mut Packet<'_>,
        found: &Destination,
        sessions: &mut Sessions,
        config: &Config,
        cx: &FrameCx<'_>,
    ) -> Result<(), Error> {
        let aftr = config.aftr.ok_or(Error::NoTranslation)?;
        ready(pkt)?;
        let Destination { seen, quoted, outside } = found;
        let header = usize::from(seen.header);
        let inside = match quoted {
            Some(_) => sessions.peek_into(*outside),
            None => sessions.into(None, *outside, (pkt.len(), seen.flags), cx.now()),
        };
        let Inside { b4, address, port, .. } = inside.ok_or(Error::NoTranslation)?;
        let is_query = outside.protocol == shoal_nat::tuple::ICMP;
        let of = quoted.map_or(seen.tuple, |quoted| quoted.answer);
        let to = Tuple {
            dst: address.to_bits(),
            dport: port,
            sport: if is_query { port } else { of.sport },
            ..of
        };
        let bytes = pkt.data_mut();
        match quoted {
            Some(quoted) => quoted.write(bytes, header, (seen.tuple.src, address.to_bits()), to)?,
            None => Rewrite::new(of, to, seen.protocol)
                .write(bytes, header, seen.kind, true, Sum::Whole)
                .ok_or(Error::Malformed)?,
        }
        let may_be_cut = may_be_cut(pkt);
        encapsulate(pkt, (aftr.ip6, b4), may_be_cut)
    }
}

impl StatefulFrameNode for Out2in {
    const NAME: &'static str = "dslite-out2in";
    type Feature = SessionStores;
    type Next = Next;
    type Error = Error;

    fn frame(&self, sessions: &mut Sessions, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let config = self.shared.config.load(cx.guard());
        frame.drain().for_each(|buffer| Self::one(buffer, sessions, config, cx));
    }
}
