//! What can be wrong with a driver without a router.

use std::path::PathBuf;

use crate::{Error, Refusal};

/// Why there is no driver, or no device of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BareError {
    /// The library is no plugin.
    #[error("{file}: {refusal}", file = .file.display())]
    Refused {
        /// The library.
        file: PathBuf,
        /// Why not.
        refusal: Refusal,
    },
    /// It is one, without such a driver.
    #[error("{file} brings no driver `{wanted}', {there}", file = .file.display(), there = brought(.brings))]
    NoDriver {
        /// The library.
        file: PathBuf,
        /// The driver's name.
        wanted: String,
        /// What drivers it has.
        brings: Vec<String>,
    },
    /// It runs already, with other settings.
    #[error(
        "{driver} runs in this process already, with the settings `{runs}', and starts only once; `{asked}' needs a process \
         of its own"
    )]
    Started {
        /// The driver.
        driver: String,
        /// What it was started with.
        runs: String,
        /// What is wanted now.
        asked: String,
    },
    /// Too many devices are open.
    #[error("{driver}: {most} devices are open, which is the most; close one first")]
    Full {
        /// The driver.
        driver: String,
        /// How many can be.
        most: u32,
    },
    /// The plugin says no, or describes its device as no device can be.
    #[error(transparent)]
    Device(#[from] Error),
}

fn brought(names: &[String]) -> String {
    if names.is_empty() { "it brings none".to_owned() } else { format!("it brings {}", names.join(", ")) }
}
