//! What a trial's numbers mean, and how far a result can be trusted.

use serde::{Deserialize, Serialize};

use crate::{MOST_STOLEN, Outcome, Side, Trial};

/// What a trial's numbers mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind", content = "why")]
pub enum Verdict {
    /// Each frame that was due was sent and arrived.
    Pass,
    /// The device lost some; the share, 0 to 1.
    Fail(f64),
    /// The tester could not send as fast.
    TesterLimit(String),
    /// Something held the tester up: to be tried again.
    Disturbed(String),
    /// The tester itself lost frames, or they were not what was sent.
    Invalid(String),
}

impl Verdict {
    /// Reads `outcome` of `trial`. `smallest_ring` is the frames that the tester's smallest receive ring holds; it sets what
    /// stall disturbs, if the trial does not.
    pub fn of(trial: &Trial, outcome: &Outcome, smallest_ring: u32) -> Verdict {
        let lost_here: u64 = outcome.ports.iter().map(|p| p.lost_receiving).sum();
        let (mut corrupt, mut stray) = (0, 0);
        for side in Side::BOTH {
            corrupt += outcome.direction(side).corrupt;
            stray += outcome.direction(side).stray;
        }
        if corrupt > 0 {
            return Verdict::Invalid(format!("{corrupt} frames arrived corrupt"));
        }
        if stray > 0 {
            return Verdict::Invalid(format!("{stray} frames arrived where, or as, they should not"));
        }
        // Of a device that did not have its processor nothing is known, whatever arrived, and however late; and a tester that did
        // not have its own loses frames, comes late, and sees delays that are none.
        if let Some(processors) = outcome.processors.as_ref().filter(|p| p.taken() > trial.most_taken) {
            return Verdict::Disturbed(processors.words());
        }
        let stale: u64 = outcome.ports.iter().map(|p| p.stale).sum();
        if stale > 0 {
            return Verdict::Invalid(format!("{stale} frames of an earlier trial arrived"));
        }
        if lost_here > 0 && (trial.own_loss == 0.0 || outcome.loss() > trial.own_loss) {
            return Verdict::Invalid(format!("the tester lost {lost_here} frames on receiving"));
        }
        if outcome.took.as_secs_f64() > outcome.planned.as_secs_f64() * trial.tolerance {
            // A wire with back-pressure (memif, a full ring) loses nothing: it refuses. Where it did, the device was slow and
            // not the tester, which had frames to give; those that came too late are as good as lost on a wire without.
            let refused: u64 = Side::BOTH.into_iter().map(|side| outcome.direction(side).retries).sum();
            if refused > 0 {
                return Verdict::Fail(outcome.missing_share());
            }
            let over = outcome.took.saturating_sub(outcome.planned);
            if outcome.longest_stall >= over {
                return Verdict::Disturbed(format!(
                    "the tester stood still for {:.0} us and did not make up for it",
                    outcome.longest_stall.as_secs_f64() * 1e6
                ));
            }
            return Verdict::TesterLimit(format!(
                "sending took {:.6} s instead of {:.6} s",
                outcome.took.as_secs_f64(),
                outcome.planned.as_secs_f64()
            ));
        }
        let most = trial.most_stall.map_or_else(
            || {
                let planned = outcome.planned.as_secs_f64().max(1e-9);
                let requested =
                    Side::BOTH.map(|s| outcome.direction(s).requested).into_iter().max().unwrap_or(0);
                f64::from(smallest_ring) * planned / requested.max(1) as f64
            },
            |stall| stall.as_secs_f64(),
        );
        let stalled = outcome.longest_stall.as_secs_f64();
        let loss = outcome.loss();
        let complete = Side::BOTH.into_iter().all(|side| {
            let c = outcome.direction(side);
            c.received == c.requested
        });
        if complete {
            return Verdict::Pass;
        }
        if stalled > most {
            return Verdict::Disturbed(format!("the tester stood still for {:.0} us", stalled * 1e6));
        }
        if outcome.stolen > MOST_STOLEN {
            return Verdict::Disturbed(format!(
                "the hypervisor took {:.1} % of the time",
                outcome.stolen * 100.0
            ));
        }
        Verdict::Fail(loss)
    }

    /// Whether the rate was carried without loss.
    pub fn passed(&self) -> bool {
        *self == Verdict::Pass
    }
}

