//! Convergence: how long after an event until packets to all prefixes get through, or none any more.
//!
//! Frames go to a sample of prefixes in turn, while a routing daemon tells the device a table. A prefix is *reached* when the last
//! frame to it was sent that was lost. That is at most one turn of the sample before it got its route: the next frame to it, which got
//! through, was sent one turn later.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use shoal_lab_plan::{Observation, SummaryRow};

use crate::Case;
use crate::case::{note, with_curve};

/// The test's name.
pub const TEST: &str = "convergence";
/// Points of a curve.
const POINTS: usize = 60;
/// Frames that are younger may still be on their way.
pub const SETTLE: f64 = 0.3;

/// What happens in one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The peer announces the table.
    Announce,
    /// The link of the next hop fails that all prefixes share with another one.
    Failure,
    /// The peer withdraws the table.
    Withdraw,
}

impl Phase {
    /// All, in the order in which they happen.
    pub const ALL: [Phase; 3] = [Phase::Announce, Phase::Failure, Phase::Withdraw];

    /// As users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Announce => "announce",
            Phase::Failure => "failure",
            Phase::Withdraw => "withdraw",
        }
    }

    /// Whether frames arrive once it is over.
    const fn arrives(self) -> bool {
        !matches!(self, Phase::Withdraw)
    }
}

/// What a phase came to. Times are seconds since its event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Converged {
    /// When the first frame was sent that became what it should; none: none did.
    pub first: Option<f64>,
    /// When half of the prefixes had.
    pub half: Option<f64>,
    /// When the last frame was sent that was not yet; none: all were.
    pub last: Option<f64>,
    /// When the first frame was sent that was not.
    pub first_wrong: Option<f64>,
    /// Frames that were not.
    pub wrong: u64,
    /// Frames that were not although one before them to the same prefix was.
    pub relapsed: u64,
    /// Prefixes that never were.
    pub never: usize,
    /// The share of prefixes over seconds.
    pub curve: Vec<(f64, f64)>,
}

/// Reads what was seen of a phase that began at `event` and was watched until `until`.
pub fn converged(seen: &Observation, phase: Phase, event: f64, until: f64) -> Converged {
    let frames = seen.between(event, until - SETTLE);
    let right = |n: usize| seen.arrived.get(n).is_some_and(|arrived| *arrived == phase.arrives());
    let at = |n: usize| seen.sent.get(n).copied().unwrap_or_default() - event;
    let mut all = Converged::default();
    let mut prefixes = vec![Prefix::default(); seen.targets];
    for n in frames {
        let Some(prefix) = prefixes.get_mut(n % seen.targets.max(1)) else { continue };
        prefix.asked = true;
        if right(n) {
            all.first = all.first.or(Some(at(n)));
            prefix.right = true;
        } else {
            all.first_wrong = all.first_wrong.or(Some(at(n)));
            all.last = Some(at(n));
            all.wrong += 1;
            all.relapsed += u64::from(prefix.right);
            (prefix.right, prefix.wrong) = (false, at(n));
        }
    }
    let asked = prefixes.iter().filter(|prefix| prefix.asked).count();
    let mut times: Vec<f64> =
        prefixes.iter().filter(|prefix| prefix.right).map(|prefix| prefix.wrong).collect();
    times.sort_by(f64::total_cmp);
    all.never = asked - times.len();
    all.half = times.get(asked.saturating_sub(1) / 2).copied();
    all.curve = curve(&times, asked);
    all
}

/// What is known of a prefix.
#[derive(Clone, Copy, Debug, Default)]
struct Prefix {
    /// A frame went to it.
    asked: bool,
    /// The last one became what it should.
    right: bool,
    /// When the last one was sent that did not; the event if there is none.
    wrong: f64,
}

