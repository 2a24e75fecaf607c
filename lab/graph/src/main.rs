//! Clocks and instructions per packet of the graph paths.

fn main() {}
