//! Handoff: frames from one thread to another through bounded rings.
//!
//! Every ordered pair of threads has a ring. Frames leave at the end of a round, however short. When the other thread
//! is behind, so that half of its ring is full, a frame waits until it is full itself: a thread that the system has
//! stopped for a while finds 64 full frames, not 64 packets. Only when a full frame finds a full ring are its packets
//! dropped and counted (`error-drop`: `handoff ring full`). A thread that sleeps is woken.

use std::sync::Arc;

use shoal_buffer::{Buffer, Frame};
use shoal_infra::spsc::{Consumer, Producer};

use crate::MAX_THREADS;
use crate::error_drop::CONGESTION;
use crate::lane::Lane;
use crate::monitor;
use crate::node::NodeIndex;
use crate::thread::ThreadShared;
use crate::topology::Topology;

/// Frames a ring holds.
pub const RING_FRAMES: usize = 64;
/// Frames in a ring from which on short ones are kept back.
const BEHIND: usize = RING_FRAMES / 2;

/// A frame on its way to another thread. Aligned as frames are, so that the slots of a ring share no cache line: the
/// one end may fill a slot while the other empties the one before.
pub struct Handed {
    pub(crate) node: NodeIndex,
    pub(crate) traced: bool,
    pub(crate) frame: Frame,
}

const _: () = assert!(align_of::<Handed>() >= 64, "slots of a ring share no cache line");
const _: () = assert!(MAX_THREADS < u8::MAX as usize, "a byte tells which lead");

/// The way to one other thread.
pub(crate) struct ThreadRing {
    pub(crate) thread: usize,
    pub(crate) ring: Producer<Handed>,
    pub(crate) shared: Arc<ThreadShared>,
    /// The frame that is filling up, and for which node.
    filling: Frame,
    node: NodeIndex,
    sent: Sent,
}

/// What went into a ring since its threads have been there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Frames handed over.
    pub frames: u64,
    /// Packets handed over.
    pub packets: u64,
    /// Packets dropped because the ring was full.
    pub dropped: u64,
}

/// One ring, as `show handoff queues` prints it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingInfo {
    /// The thread that hands over.
    pub from: usize,
    /// The thread that takes.
    pub to: usize,
    /// Frames that wait in it.
    pub waiting: usize,
    /// Frames it holds at most.
    pub capacity: usize,
    /// What went into it.
    pub sent: Sent,
}

/// One thread's ways to all others.
pub(crate) struct Outbox {
    leads: Vec<ThreadRing>,
    /// For each thread, where its lead is; a number that is none when there is no way to it.
    by_thread: [u8; MAX_THREADS],
    /// Leads whose frame is kept back.
    held: usize,
    /// Whether frames may be kept back at all.
    pub(crate) patient: bool,
}

impl Default for Outbox {
    fn default() -> Self {
        Outbox { leads: Vec::new(), by_thread: [u8::MAX; MAX_THREADS], held: 0, patient: true }
    }
}

impl Outbox {
    /// Whether packets wait for room in a ring.
    #[inline(always)]
    pub(crate) fn holds(&self) -> bool {
        self.held != 0
    }

    /// Where the way to a thread is; `None` when it is not another thread, or one that has gone.
    #[inline(always)]
    fn at(&self, thread: usize) -> Option<usize> {
        let at = usize::from(*self.by_thread.get(thread)?);
        (at < self.leads.len()).then_some(at)
    }

    fn index(&mut self) {
        self.by_thread.fill(u8::MAX);
        for (at, lead) in self.leads.iter().enumerate() {
            if let Some(place) = self.by_thread.get_mut(lead.thread) {
                *place = at as u8;
            }
        }
    }

    pub(crate) fn connect(&mut self, thread: usize, ring: Producer<Handed>, shared: Arc<ThreadShared>) {
        self.leads.retain(|l| l.thread != thread);
        self.leads.push(ThreadRing {
            thread,
            ring,
            shared,
            filling: Frame::new(),
            node: NodeIndex(0),
            sent: Sent::default(),
        });
        self.index();
    }

    /// Its rings; `from` is the thread whose they are.
    pub(crate) fn rings(&self, from: usize) -> Vec<RingInfo> {
        let info = |l: &ThreadRing| RingInfo {
            from,
            to: l.thread,
            waiting: l.ring.len(),
            capacity: l.ring.capacity(),
            sent: l.sent,
        };
        self.leads.iter().map(info).collect()
    }

    /// The frames that fill up for other threads.
    pub(crate) fn filling(&mut self) -> impl Iterator<Item = &mut Frame> {
        self.leads.iter_mut().map(|lead| &mut lead.filling)
    }

