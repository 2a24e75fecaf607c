//! What packets read of interfaces in layer 2.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use shoal_buffer::Packet;
use shoal_graph::Edge;
use shoal_infra::{Guard, TwinTable, zeroable_struct};
use shoal_interface::SwIfIndex;
use shoal_wire::{EtherType, EthernetHeader};

use crate::bitmap::{Bitmap, Input, Output, Place};
use crate::pbb::PbbData;
use crate::rewrite::Rewrite;

/// ICMPv6 as an IPv6 header names it.
const ICMP6: u8 = 58;
/// Where an IPv6 header names what follows it.
const IP6_NEXT: usize = 6;

/// [`L2Data::mode`] of an interface that is cross-connected.
pub(crate) const XCONNECT: u8 = 1;
/// The same of a member of a bridge domain.
pub(crate) const BRIDGE: u8 = 2;

zeroable_struct! {
    /// One interface. All zero: it is not in layer 2.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct L2Data {
        pub(crate) input: u32,
        pub(crate) output: u32,
        pub(crate) peer: u32,
        pub(crate) out_edge: u16,
        /// The same edge, if nothing is done to frames that go out but to rewrite their tags; or 0.
        pub(crate) plain_edge: u16,
        pub(crate) domain: u16,
        pub(crate) sequence: u16,
        pub(crate) mode: u8,
        pub(crate) group: u8,
        pub(crate) bvi: u8,
        /// Not 0: there is a record in the table of providers' headers.
        pub(crate) pbb: u8,
        pub(crate) rewrite_in: Rewrite,
        pub(crate) rewrite_out: Rewrite,
    }
}

impl L2Data {
    /// Whether its frames are bridged or cross-connected.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.mode != 0
    }

    /// Whether it is a member of a bridge domain.
    #[inline(always)]
    pub fn is_bridged(&self) -> bool {
        self.mode == BRIDGE
    }

    /// The index of its bridge domain.
    #[inline(always)]
    pub fn domain(&self) -> u16 {
        self.domain
    }

    /// Its split-horizon group; 0: none.
    #[inline(always)]
    pub fn group(&self) -> u8 {
        self.group
    }

    /// Whether it is where the domain's packets are routed.
    #[inline(always)]
    pub fn is_bvi(&self) -> bool {
        self.bvi != 0
    }

    /// What was learned of it under another number is out of date.
    #[inline(always)]
    pub fn sequence(&self) -> u16 {
        self.sequence
    }

    /// The features of frames that come in, before what a frame is like is looked at.
    #[inline(always)]
    pub fn input(&self) -> Bitmap {
        Bitmap(self.input)
    }

    /// What is done to tags of frames that come in.
    #[inline(always)]
    pub fn rewrite_in(&self) -> &Rewrite {
        &self.rewrite_in
    }

    /// Whether nothing is done to frames but to rewrite their tags and to send them out of another interface.
    #[inline(always)]
    pub(crate) fn is_plain_xconnect(&self) -> bool {
        let only = Bitmap::default().with(Input::Xconnect);
        let tags = Bitmap::default().with(Input::TagRewrite);
        self.mode == XCONNECT && self.input & !tags.0 == only.0 && self.pbb == 0
    }

    /// Where frames that go out are to be sent, if nothing is done to them but to rewrite their tags.
    #[inline(always)]
    pub(crate) fn plain_output(&self) -> Option<Edge> {
        (self.plain_edge != 0).then_some(Edge(self.plain_edge))
    }

    /// The same record, with what follows from its other fields.
    pub(crate) fn completed(self) -> Self {
        let plain = self.mode != 0 && self.output == 0 && self.group == 0 && self.pbb == 0;
        L2Data { plain_edge: if plain { self.out_edge } else { 0 }, ..self }
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
    pub(crate) pbb: TwinTable<PbbData>,
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
    NoFeature,
    /// Out of another interface.
    Xconnect(SwIfIndex),
    /// The interface is not in layer 2.
    Off,
}

/// The features that a packet may run through by what it is. `first` are those of a port that limits frames for groups.
#[inline(always)]
fn of_packet(pkt: &Packet<'_>, first: Bitmap) -> Bitmap {
    let Some(header) = pkt.header::<EthernetHeader>() else { return Bitmap::default() };
    if !header.dst().is_multicast() {
        let all = Bitmap::ORDINARY.without(Input::ArpTerm);
        return if header.ether_type() == EtherType::ARP { all } else { all.without(Input::ArpForward) };
    }
    of_group(pkt, *header, first)
}

/// Whether frames for groups go to their limit now, by the features that are left.
fn is_at_limit(left: Bitmap) -> bool {
    let behind_arc = left.behind(Input::Arc.into());
    left.has(Place::STORM) && behind_arc == left
}

fn of_group(pkt: &Packet<'_>, header: EthernetHeader, first: Bitmap) -> Bitmap {
    if is_at_limit(first) {
        return Bitmap::default().with(Place::STORM);
    }
    let is_arp = header.ether_type() == EtherType::ARP;
    let mut all = if is_arp { Bitmap::ORDINARY } else { Bitmap::ORDINARY.without(Input::ArpForward) };
    for feature in [Input::Forward, Input::UnknownFlood, Input::UnknownForward] {
        all = all.without(feature);
    }
    let next = pkt.data().get(EthernetHeader::LEN + IP6_NEXT);
    let asks = is_arp || header.ether_type() == EtherType::IP6 && next == Some(&ICMP6);
    if asks { all } else { all.without(Input::ArpTerm) }
}

