//! Whole packets of customers with ports, on a fused path: they go on as packets of the other family. MAP's nodes see to all others,
//! and to packets that may be too long once they are translated or in a tunnel.

mod from_customers;
mod to_customers;

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_graph::superpath::{CrossOptional, Crossing, Optional, Pass, Walk};
use shoal_graph::{Counts, Cx, PacketNode};
use shoal_infra::Guard;
use shoal_translate46::WithPorts;

use super::ip4_map::Ip4Map;
use super::ip4_map_t::Ip4MapT;
use super::ip6_map::Ip6Map;
use super::ip6_map_t::Ip6MapT;
use super::{Error, SYN, Shared};
use crate::config::{Config, Settings};

/// The nodes' common cases, for chains.
pub struct MapStages {
    /// MAP-E, to customers.
    pub encapsulate: Arc<MapStage<Ip4Map>>,
    /// MAP-E, from customers.
    pub decapsulate: Arc<MapStage<Ip6Map>>,
    /// MAP-T, to customers.
    pub translate4: Arc<MapStage<Ip4MapT>>,
    /// MAP-T, from customers.
    pub translate6: Arc<MapStage<Ip6MapT>>,
}

impl MapStages {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let s = || Arc::clone(shared);
        MapStages {
            encapsulate: Arc::new(MapStage(Ip4Map { shared: s() })),
            decapsulate: Arc::new(MapStage(Ip6Map { shared: s() })),
            translate4: Arc::new(MapStage(Ip4MapT { shared: s() })),
            translate6: Arc::new(MapStage(Ip6MapT { shared: s() })),
        }
    }
}

/// The common case of one of MAP's nodes.
pub struct MapStage<N>(N);

/// What one of MAP's nodes does to most packets.
pub trait CommonCase: PacketNode {
    /// What a packet is found by.
    type Query: Copy + Default + PartialEq;
    /// An address of the other family.
    type Destination;

    /// What nodes and control plane share.
    fn shared(&self) -> &Shared;

    /// What a packet is found by whose header is `offset` bytes behind its front.
    fn query(pkt: &Packet<'_>, offset: usize) -> Self::Query;

    /// Whether a packet is for MAP.
    fn is_own(config: &Config, query: &Self::Query) -> bool;

    /// Where it goes then, if that is known.
    fn destination(config: &Config, query: &Self::Query) -> Option<Self::Destination>;

    /// Does what the node does, or leaves the packet to it.
    fn cross(&self, config: &Config, pkt: &mut Packet<'_>, cx: &Cx<'_, MapStage<Self>>) -> Crossing
    where
        Self: Sized;
}

impl<N: CommonCase> Counts for MapStage<N> {
    type Error = Error;
}

impl<N: CommonCase> Optional for MapStage<N> {
    const NAME: &'static str = N::NAME;
    type Facts<'g> = &'g Config;

    fn facts<'g>(&'g self, _: SwIfIndex, guard: Guard<'g>) -> &'g Config {
        self.0.shared().config.load(guard)
    }

    fn pass(&self, config: &Config, pkt: &mut Packet<'_>, _: &Cx<'_, Self>) -> Pass {
        if N::is_own(config, &N::query(pkt, 0)) { Pass::Leave } else { Pass::On }
    }
}

impl<N: CommonCase> CrossOptional for MapStage<N> {
    type State = ();
    type Query = N::Query;
    type Destination = N::Destination;
    type Lookup<'g> = &'g Config;

    fn lookup<'g>(&'g self, config: &'g Config, _: &Walk<'g>) -> &'g Config {
        config
    }

    #[inline(always)]
    fn look<'g, R>(config: &'g Config, look: impl FnOnce(&mut (), &'g Config) -> R) -> R {
        look(&mut (), config)
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>, offset: usize) -> N::Query {
        N::query(pkt, offset)
    }

    #[inline(always)]
    fn begin((): &mut (), config: &Config, query: &mut N::Query) -> bool {
        N::is_own(config, query)
    }

    #[inline(always)]
    fn destination((): &mut (), config: &Config, query: &N::Query) -> Option<N::Destination> {
        N::destination(config, query)
    }

    #[inline(always)]
    fn cross(
        &self,
        config: &Config,
        _: Option<&N::Query>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Crossing {
        self.0.cross(config, pkt, cx)
    }
}

/// Whether a packet needs its node, which lowers what a connection asks for.
#[inline(always)]
fn is_clamped<A>(settings: &Settings, seen: &WithPorts<A>) -> bool {
    settings.tcp_mss > 0 && seen.flags & SYN != 0
}
