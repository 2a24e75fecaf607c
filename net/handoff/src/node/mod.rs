//! The node.

pub mod worker_handoff;
