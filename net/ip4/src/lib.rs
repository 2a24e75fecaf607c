//! IPv4 forwarding: input checks, lookup, rewrite, local delivery, fragmentation.
#![forbid(unsafe_code)]

pub mod cli;
mod control;

pub use control::{AddressEvent, Ip4, Ip4Error, Ip4IfTable};
