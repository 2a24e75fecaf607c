//! Frames of streams: made, changed, and known again.
//!
//! A [`Program`] writes a stream's frames one after the other. Everything that can be decided before is: the first frame is
//! made whole, with tag and checksums; what changes is a list of places; checksums follow by differences. Values depend only
//! on the frame's number and the seed, so any frame of a trial can be made again, and random orders need no tables.
//!
//! A [`FrameClassifier`] finds the tag of a frame that arrived, wherever a device moved it, and can compare the whole frame with
//! what was sent. A [`Tuple`] is a flow as a NAT sees it.
//!
//! Above them stand the streams that tests ask for: RFC 2544's and siitperf's [`Traffic`] with RFC 4814's variations,
//! T-Rex's [`LoadTraffic`], the thesis's [`LoadAndLatencyTraffic`], RFC 9693's [`StatefulTraffic`], RFC 2889's
//! [`LearningTraffic`].
//!
//! Parsing and checksums are this crate's own: were they the router's, a mistake would hide itself.
#![forbid(unsafe_code)]

mod cursor;
mod error;
mod extension;
mod frame_classifier;
mod layout;
mod learning;
mod load_and_latency;
mod loadtest;
mod mix;
mod packet;
mod permutation;
mod place;
mod program;
mod random;
mod sent;
mod stateful;
mod sum;
mod tag;
mod traffic;
mod tuple;
mod variation;

pub use error::{FrameError, nearest};
pub use extension::Extension;
pub use frame_classifier::{FrameClassifier, Look};
pub use learning::{LearningTraffic, MOST_ADDRESSES};
pub use load_and_latency::{FORWARDING_SOURCES, LATENCY_PPS, LoadAndLatencyTraffic, NAT_SOURCES};
pub use loadtest::{LoadTest, LoadTraffic};
pub use mix::Mix;
pub use packet::{LARGEST, Mac, Macs};
pub use program::Program;
pub use sent::FrameFault;
pub use stateful::StatefulTraffic;
pub use tag::{LAST_SEQUENCE, LAST_STREAM, MAGIC, PLAIN_LEN, SIGNED_FLAG, SIGNED_LEN};
pub use traffic::{Background, Direction, FIXED_PORTS, Form, TTL, Traffic};
pub use tuple::{Tuple, retuple};
pub use variation::{DESTINATION_PORTS, Field, Hosts, Ports, SOURCE_PORTS};

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
