//! What has to be proven before results count (lab.md 5): the tests of `lab/measure` over the engine, with the frames of
//! `lab/frame`, find what a device in the process was set to. Time is simulated, so nothing depends on the machine.
//!
//! Each file has the closed forms of its subject. Those of a device of capacity c with a queue of q follow from one rule:
//! frame k of a burst at rate m meets `k - floor(k * c / m)` others, and is lost if these are q.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::float_cmp)]

mod back_to_back;
mod delays;
mod device;
mod faults;
mod loss;
mod memif;
mod nat;
mod resets;
mod searches;
mod seconds;
mod stage;
mod switching;
mod thesis;
mod throughput;
