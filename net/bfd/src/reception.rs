//! What becomes of packets that came: those that say nothing new are noted by the thread that received them, the main thread sees the rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use shoal_graph::clock::Time;
use shoal_graph::counter::{Combined, Simple};
use shoal_graph::process::Sender;
use shoal_infra::{Guard, Published};

use crate::auth::Key;
use crate::node::{Error, ReceivedPacket};
use crate::packet::{Control, Echo};
use crate::shared::{Known, SharedSession};

/// What the nodes need.
pub struct Reception {
    /// All sessions.
    pub known: Published<Known>,
    /// By which echo packets are signed.
    pub secret: Key,
    /// Packets of sessions for the main thread.
    pub of_sessions: Sender<ReceivedPacket>,
    /// Packets of none, while there may be one that is new.
    pub of_strangers: Sender<ReceivedPacket>,
    /// A session was made or deleted that is not among all sessions yet.
    pub is_behind: AtomicBool,
    /// Dropped packets of no session.
    pub no_session: Simple,
    /// Those with addresses of another session.
    pub mismatch: Simple,
    /// Echo packets that are not the router's.
    pub echo_bad: Simple,
    /// Packets received.
    pub rx: Combined,
    /// Echo packets received.
    pub echo_rx: Combined,
}

impl Reception {
    /// Leaves a packet of a session for the main thread.
    fn leave(&self, mut heard: ReceivedPacket, session: &Arc<SharedSession>) -> Result<(), Error> {
        if !session.may_wait() {
            return Err(Error::Congested);
        }
        heard.session = Some(Arc::clone(session));
        self.of_sessions.try_send(heard).map_err(|_| {
            session.has_waited();
            Error::Congested
        })
    }

    /// A packet is of no session. The main thread looks at it only if it may know one that is new.
    fn stranger(&self, heard: ReceivedPacket, counter: &Simple, thread: usize) -> Result<(), Error> {
        if self.is_behind.load(Ordering::Acquire) {
            return self.of_strangers.try_send(heard).map_err(|_| Error::Congested);
        }
        counter.add(thread, 0, 1);
        Ok(())
    }

    /// A control packet came.
    ///
    /// # Errors
    /// It is none, or it is one too many.
    pub fn control(
        &self,
        heard: ReceivedPacket,
        now: Time,
        thread: usize,
        guard: Guard<'_>,
    ) -> Result<(), Error> {
        let control = Control::read(heard.bytes())?;
        let known = self.known.load(guard);
        match known.of_packet(&control, &heard) {
            Some(session) if session.hears(&control, &heard, now.0, guard) => {
                self.rx.add(thread, session.index as usize, 1, heard.length.into());
                Ok(())
            }
            Some(session) => self.leave(heard, session),
            None if known.numbered(control.your_discr).is_some() => {
                self.stranger(heard, &self.mismatch, thread)
            }
            None => self.stranger(heard, &self.no_session, thread),
        }
    }

    /// An echo packet came.
    ///
    /// # Errors
    /// It is one too many.
    pub fn echo(
        &self,
        heard: ReceivedPacket,
        now: Time,
        thread: usize,
        guard: Guard<'_>,
    ) -> Result<(), Error> {
        let echo = Echo::read(heard.bytes(), &self.secret);
        let session = echo.and_then(|echo| self.known.load(guard).numbered(echo.discr));
        match (echo, session) {
            (Some(echo), Some(session)) if echo.expires >= now.0 && session.hears_echo(now.0, guard) => {
                self.echo_rx.add(thread, session.index as usize, 1, heard.length.into());
                Ok(())
            }
            (Some(_), Some(session)) => self.leave(heard, session),
            _ => self.stranger(heard, &self.echo_bad, thread),
        }
    }
}
