//! The event log: the last things that happened, in a ring per thread.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::clock::{Clock, Time};

/// Events kept.
pub const EVENTS: usize = 4096;

/// One event.
#[derive(Clone, Debug)]
pub struct Event {
    /// When.
    pub time: Time,
    /// On which thread.
    pub thread: usize,
    /// What happened.
    pub text: String,
}

/// The log of one router. Control-plane events only: the data path counts and traces instead.
#[derive(Debug)]
pub struct EventLog {
    clock: Clock,
    events: Mutex<VecDeque<Event>>,
}

impl EventLog {
    /// An empty log on a clock.
    pub fn new(clock: Clock) -> Self {
        EventLog { clock, events: Mutex::new(VecDeque::with_capacity(EVENTS)) }
    }

    /// Writes an event; the oldest goes when the log is full.
    pub fn write(&self, thread: usize, text: impl Into<String>) {
        let event = Event { time: self.clock.now(), thread, text: text.into() };
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() == EVENTS {
            events.pop_front();
        }
        events.push_back(event);
    }

    /// The last `n` events, oldest first.
    pub fn last(&self, n: usize) -> Vec<Event> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.iter().skip(events.len().saturating_sub(n)).cloned().collect()
    }

    /// Forgets all events.
    pub fn clear(&self) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
