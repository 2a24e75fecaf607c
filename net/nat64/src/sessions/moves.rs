//! Sessions that go from thread to thread.

use shoal_graph::clock::Time;

use super::{Record, Refusal, Sessions};
use crate::config::Config;

impl Sessions {
    /// Ends the sessions that `goes` says; their records.
    pub fn take_out(&mut self, mut goes: impl FnMut(&Record) -> bool) -> Vec<Record> {
        self.quietly(|sessions| sessions.take_out_of(&mut goes))
    }

    fn take_out_of(&mut self, goes: &mut dyn FnMut(&Record) -> bool) -> Vec<Record> {
        let mut all = std::mem::take(&mut self.parcel);
        for place in self.places() {
            if let Some((handle, record)) = self.session_at(place)
                && goes(&record)
            {
                all.extend(self.end(handle));
            }
        }
        all
    }

    /// Sessions on their way to another thread.
    pub fn parcel(records: Vec<Record>) -> Self {
        Sessions { parcel: records, ..Sessions::none() }
    }

    /// Takes in what another thread had. A session whose port was given out meanwhile is lost.
    pub fn take_in(&mut self, mut other: Sessions, config: &Config, now: Time) {
        for record in std::mem::take(&mut other.parcel) {
            // It is full, and says so to packets.
            let _ = self.put(&record, config, now);
        }
    }

    /// Makes a session, by the binding that is there or by a new one, unless there is one.
    ///
    /// # Errors
    /// Another binding has one of its sides ([`Refusal::OutOfPorts`]), or there is no room.
    pub(super) fn put(&mut self, record: &Record, config: &Config, now: Time) -> Result<(), Refusal> {
        let Record { inside, outside, remote, state } = *record;
        let place = match (self.place_of_inside(&inside), self.place_of_outside(outside)) {
            (Some(one), Some(other)) if one == other => one,
            (None, None) => {
                let is_static = config.by_inside.get(&inside) == Some(&outside);
                self.insert_binding(&inside, outside, is_static, now)?
            }
            _ => return Err(Refusal::OutOfPorts),
        };
        self.join(place, remote, state, now)
    }
}
