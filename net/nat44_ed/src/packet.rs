//! A packet in a node's hands: what it is, how it follows its session.

use shoal_buffer::{Flags, Packet};
use shoal_fib::FibIndex;
use shoal_flow::Ip4Flow;
use shoal_nat::tuple::{ICMP, is_error, is_query};
use shoal_nat::{Kind, Seen, Sum, mss};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::config::Config;
use crate::sessions::key;
use crate::shared::Shared;
use crate::way::Way;

/// TCP's SYN.
pub const SYN: u8 = 2;

/// What travels with a packet from node to node, in its scratch. It begins as [`shoal_graph::Ticket`] does.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Ticket {
    /// The thread that has its session.
    pub thread: u32,
    /// The node it goes to when it is translated.
    pub next: u32,
}

/// Where the IP header is, from the packet's front: behind the rewrite the link's header is there.
#[inline(always)]
pub fn front<const OUTPUT: bool>(pkt: &Packet<'_>) -> usize {
    if OUTPUT {
        usize::try_from(i32::from(pkt.meta().l3) - i32::from(pkt.current())).unwrap_or(usize::MAX)
    } else {
        0
    }
}

/// Reads a packet; `None` if it is cut short.
#[inline(always)]
pub fn seen(shared: &Shared, pkt: &Packet<'_>, front: usize) -> Option<Seen> {
    let mut seen = Seen::read(pkt.data().get(front..)?)?;
    if seen.fragment && !seen.first {
        let later = later(shared, pkt, seen.protocol, seen.kind);
        (seen.tuple.sport, seen.tuple.dport) = (later.sport, later.dport);
        (seen.kind, seen.flags) = (later.kind, later.flags);
    }
    Some(seen)
}

/// What is known of a fragment that is not the first. Small, so that it is returned in a register.
struct Later {
    sport: u16,
    dport: u16,
    kind: Kind,
    flags: u8,
}

/// A fragment that is not the first: shallow reassembly has left what the first one says.
#[cold]
fn later(shared: &Shared, pkt: &Packet<'_>, protocol: u8, kind: Kind) -> Later {
    let words = *shared.words.get(pkt);
    if words.protocol != protocol {
        return Later { sport: 0, dport: 0, kind: Kind::Error, flags: 0 };
    }
    let what = words.icmp_type_or_tcp_flags;
    let (kind, flags) = match protocol {
        ICMP if is_query(what) => (Kind::Query, 0),
        ICMP if is_error(what) => (Kind::Error, 0),
        ICMP => (Kind::OtherIcmp, 0),
        _ => (kind, what),
    };
    let (sport, dport) = match kind {
        Kind::Tcp | Kind::Udp | Kind::Query => (words.src_port, words.dst_port),
        Kind::Error | Kind::OtherIcmp | Kind::Other => (0, 0),
    };
    Later { sport, dport, kind, flags }
}

/// The forwarding table a packet came by.
#[inline(always)]
pub fn table<const OUTPUT: bool>(shared: &Shared, pkt: &Packet<'_>) -> u32 {
    let of_interface = || shared.interfaces.ip4_table(pkt.rx());
    if OUTPUT { of_interface() } else { pkt.meta().fib().map_or_else(of_interface, |fib| fib.0) }
}

/// The key of a packet's session, if it can have one.
#[inline(always)]
pub fn key_of(seen: &Seen, table: u32) -> Option<Ip4Flow> {
    let has_key = !matches!(seen.kind, Kind::Error | Kind::OtherIcmp);
    has_key.then(|| key(seen.tuple, seen.protocol, table))
}

/// Translates a packet as one direction of its session says. `None` if it is cut short, which cannot be: its tuple was read.
#[inline(always)]
pub fn rewrite(way: &mut Way, seen: &Seen, pkt: &mut Packet<'_>, front: usize) -> Option<()> {
    way.count(pkt.len().saturating_sub(front));
    let sum = if pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD) { Sum::Pseudo } else { Sum::Whole };
    let bytes = pkt.data_mut().get_mut(front..)?;
    way.rewrite().write(bytes, seen.header.into(), seen.kind, seen.first, sum)
}

/// Has the first packet of a connection ask for segments that are not too large.
#[cold]
pub fn clamp(config: &Config, seen: &Seen, pkt: &mut Packet<'_>, front: usize) {
    if config.mss > 0
        && seen.flags & SYN != 0
        && seen.first
        && !pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD)
        && let Some(tcp) = pkt.data_mut().get_mut(front + usize::from(seen.header)..)
    {
        mss::clamp(tcp, config.mss);
    }
}

/// Chooses the table a packet is looked up in.
#[inline(always)]
pub fn look_up_in(pkt: &mut Packet<'_>, table: u32) {
    pkt.meta_mut().set_fib(Some(FibIndex(table)));
}
