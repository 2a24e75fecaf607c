//! The start-up file: VPP syntax, checked whole before anything is touched.
#![forbid(unsafe_code)]
