//! Raw structures behind safe APIs: what every other crate of the router builds its tables from.
//!
//! Workers read, one control thread writes, nobody waits. The pieces that make this work are
//! [`qsbr`] (when may memory be freed), [`qsbr::Published`] (a whole value replaced at once),
//! and structures that never move and are updated in place.
//!
//! All `unsafe` of this crate is under `raw/`; each file there begins with its invariant.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod raw;
mod sync;

pub mod qsbr;

pub use qsbr::{Guard, OwnReaderOnline, Published, Reader};
