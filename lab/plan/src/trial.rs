//! One trial: streams for a time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{MOST_TAKEN, Side, Stream};

/// Bytes that hardware adds to a frame.
pub const FCS: u32 = 4;
/// The smallest frame of Ethernet, with FCS.
pub const SMALLEST: u32 = 64;

/// One trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Told in each signed frame, so that one that comes late is not taken for another's. Each trial of a run has its own.
    pub id: u16,
    /// At most 64 of each side.
    pub streams: Vec<Stream>,
    /// How long is sent.
    pub duration: Duration,
    /// How long frames are waited for after that.
    pub timeout: Duration,
    /// Waited before sending, with everything made ready.
    pub start_delay: Duration,
    /// Frames handed to a port at once, at most; 1 is the most exact.
    pub burst: u32,
    /// How many received frames are looked at whole.
    pub verify: Verify,
    /// A frame later than this counts as lost (the PDV test's frame timeout).
    pub frame_timeout: Option<Duration>,
    /// Sending may take this much longer than it should: 1.00001 is siitperf's.
    pub tolerance: f64,
    /// A stall of the tester's that is longer disturbs the trial; none: as long as the smallest receive ring takes to fill.
    pub most_stall: Option<Duration>,
    /// While no greater share of the frames is lost (0 to 1), it does not matter whether the tester lost some of them itself: for
    /// tests that look for another magnitude. 0: it always matters.
    pub own_loss: f64,
    /// The share of the time (0 to 1) for which others may take a processor from tester or device; 1: any share, only
    /// what the frames say counts.
    pub most_taken: f64,
    /// Time of a [`Sample`](crate::Sample); none: no samples.
    pub sample_every: Option<Duration>,
    /// Tuples that this side learns from what arrives, at most; 0: none. What was learnt stays for later trials of the
    /// same tester until a trial learns again.
    pub learn: Option<(Side, u32)>,
    /// For whatever is random.
    pub seed: u64,
}

/// How many received frames are looked at whole: lengths, checksums, payload, addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    /// One in 64.
    #[default]
    Some,
    /// All.
    All,
}

impl Trial {
    /// A trial with the lab's defaults: timeout 2 s, start after 200 ms, bursts of 32, tolerance of 10 ppm.
    pub fn new(id: u16, streams: Vec<Stream>, duration: Duration) -> Self {
        Trial {
            id,
            streams,
            duration,
            timeout: Duration::from_secs(2),
            start_delay: Duration::from_millis(200),
            burst: 32,
            verify: Verify::Some,
            frame_timeout: None,
            tolerance: 1.000_01,
            most_stall: None,
            own_loss: 0.0,
            most_taken: MOST_TAKEN,
            sample_every: None,
            learn: None,
            seed: 1,
        }
    }
}
