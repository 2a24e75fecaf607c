//! ICMP: echo, errors and their rate limit.
#![forbid(unsafe_code)]
