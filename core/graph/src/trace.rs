//! The packet trace: for a few packets, what each node on their way saw.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_buffer::{Flags, Packet};

use crate::MAX_THREADS;
use crate::clock::Time;
use crate::node::NodeIndex;

/// Decides from a packet's bytes whether it is worth a trace.
pub type Filter = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Most packets one thread keeps traces of.
pub const MOST_PACKETS: usize = 10_000;
/// Most records kept of one packet: a packet that loops must not fill memory.
const MOST_RECORDS: usize = 100;

/// Where the records of a packet are: the thread it came in on, which clearing of the traces it came after, its place.
///
/// A packet that is held while the traces are cleared must not write into the trace of another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Handle {
    thread: usize,
    epoch: u32,
    at: usize,
}

impl Handle {
    const AT_BITS: u32 = 14;
    const EPOCH_BITS: u32 = 12;
    const EPOCH_MASK: u32 = (1 << Self::EPOCH_BITS) - 1;

    fn pack(self) -> u32 {
        (self.thread as u32) << (Self::AT_BITS + Self::EPOCH_BITS)
            | (self.epoch & Self::EPOCH_MASK) << Self::AT_BITS
            | self.at as u32
    }

    fn unpack(handle: u32) -> Self {
        Handle {
            thread: (handle >> (Self::AT_BITS + Self::EPOCH_BITS)) as usize,
            epoch: handle >> Self::AT_BITS & Self::EPOCH_MASK,
            at: (handle & ((1 << Self::AT_BITS) - 1)) as usize,
        }
    }
}

const _: () = assert!(MOST_PACKETS <= 1 << Handle::AT_BITS);
const _: () = assert!(MAX_THREADS <= 1 << (32 - Handle::AT_BITS - Handle::EPOCH_BITS));

/// How many of the packets entering at one node are to be traced.
#[derive(Default)]
pub struct TraceRequest {
    left: AtomicU32,
    filter: Mutex<Option<Filter>>,
}

impl TraceRequest {
    /// Whether any packet is wanted.
    #[inline(always)]
    pub(crate) fn wanted(&self) -> bool {
        self.left.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn ask(&self, count: u32, filter: Option<Filter>) {
        *lock(&self.filter) = filter;
        self.left.store(count, Ordering::Relaxed);
    }

    #[cold]
    fn take(&self, bytes: &[u8]) -> bool {
        if lock(&self.filter).as_ref().is_some_and(|f| !f(bytes)) {
            return false;
        }
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
    }
}

/// One node's trace of one packet.
pub struct Record {
    /// When.
    pub time: Time,
    /// Which node.
    pub node: NodeIndex,
    line: Option<Box<dyn fmt::Display + Send>>,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.line.as_ref().map_or(Ok(()), |line| line.fmt(f))
    }
}

/// One packet's way.
#[derive(Default)]
pub struct PacketTrace {
    /// Each node's trace, in order.
    pub records: Vec<Record>,
}

/// All traces of one router, by the thread the packet came in on.
pub struct TraceStore {
    threads: [Mutex<Vec<PacketTrace>>; MAX_THREADS],
    /// How often the traces were cleared.
    epoch: AtomicU32,
}

impl Default for TraceStore {
    fn default() -> Self {
        TraceStore { threads: [const { Mutex::new(Vec::new()) }; MAX_THREADS], epoch: AtomicU32::new(0) }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TraceStore {
    /// Looks at one thread's traces.
    pub fn with<R>(&self, thread: usize, look: impl FnOnce(&[PacketTrace]) -> R) -> R {
        self.threads
            .get(thread)
            .map_or_else(|| unreachable!("threads are numbered below MAX_THREADS"), |t| look(&lock(t)))
    }

    /// Forgets all traces.
    pub fn clear(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
        self.threads.iter().for_each(|t| lock(t).clear());
    }

    fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Relaxed) & Handle::EPOCH_MASK
    }

    fn add(&self, handle: u32, record: Record) {
        let Handle { thread, epoch, at } = Handle::unpack(handle);
        if epoch == self.epoch()
            && let Some(thread) = self.threads.get(thread)
            && let Some(packet) = lock(thread).get_mut(at)
            && packet.records.len() < MOST_RECORDS
        {
            packet.records.push(record);
        }
    }
}

/// One thread's end of the trace.
pub(crate) struct Tracer {
    thread: usize,
    store: Arc<TraceStore>,
    /// Whether a traced packet may be on its way on this thread in this round.
    pub(crate) active: bool,
}

impl Tracer {
    pub(crate) fn new(thread: usize, store: Arc<TraceStore>) -> Self {
        Tracer { thread, store, active: false }
    }

    /// Begins a packet's trace if it is wanted at the node it enters by.
    #[cold]
    pub(crate) fn begin(
        &mut self,
        request: &TraceRequest,
        node: NodeIndex,
        time: Time,
        pkt: &mut Packet<'_>,
        line: impl fmt::Display + Send + 'static,
    ) {
        if !request.take(pkt.data()) {
            return;
        }
        let Some(thread) = self.store.threads.get(self.thread) else { return };
        let at = {
            let mut packets = lock(thread);
            if packets.len() >= MOST_PACKETS {
                return;
            }
            packets.push(PacketTrace::default());
            packets.len() - 1
        };
        let meta = pkt.meta_mut();
        meta.trace = Handle { thread: self.thread, epoch: self.store.epoch(), at }.pack();
        meta.flags = meta.flags.with(Flags::TRACED);
        self.active = true;
        self.add(pkt, node, time, Some(Box::new(line)));
    }

    /// Adds what a node says about a traced packet; nothing for others.
    #[cold]
    pub(crate) fn add(
        &self,
        pkt: &Packet<'_>,
        node: NodeIndex,
        time: Time,
        line: Option<Box<dyn fmt::Display + Send>>,
    ) {
        if pkt.flags().has(Flags::TRACED) {
            self.store.add(pkt.meta().trace, Record { time, node, line });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_comes_back_as_it_was() {
        for handle in [
            Handle { thread: 0, epoch: 0, at: 0 },
            Handle { thread: MAX_THREADS - 1, epoch: Handle::EPOCH_MASK, at: MOST_PACKETS - 1 },
        ] {
            assert_eq!(Handle::unpack(handle.pack()), handle);
        }
    }

    #[test]
    fn a_packet_traced_before_the_traces_were_cleared_writes_into_no_other_trace() {
        let store = TraceStore::default();
        let record = || Record { time: Time(0), node: NodeIndex(1), line: None };
        let old = Handle { thread: 0, epoch: store.epoch(), at: 0 }.pack();
        store.clear();
        lock(&store.threads[0]).push(PacketTrace::default());
        store.add(old, record());
        assert_eq!(store.with(0, |all| all[0].records.len()), 0);
        store.add(Handle { thread: 0, epoch: store.epoch(), at: 0 }.pack(), record());
        assert_eq!(store.with(0, |all| all[0].records.len()), 1);
    }
}
