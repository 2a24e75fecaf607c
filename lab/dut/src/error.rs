//! What can go wrong while a device is set up or asked.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A step that failed. Adapters turn it into a [`DeviceError`](shoal_lab_plan::DeviceError) with their name.
#[derive(Debug, Error)]
pub enum SetupError {
    /// A program could not be started at all.
    #[error("`{command}` cannot be run: {why}")]
    Spawn {
        /// The whole command.
        command: String,
        /// What the system says.
        why: io::Error,
    },
    /// A command ended badly.
    #[error("`{command}` ended with {status}: {tail}")]
    Failed {
        /// The whole command.
        command: String,
        /// Its exit code or signal.
        status: String,
        /// The last lines it said.
        tail: String,
    },
    /// A command took too long and was killed.
    #[error("`{command}` was not done after {seconds} s and was killed: {tail}")]
    Slow {
        /// The whole command.
        command: String,
        /// Its limit.
        seconds: u64,
        /// The last lines it said.
        tail: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {why}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// A process that should run has ended.
    #[error("{program} ended ({status}): {tail}")]
    Ended {
        /// Its name.
        program: String,
        /// Its exit code or signal.
        status: String,
        /// The end of its log.
        tail: String,
    },
    /// What was waited for did not come.
    #[error("{what} after {seconds} s: {last}")]
    NotReady {
        /// What is missing, as a sentence's beginning: `no answer from shoal`.
        what: String,
        /// How long was waited.
        seconds: u64,
        /// What is known.
        last: String,
    },
    /// A program answered, but not what was understood.
    #[error("{program} answered what is not understood: {answer}")]
    Answer {
        /// Its name.
        program: String,
        /// The beginning of what it said.
        answer: String,
    },
}

impl SetupError {
    /// For `map_err` after a call on `path`.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> SetupError {
        let path = path.into();
        move |why| SetupError::File { path, why }
    }
}

/// The last `lines` lines of `text` in one line, so that an error stays one.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let from = all.len().saturating_sub(lines);
    match all.get(from..) {
        Some(end) if !end.is_empty() => end.join(" | "),
        _ => "it said nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_a_text_is_its_last_lines_in_one() {
        assert_eq!(tail("a\n\nb\n c \n", 2), "b | c");
        assert_eq!(tail("\n", 2), "it said nothing");
    }
}
