//! Streams: adding, starting, stopping, changing and showing them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_buffer::{DATA_SIZE, FRAME_SIZE, Flags};
use shoal_graph::clock::Time;
use shoal_graph::{NodeIndex, QueueId};
use shoal_interface::SwIfIndex;
use shoal_module::cli::nearest;

use super::{CreateInterface, Pg};
use crate::data::{Blueprint, Offload, Order, Random, Template};
use crate::node::stream::{Filler, Marks, StreamQueue};
use crate::receive::Receive;
use crate::stream::{Pace, Shared, Size, Source, StreamSpec};
use crate::{Mode, PgError};

/// Default bytes of a described packet.
const DEFAULT_SIZE: usize = 64;
/// Largest packet.
const MOST_BYTES: usize = 65_535;

/// A stream as the control plane keeps it.
pub(crate) struct Stream {
    pub(crate) index: u32,
    name: String,
    shared: Arc<Shared>,
    queue: QueueId,
    interface: SwIfIndex,
    size: Size,
    kind: Kind,
    /// What its packets are made from again when their size changes; nothing for a capture.
    recipe: Option<Recipe>,
    worker: usize,
    node: Option<String>,
}

/// What described packets are made from, but for their size.
#[derive(Clone)]
struct Recipe {
    blueprint: Blueprint,
    offload: Offload,
    marks: Marks,
    node: Option<NodeIndex>,
    mode: Mode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Described,
    Replayed,
}

/// A stream, as `show packet-generator` prints it.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamInfo {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Whether it sends.
    pub enabled: bool,
    /// Packets sent since it was started.
    pub sent: u64,
    /// Packets after which it stops, 0 for no limit.
    pub limit: u64,
    /// Packets per second, 0 for as fast as possible.
    pub rate: f64,
    /// Bytes of its packets.
    pub size: Size,
    /// The worker it was made for.
    pub worker: usize,
    /// The receiving interface.
    pub interface: SwIfIndex,
    /// The node its packets enter, if it is not the interface's.
    pub node: Option<String>,
    /// Whether its packets come from a capture.
    pub replayed: bool,
}

/// What may be changed of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Change {
    /// Packets after which it stops, 0 for no limit.
    pub limit: Option<u64>,
    /// Packets per second, 0 for as fast as possible.
    pub rate: Option<f64>,
    /// Most packets at once.
    pub maxframe: Option<usize>,
    /// Bytes of its packets, if it is not a capture.
    pub size: Option<Size>,
}

impl Pg {
    /// Adds a stream, stopped. One of the same name is replaced.
    ///
    /// # Errors
    /// The description does not fit together, or names what is not there; nothing is changed then.
    pub fn add_stream(&self, spec: StreamSpec) -> Result<u32, PgError> {
        let wrong = |why: String| PgError::Stream(spec.name.clone(), why);
        check(&spec).map_err(wrong)?;
        let size = size(&spec).map_err(wrong)?;
        let workers = self.graph.threads().len() - 1;
        // A number beyond the last worker begins again at the first, so that a script runs with any number of workers.
        let worker = spec.worker.unwrap_or(0) % workers.max(1);
        let node = spec.node.as_deref().map(|n| self.graph.node(n)).transpose()?;
        let index = self.free_index(&spec.name);
        let interface = match spec.interface {
            Some(interface) => {
                self.interfaces.name(interface)?;
                interface
            }
            None => self.create_interface(&CreateInterface { id: index, ..CreateInterface::default() })?,
        };
        let mode = self.mode(interface, spec.node.as_deref());
        let shared = Arc::new(Shared::new(limit(&spec), spec.rate, spec.maxframe));
        let offload = if spec.flags.has(Flags::L4_CHECKSUM_OFFLOAD) { Offload::L4 } else { Offload::No };
        let marks = marks(&spec, interface);
        let receive = self.of(interface).map(|port| port.receive()).unwrap_or_default();
        let kind = if matches!(spec.source, Source::Packets(_)) { Kind::Replayed } else { Kind::Described };
        let recipe = match &spec.source {
            Source::Blueprint(blueprint) => {
                Some(Recipe { blueprint: blueprint.clone(), offload, marks, node, mode })
            }
            Source::Packets(_) => None,
        };
        let queue = StreamQueue {
            index,
            shared: Arc::clone(&shared),
            interfaces: self.interfaces.table(),
            node,
            mode,
            marks,
            receive,
            offload,
            filler: filler(spec.source, size, offload),
            random: Random(0x9e37_79b9_7f4a_7c15),
            pace: Pace::default(),
            started: 0,
            number: 0,
        };
        let thread = if workers == 0 { 0 } else { worker + 1 };
        let queue = self.graph.add_queue(&spec.name, 0, self.input, Some(thread), Box::new(queue))?;
        let data = self.interfaces.data(interface)?;
        let nexts = node.map_or([data.rx_next(false), data.rx_next(true)], |node| [node; 2]);
        for next in nexts {
            self.graph.add_edge(self.input, next)?;
        }
        let old = self.stream(&spec.name, |s| s.queue).ok();
        if let Some(old) = old {
            drop(self.graph.remove_queue(old)?);
        }
        let name = spec.name;
        let stream =
            Stream { index, name, shared, queue, interface, size, kind, recipe, worker, node: spec.node };
        self.streams.borrow_mut().insert(index, stream);
        Ok(index)
    }

