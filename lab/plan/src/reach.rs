//! What became of frames that were sent to many addresses in turn.

/// Frames to many addresses in turn, each with a number: frame n went to address n modulo their count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// How many addresses.
    pub targets: usize,
    /// When each frame was sent, in seconds; rising.
    pub sent: Vec<f64>,
    /// Whether each arrived.
    pub arrived: Vec<bool>,
}

impl Observation {
    /// Of no frames yet.
    pub fn of(targets: usize) -> Self {
        Observation { targets, ..Observation::default() }
    }

    /// Numbers of the frames that were sent between two moments, the second left out.
    pub fn between(&self, from: f64, to: f64) -> std::ops::Range<usize> {
        let at = |moment: f64| self.sent.partition_point(|sent| *sent < moment);
        at(from)..at(to).max(at(from))
    }

    /// How many of these arrived.
    pub fn arrived_of(&self, frames: std::ops::Range<usize>) -> usize {
        self.arrived.get(frames).unwrap_or_default().iter().filter(|arrived| **arrived).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_by_when_they_were_sent() {
        let seen = Observation {
            targets: 2,
            sent: vec![0.0, 1.0, 2.0, 3.0],
            arrived: vec![true, false, true, false],
        };
        assert_eq!(seen.between(1.0, 3.0), 1..3);
        assert_eq!(seen.between(2.5, 9.0), 3..4);
        assert_eq!(seen.between(3.0, 1.0), 3..3);
        assert_eq!((seen.arrived_of(0..4), seen.arrived_of(1..2), seen.arrived_of(3..9)), (2, 0, 0));
    }
}
