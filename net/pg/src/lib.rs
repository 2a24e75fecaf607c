//! The packet generator: streams, interfaces and captures.
#![forbid(unsafe_code)]