    /// The number of the stream of this name, or the smallest free one.
    fn free_index(&self, name: &str) -> u32 {
        let streams = self.streams.borrow();
        let there = streams.values().find(|s| s.name == name).map(|s| s.index);
        there.or_else(|| (0..u32::MAX).find(|i| !streams.contains_key(i))).unwrap_or(u32::MAX)
    }

    fn mode(&self, interface: SwIfIndex, node: Option<&str>) -> Mode {
        match node {
            Some(node) if node.starts_with("ip4-") => Mode::Ip4,
            Some(node) if node.starts_with("ip6-") => Mode::Ip6,
            _ => self.of(interface).map(|port| port.mode).unwrap_or_default(),
        }
    }

    fn stream<R>(&self, name: &str, look: impl FnOnce(&Stream) -> R) -> Result<R, PgError> {
        let streams = self.streams.borrow();
        if let Some(stream) = streams.values().find(|s| s.name == name) {
            return Ok(look(stream));
        }
        let near = nearest(name, streams.values().map(|s| s.name.as_str())).map(str::to_owned);
        Err(PgError::NoStream(name.to_owned(), near))
    }

    /// Starts a stream from its first packet; one that runs goes on. Its interface is set up.
    ///
    /// # Errors
    /// There is no such stream, or its interface cannot be set up.
    pub fn enable(&self, name: &str) -> Result<(), PgError> {
        let (shared, queue, interface) =
            self.stream(name, |s| (Arc::clone(&s.shared), s.queue, s.interface))?;
        if shared.is_enabled() {
            return Ok(());
        }
        self.interfaces.set_admin(interface, true)?;
        shared.enable(self.graph.clock().now());
        if let Some(queue) = self.graph.queues().into_iter().find(|q| q.id == queue) {
            self.graph.wake(queue.thread);
        }
        Ok(())
    }

    /// Stops a stream.
    ///
    /// # Errors
    /// There is no such stream.
    pub fn disable(&self, name: &str) -> Result<(), PgError> {
        self.stream(name, |s| s.shared.disable())
    }

    /// Whether a stream sends.
    ///
    /// # Errors
    /// There is no such stream.
    pub fn is_running(&self, name: &str) -> Result<bool, PgError> {
        self.stream(name, |s| s.shared.is_enabled())
    }

    /// Changes a stream, also while it runs.
    ///
    /// # Errors
    /// There is no such stream, or a value is out of range.
    pub fn configure(&self, name: &str, change: Change) -> Result<(), PgError> {
        let wrong = |why: String| PgError::Stream(name.to_owned(), why);
        if let Some(rate) = change.rate {
            check_rate(rate).map_err(wrong)?;
        }
        if let Some(maxframe) = change.maxframe {
            check_maxframe(maxframe).map_err(wrong)?;
        }
        // First, because it is all that may still be refused.
        if let Some(size) = change.size {
            self.resize(name, size)?;
        }
        self.stream(name, |s| {
            if let Some(limit) = change.limit {
                s.shared.limit.store(limit, Ordering::Relaxed);
            }
            if let Some(rate) = change.rate {
                s.shared.set_rate(rate);
            }
            if let Some(maxframe) = change.maxframe {
                s.shared.maxframe.store(maxframe as u64, Ordering::Relaxed);
            }
        })
    }

