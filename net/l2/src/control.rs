//! The control plane of layer 2: the only code that writes the table packets read.

mod flags;
mod tags;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_ethernet::Ethernet;
use shoal_graph::{ArcSide, ArcSpec, Edge, FeatureArc, Graph, NodeIndex, PacketNode};
use shoal_infra::{TwinTable, TwinTableWriter, Zeroable};
use shoal_interface::{
    Event, IfFlags, InterfaceError, Interfaces, Layer, MAX_INTERFACES, SwIfIndex, TagsSaid,
};
use shoal_module::{Control, InitError};

use crate::bitmap::{Bitmap, Input, Output, Place};
use crate::node::arc_start::ArcStart;
use crate::node::bitmap_drop::BitmapDrop;
use crate::node::input::L2Input;
use crate::node::output::{Filter, L2Output};
use crate::node::vtr::InputRewrite;
use crate::pbb::{PbbData, PbbRewrite};
use crate::rewrite::TagRewrite;
use crate::table::{BRIDGE, FeatureEdges, L2Data, Path, Side, XCONNECT};
use crate::{INPUT_ARC, L2Nodes, OUTPUT_ARC};

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum L2Error {
    /// A cross-connect leads to another interface.
    #[error("{0} cannot be connected to itself")]
    Itself(String),
    /// Only Ethernet has frames.
    #[error("{0} is not an Ethernet interface")]
    NotEthernet(String),
    /// Frames of the interface do not have the tags that are to be taken off.
    #[error("vlan tag rewrite is not compatible with interface {0}: its frames do not have so many tags")]
    TooFewTags(String),
    /// The table cannot be written.
    #[error("layer-2 table: {0}")]
    Table(String),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}

/// What a member of a bridge domain is there for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Role {
    /// Stations are behind it.
    #[default]
    Normal,
    /// The domain's packets are routed there.
    Bvi,
    /// It gets what is for unknown stations, and nothing is flooded to it.
    UnknownForward,
}

/// A place in a bridge domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port {
    /// The domain's index.
    pub domain: u16,
    /// Members of one split-horizon group send each other nothing; 0: in none.
    pub group: u8,
    /// What it is there for.
    pub role: Role,
}

impl Port {
    /// An ordinary member of a domain.
    pub fn of(domain: u16) -> Self {
        Port { domain, group: 0, role: Role::Normal }
    }
}

/// What becomes of the frames an interface receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// They are routed.
    #[default]
    L3,
    /// They go out of another interface. The way back is another cross-connect.
    Xconnect(SwIfIndex),
    /// They are a bridge domain's.
    Bridge(Port),
}

#[derive(Clone, Copy)]
struct OnInterface {
    mode: Mode,
    /// Features that were switched on or off, those of a bridge among them.
    input: Bitmap,
    output: Bitmap,
    /// Features that it keeps whatever its mode becomes: in and out.
    kept: [Bitmap; 2],
    sequence: u16,
    tags: TagRewrite,
    pbb: PbbRewrite,
    guard: PortGuard,
}

/// What stands in front of the features of a bridge domain's member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortGuard {
    /// Frames for groups go to a node that limits them.
    pub limits_groups: bool,
    /// The same of frames for unknown stations.
    pub limits_unknown: bool,
    /// No frame comes in or goes out.
    pub is_blocked: bool,
}

impl Default for OnInterface {
    fn default() -> Self {
        OnInterface {
            mode: Mode::L3,
            input: of_members(),
            output: Bitmap::default(),
            kept: [Bitmap::default(); 2],
            sequence: 0,
            tags: TagRewrite::none(),
            pbb: PbbRewrite::none(),
            guard: PortGuard::default(),
        }
    }
}

/// The features of a bridge domain's members, unless the domain or the operator says otherwise.
fn of_members() -> Bitmap {
    let all = [
        Input::Learn,
        Input::Forward,
        Input::UnknownForward,
        Input::UnknownFlood,
        Input::ArpTerm,
        Input::ArpForward,
        Input::Flood,
    ];
    all.into_iter().fold(Bitmap::default(), Bitmap::with)
}

