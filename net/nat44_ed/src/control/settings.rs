//! On, off, and what holds for all sessions.

use shoal_adj::Family;
use shoal_nat44::reach::Outside;

use super::{Nat44, NatError};
use crate::config::{Config, Timeouts};
use crate::sessions::LONGEST;

/// How NAT is switched on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enable {
    /// The VRF of hosts by default.
    pub inside_vrf: u32,
    /// The VRF of the world by default.
    pub outside_vrf: u32,
    /// Sessions of a worker at most; 0: [`Enable::SESSIONS`].
    pub sessions: u32,
}

impl Enable {
    /// Sessions of a worker, by default.
    pub const SESSIONS: u32 = 63 * 1024;
    /// The most a worker can have.
    pub const MOST: u32 = 1 << 26;
}

impl Default for Enable {
    fn default() -> Self {
        Enable { inside_vrf: 0, outside_vrf: 0, sessions: Enable::SESSIONS }
    }
}

impl Nat44 {
    /// Switches NAT on, without interfaces and addresses.
    ///
    /// # Errors
    /// It is on, or there is no memory for so many sessions.
    pub fn enable_nat(&self, mut asked: Enable) -> Result<(), NatError> {
        if self.is_on() {
            return Err(NatError::AlreadyOn);
        }
        if asked.sessions == 0 {
            asked.sessions = Enable::SESSIONS;
        }
        if asked.sessions > Enable::MOST {
            let reason = format!("1 to {} of a worker, nearest {}", Enable::MOST, Enable::MOST);
            return Err(NatError::Sessions { asked: asked.sessions, reason });
        }
        let inside_table = self.held.hold(asked.inside_vrf)?.0;
        let outside_table = match self.held.hold(asked.outside_vrf) {
            Ok(table) => table.0,
            Err(e) => {
                self.held.release(asked.inside_vrf);
                return Err(e.into());
            }
        };
        let mut state = self.state.borrow_mut();
        state.config = Config {
            sessions: asked.sessions,
            inside_table,
            outside: Outside { table: outside_table, ..Outside::default() },
            ..Config::default()
        };
        drop(state);
        let open = self.open_sessions();
        if let Err(reason) = open {
            self.close_sessions();
            self.held.release(asked.inside_vrf);
            self.held.release(asked.outside_vrf);
            return Err(NatError::Sessions { asked: asked.sessions, reason });
        }
        self.state.borrow_mut().on = Some(asked);
        self.keeping.feature().set(true);
        let last = self.interfaces.indices().iter().map(|index| index.0 as usize + 1).max();
        self.shared.counters.ensure(last.unwrap_or(1));
        self.publish();
        Ok(())
    }

