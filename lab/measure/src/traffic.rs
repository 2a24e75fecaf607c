//! What a test sends, without knowing what is in the frames.
//!
//! A test decides *when* frames are due and which are stamped: an [`Offer`]. What the frames are (sizes, addresses, mixes,
//! background, modifiers) is the traffic's business: it answers an offer with the streams of a trial.

use std::time::Duration;

use shoal_lab_plan::{Pace, Rate, Side, Stamps, Step, Stream};

use crate::MeasureError;

/// When frames are due, in each direction, and whose delay is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// Of each active direction. Traffic of several streams gives each its part: [`share`](Self::share).
    pub pace: Pace,
    /// Whose delay is measured.
    pub stamps: Stamps,
}

impl Offer {
    /// `rate` frames a second and direction, from the start on.
    pub fn steady(rate: u64) -> Offer {
        Offer {
            pace: Pace::Steady { rate: Rate::per_second(rate), after: Duration::ZERO },
            stamps: Stamps::None,
        }
    }

    /// One burst of `frames`, as fast as `rate` in frames a second, or the port, allows.
    pub fn burst(frames: u64, rate: Option<u64>) -> Offer {
        let pace = Pace::Bursts {
            frames,
            bursts: 1,
            rate: rate.map(Rate::per_second),
            gap: Duration::ZERO,
            after: Duration::ZERO,
        };
        Offer { pace, stamps: Stamps::None }
    }

    /// The same with these stamps.
    pub fn stamped(mut self, stamps: Stamps) -> Offer {
        self.stamps = stamps;
        self
    }

    /// A stream's part of the pace: `part` of `whole`. A mix of 28:20:4 asks for 28, 20 and 4 of 52. Rates stay exact;
    /// frames of bursts are rounded down.
    pub fn share(&self, part: u64, whole: u64) -> Pace {
        match &self.pace {
            Pace::Steady { rate, after } => Pace::Steady { rate: rate.share(part, whole), after: *after },
            Pace::Steps { steps } => Pace::Steps {
                steps: steps
                    .iter()
                    .map(|step| Step { at: step.at, rate: step.rate.share(part, whole) })
                    .collect(),
            },
            Pace::Bursts { frames, bursts, rate, gap, after } => Pace::Bursts {
                frames: frames.saturating_mul(part) / whole.max(1),
                bursts: *bursts,
                rate: rate.map(|rate| rate.share(part, whole)),
                gap: *gap,
                after: *after,
            },
        }
    }
}

/// What a test sends.
pub trait Traffic {
    /// The streams of a trial that offers this in each active direction.
    ///
    /// # Errors
    ///
    /// [`MeasureError::Traffic`] if it cannot be made.
    fn streams(&self, offer: &Offer) -> Result<Vec<Stream>, MeasureError>;

    /// Bytes of a frame with FCS; of a mix the mean, rounded to the nearest.
    fn size(&self) -> u32;

    /// Which sides send.
    fn sides(&self) -> Vec<Side>;
}

/// Traffic from a function, of one size.
pub struct TrafficFrom<F> {
    /// Bytes of a frame with FCS.
    pub size: u32,
    /// Which sides send.
    pub sides: Vec<Side>,
    /// Makes the streams.
    pub make: F,
}

impl<F: Fn(&Offer) -> Result<Vec<Stream>, MeasureError>> Traffic for TrafficFrom<F> {
    fn streams(&self, offer: &Offer) -> Result<Vec<Stream>, MeasureError> {
        (self.make)(offer)
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn sides(&self) -> Vec<Side> {
        self.sides.clone()
    }
}

/// What tests of a stateful device send (RFC 9693): the initiator is on the left, inside; the responder on the right.
pub trait StatefulTraffic {
    /// Phase 1: each of `tuples` four-tuples once, from the left, at `rate` frames a second.
    ///
    /// # Errors
    ///
    /// [`MeasureError::Traffic`] if there are not as many tuples in the ranges of ports and addresses.
    fn fill(&self, tuples: u64, rate: u64) -> Result<Vec<Stream>, MeasureError>;

    /// The responder's check: each learnt tuple once, from the right, at `rate`.
    ///
    /// # Errors
    ///
    /// [`MeasureError::Traffic`] if it cannot be made.
    fn check(&self, tuples: u64, rate: u64) -> Result<Vec<Stream>, MeasureError>;

    /// Phase 2: traffic over connections that exist; the right side answers learnt tuples.
    ///
    /// # Errors
    ///
    /// [`MeasureError::Traffic`] if it cannot be made.
    fn over(&self, tuples: u64, offer: &Offer) -> Result<Vec<Stream>, MeasureError>;

    /// Bytes of a frame with FCS.
    fn size(&self) -> u32;
}

/// What tests of a learning bridge's table send (RFC 2889 5.7 and 5.8), for a bridge with two ports.
///
/// With two ports a flood cannot be seen at a third. It is seen here at the second: frames from the left *to* an address that
/// was learnt on the left are filtered by a bridge that knows it, and arrive on the right if it does not.
pub trait LearningTraffic {
    /// One frame *from* each of `addresses`, sent on the left at `rate`.
    ///
    /// # Errors
    ///
    /// [`MeasureError::Traffic`] if it cannot be made.
    fn learn(&self, addresses: u32, rate: u64) -> Result<Vec<Stream>, MeasureError>;

    /// One frame *to* each of them at `rate`, sent on the left too, *from* one of them, so that asking teaches nothing new.
    /// These streams are not `expected`: what arrives of them was flooded. One that is expected goes beside them to an
    /// address that was never learnt: that it arrives shows that a silent bridge filters and is not dead.
    ///
    /// # Errors
    ///
    /// [`MeasureError::Traffic`] if it cannot be made.
    fn ask(&self, addresses: u32, rate: u64) -> Result<Vec<Stream>, MeasureError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_an_offer_add_up_to_it() {
        let offer = Offer::steady(1_000_003);
        let frames: u64 = [28, 20, 4]
            .into_iter()
            .map(|part| match offer.share(part, 52) {
                Pace::Steady { rate, .. } => rate.frames_in(52_000_000_000),
                _ => 0,
            })
            .sum();
        assert_eq!(frames, 52 * 1_000_003);
    }
}
