//! What packets read of interfaces in layer 2.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use shoal_buffer::Packet;
use shoal_graph::Edge;
use shoal_infra::{Guard, TwinTable, zeroable_struct};
use shoal_interface::SwIfIndex;
use shoal_wire::{EtherType, EthernetHeader};

use crate::bitmap::{Bitmap, Input, Place};

/// ICMPv6 as an IPv6 header names it.
const ICMP6: u8 = 58;
/// Where an IPv6 header names what follows it.
const IP6_NEXT: usize = 6;

zeroable_struct! {
    /// One interface. All zero: it is not in layer 2.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct L2Data {
        pub(crate) on: u32,
        pub(crate) input: u32,
        pub(crate) output: u32,
        pub(crate) peer: u32,
    }
}

/// Which way packets go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    In,
    Out,
}

/// The edges that lead to the nodes of features, by place; 0 where no node is registered.
pub(crate) type FeatureEdges = Arc<[AtomicU16; 32]>;

/// The way through the features of one direction. Clones are the same.
#[derive(Clone)]
pub struct Path {
    pub(crate) table: TwinTable<L2Data>,
    pub(crate) edges: FeatureEdges,
    pub(crate) side: Side,
}

/// The next step of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// No feature is left.
    End,
    /// The features of the arc.
    Arc,
    /// A feature's node.
    Feature(Edge),
    /// A feature without one.
    Nobody,
    /// Out of another interface.
    Xconnect(SwIfIndex),
    /// The interface is not in layer 2.
    Off,
}

/// The features that a packet may run through by what it is.
fn of_packet(pkt: &Packet<'_>) -> Bitmap {
    let Some(header) = pkt.header::<EthernetHeader>() else { return Bitmap::default() };
    let is_arp = header.ether_type() == EtherType::ARP;
    let mut all = if is_arp { Bitmap::ALL } else { Bitmap::ALL.without(Input::ArpForward) };
    if !header.dst().is_multicast() {
        return all.without(Input::ArpTerm);
    }
    for feature in [Input::Forward, Input::UnknownFlood, Input::UnknownForward] {
        all = all.without(feature);
    }
    let next = pkt.data().get(EthernetHeader::LEN + IP6_NEXT);
    let asks = is_arp || header.ether_type() == EtherType::IP6 && next == Some(&ICMP6);
    if asks { all } else { all.without(Input::ArpTerm) }
}

impl Path {
    /// The next step of a packet that comes from the feature at `place`, or begins.
    #[inline(always)]
    pub(crate) fn next(&self, pkt: &Packet<'_>, place: Option<Place>, guard: Guard<'_>) -> Step {
        let interface = if self.side == Side::In { pkt.rx() } else { pkt.tx() };
        let data = self.table.load(interface.0 as usize, guard);
        if data.on == 0 {
            return Step::Off;
        }
        let all = match self.side {
            Side::In => Bitmap(data.input).and(of_packet(pkt)),
            Side::Out => Bitmap(data.output),
        };
        let left = place.map_or(all, |place| all.behind(place));
        let Some(first) = left.first() else { return Step::End };
        let (arc, xconnect) = (Place::from(Input::Arc), Place::from(Input::Xconnect));
        if first == arc {
            return Step::Arc;
        }
        if self.side == Side::In && first == xconnect {
            return Step::Xconnect(SwIfIndex(data.peer));
        }
        match self.edges.get(first.number()).map_or(0, |edge| edge.load(Ordering::Relaxed)) {
            0 => Step::Nobody,
            edge => Step::Feature(Edge(edge)),
        }
    }

    /// Where a feature's node at `place` sends a packet it is done with, as an edge of that node; `None`: to the end, which
    /// is `feature-bitmap-drop` for packets that come in and `interface-output` for those that go out. For nodes that
    /// share the edges of `l2-input` or `l2-output` ([`shoal_graph::Graph::share_edges`]).
    pub fn behind(&self, pkt: &Packet<'_>, place: impl Into<Place>, guard: Guard<'_>) -> Option<Edge> {
        match self.next(pkt, Some(place.into()), guard) {
            Step::Feature(edge) => Some(edge),
            _ => None,
        }
    }
}

const _: () = assert!(Input::Arc as u8 == crate::bitmap::Output::Arc as u8, "one place for both arcs");