    /// Forgets the way to a thread; what was kept back for it, and for which node.
    fn disconnect(&mut self, thread: usize) -> Option<(NodeIndex, Frame)> {
        let at = self.at(thread)?;
        let lead = self.leads.remove(at);
        self.index();
        Some((lead.node, lead.filling))
    }
}

impl Lane {
    /// No packet goes to a thread any more; those kept back for it are handled here.
    pub(crate) fn disconnect(&mut self, thread: usize) {
        let Some((node, mut frame)) = self.outbox.disconnect(thread) else { return };
        while !frame.is_empty() {
            self.frame_for(node).append(&mut frame);
        }
    }

    /// Whether there is a way to a thread.
    pub(crate) fn reaches(&self, thread: usize) -> bool {
        self.outbox.at(thread).is_some()
    }

    /// Puts a packet into the frame that is filling up for `thread`; it leaves when full or at the round's end.
    pub(crate) fn handoff(&mut self, thread: usize, node: NodeIndex, buffer: Buffer, topology: &Topology) {
        let Some(at) = self.outbox.at(thread) else {
            // The packet stays here.
            self.send(node, buffer);
            return;
        };
        let full = self.outbox.leads.get(at).is_some_and(|l| l.filling.is_full() || l.node != node);
        if full {
            self.ship(at, topology);
        }
        if let Some(lead) = self.outbox.leads.get_mut(at) {
            lead.node = node;
            if let Err(buffer) = lead.filling.push(buffer) {
                self.cache.free(buffer);
            }
        }
    }

    fn ship(&mut self, at: usize, topology: &Topology) {
        let Some(lead) = self.outbox.leads.get_mut(at) else { return };
        if lead.filling.is_empty() {
            return;
        }
        let mut frame = std::mem::take(&mut lead.filling);
        let packets = frame.len() as u64;
        let buffers = if self.monitor.is_on { monitor::buffers(&mut frame, self.memory) } else { 0 };
        let handed = Handed { node: lead.node, traced: self.tracer.active, frame };
        match lead.ring.push(handed) {
            Ok(()) => {
                lead.sent.frames += 1;
                lead.sent.packets += packets;
                self.monitor.handed += buffers;
                lead.shared.wake_if_asleep();
            }
            Err(mut back) => {
                lead.sent.dropped += packets;
                for i in 0..back.frame.len() {
                    if let Some(mut pkt) = back.frame.packet(self.memory, i) {
                        pkt.meta_mut().error = CONGESTION;
                    }
                }
                while !back.frame.is_empty() {
                    self.frame_for(topology.drop).append(&mut back.frame);
                }
            }
        }
    }

    /// At the end of a round: sends frames that are filling up on their way, but for those that are kept back. Packets
    /// that are dropped for it wait to be dispatched.
    pub(crate) fn ship_all(&mut self, topology: &Topology) {
        let (patient, mut held) = (self.outbox.patient, 0);
        for at in 0..self.outbox.leads.len() {
            let Some(lead) = self.outbox.leads.get_mut(at).filter(|l| !l.filling.is_empty()) else {
                continue;
            };
            let limit = if lead.filling.is_full() { RING_FRAMES } else { BEHIND };
            if patient && lead.ring.is_behind(limit) {
                held += 1;
            } else {
                self.ship(at, topology);
            }
        }
        self.outbox.held = held;
    }
}

/// One thread's ways from all others.
#[derive(Default)]
pub(crate) struct Inbox {
    rings: Vec<(usize, Consumer<Handed>)>,
}

impl Inbox {
    pub(crate) fn connect(&mut self, thread: usize, ring: Consumer<Handed>) {
        self.rings.push((thread, ring));
    }

    /// Takes what has come; tells how many packets.
    pub(crate) fn receive(&mut self, lane: &mut Lane) -> usize {
        let mut packets = 0;
        for (_, ring) in &mut self.rings {
            // No more than a ring's worth, so that a busy neighbour cannot keep this thread here.
            for _ in 0..RING_FRAMES {
                let Some(mut handed) = ring.pop() else { break };
                packets += handed.frame.len();
                lane.tracer.active |= handed.traced;
                while !handed.frame.is_empty() {
                    lane.frame_for(handed.node).append(&mut handed.frame);
                }
            }
        }
        packets
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rings.iter().all(|(_, ring)| ring.is_empty())
    }

    /// Forgets a thread that has gone, once its ring is empty.
    pub(crate) fn disconnect(&mut self, thread: usize) {
        self.rings.retain(|(t, ring)| *t != thread || !ring.is_empty());
    }
}
