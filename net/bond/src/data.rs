//! What packets read of bonds.

use shoal_buffer::SwIfIndex;
use shoal_infra::zeroable_struct;

use crate::mode::{Balance, Mode};

/// A bond, as packets that it sends see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BondData {
    /// What it does with its members.
    pub mode: Mode,
    /// What makes packets a flow.
    pub balance: Balance,
    /// The members that are active, in the order they became so; of mode active-backup the first one does all.
    pub active: Vec<SwIfIndex>,
}

zeroable_struct! {
    /// An interface, as frames that it receives see it. All zero: it is no member.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MemberData {
        /// The bond.
        pub bond: u32,
        /// 1 where another member of mode active-backup receives.
        pub waits: u32,
    }
}
