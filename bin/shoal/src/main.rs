//! The router daemon.
#![forbid(unsafe_code)]

fn main() {}