impl PortGuard {
    /// All that is left of a blocked port's features: in and out.
    fn blocked(output: Bitmap) -> [Bitmap; 2] {
        [Bitmap::default().with(Place::BLOCKED), output.with(Output::Blocked)]
    }

    /// These features with what stands in front of them.
    fn front(self, features: Bitmap) -> Bitmap {
        let groups = if self.limits_groups { features.with(Place::STORM) } else { features };
        if self.limits_unknown { groups.with(Place::STORM_UNKNOWN) } else { groups }
    }
}

type DetachHook = Rc<dyn Fn(SwIfIndex, Port)>;

/// Layer 2 of all interfaces.
pub struct L2 {
    interfaces: Rc<Interfaces>,
    ethernet: Rc<Ethernet>,
    graph: Rc<Graph>,
    nodes: [NodeIndex; 2],
    paths: [Path; 2],
    writer: RefCell<TwinTableWriter<L2Data>>,
    pbb: RefCell<TwinTableWriter<PbbData>>,
    on: RefCell<BTreeMap<SwIfIndex, OnInterface>>,
    /// What the features of a domain's members are cut down to, by the domain's index.
    domains: RefCell<BTreeMap<u16, Bitmap>>,
    leaving: RefCell<Vec<DetachHook>>,
}

impl L2 {
    pub(crate) fn new(control: &Rc<Control>) -> Result<(Rc<Self>, L2Nodes), InitError> {
        let graph = control.graph()?;
        let (interfaces, ethernet) = (control.get::<Interfaces>()?, control.get::<Ethernet>()?);
        let (table, writer) = TwinTable::with_capacity(MAX_INTERFACES)?;
        let (pbb, pbb_writer) = TwinTable::with_capacity(MAX_INTERFACES)?;
        let path =
            |side| Path { table: table.clone(), pbb: pbb.clone(), edges: FeatureEdges::default(), side };
        let paths = [path(Side::In), path(Side::Out)];
        let arc = |name, side, starts, end| graph.add_arc(ArcSpec { name, side, starts, end });
        arc(INPUT_ARC, ArcSide::Receive, &["l2-input", ArcStart::NAME], "l2-input-feat-arc-end");
        arc(OUTPUT_ARC, ArcSide::Send, &["l2-output"], "l2-output-feat-arc-end");
        let [input, output] = &paths;
        let (to_input, to_output) = (graph.arc(INPUT_ARC)?, graph.arc(OUTPUT_ARC)?);
        let filter = Arc::new(Filter { vlans: ethernet.vlans(), interfaces: interfaces.table() });
        let stages = L2Nodes {
            input: Arc::new(L2Input::<false> { path: input.clone(), arc: to_input.clone() }),
            rewrite: Arc::new(InputRewrite { path: input.clone() }),
            output: Arc::new(L2Output::<false> {
                path: output.clone(),
                arc: to_output.clone(),
                filter: Arc::clone(&filter),
            }),
        };
        let nodes =
            [graph.add_plain(Arc::clone(&stages.input))?, graph.add_plain(Arc::clone(&stages.output))?];
        let ends = [
            graph.add_packet(L2Input::<true> { path: input.clone(), arc: to_input.clone() })?,
            graph.add_packet(L2Output::<true> { path: output.clone(), arc: to_output, filter })?,
        ];
        for (end, node) in ends.into_iter().zip(nodes) {
            graph.share_edges(end, node)?;
        }
        graph.add_packet(BitmapDrop)?;
        let rewrite = graph.add_packet_shared(Arc::clone(&stages.rewrite))?;
        ethernet.set_l2_input("l2-input")?;
        let l2 = Rc::new_cyclic(|weak: &Weak<L2>| {
            let this = weak.clone();
            interfaces.subscribe(move |_, event| {
                if let (Some(l2), Event::Deleting(interface)) = (this.upgrade(), event) {
                    l2.forget(interface);
                }
            });
            L2 {
                interfaces,
                ethernet,
                graph: Rc::clone(&graph),
                nodes,
                paths,
                writer: RefCell::new(writer),
                pbb: RefCell::new(pbb_writer),
                on: RefCell::default(),
                domains: RefCell::default(),
                leaving: RefCell::default(),
            }
        });
        l2.register_input(Input::TagRewrite, rewrite)?;
        l2.add_arc_start(to_input)?;
        for arc in [INPUT_ARC, OUTPUT_ARC] {
            let this = Rc::downgrade(&l2);
            graph.watch_arc(arc, move |interface| {
                if let Some(l2) = this.upgrade()
                    && let Err(e) = l2.renew(interface)
                {
                    tracing::warn!(%interface, "features of layer 2 stay as they were: {e}");
                }
            })?;
        }
        Ok((l2, stages))
    }

