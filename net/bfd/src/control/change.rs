//! What an operator or a daemon changes of a session.

use super::{Bfd, Hop, SessionKey};
use crate::error::BfdError;
use crate::session::{EchoWish, Parameters, Todo};

impl Bfd {
    /// Gives a session other parameters.
    ///
    /// # Errors
    /// There is none, or a number is wrong.
    pub fn modify(&self, key: SessionKey, parameters: Parameters) -> Result<u32, BfdError> {
        Self::check_parameters(parameters)?;
        let index = self.index_of(key)?;
        self.with(index, |session, now| {
            session.modify(parameters, now);
            Todo::default()
        });
        Ok(index)
    }

    /// Switches a session on or off.
    ///
    /// # Errors
    /// There is none.
    pub fn set_admin(&self, key: SessionKey, up: bool) -> Result<(), BfdError> {
        let index = self.index_of(key)?;
        self.with(index, |session, now| session.set_admin(up, now));
        Ok(())
    }

    /// Has a session wait until the other end begins (RFC 5880, 6.1), or not. One that is not there is passed over.
    pub fn set_passive(&self, key: SessionKey, is_passive: bool) {
        if let Ok(index) = self.index_of(key) {
            self.with(index, |session, _| {
                session.is_passive = is_passive;
                Todo::default()
            });
        }
    }

    /// Has echo packets watch the path of a session (RFC 5880, 6.4), or only where the router has an echo source. One that is not there, or
    /// whose other end is several hops away, is passed over.
    ///
    /// # Errors
    /// A time between packets that are sent is 0.
    pub fn set_echo_wish(&self, key: SessionKey, wish: Option<EchoWish>) -> Result<(), BfdError> {
        if wish.is_some_and(|wish| wish.min_tx == 0) {
            return Err(BfdError::Zero("echo-min-tx"));
        }
        let Ok(index) = self.index_of(key) else { return Ok(()) };
        let wish = wish.filter(|_| key.hop != Hop::Multi);
        let can = self.can_echo(key, wish.is_some());
        let is_new = self.info(key).is_some_and(|info| info.session.echo_wish != wish);
        if !is_new {
            return Ok(());
        }
        self.with(index, |session, now| {
            session.echo_wish = wish;
            session.set_can_echo(can, now);
            Todo::default()
        });
        if let Some(entry) = self.sessions.borrow_mut().all.get_mut(&index) {
            // The plan of before has other times.
            entry.take_back(0);
        }
        self.settle(index);
        Ok(())
    }

    /// Has packets of a session with a lower TTL be dropped and counted: they have passed too many routers. One that is not there is
    /// passed over.
    pub fn set_least_ttl(&self, key: SessionKey, least_ttl: u8) {
        let Ok(index) = self.index_of(key) else { return };
        if let Some(entry) = self.sessions.borrow_mut().all.get_mut(&index)
            && entry.least_ttl != least_ttl
        {
            entry.least_ttl = least_ttl;
            // The plan of before is none any more.
            entry.take_back(0);
        }
        self.settle(index);
    }

    /// Has packets of a session be signed with a key, or not; `delayed`: as soon as the other end's are.
    ///
    /// # Errors
    /// There is no such session or key.
    pub fn set_auth(&self, key: SessionKey, auth: Option<(u32, u8)>, delayed: bool) -> Result<(), BfdError> {
        let index = self.index_of(key)?;
        let auth = self.auth(auth)?;
        self.with(index, |session, _| {
            if delayed {
                session.next_auth = Some(auth);
            } else {
                session.set_auth(auth);
            }
            Todo::default()
        });
        Ok(())
    }
}
