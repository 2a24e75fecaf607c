//! Looking at nodes while threads run them, switched on and off: captures of what is dispatched, counters of the processor.
//!
//! While anything observes, packets pass every node by itself. While nothing does, a thread looks at one flag with each
//! frame, the same as for [`Monitoring`](crate::Monitoring).

use std::fmt;
use std::sync::Arc;

use shoal_buffer::{Frame, Memory, Packet};

use crate::node::NodeIndex;

/// Looks at the nodes that one thread runs.
pub trait Observer: Send {
    /// A node is about to run: with packets, as an input or as a timer.
    fn before(&mut self, node: NodeIndex, name: &str, packets: Option<Observed<'_>>);

    /// The node has run, and taken or received so many packets.
    fn after(&mut self, node: NodeIndex, name: &str, packets: usize);
}

/// The packets a node is about to run with.
pub struct Observed<'a> {
    pub(crate) frame: &'a mut Frame,
    pub(crate) memory: Memory,
}

impl Observed<'_> {
    /// Looks at each.
    pub fn each(self, mut look: impl FnMut(&Packet<'_>)) {
        for at in 0..self.frame.len() {
            if let Some(packet) = self.frame.packet(self.memory, at) {
                look(&packet);
            }
        }
    }
}

/// Makes the observer of a thread, told by its number, on that thread.
pub type MakeObserver = Arc<dyn Fn(usize) -> Box<dyn Observer> + Send + Sync>;

/// Names an observation, so that it can be ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ObservationId(pub(crate) u32);

/// The observers of one thread.
#[derive(Default)]
pub(crate) struct Observers(Vec<(ObservationId, Box<dyn Observer>)>);

impl Observers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn add(&mut self, id: ObservationId, observer: Box<dyn Observer>) {
        self.0.push((id, observer));
    }

    pub(crate) fn remove(&mut self, id: ObservationId) {
        self.0.retain(|(other, _)| *other != id);
    }

    pub(crate) fn before(
        &mut self,
        node: NodeIndex,
        name: &str,
        mut frame: Option<&mut Frame>,
        memory: Memory,
    ) {
        for (_, observer) in &mut self.0 {
            observer.before(node, name, frame.as_deref_mut().map(|frame| Observed { frame, memory }));
        }
    }

    pub(crate) fn after(&mut self, node: NodeIndex, name: &str, packets: usize) {
        // The last that looked before looks first: what the others cost is outside of what it measures.
        for (_, observer) in self.0.iter_mut().rev() {
            observer.after(node, name, packets);
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(id, _)| id)).finish()
    }
}
