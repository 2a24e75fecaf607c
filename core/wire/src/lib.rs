//! Packet headers, checksums and capture files: one file per protocol.
#![forbid(unsafe_code)]
