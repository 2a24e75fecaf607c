//! Who runs trials.

use thiserror::Error;

use crate::{Link, Outcome, Sample, Trial};

/// Sends and receives: the engine, or a stand-in of a test.
pub trait Tester {
    /// What is known of it.
    fn facts(&self) -> TesterFacts;

    /// Runs one trial to its end.
    ///
    /// # Errors
    ///
    /// If the trial cannot be run, a port is gone, or it was interrupted. Loss is no error.
    fn run(&mut self, trial: &Trial, watch: &mut dyn Watch) -> Result<Outcome, TesterError>;
}

/// What is known of a tester.
#[derive(Clone, Debug, PartialEq)]
pub struct TesterFacts {
    /// `memif`, `af-packet`, `af-xdp`, `tap`, `dpdk`, `synthetic`.
    pub transport: String,
    /// The wire.
    pub link: Link,
    /// Frames of the smallest receive ring.
    pub smallest_ring: u32,
    /// Largest frame, with FCS.
    pub most_frame: u32,
}

/// Is told how a trial goes.
pub trait Watch {
    /// Ten times a second. `false` ends the trial as interrupted.
    fn progress(&mut self, so_far: &Sample) -> bool;

    /// At `at` of a trial (system recovery, reset) something is to be done; the engine asks ten times a second.
    /// By default nothing.
    fn at(&mut self, _since_start: std::time::Duration) {}
}

/// Watches nothing.
pub struct Unwatched;

impl Watch for Unwatched {
    fn progress(&mut self, _so_far: &Sample) -> bool {
        true
    }
}

/// Why a trial could not be run.
#[derive(Debug, Error)]
pub enum TesterError {
    /// Someone wants it to end.
    #[error("interrupted")]
    Interrupted,
    /// The trial asks for what this tester cannot do.
    #[error("{0}")]
    Impossible(String),
    /// A port failed or its peer went away.
    #[error("{port}: {reason}")]
    Port {
        /// Its name.
        port: String,
        /// What happened.
        reason: String,
    },
    /// The processor's clock cannot be trusted.
    #[error("clock: {0}")]
    Clock(String),
}
