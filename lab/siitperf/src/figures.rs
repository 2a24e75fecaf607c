//! The original's figures from an outcome: TL, WCL and PDV, in milliseconds.

use shoal_lab_plan::{Outcome, Side, StreamOutcome};

use crate::args::Args;

/// Typical and worst case latency of one direction (RFC 8219 section 7.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// The median, in milliseconds.
    pub typical: f64,
    /// The 99.9th percentile, in milliseconds.
    pub worst: f64,
    /// Tagged frames that were lost.
    pub lost: u64,
}

/// Latency of what `from` sent; `None` if nothing was tagged there. A lost tag counts as if it had come at the very end:
/// `1000 (D - delay) + timeout` ms.
pub fn latency(outcome: &Outcome, from: Side, args: &Args) -> Option<Latency> {
    let delays = of_side(outcome, from).find_map(|s| s.delays.as_ref())?;
    let penalty = (1000 * (args.duration - args.delay) + args.timeout) as f64;
    let mut tags: Vec<f64> =
        delays.tags.iter().map(|tag| tag.map_or(penalty, |ns| ns as f64 / 1e6)).collect();
    // An outcome may end with the last tag that arrived.
    tags.resize(tags.len().max(args.timestamps as usize), penalty);
    tags.sort_by(f64::total_cmp);
    let at = |index: usize| tags.get(index).copied().unwrap_or(penalty);
    let count = tags.len();
    let typical =
        if count.is_multiple_of(2) { f64::midpoint(at(count / 2 - 1), at(count / 2)) } else { at(count / 2) };
    let arrived = delays.tags.iter().flatten().count();
    Some(Latency { typical, worst: at(nearest_rank(count as u64) as usize), lost: (count - arrived) as u64 })
}

/// Packet delay variation of what `from` sent, in milliseconds (RFC 8219 section 7.3.1): the 99.9th percentile less the
/// smallest delay. A lost frame counts as `1000 D + timeout` ms.
pub fn variation(outcome: &Outcome, from: Side, args: &Args) -> Option<f64> {
    let penalty = (1000 * args.duration + args.timeout) * 1_000_000;
    let mut values: Vec<(u64, u64)> = Vec::new();
    let mut least = penalty;
    let mut measured = false;
    for stream in of_side(outcome, from) {
        if let Some(delays) = &stream.delays {
            measured = true;
            values.extend(&delays.histogram);
            if delays.count > 0 {
                least = least.min(delays.min);
            }
        }
        values.push((penalty, stream.counts.lost()));
    }
    values.sort_unstable();
    let total: u64 = values.iter().map(|v| v.1).sum();
    if !measured || total == 0 {
        return None;
    }
    let rank = nearest_rank(total);
    let mut seen = 0;
    let high = values.iter().find(|(_, count)| {
        seen += count;
        seen > rank
    });
    // A histogram's bin may lie a little below the exact minimum.
    let high = high.map_or(penalty, |v| v.0).max(least);
    Some((high - least) as f64 / 1e6)
}

/// Index of the 99.9th percentile among `count` sorted values: `ceil(0.999 count) - 1`, in whole numbers.
fn nearest_rank(count: u64) -> u64 {
    (count - count / 1000).saturating_sub(1)
}

fn of_side(outcome: &Outcome, from: Side) -> impl Iterator<Item = &StreamOutcome> {
    outcome.streams.iter().filter(move |s| s.from == Some(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_is_the_ceiling_of_999_in_1000() {
        for (count, rank) in [(1, 0), (500, 499), (1000, 998), (1001, 999), (10_000, 9989), (50_000, 49_949)]
        {
            assert_eq!(nearest_rank(count), rank, "{count}");
            assert_eq!(nearest_rank(count), (count * 999).div_ceil(1000) - 1, "{count}");
        }
    }
}
