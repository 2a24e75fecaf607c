//! How bindings and sessions begin.

use std::net::Ipv4Addr;

use shoal_flow::{FlowTable, Handle, Tick, Timeout};
use shoal_graph::clock::Time;
use shoal_nat::tuple::TCP;

use super::entry::{Entry, Key, from_host_key, from_internet_key, inside_key, outside_key};
use super::{Bound, FOLLOWS, Refusal, Remote, Sessions, tick, timeout};
use crate::config::{Config, Inside, Outside, has_ports, range};
use crate::tcp::State;

/// Ports tried of one address, at random and then one after the other, and addresses.
const TRIES: u32 = 24;
const IN_ORDER: u32 = 1024;
const ADDRESSES: usize = 4;
impl Sessions {
    /// A session that a host begins, with a binding if it has none.
    ///
    /// # Errors
    /// There is no room.
    pub fn begin(
        &mut self,
        (inside, remote): (&Inside, Remote),
        config: &Config,
        thread: usize,
        now: Time,
    ) -> Result<Outside, Refusal> {
        if config.standby {
            return Err(Refusal::Standby);
        }
        let place = match self.place_of_inside(inside) {
            Some(place) => place,
            None => self.bind(inside, config, thread, now)?,
        };
        self.join(place, remote, State::Closed, now)?;
        self.outside_at(place).ok_or(Refusal::Full)
    }

    /// A session that the Internet begins with a host that has a binding, or a static one; `None`: it has neither.
    ///
    /// # Errors
    /// There is no room.
    pub fn accept(
        &mut self,
        (outside, remote): (Outside, Remote),
        config: &Config,
        now: Time,
    ) -> Result<Option<Inside>, Refusal> {
        let place = match (self.place_of_outside(outside), config.by_outside.get(&outside)) {
            (None, None) => return Ok(None),
            _ if config.standby => return Err(Refusal::Standby),
            (Some(place), _) => place,
            (None, Some(inside)) => self.insert_binding(inside, outside, true, now)?,
        };
        self.join(place, remote, State::Closed, now)?;
        Ok(self.inside_at(place))
    }

    /// A binding of a host: the static one, or a port of a shared address.
    fn bind(&mut self, inside: &Inside, config: &Config, thread: usize, now: Time) -> Result<u32, Refusal> {
        if let Some(outside) = config.by_inside.get(inside) {
            return self.insert_binding(inside, *outside, true, now);
        }
        for address in self.addresses(inside, config) {
            if let Some(port) = self.free_port(inside, address, config, thread) {
                let outside = Outside { address, port, protocol: inside.protocol };
                return self.insert_binding(inside, outside, false, now);
            }
        }
        Err(Refusal::OutOfPorts)
    }

    /// Shared addresses to try: RFC 6146, 3.5.1.1 and RFC 4787, REQ-2: a host keeps its address.
    fn addresses(&self, inside: &Inside, config: &Config) -> Vec<Ipv4Addr> {
        let of_table: Vec<Ipv4Addr> = config
            .pool
            .iter()
            .filter(|pool| pool.table == Some(inside.table))
            .map(|pool| pool.address)
            .collect();
        let all =
            || config.pool.iter().filter(|pool| pool.table.is_none()).map(|pool| pool.address).collect();
        let pool: Vec<Ipv4Addr> = if of_table.is_empty() { all() } else { of_table };
        let own = self.hosts.get(&(inside.address, inside.table)).map(|(address, _)| *address);
        let own = own.filter(|own| pool.contains(own));
        let bits = inside.address.to_bits();
        let start = ((bits ^ (bits >> 64)) as usize) % pool.len().max(1);
        let others = pool.iter().copied().cycle().skip(start).take(pool.len().min(ADDRESSES));
        own.into_iter().chain(others.filter(|other| Some(*other) != own)).collect()
    }

