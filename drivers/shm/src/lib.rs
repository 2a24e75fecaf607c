//! Memory that the kernel or another process may write at any time: mapped, checked, copied.
//!
//! [`Mapping`] owns a mapping, [`Words`] is an array of atomic words in one. Nothing here refers to bytes of such memory: they
//! are copied, or read and written as whole words, so that a value that was checked is the value that is used.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod sys;

pub use sys::{Mapping, OpenError, PlaceError, Populate, Trust, Word, Words};
