//! A packet in a node's hands: what it is, how it follows its session.

use shoal_buffer::slot::SlotKey;
use shoal_buffer::{Flags, Packet};
use shoal_fib::FibIndex;
use shoal_interface::IfTable;
use shoal_nat::tuple::{ICMP, is_error, is_query};
use shoal_nat::{Kind, ParsedPacket, mss};
use shoal_reassembly::L4;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

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
pub fn seen(words: SlotKey<L4>, pkt: &Packet<'_>, front: usize) -> Option<ParsedPacket> {
    let mut seen = ParsedPacket::read(pkt.data().get(front..)?)?;
    if seen.fragment && !seen.first {
        let later = later(words, pkt, seen.protocol, seen.kind);
        (seen.tuple.sport, seen.tuple.dport) = (later.sport, later.dport);
        (seen.kind, seen.flags) = (later.kind, later.flags);
    }
    Some(seen)
}

/// What is known of a fragment that is not the first. Small, so that it is returned in a register.
struct LaterFragment {
    sport: u16,
    dport: u16,
    kind: Kind,
    flags: u8,
}

/// A fragment that is not the first: shallow reassembly has left what the first one says.
#[cold]
fn later(words: SlotKey<L4>, pkt: &Packet<'_>, protocol: u8, kind: Kind) -> LaterFragment {
    let words = *words.get(pkt);
    if words.protocol != protocol {
        return LaterFragment { sport: 0, dport: 0, kind: Kind::Error, flags: 0 };
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
    LaterFragment { sport, dport, kind, flags }
}

/// The forwarding table a packet came by.
#[inline(always)]
pub fn table<const OUTPUT: bool>(interfaces: &IfTable, pkt: &Packet<'_>) -> u32 {
    let of_interface = || interfaces.ip4_table(pkt.rx());
    if OUTPUT { of_interface() } else { pkt.meta().fib().map_or_else(of_interface, |fib| fib.0) }
}

/// Has the first packet of a connection ask for segments that are not too large.
#[cold]
pub fn clamp(most: u16, seen: &ParsedPacket, pkt: &mut Packet<'_>, front: usize) {
    if most > 0
        && seen.flags & SYN != 0
        && seen.first
        && !pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD)
        && let Some(tcp) = pkt.data_mut().get_mut(front + usize::from(seen.header)..)
    {
        mss::clamp(tcp, most);
    }
}

/// Chooses the table a packet is looked up in.
#[inline(always)]
pub fn look_up_in(pkt: &mut Packet<'_>, table: u32) {
    pkt.meta_mut().set_fib(Some(FibIndex(table)));
}

/// Whether the packet's way ends here: its sender gets an error before its source is another's.
#[inline(always)]
pub fn is_expiring(pkt: &Packet<'_>) -> bool {
    pkt.data().get(8).is_some_and(|ttl| *ttl <= 1)
}
