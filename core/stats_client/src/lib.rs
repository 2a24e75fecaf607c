//! Reads a stats segment: the counters of a router, out of the memory in which its threads count.
//!
//! [`Client::connect`] fetches the segment through the router's socket and maps it; from then on the router does not
//! notice readers. [`Client::read`] gives the values of the names one wants, all of one moment of the directory:
//! whatever changes its structure meanwhile makes it read again. The layout is version 2 of VPP's, so VPP's own
//! segments can be read too.
//!
//! ```no_run
//! # fn main() -> Result<(), shoal_stats_client::Error> {
//! use shoal_stats_client::{Client, Value};
//!
//! let mut stats = Client::connect("/run/shoal/stats.sock")?;
//! for counter in stats.read(|name| name.starts_with("/if/"))? {
//!     if let Value::Combined(threads) = &counter.value {
//!         let packets: u64 = threads.iter().flatten().map(|n| n.packets).sum();
//!         println!("{} {packets}", counter.name);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! What is read is another process's word and is not trusted: no pointer is followed out of the segment, no length
//! is believed beyond [`MOST_WORDS`], nothing is read for ever. A segment whose file could shrink is not mapped but
//! read as a file.
#![forbid(unsafe_code)]

mod client;
mod connect;
mod directory;
mod error;
mod segment;
mod value;

pub use client::Client;
pub use directory::{Kind, Name};
pub use error::Error;
pub use segment::MOST_WORDS;
pub use value::{Counter, Histogram, Pair, Value};