    /// The way through the features of packets that come in, for nodes that are one of them.
    pub fn input_path(&self) -> Path {
        let [input, _] = &self.paths;
        input.clone()
    }

    /// The same of packets that go out.
    pub fn output_path(&self) -> Path {
        let [_, output] = &self.paths;
        output.clone()
    }

    /// A feature of packets that come in is run by a node, which is in the graph, has the ways out of `l2-input`
    /// ([`InputNext`](crate::InputNext)), and shares its edges from now on.
    ///
    /// # Errors
    /// The graph refuses.
    pub fn register_input(&self, place: impl Into<Place>, node: NodeIndex) -> Result<(), InitError> {
        let [input, _] = self.nodes;
        self.register(&self.input_path(), place.into(), input, node)
    }

    /// The same of packets that go out.
    ///
    /// # Errors
    /// The graph refuses.
    pub fn register_output(&self, feature: Output, node: NodeIndex) -> Result<(), InitError> {
        let [_, output] = self.nodes;
        self.register(&self.output_path(), feature.into(), output, node)
    }

    fn register(&self, path: &Path, place: Place, from: NodeIndex, to: NodeIndex) -> Result<(), InitError> {
        let edge = self.graph.add_edge(from, to)?;
        self.graph.share_edges(to, from)?;
        if let Some(slot) = path.edges.get(place.number()) {
            slot.store(edge.0, Ordering::Relaxed);
        }
        Ok(())
    }

    /// A node of packets that come in which is no feature of its own: it shares the edges of `l2-input`.
    ///
    /// # Errors
    /// The graph refuses.
    pub fn join_input(&self, node: NodeIndex) -> Result<(), InitError> {
        let [input, _] = self.nodes;
        Ok(self.graph.share_edges(node, input)?)
    }

    /// The edge by which registered nodes of packets that come in reach another node.
    ///
    /// # Errors
    /// The graph refuses.
    pub fn input_edge(&self, to: NodeIndex) -> Result<Edge, InitError> {
        let [input, _] = self.nodes;
        Ok(self.graph.add_edge(input, to)?)
    }

    /// The same of packets that go out.
    ///
    /// # Errors
    /// The graph refuses.
    pub fn output_edge(&self, to: NodeIndex) -> Result<Edge, InitError> {
        let [_, output] = self.nodes;
        Ok(self.graph.add_edge(output, to)?)
    }

    /// Features that come before those of the arc send packets there by a node of its own.
    fn add_arc_start(&self, arc: FeatureArc) -> Result<(), InitError> {
        let node = self.graph.add_packet(ArcStart { arc })?;
        let edge = self.input_edge(node)?;
        if let Some(slot) = self.input_path().edges.get(Place::from(Input::Arc).number()) {
            slot.store(edge.0, Ordering::Relaxed);
        }
        Ok(())
    }

    fn on(&self, interface: SwIfIndex) -> OnInterface {
        self.on.borrow().get(&interface).copied().unwrap_or_default()
    }

    /// The mode of an interface.
    pub fn mode(&self, interface: SwIfIndex) -> Mode {
        self.on(interface).mode
    }

    pub(crate) fn name_of(&self, interface: SwIfIndex) -> Option<String> {
        self.interfaces.name(interface).ok()
    }

    /// All interfaces that are not routed, by index, and their modes.
    pub fn modes(&self) -> Vec<(SwIfIndex, Mode)> {
        let on = self.on.borrow();
        on.iter().filter(|(_, on)| on.mode != Mode::L3).map(|(interface, on)| (*interface, on.mode)).collect()
    }

