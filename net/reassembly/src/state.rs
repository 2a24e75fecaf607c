//! One kind of reassembly: what each thread keeps of it, and what its nodes share with the control plane.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use shoal_buffer::{Buffer, Packet};
use shoal_derive::ErrorCounters;
use shoal_graph::clock::Time;
use shoal_graph::{Edge, FrameCx, NextNodes, NodeIndex, Shares, Stateful};
use shoal_interface::IfTable;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::budget::Budget;
use crate::family::Family;
use crate::hash::Keyed;
use crate::settings::Shared;
use crate::sv_table::SvTable;
use crate::table::{DatagramInfo, Items, ReleaseReason, Table};
use crate::threads::Owners;

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
    /// Not 0: it is the first of a datagram that ended, and its sender is to get an error.
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

/// A table of datagrams, as the runtime and the control plane see it.
pub trait DatagramTable<K>: Sized + Send + 'static {
    /// Whether fragments stay what they are.
    const SHALLOW: bool;

    /// An empty one.
    fn with(budget: Budget) -> Self;

    /// How many there are.
    fn count(&self) -> usize;

    /// When the oldest began.
    fn oldest(&self) -> Option<Time>;

    /// Up to `most` of them, the oldest first.
    fn seen(&self, most: usize) -> Vec<DatagramInfo<K>>;

    /// Ends up to `most` of those whose time is over; tells how many.
    fn end_old(&mut self, now: Time, timeout: Duration, most: usize, items: &mut dyn Items<Buffer>) -> usize;

    /// Takes out those that other threads than `here` own.
    fn part(&mut self, here: Option<usize>, owner: impl Fn(&K) -> usize) -> BTreeMap<usize, Self>;

    /// Takes in what was another thread's.
    fn take_in(&mut self, other: Self, items: &mut dyn Items<Buffer>);
}

macro_rules! held {
    ($table:ident, $shallow:expr) => {
        impl<K: Copy + Eq + Hash + Send + 'static> DatagramTable<K> for $table<K, Buffer> {
            const SHALLOW: bool = $shallow;

            fn with(budget: Budget) -> Self {
                $table::new(budget)
            }

            fn count(&self) -> usize {
                self.len()
            }

            #[inline(always)]
            fn oldest(&self) -> Option<Time> {
                $table::oldest(self)
            }

            fn seen(&self, most: usize) -> Vec<DatagramInfo<K>> {
                self.list(most)
            }

            fn end_old(
                &mut self,
                now: Time,
                timeout: Duration,
                most: usize,
                items: &mut dyn Items<Buffer>,
            ) -> usize {
                self.expire(now, timeout, most, items)
            }

            fn part(&mut self, here: Option<usize>, owner: impl Fn(&K) -> usize) -> BTreeMap<usize, Self> {
                $table::part(self, here, owner)
            }

            fn take_in(&mut self, other: Self, items: &mut dyn Items<Buffer>) {
                $table::take_in(self, other, items);
            }
        }
    };
}

held!(Table, false);
held!(SvTable, true);

/// One kind of reassembly: whose datagrams each thread keeps, and what its nodes need.
pub struct State<F: Family, T> {
    /// Which threads own datagrams.
    pub owners: Owners,
    /// Limits and times.
    pub settings: Shared,
    /// Interfaces: whose table names a datagram too.
    pub interfaces: IfTable,
    hasher: Keyed,
    budget: Budget,
    handoff: AtomicU32,
    expired: AtomicU32,
    kind: PhantomData<fn(F, T)>,
}

/// Datagrams that are put together.
pub type FullTable<F> = Table<<F as Family>::Key, Buffer>;
/// Datagrams whose fragments pass.
pub type ShallowTable<F> = SvTable<<F as Family>::Key, Buffer>;
/// Full reassembly.
pub type Full<F> = State<F, FullTable<F>>;
/// Shallow virtual reassembly.
pub type Sv<F> = State<F, ShallowTable<F>>;

/// What a thread keeps.
pub struct Shard<T> {
    /// Its datagrams.
    pub table: T,
    /// When was looked last for those whose time is over.
    walked: Time,
}

