//! Sources and destinations of mirrors, as packets read them.

use std::collections::BTreeMap;

use shoal_interface::SwIfIndex;

/// Where frames are copied.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// At the device: everything that is received and sent.
    Device,
    /// In layer 2: what a bridge or a cross-connect gets and sends.
    L2,
}

/// Which frames are copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MirrorDirections {
    /// Those that are received.
    pub rx: bool,
    /// Those that are sent.
    pub tx: bool,
}

impl MirrorDirections {
    /// None.
    pub const NONE: MirrorDirections = MirrorDirections { rx: false, tx: false };
    /// Those that are received.
    pub const RX: MirrorDirections = MirrorDirections { rx: true, tx: false };
    /// Those that are sent.
    pub const TX: MirrorDirections = MirrorDirections { rx: false, tx: true };
    /// All.
    pub const BOTH: MirrorDirections = MirrorDirections { rx: true, tx: true };

    /// As commands have it; `none` for none.
    pub fn name(self) -> &'static str {
        match self {
            MirrorDirections::NONE => "none",
            MirrorDirections::RX => "rx",
            MirrorDirections::TX => "tx",
            MirrorDirections::BOTH => "both",
        }
    }
}

/// An interface that gets copies.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub index: SwIfIndex,
    /// For traces.
    pub name: Box<str>,
}

/// Those that get copies of one interface's frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    /// For traces.
    pub name: Box<str>,
    pub targets: Vec<Target>,
}

/// The sources of one level and one way.
pub(crate) type Sources = BTreeMap<SwIfIndex, Source>;

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Mirrors {
    pub(crate) device_rx: Sources,
    pub(crate) device_tx: Sources,
    pub(crate) l2_rx: Sources,
    pub(crate) l2_tx: Sources,
}
