//! A stream: frames that differ only in fields, sent from one side at a pace.
//!
//! Everything the lab sends is a stream: RFC 2544's frames, mixes of sizes (a stream each), T-Rex's heavy and latency
//! streams, siitperf's foreground and background. So the engine knows no test and no protocol.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Rate;

/// Which of the tester's two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// What is sent here goes *forward*.
    Left,
    /// What is sent here goes in *reverse*.
    Right,
}

impl Side {
    /// Both, left first.
    pub const BOTH: [Side; 2] = [Side::Left, Side::Right];

    /// Where frames sent here should arrive.
    pub const fn other(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }

    /// 0 for left, 1 for right.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Frames that differ only in fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// For people: `forward 64 B`, `latency`.
    pub name: String,
    /// Where it is sent.
    pub from: Side,
    /// The first frame, from the destination MAC on, without FCS. Its checksums are right unless a test wants otherwise.
    pub frame: Vec<u8>,
    /// What changes from frame to frame, in this order.
    pub changes: Vec<Change>,
    /// Which checksums follow the changes.
    pub checksums: Checksums,
    /// How the receiver knows the frame again.
    pub tag: Tag,
    /// When frames are due.
    pub pace: Pace,
    /// Whose delay is measured.
    pub stamps: Stamps,
    /// Frames arrive everywhere or nowhere by intent (broadcast, filtered): they are sent and not missed.
    pub expected: bool,
    /// If set, each frame takes its addresses and ports from a tuple that the other side has learnt.
    pub answers: Option<Answers>,
}

/// How the receiver knows a frame again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Tag {
    /// 18 bytes at `offset` of the frame: `IDENTIFY`, trial (2), stream and direction (1), flags (1), sequence (6), all
    /// big-endian. Everything can be accounted for.
    Signed {
        /// Counted from the destination MAC.
        offset: u16,
    },
    /// siitperf's: the 8 bytes `IDENTIFY` at `offset`, and no number. Only counted.
    Plain {
        /// Counted from the destination MAC.
        offset: u16,
    },
    /// None: all that arrives and is not someone else's is counted.
    None,
}

/// Which checksums are kept right when fields change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksums {
    /// Of the IPv4 header, if there is one.
    pub ip4: bool,
    /// Of UDP, TCP or ICMPv6 with its pseudo-header. An IPv4 UDP checksum of 0 is sent as 0xFFFF.
    pub l4: bool,
}

/// A variable and where in the frame it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The values.
    pub variable: Variable,
    /// Where they go, with no checksum among the bytes.
    pub writes: Vec<Write>,
}

/// The values a field takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    /// How the next is found.
    pub order: Order,
    /// The smallest, included.
    pub min: u64,
    /// The largest, included.
    pub max: u64,
    /// The first (for rising and falling), between the two.
    pub first: u64,
    /// How far one goes at a time.
    pub step: u64,
    /// If not empty, what is taken instead of a range, in order or at random.
    pub list: Vec<u64>,
    /// Seeds random values, with the trial's seed.
    pub seed: u64,
}

/// How a variable goes from value to value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Up by a step, and from the end to the start again.
    Rising,
    /// Down by a step, and from the start to the end again.
    Falling,
    /// Uniformly, each independent of the last.
    Random,
    /// All of the range once in random order, then again in the same order.
    Permutation,
}

/// A place in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// Counted from the destination MAC.
    pub offset: u16,
    /// Bytes: 1, 2, 4 or 8, big-endian.
    pub width: u8,
    /// Added to the value first, wrapping.
    pub add: i64,
    /// The value is shifted left by this, right if negative.
    pub shift: i8,
    /// Only these bits are written; the others stay as in the first frame.
    pub mask: u64,
    /// If set, not the value itself but this digit of it is taken, before all else. So one variable counts through all
    /// combinations of several fields, in order or permuted.
    #[serde(default)]
    pub digit: Option<Digit>,
}

/// A digit of a number in mixed radix: `(value / divide) % of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digit {
    /// Product of the lengths of the fields before it; never 0.
    pub divide: u64,
    /// Length of this field: how many values it takes; never 0.
    pub of: u64,
}

impl Write {
    /// All bits of `width` bytes at `offset`.
    pub const fn whole(offset: u16, width: u8) -> Self {
        Write { offset, width, add: 0, shift: 0, mask: u64::MAX, digit: None }
    }
}

/// When frames are due, since the trial's start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Pace {
    /// Frame k at `after + k / rate`, until the trial's duration has passed: exactly `rate * (duration - after)` frames.
    Steady {
        /// Frames a second.
        rate: Rate,
        /// The first frame's time.
        after: Duration,
    },
    /// A rate that changes: each step holds until the next begins, the last until the trial's end.
    Steps {
        /// In rising order of time.
        steps: Vec<Step>,
    },
    /// `bursts` times `frames` frames at `rate`, with `gap` between the end of one and the start of the next.
    Bursts {
        /// Frames of each.
        frames: u64,
        /// How many; at least 1.
        bursts: u64,
        /// Pace within one; as fast as the port takes them if `None`.
        rate: Option<Rate>,
        /// Silence between two.
        gap: Duration,
        /// When the first begins.
        after: Duration,
    },
}

/// A rate from some time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Since the trial's start.
    pub at: Duration,
    /// Frames a second.
    pub rate: Rate,
}

/// Whose delay is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Stamps {
    /// Unknown.
    #[default]
    None,
    /// `count` frames, evenly spread from `after` to the end: tag i is frame `after*r + floor(i*r*(D - after)/count)`.
    /// Each one's delay is kept.
    Even {
        /// When tagging begins.
        after: Duration,
        /// How many.
        count: u32,
    },
    /// Everybody's, in a histogram of 3 digits; delay variation too.
    All,
}

/// Frames of a stateful test that answer to what came: RFC 9693's responder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers {
    /// How entries of the state table are chosen; `Falling` is from the last learnt to the first.
    pub order: Order,
}
