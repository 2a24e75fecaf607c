//! Features of layer 2 by bit, in VPP's order: the first one is the highest bit.

/// Declares the features of one direction with the nodes that run them.
macro_rules! features {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $feature:ident = $node:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$doc])* $feature,)*
        }

        impl $name {
            /// All, in order.
            pub const ALL: &'static [$name] = &[$($name::$feature),*];

            /// The node that runs it, as VPP calls it.
            pub const fn node(self) -> &'static str {
                match self {
                    $($name::$feature => $node,)*
                }
            }
        }

        impl From<$name> for Place {
            fn from(feature: $name) -> Place {
                Place(feature as u8)
            }
        }
    };
}

features! {
    /// What packets run through that come in.
    Input {
        /// Mirrors them.
        Span = "span-l2-input",
        /// Sorts them.
        Classify = "l2-input-classify",
        /// Runs the features of the arc `l2-input`.
        Arc = "l2-input-feat-arc",
        /// Chooses their policer.
        PolicerClassify = "l2-policer-classify",
        /// Holds them to a rate.
        Policer = "l2-policer-input",
        /// Accepts them or not.
        Acl = "l2-input-acl",
        /// Measures their path.
        Vpath = "vpath-input-l2",
        /// Notes their class of service.
        Qos = "l2-ip-qos-record",
        /// Rewrites their tags.
        TagRewrite = "l2-input-vtr",
        /// Puts them into a segment routing header.
        SegmentRouting = "sr-pl-rewrite-encaps-l2",
        /// Learns where their source is.
        Learn = "l2-learn",
        /// Rewrites any of their bytes.
        Rewrite = "l2-rw",
        /// Sends them where their destination is.
        Forward = "l2-fwd",
        /// Sends those of unknown destination to one interface.
        UnknownForward = "l2-uu-fwd",
        /// Sends those of unknown destination to all.
        UnknownFlood = "l2-flood",
        /// Answers ARP in place of the one who is asked.
        ArpTerm = "arp-term-l2bd",
        /// Sends ARP requests to one interface.
        ArpForward = "l2-uu-fwd",
        /// Sends them to all.
        Flood = "l2-flood",
        /// Sends them out of the interface it is connected to.
        Xconnect = "l2-output",
    }
}

features! {
    /// What packets run through that go out.
    Output {
        /// Rewrites their header.
        XcRewrite = "l2-xcrw",
        /// Holds them to a rate.
        Policer = "l2-policer-output",
        /// Runs the features of the arc `l2-output`.
        Arc = "l2-output-feat-arc",
        /// Sorts them.
        Classify = "l2-output-classify",
        /// Drops those with tags of others.
        EfpFilter = "l2-efp-filter",
        /// Accepts them or not.
        Acl = "l2-output-acl",
        /// Mirrors them.
        Span = "span-l2-output",
    }
}

/// A feature's place: 0 for the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place(u8);

impl Place {
    pub(crate) fn number(self) -> usize {
        usize::from(self.0)
    }
}

/// A set of features of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bitmap(pub(crate) u32);

impl Bitmap {
    /// Every feature.
    pub const ALL: Bitmap = Bitmap(u32::MAX);

    fn bit(place: Place) -> u32 {
        1 << (31 - u32::from(place.0))
    }

    /// These and one more.
    #[must_use]
    pub fn with(self, feature: impl Into<Place>) -> Bitmap {
        Bitmap(self.0 | Self::bit(feature.into()))
    }

    /// These without one.
    #[must_use]
    pub fn without(self, feature: impl Into<Place>) -> Bitmap {
        Bitmap(self.0 & !Self::bit(feature.into()))
    }

    /// Those that are in both.
    #[must_use]
    pub fn and(self, other: Bitmap) -> Bitmap {
        Bitmap(self.0 & other.0)
    }

    /// Whether a feature is among them.
    pub fn has(self, feature: impl Into<Place>) -> bool {
        self.0 & Self::bit(feature.into()) != 0
    }

    /// The first of them.
    #[inline(always)]
    pub fn first(self) -> Option<Place> {
        (self.0 != 0).then(|| Place(self.0.leading_zeros() as u8))
    }

    /// Those behind a place.
    #[must_use]
    #[inline(always)]
    pub fn behind(self, place: Place) -> Bitmap {
        Bitmap(self.0 & (Self::bit(place) - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_come_in_the_order_they_are_declared_in() {
        let all = Input::ALL.iter().rev().fold(Bitmap::default(), |all, feature| all.with(*feature));
        let (mut left, mut seen) = (all, Vec::new());
        while let Some(place) = left.first() {
            seen.push(place);
            left = left.behind(place);
        }
        assert_eq!(seen, Input::ALL.iter().map(|feature| Place::from(*feature)).collect::<Vec<_>>());
        assert_eq!(Bitmap::default().first(), None);
    }

    #[test]
    fn sets_are_put_together_and_parted() {
        let both = Bitmap::default().with(Output::Acl).with(Output::Arc);
        assert!(both.has(Output::Acl) && !both.has(Output::Span));
        assert_eq!(both.first(), Some(Output::Arc.into()));
        assert_eq!(both.without(Output::Arc).first(), Some(Output::Acl.into()));
        assert_eq!(both.and(Bitmap::ALL), both);
        assert_eq!(both.behind(Output::Acl.into()), Bitmap::default());
    }
}
