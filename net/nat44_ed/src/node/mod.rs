//! The nodes.

pub mod fast;
pub mod next;
pub mod slow;
mod slow_icmp;
pub mod stage;
pub mod trace;
