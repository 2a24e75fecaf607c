//! `<interface>-tx`: the other end of a packet-generator interface.
//! `<interface>-output` -> **`<interface>-tx`** -> a capture file, a sink, or nothing
//!
//! A frame node, because a capture file is written once per frame and whole frames are freed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_buffer::{Flags, Frame};
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::{Clock, FrameCx, FrameNode, NoNext};
use shoal_vnet::{Front, coalesce, complete_checksum};

use super::input::Start;
use crate::interface::{Mode, Outlets, Port};

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// gso disabled on itf  -- gso packet drop
    #[counter("gso disabled on itf  -- gso packet drop")]
    GsoDisabled,
    /// packets merged into another
    #[severity(info)]
    Merged,
    /// capture ended: its file cannot be written
    #[severity(warn)]
    CaptureFailed,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("{bytes} bytes, sw_if_index {tx}")]
#[line("{start}")]
struct Trace {
    tx: u32,
    bytes: usize,
    start: Start,
}

/// The code of all packet generators' `-tx` nodes.
pub(crate) struct Tx {
    pub(crate) port: Arc<Port>,
    pub(crate) clock: Clock,
}

impl FrameNode for Tx {
    const NAME: &'static str = "pg-tx";
    type Next = NoNext;
    type Error = Error;

    #[inline]
    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let memory = cx.memory();
        let mut flags = Flags::default();
        frame.each_of::<false>(memory, 0..frame.len(), |_, pkt| flags = flags.with(pkt.flags()));
        if self.port.gso_size == 0 && flags.has(Flags::GSO) {
            count_large(frame, cx);
        }
        if self.port.gso_size > 0 && self.port.coalesce.load(Ordering::Relaxed) {
            self.merge(frame, cx);
            flags = flags.with(Flags::L4_CHECKSUM_OFFLOAD);
        }
        if self.port.watched.load(Ordering::Relaxed) {
            self.show(frame, cx, flags.has(Flags::L4_CHECKSUM_OFFLOAD));
        }
        if cx.tracing() {
            self.trace(frame, cx);
        }
        cx.free_frame(frame);
    }
}

/// Counts packets that a device without segmentation could not send. They are captured all the same, as in VPP: the
/// counter is the finding.
#[cold]
fn count_large(frame: &mut Frame, cx: &FrameCx<'_>) {
    let memory = cx.memory();
    let mut large = 0;
    for i in 0..frame.len() {
        large += u64::from(frame.packet(memory, i).is_some_and(|pkt| pkt.flags().has(Flags::GSO)));
    }
    cx.count(Error::GsoDisabled, large);
}

impl Tx {
    /// Merges small packets into large ones.
    #[cold]
    fn merge(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let front = if self.port.mode == Mode::Ethernet { Front::Ethernet } else { Front::Ip };
        let mut spare = cx.blank();
        let merged = coalesce(frame, &mut spare, cx.cache(), front);
        cx.recycle(spare);
        if merged > 0 {
            cx.count(Error::Merged, merged as u64);
        }
    }

    #[cold]
    fn trace(&self, frame: &mut Frame, cx: &FrameCx<'_>) {
        let memory = cx.memory();
        for i in 0..frame.len() {
            if let Some(pkt) = frame.packet(memory, i) {
                let (tx, bytes) = (pkt.tx().0, pkt.len());
                cx.trace(&pkt, || Trace { tx, bytes, start: Start::of(&pkt, self.port.mode) });
            }
        }
    }

    /// Shows the frame to the observer.
    #[cold]
    fn show(&self, frame: &mut Frame, cx: &mut FrameCx<'_>, offload: bool) {
        let (memory, at) = (cx.memory(), self.clock.wall(cx.now()));
        let mut outlets = self.port.outlets();
        let Outlets { capture, sink } = &mut *outlets;
        let mut failed = None;
        for i in 0..frame.len() {
            let Some(mut pkt) = frame.packet(memory, i) else { continue };
            if offload {
                // With impossible offsets it is shown as it is.
                let _ = complete_checksum(&mut pkt);
            }
            if let Some(sink) = sink {
                sink.put(pkt.to_vec());
            }
            if let Some(capture) = capture {
                failed = failed.or(capture.add(&pkt, at).err());
            }
        }
        if let Some(running) = capture
            && let Some(error) = failed.or(running.flush().err())
        {
            cx.count(Error::CaptureFailed, 1);
            tracing::warn!("capture into {} ended: {error}", running.path().display());
            *capture = None;
        }
    }
}