    /// Tells `leaves` of each interface that leaves a bridge domain, after it has.
    pub fn on_leaving(&self, leaves: impl Fn(SwIfIndex, Port) + 'static) {
        self.leaving.borrow_mut().push(Rc::new(leaves));
    }

    /// Whether an interface can be in layer 2.
    ///
    /// # Errors
    /// There is no such interface, or it has no Ethernet header.
    pub fn check(&self, interface: SwIfIndex) -> Result<(), L2Error> {
        let name = self.interfaces.name(interface)?;
        if !self.interfaces.data(interface)?.flags().has(IfFlags::ETHERNET) {
            return Err(L2Error::NotEthernet(name));
        }
        Ok(())
    }

    /// Puts an interface into a mode.
    ///
    /// # Errors
    /// There is no such interface or peer, one of them is not Ethernet, they are the same, or the device cannot take
    /// frames for others.
    pub fn set_mode(&self, interface: SwIfIndex, mode: Mode) -> Result<(), L2Error> {
        self.check(interface)?;
        if let Mode::Xconnect(peer) = mode {
            self.check(peer)?;
        }
        if mode == Mode::Xconnect(interface) {
            return Err(L2Error::Itself(self.interfaces.name(interface)?));
        }
        let layer = match mode {
            Mode::L3 => Layer::Three,
            Mode::Xconnect(_) => Layer::Crossed,
            Mode::Bridge(Port { role: Role::Bvi, .. }) => Layer::Bvi,
            Mode::Bridge(_) => Layer::Two,
        };
        self.interfaces.set_layer(interface, layer)?;
        let old = self.on(interface);
        let new = match (old.mode, mode) {
            // Back in layer 3 it has what a new one has, as in VPP.
            (_, Mode::L3) => OnInterface { kept: old.kept, ..OnInterface::default() },
            // What a bridge had switched off is on in another one.
            (Mode::Bridge(was), Mode::Bridge(is)) if was.domain == is.domain => OnInterface { mode, ..old },
            _ => OnInterface { mode, input: of_members(), guard: PortGuard::default(), ..old },
        };
        self.put(interface, new)?;
        if mode == Mode::L3 {
            self.interfaces.note_tag_rewrite(interface, TagsSaid::default())?;
        }
        if let Mode::Bridge(port) = old.mode
            && !matches!(mode, Mode::Bridge(new) if new.domain == port.domain)
        {
            self.tell_leaving(interface, port);
        }
        Ok(())
    }

    fn tell_leaving(&self, interface: SwIfIndex, port: Port) {
        let leaving = self.leaving.borrow().clone();
        for leaves in &leaving {
            leaves(interface, port);
        }
    }

    /// Features of packets that come in, as they were switched on or off.
    pub fn input(&self, interface: SwIfIndex) -> Bitmap {
        self.on(interface).input
    }

    /// The same of packets that go out.
    pub fn output(&self, interface: SwIfIndex) -> Bitmap {
        self.on(interface).output
    }

