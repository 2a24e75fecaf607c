//! What both kinds of NAT44 have in common: packets, mappings, pools, interfaces, counters, errors; and what all kinds of NAT tell flow
//! collectors. Without sessions and without nodes.
#![forbid(unsafe_code)]

pub mod counters;
pub mod error;
pub mod export;
pub mod held;
pub mod mapping;
pub mod packet;
pub mod pool;
pub mod ports;
pub mod reach;
pub mod session_events;
pub mod sizes;
pub mod staged;
pub mod translated;
pub mod workers;

pub use error::NatError;
