//! Echo requests: built here, put into the graph as if they had just been looked at by `ip4-input` or `ip6-input`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use shoal_adj::{Adj, AdjKind, Adjacencies};
use shoal_buffer::{Flags, SwIfIndex};
use shoal_fib::{Family, Fib, FibError, FibIndex};
use shoal_graph::clock::Time;
use shoal_graph::{Graph, GraphError};
use shoal_icmp::{Icmp, Icmp6, IcmpError, Listener};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_module::{Control, Missing};
use shoal_wire::ip6_address::is_link_local;
use shoal_wire::{Icmp4Echo, Icmp4Type, Icmp6Echo, Icmp6Type, IntoBytes, Ip4Header, Ip4Prefix, Ip6Header};
use shoal_wire::{Ip6Prefix, IpProtocol, icmp4, icmp6};

/// Bytes in front of the data: the ICMP header, then the time of sending, as VPP has it.
pub const HEADER: usize = Icmp4Echo::LEN + 8;

/// Most bytes of data to an address. An IPv4 packet holds 65,535 bytes with its header, an IPv6 packet without.
pub const fn most_data(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(_) => u16::MAX as usize - Ip4Header::LEN - HEADER,
        IpAddr::V6(_) => u16::MAX as usize - HEADER,
    }
}

/// Answers that may wait to be read.
const ANSWERS: usize = 1024;

/// Why no request can be sent. The texts are VPP's where it has one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PingError {
    /// A module is not there.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// No identifier is free.
    #[error(transparent)]
    Icmp(#[from] IcmpError),
    /// The table is not there.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// A node is not there.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// No route.
    #[error("no egress interface")]
    NoEgress,
    /// The interface has no address.
    #[error("no source address for egress interface")]
    NoSource,
    /// A link-local address is one on every link.
    #[error("{0} is on every link: say which with `source'")]
    WhichLink(Ipv6Addr),
    /// One host is asked.
    #[error("{0} is no host's address")]
    NoHost(IpAddr),
    /// The pool is empty.
    #[error("could not allocate a new buffer")]
    NoBuffer,
    /// More bytes than a packet holds.
    #[error("{size} bytes of data do not fit a packet: at most {most}")]
    TooLong {
        /// So many were wanted.
        size: usize,
        /// So many fit.
        most: usize,
    },
}

/// Where requests go and what they look like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// The host asked.
    pub address: IpAddr,
    /// The interface whose address is the source; `None`: the one the route leads to. A link-local address is looked for
    /// on its link.
    pub source: Option<SwIfIndex>,
    /// The table, by its number.
    pub table: u32,
    /// Bytes of data behind the time.
    pub size: usize,
}

/// From where to where.
#[derive(Clone, Copy)]
enum EchoRoute {
    Ip4(Ipv4Addr, Ipv4Addr),
    Ip6(Ipv6Addr, Ipv6Addr),
}

/// Sends echo requests to one host and hears the answers.
pub struct Echo {
    graph: Rc<Graph>,
    target: Target,
    fib: FibIndex,
    way: EchoRoute,
    listener: Listener,
}

/// Why there is no address to ask a host from.
fn no_source(control: &Control, target: &Target, fib: FibIndex) -> PingError {
    let adjacency = || -> Result<Adj, Missing> {
        let found = control.get::<Fib>()?.lookup(fib, target.address);
        Ok(control.get::<Adjacencies>()?.first(found))
    };
    let leads_out = |adj: Adj| !matches!(adj.kind(), AdjKind::None | AdjKind::Drop | AdjKind::Unreachable);
    if target.source.is_some() || adjacency().is_ok_and(leads_out) {
        PingError::NoSource
    } else {
        PingError::NoEgress
    }
}

/// Our address to ask an IPv4 host from.
fn source4(control: &Control, target: &Target, to: Ipv4Addr, fib: FibIndex) -> Result<Ipv4Addr, PingError> {
    let ip4 = control.get::<Ip4>()?;
    let source = match target.source {
        Some(interface) => ip4.spoken(interface).first().map(Ip4Prefix::addr),
        None => ip4.source_for(to, fib),
    };
    source.map_or_else(|| Err(no_source(control, target, fib)), Ok)
}

