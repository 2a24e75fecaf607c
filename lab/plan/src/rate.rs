//! Rates as exact fractions, and what a link of some bit rate carries.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Bytes a frame takes on the wire beyond its own: preamble, start of frame, gap.
pub const PER_FRAME_ON_WIRE: u64 = 20;

/// Frames a second, as a fraction, so that shares of a rate stay exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Frames in [`seconds`](Self::seconds).
    pub frames: u64,
    /// Seconds that they take; never 0.
    pub seconds: u64,
}

impl Rate {
    /// Nothing is sent.
    pub const ZERO: Rate = Rate { frames: 0, seconds: 1 };

    /// A whole number of frames a second.
    pub const fn per_second(frames: u64) -> Self {
        Rate { frames, seconds: 1 }
    }

    /// `part` of `whole` of this rate, exactly. A `whole` of 0 is taken as 1.
    pub fn share(self, part: u64, whole: u64) -> Self {
        Rate { frames: self.frames.saturating_mul(part), seconds: self.seconds.saturating_mul(whole.max(1)) }
            .reduced()
    }

    /// Frames that are due in the time before `nanoseconds`: the whole ones.
    pub fn frames_in(self, nanoseconds: u64) -> u64 {
        let due = u128::from(self.frames) * u128::from(nanoseconds)
            / (u128::from(self.seconds.max(1)) * 1_000_000_000);
        u64::try_from(due).unwrap_or(u64::MAX)
    }

    /// When frame `k` (from 0) is due, in nanoseconds; never for a rate of 0.
    pub fn due(self, k: u64) -> u64 {
        if self.frames == 0 {
            return u64::MAX;
        }
        let at = u128::from(k) * u128::from(self.seconds) * 1_000_000_000 / u128::from(self.frames);
        u64::try_from(at).unwrap_or(u64::MAX)
    }

    /// As a number, for people and plots.
    #[expect(clippy::cast_precision_loss, reason = "for display only")]
    pub fn fps(self) -> f64 {
        self.frames as f64 / self.seconds.max(1) as f64
    }

    fn reduced(self) -> Self {
        let (mut a, mut b) = (self.frames, self.seconds.max(1));
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let by = a.max(1);
        Rate { frames: self.frames / by, seconds: (self.seconds / by).max(1) }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} fps", self.fps())
    }
}

/// What "10 Gbit/s" counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// Frames with FCS, preamble and gap: what a cable carries. The lab's default.
    #[default]
    L1,
    /// Frames with FCS.
    L2,
}

/// A link and how sure its speed is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Bits a second at layer 1.
    pub bits_per_second: u64,
    /// The wire has no speed of its own (veth, TAP, memif); the number only gives "percent" a meaning.
    pub is_virtual: bool,
}

impl Default for Link {
    fn default() -> Self {
        Link { bits_per_second: 10_000_000_000, is_virtual: true }
    }
}

impl Link {
    /// Frames of `size` bytes (with FCS) a second that the link carries in one direction, rounded down.
    pub fn most_frames(self, size: u32) -> u64 {
        self.bits_per_second / (8 * (u64::from(size) + PER_FRAME_ON_WIRE))
    }

    /// Bits a second that `fps` frames of `size` bytes are, at `layer`.
    pub fn bits(layer: Layer, fps: f64, size: u32) -> f64 {
        let gap = match layer {
            Layer::L1 => PER_FRAME_ON_WIRE as u32,
            Layer::L2 => 0,
        };
        fps * f64::from(size + gap) * 8.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_rates_are_those_of_the_standard_tables() {
        let ten = Link::default();
        for (size, fps) in [(64, 14_880_952), (84, 12_019_230), (512, 2_349_624), (1518, 812_743)] {
            assert_eq!(ten.most_frames(size), fps);
        }
    }

    #[test]
    fn shares_add_up_to_the_whole() {
        let rate = Rate::per_second(1_000_003);
        let parts: u64 = [28, 20, 4].iter().map(|p| rate.share(*p, 52).frames_in(52_000_000_000)).sum();
        assert_eq!(parts, 52 * 1_000_003);
    }

    #[test]
    fn a_frame_is_due_no_earlier_than_it_is_counted() {
        let rate = Rate { frames: 1_000_003, seconds: 7 };
        for k in [0, 1, 2, 999, 1_000_003, 12_345_678_901] {
            let at = rate.due(k);
            assert!(rate.frames_in(at) <= k && rate.frames_in(at + 1) >= k, "{k}");
        }
        assert_eq!(Rate::ZERO.due(0), u64::MAX);
    }
}
