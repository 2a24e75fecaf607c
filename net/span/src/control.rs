//! The mirrors: sources and destinations.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use shoal_graph::{FeatureSpec, FrameNode};
use shoal_infra::Published;
use shoal_interface::{DEVICE_INPUT_ARC, Event, InterfaceError, Interfaces, OUTPUT_ARC, SwIfIndex};
use shoal_l2::{Input, L2, L2Error, Output};
use shoal_module::{Control, InitError};

use crate::node::device::SpanDevice;
use crate::node::l2::{SpanL2, SpanL2Input, SpanL2Output};
use crate::table::{Level, MirrorDirections, Mirrors, Source, Sources, Target};

const RX: &str = <SpanDevice<false> as FrameNode>::NAME;
const TX: &str = <SpanDevice<true> as FrameNode>::NAME;

/// Why an interface cannot be mirrored so; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    /// A copy would go where the frame goes.
    #[error("Invalid interface: {0} cannot be mirrored to itself")]
    Itself(String),
    /// The copies have no destination.
    #[error("Invalid interface: name the destination of the copies, or `disable`")]
    NoDestination,
    /// Frames are received by ports, which find out afterwards whose they are.
    #[error(
        "Invalid interface: {0} is a sub-interface, and what it receives is copied in layer 2 only: say `l2', `tx', or mirror its port"
    )]
    SubInterface(String),
    /// The destination sends nothing.
    #[error("Invalid interface: {0} sends no packets")]
    SendsNothing(String),
    /// Layer 2 refused.
    #[error(transparent)]
    L2(#[from] L2Error),
    /// An interface is not there, or refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}

/// One interface that is mirrored to another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mirror {
    /// Whose frames are copied.
    pub source: SwIfIndex,
    /// Where the copies go.
    pub destination: SwIfIndex,
    /// What is copied at the device.
    pub device: MirrorDirections,
    /// What is copied in layer 2.
    pub l2: MirrorDirections,
}

/// All mirrors.
pub struct Span {
    interfaces: Rc<Interfaces>,
    l2: Rc<L2>,
    /// By source and destination: the ways of each level.
    all: RefCell<BTreeMap<(SwIfIndex, SwIfIndex), [MirrorDirections; 2]>>,
    mirrors: Arc<Published<Mirrors>>,
}

