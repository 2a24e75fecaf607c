//! The words of the lab: what is sent, what came of it, and who is measured.
//!
//! Each part of the lab speaks of its work in these types and knows of the others nothing else.
//! A *test* (RFC 2544 throughput, say) chooses a [`Trial`] and hands it to a [`Tester`]; the engine is one. The tester sends
//! the trial's [`Stream`]s and answers with an [`Outcome`]. Between the tester's two ports lies a [`Device`] under test,
//! set up for a [`Scenario`]. What was learnt becomes a line of [`TrialLine`] and rows of [`SummaryRow`] in the results folder,
//! which the report reads.
//!
//! Rates are frames a second and direction, times are since the trial's start, sizes count the FCS (the 4 bytes that
//! hardware adds): a frame of 64 is handed over as 60 bytes. Where a field differs, it says so.
#![forbid(unsafe_code)]

mod device;
mod nearest;
mod outcome;
mod processors;
mod rate;
mod reach;
mod record;
mod scenario;
mod stream;
mod tester;
mod trial;
mod verdict;

pub use device::{Attachment, Described, Device, DeviceError, Port, Ports, Reset};
pub use nearest::{distance, nearest};
pub use outcome::{Counts, Delays, Gap, Lateness, Learnt, Outcome, Sample, Stall, StreamOutcome, Tally};
pub use processors::{CoreUse, MOST_STOLEN, MOST_TAKEN, OtherProcess, Processors};
pub use rate::{Layer, Link, PER_FRAME_ON_WIRE, Rate};
pub use reach::Observation;
pub use record::{SummaryRow, TrialLine};
pub use scenario::{Addresses, Family, Forwarding, Nat, Scenario, SideAddresses};
pub use stream::{
    Answers, Change, Checksums, Digit, Order, Pace, Side, Stamps, Step, Stream, Tag, Variable, Write,
};
pub use tester::{Tester, TesterError, TesterFacts, Unwatched, Watch};
pub use trial::{FCS, SMALLEST, Trial, Verify};
pub use verdict::{Trust, Verdict};
