//! What is shown.

use shoal_interface::SwIfIndex;

use crate::CreateVhost;
use crate::features::Features;
use crate::memory::RegionDescription;
use crate::vring::Desc;

/// How much is read of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Its indices.
    Brief,
    /// Its descriptors, too.
    Descriptors,
}

/// What `show vhost-user` prints of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VhostInfo {
    /// The interface.
    pub index: SwIfIndex,
    /// Its name in the router.
    pub name: String,
    /// The number in the name it was made with.
    pub number: u32,
    /// How it was made; the MAC address is what it became.
    pub config: CreateVhost,
    /// The socket's file.
    pub path: String,
    /// Whether a front end is there.
    pub connected: bool,
    /// Whether packets can flow.
    pub ready: bool,
    /// Why they cannot.
    pub why: String,
    /// How often a front end has come.
    pub connections: u64,
    /// Front ends that were turned away, because one was there.
    pub refused: u64,
    /// What may be negotiated.
    pub offered: Features,
    /// What was negotiated.
    pub features: Features,
    /// What was negotiated of the protocol.
    pub protocol: Features,
    /// The guest's memory, and the number each descriptor had.
    pub regions: Vec<(RegionDescription, i32)>,
    /// The rings that were set up.
    pub rings: Vec<RingInfo>,
}

/// What `show vhost-user` prints of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingInfo {
    /// Its number: even ones take packets to the guest.
    pub number: usize,
    /// Entries.
    pub size: u32,
    /// Whether it is in use.
    pub running: bool,
    /// The next chain to take.
    pub next: u16,
    /// As they were at this moment: flags and index of the available, then of the used ring.
    pub avail: (u16, u16),
    /// The same of the used ring.
    pub used: (u16, u16),
    /// Number of the descriptor that wakes this end.
    pub kick: i32,
    /// Number of the descriptor that wakes the guest.
    pub call: i32,
    /// How often the guest was woken.
    pub calls: u64,
    /// How often it woke this end.
    pub kicks: u64,
    /// Chains that made no sense.
    pub bad: u64,
    /// As they were at this moment.
    pub descs: Vec<Desc>,
}
