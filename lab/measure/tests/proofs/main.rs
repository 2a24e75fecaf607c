//! Proofs that the tests find what a device was given: each against a model whose figures are known.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::float_cmp,
    reason = "tests stop at what they did not expect"
)]

mod bursts;
mod curves;
mod delays;
mod disturbed;
mod mlr;
mod model;
mod promised;
mod right;
mod stateful;
mod support;
mod throughput;