    /// Gives a stream packets of another size: a queue that goes on where the old one was.
    fn resize(&self, name: &str, size: Size) -> Result<(), PgError> {
        let wrong = |why: String| PgError::Stream(name.to_owned(), why);
        let (index, old, recipe, shared) =
            self.stream(name, |s| (s.index, s.queue, s.recipe.clone(), Arc::clone(&s.shared)))?;
        let Some(recipe) = recipe else {
            return Err(wrong("packets of a capture keep their sizes".into()));
        };
        check_size(&recipe.blueprint, size).map_err(wrong)?;
        let Recipe { blueprint, offload, marks, node, mode } = recipe;
        let now = self.graph.clock().now();
        let thread = self.graph.queues().into_iter().find(|q| q.id == old).map(|q| q.thread);
        // Both count in `shared`, so the old one goes first.
        drop(self.graph.remove_queue(old)?);
        let queue = StreamQueue {
            index,
            interfaces: self.interfaces.table(),
            node,
            mode,
            marks,
            // Described packets say themselves what they leave open.
            receive: Receive::default(),
            offload,
            filler: filler(Source::Blueprint(blueprint), size, offload),
            random: Random(0x9e37_79b9_7f4a_7c15),
            pace: Pace::begin(now),
            started: shared.start(),
            number: shared.sent(),
            shared,
        };
        let queue = self.graph.add_queue(name, 0, self.input, thread, Box::new(queue))?;
        if let Some(stream) = self.streams.borrow_mut().get_mut(&index) {
            (stream.queue, stream.size) = (queue, size);
        }
        Ok(())
    }

    /// Deletes a stream. Its packets on their way go on.
    ///
    /// # Errors
    /// There is no such stream.
    pub fn delete_stream(&self, name: &str) -> Result<(), PgError> {
        let (index, queue) = self.stream(name, |s| (s.index, s.queue))?;
        self.streams.borrow_mut().remove(&index);
        drop(self.graph.remove_queue(queue)?);
        Ok(())
    }

    /// Deletes the streams of an interface that goes away.
    pub(super) fn delete_streams_of(&self, interface: SwIfIndex) {
        let names: Vec<String> = self
            .streams
            .borrow()
            .values()
            .filter(|s| s.interface == interface)
            .map(|s| s.name.clone())
            .collect();
        for name in names {
            if let Err(e) = self.delete_stream(&name) {
                tracing::warn!(stream = name, "{e}");
            }
        }
    }

    /// Names of all streams, by number.
    pub fn stream_names(&self) -> Vec<String> {
        self.streams.borrow().values().map(|s| s.name.clone()).collect()
    }

    /// All streams, by number. Where it says that one has stopped, its last packet has left the graph.
    pub fn streams(&self) -> Vec<StreamInfo> {
        let info = |s: &Stream| StreamInfo {
            index: s.index,
            name: s.name.clone(),
            enabled: s.shared.is_enabled(),
            sent: s.shared.sent(),
            limit: s.shared.limit.load(Ordering::Relaxed),
            rate: s.shared.rate(),
            size: s.size,
            worker: s.worker,
            interface: s.interface,
            node: s.node.clone(),
            replayed: s.kind == Kind::Replayed,
        };
        let all = self.streams.borrow().values().map(info).collect();
        self.drain();
        all
    }

    /// Waits until packets that have entered the graph have left it: rounds under way, and what they hand to
    /// other threads, there and back.
    fn drain(&self) {
        if self.graph.threads().len() < 2 {
            return;
        }
        for _ in 0..4 {
            if self.graph.on_every_thread(|_| ()).is_err() {
                return;
            }
            self.graph.round();
        }
    }

