//! Routing tables as large as the Internet's, made from a seed.
#![forbid(unsafe_code)]

pub mod bgp;
pub mod commands;
pub mod dump;
pub mod feed;
pub mod lengths;
pub mod mrt;
pub mod rtnetlink;
pub mod sample;
pub mod speaker;
pub mod table;
