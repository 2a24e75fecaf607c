//! `ip4-arp-failed`: packets that waited for a neighbour in vain.

use shoal_graph::ErrorCounter;
use shoal_ip4::Ip4Family;
use shoal_neighbor::node::{Failed, Failure, failure_counters};

/// That ARP was not answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unanswered;

impl Failure for Unanswered {
    type Family = Ip4Family;
    const NODE: &'static str = "ip4-arp-failed";
    const COUNTERS: &'static [ErrorCounter] = &failure_counters("neighbour did not answer ARP");
}

/// The node.
pub(crate) type ArpFailed = Failed<Unanswered>;
