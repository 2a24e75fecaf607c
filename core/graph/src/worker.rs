//! The loop a thread runs: mail, queues, handoff, dispatch; and how it goes to rest.

use std::sync::Arc;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags};
use shoal_buffer::{Flags, Frame};
use shoal_infra::Reader;

use crate::clock::{Clock, Time, Watch, tsc};
use crate::cx::FrameCx;
use crate::dispatch::Run;
use crate::error_drop::DELETED;
use crate::handoff::Inbox;
use crate::lane::Lane;
use crate::node::NodeIndex;
use crate::rx::{QueueCount, QueueId, RxMode, RxQueue};
use crate::spin::Spin;
use crate::state::Share;
use crate::thread::{Load, ThreadShared};
use crate::topology::{Change, Topology};

/// Naps before a thread with a queue that cannot wake it rests longer.
const NAPS: u32 = 6;
/// How long a nap is meant to take; the kernel adds some fifty microseconds.
const NAP: Duration = Duration::from_micros(20);
/// Longest sleep, so that slow housekeeping goes on.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// What one round of the loop did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Packets taken from queues and other threads.
    pub packets: usize,
    /// Whether anything was dispatched or any mail done.
    pub worked: bool,
}

struct Slot {
    id: QueueId,
    node: NodeIndex,
    mode: RxMode,
    queue: Box<dyn RxQueue>,
    count: Arc<QueueCount>,
}

/// One thread's replica of the graph: its lane, its queues, its picture of the topology.
pub struct Worker {
    pub(crate) lane: Lane,
    topology: Topology,
    reader: Reader,
    queues: Vec<Slot>,
    pub(crate) inbox: Inbox,
    shared: Arc<ThreadShared>,
    watch: Watch,
    spin: Spin,
    /// Naps since it last did something.
    naps: u32,
    /// What a sleep waits for: refilled for each, kept so that sleeping allocates nothing. Empty between sleeps.
    waits: Vec<PollFd<'static>>,
}

impl Worker {
    /// A worker for the calling thread, off line until its first round.
    pub(crate) fn new(lane: Lane, topology: Topology, shared: Arc<ThreadShared>, clock: Clock) -> Self {
        let mut reader = Reader::register();
        reader.offline();
        let mut worker = Worker {
            lane,
            topology,
            reader,
            queues: Vec::new(),
            inbox: Inbox::default(),
            shared,
            watch: Watch::new(clock),
            spin: Spin::default(),
            naps: 0,
            waits: Vec::new(),
        };
        for entry in &worker.topology.nodes {
            worker.lane.fit(None, entry);
        }
        worker
    }

    /// Takes over what has changed in the graph. Only between rounds, when nothing is on its way.
    pub(crate) fn take_over(&mut self, change: &Change) {
        let Worker { topology, lane, .. } = self;
        topology.take_over(change, |old, new| lane.fit(old, new));
    }

    pub(crate) fn adopt(
        &mut self,
        id: QueueId,
        node: NodeIndex,
        mode: RxMode,
        (queue, count): (Box<dyn RxQueue>, Arc<QueueCount>),
    ) {
        self.queues.push(Slot { id, node, mode, queue, count });
        self.spin.restart(self.lane.now);
    }

    pub(crate) fn release(&mut self, id: QueueId) -> Option<Box<dyn RxQueue>> {
        let at = self.queues.iter().position(|s| s.id == id)?;
        Some(self.queues.remove(at).queue)
    }

    pub(crate) fn set_mode(&mut self, id: QueueId, mode: RxMode) {
        self.queues.iter_mut().filter(|s| s.id == id).for_each(|s| s.mode = mode);
        self.spin.restart(self.lane.now);
    }

    /// Its number: 0 is the main thread.
    pub fn thread(&self) -> usize {
        self.lane.thread
    }

    /// The shared face of this thread.
    pub(crate) fn shared(&self) -> &Arc<ThreadShared> {
        &self.shared
    }

    /// Puts a packet into the graph at a node, as if it had come from there; dispatched in the next round. The
    /// trace of a packet that was held goes on.
    pub fn inject(&mut self, node: NodeIndex, mut buffer: shoal_buffer::Buffer) {
        self.lane.tracer.active |= self.lane.cache.packet(&mut buffer).flags().has(Flags::TRACED);
        let node = if node.at() < self.topology.nodes.len() { node } else { self.topology.drop };
        self.lane.send(node, buffer);
    }

    /// Forgets what the thread noted of its nodes.
    pub fn clear_ledger(&mut self) {
        self.lane.ledger.clear();
    }

    /// The thread's buffer cache.
    pub fn cache(&mut self) -> &mut shoal_buffer::Cache {
        &mut self.lane.cache
    }

