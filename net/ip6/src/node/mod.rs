//! The nodes an IPv6 packet passes.

pub mod frag;
pub mod hop_by_hop;
pub mod input;
pub mod local;
pub mod lookup;
pub mod rewrite;
