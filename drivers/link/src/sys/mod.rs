//! The unsafe island: system calls that no library offers safely.
//!
//! Invariant: what the kernel is given to read or write lives on this side until the call has returned.

mod membership;
mod signal;

pub(crate) use membership::{Membership, MembershipSocket};
pub(crate) use signal::Signal;
