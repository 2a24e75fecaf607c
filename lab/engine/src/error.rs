//! Why a trial cannot be run, in one type; the lab's other parts hear of it as a [`TesterError`].

use shoal_lab_frame::FrameError;
use shoal_lab_plan::TesterError;
use thiserror::Error;

use crate::clock::ClockError;
use crate::port::{DpdkError, InterfaceError, MemifError, PortError, Transport};

/// Why a trial cannot be run, or a port not be attached to.
#[derive(Debug, Error)]
pub enum EngineError {
    /// Someone wants it to end.
    #[error("interrupted")]
    Interrupted,
    /// A stream's frames cannot be made.
    #[error("stream '{stream}': {source}")]
    Frame {
        /// Its name.
        stream: String,
        /// Why.
        source: FrameError,
    },
    /// A frame that the ports do not take.
    #[error("stream '{stream}': frames of {size} bytes; {port} takes {least} to {most}, with FCS")]
    Size {
        /// Its name.
        stream: String,
        /// With FCS.
        size: usize,
        /// Which port.
        port: String,
        /// With FCS.
        least: usize,
        /// With FCS.
        most: usize,
    },
    /// Too many streams.
    #[error("{asked} streams are sent at one side; at most {most} can be")]
    Streams {
        /// How many.
        asked: usize,
        /// How many can be.
        most: usize,
    },
    /// More tags than frames that could carry them.
    #[error(
        "stream '{stream}': {asked} tags, but {most} frames are sent after tagging begins; ask for at most that"
    )]
    Tags {
        /// Its name.
        stream: String,
        /// How many.
        asked: u32,
        /// How many can be.
        most: u64,
    },
    /// Answers to nothing.
    #[error("stream '{stream}' answers learnt tuples, and none were learnt: run a trial that learns first")]
    NothingLearnt {
        /// Its name.
        stream: String,
    },
    /// Not enough memory is allowed.
    #[error(
        "{frames} frames need {needed} MiB to be accounted for, {allowed} MiB are allowed: at most {most} frames fit"
    )]
    Memory {
        /// Frames of the trial.
        frames: u64,
        /// MiB.
        needed: u64,
        /// MiB.
        allowed: u64,
        /// Frames that fit.
        most: u64,
    },
    /// The two ports are on different kinds of wire.
    #[error("left is {left} and right is {right}; both have to be of one kind")]
    Mixed {
        /// Kind of the left.
        left: &'static str,
        /// Kind of the right.
        right: &'static str,
    },
    /// A port is of no use.
    #[error("{port}: {source}")]
    Port {
        /// Its name.
        port: String,
        /// Why.
        source: PortError,
    },
    /// An interface cannot be attached to.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// A memif cannot be attached to.
    #[error("memif: {0}")]
    Memif(#[from] MemifError),
    /// A device of DPDK's cannot be attached to.
    #[error(transparent)]
    Dpdk(#[from] DpdkError),
    /// The clock cannot be trusted.
    #[error(transparent)]
    Clock(#[from] ClockError),
}

impl EngineError {
    pub(crate) fn port(port: &impl Transport, source: PortError) -> Self {
        EngineError::Port { port: port.name(), source }
    }
}

impl From<EngineError> for TesterError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Interrupted => TesterError::Interrupted,
            EngineError::Port { port, source } => TesterError::Port { port, reason: source.to_string() },
            EngineError::Interface(e) => {
                TesterError::Port { port: "interface".into(), reason: e.to_string() }
            }
            EngineError::Memif(e) => TesterError::Port { port: "memif".into(), reason: e.to_string() },
            EngineError::Dpdk(e) => TesterError::Port { port: "dpdk".into(), reason: e.to_string() },
            EngineError::Clock(e) => TesterError::Clock(e.to_string()),
            other => TesterError::Impossible(other.to_string()),
        }
    }
}
