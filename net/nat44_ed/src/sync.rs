//! What another router hears of a thread's sessions, and what becomes of that router's sessions here.

use shoal_flow::{Handle, Tick};
use shoal_graph::clock::Time;
use shoal_nat_state::sync::{Authority, Candidate, Entered, Misfit, SyncedStore, Tap};

use crate::session_direction::{Marks, SessionDirection};
use crate::sessions::{Record, Session, Sessions, TICKS, tick};
use crate::shared::Shared;

/// A session of fewer packets is not reported.
const ANSWERED: u64 = 2;

impl Sessions {
    /// The session of its inside entry is as it is now.
    #[cold]
    pub(crate) fn tell(&mut self, inside: Handle, now: Tick) {
        if let Some(record) = self.record(inside.index(), now) {
            self.tap.put(record.index, record);
        }
    }

    /// A session has ended, whose two directions these were.
    #[cold]
    pub(crate) fn tell_end(&mut self, session: &Session, (way, other): (SessionDirection, SessionDirection)) {
        let packets = u64::from(way.packets) + u64::from(other.packets);
        if packets < ANSWERED || session.marks & Marks::BYPASS != 0 {
            return;
        }
        let states = (way.state, other.state);
        self.tap.gone(Record { session: *session, states, packets, bytes: 0, age: 0, index: 0 });
    }

    fn candidate(&self, index: u32, now: Time) -> Option<Candidate<Record>> {
        let record = self.record(index, tick(now))?;
        (record.session.marks & Marks::BYPASS == 0).then_some(Candidate {
            place: index,
            record,
            is_answered: record.packets >= ANSWERED,
            idle: record.age / TICKS as u32,
        })
    }

    /// A session that is here already.
    fn renew(&mut self, inside: Handle, record: &Record, authority: Authority, now: Tick) {
        let last = Tick(now.0.saturating_sub(record.age.into()));
        let Some((way, peer)) = self.way(inside).zip(self.peer(inside)) else { return };
        let is_older = self.age(inside, now).is_none_or(|age| age > record.age);
        let is_theirs = authority == Authority::Theirs;
        let Some(table) = self.table() else { return };
        if is_theirs {
            if let Some(way) = table.get_mut(inside) {
                way.state = record.states.0;
                way.set_counts(record.packets, record.bytes);
            }
            if let Some(way) = table.get_mut(peer) {
                way.state = record.states.1;
                way.set_counts(0, 0);
            }
        }
        if is_older {
            table.touch(inside, last);
        }
        if is_theirs && way.timeout() != record.states.0.timeout() {
            table.set_timeout(inside, record.states.0.timeout(), last);
        }
    }

    fn make_place(&mut self, record: &Record, shared: &Shared, now: Time) -> Result<(), Misfit> {
        let config = shared.config.get();
        let table = record.session.inside_table;
        let is_full = |sessions: &Sessions| {
            sessions.len() >= config.sessions as usize || sessions.of_table(table) >= config.limit(table)
        };
        if is_full(self) && (self.make_room(&config.timeouts, now) == 0 || is_full(self)) {
            return Err(Misfit::Full);
        }
        Ok(())
    }
}

impl SyncedStore for Sessions {
    type Synced = Record;

    fn tap(&mut self) -> &mut Tap<Record> {
        &mut self.tap
    }

    fn places(&self) -> u32 {
        Sessions::places(self)
    }

    fn most_places(&self, shared: &Shared) -> u32 {
        shared.config.get().sessions.saturating_mul(2)
    }

    fn at(&self, place: u32, now: Time) -> Option<Candidate<Record>> {
        self.candidate(place, now)
    }

    fn of_handle(&self, handle: u64, now: Time) -> Option<Candidate<Record>> {
        let handle = Handle::from_bits(handle)?;
        self.way(handle)?;
        self.candidate(handle.index(), now)
    }

    fn enter(
        &mut self,
        record: &Record,
        authority: Authority,
        shared: &Shared,
        now: Time,
    ) -> Result<Entered, Misfit> {
        let session = &record.session;
        let ends = (self.find(session.inside_key()), self.find(session.outside_key()));
        if let (Some(inside), Some(outside)) = ends
            && self.peer(inside) == Some(outside)
        {
            self.renew(inside, record, authority, tick(now));
            return Ok(Entered { place: inside.index(), is_new: false, replaced: 0 });
        }
        let in_the_way = [ends.0, ends.1].into_iter().flatten();
        if authority == Authority::Ours && in_the_way.clone().count() > 0 {
            return Err(Misfit::Taken);
        }
        self.quietly(|sessions| {
            let replaced = in_the_way.filter(|handle| sessions.remove(*handle).is_some()).count() as u32;
            sessions.make_place(record, shared, now)?;
            sessions.take_in(record, tick(now));
            // There is room, so its outside port is another host's.
            let inside = sessions.find(session.inside_key()).ok_or(Misfit::Taken)?;
            Ok(Entered { place: inside.index(), is_new: true, replaced })
        })
    }

    fn leave(&mut self, record: &Record) -> bool {
        let session = &record.session;
        let ends = (self.find(session.inside_key()), self.find(session.outside_key()));
        // Another session may have one of the tuples by now.
        let (Some(inside), Some(outside)) = ends else { return false };
        self.peer(inside) == Some(outside) && self.quietly(|sessions| sessions.remove(inside).is_some())
    }

    fn end_at(&mut self, place: u32) -> bool {
        // Packets that pass as they are have sessions that no other router hears of.
        let Some(record) = self.record(place, Tick(0)).filter(|it| it.session.marks & Marks::BYPASS == 0)
        else {
            return false;
        };
        self.quietly(|sessions| sessions.end(record.session.inside_key()))
    }
}
