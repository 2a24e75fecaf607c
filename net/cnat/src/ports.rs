//! Source ports: which are given out, and in what order they are tried.

use shoal_flow::Handle;
use shoal_graph::clock::Time;
use shoal_nat44::ports::range;
use shoal_wire::IpProtocol;

use crate::config::Config;
use crate::sessions::{Refusal, Session, Sessions};

/// How the source port of a session is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortChoice {
    /// This one or none.
    Fixed,
    /// This one if it is free.
    Kept,
    /// Any.
    Any,
}

/// Why a session was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionError {
    /// All ports that were tried are taken.
    NoFreePorts,
    /// There are as many sessions as there may be.
    Full,
}

/// Makes sessions.
pub struct Ports<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The worker.
    pub thread: usize,
    /// Now.
    pub now: Time,
    /// Ports tried beside the first.
    pub retries: u32,
}

impl Ports<'_> {
    /// Whether the worker would have the answers.
    fn is_mine(&self, session: &Session) -> bool {
        let owner = self.config.owner(session.is_ip6, session.protocol, session.to.reversed());
        owner == self.thread || self.config.nth(self.thread).is_none()
    }

    fn attempt(&self, sessions: &mut Sessions, session: Session) -> Option<Result<Handle, SessionError>> {
        if !self.is_mine(&session) || !sessions.is_free(&session) {
            return None;
        }
        match sessions.create(session, self.now) {
            Ok(handle) => Some(Ok(handle)),
            Err(Refusal::Taken) => None,
            Err(Refusal::Full) => Some(Err(SessionError::Full)),
        }
    }

    /// Makes a session whose source port is found so. No port is given to two connections of which both the other end's address and
    /// its port are the same.
    ///
    /// # Errors
    /// No port is free, or there is no room.
    pub fn make(
        &mut self,
        sessions: &mut Sessions,
        mut session: Session,
        wish: PortChoice,
    ) -> Result<Handle, SessionError> {
        if wish != PortChoice::Any
            && let Some(done) = self.attempt(sessions, session)
        {
            return done;
        }
        if wish == PortChoice::Fixed {
            return Err(SessionError::NoFreePorts);
        }
        let (first, count) = match self.config.nth(self.thread) {
            Some(nth) => range(nth, self.config.workers.len()),
            None => range(0, 1),
        };
        let is_query = matches!(IpProtocol(session.protocol), IpProtocol::ICMP | IpProtocol::ICMP6);
        for _ in 0..self.config.limits.retries {
            let port = first.saturating_add(sessions.random.below(count) as u16);
            session.to.sport = port;
            if is_query {
                session.to.dport = port;
            }
            if let Some(done) = self.attempt(sessions, session) {
                return done;
            }
            self.retries += 1;
        }
        Err(SessionError::NoFreePorts)
    }
}
