//! Nodes.

pub mod fragment;
pub mod fragment6;
pub mod ip4_map;
pub mod ip4_map_t;
pub mod ip6_map;
pub mod ip6_map_t;
pub mod stage;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use shoal_adj::AdjTable;
use shoal_buffer::slot::SlotKey;
use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::counter::{Combined, Counters};
use shoal_infra::{Guard, Published};
use shoal_nat::mss;
use shoal_reassembly::L4;
use shoal_translate46::{Fault, Kind, ParsedPacket};

use crate::config::{Config, Settings};
use crate::domain::Domain;
use crate::next_hops::NextHop;

/// Domains there may be.
pub const MOST_DOMAINS: usize = 1 << 20;

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// valid MAP packets
    #[severity(info)]
    #[counter("none")]
    Valid,
    /// bad protocol
    BadProtocol,
    /// security check failed
    SecCheck,
    /// encap security check failed
    EncapSecCheck,
    /// decap security check failed
    DecapSecCheck,
    /// unable to translate ICMP
    Icmp,
    /// unable to relay ICMP
    IcmpRelay,
    /// unknown
    Unknown,
    /// no binding
    NoBinding,
    /// no domain
    NoDomain,
    /// packet is a fragment
    Fragmented,
    /// could not cache fragment
    FragmentMemory,
    /// fragment has unexpected format
    FragmentMalformed,
    /// dropped cached fragment
    FragmentDropped,
    /// malformed packet
    Malformed,
    /// can't fragment, DF set
    DfSet,
    /// time exceeded
    TimeExceeded,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Malformed | Fault::TooLong | Fault::SegmentsLeft => Error::Malformed,
            Fault::IcmpFragment => Error::Fragmented,
            Fault::IcmpType => Error::Icmp,
            Fault::NoChecksum => Error::FragmentMalformed,
        }
    }
}

/// What nodes and control plane share.
pub struct Shared {
    /// The configuration.
    pub config: Published<Config>,
    /// Packets of each domain: from customers, and to them.
    pub counters: [Combined; 2],
    /// Forwarding tables.
    pub fib: FibTables,
    /// Adjacencies.
    pub adjacencies: AdjTable,
    /// What the first fragment says.
    pub words: SlotKey<L4>,
}

/// From customers.
pub const RX: usize = 0;
/// To customers.
pub const TX: usize = 1;

impl Shared {
    pub(crate) fn new(
        counters: &Counters,
        (fib, adjacencies): (FibTables, AdjTable),
        words: SlotKey<L4>,
    ) -> io::Result<Arc<Self>> {
        let of = |name: &str| counters.combined(&format!("/map/{name}"), MOST_DOMAINS);
        Ok(Arc::new(Shared {
            config: Published::new(Config::default()),
            counters: [of("rx")?, of("tx")?],
            fib,
            adjacencies,
            words,
        }))
    }

    /// Bytes of the longest packet that goes to an address in one piece.
    pub fn mtu(&self, to: IpAddr, guard: Guard<'_>) -> u16 {
        match to {
            IpAddr::V4(to) => self.fib.way_mtu((FibIndex::DEFAULT, to.to_bits()), &self.adjacencies, guard),
            IpAddr::V6(to) => {
                self.fib.way_mtu_ip6((FibIndex::DEFAULT, to.to_bits()), &self.adjacencies, guard)
            }
        }
    }

    /// A packet of a domain.
    pub fn count(&self, way: usize, thread: usize, domain: u32, bytes: usize) {
        if let Some(counter) = self.counters.get(way) {
            counter.add(thread, domain as usize, 1, bytes as u64);
        }
    }
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("MAP domain index: {domain} L4 port: {port}")]
pub struct Trace {
    /// The domain.
    pub domain: u32,
    /// The customer's port.
    pub port: u16,
}

/// Has a packet go to a next hop, whatever its destination is; whether one is set.
pub(crate) fn go_to<A>(hop: Option<NextHop<A>>, pkt: &mut Packet<'_>) -> bool {
    let Some(hop) = hop else { return false };
    pkt.meta_mut().adj = hop.adj.0;
    true
}

/// The class of a packet that leaves.
pub(crate) fn class(settings: &Settings, class: u8) -> u8 {
    if settings.tc_copy { class } else { settings.tc_class }
}

/// Ports of a fragment that is not the first, which shallow reassembly has left.
pub(crate) fn later<A>(shared: &Shared, pkt: &Packet<'_>, seen: &mut ParsedPacket<A>) -> Result<(), Error> {
    if seen.is_first() {
        return Ok(());
    }
    let words = shared.words.get(pkt);
    if words.is_non_first_fragment == 0 {
        return Err(Error::FragmentDropped);
    }
    (seen.ends.sport, seen.ends.dport) = (words.src_port, words.dst_port);
    Ok(())
}

/// Whether a source is the customer that has this address and port.
pub(crate) fn is_genuine(domain: &Domain, src: Ipv6Addr, address: Ipv4Addr, port: u16) -> bool {
    domain.parameters.ip4.contains(address)
        && domain.is_served(port)
        && domain.customer(address, port) == Some(src)
}

/// TCP's SYN.
const SYN: u8 = 2;

/// Has the first packet of a connection ask for segments that are not too large; `at`: where TCP begins.
pub(crate) fn clamp(settings: &Settings, pkt: &mut Packet<'_>, at: usize) {
    if settings.tcp_mss == 0 || pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD) {
        return;
    }
    if let Some(tcp) = pkt.data_mut().get_mut(at..)
        && tcp.get(13).is_some_and(|flags| flags & SYN != 0)
    {
        mss::clamp(tcp, settings.tcp_mss);
    }
}

/// Whether a packet's first bytes are those of TCP.
pub(crate) fn is_tcp<A>(seen: &ParsedPacket<A>) -> bool {
    seen.kind == Kind::Tcp && seen.is_first()
}

/// Takes headers off a packet and puts others on.
pub(crate) fn replace(pkt: &mut Packet<'_>, strip: usize, head: &[u8]) -> Result<(), Error> {
    pkt.pull(strip).ok_or(Error::Malformed)?;
    pkt.push(head.len()).ok_or(Error::Malformed)?;
    let front = pkt.data_mut().get_mut(..head.len()).ok_or(Error::Malformed)?;
    front.copy_from_slice(head);
    begin_again(pkt);
    Ok(())
}

/// What a packet's front is, is another header now.
pub(crate) fn begin_again(pkt: &mut Packet<'_>) {
    let at = pkt.current();
    let meta = pkt.meta_mut();
    meta.l3 = at;
    meta.set_fib(None);
}
