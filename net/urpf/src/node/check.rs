//! `ip4-rx-urpf-strict` and its like: is the source where the packet came from?
//! ip4-input | ip4-rewrite -> **ip4-rx-urpf-strict** -> the next feature | error-drop

use std::net::IpAddr;

use shoal_adj::AdjTable;
use shoal_buffer::{Flags, Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::superpath::{Optional, Pass};
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_infra::Guard;
use shoal_interface::IfTable;
use shoal_wire::ip6_address::is_link_local;
use shoal_wire::{Ip4Header, Ip6Header};

use crate::tables::Tables;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next feature.
    Feature(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// uRPF Drop
    #[counter("urpf_drop")]
    Drop,
    /// header is cut short
    TooShort,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("uRPF:{verdict} fib:{fib} source {src}")]
pub struct Trace {
    verdict: &'static str,
    fib: u32,
    src: IpAddr,
}

/// The code of all eight nodes, by family, direction and mode.
pub struct Check<const IP6: bool, const TX: bool, const STRICT: bool> {
    /// All forwarding tables.
    pub(crate) fib: FibTables,
    /// All adjacencies.
    pub(crate) adjacencies: AdjTable,
    /// All interfaces.
    pub(crate) interfaces: IfTable,
    /// Which table sources are looked up in.
    pub(crate) tables: Tables,
}

/// The name of each node.
const fn name(ip6: bool, tx: bool, strict: bool) -> &'static str {
    match (ip6, tx, strict) {
        (false, false, false) => "ip4-rx-urpf-loose",
        (false, false, true) => "ip4-rx-urpf-strict",
        (false, true, false) => "ip4-tx-urpf-loose",
        (false, true, true) => "ip4-tx-urpf-strict",
        (true, false, false) => "ip6-rx-urpf-loose",
        (true, false, true) => "ip6-rx-urpf-strict",
        (true, true, false) => "ip6-tx-urpf-loose",
        (true, true, true) => "ip6-tx-urpf-strict",
    }
}

impl<const IP6: bool, const TX: bool, const STRICT: bool> Check<IP6, TX, STRICT> {
    #[inline(always)]
    fn source(pkt: &Packet<'_>) -> Option<IpAddr> {
        // On the way out the link's header is in front already.
        let at =
            if TX { usize::try_from(i32::from(pkt.meta().l3) - i32::from(pkt.current())).ok()? } else { 0 };
        Some(if IP6 {
            IpAddr::V6(pkt.header_at::<Ip6Header>(at)?.src())
        } else {
            IpAddr::V4(pkt.header_at::<Ip4Header>(at)?.src())
        })
    }

    #[inline(always)]
    fn table(&self, interface: SwIfIndex) -> FibIndex {
        let own =
            if IP6 { self.interfaces.ip6_table(interface) } else { self.interfaces.ip4_table(interface) };
        self.tables.get(interface).unwrap_or(FibIndex(own))
    }

    /// Whether the source is reached by an interface; `None`: by any. A default route is a way like any other
    /// (RFC 3704, 2.4), and of several ways one is enough (2.3).
    #[inline(always)]
    fn reaches(&self, fib: FibIndex, src: IpAddr, by: Option<SwIfIndex>, guard: Guard<'_>) -> bool {
        match src {
            IpAddr::V4(src) => self.fib.reaches((fib, src.to_bits()), by, &self.adjacencies, guard),
            IpAddr::V6(src) => self.fib.reaches_ip6((fib, src.to_bits()), by, &self.adjacencies, guard),
        }
    }

    #[inline(always)]
    fn passes(
        &self,
        fib: FibIndex,
        src: IpAddr,
        interface: SwIfIndex,
        pkt: &Packet<'_>,
        guard: Guard<'_>,
    ) -> bool {
        let passes = match (TX, STRICT) {
            (false, true) => self.reaches(fib, src, Some(interface), guard),
            // A packet does not go back to where its source is.
            (true, true) => {
                !self.reaches(fib, src, Some(interface), guard) && self.reaches(fib, src, None, guard)
            }
            (_, false) => self.reaches(fib, src, None, guard),
        };
        passes || is_exempt(src) || TX && pkt.flags().has(Flags::LOCALLY_ORIGINATED)
    }
}

/// Sources that no table knows: a host without an address (RFC 1122, 3.2.1.3; RFC 4862, 5.4.2), which may speak to all
/// of its link only, and one of the link itself (RFC 4291, 2.5.6), which no packet from beyond has.
fn is_exempt(src: IpAddr) -> bool {
    src.is_unspecified() || matches!(src, IpAddr::V6(src) if is_link_local(src))
}

impl<const IP6: bool, const TX: bool, const STRICT: bool> PacketNode for Check<IP6, TX, STRICT> {
    const NAME: &'static str = name(IP6, TX, STRICT);
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    #[inline(always)]
    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let interface = if TX { pkt.tx() } else { pkt.rx() };
        let src = Self::source(pkt).ok_or(Error::TooShort)?;
        let fib = self.table(interface);
        let passes = self.passes(fib, src, interface, pkt, cx.guard());
        cx.trace(pkt, || Trace { verdict: if passes { "pass" } else { "drop" }, fib: fib.0, src });
        if passes { Ok(Next::Feature(cx.next_feature(pkt))) } else { Err(Error::Drop) }
    }
}

/// A packet that is to be dropped goes to the node, which counts and traces it.
impl<const IP6: bool, const TX: bool, const STRICT: bool> Optional for Check<IP6, TX, STRICT> {
    const NAME: &'static str = <Self as PacketNode>::NAME;
    type Facts<'g> = (SwIfIndex, FibIndex);

    #[inline(always)]
    fn facts(&self, interface: SwIfIndex, _: Guard<'_>) -> (SwIfIndex, FibIndex) {
        (interface, self.table(interface))
    }

    #[inline(always)]
    fn pass(&self, (interface, fib): (SwIfIndex, FibIndex), pkt: &mut Packet<'_>, cx: &Cx<'_, Self>) -> Pass {
        match Self::source(pkt) {
            Some(src) if self.passes(fib, src, interface, pkt, cx.guard()) => Pass::On,
            _ => Pass::Leave,
        }
    }
}
