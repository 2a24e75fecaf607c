//! `abf-input-ip4`, `abf-input-ip6`: packets that match a policy take its paths.
//! ip4-input -> **abf-input-ip4** -> ip4-load-balance | the next feature

use std::marker::PhantomData;

use shoal_adj::Family;
use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::counter::Combined;
use shoal_graph::superpath::{Optional, Pass};
use shoal_graph::{Cx, Edge, NextNodes, PacketNode};
use shoal_infra::Guard;
use shoal_rule::{Address, Fields};

use crate::chain::{Chains, Entry};

/// What differs between the families.
pub trait Kind: Address {
    /// The node's name.
    const NODE: &'static str;
    /// The node that follows an adjacency.
    const BALANCE: &'static str;
    /// The arc.
    const ARC: &'static str;
    /// The family.
    const FAMILY: Family;
}

impl Kind for u32 {
    const NODE: &'static str = "abf-input-ip4";
    const BALANCE: &'static str = "ip4-load-balance";
    const ARC: &'static str = shoal_ip4::UNICAST_ARC;
    const FAMILY: Family = Family::Ip4;
}

impl Kind for u128 {
    const NODE: &'static str = "abf-input-ip6";
    const BALANCE: &'static str = "ip6-load-balance";
    const ARC: &'static str = shoal_ip6::UNICAST_ARC;
    const FAMILY: Family = Family::Ip6;
}

/// Where a packet goes next: the policy's way, or a feature.
#[derive(Clone, Copy)]
pub struct Next<A>(Edge, PhantomData<A>);

impl<A: Kind> NextNodes for Next<A> {
    const NAMES: &'static [&'static str] = &[A::BALANCE];

    fn edge(self) -> Edge {
        self.0
    }
}

impl<A: Kind> Next<A> {
    /// Along the policy's paths.
    const BALANCE: Next<A> = Next(Edge(1), PhantomData);
}

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// matched
    #[severity(info)]
    Matched,
    /// headers are cut off or wrong
    #[severity(warn)]
    Headers,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("{what} policy {policy} dpo-idx {adj}")]
pub struct Trace {
    what: &'static str,
    policy: u32,
    adj: u32,
}

/// Compares packets with rules.
pub struct AbfInput<A: Kind> {
    pub(crate) chains: Chains<A>,
    /// Packets and bytes of each policy.
    pub(crate) matched: Combined,
}

impl<A: Kind> AbfInput<A> {
    /// The policy of a chain that a packet matches.
    #[inline(always)]
    fn find<'g>(chain: &'g [Entry<A>], pkt: &Packet<'_>, cx: &Cx<'_, Self>) -> Option<&'g Entry<A>> {
        let Some(fields) = Fields::of(pkt.data()) else {
            // No policy's; whether it goes on is for others to say.
            cx.count(Error::Headers, 1);
            return None;
        };
        chain.iter().find(|entry| entry.rule.matches(&fields))
    }

    #[inline(always)]
    fn count(&self, entry: &Entry<A>, pkt: &Packet<'_>, cx: &Cx<'_, Self>) {
        cx.count(Error::Matched, 1);
        self.matched.add(cx.thread(), entry.counter as usize, 1, pkt.len() as u64);
    }
}

impl<A: Kind> PacketNode for AbfInput<A> {
    const NAME: &'static str = A::NODE;
    type Next = Next<A>;
    type Error = Error;
    type Trace = Trace;

    #[inline(always)]
    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next<A>, Error> {
        let found = self.chains.of(pkt.rx(), cx.guard()).and_then(|chain| Self::find(chain, pkt, cx));
        let Some(entry) = found else {
            cx.trace(pkt, || Trace { what: "no match,", policy: 0, adj: 0 });
            return Ok(Next(cx.next_feature(pkt), PhantomData));
        };
        cx.trace(pkt, || Trace { what: "matched", policy: entry.policy, adj: entry.adj.0 });
        self.count(entry, pkt, cx);
        pkt.meta_mut().adj = entry.adj.0;
        Ok(Next::BALANCE)
    }
}

impl<A: Kind> Optional for AbfInput<A> {
    const NAME: &'static str = <Self as PacketNode>::NAME;
    type Facts<'g> = &'g [Entry<A>];

    #[inline(always)]
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> &'g [Entry<A>] {
        self.chains.of(interface, guard).unwrap_or_default()
    }

    #[inline(always)]
    fn pass(&self, chain: &[Entry<A>], pkt: &mut Packet<'_>, cx: &Cx<'_, Self>) -> Pass {
        match Self::find(chain, pkt, cx) {
            Some(entry) => {
                self.count(entry, pkt, cx);
                Pass::Chosen(entry.adj.0)
            }
            None => Pass::On,
        }
    }
}
