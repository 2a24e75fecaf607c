//! Features of layer 2 by bit, in VPP's order: the first one is the highest bit.

/// Declares the features of one direction with the nodes that run them.
macro_rules! features {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $feature:ident($word:literal) = $node:literal,)* }) => {
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

            /// What VPP calls it where it lists an interface's features.
            pub const fn word(self) -> &'static str {
                match self {
                    $($name::$feature => $word,)*
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
        Span("SPAN") = "span-l2-input",
        /// Sorts them.
        Classify("INPUT_CLASSIFY") = "l2-input-classify",
        /// Runs the features of the arc `l2-input`.
        Arc("INPUT_FEAT_ARC") = "l2-input-feat-arc",
        /// Chooses their policer.
        PolicerClassify("POLICER_CLAS") = "l2-policer-classify",
        /// Holds them to a rate.
        Policer("POLICER") = "l2-policer-input",
        /// Accepts them or not.
        Acl("ACL") = "l2-input-acl",
        /// Measures their path.
        Vpath("VPATH") = "vpath-input-l2",
        /// Notes their class of service.
        Qos("L2_IP_QOS_RECORD") = "l2-ip-qos-record",
        /// Rewrites their tags.
        TagRewrite("VTR") = "l2-input-vtr",
        /// Puts them into a segment routing header.
        SegmentRouting("SR_PL_REWRITE") = "sr-pl-rewrite-encaps-l2",
        /// Learns where their source is.
        Learn("LEARN") = "l2-learn",
        /// Rewrites any of their bytes.
        Rewrite("RW") = "l2-rw",
        /// Sends them where their destination is.
        Forward("FWD") = "l2-fwd",
        /// Sends those of unknown destination to one interface.
        UnknownForward("UU_FWD") = "l2-uu-fwd",
        /// Sends those of unknown destination to all.
        UnknownFlood("UU_FLOOD") = "l2-flood",
        /// Answers ARP in place of the target.
        ArpTerm("ARP_TERM") = "arp-term-l2bd",
        /// Sends ARP requests to one interface.
        ArpForward("ARP_UFWD") = "l2-uu-fwd",
        /// Sends them to all.
        Flood("FLOOD") = "l2-flood",
        /// Sends them out of the interface it is connected to.
        Xconnect("XCONNECT") = "l2-output",
    }
}

features! {
    /// What packets run through that go out.
    Output {
        /// Rewrites their header.
        XcRewrite("XCRW") = "l2-xcrw",
        /// Holds them to a rate.
        Policer("POLICER") = "l2-policer-output",
        /// Runs the features of the arc `l2-output`.
        Arc("OUTPUT_FEAT_ARC") = "l2-output-feat-arc",
        /// Sorts them.
        Classify("OUTPUT_CLASSIFY") = "l2-output-classify",
        /// Drops them: the line is down.
        LineDown("LINESTATUS_DOWN") = "feature-bitmap-drop",
        /// Drops them: a spanning tree blocks the port.
        Blocked("STP_BLOCKED") = "feature-bitmap-drop",
        /// Drops them: no node interworks IP.
        IpInterwork("IPIW") = "feature-bitmap-drop",
        /// Drops those with tags of others.
        EfpFilter("EFP_FILTER") = "l2-efp-filter",
        /// Drops them: no node tunnels protocols.
        ProtocolTunnel("L2PT") = "feature-bitmap-drop",
        /// Accepts them or not.
        Acl("ACL") = "l2-output-acl",
        /// Drops them: no node marks them.
        Qos("QOS") = "feature-bitmap-drop",
        /// Drops them: no node watches connectivity.
        Cfm("CFM") = "feature-bitmap-drop",
        /// Mirrors them.
        Span("SPAN") = "span-l2-output",
    }
}

/// A feature's place: 0 for the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place(u8);

impl Place {
    /// Where frames for groups go first on a port that limits them: behind the arc, in front of what VPP has there.
    pub const STORM: Place = Place(31);
    /// Where all frames of a port go that is blocked.
    pub const BLOCKED: Place = Place(30);
    /// Where frames for unknown stations go on a port that limits them, when it is known that they are unknown.
    pub const STORM_UNKNOWN: Place = Place(29);

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

    /// What packets may run through in order: not what they are sent to for a reason of its own.
    pub(crate) const ORDINARY: Bitmap = Bitmap(!Self::bit(Place::STORM) & !Self::bit(Place::STORM_UNKNOWN));

    const fn bit(place: Place) -> u32 {
        1 << (31 - place.0 as u32)
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

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The features of a direction as VPP numbers them in messages: the last one, `last`, has bit 1, those before it
    /// the bits above.
    pub fn of_number(number: u32, last: impl Into<Place>) -> Bitmap {
        let shift = 31 - u32::from(last.into().0);
        Bitmap((number >> 1 << 1).wrapping_shl(shift - 1))
    }

    /// The number that VPP has for them.
    pub fn number(self, last: impl Into<Place>) -> u32 {
        let shift = 31 - u32::from(last.into().0);
        self.0.wrapping_shr(shift - 1)
    }

    /// These and those of another set.
    #[must_use]
    pub fn or(self, other: Bitmap) -> Bitmap {
        Bitmap(self.0 | other.0)
    }

    /// These without those of another set.
    #[must_use]
    pub fn minus(self, other: Bitmap) -> Bitmap {
        Bitmap(self.0 & !other.0)
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
    fn features_have_the_numbers_of_vpp() {
        let number = |feature| Bitmap::default().with(feature).number(Input::Xconnect);
        let numbers = [Input::Xconnect, Input::Flood, Input::Forward, Input::Learn].map(number);
        assert_eq!(numbers, [1 << 1, 1 << 2, 1 << 7, 1 << 9]);
        let out = Bitmap::default().with(Output::LineDown).with(Output::Blocked);
        assert_eq!(out.number(Output::Span), 1 << 9 | 1 << 8);
        assert_eq!(Bitmap::of_number(out.number(Output::Span), Output::Span), out);
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
