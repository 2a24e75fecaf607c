//! What a thread keeps: which server each flow has, so that it stays when servers come and go.

use std::collections::HashMap;

use shoal_flow::{FlowTable, Search, Settings, TableError, Tick, Timeout};
use shoal_graph::clock::Time;

use crate::vip::PickedServer;

/// A virtual address's serial number and a flow's hash. Flows with the same hash share a server.
pub type Key = [u64; 1];

/// A tick is a second.
const TICK: u64 = 1_000_000_000;
const ALIKE: Timeout = Timeout::new(0);
/// Timers looked at in one go.
const AT_ONCE: usize = 128;

/// What the flow table is asked for.
pub fn key(serial: u32, hash: u32) -> Key {
    [u64::from(serial) << 32 | u64::from(hash)]
}

/// How many flows a thread remembers, and how long after their last packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Flows.
    pub flows: u32,
    /// Seconds.
    pub timeout: u32,
}

/// Flows of one thread.
pub struct Flows {
    table: Option<FlowTable<Key, PickedServer>>,
    /// Flows of each server, by its number.
    of_server: HashMap<u32, u32>,
    /// The identification of tunnel packets, which may be cut on their way.
    identification: u16,
}

fn tick(now: Time) -> Tick {
    Tick(now.0 / TICK)
}

impl Flows {
    /// Of a thread that remembers none.
    pub fn none() -> Self {
        Flows { table: None, of_server: HashMap::new(), identification: 0 }
    }

    /// Makes room; flows that are there are forgotten.
    ///
    /// # Errors
    /// There is no memory, or the timeout is too long.
    pub fn open(&mut self, room: Room, now: Time) -> Result<(), TableError> {
        let settings = Settings::flows(room.flows).timeout(ALIKE, room.timeout.max(1));
        self.table = Some(FlowTable::new(settings, tick(now))?);
        self.of_server.clear();
        Ok(())
    }

    /// Changes how long flows are remembered.
    ///
    /// # Errors
    /// The timeout is too long.
    pub fn set_timeout(&mut self, seconds: u32) -> Result<(), TableError> {
        self.table.as_mut().map_or(Ok(()), |table| table.change_timeout(ALIKE, seconds.max(1)))
    }

    /// How many there are, if there is room for any.
    pub fn used(&self) -> Option<usize> {
        self.table.as_ref().map(FlowTable::len)
    }

    /// Flows of each server, by its number.
    pub fn of_server(&self) -> HashMap<u32, u32> {
        self.of_server.clone()
    }

    /// Begins a look-up.
    #[inline(always)]
    pub fn search(&self, key: Key) -> Search<Key> {
        self.table.as_ref().map_or_else(|| Search::of(key), |table| table.search(key))
    }

    /// Goes on with look-ups.
    #[inline(always)]
    pub fn seek(&self, searches: &mut [Search<Key>]) {
        if let Some(table) = &self.table {
            table.seek(searches);
        }
    }

    /// The server of a flow, if it is known. A packet uses it.
    #[inline(always)]
    pub fn find(&mut self, search: &Search<Key>, now: Time) -> Option<PickedServer> {
        let mut flow = self.table.as_mut()?.find(search)?;
        flow.touch(tick(now));
        Some(*flow.value())
    }

    /// Remembers a flow's server; `false`: there is no room.
    pub fn remember(&mut self, search: &Search<Key>, pick: PickedServer, now: Time) -> bool {
        let Some(table) = self.table.as_mut() else { return false };
        if let Some(mut flow) = table.find(search) {
            let old = std::mem::replace(flow.value_mut(), pick);
            Self::less(&mut self.of_server, old.id);
        } else if table.insert(*search.key(), pick, ALIKE, tick(now)).is_err() {
            return false;
        }
        *self.of_server.entry(pick.id).or_default() += 1;
        true
    }

    fn less(of_server: &mut HashMap<u32, u32>, id: u32) {
        if let Some(count) = of_server.get_mut(&id) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                of_server.remove(&id);
            }
        }
    }

    /// When a flow may be forgotten.
    pub fn due(&self) -> Option<Time> {
        let Tick(tick) = self.table.as_ref()?.next_expiry()?;
        Some(Time(tick.saturating_mul(TICK)))
    }

    /// Forgets flows that had no packet for long, a few at once.
    pub fn expire(&mut self, now: Time) {
        let Some(table) = self.table.as_mut() else { return };
        let of_server = &mut self.of_server;
        table.expire(tick(now), AT_ONCE, |_, pick| Self::less(of_server, pick.id));
    }

    /// The identification of the next tunnel packet.
    pub fn identification(&mut self) -> u16 {
        self.identification = self.identification.wrapping_add(1);
        self.identification
    }
}
