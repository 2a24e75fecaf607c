//! `linux-cp-ip4-mcast`, `linux-cp-ip6-mcast`: packets to groups that routing daemons of Linux are to know of.
//!
//! A daemon (PIM) hears of a source from the kernel, when a packet finds no multicast route there. So packets to groups without an
//! entry here go to the kernel, some of them. It forgets a source of which the kernel counts no packets; so of each of its routes one
//! packet a minute goes by way of the kernel, which forwards it as the route says.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use shoal_buffer::Packet;
use shoal_graph::FrameCx;
use shoal_graph::clock::Time;
use shoal_infra::StableArena;
use shoal_interface::IfTable;
use shoal_mfib::{MOST_ENTRIES, MfibTable};
use shoal_wire::{EtherType, Ip4Header, Ip6Header, IpProtocol};

use super::packet_owner::{Decide, PacketOwner, upper};

/// Packets a second without an entry that the kernel gets.
const MOST_UNKNOWN: u64 = 100;

/// Entries of one family that are multicast routes of Linux.
#[derive(Clone)]
pub(crate) struct LinuxGroups(Arc<Inner>);

struct Inner {
    /// By number of the entry: nothing, or one more than the minute in which the kernel got a packet last.
    routes: StableArena<AtomicU32>,
    /// The current second, and how many packets without an entry the kernel has got in it.
    unknown: AtomicU64,
}

impl LinuxGroups {
    pub fn new() -> io::Result<Self> {
        let routes = StableArena::with_capacity(MOST_ENTRIES)?;
        Ok(LinuxGroups(Arc::new(Inner { routes, unknown: AtomicU64::new(0) })))
    }

    /// An entry is a route of Linux, or no longer.
    pub fn mark(&self, entry: u32, is_route: bool) {
        if let Some(word) = self.0.routes.get(entry as usize) {
            word.store(u32::from(is_route), Ordering::Release);
        }
    }

    /// Whether the kernel is to get this packet of an entry.
    fn is_due(&self, entry: u32, now: Time) -> bool {
        let Some(word) = self.0.routes.get(entry as usize) else { return false };
        let (was, minute) = (word.load(Ordering::Acquire), (now.0 / 60_000_000_000) as u32 + 2);
        let exchange = || word.compare_exchange(was, minute, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        was != 0 && was != minute && exchange()
    }

    /// Whether the kernel is to get a packet without an entry.
    fn takes_unknown(&self, now: Time) -> bool {
        let second = (now.0 / 1_000_000_000) << 16;
        let next = |word: u64| match word.checked_sub(second) {
            Some(count) if count >= MOST_UNKNOWN => None,
            Some(_) => Some(word + 1),
            None => Some(second + 1),
        };
        self.0.unknown.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    fn whose(&self, entry: Option<u32>, now: Time) -> PacketOwner {
        let kernels = entry.map_or_else(|| self.takes_unknown(now), |entry| self.is_due(entry, now));
        if kernels { PacketOwner::Host } else { PacketOwner::Ours }
    }
}

/// What decides about packets to groups of one family.
pub(crate) struct Groups {
    pub table: MfibTable,
    pub interfaces: IfTable,
    pub linux: LinuxGroups,
}

/// `linux-cp-ip4-mcast`: groups beyond the link. Those of the link come by `ip4-local`, too.
pub(crate) struct Ip4Groups(pub Groups);

impl Decide for Ip4Groups {
    const NAME: &'static str = "linux-cp-ip4-mcast";
    const TYPE: EtherType = EtherType::IP4;

    fn whose(&self, pkt: &Packet<'_>, cx: &FrameCx<'_>) -> PacketOwner {
        let Some(ip) = pkt.header::<Ip4Header>() else { return PacketOwner::Ours };
        let (source, group) = (ip.src(), ip.dst());
        let stays =
            matches!(group.octets(), [224, 0, 0, _]) || source.is_link_local() || source.is_unspecified();
        if stays || ip.protocol() == IpProtocol::IGMP {
            return PacketOwner::Ours;
        }
        let Groups { table, interfaces, linux } = &self.0;
        let fib = interfaces.ip4_table(pkt.rx());
        let found = table.find(fib, source.to_bits().into(), group.to_bits().into(), cx.guard());
        linux.whose(found, cx.now())
    }
}

/// `linux-cp-ip6-mcast`: the same, and groups of the link, some of which the kernel's daemons are in (OSPFv3, RIPng).
pub(crate) struct Ip6Groups(pub Groups);

impl Decide for Ip6Groups {
    const NAME: &'static str = "linux-cp-ip6-mcast";
    const TYPE: EtherType = EtherType::IP6;

    fn whose(&self, pkt: &Packet<'_>, cx: &FrameCx<'_>) -> PacketOwner {
        let Some(ip) = pkt.header::<Ip6Header>() else { return PacketOwner::Ours };
        let (source, group) = (ip.src(), ip.dst());
        let [_, scope, ..] = group.octets();
        match (upper(pkt), scope & 0xf) {
            // Delivered here, it comes by `ip6-local`, too.
            (Some((IpProtocol::ICMP6, _)) | None, 0..=2) => PacketOwner::Ours,
            (Some(_), 2) => PacketOwner::Both,
            (_, 0..=2) => PacketOwner::Ours,
            _ if source.is_unicast_link_local() || source.is_unspecified() => PacketOwner::Ours,
            _ => {
                let Groups { table, interfaces, linux } = &self.0;
                let fib = interfaces.ip6_table(pkt.rx());
                let found = table.find(fib, source.to_bits(), group.to_bits(), cx.guard());
                linux.whose(found, cx.now())
            }
        }
    }
}
