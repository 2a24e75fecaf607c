//! Routing tables as large as the Internet's, made from a seed.
#![forbid(unsafe_code)]

pub mod commands;
pub mod lengths;
pub mod table;
