//! `igmp-input`: queries of routers and reports of other listeners. RFC 3376, 4.
//! ip4-local -> **igmp-input** -> drop; the control plane answers

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::process::Sender;
use shoal_graph::{Cx, PacketNode};
use shoal_ip4::Headers;
use shoal_wire::igmp::{
    ALL_SYSTEMS, IgmpInvalid, IgmpMessage, IgmpRecord, IgmpRecords, IgmpVersion, RecordType, TTL,
};
use shoal_wire::{Ip4Header, Ip4Options};

use super::Routers;

/// The node's name.
pub(crate) const NAME: &str = "igmp-input";

/// Sources of a query that are looked at; with more of them the whole group is reported.
const MOST_SOURCES: usize = 16;

/// The content of a message, after all checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fact {
    /// A router asks.
    Queried {
        interface: SwIfIndex,
        version: IgmpVersion,
        group: Option<Ipv4Addr>,
        max_response_ms: u32,
        /// Sources it asks for; none: any.
        sources: [Option<Ipv4Addr>; MOST_SOURCES],
    },
    /// Another listener of version 1 or 2 reports.
    Reported { interface: SwIfIndex, group: Ipv4Addr },
    /// A listener of version 2 leaves.
    Left { interface: SwIfIndex, group: Ipv4Addr },
    /// A listener of version 3 says something of a group: of these sources, or without any of the group.
    Said {
        interface: SwIfIndex,
        kind: RecordType,
        group: Ipv4Addr,
        sources: [Option<Ipv4Addr>; MOST_SOURCES],
    },
}

/// The sources that are asked for.
pub(crate) fn wanted(sources: [Option<Ipv4Addr>; MOST_SOURCES]) -> BTreeSet<Ipv4Addr> {
    sources.into_iter().flatten().collect()
}

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It has been understood.
    #[node("drop")]
    Done,
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// igmp message is cut short or lies about its length
    Length,
    /// bad igmp checksum
    Checksum,
    /// igmp group is not multicast
    Group,
    /// unknown igmp type
    UnknownType,
    /// igmp message from beyond the link
    Ttl,
    /// igmp query without router alert
    RouterAlert,
    /// igmp general query not sent to all systems
    Destination,
    /// igmp queries received
    #[severity(info)]
    Queries,
    /// igmp reports received
    #[severity(info)]
    Reports,
    /// igmp messages not looked at, too many at a time
    #[severity(warn)]
    Congested,
}

impl From<IgmpInvalid> for Error {
    fn from(rule: IgmpInvalid) -> Self {
        match rule {
            IgmpInvalid::Length => Error::Length,
            IgmpInvalid::Checksum => Error::Checksum,
            IgmpInvalid::Group => Error::Group,
            IgmpInvalid::Type => Error::UnknownType,
        }
    }
}

/// Looks at messages.
pub(crate) struct IgmpInput {
    tell: Sender<Fact>,
    /// Where reports are listened to.
    routers: Routers,
}

impl IgmpInput {
    pub(crate) fn new(tell: Sender<Fact>, routers: Routers) -> Self {
        IgmpInput { tell, routers }
    }

    /// Tells what each record of a report says, as many sources at a time as a fact holds; false when it is too much.
    fn tell_records(&self, interface: SwIfIndex, records: IgmpRecords<'_>) -> bool {
        for IgmpRecord { kind, group, sources } in records {
            let mut chunks = sources.chunks(MOST_SOURCES);
            let mut chunk = chunks.next().unwrap_or_default();
            loop {
                let mut sources = [None; MOST_SOURCES];
                let said = chunk.iter().map(|s| Some(Ipv4Addr::from_octets(*s)));
                sources.iter_mut().zip(said).for_each(|(to, from)| *to = from);
                if self.tell.try_send(Fact::Said { interface, kind, group, sources }).is_err() {
                    return false;
                }
                match chunks.next() {
                    Some(more) => chunk = more,
                    None => break,
                }
            }
        }
        true
    }
}

/// What a message says.
enum ParsedMessage<'a> {
    Fact(Fact),
    Records(IgmpRecords<'a>),
}

fn heard<'a>(pkt: &'a Packet<'_>) -> Result<ParsedMessage<'a>, Error> {
    let ip = pkt.header::<Ip4Header>().ok_or(Error::Length)?;
    let (header, total) = (ip.header_len(), usize::from(ip.total_length()));
    let message = pkt.data().get(header..total).ok_or(Error::Length)?;
    let interface = pkt.rx();
    // RFC 3376, 4: messages never come from beyond the link.
    if ip.ttl() != TTL {
        return Err(Error::Ttl);
    }
    match IgmpMessage::parse(message)? {
        IgmpMessage::Query(query) => {
            let alert = Ip4Options::of_packet(pkt.data())
                .flatten()
                .any(|option| option.kind == shoal_wire::Ip4Option::ROUTER_ALERT);
            // RFC 3376, 9.1.
            if query.version != IgmpVersion::V1 && !alert {
                return Err(Error::RouterAlert);
            }
            if query.group.is_none() && ip.dst() != ALL_SYSTEMS {
                return Err(Error::Destination);
            }
            let mut sources = [None; MOST_SOURCES];
            if query.sources.len() <= MOST_SOURCES {
                let asked = query.sources.iter().map(|s| Some(Ipv4Addr::from_octets(*s)));
                sources.iter_mut().zip(asked).for_each(|(to, from)| *to = from);
            }
            let (version, group, max_response_ms) = (query.version, query.group, query.max_response_ms);
            Ok(ParsedMessage::Fact(Fact::Queried { interface, version, group, max_response_ms, sources }))
        }
        IgmpMessage::Report(group) => Ok(ParsedMessage::Fact(Fact::Reported { interface, group })),
        IgmpMessage::Leave(group) => Ok(ParsedMessage::Fact(Fact::Left { interface, group })),
        IgmpMessage::ReportV3(records) => Ok(ParsedMessage::Records(records)),
    }
}

impl PacketNode for IgmpInput {
    const NAME: &'static str = NAME;
    type Next = Next;
    type Error = Error;
    type Trace = Headers;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        cx.trace(pkt, || Headers::of(pkt));
        let interface = pkt.rx();
        let heard = heard(pkt)?;
        let what = if matches!(heard, ParsedMessage::Fact(Fact::Queried { .. })) {
            Error::Queries
        } else {
            Error::Reports
        };
        let told = match heard {
            ParsedMessage::Fact(fact) => self.tell.try_send(fact).is_ok(),
            // Hosts do not listen to each other's reports of version 3.
            ParsedMessage::Records(records) => {
                !self.routers.is_on(interface) || self.tell_records(interface, records)
            }
        };
        if !told {
            return Err(Error::Congested);
        }
        cx.count(what, 1);
        Ok(Next::Done)
    }
}
