//! `ip6-discover-failed`: packets that waited for a neighbour in vain.

use shoal_graph::ErrorCounter;
use shoal_ip6::Ip6Family;
use shoal_neighbor::node::{Failure, failure_counters};

/// That solicitations were not answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unanswered;

impl Failure for Unanswered {
    type Family = Ip6Family;
    const NODE: &'static str = "ip6-discover-failed";
    const COUNTERS: &'static [ErrorCounter] = &failure_counters("neighbour did not answer solicitations");
}

/// The node.
pub(crate) type Failed = shoal_neighbor::node::Failed<Unanswered>;
