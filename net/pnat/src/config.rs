//! What packets read of the configuration.

use std::collections::BTreeMap;

use shoal_buffer::slot::SlotKey;
use shoal_infra::Published;
use shoal_interface::SwIfIndex;
use shoal_nat::Shards;
use shoal_reassembly::L4;

use crate::rule::{Fields, Match, Place, Rewrite};

/// A place: an interface, and whether packets come in or go out.
pub type At = (SwIfIndex, Place);

/// A rule as packets see it.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The binding.
    pub index: u32,
    /// Which packets.
    pub of: Match,
    /// What becomes of them.
    pub rewrite: Rewrite,
}

/// One version of the configuration.
#[derive(Clone, Default)]
pub struct Config {
    /// The fields that all rules at a place look at.
    pub masks: BTreeMap<At, Fields>,
    /// Rules by place and values.
    pub rules: Shards<(At, Match), Rule>,
}

/// What nodes and control plane share.
pub struct Shared {
    /// The configuration.
    pub config: Published<Config>,
    /// What shallow reassembly says of fragments.
    pub words: SlotKey<L4>,
}
