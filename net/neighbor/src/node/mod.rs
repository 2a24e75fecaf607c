//! Nodes that protocols of both families have.

mod failed;

pub use failed::{Failed, Failure, failure_counters};