impl Span {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces, l2) = (control.graph()?, control.get::<Interfaces>()?, control.get::<L2>()?);
        let mirrors = Arc::new(Published::new(Mirrors::default()));
        let table = || (Arc::clone(&mirrors), interfaces.table());
        let (of, table_in) = table();
        graph.add_frame(SpanDevice::<false> { mirrors: of, interfaces: table_in })?;
        let (of, table_out) = table();
        graph.add_frame(SpanDevice::<true> { mirrors: of, interfaces: table_out })?;
        // Frames are copied as they come: before they are others', or another thread's.
        let first = &["bond-input", "l2-patch", "linux-cp-xc", "worker-handoff"];
        graph.add_feature(FeatureSpec { arc: DEVICE_INPUT_ARC, node: RX, before: first, after: &[] });
        graph.add_feature(FeatureSpec { arc: OUTPUT_ARC, node: TX, before: &[], after: &["interface-down"] });
        let (l2_output, output) = (graph.node("l2-output")?, interfaces.output_node());
        let span = |path, to_l2, to_interface| {
            let mirrors = Arc::clone(&mirrors);
            SpanL2 { mirrors, path, to_l2, to_interface }
        };
        let edges = (l2.input_edge(l2_output)?, l2.input_edge(output)?);
        let input = graph.add_frame(SpanL2Input(span(l2.input_path(), edges.0, edges.1)))?;
        l2.register_input(Input::Span, input)?;
        let edges = (l2.output_edge(l2_output)?, l2.output_edge(output)?);
        let sent = graph.add_frame(SpanL2Output(span(l2.output_path(), edges.0, edges.1)))?;
        l2.register_output(Output::Span, sent)?;
        let all = RefCell::default();
        let span = Rc::new(Span { interfaces: Rc::clone(&interfaces), l2, all, mirrors });
        let weak = Rc::downgrade(&span);
        interfaces.subscribe(move |_, event| {
            let Some(span) = weak.upgrade() else { return };
            match event {
                Event::Deleting(gone) => span.forget(gone),
                Event::Name(index) => span.renamed(index),
                _ => {}
            }
        });
        Ok(span)
    }

    /// All of them, by source and destination.
    pub fn list(&self) -> Vec<Mirror> {
        let of =
            |(&(source, destination), &[device, l2]): (&(SwIfIndex, SwIfIndex), &[MirrorDirections; 2])| {
                Mirror { source, destination, device, l2 }
            };
        self.all.borrow().iter().map(of).collect()
    }

    /// Mirrors the frames of an interface to another one; with [`MirrorDirections::NONE`] no longer.
    ///
    /// # Errors
    /// One of them is not there, they are the same, or it is a sub-interface whose port receives its frames.
    pub fn set(
        &self,
        level: Level,
        source: SwIfIndex,
        destination: SwIfIndex,
        ways: MirrorDirections,
    ) -> Result<(), SpanError> {
        let (from, to) = (self.interfaces.name(source)?, self.interfaces.name(destination)?);
        if source == destination {
            return Err(SpanError::Itself(from));
        }
        if ways != MirrorDirections::NONE && self.interfaces.output_node_of(destination).is_err() {
            return Err(SpanError::SendsNothing(to));
        }
        if level == Level::Device && ways.rx && self.interfaces.sub(source).is_some() {
            return Err(SpanError::SubInterface(from));
        }
        self.change(source, destination, |all| *at(all, level) = ways)
    }

    /// Mirrors nothing more of an interface at a level.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn clear(&self, level: Level, source: SwIfIndex) -> Result<(), SpanError> {
        self.interfaces.name(source)?;
        let of_source = |mirror: &Mirror| mirror.source == source;
        for mirror in self.list().into_iter().filter(of_source) {
            self.change(source, mirror.destination, |all| *at(all, level) = MirrorDirections::NONE)?;
        }
        Ok(())
    }

    fn change(
        &self,
        source: SwIfIndex,
        destination: SwIfIndex,
        change: impl FnOnce(&mut [MirrorDirections; 2]),
    ) -> Result<(), SpanError> {
        let key = (source, destination);
        let old = self.all.borrow().get(&key).copied().unwrap_or_default();
        let mut new = old;
        change(&mut new);
        self.put(key, new);
        let done = self.enable(source);
        if done.is_err() {
            self.put(key, old);
            self.enable(source)?;
        }
        done
    }

    fn put(&self, key: (SwIfIndex, SwIfIndex), ways: [MirrorDirections; 2]) {
        if ways == [MirrorDirections::NONE; 2] {
            self.all.borrow_mut().remove(&key);
        } else {
            self.all.borrow_mut().insert(key, ways);
        }
        self.publish();
    }

    fn publish(&self) {
        let name = |index| self.interfaces.name(index).unwrap_or_default().into_boxed_str();
        let sources = |wanted: fn(&Mirror) -> bool| {
            let mut sources = Sources::new();
            for Mirror { source, destination: index, .. } in self.list().into_iter().filter(wanted) {
                let of = || Source { name: name(source), targets: Vec::new() };
                sources.entry(source).or_insert_with(of).targets.push(Target { index, name: name(index) });
            }
            sources
        };
        self.mirrors.replace(Mirrors {
            device_rx: sources(|mirror| mirror.device.rx),
            device_tx: sources(|mirror| mirror.device.tx),
            l2_rx: sources(|mirror| mirror.l2.rx),
            l2_tx: sources(|mirror| mirror.l2.tx),
        });
    }

    /// The nodes see an interface's frames while there is something to copy.
    fn enable(&self, source: SwIfIndex) -> Result<(), SpanError> {
        let mirrors = self.mirrors.get();
        let has = |sources: &Sources| sources.contains_key(&source);
        self.interfaces.enable_feature(DEVICE_INPUT_ARC, RX, source, has(&mirrors.device_rx))?;
        self.interfaces.enable_feature(OUTPUT_ARC, TX, source, has(&mirrors.device_tx))?;
        self.l2.keep_input(source, Input::Span, has(&mirrors.l2_rx))?;
        Ok(self.l2.keep_output(source, Output::Span, has(&mirrors.l2_tx))?)
    }

    fn forget(&self, gone: SwIfIndex) {
        let of_it = |mirror: &Mirror| mirror.source == gone || mirror.destination == gone;
        for Mirror { source, destination, .. } in self.list().into_iter().filter(of_it) {
            self.put((source, destination), [MirrorDirections::NONE; 2]);
            if let Err(e) = self.enable(source) {
                tracing::warn!(%source, "a mirror stays: {e}");
            }
        }
    }

    fn renamed(&self, index: SwIfIndex) {
        if self.list().iter().any(|mirror| mirror.source == index || mirror.destination == index) {
            self.publish();
        }
    }
}

fn at(all: &mut [MirrorDirections; 2], level: Level) -> &mut MirrorDirections {
    let [device, l2] = all;
    match level {
        Level::Device => device,
        Level::L2 => l2,
    }
}
