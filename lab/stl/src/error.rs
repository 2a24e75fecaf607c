//! What can be wrong with a profile.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

/// Why a profile gives no streams. Each message says what was wrong and what would be right.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// The file is not there, or not readable.
    #[error("profile {path}: {reason}")]
    Unreadable {
        /// The profile.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// Python did not start.
    #[error("{python} did not start: {reason}; profiles need Python 3.9 or later")]
    Python {
        /// The program.
        python: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// The profile takes too long.
    #[error("profile {path} was still running after {} s and was ended; does it loop?", limit.as_secs_f64())]
    TimedOut {
        /// The profile.
        path: PathBuf,
        /// How long it may take.
        limit: Duration,
    },
    /// The profile says too much.
    #[error("profile {path} {what} more than {limit} bytes and was ended")]
    TooMuch {
        /// The profile.
        path: PathBuf,
        /// `answered` or `printed`.
        what: &'static str,
        /// The most.
        limit: usize,
    },
    /// The child ended without an answer.
    #[error("the Python that ran profile {path} {how}; it printed: {printed:?}")]
    Died {
        /// The profile.
        path: PathBuf,
        /// `ended with 1`, `was killed by signal 9`.
        how: String,
        /// The last of what it printed.
        printed: String,
    },
    /// The child's answer is no JSON of ours.
    #[error("the answer of profile {path} cannot be read ({reason}); it begins with {start:?}")]
    Answer {
        /// The profile.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// Its first characters.
        start: String,
    },
    /// The profile itself.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// A stream that the lab cannot send.
    #[error("stream {stream}: {reason}")]
    Stream {
        /// Its name, or its number from 1.
        stream: String,
        /// What cannot be, and what can.
        reason: String,
    },
    /// The streams together.
    #[error("{0}")]
    Streams(String),
    /// A rate that cannot be read.
    #[error("{wrong:?} is no rate; 10gbpsl1, 5mbps, 100kpps, 50% and 2.5 (times the profile's own) are")]
    Rate {
        /// What was given.
        wrong: String,
    },
    /// No such profile among those that come with the lab.
    #[error("no profile {wrong:?} comes with the lab; there are {}", known.join(", "))]
    NoProfile {
        /// What was given.
        wrong: String,
        /// Those that do.
        known: Vec<&'static str>,
    },
}

/// What is wrong in a profile's text, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error, Deserialize)]
pub struct Fault {
    /// What kind of fault.
    pub kind: FaultKind,
    /// The file; not always the profile, it may import others beside it.
    pub file: PathBuf,
    /// The line, from 1; 0 if none can be told.
    pub line: u32,
    /// What is wrong.
    pub message: String,
    /// The name that is not known, if that is the fault.
    pub name: String,
    /// Names that are, the nearest first.
    pub nearest: Vec<String>,
}

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultKind {
    /// It is no Python.
    Syntax,
    /// A name, argument or layer that the lab does not have.
    Unsupported,
    /// A value that the API refuses.
    Refused,
    /// A tunable that the profile does not take.
    Tunable,
    /// It opened a socket or a process.
    Forbidden,
    /// It took too much memory.
    Memory,
    /// It ended itself.
    Exit,
    /// Any other exception.
    Exception,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}", self.message)?;
        if !self.nearest.is_empty() {
            write!(f, "; the nearest that is there: {}", self.nearest.join(", "))?;
        }
        Ok(())
    }
}
