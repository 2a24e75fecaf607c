//! Stages that are given what their feature keeps on the thread.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use super::{Optional, Pass, StatefulOptional};
use crate::cx::Cx;
use crate::node::Counts;
use crate::state::StateKey;

/// A feature with state, for [`Stage`](super::Stage). A chain takes the state in hand with the first packet of a frame that
/// needs it, and gives it back with the last: frames that need none do not touch it, and its timer runs as for the
/// feature's node.
pub struct WithState<A: StatefulOptional> {
    pub(super) stage: A,
    pub(super) key: StateKey<A::Feature>,
}

impl<A: StatefulOptional> WithState<A> {
    /// The feature, and the state that its node was registered with.
    pub fn new(stage: A, key: &StateKey<A::Feature>) -> Arc<Self> {
        Arc::new(WithState { stage, key: key.clone() })
    }
}

impl<A: StatefulOptional> Counts for WithState<A> {
    type Error = A::Error;
}

impl<A: StatefulOptional> Optional for WithState<A> {
    const NAME: &'static str = A::NAME;
    type Facts<'g> = A::Facts<'g>;

    #[inline(always)]
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> A::Facts<'g> {
        self.stage.facts(interface, guard)
    }

    #[inline(always)]
    fn pass(&self, facts: A::Facts<'_>, pkt: &mut Packet<'_>, cx: &Cx<'_, Self>) -> Pass {
        let mut state = cx.lend(&self.key);
        self.stage.pass(&mut state, facts, pkt, &cx.of())
    }
}
