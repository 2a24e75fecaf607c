//! The fourth mode of lab.md 3.5: vectors replayed through a router's graph in its own process, without a tester. The least
//! noisy signal of a regression, and no benchmark of the system.
//!
//! Clocks drift with the machine, so two builds are replayed in turns and told as ratios to a hand-written loop of the same
//! run, the *ruler*. Instructions hardly move at all: where they can be counted, they decide.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use shoal_lab_plan::{SummaryRow, Trust};

use crate::case::{Case, mark, note};
use crate::statistics::{Interval, median, ratio_interval};
use crate::{MeasureError, Revision, nearest};

/// What one replay says of one scenario. All figures are per packet.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Replay {
    /// Clocks of the path.
    pub clocks: f64,
    /// Clocks of each node.
    pub nodes: Vec<(String, f64)>,
    /// Instructions of the path, if they were counted.
    pub instructions: Option<f64>,
    /// Clocks of the ruler in the same run.
    pub ruler: Option<f64>,
    /// Something else used the machine all the time.
    pub disturbed: bool,
}

/// Several replays of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Clocks {
    /// Each node's least clocks.
    pub nodes: BTreeMap<String, f64>,
    /// The path's least clocks.
    pub total: f64,
    /// The path's clocks in each replay that counts.
    pub totals: Vec<f64>,
    /// The path's least clocks by the ruler's least, if there is a ruler.
    pub ratio: Option<f64>,
    /// The path's clocks by the ruler's, in each replay that counts.
    pub ratios: Vec<f64>,
    /// Instructions, the fewest that were counted.
    pub instructions: Option<f64>,
    /// Every replay was disturbed, so that all count.
    pub disturbed: bool,
}

impl Clocks {
    /// Keeps the least: noise only ever adds. Disturbed replays are left out, if there are others.
    ///
    /// # Errors
    ///
    /// If there is no replay, or one that took no time or passed no node.
    pub fn of(replays: &[Replay]) -> Result<Self, MeasureError> {
        let untrusted = |why: &str| Err(MeasureError::Untrusted(why.into()));
        if replays.is_empty() {
            return untrusted("nothing was replayed");
        }
        if replays.iter().any(|r| r.nodes.is_empty()) {
            return untrusted("the replay passed no node");
        }
        if replays.iter().any(|r| !(r.clocks.is_finite() && r.clocks > 0.0)) {
            return untrusted("the replay took no clocks");
        }
        let disturbed = replays.iter().all(|r| r.disturbed);
        let counted: Vec<&Replay> = replays.iter().filter(|r| disturbed || !r.disturbed).collect();
        let mut clocks = Clocks { total: f64::INFINITY, disturbed, ..Clocks::default() };
        let mut ruler = f64::INFINITY;
        for replay in counted {
            clocks.total = clocks.total.min(replay.clocks);
            clocks.totals.push(replay.clocks);
            for (node, own) in &replay.nodes {
                let least = clocks.nodes.entry(node.clone()).or_insert(*own);
                *least = least.min(*own);
            }
            if let Some(of) = replay.ruler.filter(|r| *r > 0.0) {
                ruler = ruler.min(of);
                clocks.ratios.push(replay.clocks / of);
            }
        }
        clocks.ratio = ruler.is_finite().then(|| clocks.total / ruler);
        // Counting is not disturbed by anything, so every replay's count holds.
        let counts = replays.iter().filter_map(|r| r.instructions).filter(|n| *n > 0.0);
        clocks.instructions = counts.min_by(f64::total_cmp);
        Ok(clocks)
    }
}

/// `times` replays of each of two builds in turns, A B B A and so on, so that a drift meets both alike.
pub fn turns(times: u32) -> Vec<Revision> {
    use Revision::{Base, Change};
    (0..times).flat_map(|at| if at % 2 == 0 { [Base, Change] } else { [Change, Base] }).collect()
}

/// A part of the path, or a measure of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Signal {
    /// Instructions a packet.
    Instructions,
    /// Clocks a packet as a ratio to the ruler's; where there is no ruler, clocks.
    Clocks,
}

/// A figure of the change that is larger than the base's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Alarm {
    /// Which.
    pub signal: Signal,
    /// The change's by the base's.
    pub ratio: f64,
    /// Where the ratio of medians lies with 95 % confidence; none of instructions, which do not vary.
    pub interval: Option<Interval>,
    /// Nothing else can be the reason: it is no warning but a failure.
    pub certain: bool,
}

