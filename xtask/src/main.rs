//! What is too long for make.
#![forbid(unsafe_code)]

fn main() {}
