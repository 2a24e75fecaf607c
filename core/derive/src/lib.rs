//! Derives for node declarations.
#![forbid(unsafe_code)]
