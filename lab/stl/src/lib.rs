//! Profiles written for TRex's STL API, as streams.
//!
//! A profile is a Python file whose `register().get_streams(direction, port_id, ...)` returns `STLStream`s. Thousands were
//! written for TRex. Here they run without it: a child process ([`Limits`] say what it may use) offers the names that
//! profiles import, has the profile run for one side, and prints its streams in the JSON that TRex's own `to_json` writes
//! ([`format`]). [`load`] does that; [`convert`] turns such streams into the plan's, for a link, a port rate and a
//! duration ([`Sending`]). [`both_sides`] does both, for both sides.
//!
//! What has no place in the plan is an error that says what has: two chains through one stream, a checksum of an inner
//! header that should follow changes. What is sent otherwise than by TRex is a note: lengths that stand for others, a
//! frame without room for the lab's tag.
//!
//! A profile has addresses of its own, and the device under test needs routes for them: [`networks`] tells which.
//!
//! The frames come from a small packet layer of our own, in Python beside the profile. Where a profile names a layer that
//! it lacks, and Scapy is installed, the child imports Scapy; no part of it is ours, and it stays in that process.
#![forbid(unsafe_code)]

mod chain;
mod child;
mod convert;
mod error;
pub mod format;
mod fraction;
mod frame;
mod header;
mod load;
mod networks;
mod pace;
mod port_rate;
mod program;
mod rates;
mod sequence;
mod shim;
mod shipped;
mod sides;
mod sizes;

pub use child::Limits;
pub use convert::{Converted, MOST_STREAMS, Macs, Sending, convert};
pub use error::{Fault, FaultKind, ProfileError};
pub use load::{Load, Loaded, load};
pub use networks::{Networks, networks};
pub use port_rate::PortRate;
pub use shipped::PROFILES;
pub use sides::{Direction, both_sides};
