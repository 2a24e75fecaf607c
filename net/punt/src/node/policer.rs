//! `ip4-punt-policer`, `ip6-punt-policer`: no more packets are punted than the host can bear.
//! ip4-punt -> **ip4-punt-policer** -> the next feature

use std::marker::PhantomData;
use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_icmp::limiter::Limiter;

use super::Kind;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next feature.
    Feature(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// more punted packets than the policer lets through
    Policed,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("{verdict}")]
pub(crate) struct Trace {
    verdict: &'static str,
}

/// Polices.
pub(crate) struct Policer<K> {
    limiter: Arc<Limiter>,
    kind: PhantomData<K>,
}

impl<K> Policer<K> {
    pub(crate) fn new(limiter: Arc<Limiter>) -> Self {
        Policer { limiter, kind: PhantomData }
    }
}

impl<K: Kind> PacketNode for Policer<K> {
    const NAME: &'static str = K::POLICER;
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let conforms = self.limiter.take(cx.now());
        cx.trace(pkt, || Trace { verdict: if conforms { "conforms" } else { "exceeds" } });
        if conforms { Ok(Next::Feature(cx.next_feature(pkt))) } else { Err(Error::Policed) }
    }
}
