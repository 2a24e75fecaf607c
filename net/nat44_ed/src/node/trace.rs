//! What `show trace` says of a packet.

use std::fmt;

use shoal_derive::TraceLine;
use shoal_flow::Ip4Flow;

use crate::show::{Flow, Proto};

/// A key that was looked for.
#[derive(Clone, Copy)]
pub struct Key(pub Ip4Flow);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((local, lport), (remote, rport)) = (self.0.source(), self.0.destination());
        let (proto, fib) = (Proto(self.0.protocol()), self.0.table().number());
        write!(f, "local {local}:{lport} remote {remote}:{rport} proto {proto} fib {fib}")
    }
}

/// Of a session that is known.
#[derive(TraceLine)]
#[line("{name}: sw_if_index {interface}")]
#[line("search key {key} thread-index {thread} {found}")]
pub struct FastTrace {
    /// The path.
    pub name: &'static str,
    /// The interface.
    pub interface: u32,
    /// What was looked for.
    pub key: Key,
    /// The thread.
    pub thread: usize,
    /// What was found.
    pub found: LookupOutcome,
}

/// What a look-up gave.
#[derive(Clone, Copy)]
pub enum LookupOutcome {
    /// This session.
    Session(u32),
    /// None.
    None,
    /// One whose time is over.
    TimedOut,
    /// None, and another thread has it.
    Elsewhere(usize),
}

impl fmt::Display for LookupOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LookupOutcome::Session(index) => write!(f, "session-index {index}"),
            LookupOutcome::None => f.write_str("slow path because lookup failed"),
            LookupOutcome::TimedOut => f.write_str("slow path because session expired"),
            LookupOutcome::Elsewhere(thread) => write!(f, "next-worker {thread}"),
        }
    }
}

/// Of a packet that needed a decision.
#[derive(TraceLine)]
#[line("{name}: sw_if_index {interface}, translation result '{result}'")]
#[line("{flow}")]
pub struct SlowTrace {
    /// The path.
    pub name: &'static str,
    /// The interface.
    pub interface: u32,
    /// What came of it.
    pub result: &'static str,
    /// The direction it goes.
    pub flow: Flow,
}
