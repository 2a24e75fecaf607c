//! The control plane of layer 2: the only code that writes the table packets read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::atomic::Ordering;

use shoal_ethernet::Ethernet;
use shoal_graph::{ArcSide, ArcSpec, Graph, NodeIndex};
use shoal_infra::{TwinTable, TwinTableWriter, Zeroable};
use shoal_interface::{Event, InterfaceError, Interfaces, Layer, MAX_INTERFACES, SwIfIndex};
use shoal_module::{Control, InitError};

use crate::bitmap::{Bitmap, Input, Output, Place};
use crate::node::bitmap_drop::BitmapDrop;
use crate::node::input::L2Input;
use crate::node::output::L2Output;
use crate::table::{FeatureEdges, L2Data, Path, Side};
use crate::{INPUT_ARC, OUTPUT_ARC};

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum L2Error {
    /// A cross-connect leads to another interface.
    #[error("{0} cannot be connected to itself")]
    Itself(String),
    /// Only Ethernet has frames.
    #[error("{0} is not an Ethernet interface")]
    NotEthernet(String),
    /// The table cannot be written.
    #[error("layer-2 table: {0}")]
    Table(String),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
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
    Bridge(u32),
}

#[derive(Clone, Copy, Default)]
struct OnInterface {
    mode: Mode,
    /// Features that were switched on, besides those of the mode.
    input: Bitmap,
    output: Bitmap,
}

/// Layer 2 of all interfaces.
pub struct L2 {
    interfaces: Rc<Interfaces>,
    graph: Rc<Graph>,
    nodes: [NodeIndex; 2],
    paths: [Path; 2],
    writer: RefCell<TwinTableWriter<L2Data>>,
    on: RefCell<BTreeMap<SwIfIndex, OnInterface>>,
    /// What the features of a domain's members are cut down to.
    domains: RefCell<BTreeMap<u32, Bitmap>>,
}

impl L2 {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let graph = control.graph()?;
        let interfaces = control.get::<Interfaces>()?;
        let (table, writer) = TwinTable::with_capacity(MAX_INTERFACES)?;
        let path = |side| Path { table: table.clone(), edges: FeatureEdges::default(), side };
        let paths = [path(Side::In), path(Side::Out)];
        let arc = |name, side, starts, end| graph.add_arc(ArcSpec { name, side, starts, end });
        arc(INPUT_ARC, ArcSide::Receive, &["l2-input"], "l2-input-feat-arc-end");
        arc(OUTPUT_ARC, ArcSide::Send, &["l2-output"], "l2-output-feat-arc-end");
        let [input, output] = &paths;
        let (to_input, to_output) = (graph.arc(INPUT_ARC)?, graph.arc(OUTPUT_ARC)?);
        let nodes = [
            graph.add_packet(L2Input::<false> { path: input.clone(), arc: to_input.clone() })?,
            graph.add_packet(L2Output::<false> { path: output.clone(), arc: to_output.clone() })?,
        ];
        let ends = [
            graph.add_packet(L2Input::<true> { path: input.clone(), arc: to_input })?,
            graph.add_packet(L2Output::<true> { path: output.clone(), arc: to_output })?,
        ];
        for (end, node) in ends.into_iter().zip(nodes) {
            graph.share_edges(end, node)?;
        }
        graph.add_packet(BitmapDrop)?;
        control.get::<Ethernet>()?.set_l2_input("l2-input")?;
        let l2 = Rc::new_cyclic(|weak: &Weak<L2>| {
            let this = weak.clone();
            interfaces.subscribe(move |_, event| {
                if let (Some(l2), Event::Deleting(interface)) = (this.upgrade(), event) {
                    l2.forget(interface);
                }
            });
            L2 {
                interfaces,
                graph: Rc::clone(&graph),
                nodes,
                paths,
                writer: RefCell::new(writer),
                on: RefCell::default(),
                domains: RefCell::default(),
            }
        });
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
        Ok(l2)
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

