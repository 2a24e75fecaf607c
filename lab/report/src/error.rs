//! What can go wrong with files.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// What can go wrong with results and their files.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A file could not be written. What was written before is still valid.
    #[error("{file}: {source}{hint}")]
    Write {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
        /// What may help, beginning with a semicolon; empty if nothing is known.
        hint: &'static str,
    },
    /// A file could not be read.
    #[error("{file}: {source}")]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{file}, line {line}: {reason}")]
    Content {
        /// The file.
        file: PathBuf,
        /// From 1; 1 if the file is one value.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A folder is not one of results.
    #[error(
        "{0} has neither record.json nor trials.jsonl; a results folder is named like results/2026-01-31-paper"
    )]
    NoResults(PathBuf),
    /// The published figures that are built in cannot be read.
    #[error("published figures, {file} row {row}: {reason}")]
    Figures {
        /// Which file.
        file: &'static str,
        /// From 1, without the heading.
        row: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A value cannot be written as JSON or XML.
    #[error("{what} cannot be written: {reason}")]
    Form {
        /// What.
        what: &'static str,
        /// Why.
        reason: String,
    },
}

impl ReportError {
    pub(crate) fn write(file: &Path, source: io::Error) -> Self {
        let hint = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "; free some space and resume, what was written so far is complete"
            }
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                "; choose a folder that can be written"
            }
            _ => "",
        };
        ReportError::Write { file: file.into(), source, hint }
    }

    pub(crate) fn read(file: &Path, source: io::Error) -> Self {
        ReportError::Read { file: file.into(), source }
    }

    pub(crate) fn content(file: &Path, line: usize, reason: impl ToString) -> Self {
        ReportError::Content { file: file.into(), line, reason: reason.to_string() }
    }
}
