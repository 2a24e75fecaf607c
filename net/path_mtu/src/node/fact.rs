//! What the nodes tell the control plane, and what they look at packets by.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use shoal_fib::FibIndex;
use shoal_graph::process::Sender;
use shoal_icmp::limiter::Limiter;
use shoal_interface::IfTable;

use crate::control::Learning;

/// A size that an error reported, about a packet that this router may have sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fact {
    /// The table of the interface the error came in by.
    pub fib: FibIndex,
    /// The destination of the packet.
    pub peer: IpAddr,
    /// The longest packet that would have gone on.
    pub mtu: u16,
}

/// What nodes believe: the least MTU of an IPv4 path, 0 for nothing at all. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Wanted(Arc<AtomicU32>);

impl Wanted {
    pub(crate) fn set(&self, learning: Learning) {
        let least = if learning.on { learning.least.into() } else { 0 };
        self.0.store(least, Ordering::Relaxed);
    }

    /// The least MTU of an IPv4 path; `None`: nothing is believed.
    pub(crate) fn least(&self) -> Option<u16> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            least => Some(least as u16),
        }
    }
}

/// What both nodes have.
#[derive(Clone)]
pub(crate) struct ErrorReader {
    pub(crate) interfaces: IfTable,
    pub(crate) wanted: Wanted,
    /// How many errors may be looked at.
    pub(crate) limiter: Arc<Limiter>,
    pub(crate) tell: Sender<Fact>,
}
