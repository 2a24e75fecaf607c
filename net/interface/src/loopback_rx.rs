//! What interfaces without a wire do: frames that go out of one come in again.

use shoal_buffer::{Flags, Frame, Meta, SwIfIndex};
use shoal_graph::{Edge, ErrorCounters, FrameCx};

/// Makes of a packet that went out one that an interface has received. What was true of it on its way out is forgotten;
/// checksums that were left open stay open, as between two virtual ports.
#[inline(always)]
pub fn receive_again(meta: &mut Meta, interface: SwIfIndex) {
    meta.received_by(interface);
    let own = Flags::LOCALLY_ORIGINATED.with(Flags::LINK_MULTICAST).with(Flags::FLOODED);
    (meta.flags, meta.flow_hash) = (meta.flags.without(own), 0);
}

/// Sends those packets of a frame on that were received again. The others still have an interface to leave by, and are
/// dropped.
#[cold]
pub fn send_received(frame: &mut Frame, next: Edge, why: impl ErrorCounters, cx: &mut FrameCx<'_>) {
    for mut buffer in frame.drain() {
        if cx.cache().packet(&mut buffer).tx() == SwIfIndex::NONE {
            cx.send(next, buffer);
        } else {
            cx.drop(buffer, why);
        }
    }
}
