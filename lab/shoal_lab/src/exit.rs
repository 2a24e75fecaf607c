//! Exit codes, so that scripts and CI can tell what happened.

use std::process::ExitCode;

/// How a run of the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Done, and all assertions hold.
    Done = 0,
    /// Done, but an assertion or a comparison failed.
    Failed = 1,
    /// What was asked for makes no sense.
    Usage = 2,
    /// The device did not start, passes nothing, or crashed.
    Device = 3,
    /// The tester is too slow for what was asked.
    Tester = 4,
    /// Disturbed or invalid more often than trials may be repeated.
    Untrusted = 5,
    /// Nothing ran: no device is available, or a privilege is missing.
    Nothing = 6,
    /// Interrupted; what was measured is kept.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}
