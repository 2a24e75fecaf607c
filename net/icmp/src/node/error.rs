//! `ip4-icmp-error`, `ip6-icmp-error`: turn a packet into the ICMP error about it, if one may be sent. RFC 792; RFC 1122,
//! 3.2.2; RFC 1812, 4.3.2; RFC 4443, 2.4 and 3.
//! any node that cannot send a packet on -> **error** -> ip4-lookup | ip6-lookup
//!
//! What to say lies in the packet's scratch: an `IcmpError` of the packet's family.

use std::fmt;
use std::marker::PhantomData;

use shoal_buffer::{FibIndex, Flags, Packet};
use shoal_derive::ErrorCounters;
use shoal_graph::{Cx, Edge, NextNodes, PacketNode};
use shoal_interface::IfTable;

use crate::Allowance;
use crate::family::{ErrorFields, Family, HEAD};
use crate::sum;

/// Where a packet goes next: to the sender, by the table its packet was looked up in.
#[derive(Clone, Copy)]
pub(crate) struct Next<F>(PhantomData<F>);

impl<F: Family> NextNodes for Next<F> {
    const NAMES: &'static [&'static str] = F::LOOKUP;

    fn edge(self) -> Edge {
        Edge(1)
    }
}

/// Why no error is sent about a packet, and what else is counted. Texts are VPP's where it has one.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// destination unreachable response sent
    #[counter("dest_unreach_sent")]
    #[severity(info)]
    Unreachable,
    /// hop limit exceeded response sent
    #[counter("ttl_expire_sent")]
    #[severity(info)]
    TimeExceeded,
    /// parameter problem response sent
    #[counter("param_problem_sent")]
    #[severity(info)]
    ParameterProblem,
    /// packet too big response sent
    #[counter("packet_too_big_sent")]
    #[severity(info)]
    TooBig,
    /// redirect sent
    #[severity(info)]
    Redirect,
    /// packet is cut short
    TooShort,
    /// no error about an icmp error
    #[counter("about_error")]
    #[severity(info)]
    AboutIcmp,
    /// no error about a later fragment
    #[severity(info)]
    LaterFragment,
    /// no error about a broadcast or multicast
    #[severity(info)]
    ToMany,
    /// no error to an address that is no host's
    #[severity(info)]
    BadSource,
    /// no address to send an error from
    NoAddress,
    /// error not sent, rate limit reached
    #[severity(warn)]
    RateLimited,
    /// no headroom for the error's headers
    NoHeadroom,
}

/// What `show trace` says.
pub(crate) struct Trace<F: Family> {
    head: [u8; HEAD],
    src: F::Address,
    dst: F::Address,
}

impl<F: Family> fmt::Display for Trace<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        F::describe(self.head, f)?;
        write!(f, " {} -> {}", self.src, self.dst)
    }
}

/// Says what went wrong.
pub(crate) struct IcmpErrorNode<F: Family> {
    pub(crate) interfaces: IfTable,
    pub(crate) addresses: F::Addresses,
    pub(crate) allowance: Allowance,
}

/// Writes the two headers in front of the quoted packet; what the first 8 bytes behind the outer one are.
fn write<F: Family>(
    pkt: &mut Packet<'_>,
    say: ErrorFields,
    src: F::Address,
    dst: F::Address,
) -> Result<[u8; HEAD], Error> {
    let quote = pkt.len().min(F::QUOTE);
    pkt.truncate(quote).ok_or(Error::TooShort)?;
    pkt.push(HEAD).ok_or(Error::NoHeadroom)?;
    let mut head = say.head();
    *pkt.header_mut::<[u8; HEAD]>().ok_or(Error::TooShort)? = head;
    let len = (HEAD + quote) as u16;
    let [high, low] = sum::onto(F::sum(src, dst, len), pkt).finish().to_be_bytes();
    (head[2], head[3]) = (high, low);
    *pkt.header_mut::<[u8; HEAD]>().ok_or(Error::TooShort)? = head;
    F::push_header(pkt, src, dst, len).ok_or(Error::NoHeadroom)?;
    Ok(head)
}

impl<F: Family> PacketNode for IcmpErrorNode<F> {
    const NAME: &'static str = F::ERROR;
    type Next = Next<F>;
    type Error = Error;
    type Trace = Trace<F>;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next<F>, Error> {
        let say = F::say(pkt);
        let dst = F::asker(pkt, say)?;
        let src = F::source(&self.addresses, pkt, say, cx.guard()).ok_or(Error::NoAddress)?;
        // RFC 1812, 4.3.2.8; RFC 4443, 2.4 (f).
        if !self.allowance.take(cx.now()) {
            return Err(Error::RateLimited);
        }
        let head = write::<F>(pkt, say, src, dst)?;
        cx.trace(pkt, || Trace::<F> { head, src, dst });
        let (front, rx) = (pkt.current(), pkt.rx());
        let traced = pkt.flags().has(Flags::TRACED);
        let meta = pkt.meta_mut();
        // Offloads and the like were the old packet's.
        meta.flags =
            if traced { Flags::LOCALLY_ORIGINATED.with(Flags::TRACED) } else { Flags::LOCALLY_ORIGINATED };
        meta.l3 = front;
        if meta.fib().is_none() {
            meta.set_fib(Some(FibIndex(F::table(&self.interfaces, rx, cx.guard()))));
        }
        self.allowance.count(say.kind, cx.thread());
        cx.count(F::sent(say.kind), 1);
        Ok(Next(PhantomData))
    }
}
