//! `worker-handoff`: spread an interface's packets over workers by their flow.
//! device-input -> **worker-handoff** -> the next feature or device-input-arc-end, on the worker of the flow
//!
//! A frame node, because it gives packets to other threads.

use shoal_buffer::{Buffer, Frame};
use shoal_derive::TraceLine;
use shoal_graph::{FrameCx, FrameNode, NoError, NoNext};
use shoal_infra::TwinTable;
use shoal_interface::{IfFlags, IfTable};

use crate::flow::{hash, hash_ip};
use crate::spread::Spread;

/// What `show trace` says.
#[derive(TraceLine)]
#[line("sw_if_index {rx}, next thread {thread}, flow hash {hash:08x}")]
struct Trace {
    rx: u32,
    thread: usize,
    hash: u32,
}

/// Hands packets over. A ring that is full drops them: `error-drop: handoff ring full`.
pub struct WorkerHandoff {
    pub(crate) interfaces: IfTable,
    pub(crate) spreads: TwinTable<Spread>,
    pub(crate) seed: u64,
}

impl WorkerHandoff {
    #[inline(always)]
    fn one(&self, mut buffer: Buffer, cx: &mut FrameCx<'_>) {
        let mut pkt = cx.cache().packet(&mut buffer);
        let rx = pkt.rx();
        let spread = self.spreads.load(rx.0 as usize, cx.guard());
        let ethernet = self.interfaces.get(rx, cx.guard()).flags().has(IfFlags::ETHERNET);
        let of = if ethernet { hash } else { hash_ip };
        let flow = of(pkt.data(), self.seed, spread.rules());
        pkt.meta_mut().flow_hash = flow;
        let edge = cx.next_feature(&mut pkt);
        // Not enabled any more: the packet stays here.
        let thread = spread.pick(flow).unwrap_or(cx.thread());
        cx.trace(&pkt, || Trace { rx: rx.0, thread, hash: flow });
        cx.handoff(thread, cx.target(edge), buffer);
    }
}

impl FrameNode for WorkerHandoff {
    const NAME: &'static str = "worker-handoff";
    type Next = NoNext;
    type Error = NoError;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        frame.drain().for_each(|buffer| self.one(buffer, cx));
    }
}