    fn open_sessions(&self) -> Result<(), String> {
        let config = self.state.borrow().config.clone();
        let now = self.graph.clock().now();
        let forwarding = self.keeping.feature().workers();
        for thread in forwarding {
            let config = config.clone();
            let opened =
                self.graph.on_state(&self.keeping, thread, move |_, sessions| sessions.open(&config, now));
            opened.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    fn close_sessions(&self) {
        if let Err(e) = self.graph.on_every_state(&self.keeping, |_, sessions| sessions.close()) {
            tracing::warn!("sessions stay until their thread answers: {e}");
        }
        for thread in self.keeping.feature().workers() {
            self.shared.counters.set_sessions(thread, 0);
        }
    }

    /// Switches NAT off: sessions and all that was configured go.
    ///
    /// # Errors
    /// It is off.
    pub fn disable_nat(&self) -> Result<(), NatError> {
        if !self.is_on() {
            return Err(NatError::AlreadyOff);
        }
        self.translated.leave_all();
        self.keeping.feature().set(false);
        let mut state = self.state.borrow_mut();
        state.pool.clear();
        state.twice.clear();
        drop(state);
        self.answer_for_pool();
        self.close_sessions();
        self.state.take();
        self.held.release_all();
        self.publish();
        Ok(())
    }

    /// How NAT was switched on, while it is.
    pub fn enabled(&self) -> Option<Enable> {
        self.state.borrow().on
    }

    /// How long sessions live without a packet.
    pub fn timeouts(&self) -> Timeouts {
        self.state.borrow().config.timeouts
    }

    /// Changes that.
    ///
    /// # Errors
    /// NAT is off, or one is out of range.
    pub fn set_timeouts(&self, timeouts: Timeouts) -> Result<(), NatError> {
        self.on()?;
        let Timeouts { udp, tcp_established, tcp_transitory, icmp } = timeouts;
        for value in [udp, tcp_established, tcp_transitory, icmp] {
            if !(1..=LONGEST).contains(&value) {
                return Err(NatError::Timeout { value, most: LONGEST });
            }
        }
        self.state.borrow_mut().config.timeouts = timeouts;
        self.publish();
        self.graph.on_every_state(&self.keeping, move |_, sessions| sessions.set_timeouts(timeouts))?;
        Ok(())
    }

    /// Whether packets that belong to no session pass.
    pub fn forwarding(&self) -> bool {
        self.state.borrow().config.forwarding
    }

    /// Says whether they do. Sessions that say so end when they do no more.
    ///
    /// # Errors
    /// NAT is off.
    pub fn set_forwarding(&self, on: bool) -> Result<(), NatError> {
        self.on()?;
        self.state.borrow_mut().config.forwarding = on;
        self.publish();
        if !on {
            self.end_bypasses()?;
        }
        Ok(())
    }

    /// The largest segment a connection may ask for; 0: any.
    pub fn mss(&self) -> u16 {
        self.state.borrow().config.mss
    }

    /// Sets it.
    ///
    /// # Errors
    /// NAT is off.
    pub fn set_mss(&self, mss: u16) -> Result<(), NatError> {
        self.on()?;
        self.state.borrow_mut().config.mss = mss;
        self.publish();
        Ok(())
    }

    /// Limits the sessions of a VRF's hosts, of each worker. Sessions that are there stay.
    ///
    /// # Errors
    /// NAT is off, or there is no such VRF.
    pub fn set_limit(&self, vrf: u32, limit: u32) -> Result<(), NatError> {
        self.on()?;
        if limit == 0 {
            return Err(NatError::Limit { value: limit });
        }
        self.fib.index_of(Family::Ip4, vrf)?;
        self.state.borrow_mut().limits.insert(vrf, limit);
        self.publish();
        Ok(())
    }

    /// A VRF has no limit of its own.
    ///
    /// # Errors
    /// NAT is off.
    pub fn forget_limit(&self, vrf: u32) -> Result<(), NatError> {
        self.on()?;
        self.state.borrow_mut().limits.remove(&vrf);
        self.publish();
        Ok(())
    }

    /// Limits of VRFs.
    pub fn limits(&self) -> Vec<(u32, u32)> {
        self.state.borrow().limits.iter().map(|(vrf, limit)| (*vrf, *limit)).collect()
    }

    /// Tables in which destinations of a VRF's hosts are looked for.
    pub fn vrf_tables(&self) -> Vec<(u32, Vec<u32>)> {
        self.state.borrow().vrf_tables.iter().map(|(vrf, to)| (*vrf, to.clone())).collect()
    }

    /// Destinations of a VRF's hosts are looked for in tables that are named, or as always.
    ///
    /// # Errors
    /// NAT is off, or it is so already.
    pub fn set_vrf_table(&self, vrf: u32, on: bool) -> Result<(), NatError> {
        self.on()?;
        let there = self.state.borrow().vrf_tables.contains_key(&vrf);
        match (on, there) {
            (true, true) => return Err(NatError::VrfExists(vrf)),
            (false, false) => return Err(NatError::NoVrf(vrf)),
            (true, false) => {
                self.held.hold(vrf)?;
                self.state.borrow_mut().vrf_tables.insert(vrf, Vec::new());
            }
            (false, true) => {
                let routes = self.state.borrow_mut().vrf_tables.remove(&vrf).unwrap_or_default();
                routes.iter().chain([&vrf]).for_each(|vrf| self.held.release(*vrf));
            }
        }
        self.publish();
        Ok(())
    }

    /// A VRF in which they are looked for, too, or no more.
    ///
    /// # Errors
    /// NAT is off, there is no such table, or it is so already.
    pub fn set_vrf_route(&self, vrf: u32, to: u32, on: bool) -> Result<(), NatError> {
        self.on()?;
        let routes = self.state.borrow().vrf_tables.get(&vrf).cloned().ok_or(NatError::NoVrf(vrf))?;
        match (on, routes.contains(&to)) {
            (true, true) => return Err(NatError::VrfExists(to)),
            (false, false) => return Err(NatError::NoVrf(to)),
            (true, false) => _ = self.held.hold(to)?,
            (false, true) => self.held.release(to),
        }
        if let Some(routes) = self.state.borrow_mut().vrf_tables.get_mut(&vrf) {
            if on { routes.push(to) } else { routes.retain(|route| *route != to) }
        }
        self.publish();
        Ok(())
    }
}