/// The share of prefixes at evenly spread moments, from the event until a little after the last.
fn curve(times: &[f64], asked: usize) -> Vec<(f64, f64)> {
    let Some(last) = times.last().filter(|_| asked > 0) else { return Vec::new() };
    let end = (last * 1.1).max(0.001);
    (0..=POINTS)
        .map(|point| {
            let moment = end * point as f64 / POINTS as f64;
            let there = times.partition_point(|time| *time <= moment);
            (moment, 100.0 * there as f64 / asked as f64)
        })
        .collect()
}

/// Whether everything has been as the phase wants it for `quiet` seconds before `now`, or until what is in flight.
pub fn is_over(seen: &Observation, phase: Phase, event: f64, now: f64, quiet: f64) -> bool {
    let from = now - SETTLE - quiet;
    let frames = seen.between(from, now - SETTLE);
    let (count, arrived) = (frames.len(), seen.arrived_of(frames));
    from >= event && count >= seen.targets.max(1) && arrived == if phase.arrives() { count } else { 0 }
}

/// What else is known of a phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Beside {
    /// When the kernel's table changed last, in seconds since the event; none: it is not told, or it did not change.
    pub kernel: Option<f64>,
    /// When the last byte of the feed was taken, in seconds since the event; of FPM: when the last route was answered.
    pub taken: Option<f64>,
    /// Processor seconds of the device's process, in which the kernel's work for it is; none: it has none.
    pub device: Option<f64>,
    /// Processor seconds of the device's thread that takes routes.
    pub main_thread: Option<f64>,
    /// Processor seconds of the daemon's processes.
    pub daemon: Option<f64>,
    /// Prefixes announced.
    pub prefixes: usize,
    /// Seconds in which each prefix of the sample gets a frame.
    pub turn: f64,
    /// It did not end in the time it was given.
    pub cut_short: Option<Duration>,
}

/// The summary's rows of a phase.
pub fn rows(case: &Case, phase: Phase, found: &Converged, beside: &Beside) -> Vec<SummaryRow> {
    let (first, last, share) = match phase {
        Phase::Announce => ("first packet", "last lost packet", "% of prefixes reached"),
        Phase::Failure => ("", "outage by failure", "% of prefixes reached"),
        Phase::Withdraw => {
            ("first packet without a route", "last packet to a withdrawn prefix", "% of prefixes gone")
        }
    };
    let row = |metric: &str, value: Option<f64>| case.row(TEST, metric, "s", value.into_iter().collect());
    let turn = format!("a prefix has a frame each {:.3} s", beside.turn);
    // A table that was there before the first frame lost nothing; one that never came has no last one.
    let last_value = (found.never == 0).then_some(match phase {
        // What a command takes until the link is down is none of the device's time: the first frame that is lost tells that it is.
        Phase::Failure => found.last.zip(found.first_wrong).map_or(0.0, |(last, first)| last - first),
        Phase::Announce | Phase::Withdraw => found.last.unwrap_or(0.0),
    });
    let mut ended = with_curve(row(last, last_value), found.curve.clone(), &x_axis(phase), share);
    note(&mut ended, &turn);
    if let Some(limit) = beside.cut_short {
        note(&mut ended, &format!("not over after {} s: {} prefixes never", limit.as_secs(), found.never));
    }
    if found.relapsed > 0 {
        let relapsed = found.relapsed;
        note(
            &mut ended,
            &format!("{relapsed} frames were lost after one to the same prefix had got through"),
        );
    }
    let mut all = vec![ended];
    if phase == Phase::Failure {
        all.push(case.row(TEST, "packets lost by failure", "", vec![found.wrong as f64]));
        return all;
    }
    all.push(row(first, found.first));
    if phase == Phase::Announce {
        all.push(row("half of the prefixes", found.half));
    }
    let word = phase.name();
    if let Some(kernel) = beside.kernel {
        all.push(row(&format!("kernel's table, {word}"), Some(kernel)));
        if let Some(last) = last_value {
            let mut after = row(&format!("after the kernel's table, {word}"), Some((last - kernel).max(0.0)));
            note(&mut after, &turn);
            all.push(after);
        }
    }
    if phase == Phase::Withdraw {
        return all;
    }
    if let Some(taken) = beside.taken {
        all.push(row("feed taken", Some(taken)));
    }
    if let Some(last) = last_value.filter(|last| *last > 0.0) {
        let rate = beside.prefixes as f64 / last;
        all.push(case.row(TEST, "routes", "routes/s", vec![rate]));
    }
    all.extend(spent(case, phase, beside));
    // What the thread did while it waited is nothing, so this is what one processor is good for.
    if let Some(spent) = beside.main_thread.filter(|spent| *spent > 0.0) {
        let rate = beside.prefixes as f64 / spent;
        let mut row = case.row(TEST, "routes by the device's own time", "routes/s", vec![rate]);
        note(&mut row, "prefixes by the processor seconds of its main thread");
        all.push(row);
    }
    all
}