/// What the change takes more of than the base by more than `limit` (0.05: 5 %).
///
/// Instructions are certain. Clocks are, if neither side was disturbed, both had a ruler and the whole interval is above 1.
pub fn alarms(base: &Clocks, change: &Clocks, limit: f64) -> Vec<Alarm> {
    let mut found = Vec::new();
    if let Some(ratio) = instructions_ratio(base, change).filter(|r| *r > 1.0 + limit) {
        found.push(Alarm { signal: Signal::Instructions, ratio, interval: None, certain: true });
    }
    if let Some(ratio) = clocks_ratio(base, change).filter(|r| *r > 1.0 + limit) {
        let interval = ratio_interval(&change.ratios, &base.ratios);
        let quiet = !base.disturbed && !change.disturbed;
        let certain = quiet && interval.is_some_and(|i| i.low > 1.0);
        found.push(Alarm { signal: Signal::Clocks, ratio, interval, certain });
    }
    found
}

/// The change's instructions by the base's, if both were counted.
pub fn instructions_ratio(base: &Clocks, change: &Clocks) -> Option<f64> {
    Some(change.instructions? / base.instructions.filter(|n| *n > 0.0)?)
}

/// The change's clocks by the base's: of their ratios to the ruler, if both have one.
pub fn clocks_ratio(base: &Clocks, change: &Clocks) -> Option<f64> {
    match (change.ratio, base.ratio) {
        (Some(change), Some(base)) if base > 0.0 => Some(change / base),
        _ => (base.total > 0.0).then(|| change.total / base.total),
    }
}

/// Nodes that are slower than in the base by more than `limit`, each with its ratio; nodes that the base does not know are
/// left out: see [`unknown`].
pub fn slower(base: &Clocks, change: &Clocks, limit: f64) -> Vec<(String, f64)> {
    let ratios = change.nodes.iter().filter_map(|(node, own)| {
        let before = base.nodes.get(node).filter(|b| **b > 0.0)?;
        Some((node.clone(), own / before))
    });
    ratios.filter(|(_, ratio)| *ratio > 1.0 + limit).collect()
}

/// Nodes of the change that the base does not have, each with the base's most similar name.
pub fn unknown<'c>(base: &'c Clocks, change: &'c Clocks) -> Vec<(&'c str, &'c str)> {
    let known = || base.nodes.keys().map(String::as_str);
    let new = change.nodes.keys().filter(|n| !base.nodes.contains_key(*n));
    new.map(|n| (n.as_str(), nearest(n, known()))).collect()
}

/// The summary's rows of a scenario: clocks, their ratio to the ruler, instructions where they were counted, each node's clocks.
pub fn rows(case: &Case, test: &str, clocks: &Clocks) -> Vec<SummaryRow> {
    let mut total = case.row(test, "clocks", "clocks/packet", clocks.totals.clone());
    note(&mut total, "without a tester: a signal of regressions, no benchmark of the system");
    let mut rows = vec![total];
    if !clocks.ratios.is_empty() {
        rows.push(case.row(test, "ratio to the ruler", "ratio", clocks.ratios.clone()));
    }
    if let Some(count) = clocks.instructions {
        rows.push(case.row(test, "instructions", "instructions/packet", vec![count]));
    }
    for (node, own) in &clocks.nodes {
        let mut row = case.row(test, "node clocks", "clocks/packet", vec![*own]);
        format!("{} {node}", case.variant).trim().clone_into(&mut row.variant);
        rows.push(row);
    }
    for row in rows.iter_mut().filter(|r| clocks.disturbed && r.metric != "instructions") {
        mark(row, Trust::Disturbed);
    }
    rows
}