    /// A port that nothing has: of the same parity as the host's (RFC 6146, 3.5.1.1), hard to guess (RFC 6056).
    fn free_port(
        &mut self,
        inside: &Inside,
        address: Ipv4Addr,
        config: &Config,
        thread: usize,
    ) -> Option<u16> {
        let free = |sessions: &Self, port: u16| {
            let outside = Outside { address, port, protocol: inside.protocol };
            sessions.place_of_outside(outside).is_none() && config.by_outside.get(&outside).is_none()
        };
        if !has_ports(inside.protocol) {
            return free(self, 0).then_some(0);
        }
        let (first, count) = range(config.nth(thread), config.workers.len());
        // Of the range of this worker, those of the right parity.
        let skew = u32::from((first ^ inside.port) & 1);
        let pairs = (count - skew).div_ceil(2).max(1);
        let port = |nth: u32| first.wrapping_add((skew + 2 * (nth % pairs)) as u16);
        for _ in 0..TRIES {
            let port = port(self.random.below(pairs));
            if free(self, port) {
                return Some(port);
            }
        }
        let start = self.random.below(pairs);
        (0..IN_ORDER.min(pairs)).map(|nth| port(start.wrapping_add(nth))).find(|port| free(self, *port))
    }

    pub(super) fn insert_binding(
        &mut self,
        inside: &Inside,
        outside: Outside,
        is_static: bool,
        now: Time,
    ) -> Result<u32, Refusal> {
        let now = tick(now);
        if self.bindings >= self.limits.bindings {
            return Err(Refusal::FullOfBindings);
        }
        let table = self.table.as_mut().ok_or(Refusal::Full)?;
        let Outside { address, port, .. } = outside;
        let binding = Entry::Binding { outside: (address, port), is_static, sessions: 0, other: 0 };
        let key = inside_key(inside);
        let here = insert_both(table, (key, binding), outside_key(outside), Entry::Outside, FOLLOWS, now)?;
        self.bindings += 1;
        if is_static {
            self.statics += 1;
        } else {
            self.say((true, *inside, outside));
        }
        self.hosts.entry((inside.address, inside.table)).or_insert((outside.address, 0)).1 += 1;
        Ok(here.index())
    }

    /// A session by a binding; one that there is stays.
    pub(super) fn join(
        &mut self,
        place: u32,
        remote: Remote,
        state: State,
        now: Time,
    ) -> Result<(), Refusal> {
        let Bound { inside, outside, .. } = self.bound_at(place).ok_or(Refusal::Full)?;
        let protocol = inside.protocol;
        let is_full = self.count >= self.limits.sessions;
        let table = self.table.as_mut().ok_or(Refusal::Full)?;
        let key = from_host_key(&inside, remote);
        if table.handle_of(key).is_some() {
            return Ok(());
        }
        let began = tick(now).0 as u32;
        let session =
            Entry::Session { outside: (outside.address, outside.port), state, binding: place, other: 0 };
        let reply = |session| Entry::Reply { session, began };
        let made = if is_full {
            Err(Refusal::Full)
        } else {
            let (other, timeout) = (from_internet_key(outside, remote), timeout(protocol, state));
            insert_both(table, (key, session), other, reply, timeout, tick(now))
        };
        let made = match made {
            Ok(made) => made,
            Err(why) => {
                self.let_go(place);
                return Err(why);
            }
        };
        self.count += 1;
        // Of a TCP connection another router hears when it is established.
        if self.tap.is_on() && protocol != TCP {
            self.tap.began(made.to_bits(), now);
        }
        self.with_sessions(place, |sessions| *sessions += 1);
        Ok(())
    }
}

/// Makes an entry and the one of the other side, which lives as long.
fn insert_both(
    table: &mut FlowTable<Key, Entry>,
    (key, entry): (Key, Entry),
    other_key: Key,
    other: impl FnOnce(u32) -> Entry,
    timeout: Timeout,
    now: Tick,
) -> Result<Handle, Refusal> {
    let here = table.insert(key, entry, timeout, now).map_err(|_| Refusal::Full)?;
    let Ok(there) = table.insert(other_key, other(here.index()), FOLLOWS, now) else {
        table.remove(here);
        return Err(Refusal::Full);
    };
    if let Some(Entry::Binding { other, .. } | Entry::Session { other, .. }) = table.get_mut(here) {
        *other = there.index();
    }
    Ok(here)
}
