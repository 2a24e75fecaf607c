//! Interfaces: hardware and software, state, MTU, MAC, counters, output.
#![forbid(unsafe_code)]
