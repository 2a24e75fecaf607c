//! `ip4-source-limit`, `ip6-source-limit`: has this host sent too much?
//! ip4-input -> **ip4-source-limit** -> the next feature | error-drop
//!
//! A staged node, because there may be more hosts than the cache holds: all sources of a frame are looked for side by side.

use std::net::IpAddr;
use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::superpath::{Pass, StatefulOptional};
use shoal_graph::{Counts, Cx, Edge, StatefulStagedNode};
use shoal_infra::Guard;
use shoal_wire::{Ip4Header, Ip6Header};

use crate::control::ThreadStores;
use crate::hosts::{HostSearch, Hosts, Key, Verdict, ip4_key, ip6_key, parts};
use crate::limits::Pace;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next feature.
    Feature(Edge),
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// host sends more than it may
    #[counter("exceeded")]
    Exceeded,
    /// header is cut short
    #[counter("too_short")]
    TooShort,
    /// passed, too many hosts are known already
    #[counter("unknown")]
    #[severity(warn)]
    Unknown,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("source-limit: host {host} {verdict}")]
pub struct Trace {
    host: IpAddr,
    verdict: &'static str,
}

/// The code of both nodes.
pub struct Check<const IP6: bool> {
    pub(crate) feature: Arc<ThreadStores>,
}

impl<const IP6: bool> Counts for Check<IP6> {
    type Error = Error;
}

impl<const IP6: bool> Check<IP6> {
    #[inline(always)]
    fn key(pkt: &Packet<'_>) -> Option<Key> {
        let interface = pkt.rx();
        if IP6 {
            pkt.header::<Ip6Header>().map(|ip| ip6_key(ip.src_u128(), interface))
        } else {
            pkt.header::<Ip4Header>().map(|ip| ip4_key(ip.src_u32(), interface))
        }
    }
}

/// On a fused path, packets of known hosts within their limit pass; the node sees to the others.
impl<const IP6: bool> StatefulOptional for Check<IP6> {
    const NAME: &'static str = <Self as StatefulStagedNode>::NAME;
    type Feature = ThreadStores;
    type Facts<'g> = Option<Pace>;

    fn facts(&self, interface: SwIfIndex, _: Guard<'_>) -> Option<Pace> {
        self.feature.limits.get(interface)
    }

    #[inline(always)]
    fn pass(&self, hosts: &mut Hosts, pace: Option<Pace>, pkt: &mut Packet<'_>, cx: &Cx<'_, Self>) -> Pass {
        let (Some(pace), Some(key)) = (pace, Self::key(pkt)) else { return Pass::Leave };
        hosts.pass(key, pace, cx.now()).map_or(Pass::Leave, |()| Pass::On)
    }
}

impl<const IP6: bool> StatefulStagedNode for Check<IP6> {
    const NAME: &'static str = if IP6 { "ip6-source-limit" } else { "ip4-source-limit" };
    type Feature = ThreadStores;
    type Next = Next;
    type Trace = Trace;
    type Key = HostSearch;

    #[inline(always)]
    fn prepare(&self, hosts: &mut Hosts, pkt: &Packet<'_>, _: &mut Cx<'_, Self>) -> HostSearch {
        Self::key(pkt).map_or_else(HostSearch::default, |key| hosts.search(key))
    }

    #[inline(always)]
    fn seek(&self, hosts: &mut Hosts, keys: &mut [HostSearch], _: &mut Cx<'_, Self>) {
        hosts.seek(keys);
    }

    #[inline(always)]
    fn packet(
        &self,
        hosts: &mut Hosts,
        search: HostSearch,
        pkt: &mut Packet<'_>,
        cx: &mut Cx<'_, Self>,
    ) -> Result<Next, Error> {
        if search == HostSearch::default() {
            return Err(Error::TooShort);
        }
        let verdict = match self.feature.limits.get(pkt.rx()) {
            Some(pace) => hosts.packet(&search, pace, cx.now()),
            // It was switched off a moment ago.
            None => Verdict::Within,
        };
        cx.trace(pkt, || Trace { host: parts(*search.key()).0, verdict: verdict.word() });
        match verdict {
            Verdict::Beyond => return Err(Error::Exceeded),
            Verdict::Unknown => cx.count(Error::Unknown, 1),
            Verdict::Within => {}
        }
        Ok(Next::Feature(cx.next_feature(pkt)))
    }
}
