//! `pg-input`: the name under which streams and injected packets enter the graph.
//! a stream | [`crate::Pg::inject`] -> **pg-input** -> the interface's input node, or the one the stream names

use std::fmt;
use std::sync::Arc;

use shoal_buffer::{Frame, Packet, SwIfIndex};
use shoal_derive::ErrorCounters;
use shoal_graph::{FrameCx, NodeIndex};
use shoal_wire::{describe_frame, describe_ip4, describe_ip6};

use crate::Mode;

/// The node's name.
pub const NAME: &str = "pg-input";

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// no buffer for a generated packet
    NoBuffer,
}

/// What `show trace` says of a packet that enters.
struct Trace {
    stream: Option<u32>,
    bytes: usize,
    rx: SwIfIndex,
    next: Arc<str>,
    start: Start,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stream {
            Some(stream) => write!(f, "stream {stream}")?,
            None => f.write_str("injected")?,
        }
        write!(f, ", {} bytes, sw_if_index {}, next_node {}", self.bytes, self.rx, self.next)?;
        write!(f, "\n{}", self.start)
    }
}

/// Bytes of a packet kept for its trace.
const TRACED_BYTES: usize = 128;

/// The first bytes of a traced packet, which say what its headers are.
pub(crate) struct Start {
    mode: Mode,
    bytes: Vec<u8>,
}

impl Start {
    pub(crate) fn of(pkt: &Packet<'_>, mode: Mode) -> Self {
        let mut bytes = vec![0; TRACED_BYTES.min(pkt.len())];
        pkt.copy_to(&mut bytes);
        Start { mode, bytes }
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mode {
            Mode::Ethernet => describe_frame(&self.bytes).fmt(f),
            Mode::Ip4 => describe_ip4(&self.bytes).fmt(f),
            Mode::Ip6 => describe_ip6(&self.bytes).fmt(f),
        }
    }
}

/// Where a frame comes from and goes to.
pub(crate) struct Entry {
    pub(crate) stream: Option<u32>,
    pub(crate) rx: SwIfIndex,
    pub(crate) next: NodeIndex,
    pub(crate) mode: Mode,
}

/// Counts a frame as received, traces what is to be traced and sends it on.
#[inline(always)]
pub(crate) fn enter(cx: &mut FrameCx<'_>, mut frame: Box<Frame>, bytes: usize, entry: &Entry) {
    cx.counters().rx.add(cx.thread(), entry.rx.0 as usize, frame.len() as u64, bytes as u64);
    if cx.wants_trace() {
        trace(cx, &mut frame, entry);
    }
    cx.forward(entry.next, frame);
}

#[cold]
fn trace(cx: &mut FrameCx<'_>, frame: &mut Frame, entry: &Entry) {
    let memory = cx.memory();
    let name: Arc<str> = cx.node_name(entry.next).into();
    for i in 0..frame.len() {
        let Some(mut pkt) = frame.packet(memory, i) else { continue };
        let Entry { stream, rx, mode, .. } = *entry;
        let start = Start::of(&pkt, mode);
        let line = Trace { stream, bytes: pkt.len(), rx, next: Arc::clone(&name), start };
        cx.begin_trace(&mut pkt, line);
        if !cx.wants_trace() {
            break;
        }
    }
}