    /// A feature of packets that come in is run by a node, which is in the graph.
    ///
    /// # Errors
    /// The graph refuses.
    pub fn register_input(&self, feature: Input, node: NodeIndex) -> Result<(), InitError> {
        let [input, _] = self.nodes;
        self.register(&self.input_path(), feature.into(), input, node)
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
        if let Some(slot) = path.edges.get(place.number()) {
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

    /// Puts an interface into a mode.
    ///
    /// # Errors
    /// There is no such interface or peer, one of them is not Ethernet, they are the same, or the device cannot take
    /// frames for others.
    pub fn set_mode(&self, interface: SwIfIndex, mode: Mode) -> Result<(), L2Error> {
        for index in
            std::iter::once(interface).chain(if let Mode::Xconnect(peer) = mode { Some(peer) } else { None })
        {
            let name = self.interfaces.name(index)?;
            if !self.interfaces.data(index)?.flags().has(shoal_interface::IfFlags::ETHERNET) {
                return Err(L2Error::NotEthernet(name));
            }
        }
        if mode == Mode::Xconnect(interface) {
            return Err(L2Error::Itself(self.interfaces.name(interface)?));
        }
        let layer = if mode == Mode::L3 { Layer::Three } else { Layer::Two };
        self.interfaces.set_layer(interface, layer)?;
        let old = self.on(interface);
        // Back in layer 3 nothing is kept, as in VPP.
        let new = if mode == Mode::L3 { OnInterface::default() } else { OnInterface { mode, ..old } };
        self.put(interface, new)
    }

    /// Switches a feature of packets that come in on or off for an interface in layer 2.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn set_input(&self, interface: SwIfIndex, input: Bitmap) -> Result<(), L2Error> {
        self.put(interface, OnInterface { input, ..self.on(interface) })
    }

    /// The same of packets that go out.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn set_output(&self, interface: SwIfIndex, output: Bitmap) -> Result<(), L2Error> {
        self.put(interface, OnInterface { output, ..self.on(interface) })
    }

    /// Cuts the features of a bridge domain's members down to these.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn set_domain(&self, domain: u32, features: Bitmap) -> Result<(), L2Error> {
        self.domains.borrow_mut().insert(domain, features);
        let of_domain = |on: &OnInterface| on.mode == Mode::Bridge(domain);
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
        } else if on.mode == Mode::L3 {
            self.on.borrow_mut().remove(&interface);
        }
        stored
    }

    /// Writes what packets read of an interface.
    fn renew(&self, interface: SwIfIndex) -> Result<(), L2Error> {
        let on = self.on(interface);
        let arc = |name: &str| self.graph.arc(name).is_ok_and(|arc| arc.any(interface));
        let with_arc = |all: Bitmap, name, place: Place| if arc(name) { all.with(place) } else { all };
        let data = match on.mode {
            Mode::L3 => L2Data::zeroed(),
            Mode::Xconnect(_) | Mode::Bridge(_) => {
                let (input, peer) = if let Mode::Xconnect(peer) = on.mode {
                    (on.input.with(Input::Xconnect), peer.0)
                } else {
                    let usual = [Input::Learn, Input::Forward, Input::UnknownFlood, Input::Flood];
                    (usual.into_iter().fold(on.input, Bitmap::with), 0)
                };
                let domain = match on.mode {
                    Mode::Bridge(domain) => self.domains.borrow().get(&domain).copied(),
                    _ => None,
                };
                let input = input.and(domain.unwrap_or(Bitmap::ALL));
                let Bitmap(input) = with_arc(input, INPUT_ARC, Input::Arc.into());
                let Bitmap(output) = with_arc(on.output, OUTPUT_ARC, Output::Arc.into());
                L2Data { on: 1, input, output, peer }
            }
        };
        let (at, mut writer) = (interface.0 as usize, self.writer.borrow_mut());
        if writer.get(at) == Some(&data) {
            return Ok(());
        }
        writer.store(at, data).map_err(|e| L2Error::Table(e.to_string()))
    }

    fn forget(&self, interface: SwIfIndex) {
        if self.on.borrow_mut().remove(&interface).is_some()
            && let Err(e) = self.renew(interface)
        {
            tracing::warn!(%interface, "a deleted interface stays in layer 2: {e}");
        }
    }
}
