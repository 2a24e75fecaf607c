//! `span-input` and `span-output`: mirror what devices give and take.
//! device-input -> **span-input** -> the next feature or device-input-arc-end | interface-output
//! <name>-output -> **span-output** -> the next feature or interface-output-arc-end | interface-output

use std::sync::Arc;

use shoal_buffer::{Buffer, Frame};
use shoal_derive::NextNodes;
use shoal_graph::{Edge, FrameCx, FrameNode, NextNodes as _};
use shoal_infra::Published;
use shoal_interface::{IfTable, SwIfIndex};

use super::{Error, mirror};
use crate::Mirrors;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A copy.
    #[node("interface-output")]
    Copy,
    /// The next feature, or the end of the arc.
    To(Edge),
}

/// The code of both; with `TX` of frames that are sent.
pub struct SpanDevice<const TX: bool> {
    /// Sources and destinations.
    pub mirrors: Arc<Published<Mirrors>>,
    /// All interfaces: frames of sub-interfaces are their port's too.
    pub interfaces: IfTable,
}

impl<const TX: bool> SpanDevice<TX> {
    fn one(&self, mirrors: &Mirrors, mut buffer: Buffer, cx: &mut FrameCx<'_>) -> Buffer {
        let pkt = cx.cache().packet(&mut buffer);
        let (index, sources) =
            if TX { (pkt.tx(), &mirrors.device_tx) } else { (pkt.rx(), &mirrors.device_rx) };
        let port = SwIfIndex(self.interfaces.get(index, cx.guard()).hardware);
        let own = sources.get(&index);
        let of_port = sources.get(&port).filter(|_| port != index);
        let edge = |_: &_| Next::Copy.edge();
        if let Some(source) = own {
            buffer = mirror(cx, buffer, source, &[], edge);
        }
        if let Some(source) = of_port {
            buffer = mirror(cx, buffer, source, own.map_or(&[], |own| &own.targets), edge);
        }
        buffer
    }
}

impl<const TX: bool> FrameNode for SpanDevice<TX> {
    const NAME: &'static str = if TX { "span-output" } else { "span-input" };
    type Next = Next;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let mirrors = self.mirrors.load(cx.guard());
        cx.count(Error::Packets, frame.len() as u64);
        for buffer in frame.drain() {
            let mut buffer = self.one(mirrors, buffer, cx);
            let mut pkt = cx.cache().packet(&mut buffer);
            let edge = cx.next_feature(&mut pkt);
            cx.send(edge, buffer);
        }
    }
}
