//! The tests: which trials each needs, and what its result is.
//!
//! A test runs over a [`Runner`], which has the tester, numbers the trials, tries disturbed ones again, and tells a
//! [`Journal`] of every one. What is sent comes from a [`Traffic`]: a test says only when frames are due ([`Offer`]) and whose
//! delay counts. [`TrialProcedure`] says how long trials are and how many; [`Preset`] names the usual choices.
//!
//! Each test has a file, a typed result, rows for the summary, and an [`Estimate`] of its time. Those that need nothing but
//! traffic are a [`Test`]; others also take what they do to the device: [`Resets`], [`nat::Sessions`], a closure.
//!
//! | question | test |
//! | --- | --- |
//! | how fast without loss | [`Throughput`], [`NdrBench`], [`MlrSearch`], [`Broadcast`] |
//! | how much is lost, or arrives, beyond that | [`FrameLoss`], [`ForwardingRate`], [`Mrr`], [`LoadTest`], [`Soak`] |
//! | how late | [`Latency`], [`DelayVariation`], [`LatencyUnderLoad`] |
//! | how much can it hold | [`BackToBack`], [`BurstGap`], [`nat::Capacity`], [`Learning`] |
//! | how long until it works again | [`Recovery`], [`ResetTest`] |
//! | how does it scale | [`scaling`](scaling::scaling), [`Sweep`], [`nat::StateScaling`] |
//! | is it right, is it slower than before | [`Gates`], [`Comparison`], [`in_process`], [`Assertion`] |
//! | can the tester be trusted | [`SelfTest`] |
//!
//! A tester's limit is never told as the device's: a rate that the tester cannot keep ends a search upwards, and the result is
//! marked "at least". An interruption keeps the runs that were complete, and a [`Runner`] given the trials of an earlier
//! campaign goes on where it ended.
#![forbid(unsafe_code)]

/// The examples of the README compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod assertion;
mod back_to_back;
mod broadcast;
mod case;
pub mod convergence;
mod delay_variation;
mod error;
mod estimate;
mod forwarding_rate;
mod frame_loss;
mod gates;
pub mod in_process;
mod journal;
mod latency;
mod latency_under_load;
mod mlr;
pub mod mrr;
pub mod nat;
mod ndr_bench;
mod ramp;
mod recovery;
mod repeat;
mod reset;
mod revisions;
mod runner;
pub mod scaling;
mod search;
mod self_test;
mod soak;
pub mod statistics;
mod sweep;
mod switching;
mod throughput;
mod traffic;
mod trial_procedure;
mod trial_spec;

pub use assertion::{Assertion, AssertionError, Checked, metric_name};
pub use back_to_back::{BackToBack, BackToBackResult, BurstGap, GapFound};
pub use broadcast::Broadcast;
pub use case::{Case, Marks, judge, judge_rate, mark, note, with_curve};
pub use delay_variation::{DelayVariation, DelayVariationResult, DelayVariationRun};
pub use error::{MeasureError, spoken};
pub use estimate::{Estimate, MARGIN};
pub use forwarding_rate::ForwardingRate;
pub use frame_loss::{FrameLoss, FrameLossResult, LossPoint, Steps};
pub use gates::{Gate, GateResult, Gates};
pub use journal::{Journal, Progress, Time, Unrecorded, WallTime};
pub use latency::{Latency, LatencyResult, LatencyRun};
pub use latency_under_load::{LatencyUnderLoad, LatencyUnderLoadRun};
pub use mlr::{
    Bounds, Class, Goal, GoalResult, LoadTrial, Loads, MlrSearch, Target, classify, conditional_throughput,
};
pub use mrr::{Mrr, MrrTrial};
pub use ndr_bench::{NdrBench, NdrBenchRun};
pub use ramp::{LoadRun, LoadTest, Second, evaluate};
pub use recovery::{Recovery, RecoveryRun};
pub use repeat::{Repeated, Report, Test, repeat};
pub use reset::{ResetRun, ResetTest, Resets};
pub use revisions::{Comparison, ComparisonResult, Judgement, Revision};
pub use runner::{Promise, Runner};
pub use search::{Answer, Bound, Found, Search, bisect};
pub use self_test::SelfTest;
pub use shoal_lab_plan::nearest;
pub use soak::{Soak, SoakResult};
pub use sweep::Sweep;
pub use switching::Learning;
pub use throughput::{Throughput, ThroughputResult};
pub use traffic::{LearningTraffic, Offer, StatefulTraffic, Traffic, TrafficFrom};
pub use trial_procedure::{Precision, Preset, TrialProcedure, WhenDisturbed};
pub use trial_spec::{MidTrialAction, NO_MATTER, OVERLOAD_STALL, Shown, TrialSpec};
