//! Sessions: looked at, counted, ended.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use shoal_adj::Family;
use shoal_nat44::workers::{WorkerInfo, workers};

use super::{Nat44Ei, NatError};
use crate::blocks::BlockEvent;
use crate::sessions::{Endpoint, Record, Session, Sessions, inside_key, outside_key, tick};
use crate::shared::ThreadEvent;
use crate::users::User;

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

/// A host of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its VRF.
    pub vrf: u32,
    /// The worker.
    pub thread: usize,
    /// Sessions with ports that were given out.
    pub sessions: u32,
    /// Sessions of mappings.
    pub statics: u32,
}

impl Nat44Ei {
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

    /// The VRF of a table.
    pub fn vrf_of_table(&self, table: u32) -> u32 {
        self.fib.id_of(Family::Ip4, shoal_fib::FibIndex(table)).unwrap_or(table)
    }

    pub(super) fn slice(
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

    /// Sessions of a host, whatever its table.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn sessions_of(&self, host: Ipv4Addr, vrf: Option<u32>) -> Result<Vec<Record>, NatError> {
        let table = match vrf.map(|vrf| self.fib.index_of(Family::Ip4, vrf)) {
            Some(Ok(table)) => Some(table.0),
            Some(Err(_)) => return Ok(Vec::new()),
            None => None,
        };
        let host = host.to_bits();
        let found = self.sessions(move |record| {
            record.session.inside.0 == host && table.is_none_or(|table| table == record.session.inside_table)
        })?;
        Ok(found.into_iter().map(|(_, record)| record).collect())
    }

    /// Shows all sessions to `look`, some at a time.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn each_session(&self, mut look: impl FnMut(&Record)) -> Result<(), NatError> {
        for thread in self.threads() {
            let mut slice = Some(Slice { thread, from: 0 });
            while let Some(from) = slice {
                let (records, next) = self.slice(from, |_| true)?;
                records.iter().for_each(&mut look);
                slice = next;
            }
        }
        Ok(())
    }

    /// Sessions of a host of a worker, the one that was not used for longest first.
    ///
    /// # Errors
    /// The thread does not answer.
    pub fn sessions_of_user(&self, user: &Listed) -> Result<Vec<Record>, NatError> {
        let table = self.fib.index_of(Family::Ip4, user.vrf)?.0;
        let (host, now) = ((user.address.to_bits(), table), tick(self.graph.clock().now()));
        Ok(self.graph.on_state(&self.keeping, user.thread, move |_, sessions| {
            sessions.users.places_of(host).filter_map(|place| sessions.record(place, now)).collect()
        })?)
    }

    /// Hosts of a worker that have sessions.
    ///
    /// # Errors
    /// The thread does not answer.
    pub fn users_of(&self, thread: usize) -> Result<Vec<Listed>, NatError> {
        let users: Vec<User> = self
            .graph
            .on_state(&self.keeping, thread, |_, sessions| sessions.users.iter().copied().collect())?;
        let mut listed: Vec<Listed> = users.into_iter().map(|user| self.listed(thread, user)).collect();
        listed.sort_by_key(|listed| (listed.vrf, listed.address));
        Ok(listed)
    }

    fn listed(&self, thread: usize, user: User) -> Listed {
        Listed {
            address: Ipv4Addr::from_bits(user.host.0),
            vrf: self.vrf_of_table(user.host.1),
            thread,
            sessions: user.sessions,
            statics: user.statics,
        }
    }

    /// Hosts that have sessions.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn users(&self) -> Result<Vec<Listed>, NatError> {
        let mut all = Vec::new();
        for thread in self.threads() {
            all.extend(self.users_of(thread)?);
        }
        Ok(all)
    }

    /// Has every worker change its sessions, and tells how many it says.
    pub(super) fn change(
        &self,
        change: impl Fn(&mut Sessions) -> usize + Clone + Send + 'static,
    ) -> Result<usize, NatError> {
        let done = self.graph.on_every_state(&self.keeping, move |_, sessions| {
            let done = change(sessions);
            (done, sessions.len(), sessions.users.len(), std::mem::take(&mut sessions.events))
        })?;
        let mut all = 0;
        for (thread, (done, sessions, users, events)) in done {
            all += done;
            self.shared.counters.set_totals(thread, sessions, users);
            self.pass_later(events.into_iter().map(|news| ThreadEvent::of(thread, news)));
        }
        Ok(all)
    }

    /// Ends sessions that `stays` does not keep.
    pub(super) fn retain(
        &self,
        stays: impl Fn(&Session) -> bool + Clone + Send + 'static,
    ) -> Result<(), NatError> {
        self.change(move |sessions| sessions.retain(&stays)).map(drop)
    }

    /// Blocks of ports that hosts have.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn blocks(&self) -> Result<Vec<BlockEvent>, NatError> {
        let all = self.graph.on_every_state(&self.keeping, |_, sessions| sessions.blocks.list())?;
        let mut blocks: Vec<BlockEvent> = all.into_values().flatten().collect();
        blocks.sort_by_key(|block| (block.address, block.first));
        Ok(blocks)
    }

    /// Ends the session of a host's address and port, or of those outside.
    ///
    /// # Errors
    /// NAT is off, there is no such session or VRF, or a thread does not answer.
    pub fn del_session(
        &self,
        (address, port): (Ipv4Addr, u16),
        is_inside: bool,
        protocol: u8,
        vrf: u32,
    ) -> Result<(), NatError> {
        self.on()?;
        let table = self.fib.index_of(Family::Ip4, vrf).map_err(|_| NatError::NoSession)?.0;
        let end: Endpoint = (address.to_bits(), port);
        let key = if is_inside { inside_key } else { outside_key }(end, protocol, table);
        let ended = self.change(move |sessions| usize::from(sessions.end(key)))?;
        if ended > 0 { Ok(()) } else { Err(NatError::NoSession) }
    }

    /// Ends all sessions of a host; `table` is its forwarding table.
    ///
    /// # Errors
    /// NAT is off, there is none, or a thread does not answer.
    pub fn del_user(&self, address: Ipv4Addr, table: u32) -> Result<(), NatError> {
        self.on()?;
        let host = (address.to_bits(), table);
        let ended = self.change(move |sessions| {
            sessions.retain(|session| (session.inside.0, session.inside_table) != host)
        })?;
        if ended > 0 { Ok(()) } else { Err(NatError::NoUser) }
    }

    /// Ends all sessions.
    ///
    /// # Errors
    /// NAT is off, or a thread does not answer.
    pub fn clear_sessions(&self) -> Result<(), NatError> {
        self.on()?;
        self.retain(|_| false)
    }
}