/// The same on a port that limits frames for groups.
#[cold]
fn limited(left: Bitmap, pkt: &Packet<'_>) -> Bitmap {
    let for_group = pkt.header::<EthernetHeader>().is_some_and(|header| header.dst().is_multicast());
    let with_limit = left.with(Place::STORM);
    if for_group && is_at_limit(with_limit) { Bitmap::default().with(Place::STORM) } else { left }
}

impl Path {
    /// What packets read of an interface.
    #[inline(always)]
    pub fn data<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> &'g L2Data {
        self.table.load(interface.0 as usize, guard)
    }

    /// Does to a provider's header of a frame what its interface does. `None`, and the frame is as it was: it is not one of
    /// the interface's.
    #[inline(always)]
    pub(crate) fn apply_pbb(&self, data: &L2Data, pkt: &mut Packet<'_>, guard: Guard<'_>) -> Option<()> {
        if data.pbb == 0 { Some(()) } else { self.change_header(pkt.reborrow(), guard) }
    }

    #[cold]
    fn change_header(&self, mut pkt: Packet<'_>, guard: Guard<'_>) -> Option<()> {
        let pkt = &mut pkt;
        match self.side {
            Side::In => self.pbb.load(pkt.rx().0 as usize, guard).rx.apply(pkt),
            Side::Out => self.pbb.load(pkt.tx().0 as usize, guard).tx.apply(pkt),
        }
    }

    /// The features of a packet on its way in or out.
    #[inline(always)]
    pub(crate) fn features(&self, data: &L2Data, pkt: &Packet<'_>) -> Bitmap {
        match self.side {
            Side::In => Bitmap(data.input).and(of_packet(pkt, Bitmap::default())),
            // The filter of tags is part of `l2-output` itself.
            Side::Out => Bitmap(data.output).without(Output::EfpFilter),
        }
    }

    /// Those with which it begins.
    #[inline(always)]
    pub(crate) fn start(&self, data: &L2Data, pkt: &Packet<'_>) -> Bitmap {
        match self.side {
            Side::In => Bitmap(data.input).and(of_packet(pkt, Bitmap(data.input))),
            Side::Out => self.features(data, pkt),
        }
    }

    /// Those that are left behind a feature.
    #[inline(always)]
    fn left(&self, data: &L2Data, pkt: &Packet<'_>, place: Place) -> Bitmap {
        let left = self.features(data, pkt).behind(place);
        let may_be_limited = self.side == Side::In && place <= Input::Arc.into();
        if may_be_limited && Bitmap(data.input).has(Place::STORM) { limited(left, pkt) } else { left }
    }

    /// The first of these features.
    #[inline(always)]
    pub(crate) fn step(&self, data: &L2Data, left: Bitmap) -> Step {
        let Some(first) = left.first() else { return Step::End };
        let (arc, xconnect) = (Place::from(Input::Arc), Place::from(Input::Xconnect));
        if first == arc {
            return Step::Arc;
        }
        if self.side == Side::In && first == xconnect {
            return Step::Xconnect(SwIfIndex(data.peer));
        }
        match self.edges.get(first.number()).map_or(0, |edge| edge.load(Ordering::Relaxed)) {
            0 => Step::NoFeature,
            edge => Step::Feature(Edge(edge)),
        }
    }

    /// The next step of a packet that comes from the feature at `place`, or begins.
    #[inline(always)]
    pub(crate) fn next(&self, pkt: &Packet<'_>, place: Option<Place>, guard: Guard<'_>) -> Step {
        let interface = if self.side == Side::In { pkt.rx() } else { pkt.tx() };
        let data = self.data(interface, guard);
        if !data.is_on() {
            return Step::Off;
        }
        let left = match place {
            None => self.start(data, pkt),
            Some(place) => self.left(data, pkt, place),
        };
        self.step(data, left)
    }

    /// Where a feature's node at `place` sends a packet it is done with, as an edge of that node; `None`: to the end, which
    /// is `feature-bitmap-drop` for packets that come in and `interface-output` for those that go out. For nodes that
    /// share the edges of `l2-input` or `l2-output`, as registered ones do.
    ///
    /// A packet that is cross-connected behind the feature has its sending interface then.
    #[inline(always)]
    pub fn behind(&self, pkt: &mut Packet<'_>, place: impl Into<Place>, guard: Guard<'_>) -> Option<Edge> {
        match self.next(pkt, Some(place.into()), guard) {
            Step::Feature(edge) => Some(edge),
            Step::Xconnect(peer) => {
                pkt.meta_mut().tx = peer;
                Some(crate::node::input::OUTPUT)
            }
            Step::Arc => {
                let edge = self.edges.get(Place::from(Input::Arc).number())?.load(Ordering::Relaxed);
                (edge != 0).then_some(Edge(edge))
            }
            _ => None,
        }
    }

    /// The edge to what stands at a place, out of turn.
    #[inline]
    pub fn to(&self, place: Place) -> Option<Edge> {
        let edge = self.edges.get(place.number())?.load(Ordering::Relaxed);
        (edge != 0).then_some(Edge(edge))
    }

    /// As [`Path::behind`], for a frame that has just been within its port's limit.
    #[inline]
    pub fn behind_limit(
        &self,
        pkt: &mut Packet<'_>,
        place: impl Into<Place>,
        guard: Guard<'_>,
    ) -> Option<Edge> {
        let data = self.data(pkt.rx(), guard);
        match self.step(data, self.features(data, pkt).behind(place.into())) {
            Step::Feature(edge) => Some(edge),
            _ => None,
        }
    }
}

const _: () = assert!(Input::Arc as u8 == crate::bitmap::Output::Arc as u8, "one place for both arcs");
