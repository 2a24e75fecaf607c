//! The command-line client.
#![forbid(unsafe_code)]

fn main() {}
