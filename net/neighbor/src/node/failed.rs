//! `ip4-arp-failed`, `ip6-discover-failed`: packets that waited for a neighbour in vain. RFC 1122, 2.3.2.2; RFC 1812,
//! 5.2.7.1; RFC 4861 7.2.2; RFC 4443 3.1.
//! the control plane -> **ip4-arp-failed** -> ip4-icmp-error

use std::marker::PhantomData;

use shoal_buffer::{Flags, Packet};
use shoal_derive::TraceLine;
use shoal_graph::{Cx, Edge, ErrorCounter, ErrorCounters, NextNodes, PacketNode, Severity};
use shoal_ip::{IpFamily, Unreachable, Unreachables};

use crate::message::NotSent;

/// What differs between the protocols.
pub trait Failure: Copy + Send + Sync + 'static {
    /// The family whose packets waited.
    type Family: IpFamily;
    /// The node's name.
    const NODE: &'static str;
    /// What it counts: [`failure_counters`].
    const COUNTERS: &'static [ErrorCounter];
}

/// The counters of the node, in the order of [`Error`]; `silent` describes the first.
pub const fn failure_counters(silent: &'static str) -> [ErrorCounter; 3] {
    const fn one(name: &'static str, description: &'static str, severity: Severity) -> ErrorCounter {
        ErrorCounter { name, description, severity, at: None }
    }
    [
        one("silent", silent, Severity::Warn),
        one("refused", "too many packets waiting for neighbours", Severity::Warn),
        one("gone", "interface went down while the packet waited", Severity::Error),
    ]
}

/// Where a packet goes next: its sender gets an error that the destination cannot be reached.
#[derive(Clone, Copy, Debug)]
pub struct Next<P>(PhantomData<P>);

impl<P: Failure> NextNodes for Next<P> {
    const NAMES: &'static [&'static str] = P::Family::ICMP_ERROR_NEXT;

    fn edge(self) -> Edge {
        Edge(1)
    }
}

/// Why a packet is dropped here, and what else is counted.
#[derive(Clone, Copy, Debug)]
pub enum Error<P> {
    /// The neighbour did not answer.
    Silent(PhantomData<P>),
    /// Too many packets waited.
    Refused,
    /// The interface went down while the packet waited.
    Gone,
}

impl<P: Failure> ErrorCounters for Error<P> {
    const COUNTERS: &'static [ErrorCounter] = P::COUNTERS;

    fn index(self) -> u32 {
        match self {
            Error::Silent(_) => 0,
            Error::Refused => 1,
            Error::Gone => 2,
        }
    }
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("not sent: {why:?}")]
pub struct Trace {
    why: NotSent,
}

/// Ends waiting.
pub struct Failed<P> {
    /// Whether senders get errors at all.
    unreachables: Unreachables,
    protocol: PhantomData<P>,
}

impl<P> Failed<P> {
    /// The node, with the router's switch for unreachables.
    pub fn new(unreachables: Unreachables) -> Self {
        Failed { unreachables, protocol: PhantomData }
    }
}

impl<P: Failure> PacketNode for Failed<P> {
    const NAME: &'static str = P::NODE;
    type Next = Next<P>;
    type Error = Error<P>;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next<P>, Error<P>> {
        let why = NotSent::from_number(*pkt.scratch::<u32>());
        cx.trace(pkt, || Trace { why });
        let silent = Error::Silent(PhantomData);
        match why {
            NotSent::Refused => Err(Error::Refused),
            NotSent::Gone => Err(Error::Gone),
            // A sender on this router sees the neighbour's silence itself.
            NotSent::Silent
                if !self.unreachables.are_sent() || pkt.flags().has(Flags::LOCALLY_ORIGINATED) =>
            {
                Err(silent)
            }
            NotSent::Silent => {
                cx.count(silent, 1);
                P::Family::ask_unreachable(Unreachable::Address, pkt);
                Ok(Next(PhantomData))
            }
        }
    }
}
