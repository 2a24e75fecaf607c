//! Interfaces whose packets run the features of another one besides their own: sub-interfaces and their ports.

use std::collections::{BTreeMap, BTreeSet};

use shoal_buffer::SwIfIndex;

use super::{Graph, GraphError};
use crate::feature::{Arc as FeatureArc, MAX_FEATURES};

/// The followers of each node, by arc.
#[derive(Default)]
pub(super) struct Followers {
    /// Arc, who leads, who follows.
    led: BTreeSet<(u8, SwIfIndex, SwIfIndex)>,
    /// Who leads, and the features that were enabled on the follower itself, by arc and follower.
    own: BTreeMap<(u8, SwIfIndex), (SwIfIndex, u64)>,
}

impl Followers {
    /// An interface follows no other.
    pub(super) fn forget(&mut self, arc: u8, interface: SwIfIndex) {
        if let Some((leader, _)) = self.own.remove(&(arc, interface)) {
            self.led.remove(&(arc, leader, interface));
        }
    }
}

impl Graph {
    /// From now on packets of an interface run the features that `leader` has on an arc besides its own; with `None`
    /// only its own.
    ///
    /// # Errors
    /// There is no such arc.
    pub fn follow_features(
        &self,
        arc: &str,
        interface: SwIfIndex,
        leader: Option<SwIfIndex>,
    ) -> Result<(), GraphError> {
        let handle = self.arc(arc)?;
        let before = handle.enabled(interface);
        let own = {
            let followers = &mut self.arcs.borrow_mut().followers;
            let own = followers.own.get(&(handle.number, interface)).map_or(before, |(_, own)| *own);
            followers.forget(handle.number, interface);
            if let Some(leader) = leader {
                followers.own.insert((handle.number, interface), (leader, own));
                followers.led.insert((handle.number, leader, interface));
            }
            own
        };
        handle.store(interface, own | leader.map_or(0, |leader| handle.enabled(leader)));
        self.tell_watchers(&handle, interface, before);
        Ok(())
    }

    /// Enables or disables the feature at a position; whether there is room for the interface.
    pub(super) fn switch(
        &self,
        handle: &FeatureArc,
        interface: SwIfIndex,
        position: usize,
        on: bool,
    ) -> bool {
        let bit = 1u64 << (position % MAX_FEATURES);
        let with = |bits: u64| if on { bits | bit } else { bits & !bit };
        let mut arcs = self.arcs.borrow_mut();
        let bits = match arcs.followers.own.get_mut(&(handle.number, interface)) {
            Some((leader, own)) => {
                *own = with(*own);
                *own | handle.enabled(*leader)
            }
            None => with(handle.enabled(interface)),
        };
        handle.store(interface, bits)
    }

    /// The features of an interface have changed: so have those of its followers.
    pub(super) fn lead(&self, handle: &FeatureArc, leader: SwIfIndex) {
        let followers: Vec<(SwIfIndex, u64)> = {
            let followers = &self.arcs.borrow().followers;
            let led = followers
                .led
                .range((handle.number, leader, SwIfIndex(0))..=(handle.number, leader, SwIfIndex(u32::MAX)));
            let own = |interface| followers.own.get(&(handle.number, interface)).map_or(0, |(_, own)| *own);
            led.map(|(_, _, interface)| (*interface, own(*interface))).collect()
        };
        for (interface, own) in followers {
            let before = handle.enabled(interface);
            handle.store(interface, own | handle.enabled(leader));
            self.tell_watchers(handle, interface, before);
        }
    }
}
