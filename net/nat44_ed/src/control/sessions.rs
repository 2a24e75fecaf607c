//! Sessions: looked at, counted, ended.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use shoal_adj::Family;
use shoal_nat::Tuple;
use shoal_nat44::workers::{WorkerInfo, workers};

use super::{Nat44, NatError, Purpose};
use crate::config::ticks_of;
use crate::session_direction::Marks;
use crate::sessions::{Record, Sessions, key, tick};
use shoal_nat44::mapping::Mapping;

/// Places of a worker's table looked at in one go.
const PLACES_AT_ONCE: u32 = 4096;

/// Sessions of a worker, some at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Slice {
    /// The worker.
    pub thread: usize,
    /// Where to go on.
    pub from: u32,
}

/// A host, and how many sessions it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct User {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its VRF.
    pub vrf: u32,
    /// Sessions that were made for its packets.
    pub sessions: u32,
    /// Sessions of mappings.
    pub statics: u32,
}

impl Nat44 {
    /// How many sessions each worker has.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn counts(&self) -> Result<BTreeMap<usize, usize>, NatError> {
        Ok(self.graph.on_every_state(&self.keeping, |_, sessions| sessions.len())?)
    }

    /// The threads that have sessions.
    pub fn threads(&self) -> Vec<usize> {
        self.keeping.feature().workers()
    }

    /// Seconds since the router's clock began.
    pub fn seconds(&self) -> u64 {
        self.graph.clock().now().0 / 1_000_000_000
    }

    /// A thread's name.
    pub fn thread_name(&self, thread: usize) -> String {
        let all = self.graph.threads();
        let found = all.iter().find(|info| info.index == thread);
        found.map_or_else(|| thread.to_string(), |info| info.name.clone())
    }

    /// Workers that have sessions.
    pub fn workers(&self) -> Vec<WorkerInfo> {
        workers(&self.graph, &self.threads())
    }

    /// Seconds of a record's timeout.
    pub fn timeout_of(&self, record: &Record) -> u32 {
        ticks_of(&self.timeouts(), record.states.0.timeout())
    }

    /// Sessions of a worker that `wanted` picks, from a place on, and where to go on; packets are never kept waiting for more than
    /// some thousand places.
    ///
    /// # Errors
    /// The thread does not answer.
    pub fn slice(
        &self,
        slice: Slice,
        wanted: impl Fn(&Record) -> bool + Send + 'static,
    ) -> Result<(Vec<Record>, Option<Slice>), NatError> {
        let now = tick(self.graph.clock().now());
        let (records, next) = self.graph.on_state(&self.keeping, slice.thread, move |_, sessions| {
            let end = slice.from.saturating_add(PLACES_AT_ONCE);
            let some = (slice.from..end).filter_map(|index| sessions.record(index, now));
            let records: Vec<Record> = some.filter(|record| wanted(record)).collect();
            (records, (end < sessions.places()).then_some(end))
        })?;
        Ok((records, next.map(|from| Slice { from, ..slice })))
    }

    /// All sessions that `wanted` picks, of all workers.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn sessions(
        &self,
        wanted: impl Fn(&Record) -> bool + Clone + Send + 'static,
    ) -> Result<Vec<(usize, Record)>, NatError> {
        let mut all = Vec::new();
        for thread in self.threads() {
            let mut slice = Some(Slice { thread, from: 0 });
            while let Some(from) = slice {
                let (records, next) = self.slice(from, wanted.clone())?;
                all.extend(records.into_iter().map(|record| (thread, record)));
                slice = next;
            }
        }
        Ok(all)
    }

    /// Hosts that have sessions.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn users(&self) -> Result<Vec<User>, NatError> {
        let mut users: BTreeMap<(u32, u32), (u32, u32)> = BTreeMap::new();
        for (_, record) in self.sessions(|_| true)? {
            let session = record.session;
            let (sessions, statics) = users.entry((session.inside.src, session.inside_table)).or_default();
            *(if session.marks & Marks::STATIC == 0 { sessions } else { statics }) += 1;
        }
        let user = |((address, table), (sessions, statics))| User {
            address: Ipv4Addr::from_bits(address),
            vrf: self.vrf_of_table(table),
            sessions,
            statics,
        };
        Ok(users.into_iter().map(user).collect())
    }

    /// The VRF of a table.
    pub fn vrf_of_table(&self, table: u32) -> u32 {
        self.fib.id_of(Family::Ip4, shoal_fib::FibIndex(table)).unwrap_or(table)
    }

    /// Ends the session of exactly this tuple, in either direction.
    ///
    /// # Errors
    /// NAT is off, there is no such session or VRF, or a thread does not answer.
    pub fn del_session(
        &self,
        (address, port): (Ipv4Addr, u16),
        (other, other_port): (Ipv4Addr, u16),
        protocol: u8,
        vrf: u32,
    ) -> Result<(), NatError> {
        self.on()?;
        let table = self.fib.index_of(Family::Ip4, vrf).map_err(|_| NatError::NoSession)?.0;
        let tuple = Tuple { src: address.to_bits(), dst: other.to_bits(), sport: port, dport: other_port };
        let keys = [tuple, tuple.reversed()].map(|tuple| key(tuple, protocol, table));
        let ended = self.change(move |sessions| usize::from(keys.iter().any(|key| sessions.end(*key))))?;
        if ended > 0 { Ok(()) } else { Err(NatError::NoSession) }
    }

    /// Ends all sessions.
    ///
    /// # Errors
    /// NAT is off, or a thread does not answer.
    pub fn clear_sessions(&self) -> Result<(), NatError> {
        self.on()?;
        self.retain(|_| false)
    }

    /// Ends sessions that `stays` does not keep.
    fn retain(
        &self,
        stays: impl Fn(&crate::sessions::Session) -> bool + Clone + Send + 'static,
    ) -> Result<(), NatError> {
        self.change(move |sessions| sessions.retain(&stays)).map(drop)
    }

    /// Has every thread change its sessions, and tells what happened to them; how many that were.
    fn change(
        &self,
        change: impl Fn(&mut Sessions) -> usize + Clone + Send + 'static,
    ) -> Result<usize, NatError> {
        Ok(self.change_with(change)?.into_iter().sum())
    }

    /// Has every thread change its sessions, and tells what happened to them; what each came to.
    pub(super) fn change_with<T: Send + 'static>(
        &self,
        change: impl Fn(&mut Sessions) -> T + Clone + Send + 'static,
    ) -> Result<Vec<T>, NatError> {
        let are_wanted = self.shared.news.are_wanted();
        let done = self.graph.on_every_state(&self.keeping, move |_, sessions| {
            sessions.set_listed(are_wanted);
            let done = change(sessions);
            (done, sessions.len(), sessions.take_events().collect::<Vec<_>>())
        })?;
        let mut all = Vec::new();
        for (thread, (done, count, events)) in done {
            all.push(done);
            self.shared.counters.set_sessions(thread, count);
            self.log_later(events);
        }
        Ok(all)
    }

    pub(super) fn end_bypasses(&self) -> Result<(), NatError> {
        self.retain(|session| session.marks & Marks::BYPASS == 0)
    }

    pub(super) fn end_of_addresses(&self, gone: BTreeSet<u32>, purpose: Purpose) -> Result<(), NatError> {
        self.retain(move |session| {
            let used = match purpose {
                Purpose::Pool => {
                    session.marks & (Marks::STATIC | Marks::BYPASS) == 0
                        && gone.contains(&session.outside.src)
                }
                Purpose::Twice => session.marks & Marks::TWICE != 0 && gone.contains(&session.inside.dst),
            };
            !used
        })
    }

    pub(super) fn end_of_mapping(&self, mapping: &Mapping) {
        let (external, port) = mapping.external;
        let (protocol, locals) = (mapping.protocol, mapping.locals.clone());
        let ended = self.retain(move |session| {
            let is_of_it = session.marks & Marks::STATIC != 0
                && session.outside.src == external
                && (protocol == 0 || session.protocol == protocol && session.outside.sport == port)
                && locals.iter().any(|local| {
                    local.address == session.inside.src
                        && (protocol == 0 || local.port == session.inside.sport)
                });
            !is_of_it
        });
        if let Err(e) = ended {
            tracing::warn!("sessions of a mapping stay until they time out: {e}");
        }
        let forgotten = self.graph.on_every_state(&self.keeping, move |_, sessions| {
            sessions.affinity.forget(external, port, protocol);
        });
        if let Err(e) = forgotten {
            tracing::warn!("clients of a service are remembered until they time out: {e}");
        }
    }
}
