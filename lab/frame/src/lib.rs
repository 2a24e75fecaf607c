//! Frames of streams: made, changed, and known again.
//!
//! A [`Program`] writes a stream's frames one after the other. Everything that can be decided before is: the first frame is
//! made whole, with tag and checksums; what changes is a list of places; checksums follow by differences. Values depend only
//! on the frame's number and the seed, so any frame of a trial can be made again, and random orders need no tables.
//!
//! A [`Recogniser`] finds the tag of a frame that arrived, wherever a device moved it, and can compare the whole frame with
//! what was sent. A [`Tuple`] is a flow as a NAT sees it.
//!
//! Parsing and checksums are this crate's own: were they the router's, a mistake would hide itself.
#![forbid(unsafe_code)]

mod cursor;
mod error;
mod layout;
mod permutation;
mod place;
mod program;
mod random;
mod recogniser;
mod sent;
mod sum;
mod tag;
mod tuple;

pub use error::FrameError;
pub use program::Program;
pub use recogniser::{Look, Recogniser};
pub use sent::Wrong;
pub use tag::{LAST_SEQUENCE, LAST_STREAM, MAGIC, PLAIN_LEN, SIGNED_FLAG, SIGNED_LEN};
pub use tuple::{Tuple, retuple};
