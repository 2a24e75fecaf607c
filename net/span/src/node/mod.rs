//! The nodes. Each makes the copies and sends the packet on as if they were not there.

pub mod device;
pub mod l2;

use shoal_buffer::{Buffer, Flags, Packet};
use shoal_derive::ErrorCounters;
use shoal_graph::{Edge, FrameCx, ReplicaTarget};

use crate::table::{Source, Target};

/// What is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// SPAN incoming packets processed
    #[counter("SPAN incoming packets processed")]
    #[severity(info)]
    Packets,
    /// SPAN copies not made, no buffer
    NoBuffer,
}

/// A copy, and its destination.
struct Copy<'m> {
    source: &'m str,
    target: &'m Target,
    edge: Edge,
}

impl ReplicaTarget for Copy<'_> {
    type Trace = String;

    fn address(&self, pkt: &mut Packet<'_>) -> Edge {
        let meta = pkt.meta_mut();
        meta.tx = self.target.index;
        meta.flags = meta.flags.with(Flags::MIRRORED);
        self.edge
    }

    fn trace(&self) -> String {
        format!("SPAN: mirrored {} -> {}", self.source, self.target.name)
    }
}

/// Gives copies to those of a source's targets that `others` have not; `edge` is where a target's copies go.
fn mirror(
    cx: &mut FrameCx<'_>,
    mut buffer: Buffer,
    source: &Source,
    others: &[Target],
    edge: impl Fn(&Target) -> Edge,
) -> Buffer {
    if cx.cache().packet(&mut buffer).flags().has(Flags::MIRRORED) {
        return buffer;
    }
    let wanted =
        source.targets.iter().filter(|target| others.iter().all(|other| other.index != target.index));
    let copies = wanted.map(|target| Copy { source: &source.name, target, edge: edge(target) });
    let (buffer, missed) = cx.mirror(buffer, copies);
    if missed > 0 {
        cx.count(Error::NoBuffer, missed as u64);
    }
    buffer
}
