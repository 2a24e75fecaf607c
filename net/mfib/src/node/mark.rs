//! What the lookup leaves in a packet's scratch for the nodes behind it.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The entry a packet has found, and how much of it is done.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(super) struct Mark {
    /// The entry's number.
    pub entry: u32,
    /// Copies that are made, or need not be.
    pub done: u32,
    /// Not zero: the packet must not leave its link.
    pub on_link: u32,
}
