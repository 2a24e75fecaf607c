//! `span-l2-input` and `span-l2-output`: mirror what bridges and cross-connects get and send.
//! l2-input -> **span-l2-input** -> the next feature | l2-output | interface-output
//! l2-output -> **span-l2-output** -> interface-output | l2-output
//!
//! Copies for a destination in layer 2 go out as its other frames do, by `l2-output`.

use std::sync::Arc;

use shoal_buffer::Frame;
use shoal_graph::{Edge, FrameCx, FrameNode, NextNodes};
use shoal_infra::{Guard, Published};
use shoal_l2::{Input, InputNext, Output, OutputNext, Path};

use super::{Error, mirror};
use crate::Mirrors;
use crate::table::{Source, Target};

/// What both nodes know.
pub struct SpanL2 {
    /// Sources and destinations.
    pub mirrors: Arc<Published<Mirrors>>,
    /// The way through the features.
    pub path: Path,
    /// The edge to `l2-output`.
    pub to_l2: Edge,
    /// The edge to `interface-output`.
    pub to_interface: Edge,
}

impl SpanL2 {
    fn edge(&self, target: &Target, guard: Guard<'_>) -> Edge {
        if self.path.data(target.index, guard).is_on() { self.to_l2 } else { self.to_interface }
    }

    fn one(
        &self,
        source: Option<&Source>,
        buffer: shoal_buffer::Buffer,
        cx: &mut FrameCx<'_>,
    ) -> shoal_buffer::Buffer {
        let guard = cx.guard();
        match source {
            Some(source) => mirror(cx, buffer, source, &[], |target| self.edge(target, guard)),
            None => buffer,
        }
    }
}

/// `span-l2-input`.
pub struct SpanL2Input(pub SpanL2);

impl FrameNode for SpanL2Input {
    const NAME: &'static str = "span-l2-input";
    type Next = InputNext;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let (guard, mirrors) = (cx.guard(), self.0.mirrors.load(cx.guard()));
        cx.count(Error::Packets, frame.len() as u64);
        for mut buffer in frame.drain() {
            let source = mirrors.l2_rx.get(&cx.cache().packet(&mut buffer).rx());
            let mut buffer = self.0.one(source, buffer, cx);
            let mut pkt = cx.cache().packet(&mut buffer);
            let next = self.0.path.behind(&mut pkt, Input::Span, guard);
            cx.send(next.unwrap_or(InputNext::BitmapDrop.edge()), buffer);
        }
    }
}

/// `span-l2-output`.
pub struct SpanL2Output(pub SpanL2);

impl FrameNode for SpanL2Output {
    const NAME: &'static str = "span-l2-output";
    type Next = OutputNext;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let (guard, mirrors) = (cx.guard(), self.0.mirrors.load(cx.guard()));
        cx.count(Error::Packets, frame.len() as u64);
        for mut buffer in frame.drain() {
            let source = mirrors.l2_tx.get(&cx.cache().packet(&mut buffer).tx());
            let mut buffer = self.0.one(source, buffer, cx);
            let mut pkt = cx.cache().packet(&mut buffer);
            let next = self.0.path.behind(&mut pkt, Output::Span, guard);
            cx.send(next.unwrap_or(OutputNext::Interface.edge()), buffer);
        }
    }
}
