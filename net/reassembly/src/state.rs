//! What the nodes of one kind of reassembly share with the control plane.

use std::hash::{BuildHasher, Hash, RandomState};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use shoal_buffer::{Buffer, Packet};
use shoal_graph::clock::Time;
use shoal_graph::{NodeIndex, Worker};
use shoal_interface::IfTable;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::budget::Budget;
use crate::family::Family;
use crate::settings::Shared;
use crate::sv_table::SvTable;
use crate::table::{Items, Seen, Table, Why};
use crate::threads::{Owners, Shard, shards};

/// Datagrams ended at once, so that no thread is kept long.
pub const EXPIRED_AT_ONCE: usize = 64;

/// What travels with a fragment in its scratch.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Ticket {
    /// The node it goes to, or the whole does.
    pub next: u32,
    /// The thread the whole goes on.
    pub thread: u16,
    /// Not 0: it is for this router.
    pub for_us: u16,
    /// Not 0: it is the first of a datagram that ended, and its sender is to be told.
    pub told: u16,
    /// Bytes of the link's header in front of the network header, which is the front meanwhile.
    pub link: u16,
}

impl Ticket {
    /// A ticket to a node, on this thread.
    pub fn to(next: NodeIndex, thread: usize) -> Self {
        Ticket { next: next.number(), thread: thread as u16, for_us: 0, told: 0, link: 0 }
    }

    /// Puts it into a packet.
    pub fn put(self, pkt: &mut Packet<'_>) {
        *pkt.scratch::<Ticket>() = self;
    }
}

/// A table of datagrams, as the control plane sees it.
pub trait Held<K>: Send + 'static {
    /// An empty one.
    fn with(budget: Budget) -> Self;

    /// How many there are, and when the oldest began.
    fn extent(&self) -> (usize, Option<Time>);

    /// Up to `most` of them, the oldest first.
    fn seen(&self, most: usize) -> Vec<Seen<K>>;

    /// Ends up to `most` of those whose time is over; tells how many.
    fn end_old(&mut self, now: Time, timeout: Duration, most: usize, items: &mut dyn Items<Buffer>) -> usize;
}

impl<K: Copy + Eq + Hash + Send + 'static> Held<K> for Table<K, Buffer> {
    fn with(budget: Budget) -> Self {
        Table::new(budget)
    }

    fn extent(&self) -> (usize, Option<Time>) {
        (self.len(), self.oldest())
    }

    fn seen(&self, most: usize) -> Vec<Seen<K>> {
        self.list(most)
    }

    fn end_old(&mut self, now: Time, timeout: Duration, most: usize, items: &mut dyn Items<Buffer>) -> usize {
        self.expire(now, timeout, most, items)
    }
}
impl<K: Copy + Eq + Hash + Send + 'static> Held<K> for SvTable<K, Buffer> {
    fn with(budget: Budget) -> Self {
        SvTable::new(budget)
    }

    fn extent(&self) -> (usize, Option<Time>) {
        (self.len(), self.oldest())
    }

    fn seen(&self, most: usize) -> Vec<Seen<K>> {
        self.list(most)
    }

    fn end_old(&mut self, now: Time, timeout: Duration, most: usize, items: &mut dyn Items<Buffer>) -> usize {
        self.expire(now, timeout, most, items)
    }
}

/// The tables of all threads, and what they need.
pub struct State<F: Family, T> {
    /// By thread.
    pub shards: Box<[Shard<T>]>,
    /// Which threads own datagrams.
    pub owners: Owners,
    /// Limits and times.
    pub settings: Shared,
    /// Interfaces: whose table names a datagram too.
    pub interfaces: IfTable,
    hasher: RandomState,
    handoff: AtomicU32,
    expired: AtomicU32,
    family: PhantomData<F>,
}

/// Datagrams that are put together.
pub type FullTable<F> = Table<<F as Family>::Key, Buffer>;
/// Full reassembly.
pub type Full<F> = State<F, FullTable<F>>;
/// Shallow virtual reassembly.
pub type Sv<F> = State<F, SvTable<<F as Family>::Key, Buffer>>;

impl<F: Family, T: Held<F::Key>> State<F, T> {
    /// Nothing is held.
    pub fn new(owners: Owners, settings: Shared, interfaces: IfTable, budget: &Budget) -> Self {
        State {
            shards: shards(|| T::with(budget.clone())),
            owners,
            settings,
            interfaces,
            hasher: RandomState::new(),
            handoff: AtomicU32::new(0),
            expired: AtomicU32::new(0),
            family: PhantomData,
        }
    }

    /// Says which nodes take fragments of other threads and those whose time is over.
    pub fn set_nodes(&self, handoff: NodeIndex, expired: NodeIndex) {
        self.handoff.store(handoff.number(), Ordering::Relaxed);
        self.expired.store(expired.number(), Ordering::Relaxed);
    }

    /// The node that takes fragments of other threads.
    pub fn handoff_node(&self) -> NodeIndex {
        NodeIndex::from_number(self.handoff.load(Ordering::Relaxed))
    }

    /// The node that takes fragments whose time is over.
    pub fn expired_node(&self) -> NodeIndex {
        NodeIndex::from_number(self.expired.load(Ordering::Relaxed))
    }

    /// The thread that owns a datagram.
    pub fn owner(&self, key: &F::Key) -> usize {
        self.owners.pick(self.hasher.hash_one(key))
    }

    /// Ends what is due on a thread, from a job of that thread; tells how many datagrams.
    pub fn expire(&self, worker: &mut Worker, now: Time) -> usize {
        let Some(shard) = self.shards.get(worker.thread()) else { return 0 };
        let mut table = shard.lock();
        let mut items = Expiring { worker, node: self.expired_node() };
        let ended = table.end_old(now, self.settings.timeout(), EXPIRED_AT_ONCE, &mut items);
        let (held, oldest) = table.extent();
        shard.publish(held, oldest);
        ended
    }

    /// Frees all that a thread held that has ended, with another's cache.
    pub fn clear(&self, thread: usize, worker: &mut Worker, now: Time) {
        let Some(shard) = self.shards.get(thread) else { return };
        let mut table = shard.lock();
        table.end_old(now, Duration::ZERO, usize::MAX, &mut Freeing(worker));
        shard.publish(0, None);
    }
}

/// Sends what is due to the node that says why.
struct Expiring<'a> {
    worker: &'a mut Worker,
    node: NodeIndex,
}

impl Items<Buffer> for Expiring<'_> {
    fn same(&mut self, _: &mut Buffer, _: &mut Buffer) -> bool {
        false
    }

    fn gone(&mut self, mut item: Buffer, why: Why, first: bool) {
        let mut pkt = self.worker.cache().packet(&mut item);
        tell(&mut pkt, why, first);
        self.worker.inject(self.node, item);
    }
}

struct Freeing<'a>(&'a mut Worker);

impl Items<Buffer> for Freeing<'_> {
    fn same(&mut self, _: &mut Buffer, _: &mut Buffer) -> bool {
        false
    }

    fn gone(&mut self, item: Buffer, _: Why, _: bool) {
        self.0.cache().free(item);
    }
}

/// Notes in a fragment's ticket why its datagram ended, and whether its sender is told.
pub fn tell(pkt: &mut Packet<'_>, why: Why, first: bool) {
    let ticket = pkt.scratch::<Ticket>();
    ticket.told = u16::from(first && why == Why::Timeout);
}
