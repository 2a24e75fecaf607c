//! What `show capacity` says of forwarding tables.

use shoal_module::{Capacity, Control};

use crate::{Family, Fib};

/// Bytes a route takes, about, before there are enough to ask: its entry in a hash table that is two thirds full, and
/// its part of the trie's plies.
const BYTES_EACH: [usize; 2] = [96, 256];
/// From so many routes on the average says more.
const ENOUGH: usize = 1 << 16;
/// Bytes of a ply, with what the writer keeps for it: the least a table's trie grows by.
const PLY: usize = 256 * 5 + 64;
/// Bytes of a path list with one path, and of the adjacency it owns.
const LIST: usize = 512;
/// Bytes of an empty table: the root of its trie, and its first entries.
const TABLE: usize = (1 << 16) * 5 + 4096;

/// The rows, in the order of the tables' families.
pub(crate) fn rows(control: &Control) -> Vec<Capacity> {
    let Ok(fib) = control.get::<Fib>() else { return Vec::new() };
    let all = fib.capacity();
    let mut rows = Vec::new();
    for (at, family) in Family::ALL.into_iter().enumerate() {
        let of = |counts: &[usize]| counts.get(at).copied().unwrap_or(0);
        let tables = fib.list_tables(family);
        let (routes, bytes): (usize, usize) = tables
            .iter()
            .map(|t| (t.lengths.iter().sum::<usize>(), t.trie_bytes + t.entry_bytes))
            .fold((0, 0), |(n, sum), (routes, bytes)| (n + routes, sum + bytes));
        let average = bytes.checked_div(routes).filter(|_| routes >= ENOUGH);
        let each = average.unwrap_or_else(|| of(&BYTES_EACH));
        rows.push(Capacity::up_to(format!("{family} tables"), of(&all.tables), all.most_tables, TABLE));
        rows.push(Capacity::by_memory(format!("{family} routes"), of(&all.routes), each));
        rows.push(Capacity::up_to(format!("{family} plies, table 0"), of(&all.plies), all.most_plies, PLY));
    }
    rows.push(Capacity::by_memory("path lists", all.path_lists, LIST));
    let room = all.adjacencies.most_adjacencies.saturating_sub(all.adjacencies.adjacencies);
    rows.push(Capacity::up_to("route counters", all.counted, all.counted + room, LIST));
    rows.push(Capacity::by_memory("recursive next hops", all.next_hops, LIST));
    rows
}