    /// Does what others have left for it.
    pub(crate) fn read_mail(&mut self) -> bool {
        if !self.shared.has_mail() {
            return false;
        }
        let (changes, jobs) = self.shared.take_mail();
        if let Some(changes) = changes {
            self.take_over(&changes.into());
        }
        for job in jobs {
            job(self);
        }
        true
    }

    /// One round: everything that can be done now, to the end.
    pub fn round(&mut self) -> Round {
        self.round_after(None).0
    }

    /// The same, right after a round whose last node had run at `last`. Tells when the last node of this one had: the
    /// counter need not be read in between.
    fn round_after(&mut self, last: Option<u64>) -> (Round, u64) {
        let mail = self.read_mail();
        // Every node by itself, as for packets that are traced.
        self.lane.tracer.active |= self.lane.monitor.is_on;
        let start = last.filter(|_| !mail).unwrap_or_else(tsc);
        if !self.reader.is_online() {
            self.reader.online();
        }
        let (polled, mark) = self.poll_queues(start);
        let handed = self.inbox.receive(&mut self.lane);
        let packets = polled + handed;
        let (expired, mark) = self.expire(mark);
        let (dispatched, mark) = self.dispatch_all(mark);
        self.reader.quiescent();
        let mut load = Load { loops: 1, ..Load::default() };
        let worked = mail || packets > 0 || expired || dispatched;
        if worked {
            self.spin.worked(self.lane.now);
            self.naps = 0;
            let busy = mark.wrapping_sub(start);
            load = Load { busy, packets: packets as u64, handed: handed as u64, ..load };
        } else {
            self.spin.idled();
        }
        self.shared.work().add(load);
        // Packets that wait for room in a ring are work still to be done.
        (Round { packets, worked: worked || self.lane.outbox.holds() }, mark)
    }

    /// Takes what other threads have sent and handles it, without looking at queues: before a thread is forgotten.
    pub(crate) fn round_inbox(&mut self) {
        self.reader.online();
        self.inbox.receive(&mut self.lane);
        self.dispatch_all(tsc());
        self.reader.offline();
    }

    /// Does all that is left to do before the thread ends: nothing is kept back for a thread that is behind.
    pub(crate) fn finish(&mut self) {
        self.lane.outbox.patient = false;
        while self.round().worked {}
    }

    /// No packet goes to another thread any more; those kept back for it are handled here.
    pub(crate) fn disconnect(&mut self, thread: usize) {
        self.lane.disconnect(thread);
        self.spin.restart(self.lane.now);
    }

    /// Goes off line for the control plane: nothing of the tables is in use until the next round.
    pub fn offline(&mut self) {
        self.reader.offline();
    }

    /// Runs the timers of states that are due; tells whether there were any, and when the last had run.
    #[inline(always)]
    fn expire(&mut self, mark: u64) -> (bool, u64) {
        if !self.lane.states.get_mut().is_due(self.lane.now) {
            return (false, mark);
        }
        (self.lane.expire(&self.topology, self.reader.guard()), tsc())
    }

    /// Takes in states of other threads, between two rounds.
    pub(crate) fn adopt_states(&mut self, shares: Vec<Share>) {
        let was_online = self.reader.is_online();
        self.reader.online();
        for share in shares {
            self.lane.adopt(share, &self.topology, self.reader.guard());
        }
        if !was_online {
            self.reader.offline();
        }
    }

    /// Tells how many packets came, and when the last queue had been looked at. The time-stamp counter is read once
    /// between any two things that are measured: a reading takes as long as a packet.
    fn poll_queues(&mut self, start: u64) -> (usize, u64) {
        self.lane.now = self.watch.time_at(start);
        let mut packets = 0;
        let mut before = start;
        for slot in &mut self.queues {
            let Some(entry) = self.topology.nodes.get(slot.node.at()) else { continue };
            let (lane, topology, guard) = (&mut self.lane, &self.topology, self.reader.guard());
            lane.ledger.begin(entry);
            if lane.monitor.is_on {
                lane.monitor_before(entry, None);
            }
            let n = slot.queue.poll(&mut FrameCx { lane, entry, topology, guard });
            let after = tsc();
            if self.lane.monitor.is_on {
                self.lane.monitor_after(entry, n);
            }
            if n > 0 {
                let clocks = after.wrapping_sub(before);
                slot.count.add(n);
                self.lane.node_rows.worked(slot.node, n as u64, clocks);
                self.lane.ledger.ended(slot.node, clocks, n as u64);
            } else {
                self.lane.node_rows.called(slot.node);
            }
            before = after;
            packets += n;
        }
        (packets, before)
    }

    /// Tells whether there was anything, and when the last node had run; `before` is when what went before had.
    fn dispatch_all(&mut self, mut before: u64) -> (bool, u64) {
        let mut any = false;
        loop {
            any |= self.drain_pending(&mut before);
            self.lane.ship_all(&self.topology);
            // A full ring turned packets into drops, which are to be dispatched too.
            if !self.lane.has_pending() {
                break;
            }
        }
        if any {
            self.lane.tracer.active = false;
        }
        (any, before)
    }

