//! Which node gets 802.3 frames, which have a length where others have a type.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use shoal_graph::Edge;

/// A protocol of frames with an extended header: the organisation that gave it its number, and the number. IEEE 802,
/// 9.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snap {
    /// The organization.
    pub organization: [u8; 3],
    /// Its number for the protocol.
    pub protocol: u16,
}

impl Snap {
    /// What stands behind the length.
    pub fn header(self) -> [u8; 8] {
        let ([a, b, c], [high, low]) = (self.organization, self.protocol.to_be_bytes());
        [0xaa, 0xaa, 0x03, a, b, c, high, low]
    }
}

/// Most protocols; there are few, and looking through them is cheaper than anything else.
const MOST: usize = 4;

#[derive(Default)]
struct Slots {
    /// The header, and where its frames go; 0: a free place.
    protocols: [(AtomicU64, AtomicU16); MOST],
    /// Where all others go; 0: nowhere.
    rest: AtomicU16,
}

/// The table. Clones are the same.
#[derive(Clone, Default)]
pub struct LlcTable(Arc<Slots>);

impl LlcTable {
    /// Where a frame goes whose first byte is the one behind the length.
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<Edge> {
        let header = bytes.first_chunk().map_or(0, |header| u64::from_be_bytes(*header));
        let of = |(key, edge): &(AtomicU64, AtomicU16)| {
            (header != 0 && key.load(Ordering::Acquire) == header).then(|| edge.load(Ordering::Relaxed))
        };
        let edge =
            self.0.protocols.iter().find_map(of).unwrap_or_else(|| self.0.rest.load(Ordering::Relaxed));
        (edge != 0).then_some(Edge(edge))
    }

    pub(crate) fn set_rest(&self, edge: Edge) {
        self.0.rest.store(edge.0, Ordering::Relaxed);
    }

    /// Whether there was room. Only the main thread calls this.
    pub(crate) fn set(&self, protocol: Snap, edge: Edge) -> bool {
        let header = u64::from_be_bytes(protocol.header());
        let fits = |(key, _): &&(AtomicU64, AtomicU16)| [0, header].contains(&key.load(Ordering::Relaxed));
        let Some((key, to)) = self.0.protocols.iter().find(fits) else { return false };
        to.store(edge.0, Ordering::Relaxed);
        key.store(header, Ordering::Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_have_their_nodes_and_the_rest_has_one() {
        let table = LlcTable::default();
        let snap = |protocol| Snap { organization: [0, 0, 0x0c], protocol };
        assert_eq!(table.find(&snap(0x2000).header()), None);
        for n in 0..MOST as u16 {
            assert!(table.set(snap(n), Edge(10 + n)));
        }
        assert!(!table.set(snap(99), Edge(1)), "there is no room");
        assert!(table.set(snap(2), Edge(7)), "it has its place");
        assert_eq!(table.find(&snap(2).header()), Some(Edge(7)));
        assert_eq!(table.find(&[&snap(3).header()[..], &[1]].concat()), Some(Edge(13)));
        assert_eq!((table.find(&[]), table.find(&[0; 20]), table.find(&[0xaa; 7])), (None, None, None));
        table.set_rest(Edge(5));
        assert_eq!((table.find(&[]), table.find(&[0xfe, 0xfe, 3, 1])), (Some(Edge(5)), Some(Edge(5))));
    }
}
