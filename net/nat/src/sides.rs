//! On which sides of a NAT an interface is.

/// A side of a NAT.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Side {
    /// Hosts are there.
    Inside,
    /// The world is there.
    Outside,
}

/// The sides that an interface is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sides {
    /// Hosts are there.
    pub inside: bool,
    /// The world is there.
    pub outside: bool,
}

impl Sides {
    /// With a side, or without it.
    #[must_use]
    pub fn with(mut self, side: Side, on: bool) -> Sides {
        *(if side == Side::Inside { &mut self.inside } else { &mut self.outside }) = on;
        self
    }

    /// Whether a side is among them.
    pub fn has(self, side: Side) -> bool {
        if side == Side::Inside { self.inside } else { self.outside }
    }
}
