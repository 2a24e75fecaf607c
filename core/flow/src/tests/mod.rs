//! The table as its users see it, and as it is inside.

mod adversary;
mod bulk;
mod model;
mod stages;

use crate::entry::Hashed;
use crate::{FlowKey, FlowTable};

/// Fails if something inside is not as it must be: index, entries, counts.
fn check<K: FlowKey, V: Copy>(table: &FlowTable<K, V>) {
    let (flows, _) = table.index.check(&Hashed { entries: &table.entries, seed: &table.seed });
    assert_eq!(flows, table.len(), "flows in the index");
    let live = table.entries.iter().filter(|entry| entry.is_live()).count();
    assert_eq!(live, table.len(), "live entries");
    let running = table.entries.iter().filter(|entry| entry.is_live() && entry.links.is_running()).count();
    assert_eq!(running, table.len(), "each flow has a timer");
    let usage = table.usage();
    assert!(usage.bytes <= usage.most_bytes, "{usage:?}");
}
