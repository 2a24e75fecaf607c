//! What another router hears of a thread's sessions, and what becomes of that router's sessions here.

use shoal_flow::{Handle, Tick};
use shoal_graph::clock::Time;
use shoal_nat::tuple::TCP;
use shoal_nat_state::sync::{Authority, Candidate, Entered, Misfit, SyncedStore, Tap};

use super::entry::{Entry, from_host_key, protocol_of};
use super::{Record, Refusal, Sessions, TICKS, most_entries, record, tick, timeout};
use crate::shared::Shared;
use crate::tcp::State;

/// A session as another router hears of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SyncedSession {
    /// What it is.
    pub record: Record,
    /// Seconds since its last packet.
    pub idle: u32,
}

impl Sessions {
    /// A session is as it is now.
    #[cold]
    pub(super) fn tell(&mut self, handle: Handle, now: Tick) {
        if let Some(candidate) = self.candidate(handle, now) {
            self.tap.put(candidate.place, candidate.record);
        }
    }

    /// A session ends now.
    #[cold]
    pub(super) fn tell_end(&mut self, handle: Handle) {
        let now = self.table.as_ref().map_or(Tick(0), shoal_flow::FlowTable::latest);
        if let Some(candidate) = self.candidate(handle, now).filter(|candidate| candidate.is_answered) {
            self.tap.gone(candidate.record);
        }
    }

    /// The session of a record.
    fn find(&self, record: &Record) -> Option<Handle> {
        let table = self.table.as_ref()?;
        let handle = table.handle_of(from_host_key(&record.inside, record.remote))?;
        let Entry::Session { outside, .. } = table.get(handle)? else { return None };
        (*outside == (record.outside.address, record.outside.port)).then_some(handle)
    }

    fn candidate(&self, handle: Handle, now: Tick) -> Option<Candidate<SyncedSession>> {
        let table = self.table.as_ref()?;
        let (entry, key) = (table.get(handle)?, table.key(handle)?);
        let Entry::Session { other, .. } = *entry else { return None };
        let Entry::Reply { began, .. } = *table.get(table.handle_at(other)?)? else { return None };
        let record = record(key, entry)?;
        let age = table.age(handle, now)?;
        // One that is used again an eighth of a second after its first packet, or later.
        let is_used_again = now.0.wrapping_sub(age.into()) as u32 != began;
        let is_answered = if record.inside.protocol == TCP { record.state.was_open() } else { is_used_again };
        let idle = age / TICKS as u32;
        let record = SyncedSession { record, idle };
        Some(Candidate { place: handle.index(), record, is_answered, idle })
    }

    /// A session of another router: how far it is there, and when its last packet came.
    fn renew(&mut self, handle: Handle, state: State, last: Tick) {
        let Some(table) = self.table.as_mut() else { return };
        let Some(protocol) = table.key(handle).map(|key| protocol_of(key[3])) else { return };
        let Some(Entry::Session { state: old, other, .. }) = table.get_mut(handle) else { return };
        let other = *other;
        *old = state;
        if let Some(mut flow) = table.flow_of(other)
            && let Entry::Reply { began, .. } = flow.value_mut()
        {
            // It counts as one that was used again.
            *began = (last.0 as u32).wrapping_sub(1);
        }
        let timeout = timeout(protocol, state);
        table.touch(handle, last);
        table.set_timeout(handle, timeout, last);
    }

    /// Does something that neither collectors nor another router hear of.
    pub(super) fn quietly<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let (tap, told) = (std::mem::take(&mut self.tap), self.events.len());
        let done = change(self);
        self.tap = tap;
        self.events.truncate(told);
        done
    }
}

impl SyncedStore for Sessions {
    type Synced = SyncedSession;

    fn tap(&mut self) -> &mut Tap<SyncedSession> {
        &mut self.tap
    }

    fn places(&self) -> u32 {
        Sessions::places(self).end
    }

    fn most_places(&self, _: &Shared) -> u32 {
        most_entries(self.limits)
    }

    fn at(&self, place: u32, now: Time) -> Option<Candidate<SyncedSession>> {
        self.candidate(self.session_at(place)?.0, tick(now))
    }

    fn of_handle(&self, handle: u64, now: Time) -> Option<Candidate<SyncedSession>> {
        self.candidate(Handle::from_bits(handle)?, tick(now))
    }

    fn enter(
        &mut self,
        synced: &SyncedSession,
        authority: Authority,
        shared: &Shared,
        now: Time,
    ) -> Result<Entered, Misfit> {
        let SyncedSession { record, idle } = synced;
        let found = self.find(record);
        let is_new = found.is_none();
        if is_new {
            let config = shared.config.get();
            self.quietly(|sessions| sessions.put(record, &config, now)).map_err(|why| match why {
                Refusal::OutOfPorts => Misfit::Taken,
                Refusal::Full | Refusal::FullOfBindings | Refusal::Standby => Misfit::Full,
            })?;
        }
        let handle = found.or_else(|| self.find(record)).ok_or(Misfit::Full)?;
        if is_new || authority == Authority::Theirs {
            self.renew(handle, record.state, Tick(tick(now).0.saturating_sub(u64::from(*idle) * TICKS)));
        }
        Ok(Entered { place: handle.index(), is_new, replaced: 0 })
    }

    fn leave(&mut self, synced: &SyncedSession) -> bool {
        let Some(handle) = self.find(&synced.record) else { return false };
        self.quietly(|sessions| sessions.end(handle).is_some())
    }

    fn end_at(&mut self, place: u32) -> bool {
        let Some((handle, _)) = self.session_at(place) else { return false };
        self.quietly(|sessions| sessions.end(handle).is_some())
    }
}