impl<F: Family, T: DatagramTable<F::Key>> State<F, T> {
    /// Nothing is held.
    pub fn new(settings: Shared, interfaces: IfTable, budget: &Budget) -> Self {
        State {
            owners: Owners::default(),
            settings,
            interfaces,
            hasher: Keyed::default(),
            budget: budget.clone(),
            handoff: AtomicU32::new(0),
            expired: AtomicU32::new(0),
            kind: PhantomData,
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

    fn shares(parts: BTreeMap<usize, T>) -> Shares<Shard<T>> {
        let shard = |table| Shard { table, walked: Time::default() };
        parts.into_iter().map(|(thread, table)| (thread, shard(table))).collect()
    }
}

/// To the node that says why.
pub struct ToExpired<F, T>(PhantomData<fn(F, T)>);

impl<F, T> Clone for ToExpired<F, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F, T> Copy for ToExpired<F, T> {}

impl<F: Family, T: DatagramTable<F::Key>> NextNodes for ToExpired<F, T> {
    const NAMES: &'static [&'static str] =
        if T::SHALLOW { &[F::NODES.sv_expired] } else { &[F::NODES.expired] };

    fn edge(self) -> Edge {
        Edge(1)
    }
}

/// Why a fragment that is held is dropped other than by a node.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// fragments lost when their thread changed
    #[counter("reass_moved")]
    Moved,
}

impl<F: Family, T: DatagramTable<F::Key>> Stateful for State<F, T> {
    const NAME: &'static str = if T::SHALLOW { F::NODES.sv_timer } else { F::NODES.timer };
    type Next = ToExpired<F, T>;
    type Error = Error;
    type State = Shard<T>;

    fn make(&self, _: usize) -> Shard<T> {
        Shard { table: T::with(self.budget.clone()), walked: Time::default() }
    }

    #[inline(always)]
    fn due(&self, state: &Shard<T>) -> Option<Time> {
        let oldest = state.table.oldest()?;
        let interval = Duration::from_millis(u64::from(self.settings.get().expire_walk_interval_ms));
        Some(oldest.after(self.settings.timeout()).max(state.walked.after(interval)))
    }

    fn expire(&self, state: &mut Shard<T>, cx: &mut FrameCx<'_>) {
        let (now, timeout) = (cx.now(), self.settings.timeout());
        let ended = state.table.end_old(now, timeout, EXPIRED_AT_ONCE, &mut Expiring::<F, T>::new(cx));
        if ended < EXPIRED_AT_ONCE {
            state.walked = now;
        }
    }

    fn workers(&self, workers: &[usize]) {
        self.owners.set(workers.iter().copied());
    }

    fn reshard(&self, state: &mut Shard<T>, here: usize, _: &[usize]) -> Shares<Shard<T>> {
        let parts = state.table.part(Some(here), |key| self.owner(key));
        Self::shares(parts)
    }

    fn give_up(&self, mut ended: Shard<T>, _: &[usize]) -> Shares<Shard<T>> {
        let parts = ended.table.part(None, |key| self.owner(key));
        Self::shares(parts)
    }

    fn adopt(&self, mine: &mut Shard<T>, other: Shard<T>, cx: &mut FrameCx<'_>) {
        mine.table.take_in(other.table, &mut Moving(cx));
    }
}

/// Sends what is due to the node that says why.
struct Expiring<'a, 'b, F, T> {
    cx: &'a mut FrameCx<'b>,
    kind: PhantomData<fn(F, T)>,
}

impl<'a, 'b, F, T> Expiring<'a, 'b, F, T> {
    fn new(cx: &'a mut FrameCx<'b>) -> Self {
        Expiring { cx, kind: PhantomData }
    }
}

impl<F: Family, T: DatagramTable<F::Key>> Items<Buffer> for Expiring<'_, '_, F, T> {
    fn same(&mut self, _: &mut Buffer, _: &mut Buffer) -> bool {
        false
    }

    fn gone(&mut self, mut item: Buffer, why: ReleaseReason, first: bool) {
        tell(&mut self.cx.cache().packet(&mut item), why, first);
        self.cx.send(ToExpired::<F, T>(PhantomData).edge(), item);
    }
}

/// Lets go what cannot be taken in.
struct Moving<'a, 'b>(&'a mut FrameCx<'b>);

impl Items<Buffer> for Moving<'_, '_> {
    fn same(&mut self, _: &mut Buffer, _: &mut Buffer) -> bool {
        false
    }

    fn gone(&mut self, item: Buffer, _: ReleaseReason, _: bool) {
        self.0.drop(item, Error::Moved);
    }
}

/// Notes in a fragment's ticket why its datagram ended, and whether its sender gets an error.
pub fn tell(pkt: &mut Packet<'_>, why: ReleaseReason, first: bool) {
    let ticket = pkt.scratch::<Ticket>();
    ticket.told = u16::from(first && why == ReleaseReason::Timeout);
}
