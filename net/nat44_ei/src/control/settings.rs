//! On, off, and what holds for all sessions.

use shoal_nat44::reach::Outside;
use shoal_wire::Ip4Prefix;

use super::{Nat44Ei, NatError};
use crate::config::{Algorithm, AtUserLimit, Config, Mode, PORTS_OF_PART, Timeouts};
use crate::sessions::LONGEST;

/// How NAT is switched on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enable {
    /// The VRF of hosts, by default.
    pub inside_vrf: u32,
    /// The VRF of the world, by default.
    pub outside_vrf: u32,
    /// Hosts of a worker at most; 0: [`Enable::USERS`].
    pub users: u32,
    /// Sessions of a worker at most; 0: [`Enable::SESSIONS`].
    pub sessions: u32,
    /// Sessions of a host at most; 0: as many as a worker has.
    pub user_sessions: u32,
    /// Which packets are translated.
    pub mode: Mode,
    /// Whether addresses have routes of their own instead of being the router's.
    pub out2in_dpo: bool,
}

impl Enable {
    /// Hosts of a worker, by default.
    pub const USERS: u32 = 1024;
    /// Sessions of a worker, by default.
    pub const SESSIONS: u32 = 10 * 1024;
    /// The most a worker can have.
    pub const MOST: u32 = 1 << 26;
}

impl Default for Enable {
    fn default() -> Self {
        Enable {
            inside_vrf: 0,
            outside_vrf: 0,
            users: Enable::USERS,
            sessions: Enable::SESSIONS,
            user_sessions: Enable::SESSIONS,
            mode: Mode::Dynamic,
            out2in_dpo: false,
        }
    }
}

/// Ports of the smallest block.
const LEAST_BLOCK: u16 = 16;

/// Whether there are such ports.
fn check(algorithm: Algorithm) -> Result<(), NatError> {
    match algorithm {
        Algorithm::MapE { offset, length, psid, .. } => {
            let bits = u32::from(offset) + u32::from(length);
            if offset > 15 || bits > 16 {
                return Err(NatError::Value(format!(
                    "psid-offset {offset} and psid-len {length} are {bits} bits: at most 16 together, and 15 before the port set"
                )));
            }
            if u32::from(psid) >> length != 0 {
                return Err(NatError::Value(format!("psid {psid} has more than {length} bits")));
            }
            Ok(())
        }
        Algorithm::Range { first, last } if last <= first => Err(NatError::Value(format!(
            "{last} is not above {first}: the first port of a range comes first, and it is not the last"
        ))),
        Algorithm::Range { first: 0, .. } => Err(NatError::Value("a range of ports begins at 1".to_owned())),
        Algorithm::Blocks { size, most } => {
            let fits = (LEAST_BLOCK..=PORTS_OF_PART as u16).contains(&size);
            if !fits {
                let nearest = size.clamp(LEAST_BLOCK, PORTS_OF_PART as u16);
                return Err(NatError::Value(format!(
                    "a block of {size} ports is not possible: {LEAST_BLOCK} to {PORTS_OF_PART}, nearest {nearest}"
                )));
            }
            if most == 0 { Err(NatError::Value("a host has at least 1 block".to_owned())) } else { Ok(()) }
        }
        Algorithm::Default | Algorithm::Range { .. } => Ok(()),
    }
}

impl Nat44Ei {
    /// Switches NAT on, without interfaces and addresses.
    ///
    /// # Errors
    /// It is on, or there is no memory for so many sessions.
    pub fn enable(&self, mut asked: Enable) -> Result<(), NatError> {
        if self.enabled().is_some() {
            return Err(NatError::AlreadyOn);
        }
        let or = |value: u32, usual: u32| if value == 0 { usual } else { value };
        asked.users = or(asked.users, Enable::USERS);
        asked.sessions = or(asked.sessions, Enable::SESSIONS);
        asked.user_sessions = or(asked.user_sessions, asked.sessions);
        for asked in [asked.users, asked.sessions, asked.user_sessions] {
            if asked > Enable::MOST {
                let reason = format!("1 to {} of a worker, nearest {}", Enable::MOST, Enable::MOST);
                return Err(NatError::Sessions { asked, reason });
            }
        }
        let inside_table = self.held.hold(asked.inside_vrf)?.0;
        let outside_table = match self.held.hold(asked.outside_vrf) {
            Ok(table) => table.0,
            Err(e) => {
                self.held.release_all();
                return Err(e.into());
            }
        };
        let config = Config {
            on: true,
            mode: asked.mode,
            users: asked.users,
            sessions: asked.sessions,
            user_sessions: asked.user_sessions,
            inside_table,
            outside: Outside { table: outside_table, ..Outside::default() },
            // What was configured before holds.
            timeouts: self.timeouts(),
            algorithm: self.algorithm(),
            ..Config::default()
        };
        self.state.borrow_mut().config = config;
        if let Err(reason) = self.open_sessions() {
            self.close_sessions();
            self.held.release_all();
            self.state.take();
            return Err(NatError::Sessions { asked: asked.sessions, reason });
        }
        self.state.borrow_mut().on = Some(asked);
        self.keeping.feature().set(true);
        let last = self.interfaces.indices().iter().map(|index| index.0 as usize + 1).max();
        self.shared.counters.ensure(last.unwrap_or(1));
        self.publish();
        self.followed().into_iter().for_each(|interface| self.follow_addresses(interface));
        Ok(())
    }

