//! The fourth mode of lab.md 3.5: vectors replayed through a router's graph in its own process, without a tester. The least
//! noisy signal of a regression, and no benchmark of the system.

use std::collections::BTreeMap;

use serde::Serialize;
use shoal_lab_plan::SummaryRow;

use crate::case::{Case, note};
use crate::{MeasureError, nearest};

/// Clocks a packet of each node, from one replay.
pub type Replay = Vec<(String, f64)>;

/// The best of several replays.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Clocks {
    /// Each node's least clocks a packet.
    pub nodes: BTreeMap<String, f64>,
    /// The least sum of a replay.
    pub total: f64,
    /// The sum of each replay.
    pub totals: Vec<f64>,
}

/// Replays `times` times and keeps the least: noise only ever adds.
///
/// # Errors
///
/// If a replay fails, or has no nodes.
pub fn replays(
    times: u32,
    mut replay: impl FnMut() -> Result<Replay, MeasureError>,
) -> Result<Clocks, MeasureError> {
    let mut clocks = Clocks { total: f64::INFINITY, ..Clocks::default() };
    for _ in 0..times.max(1) {
        let nodes = replay()?;
        if nodes.is_empty() {
            return Err(MeasureError::Untrusted("the replay passed no node".into()));
        }
        let sum: f64 = nodes.iter().map(|(_, c)| c).sum();
        clocks.total = clocks.total.min(sum);
        clocks.totals.push(sum);
        for (node, own) in nodes {
            clocks.nodes.entry(node).and_modify(|least| *least = least.min(own)).or_insert(own);
        }
    }
    Ok(clocks)
}

/// What is slower than in the base by more than `limit` (0.05: 5 %): nodes and, under the name `total`, the sum. Each with its
/// ratio. A node that the base does not know is left out: see [`unknown`].
pub fn slower(base: &Clocks, change: &Clocks, limit: f64) -> Vec<(String, f64)> {
    let ratios = change.nodes.iter().filter_map(|(node, own)| {
        let before = base.nodes.get(node).filter(|b| **b > 0.0)?;
        Some((node.clone(), own / before))
    });
    let total = (base.total > 0.0).then(|| ("total".to_string(), change.total / base.total));
    ratios.chain(total).filter(|(_, ratio)| *ratio > 1.0 + limit).collect()
}

/// Nodes of the change that the base does not have, each with the base's most similar name.
pub fn unknown<'c>(base: &'c Clocks, change: &'c Clocks) -> Vec<(&'c str, &'c str)> {
    let known = || base.nodes.keys().map(String::as_str);
    let new = change.nodes.keys().filter(|n| !base.nodes.contains_key(*n));
    new.map(|n| (n.as_str(), nearest(n, known()))).collect()
}

/// The summary's rows: each node, and the sum of each replay.
pub fn rows(case: &Case, clocks: &Clocks) -> Vec<SummaryRow> {
    let mut total = case.row("in-process", "clocks", "clocks/packet", clocks.totals.clone());
    note(&mut total, "without a tester: a signal of regressions, no benchmark of the system");
    let mut rows = vec![total];
    for (node, own) in &clocks.nodes {
        let mut row = case.row("in-process", "node clocks", "clocks/packet", vec![*own]);
        row.variant.clone_from(node);
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lookups: &[f64]) -> Clocks {
        let mut next = lookups.iter();
        replays(lookups.len() as u32, || {
            let own = *next.next().unwrap();
            Ok(vec![("ip4-lookup".into(), own), ("ip4-rewrite".into(), 10.0)])
        })
        .unwrap()
    }

    #[test]
    fn the_least_of_five_is_kept() {
        let clocks = of(&[24.0, 21.0, 90.0, 22.0, 23.0]);
        assert_eq!((clocks.nodes["ip4-lookup"], clocks.total), (21.0, 31.0));
    }

    #[test]
    fn a_node_slower_by_more_than_five_percent_alarms() {
        let base = of(&[20.0]);
        assert!(slower(&base, &of(&[20.9]), 0.05).is_empty());
        let alarms = slower(&base, &of(&[21.1]), 0.05);
        assert_eq!(alarms.len(), 1, "{alarms:?}");
        assert_eq!(slower(&base, &of(&[30.0]), 0.05).len(), 2);
    }

    #[test]
    fn a_replay_without_nodes_is_an_error() {
        assert!(replays(5, || Ok(Vec::new())).is_err());
    }
}