    fn drain_pending(&mut self, before: &mut u64) -> bool {
        let mut any = false;
        while let Some((node, mut frame)) = self.lane.next_pending() {
            any = true;
            let Some(entry) = self.topology.nodes.get(node.at()) else {
                self.drop_unknown(frame);
                continue;
            };
            let n = frame.len() as u64;
            let (lane, topology, guard) = (&mut self.lane, &self.topology, self.reader.guard());
            lane.ledger.begin(entry);
            if lane.monitor.is_on {
                lane.monitor_before(entry, Some(&mut frame));
            }
            entry.logic.dispatch(frame, Run { lane, entry, topology, guard });
            let after = tsc();
            if self.lane.monitor.is_on {
                self.lane.monitor_after(entry, n as usize);
            }
            let clocks = after.wrapping_sub(*before);
            self.lane.node_rows.worked(node, n, clocks);
            self.lane.ledger.ended(node, clocks, n);
            *before = after;
        }
        any
    }

    /// Drops what is for a node this thread does not know yet: it was stuck when the node came, and now finishes the
    /// round of before.
    #[cold]
    fn drop_unknown(&mut self, mut frame: Box<Frame>) {
        for at in 0..frame.len() {
            if let Some(mut pkt) = frame.packet(self.lane.memory, at) {
                pkt.meta_mut().error = DELETED;
            }
        }
        self.lane.forward(self.topology.drop, frame);
    }

    /// Rests after an empty round: first not at all, if that pays; then until a queue, another thread or a deadline
    /// wakes it. Queues that cannot wake it make it nap before.
    pub fn rest(&mut self, deadline: Option<Time>, may_sleep: impl Fn() -> bool) {
        let has_queues = self.queues.iter().any(|s| !s.queue.is_parked());
        let polling = self.queues.iter().any(|s| s.mode == RxMode::Polling && !s.queue.is_parked());
        let eager = self.queues.iter().all(|s| s.mode == RxMode::Interrupt);
        if polling || self.lane.outbox.holds() || (has_queues && !eager && self.spin.goes_on(self.lane.now)) {
            std::hint::spin_loop();
            return;
        }
        let mute = self.queues.iter().any(|s| s.queue.is_mute() && !s.queue.is_parked());
        if mute && !eager && self.naps < NAPS {
            self.naps += 1;
            self.reader.offline();
            std::thread::sleep(NAP);
            self.watch.forget();
            return;
        }
        self.sleep(deadline, may_sleep);
    }

    fn sleep(&mut self, deadline: Option<Time>, may_sleep: impl Fn() -> bool) {
        self.reader.offline();
        self.shared.set_asleep(true);
        if !self.shared.has_mail() && self.inbox.is_empty() && !self.shared.is_stopping() && may_sleep() {
            let now = self.watch.now();
            let due = self.queues.iter().filter_map(|s| s.queue.deadline(now)).chain(deadline);
            let due = due.chain(self.lane.states.get_mut().next()).min();
            let blind = self.queues.iter().any(|s| {
                s.queue.wait_fd().is_none() && !s.queue.is_parked() && s.queue.deadline(now).is_none()
            });
            let longest = if blind { Duration::from_millis(1) } else { LONGEST_SLEEP };
            let wait = due.map_or(longest, |due| due.since(now).min(longest));
            self.wait(wait);
        }
        self.shared.set_asleep(false);
        self.watch.forget();
    }

    fn wait(&mut self, wait: Duration) {
        // Of a shorter life than the worker's: what is in it borrows the queues.
        let mut waits: Vec<PollFd<'_>> = std::mem::take(&mut self.waits);
        let queues = self.queues.iter().filter_map(|s| s.queue.wait_fd());
        let fds = std::iter::once(self.shared.wake_fd()).chain(queues);
        waits.extend(fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        let wait = nix::sys::time::TimeSpec::from_duration(wait);
        // An interrupted or failed wait is an early wake-up: the next round looks again.
        let _ = nix::poll::ppoll(&mut waits, Some(wait), None);
        if waits.first().and_then(PollFd::any).unwrap_or(true) {
            self.shared.take_wakes();
        }
        // Nothing is left in it, so nothing of it is borrowed; collecting into the same kind of vector keeps its room.
        waits.clear();
        self.waits = waits.into_iter().map(|_| unreachable!("it was cleared")).collect();
    }

    /// The loop of a worker thread, until it is asked to stop.
    pub(crate) fn run(&mut self) {
        let mut last = None;
        while !self.shared.is_stopping() {
            let (round, mark) = self.round_after(last);
            last = round.worked.then_some(mark);
            if !round.worked {
                self.rest(None, || true);
            }
        }
        self.reader.offline();
        self.lane.cache.flush();
    }
}