/// Why a result should be read with care: the report's badges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// The tester, not the device, sets the figure: "at least".
    TesterBound,
    /// Trials were disturbed more often than they could be tried again.
    Disturbed,
    /// There is no figure: others had the processors, each time it was tried.
    Refused,
    /// Some trials were invalid.
    Invalid,
    /// The wire has no speed of its own.
    VirtualLink,
    /// Fewer runs than the RFC asks for.
    FewRuns,
    /// Trials shorter than the RFC asks for.
    ShortTrials,
    /// Tester and device share a processor.
    SharedCore,
    /// The search reached its upper end.
    Ceiling,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{CoreUse, Counts, OtherProcess, Processors, StreamOutcome};

    fn outcome(requested: u64, received: u64) -> Outcome {
        let counts = Counts { requested, sent: requested, received, ..Counts::default() };
        let stream =
            StreamOutcome { from: Some(Side::Left), expected: true, counts, ..StreamOutcome::default() };
        let second = Duration::from_secs(1);
        Outcome { streams: vec![stream], took: second, planned: second, ..Outcome::default() }
    }

    fn trial() -> Trial {
        Trial::new(1, Vec::new(), Duration::from_secs(1))
    }

    #[test]
    fn a_lost_frame_fails_and_none_passes() {
        assert_eq!(Verdict::of(&trial(), &outcome(1000, 1000), 256), Verdict::Pass);
        assert_eq!(Verdict::of(&trial(), &outcome(1000, 990), 256), Verdict::Fail(0.01));
    }

    #[test]
    fn what_the_tester_lost_is_not_the_devices() {
        let mut lost = outcome(1000, 990);
        lost.ports[1].lost_receiving = 10;
        assert!(matches!(Verdict::of(&trial(), &lost, 256), Verdict::Invalid(_)));
    }

    #[test]
    fn a_slow_tester_is_no_slow_device() {
        let mut slow = outcome(1000, 1000);
        slow.took = Duration::from_micros(1_000_011);
        assert!(matches!(Verdict::of(&trial(), &slow, 256), Verdict::TesterLimit(_)));
        slow.longest_stall = Duration::from_micros(11);
        assert!(matches!(Verdict::of(&trial(), &slow, 256), Verdict::Disturbed(_)));
        slow.took = Duration::from_micros(1_000_010);
        assert_eq!(Verdict::of(&trial(), &slow, 256), Verdict::Pass);
    }

    #[test]
    fn a_device_that_takes_no_more_is_slow_and_not_the_tester() {
        let mut slow = outcome(1000, 1000);
        slow.took = Duration::from_secs(2);
        slow.streams[0].counts.retries = 7;
        assert_eq!(Verdict::of(&trial(), &slow, 256), Verdict::Fail(0.5));
    }

    #[test]
    fn frames_that_were_refused_until_the_time_was_over_are_missing() {
        // 1,000 were due; 600 were taken, in twice the time: 300 arrived in time.
        let mut slow = outcome(1000, 600);
        slow.streams[0].counts.sent = 600;
        slow.took = Duration::from_secs(2);
        slow.streams[0].counts.retries = 7;
        assert_eq!(Verdict::of(&trial(), &slow, 256), Verdict::Fail(0.7));
        assert_eq!(
            (slow.missing(), slow.missing_from(Side::Left), slow.missing_from(Side::Right)),
            (700, 700, 0)
        );
    }

    fn beside_others(others: f64, waited: Option<f64>) -> Outcome {
        let core = CoreUse { core: 0, others, waited, thread: "shoal (7)".into() };
        let spin = OtherProcess { pid: 9, name: "spin".into(), share: others };
        let processors = Processors { cores: vec![core], others: vec![spin], ..Processors::default() };
        Outcome { processors: Some(processors), ..outcome(1000, 1000) }
    }

    #[test]
    fn a_trial_beside_others_is_disturbed_and_names_them() {
        let Verdict::Disturbed(why) = Verdict::of(&trial(), &beside_others(0.5, Some(0.4)), 256) else {
            panic!("not disturbed")
        };
        assert!(why.contains("spin (9) 50 %") && why.contains("shoal (7) waited 40 %"), "{why}");
        let mut refused = beside_others(0.5, Some(0.4));
        refused.took = Duration::from_secs(2);
        refused.streams[0].counts.retries = 7;
        (refused.ports[0].lost_receiving, refused.ports[0].stale) = (3, 3);
        assert!(matches!(Verdict::of(&trial(), &refused, 256), Verdict::Disturbed(_)));
    }

    #[test]
    fn a_trial_beside_others_that_took_nothing_from_it_counts() {
        for (others, waited) in [(0.5, Some(0.02)), (0.02, Some(0.5)), (0.02, None)] {
            assert_eq!(Verdict::of(&trial(), &beside_others(others, waited), 256), Verdict::Pass);
        }
        let lenient = Trial { most_taken: 1.0, ..trial() };
        assert_eq!(Verdict::of(&lenient, &beside_others(1.0, Some(1.0)), 256), Verdict::Pass);
        // What is wrong is wrong beside others, too.
        let mut corrupt = beside_others(0.5, Some(0.5));
        corrupt.streams[0].counts.corrupt = 1;
        assert!(matches!(Verdict::of(&trial(), &corrupt, 256), Verdict::Invalid(_)));
    }

    #[test]
    fn what_the_tester_lost_matters_unless_it_is_too_little_to_count() {
        let mut lost = outcome(1_000_000, 999_950);
        lost.ports[1].lost_receiving = 3;
        assert!(matches!(Verdict::of(&trial(), &lost, 1024), Verdict::Invalid(_)));
        let lenient = Trial { own_loss: 1e-4, ..trial() };
        assert!(matches!(Verdict::of(&lenient, &lost, 1024), Verdict::Fail(_)));
        let strict = Trial { own_loss: 1e-5, ..trial() };
        assert!(matches!(Verdict::of(&strict, &lost, 1024), Verdict::Invalid(_)));
    }

    #[test]
    fn a_stall_that_could_fill_the_ring_disturbs_only_where_frames_are_missing() {
        let mut stalled = outcome(1_000_000, 999_999);
        stalled.longest_stall = Duration::from_micros(300);
        assert!(matches!(Verdict::of(&trial(), &stalled, 256), Verdict::Disturbed(_)));
        assert!(matches!(Verdict::of(&trial(), &stalled, 1024), Verdict::Fail(_)));
        stalled.streams[0].counts.received = 1_000_000;
        assert_eq!(Verdict::of(&trial(), &stalled, 256), Verdict::Pass);
    }
}
