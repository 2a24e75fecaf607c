//! ethernet-input: from a frame to the protocol it carries.
#![forbid(unsafe_code)]