/// `38.1 clocks a packet, 1.31 of the ruler's, 175.0 instructions`.
pub fn spoken(clocks: &Clocks) -> String {
    let mut text = format!("{:.1} clocks a packet", clocks.total);
    if let Some(ratio) = clocks.ratio {
        let _ = write!(text, ", {ratio:.2} of the ruler's");
    }
    if let Some(count) = clocks.instructions {
        let _ = write!(text, ", {count:.1} instructions");
    }
    if let Some(middle) = median(&clocks.totals).filter(|_| clocks.disturbed) {
        let _ = write!(text, "; disturbed all the time, median {middle:.1}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(clocks: f64, ruler: f64) -> Replay {
        Replay {
            clocks,
            nodes: vec![("ip4-lookup".into(), clocks - 10.0), ("ip4-rewrite".into(), 10.0)],
            instructions: Some(100.0),
            ruler: Some(ruler),
            disturbed: false,
        }
    }

    fn of(all: &[(f64, f64)]) -> Clocks {
        Clocks::of(&all.iter().map(|(c, r)| replay(*c, *r)).collect::<Vec<_>>()).unwrap()
    }

    /// Five quiet replays that differ by a few thousandths.
    fn around(clocks: f64) -> Clocks {
        of(&[1.0, 1.002, 1.004, 1.001, 1.003].map(|noise| (clocks * noise, 20.0)))
    }

    #[test]
    fn the_least_of_five_is_kept() {
        let clocks = of(&[(34.0, 20.0), (31.0, 21.0), (100.0, 20.5), (32.0, 20.0), (33.0, 20.0)]);
        assert_eq!((clocks.nodes["ip4-lookup"], clocks.total), (21.0, 31.0));
        assert_eq!((clocks.ratio, clocks.totals.len()), (Some(31.0 / 20.0), 5));
    }

    #[test]
    fn disturbed_replays_are_left_out_if_there_are_others() {
        let busy = Replay { disturbed: true, ..replay(25.0, 20.0) };
        let clocks = Clocks::of(&[busy.clone(), replay(31.0, 20.0)]).unwrap();
        assert_eq!((clocks.totals, clocks.disturbed), (vec![31.0], false));
        let clocks = Clocks::of(&[busy.clone(), busy]).unwrap();
        assert!(clocks.disturbed && clocks.totals.len() == 2);
        assert!(rows(&Case::default(), "replay", &clocks)[0].trust.contains(&Trust::Disturbed));
    }

    #[test]
    fn five_percent_more_alarm_and_less_does_not() {
        assert!(alarms(&around(30.0), &around(31.2), 0.05).is_empty());
        let alarms = alarms(&around(30.0), &around(32.0), 0.05);
        assert_eq!(alarms.len(), 1, "{alarms:?}");
        assert!(alarms[0].certain && alarms[0].signal == Signal::Clocks, "{alarms:?}");
    }

    #[test]
    fn clocks_of_a_disturbed_machine_warn_and_instructions_fail_all_the_same() {
        let base = around(30.0);
        let mut change = Clocks { disturbed: true, ..around(40.0) };
        let warned = alarms(&base, &change, 0.05);
        assert_eq!((warned.len(), warned[0].certain), (1, false), "{warned:?}");
        change.instructions = Some(105.1);
        let failed = alarms(&base, &change, 0.05);
        assert_eq!((failed[0].signal, failed[0].certain), (Signal::Instructions, true), "{failed:?}");
        change.instructions = None;
        assert_eq!(alarms(&base, &change, 0.05).len(), 1, "what was not counted does not alarm");
    }

    #[test]
    fn one_lucky_run_of_the_base_is_no_certainty() {
        // The base's least is a tenth below the rest; all else is equal.
        let base = of(&[(30.0, 20.0), (33.0, 20.0), (33.4, 20.0), (33.2, 20.0), (33.1, 20.0)]);
        let change = of(&[(33.0, 20.0), (33.2, 20.0), (33.1, 20.0), (33.4, 20.0), (33.3, 20.0)]);
        let warned = alarms(&base, &change, 0.05);
        assert_eq!((warned.len(), warned[0].certain), (1, false), "{warned:?}");
    }

    #[test]
    fn a_slow_day_of_ruler_and_path_is_no_alarm() {
        let slow = of(&[(45.0, 30.0), (45.1, 30.0), (45.2, 30.0), (45.1, 30.0), (45.0, 30.0)]);
        assert!(alarms(&around(30.0), &slow, 0.05).is_empty());
    }

    #[test]
    fn without_a_ruler_clocks_only_warn() {
        let bare = |clocks: f64| Clocks { ratio: None, ratios: Vec::new(), ..around(clocks) };
        let warned = alarms(&bare(30.0), &bare(40.0), 0.05);
        assert_eq!((warned.len(), warned[0].certain), (1, false), "{warned:?}");
    }

    #[test]
    fn slower_and_new_nodes_are_named() {
        let (base, mut change) = (around(30.0), around(33.0));
        assert_eq!(slower(&base, &change, 0.05)[0].0, "ip4-lookup");
        change.nodes.insert("ip4-lookup-2".into(), 1.0);
        assert_eq!(unknown(&base, &change), [("ip4-lookup-2", "ip4-lookup")]);
    }

    #[test]
    fn a_replay_without_nodes_or_clocks_is_an_error() {
        assert!(Clocks::of(&[]).is_err());
        assert!(Clocks::of(&[Replay { clocks: 1.0, ..Replay::default() }]).is_err());
        assert!(Clocks::of(&[Replay { clocks: 0.0, ..replay(20.0, 20.0) }]).is_err());
    }

    #[test]
    fn two_builds_take_turns() {
        use Revision::{Base, Change};
        assert_eq!(turns(3), [Base, Change, Change, Base, Base, Change]);
    }
}