    /// When the next paced stream is due, for clocks that are moved by hand.
    pub fn deadline(&self) -> Option<Time> {
        self.streams.borrow().values().filter_map(|s| s.shared.deadline()).min()
    }
}

fn check_rate(rate: f64) -> Result<(), String> {
    let fine = rate.is_finite() && (0.0..=1e12).contains(&rate);
    if fine {
        Ok(())
    } else {
        Err(format!("rate {rate}: 0 (as fast as possible) to 1e12 packets per second"))
    }
}

fn check_maxframe(maxframe: usize) -> Result<(), String> {
    let fine = (1..=FRAME_SIZE).contains(&maxframe);
    if fine { Ok(()) } else { Err(format!("maxframe {maxframe}: 1 to {FRAME_SIZE} packets")) }
}

fn check(spec: &StreamSpec) -> Result<(), String> {
    check_rate(spec.rate)?;
    check_maxframe(spec.maxframe)?;
    match &spec.source {
        Source::Packets(packets) if packets.is_empty() => Err("no packets to replay".into()),
        Source::Packets(packets) => match packets.iter().position(|p| p.len() > MOST_BYTES) {
            Some(at) => Err(format!("packet {at} has more than {MOST_BYTES} bytes")),
            None => Ok(()),
        },
        Source::Blueprint(b) if b.natural_size() == 0 && spec.size.is_none() => {
            Err("no data and no size: nothing to send".into())
        }
        Source::Blueprint(_) => Ok(()),
    }
}

fn size(spec: &StreamSpec) -> Result<Size, String> {
    let blueprint = match &spec.source {
        Source::Packets(packets) => {
            let lengths = || packets.iter().map(Vec::len);
            let (least, most) = (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0));
            return Ok(Size { least, most, order: Order::Increment });
        }
        Source::Blueprint(blueprint) => blueprint,
    };
    let natural = blueprint.natural_size().max(DEFAULT_SIZE);
    let size = spec.size.unwrap_or(Size { least: natural, most: natural, order: Order::Increment });
    check_size(blueprint, size).map(|()| size)
}

fn check_size(blueprint: &Blueprint, size: Size) -> Result<(), String> {
    let (headers, Size { least, most, .. }) = (blueprint.header_bytes().max(1), size);
    if least < headers {
        return Err(format!("size {least}: the headers alone have {headers} bytes"));
    }
    if most < least || most > MOST_BYTES {
        return Err(format!("size {least}-{most}: the longest is {least} to {MOST_BYTES} bytes"));
    }
    Ok(())
}

fn limit(spec: &StreamSpec) -> u64 {
    spec.limit.unwrap_or(match &spec.source {
        Source::Packets(packets) => packets.len() as u64,
        Source::Blueprint(_) => 0,
    })
}

fn marks(spec: &StreamSpec, rx: SwIfIndex) -> Marks {
    let mut marks = Marks {
        rx,
        tx: spec.tx_interface,
        flags: spec.flags,
        l3: 0,
        l4: 0,
        checksum_offset: 0,
        gso_size: spec.gso_size,
        gso_header: 0,
    };
    if let Source::Blueprint(blueprint) = &spec.source {
        marks.l3 = blueprint.l3().unwrap_or(0) as i16;
        if let Some((l4, checksum)) = blueprint.l4() {
            (marks.l4, marks.checksum_offset) = (l4 as i16, checksum);
            marks.gso_header = blueprint.header_bytes().saturating_sub(l4) as u16;
        }
    }
    marks
}

fn filler(source: Source, size: Size, offload: Offload) -> Filler {
    match source {
        Source::Packets(packets) => Filler::Packets(packets),
        // A packet that does not fit one buffer is rendered each time, if its fields change.
        Source::Blueprint(blueprint)
            if size.least == size.most && (size.most <= DATA_SIZE || steady(&blueprint)) =>
        {
            Filler::Template(Template::new(&blueprint, size.most, offload))
        }
        Source::Blueprint(blueprint) => {
            Filler::Sizes { blueprint, size, scratch: Vec::with_capacity(size.most) }
        }
    }
}

fn steady(blueprint: &Blueprint) -> bool {
    blueprint.fields.is_empty()
}
