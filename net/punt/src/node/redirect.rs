//! `ip4-punt-redirect`, `ip6-punt-redirect`: punted packets that another way than the host's is meant for.
//! ip4-punt -> **ip4-punt-redirect** -> ip4-load-balance | the next feature

use std::marker::PhantomData;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::{Cx, Edge, NextNodes, PacketNode};

use super::Kind;
use crate::redirects::RedirectTable;

/// Where a packet goes next: its way, or a feature.
#[derive(Clone, Copy)]
pub(crate) struct Next<K>(Edge, PhantomData<K>);

impl<K: Kind> NextNodes for Next<K> {
    const NAMES: &'static [&'static str] = &[K::BALANCE];

    fn edge(self) -> Edge {
        self.0
    }
}

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// redirected
    #[severity(info)]
    Redirected,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("rx {rx} dpo-idx {adj}")]
pub(crate) struct Trace {
    rx: u32,
    adj: u32,
}

/// Redirects.
pub(crate) struct Redirector<K> {
    ways: RedirectTable,
    kind: PhantomData<K>,
}

impl<K> Redirector<K> {
    pub(crate) fn new(ways: RedirectTable) -> Self {
        Redirector { ways, kind: PhantomData }
    }
}

impl<K: Kind> PacketNode for Redirector<K> {
    const NAME: &'static str = K::REDIRECT;
    type Next = Next<K>;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next<K>, Error> {
        let rx = pkt.rx();
        let Some(adj) = self.ways.of(rx) else {
            return Ok(Next(cx.next_feature(pkt), PhantomData));
        };
        cx.trace(pkt, || Trace { rx: rx.0, adj: adj.0 });
        cx.count(Error::Redirected, 1);
        let meta = pkt.meta_mut();
        meta.adj = adj.0;
        meta.set_fib(None);
        Ok(Next(Edge(1), PhantomData))
    }
}
