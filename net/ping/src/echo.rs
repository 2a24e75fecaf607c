//! Echo requests: built here, put into the graph as if they had just been looked at by `ip4-input`.

use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_buffer::{Flags, SwIfIndex};
use shoal_fib::{Family, Fib, FibError, FibIndex};
use shoal_graph::clock::Time;
use shoal_graph::{Graph, GraphError};
use shoal_icmp::{Icmp, IcmpError, Listener};
use shoal_ip4::Ip4;
use shoal_module::{Control, Missing};
use shoal_wire::{Icmp4Echo, Icmp4Type, IntoBytes, Ip4Header, IpProtocol, icmp4};

/// Bytes in front of the data: the ICMP header, then the time of sending, as VPP has it.
pub const HEADER: usize = Icmp4Echo::LEN + 8;
/// Most bytes of data: an IPv4 packet holds 65,535.
pub const MOST_DATA: usize = u16::MAX as usize - Ip4Header::LEN - HEADER;

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
    /// No route, or the interface has no address.
    #[error("no source address for egress interface")]
    NoSource,
    /// The pool is empty.
    #[error("could not allocate a new buffer")]
    NoBuffer,
    /// More bytes than a packet holds.
    #[error("{0} bytes of data do not fit a packet: at most {most}", most = MOST_DATA)]
    TooLong(usize),
}

/// Where requests go and what they look like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// The host asked.
    pub address: Ipv4Addr,
    /// The interface whose address is the source; `None`: the one the route leads to.
    pub source: Option<SwIfIndex>,
    /// The table, by its number.
    pub table: u32,
    /// Bytes of data behind the time.
    pub size: usize,
}

/// Sends echo requests to one host and hears the answers.
pub struct Echo {
    graph: Rc<Graph>,
    target: Target,
    fib: FibIndex,
    source: Ipv4Addr,
    listener: Listener,
}

impl Echo {
    /// Ready to send.
    ///
    /// # Errors
    /// There is no such table, no source address, no identifier, or the data is too long.
    pub fn new(control: &Control, target: Target) -> Result<Self, PingError> {
        if target.size > MOST_DATA {
            return Err(PingError::TooLong(target.size));
        }
        let ip4 = control.get::<Ip4>()?;
        let fib = control.get::<Fib>()?.index_of(Family::Ip4, target.table)?;
        let source = match target.source {
            Some(interface) => ip4.addresses(interface).first().map(shoal_wire::Ip4Prefix::addr),
            None => ip4.source_for(target.address, fib),
        };
        let source = source.ok_or(PingError::NoSource)?;
        let listener = control.get::<Icmp>()?.listen(ANSWERS)?;
        Ok(Echo { graph: control.graph()?, target, fib, source, listener })
    }

    /// The address requests come from.
    pub fn source(&self) -> Ipv4Addr {
        self.source
    }

    /// Where answers come.
    pub fn listener(&self) -> &Listener {
        &self.listener
    }

    fn bytes(&self, sequence: u16, ttl: u8, now: Time) -> Vec<u8> {
        let echo = Icmp4Echo::new(Icmp4Type::ECHO_REQUEST, self.listener.id(), sequence);
        let data = (0..self.target.size).map(|n| n as u8);
        let mut message: Vec<u8> =
            echo.as_bytes().iter().copied().chain(now.0.to_be_bytes()).chain(data).collect();
        icmp4::make(&mut message);
        let total = (Ip4Header::LEN + message.len()) as u16;
        let mut ip = Ip4Header::new(self.source, self.target.address, IpProtocol::ICMP, ttl, total);
        // Fragments of one request are told from those of another by this (RFC 791).
        ip.set_id(sequence);
        ip.update_checksum();
        [ip.as_bytes(), &message].concat()
    }

    /// Sends one request; tells when.
    ///
    /// # Errors
    /// No buffer is free.
    pub fn send(&self, sequence: u16, ttl: u8) -> Result<Time, PingError> {
        let now = self.graph.clock().now();
        let lookup = self.graph.node("ip4-lookup")?;
        let bytes = self.bytes(sequence, ttl, now);
        let mut main = self.graph.main();
        let mut buffer = main.cache().alloc_data(&bytes).map_err(|_| PingError::NoBuffer)?;
        let mut pkt = main.cache().packet(&mut buffer);
        let front = pkt.current();
        let meta = pkt.meta_mut();
        meta.tx = SwIfIndex(self.fib.0);
        meta.l3 = front;
        meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
        main.inject(lookup, buffer);
        Ok(now)
    }
}