/// Rows of a daemon that has the machine for itself, until it was at rest.
pub fn alone(case: &Case, phase: Phase, rested: f64, beside: &Beside) -> Vec<SummaryRow> {
    let metric = format!("daemon at rest, {}", phase.name());
    let mut row =
        case.row(TEST, &metric, "s", if beside.cut_short.is_none() { vec![rested] } else { Vec::new() });
    if let Some(limit) = beside.cut_short {
        note(&mut row, &format!("not over after {} s", limit.as_secs()));
    }
    let mut all = vec![row];
    all.extend(spent(case, phase, beside));
    all
}

fn spent(case: &Case, phase: Phase, beside: &Beside) -> impl Iterator<Item = SummaryRow> {
    let all =
        [("device", beside.device), ("device's main thread", beside.main_thread), ("daemon", beside.daemon)];
    all.into_iter().filter_map(move |(who, spent)| {
        let metric = format!("processor seconds of the {who}, {}", phase.name());
        Some(case.row(TEST, &metric, "s", vec![spent?]))
    })
}

fn x_axis(phase: Phase) -> String {
    match phase {
        Phase::Announce => "seconds since the peer began to announce",
        Phase::Failure => "seconds since the link failed",
        Phase::Withdraw => "seconds since the peer began to withdraw",
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame each hundredth of a second to `targets` prefixes in turn for `seconds`; which arrive, `arrives` says.
    fn seen(targets: usize, seconds: f64, arrives: impl Fn(usize, f64) -> bool) -> Observation {
        let mut all = Observation::of(targets);
        for n in 0..(seconds * 100.0) as usize {
            let at = n as f64 / 100.0;
            all.sent.push(at);
            all.arrived.push(arrives(n % targets, at));
        }
        all
    }

    fn near(value: Option<f64>, wanted: f64) -> bool {
        value.is_some_and(|v| (v - wanted).abs() < 0.021)
    }

    #[test]
    fn times_are_those_of_the_first_the_middle_and_the_last_prefix() {
        // Prefix t comes at second 2 + t; the event is at second 1.
        let seen = seen(4, 10.0, |target, at| at >= 2.0 + target as f64);
        let found = converged(&seen, Phase::Announce, 1.0, 10.0);
        assert!(near(found.first, 1.0) && near(found.half, 1.97), "{found:?}");
        assert!(found.last.is_some_and(|last| (3.9..4.0).contains(&last)), "{found:?}");
        assert_eq!((found.never, found.relapsed), (0, 0));
        assert_eq!(found.curve.first(), Some(&(0.0, 0.0)));
        assert_eq!(found.curve.last().map(|p| p.1), Some(100.0));
        assert!(found.curve.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1));
    }

    #[test]
    fn a_prefix_that_is_lost_again_is_reached_when_it_stays() {
        let seen = seen(1, 6.0, |_, at| (1.0..2.0).contains(&at) || at >= 3.0);
        let found = converged(&seen, Phase::Announce, 0.0, 6.0);
        assert!(near(found.first, 1.0) && near(found.half, 2.99) && near(found.last, 2.99), "{found:?}");
        assert_eq!(found.relapsed, 1, "the next one lost is no relapse of one that is not reached");
    }

    #[test]
    fn what_never_comes_is_counted_and_has_no_last_packet() {
        let seen = seen(2, 5.0, |target, _| target == 0);
        let found = converged(&seen, Phase::Announce, 0.0, 5.0);
        assert_eq!(found.never, 1);
        let beside = Beside { cut_short: Some(Duration::from_secs(5)), ..Beside::default() };
        let rows = rows(&Case::default(), Phase::Announce, &found, &beside);
        assert!(rows[0].values.is_empty() && rows[0].note.contains("1 prefixes never"), "{}", rows[0].note);
    }

    #[test]
    fn a_withdrawal_is_over_when_nothing_arrives() {
        let seen = seen(4, 10.0, |_, at| at < 3.0);
        let found = converged(&seen, Phase::Withdraw, 2.0, 10.0);
        assert!(near(found.last, 0.99) && near(found.first, 1.0), "{found:?}");
        assert!(!is_over(&seen, Phase::Withdraw, 2.0, 4.0, 1.0));
        assert!(is_over(&seen, Phase::Withdraw, 2.0, 5.0, 1.0));
        assert!(!is_over(&seen, Phase::Announce, 2.0, 5.0, 1.0));
    }

    #[test]
    fn it_is_not_over_before_each_prefix_had_a_frame_since_the_event() {
        let seen = seen(200, 10.0, |_, _| true);
        assert!(!is_over(&seen, Phase::Failure, 1.0, 2.2, 1.0), "frames from before the event say nothing");
        assert!(!is_over(&seen, Phase::Failure, 0.0, 5.0, 1.0), "one frame for every second prefix");
        assert!(is_over(&seen, Phase::Failure, 1.0, 5.0, 2.5));
    }

    #[test]
    fn rows_say_what_the_kernel_and_the_rest_took() {
        let seen = seen(4, 10.0, |_, at| at >= 3.0);
        let found = converged(&seen, Phase::Announce, 1.0, 10.0);
        let beside =
            Beside { kernel: Some(1.5), daemon: Some(2.0), prefixes: 1_000, turn: 0.04, ..Beside::default() };
        let rows = rows(&Case::default(), Phase::Announce, &found, &beside);
        let value = |metric: &str| rows.iter().find(|r| r.metric == metric).map(|r| r.values[0]);
        assert!(near(value("last lost packet"), 1.99));
        assert!(near(value("after the kernel's table, announce"), 0.49));
        assert_eq!(value("processor seconds of the daemon, announce"), Some(2.0));
        assert_eq!(value("processor seconds of the device, announce"), None);
        assert!(value("routes").is_some_and(|rate| (490.0..520.0).contains(&rate)));
        assert!(rows[0].note.contains("each 0.040 s") && rows[0].axes.is_some());
    }

    #[test]
    fn a_failure_that_costs_nothing_lost_nothing() {
        let seen = seen(4, 10.0, |_, _| true);
        let found = converged(&seen, Phase::Failure, 5.0, 10.0);
        let rows = rows(&Case::default(), Phase::Failure, &found, &Beside::default());
        assert_eq!((&rows[0].values[..], &rows[1].values[..]), (&[0.0][..], &[0.0][..]));
    }

    #[test]
    fn an_outage_lasts_from_the_first_frame_that_is_lost_to_the_last() {
        // The command is given at second 5, the link is down at 5.2 and the device knows it at 5.5.
        let seen = seen(4, 10.0, |target, at| target % 2 == 0 || !(5.2..5.5).contains(&at));
        let found = converged(&seen, Phase::Failure, 5.0, 10.0);
        let rows = rows(&Case::default(), Phase::Failure, &found, &Beside::default());
        assert!(near(rows[0].values.first().copied(), 0.29), "{:?}", rows[0].values);
        assert_eq!(rows[1].values, [15.0]);
    }
}
