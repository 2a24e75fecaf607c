//! What is wrong with a configuration file or a command line.

use shoal_lab_frame::FrameError;
use thiserror::Error;

/// What is wrong with a configuration file or a command line. The original writes `Input Error:` before such things, and
/// scripts look for `Error:`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InputError {
    /// A key that siitperf does not have.
    #[error("siitperf.conf line {line}: `{key}` is no key; the nearest is `{nearest}`")]
    Key {
        /// Counted from 1.
        line: usize,
        /// As it stands there.
        key: String,
        /// One that exists.
        nearest: String,
    },
    /// A key without a value.
    #[error("siitperf.conf line {line}: `{key}` has no value; for instance `{key} {example}`")]
    NoValue {
        /// Counted from 1.
        line: usize,
        /// The key.
        key: String,
        /// A value it may have.
        example: String,
    },
    /// A value that cannot be.
    #[error("siitperf.conf line {line}: `{key}` is `{value}`; {wanted}")]
    Value {
        /// Counted from 1.
        line: usize,
        /// The key.
        key: String,
        /// As it stands there.
        value: String,
        /// What may stand there, with the nearest.
        wanted: String,
    },
    /// Neither direction is active.
    #[error("`Forward` and `Reverse` are both 0 and `Stateful` is 0, so nothing would be sent; set one to 1")]
    NoDirection,
    /// Too few or too many arguments.
    #[error("{found} arguments; {program} takes {wanted}: {usage}")]
    Arguments {
        /// The program.
        program: &'static str,
        /// How many were given.
        found: usize,
        /// How many there should be.
        wanted: usize,
        /// Their names.
        usage: String,
    },
    /// An argument that cannot be.
    #[error("{name} is `{value}`; it must be {min} to {max}, the nearest is {nearest}")]
    Argument {
        /// Which.
        name: &'static str,
        /// As it was given.
        value: String,
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
        /// The nearest that may be.
        nearest: u64,
    },
    /// Arguments that do not go together.
    #[error("{0}")]
    Together(String),
    /// The frames cannot be made.
    #[error(transparent)]
    Frame(#[from] FrameError),
}