    fn open_sessions(&self) -> Result<(), String> {
        let now = self.graph.clock().now();
        for thread in self.keeping.feature().workers() {
            let config = self.state.borrow().config.clone();
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
            self.shared.counters.set_totals(thread, 0, 0);
        }
    }

    /// Switches NAT off: sessions and all that was configured go.
    ///
    /// # Errors
    /// It is off.
    pub fn disable(&self) -> Result<(), NatError> {
        if self.enabled().is_none() {
            return Err(NatError::AlreadyOff);
        }
        self.translated.leave_all();
        self.keeping.feature().set(false);
        let mut state = self.state.borrow_mut();
        state.pool.clear();
        state.statics.clear();
        drop(state);
        self.answer_for_addresses();
        self.close_sessions();
        self.stop_replication();
        self.state.take();
        self.held.release_all();
        self.publish();
        Ok(())
    }

    /// How long sessions live without a packet.
    pub fn timeouts(&self) -> Timeouts {
        self.state.borrow().config.timeouts
    }

    /// Changes that, also while NAT is off.
    ///
    /// # Errors
    /// One is out of range, or a thread does not answer.
    pub fn set_timeouts(&self, timeouts: Timeouts) -> Result<(), NatError> {
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

    /// Says whether they do, until NAT is switched on.
    pub fn set_forwarding(&self, on: bool) {
        self.state.borrow_mut().config.forwarding = on;
        self.publish();
    }

    /// What becomes of packets of hosts that have as many sessions as they may have.
    pub fn at_user_limit(&self) -> AtUserLimit {
        self.state.borrow().config.at_user_limit
    }

    /// Says what does, until NAT is switched on.
    pub fn set_at_user_limit(&self, what: AtUserLimit) {
        self.state.borrow_mut().config.at_user_limit = what;
        self.publish();
    }

    /// The largest segment a connection may ask for; 0: any.
    pub fn mss(&self) -> u16 {
        self.state.borrow().config.mss
    }

    /// Sets it, until NAT is switched on.
    pub fn set_mss(&self, mss: u16) {
        self.state.borrow_mut().config.mss = mss;
        self.publish();
    }

    /// Destinations that hosts reach with their own addresses.
    pub fn exempt(&self) -> Vec<Ip4Prefix> {
        self.state.borrow().config.exempt.clone()
    }

    /// Has hosts reach a destination with their own addresses, or no more. Sessions that are there stay.
    ///
    /// # Errors
    /// NAT is off, or it is so already.
    pub fn set_exempt(&self, prefix: Ip4Prefix, on: bool) -> Result<(), NatError> {
        self.on()?;
        let prefix = prefix.normalized();
        let mut state = self.state.borrow_mut();
        let exempt = &mut state.config.exempt;
        match (on, exempt.iter().position(|one| *one == prefix)) {
            (true, None) => exempt.push(prefix),
            (false, Some(at)) => _ = exempt.remove(at),
            (true, Some(_)) => return Err(NatError::Interface(format!("{prefix} is exempt already"))),
            (false, None) => return Err(NatError::NoExempt(prefix)),
        }
        drop(state);
        self.publish();
        Ok(())
    }

    /// How ports are chosen.
    pub fn algorithm(&self) -> Algorithm {
        self.state.borrow().config.algorithm
    }

    /// Says how, also while NAT is off. Sessions that are there keep theirs.
    ///
    /// # Errors
    /// There are no such ports, or a thread does not answer.
    pub fn set_algorithm(&self, algorithm: Algorithm) -> Result<(), NatError> {
        check(algorithm)?;
        let old = std::mem::replace(&mut self.state.borrow_mut().config.algorithm, algorithm);
        self.publish();
        let has_blocks = |of| matches!(of, Algorithm::Blocks { .. });
        if old != algorithm && (has_blocks(old) || has_blocks(algorithm)) {
            // A port outside its host's block would be missing in the log.
            self.retain(|session| session.is_static)?;
            self.change(move |sessions| {
                sessions.set_algorithm(algorithm);
                0
            })?;
        }
        Ok(())
    }
}
