//! `npt66-input`, `npt66-output`: the prefix of an address is replaced.
//! ip6-input -> **npt66-input** -> the next feature; ip6-rewrite -> **npt66-output** -> the next feature

use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;

use shoal_adj::{AdjKind, AdjTable};
use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_infra::{Guard, Published};
use shoal_interface::{IfTable, SwIfIndex};
use shoal_nat::icmp::Fault;
use shoal_nat::{End, Ip6Seen, ip6};
use shoal_wire::checksum::Sum;
use shoal_wire::{Ip6Header, IpProtocol};

use crate::prefixes::{Prefixes, Translated};

/// A binding as packets see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its number.
    pub index: u32,
    /// Its prefixes.
    pub prefixes: Prefixes,
    /// The addresses of both, as they are shown.
    pub shown: [Ipv6Addr; 2],
}

/// What nodes and control plane share.
pub struct Shared {
    /// The binding of each interface.
    pub entries: Published<Vec<Option<Entry>>>,
    /// Forwarding tables.
    pub fib: FibTables,
    /// Adjacencies.
    pub adjacencies: AdjTable,
    /// Interfaces.
    pub interfaces: IfTable,
}

impl Shared {
    fn of(&self, interface: SwIfIndex, guard: Guard<'_>) -> Option<Entry> {
        *self.entries.load(guard).get(interface.0 as usize)?
    }

    /// Whether an address is this router's own, by the table of the interface that a packet came in by.
    fn is_own(&self, pkt: &Packet<'_>, address: u128, guard: Guard<'_>) -> bool {
        let table = pkt.meta().fib().unwrap_or_else(|| FibIndex(self.interfaces.ip6_table(pkt.rx())));
        let found = self.fib.lookup_ip6(table, address, guard);
        self.adjacencies.get(found, guard).kind() == AdjKind::Local
    }
}

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next feature.
    Feature(Edge),
    /// It is for another host inside.
    #[node("ip6-lookup")]
    Lookup,
}

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// packets translated from external to internal
    #[counter("rx")]
    #[severity(info)]
    Rx,
    /// packets translated from internal to external
    #[counter("tx")]
    #[severity(info)]
    Tx,
    /// packet translation failed
    #[counter("translation")]
    Translation,
    /// ICMP6 checksum validation failed
    #[counter("icmp6_checksum")]
    Icmp6Checksum,
    /// ICMP6 packet truncated
    #[counter("icmp6_truncated")]
    Icmp6Truncated,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("npt66: index {found}")]
pub struct Trace {
    found: Found,
}

/// A binding, or none.
struct Found(Option<Entry>);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(Entry { index, shown: [internal, external], .. }) => {
                write!(f, "{index} internal: {internal} external: {external}")
            }
            None => f.write_str("-1 (binding not found)"),
        }
    }
}

/// The code of both nodes.
pub struct Translate<const TX: bool> {
    pub(crate) shared: Arc<Shared>,
}

/// Whether an ICMPv6 message that is here as a whole has a wrong checksum.
fn is_wrong(bytes: &[u8], seen: &Ip6Seen) -> bool {
    let Ok((ip, _)) = shoal_wire::FromBytes::ref_from_prefix(bytes) else { return true };
    let ip: &Ip6Header = ip;
    let end = Ip6Header::LEN + usize::from(ip.payload_length());
    let Some(message) = bytes.get(seen.offset..end) else { return false };
    let mut sum = Sum::pseudo_ip6(ip.src(), ip.dst(), IpProtocol::ICMP6, message.len() as u32);
    sum.add(message);
    sum.folded() != 0xffff
}

impl<const TX: bool> Translate<TX> {
    /// The address that becomes another of the kind it is.
    const END: End = if TX { End::Source } else { End::Destination };

    fn translated(prefixes: &Prefixes, address: u128) -> Translated {
        if TX { prefixes.out(address) } else { prefixes.back(address) }
    }

    /// An ICMPv6 error is about a packet of the other direction.
    fn quoted(prefixes: &Prefixes, seen: &Ip6Seen, bytes: &mut [u8], whole: bool) -> Result<(), Error> {
        let Some(quoted) = seen.quoted else { return Ok(()) };
        if whole && is_wrong(bytes, seen) {
            return Err(Error::Icmp6Checksum);
        }
        let end = Self::END.other();
        match Self::translated(prefixes, quoted.address(end)) {
            Translated::To(new) => ip6::put_quoted(bytes, seen, end, new).map_err(|_| Error::Icmp6Truncated),
            Translated::Other => Ok(()),
            Translated::Impossible => Err(Error::Translation),
        }
    }
}

impl<const TX: bool> PacketNode for Translate<TX> {
    const NAME: &'static str = if TX { "npt66-output" } else { "npt66-input" };
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let interface = if TX { pkt.tx() } else { pkt.rx() };
        let entry = self.shared.of(interface, cx.guard());
        cx.trace(pkt, || Trace { found: Found(entry) });
        // It was taken away a moment ago.
        let Some(Entry { prefixes, .. }) = entry else { return Ok(Next::Feature(cx.next_feature(pkt))) };
        // On the way out the link's header is in front already.
        let front = i32::from(pkt.meta().l3) - i32::from(pkt.current());
        let front = if TX { usize::try_from(front).unwrap_or(usize::MAX) } else { 0 };
        let seen = Ip6Seen::read_neutral(pkt.data().get(front..).unwrap_or_default());
        let seen = seen.map_err(|fault| match fault {
            Fault::Short if front < pkt.data().len() => Error::Icmp6Truncated,
            _ => Error::Translation,
        })?;
        let ours = Self::translated(&prefixes, seen.address(Self::END));
        let new = match ours {
            Translated::To(new) => new,
            Translated::Impossible => return Err(Error::Translation),
            // An error of a router before the host is about a packet of the prefix, too.
            Translated::Other if TX && seen.quoted.is_some() => seen.src,
            Translated::Other => return Ok(Next::Feature(cx.next_feature(pkt))),
        };
        if !TX && self.shared.is_own(pkt, seen.dst, cx.guard()) {
            return Ok(Next::Feature(cx.next_feature(pkt)));
        }
        // A fragment's checksum covers what is not here, a device's is not there yet.
        let whole =
            pkt.len() == pkt.data().len() && !pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD) && seen.is_whole;
        let hairpin = if TX { prefixes.back(seen.dst) } else { Translated::Other };
        let bytes = pkt.data_mut().get_mut(front..).unwrap_or_default();
        Self::quoted(&prefixes, &seen, bytes, whole)?;
        ip6::put(bytes, Self::END, new).map_err(|_| Error::Translation)?;
        cx.count(if TX { Error::Tx } else { Error::Rx }, 1);
        // RFC 6296, 2.5: two hosts inside may know each other by their outside addresses.
        if let (Translated::To(inside), Translated::To(_)) = (hairpin, ours) {
            let about = seen.quoted.map(|quoted| prefixes.back(quoted.src));
            if let Some(Translated::To(about)) = about {
                ip6::put_quoted(bytes, &seen, End::Source, about).map_err(|_| Error::Icmp6Truncated)?;
            }
            ip6::put(bytes, End::Destination, inside).map_err(|_| Error::Translation)?;
            let rx = pkt.rx();
            pkt.pull(front).ok_or(Error::Translation)?;
            pkt.meta_mut().received_by(rx);
            return Ok(Next::Lookup);
        }
        Ok(Next::Feature(cx.next_feature(pkt)))
    }
}
