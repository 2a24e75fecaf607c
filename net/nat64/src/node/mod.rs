//! Nodes.

pub mod in2out;
pub mod out2in;
pub mod stage;

use std::net::Ipv4Addr;

use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_nat::Kind;
use shoal_translate46::{Fault, Head, HeaderFields, ParsedPacket, Sum};

use crate::sessions::Refusal;
use crate::shared::Shared;

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// unsupported protocol
    #[counter("unsupported protocol")]
    UnsupportedProtocol,
    /// no translation
    #[counter("no translation")]
    NoTranslation,
    /// out of ports
    #[counter("out of ports")]
    OutOfPorts,
    /// maximum sessions exceeded
    #[counter("maximum sessions exceeded")]
    MaxSessions,
    /// unsupported icmp type
    #[counter("unsupported icmp type")]
    BadIcmpType,
    /// fragments whose ports are not known, or of ICMP
    #[counter("fragments whose ports are not known, or of ICMP")]
    Fragments,
    /// unknown
    #[counter("unknown")]
    Malformed,
    /// good in2out packets processed
    #[counter("good in2out packets processed")]
    #[severity(info)]
    In2out,
    /// good out2in packets processed
    #[counter("good out2in packets processed")]
    #[severity(info)]
    Out2in,
    /// no session begins here, another router forwards
    #[counter("no session begins here, another router forwards")]
    Standby,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Malformed | Fault::TooLong | Fault::SegmentsLeft => Error::Malformed,
            Fault::IcmpFragment | Fault::NoChecksum => Error::Fragments,
            Fault::IcmpType => Error::BadIcmpType,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Full | Refusal::FullOfBindings => Error::MaxSessions,
            Refusal::OutOfPorts => Error::OutOfPorts,
            Refusal::Standby => Error::Standby,
        }
    }
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("{way}: sw_if_index {interface}, next index {next}")]
pub struct Trace {
    /// Which node it is.
    pub way: &'static str,
    /// Where the packet came in.
    pub interface: u32,
    /// Where it goes.
    pub next: u16,
}

/// Bytes of an ICMP error in front of the packet it carries.
pub(crate) const ICMP_HEADER: usize = 8;

/// Fills in what only the first fragment says.
pub(crate) fn whole<A>(shared: &Shared, pkt: &Packet<'_>, seen: &mut ParsedPacket<A>) -> Result<(), Error> {
    if seen.is_first() {
        return Ok(());
    }
    let words = shared.words.get(pkt);
    if words.is_non_first_fragment == 0 {
        return Err(Error::Fragments);
    }
    (seen.ends.sport, seen.ends.dport) = (words.src_port, words.dst_port);
    if seen.kind == Kind::OtherIcmp {
        return Err(Error::Fragments);
    }
    Ok(())
}

/// What the new header says besides addresses.
pub(crate) fn how<A>(pkt: &Packet<'_>, seen: &ParsedPacket<A>) -> HeaderFields {
    let sum = Sum::of(pkt);
    HeaderFields { sum, ..HeaderFields::of(seen, pkt.number() as u16) }
}

/// Cuts off what is behind the IP packet.
pub(crate) fn trim<A>(pkt: &mut Packet<'_>, seen: &ParsedPacket<A>) -> Result<(), Error> {
    pkt.trim_to(usize::from(seen.header) + usize::from(seen.payload)).ok_or(Error::Malformed)
}

/// A packet begins with the other protocol's header now.
#[inline(always)]
pub(crate) fn is_of_other_protocol(pkt: &mut Packet<'_>, (old, new): (Flags, Flags)) {
    let at = pkt.current();
    let meta = pkt.meta_mut();
    meta.l3 = at;
    if meta.flags.has(old) {
        meta.flags = meta.flags.without(old).with(new);
    }
}

/// Puts the other protocol's headers in the place of those that were there.
pub(crate) fn replace(pkt: &mut Packet<'_>, head: &Head, (old, new): (Flags, Flags)) -> Result<(), Error> {
    let bytes = head.bytes();
    pkt.pull(head.strip).ok_or(Error::Malformed)?;
    pkt.push(bytes.len()).ok_or(Error::Malformed)?;
    pkt.data_mut().get_mut(..bytes.len()).ok_or(Error::Malformed)?.copy_from_slice(bytes);
    is_of_other_protocol(pkt, (old, new));
    Ok(())
}

/// TCP's flags; 0 of a packet without them.
pub(crate) fn tcp_flags<A>(pkt: &Packet<'_>, seen: &ParsedPacket<A>) -> u8 {
    let here = seen.kind == Kind::Tcp && seen.is_first();
    let at = usize::from(seen.header) + 13;
    if here { pkt.data().get(at).copied().unwrap_or(0) } else { 0 }
}

/// The protocol by which bindings are found: that of IPv4.
pub(crate) fn protocol<A>(seen: &ParsedPacket<A>) -> u8 {
    if seen.protocol == shoal_translate46::ICMP6 { shoal_nat::tuple::ICMP } else { seen.protocol }
}

/// The remote end of a session. A query has one identifier for both ends, which the binding has already.
pub(crate) fn remote<A>(seen: &ParsedPacket<A>, address: Ipv4Addr, port: u16) -> (Ipv4Addr, u16) {
    let has_ports = matches!(seen.kind, Kind::Tcp | Kind::Udp);
    (address, if has_ports { port } else { 0 })
}
