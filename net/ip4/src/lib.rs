//! IPv4 forwarding: input checks, lookup, rewrite, local delivery, fragmentation.
#![forbid(unsafe_code)]
