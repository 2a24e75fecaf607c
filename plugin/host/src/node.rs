//! A plugin's node: the plugin decides, the router checks and acts.
//! wherever the plugin says -> **the plugin's name for it** -> the next nodes it names, or the next feature
//!
//! A frame node, because a plugin is called once for a frame.

use shoal_buffer::{DATA_SIZE, FRAME_SIZE, Flags, Frame, HEADROOM, Packet};
use shoal_graph::{Edge, ErrorCounter, ErrorCounters, FrameCx, FrameNode, NoError, NoNext, Severity};
use shoal_plugin_abi::{SHOAL_NEXT_DROP, SHOAL_NEXT_FEATURE, SHOAL_NEXT_UNDECIDED};

use crate::sys::{Call, Code, Decision, MAX_COUNTERS, process};

/// A counter of the node, by its position: the plugin's, then [`OWN_COUNTERS`].
#[derive(Clone, Copy)]
struct Counter(u32);

impl ErrorCounters for Counter {
    const COUNTERS: &'static [ErrorCounter] = &[];

    fn index(self) -> u32 {
        self.0
    }
}

const fn own(name: &'static str, description: &'static str) -> ErrorCounter {
    ErrorCounter { name, description, severity: Severity::Error, at: None }
}

/// What the router counts for every node of a plugin, behind what the plugin counts.
pub(crate) const OWN_COUNTERS: [ErrorCounter; 4] = [
    own("undecided", "the plugin decided nothing"),
    own("bad_next", "the plugin named a next node that is none"),
    own("bad_length", "the plugin moved the packet's bytes out of its buffer"),
    own("bad_error", "the plugin dropped for a reason that is none"),
];

/// Positions in [`OWN_COUNTERS`].
const UNDECIDED: u32 = 0;
const BAD_NEXT: u32 = 1;
const BAD_LENGTH: u32 = 2;
const BAD_ERROR: u32 = 3;

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PacketOutcome {
    Send(Edge),
    Drop(u32),
}

/// A node of a plugin.
pub(crate) struct PluginNode {
    pub(crate) code: Code,
    /// How many next nodes it names.
    pub(crate) next: u16,
    /// How many counters are the plugin's.
    pub(crate) counters: u32,
}

/// Puts the front and the end of the first segment where the plugin wants them; `None`: they may not be there.
fn resize(pkt: &mut Packet<'_>, (start, length): (usize, usize)) -> Option<()> {
    let (old_start, old_length) = (pkt.headroom(), pkt.segment_len());
    if (start, length) == (old_start, old_length) {
        return Some(());
    }
    let (old_end, end) = (old_start + old_length, start.checked_add(length)?);
    let has_rest = pkt.len() > old_length;
    if end > HEADROOM + DATA_SIZE || (has_rest && end != old_end) || (pkt.is_chained() && end > old_end) {
        return None;
    }
    if end > old_end {
        pkt.put(end - old_end)?;
    }
    if start > old_start { pkt.pull(start - old_start) } else { pkt.push(old_start - start) }?;
    if end < old_end { pkt.truncate(length) } else { Some(()) }
}

impl PluginNode {
    fn fate(&self, pkt: &mut Packet<'_>, decision: &Decision<'_>, cx: &FrameCx<'_>) -> PacketOutcome {
        let bad = |what: u32| PacketOutcome::Drop(self.counters + what);
        if resize(pkt, decision.bytes()).is_none() {
            return bad(BAD_LENGTH);
        }
        match decision.next() {
            SHOAL_NEXT_FEATURE => match cx.next_feature(pkt) {
                // On no arc.
                Edge::DROP => bad(BAD_NEXT),
                edge => PacketOutcome::Send(edge),
            },
            // The declared nodes follow edge 0.
            next if next < self.next => PacketOutcome::Send(Edge(1 + next)),
            SHOAL_NEXT_DROP if u32::from(decision.error()) < self.counters => {
                PacketOutcome::Drop(u32::from(decision.error()))
            }
            SHOAL_NEXT_DROP => bad(BAD_ERROR),
            SHOAL_NEXT_UNDECIDED => bad(UNDECIDED),
            _ => bad(BAD_NEXT),
        }
    }
}

#[cold]
fn say(pkt: &mut Packet<'_>, decision: &Decision<'_>, fate: PacketOutcome, cx: &FrameCx<'_>) {
    let next = || match fate {
        PacketOutcome::Send(edge) => format!("next {}", cx.node_name(cx.target(edge))),
        PacketOutcome::Drop(_) => "drop".to_owned(),
    };
    let said = decision.said(pkt).unwrap_or_else(next);
    cx.trace(pkt, || said);
}

impl FrameNode for PluginNode {
    const NAME: &'static str = "plugin";
    type Next = NoNext;
    type Error = NoError;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let mut counts = [0u64; MAX_COUNTERS];
        let mut fates = [PacketOutcome::Send(Edge::DROP); FRAME_SIZE];
        let (mut first, mut same) = (None, true);
        let counts = counts.get_mut(..self.counters as usize).unwrap_or_default();
        let call = Call { memory: cx.memory(), thread: cx.thread(), now: cx.now().0, counts };
        process(&self.code, frame, call, |i, pkt, decision| {
            let traced = cx.tracing() && pkt.flags().has(Flags::TRACED);
            let fate = self.fate(pkt, decision, cx);
            if traced {
                say(pkt, decision, fate, cx);
            }
            same &= *first.get_or_insert(fate) == fate;
            if let Some(slot) = fates.get_mut(i) {
                *slot = fate;
            }
        });
        for (at, n) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            cx.count(Counter(at as u32), *n);
        }
        match first {
            Some(PacketOutcome::Send(edge)) if same => cx.send_frame(edge, frame),
            Some(PacketOutcome::Drop(why)) if same => cx.drop_frame(frame, Counter(why)),
            _ => {
                for (buffer, fate) in frame.drain().zip(fates) {
                    match fate {
                        PacketOutcome::Send(edge) => cx.send(edge, buffer),
                        PacketOutcome::Drop(why) => cx.drop(buffer, Counter(why)),
                    }
                }
            }
        }
    }
}
