//! Sessions that are looked for ahead, on a superpath.

use shoal_flow::{Flow, FlowKey, FlowTable, Ip4Flow, Search, TableId};
use shoal_nat::{Kind, ParsedPacket, PortPacket};

/// The flow of a packet with ports.
#[inline(always)]
pub fn flow_of(seen: &PortPacket, table: u32) -> Ip4Flow {
    let table = TableId::new(table).unwrap_or_default();
    Ip4Flow::of_words(seen.addresses, seen.ports, seen.protocol(), table)
}

/// A whole packet of a protocol without ports.
#[inline(always)]
pub fn portless(bytes: &[u8]) -> Option<ParsedPacket> {
    let seen = ParsedPacket::read(bytes)?;
    (!seen.fragment && !matches!(seen.kind, Kind::Tcp | Kind::Udp)).then_some(seen)
}

/// The flow of a key, by a look-up that was done ahead if it was for that key.
#[inline(always)]
pub fn find<'t, K: FlowKey, V: Copy>(
    table: &'t mut FlowTable<K, V>,
    query: Option<&Search<K>>,
    key: K,
) -> Option<Flow<'t, K, V>> {
    match query.filter(|query| *query.key() == key) {
        Some(query) => table.find(query),
        None => find_alone(table, key),
    }
}

/// The flow of a packet whose look-up was not done ahead.
#[inline(never)]
fn find_alone<K: FlowKey, V: Copy>(table: &mut FlowTable<K, V>, key: K) -> Option<Flow<'_, K, V>> {
    let mut search = table.search(key);
    table.seek_one(&mut search);
    table.find(&search)
}
