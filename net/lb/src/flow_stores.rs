//! What threads keep, and what becomes of it when workers come and go.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use shoal_graph::clock::Time;
use shoal_graph::{FrameCx, NoError, NoNext, Stateful};

use crate::flows::{Flows, Room};

/// As VPP's: four flows a bucket.
pub const FLOWS_OF_BUCKET: u32 = 4;

/// What threads keep, and how.
pub struct FlowStores {
    on: AtomicBool,
    flows: AtomicU32,
    timeout: AtomicU32,
}

impl FlowStores {
    pub(crate) fn new(room: Room) -> Self {
        FlowStores { on: AtomicBool::new(false), flows: room.flows.into(), timeout: room.timeout.into() }
    }

    pub(crate) fn room(&self) -> Room {
        Room { flows: self.flows.load(Ordering::Relaxed), timeout: self.timeout.load(Ordering::Relaxed) }
    }

    pub(crate) fn set_room(&self, room: Room) {
        self.flows.store(room.flows, Ordering::Relaxed);
        self.timeout.store(room.timeout, Ordering::Relaxed);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    pub(crate) fn switch_on(&self) {
        self.on.store(true, Ordering::Relaxed);
    }
}

impl Stateful for FlowStores {
    const NAME: &'static str = "lb-timer";
    type Next = NoNext;
    type Error = NoError;
    type State = Flows;

    fn make(&self, thread: usize) -> Flows {
        let mut flows = Flows::none();
        if self.is_on()
            && let Err(e) = flows.open(self.room(), Time(0))
        {
            tracing::warn!(thread, "lb remembers no flows: {e}");
        }
        flows
    }

    #[inline(always)]
    fn due(&self, flows: &Flows) -> Option<Time> {
        flows.due()
    }

    fn expire(&self, flows: &mut Flows, cx: &mut FrameCx<'_>) {
        flows.expire(cx.now());
    }

    /// Which thread a flow's packets come to now is not known: the table of new flows gives it the same server, unless servers
    /// came or went in the meantime.
    fn adopt(&self, _: &mut Flows, _: Flows, _: &mut FrameCx<'_>) {}
}
