//! What `show trace` says of a packet.

use std::fmt;

use crate::session_direction::Tuple;
use crate::show::{Ends, Proto};

/// What was found for a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookupOutcome {
    /// Its session begins.
    New,
    /// A session.
    Existing,
    /// None, and none begins.
    Nothing,
    /// Another thread has its session.
    Elsewhere(usize),
}

impl fmt::Display for LookupOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LookupOutcome::New => f.write_str("new session"),
            LookupOutcome::Existing => f.write_str("found session"),
            LookupOutcome::Nothing => f.write_str("no session"),
            LookupOutcome::Elsewhere(thread) => write!(f, "next-worker {thread}"),
        }
    }
}

/// A packet of one family.
pub struct Trace {
    pub(super) found: LookupOutcome,
    pub(super) is_ip6: bool,
    pub(super) protocol: u8,
    pub(super) from: Tuple,
    /// What it becomes.
    pub(super) to: Option<Tuple>,
    pub(super) table: u32,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trace { found, is_ip6, protocol, from, to, table } = *self;
        write!(f, "{found}\n  {} {} => ", Proto(protocol), Ends(is_ip6, from))?;
        match to {
            Some(to) => Ends(is_ip6, to).fmt(f)?,
            None => f.write_str("[]")?,
        }
        write!(f, " fib:{table}")
    }
}