/// Our address to ask an IPv6 host from. RFC 6724, 5, rule 2: a host on the link is asked from the link-local one.
fn source6(control: &Control, target: &Target, to: Ipv6Addr, fib: FibIndex) -> Result<Ipv6Addr, PingError> {
    let ip6 = control.get::<Ip6>()?;
    let source = match target.source {
        None if is_link_local(to) => return Err(PingError::WhichLink(to)),
        None => ip6.source_for(to, fib),
        Some(interface) if is_link_local(to) => ip6.link_local(interface),
        Some(interface) => {
            let own = [ip6.addresses(interface), ip6.borrowed(interface)].concat();
            own.iter().find(|a| a.contains(to)).or(own.first()).map(Ip6Prefix::addr)
        }
    };
    source.map_or_else(|| Err(no_source(control, target, fib)), Ok)
}

impl Echo {
    /// Ready to send.
    ///
    /// # Errors
    /// There is no such table, no source address, no identifier, no such host, or the data is too long.
    pub fn new(control: &Control, target: Target) -> Result<Self, PingError> {
        let (size, most) = (target.size, most_data(target.address));
        if size > most {
            return Err(PingError::TooLong { size, most });
        }
        if target.address.is_multicast() || target.address.is_unspecified() {
            return Err(PingError::NoHost(target.address));
        }
        let fib = control.get::<Fib>()?.index_of(Family::of(target.address), target.table)?;
        let (way, listener) = match target.address {
            IpAddr::V4(to) => {
                let way = EchoRoute::Ip4(source4(control, &target, to, fib)?, to);
                (way, control.get::<Icmp>()?.listen(ANSWERS)?)
            }
            IpAddr::V6(to) => {
                let way = EchoRoute::Ip6(source6(control, &target, to, fib)?, to);
                (way, control.get::<Icmp6>()?.listen(ANSWERS)?)
            }
        };
        Ok(Echo { graph: control.graph()?, target, fib, way, listener })
    }

    /// The address requests come from.
    pub fn source(&self) -> IpAddr {
        match self.way {
            EchoRoute::Ip4(source, _) => source.into(),
            EchoRoute::Ip6(source, _) => source.into(),
        }
    }

    /// Where answers come.
    pub fn listener(&self) -> &Listener {
        &self.listener
    }

    /// What follows the message's header.
    fn data(&self, now: Time) -> impl Iterator<Item = u8> {
        now.0.to_be_bytes().into_iter().chain((0..self.target.size).map(|n| n as u8))
    }

    fn bytes(&self, sequence: u16, ttl: u8, now: Time) -> Vec<u8> {
        let id = self.listener.id();
        match self.way {
            EchoRoute::Ip4(src, dst) => {
                let echo = Icmp4Echo::new(Icmp4Type::ECHO_REQUEST, id, sequence);
                let mut message: Vec<u8> = echo.as_bytes().iter().copied().chain(self.data(now)).collect();
                icmp4::make(&mut message);
                let total = (Ip4Header::LEN + message.len()) as u16;
                let mut ip = Ip4Header::new(src, dst, IpProtocol::ICMP, ttl, total);
                // Fragments of one request are told from those of another by this (RFC 791).
                ip.set_id(sequence);
                ip.update_checksum();
                [ip.as_bytes(), &message].concat()
            }
            EchoRoute::Ip6(src, dst) => {
                let echo = Icmp6Echo::new(Icmp6Type::ECHO_REQUEST, id, sequence);
                let mut message: Vec<u8> = echo.as_bytes().iter().copied().chain(self.data(now)).collect();
                icmp6::make(src, dst, &mut message);
                let ip = Ip6Header::new(src, dst, IpProtocol::ICMP6, ttl, message.len() as u16);
                [ip.as_bytes(), &message].concat()
            }
        }
    }

    /// Sends one request; tells when.
    ///
    /// # Errors
    /// No buffer is free.
    pub fn send(&self, sequence: u16, ttl: u8) -> Result<Time, PingError> {
        let now = self.graph.clock().now();
        let (lookup, link) = match self.way {
            EchoRoute::Ip4(..) => ("ip4-lookup", None),
            // Such an address is looked up by the interface a packet came from, as if it had come from there.
            EchoRoute::Ip6(_, to) => ("ip6-lookup", self.target.source.filter(|_| is_link_local(to))),
        };
        let lookup = self.graph.node(lookup)?;
        let bytes = self.bytes(sequence, ttl, now);
        let mut main = self.graph.main();
        let mut buffer = main.cache().alloc_data(&bytes).map_err(|_| PingError::NoBuffer)?;
        let mut pkt = main.cache().packet(&mut buffer);
        let front = pkt.current();
        let meta = pkt.meta_mut();
        meta.set_fib(Some(self.fib));
        if let Some(link) = link {
            meta.rx = link;
        }
        meta.l3 = front;
        meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
        main.inject(lookup, buffer);
        Ok(now)
    }
}