    /// What is learned of an interface from now on is told from what was learned before by this number.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn set_sequence(&self, interface: SwIfIndex, sequence: u16) -> Result<(), L2Error> {
        self.put(interface, OnInterface { sequence, ..self.on(interface) })
    }

    /// What stands in front of a bridge member's features.
    pub fn guard(&self, interface: SwIfIndex) -> PortGuard {
        self.on(interface).guard
    }

    /// Says what stands in front of a bridge member's features, until it leaves its domain.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn set_guard(&self, interface: SwIfIndex, guard: PortGuard) -> Result<(), L2Error> {
        self.put(interface, OnInterface { guard, ..self.on(interface) })
    }

    /// Cuts the features of a bridge domain's members down to these.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn set_domain(&self, domain: u16, features: Bitmap) -> Result<(), L2Error> {
        // Members come and go without a change for the others.
        if self.domains.borrow_mut().insert(domain, features) == Some(features) {
            return Ok(());
        }
        let of_domain = |on: &OnInterface| matches!(on.mode, Mode::Bridge(port) if port.domain == domain);
        let members: Vec<SwIfIndex> = self
            .on
            .borrow()
            .iter()
            .filter(|(_, on)| of_domain(on))
            .map(|(interface, _)| *interface)
            .collect();
        members.into_iter().try_for_each(|interface| self.renew(interface))
    }

    fn put(&self, interface: SwIfIndex, on: OnInterface) -> Result<(), L2Error> {
        let old = self.on.borrow_mut().insert(interface, on);
        let stored = self.renew(interface);
        if stored.is_err() {
            self.on.borrow_mut().insert(interface, old.unwrap_or_default());
        } else if on.mode == Mode::L3
            && on.tags == TagRewrite::none()
            && !on.pbb.is_some()
            && on.output.is_empty()
            && on.kept.iter().all(|kept| kept.is_empty())
        {
            self.on.borrow_mut().remove(&interface);
        }
        stored
    }

    /// What packets are to read of an interface.
    fn data_of(&self, interface: SwIfIndex) -> L2Data {
        let on = self.on(interface);
        let arc = |name: &str| self.graph.arc(name).is_ok_and(|arc| arc.any(interface));
        let with_arc = |all: Bitmap, name, place: Place| if arc(name) { all.with(place) } else { all };
        let zero = L2Data::zeroed();
        let placed = match on.mode {
            Mode::L3 => return zero,
            Mode::Xconnect(peer) => L2Data { mode: XCONNECT, peer: peer.0, ..zero },
            Mode::Bridge(Port { domain, group, role }) => {
                let bvi = u8::from(role == Role::Bvi);
                L2Data { mode: BRIDGE, domain, group, bvi, ..zero }
            }
        };
        let input = match on.mode {
            Mode::Bridge(port) => {
                let domain = self.domains.borrow().get(&port.domain).copied().unwrap_or_default();
                let input = on.input.and(domain);
                // Its address is known, and comes in by no other.
                let input = if port.role == Role::Bvi { input.without(Input::Learn) } else { input };
                on.guard.front(input)
            }
            _ => on.input.minus(of_members()).with(Input::Xconnect),
        };
        let takes = self.ethernet.sub(interface).map(|sub| sub.takes);
        let [rewrite_in, rewrite_out] = on.tags.both_ways(takes).unwrap_or([zero.rewrite_in; 2]);
        let rewrites = rewrite_in.is_some() || on.pbb.is_some();
        let input = if rewrites { input.with(Input::TagRewrite) } else { input };
        let [kept_in, kept_out] = on.kept;
        let input = with_arc(input.or(kept_in), INPUT_ARC, Input::Arc.into());
        let output = with_arc(on.output.or(kept_out), OUTPUT_ARC, Output::Arc.into());
        let [Bitmap(input), Bitmap(output)] = match on.mode {
            Mode::Bridge(_) if on.guard.is_blocked => PortGuard::blocked(output),
            _ => [input, output],
        };
        let [_, to] = self.nodes;
        let own = self.interfaces.output_node_of(interface).ok();
        let out_edge = own.and_then(|node| self.graph.add_edge(to, node).ok()).map_or(0, |edge| edge.0);
        let (sequence, pbb) = (on.sequence, u8::from(on.pbb.is_some()));
        L2Data { input, output, out_edge, sequence, pbb, rewrite_in, rewrite_out, ..placed }.completed()
    }

    /// Writes what packets read of an interface.
    fn renew(&self, interface: SwIfIndex) -> Result<(), L2Error> {
        let data = self.data_of(interface);
        let (at, mut writer) = (interface.0 as usize, self.writer.borrow_mut());
        if data.pbb != 0 {
            // Before packets look for it.
            self.store_pbb(interface)?;
        }
        if writer.get(at) == Some(&data) {
            return Ok(());
        }
        writer.store(at, data).map_err(|e| L2Error::Table(e.to_string()))
    }

    fn forget(&self, interface: SwIfIndex) {
        let Some(old) = self.on.borrow_mut().remove(&interface) else { return };
        if let Err(e) = self.renew(interface) {
            tracing::warn!(%interface, "a deleted interface stays in layer 2: {e}");
        }
        if let Mode::Bridge(port) = old.mode {
            self.tell_leaving(interface, port);
        }
    }
}
