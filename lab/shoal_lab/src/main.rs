//! Measures routers by the RFCs, and says how far to trust the figures.
#![forbid(unsafe_code)]

fn main() {}
