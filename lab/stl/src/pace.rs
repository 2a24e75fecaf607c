//! When a stream's frames are due: bursts, pauses and loops as the plan's paces.

use std::time::Duration;

use shoal_lab_plan::Pace;

use crate::chain::{self, Slot};
use crate::convert::Draft;
use crate::format::Mode;
use crate::fraction::Fraction;

fn microseconds(value: f64) -> Fraction {
    Fraction::of(value).unwrap_or(Fraction::ZERO).over(Fraction::whole(1_000_000))
}

/// The streams as members of chains.
pub(crate) fn links(drafts: &[Draft]) -> Vec<chain::Link> {
    let link = |draft: &Draft| chain::Link {
        name: draft.from.name.clone(),
        label: draft.label.clone(),
        next: draft.from.next.clone(),
        self_start: draft.from.self_start,
        gap: microseconds(draft.from.isg),
        length: length(draft),
        limit: draft.from.action_count,
    };
    drafts.iter().map(link).collect()
}

/// Seconds that a stream lasts.
fn length(draft: &Draft) -> Option<Fraction> {
    match draft.from.mode {
        Mode::Continuous { .. } => None,
        Mode::SingleBurst { total_pkts, .. } => Some(Fraction::whole(total_pkts).over(draft.rate)),
        Mode::MultiBurst { pkts_per_burst, ibg, count, .. } => {
            let bursts = Fraction::whole(pkts_per_burst).over(draft.rate).times(Fraction::whole(count));
            Some(bursts.plus(microseconds(ibg).times(Fraction::whole(count.saturating_sub(1)))))
        }
    }
}

/// A stream's pace in its slot, of a trial that sends for `duration`. The error says what could be.
pub(crate) fn pace(draft: &Draft, slot: Slot, duration: Duration) -> Result<Pace, String> {
    let (frames, bursts, between) = match draft.from.mode {
        Mode::Continuous { .. } => {
            return Ok(Pace::Steady { rate: draft.rate.rate(), after: slot.start.duration() });
        }
        Mode::SingleBurst { total_pkts, .. } => (total_pkts, 1, Fraction::ZERO),
        Mode::MultiBurst { pkts_per_burst, ibg, count, .. } => (pkts_per_burst, count, microseconds(ibg)),
    };
    let looped = slot.period.minus(length(draft).unwrap_or(Fraction::ZERO));
    let runs = slot.runs.unwrap_or_else(|| {
        // As many as end before the trial does, and one at least.
        let left =
            Fraction::seconds(duration).minus(slot.start.plus(length(draft).unwrap_or(Fraction::ZERO)));
        left.over(slot.period).floor().saturating_add(1)
    });
    let between = match (bursts, runs) {
        (_, 1) => between,
        (1, _) => looped,
        _ if looped.compare(between).is_eq() => between,
        _ => {
            return Err("it is a multi burst in a loop, and its pauses differ; what can be: a single burst in a loop, \
                        a multi burst that is sent once, or equal ibg and isg"
                .to_owned());
        }
    };
    Ok(Pace::Bursts {
        frames,
        bursts: bursts.saturating_mul(runs),
        rate: Some(draft.rate.rate()),
        gap: between.duration(),
        after: slot.start.duration(),
    })
}
