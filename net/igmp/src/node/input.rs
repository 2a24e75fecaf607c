//! `igmp-input`: queries of routers and reports of other listeners. RFC 3376, 4.
//! ip4-local -> **igmp-input** -> drop; the control plane answers

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::process::Sender;
use shoal_graph::{Cx, PacketNode};
use shoal_ip4::Headers;
use shoal_wire::igmp::{ALL_SYSTEMS, IgmpInvalid, IgmpMessage, IgmpVersion, TTL};
use shoal_wire::{Ip4Header, Ip4Options};

/// The node's name.
pub(crate) const NAME: &str = "igmp-input";

/// Sources of a query that are looked at; with more of them the whole group is reported.
const MOST_SOURCES: usize = 16;

/// Something a message said, after all checks.
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
}

impl IgmpInput {
    pub(crate) fn new(tell: Sender<Fact>) -> Self {
        IgmpInput { tell }
    }
}

/// What a message says, if it says anything to a listener.
fn fact(pkt: &Packet<'_>) -> Result<Option<Fact>, Error> {
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
            Ok(Some(Fact::Queried { interface, version, group, max_response_ms, sources }))
        }
        IgmpMessage::Report(group) => Ok(Some(Fact::Reported { interface, group })),
        IgmpMessage::Leave(_) | IgmpMessage::ReportV3 => Ok(None),
    }
}

impl PacketNode for IgmpInput {
    const NAME: &'static str = NAME;
    type Next = Next;
    type Error = Error;
    type Trace = Headers;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        cx.trace(pkt, || Headers::of(pkt));
        let fact = fact(pkt)?;
        let what = if matches!(fact, Some(Fact::Queried { .. })) { Error::Queries } else { Error::Reports };
        if let Some(fact) = fact
            && self.tell.try_send(fact).is_err()
        {
            return Err(Error::Congested);
        }
        cx.count(what, 1);
        Ok(Next::Done)
    }
}
