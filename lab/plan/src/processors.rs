//! Who had the processors while a trial ran.

use std::fmt::Write as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The share of a trial's time for which others may take a processor from tester or device, unless a user says otherwise: 2 %.
/// Less is what a quiet system does by itself; more moves a rate by more than the presets' precision.
pub const MOST_TAKEN: f64 = 0.02;

/// The share of one processor's time that the hypervisor may take before a trial with losses is disturbed: 1 %.
pub const MOST_STOLEN: f64 = 0.01;

/// Processes that a sentence names: those that used most.
const NAMED: usize = 5;

/// Who had the processors that tester and device run on, while a trial ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Processors {
    /// How long was looked: the trial with its waits.
    pub window: Duration,
    /// Each processor that tester or device run on.
    pub cores: Vec<CoreUse>,
    /// The other processes that used most, the greediest first.
    pub others: Vec<OtherProcess>,
    /// How often a thread of tester or device was taken off its processor although it wanted to go on.
    pub preempted: u64,
    /// The share of the time in which any thread of the system waited for a processor (PSI); none where the kernel does not
    /// say.
    pub pressure: Option<f64>,
}

/// One processor while a trial ran. Shares are of the window, 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreUse {
    /// Its number.
    pub core: usize,
    /// What processes used that belong neither to the tester nor to the device.
    pub others: f64,
    /// How long the tester's or the device's thread that waited most was ready to run here and did not; none where the kernel
    /// does not say.
    pub waited: Option<f64>,
    /// That thread: `shoal_wk_0 (1234)`.
    pub thread: String,
}

impl CoreUse {
    /// What others took: no more than they used, and no more than was waited for. Tester and device that wait for each other
    /// are not disturbed, and neither is a tester that sleeps while others use its processor.
    pub fn taken(&self) -> f64 {
        self.waited.map_or(self.others, |waited| waited.min(self.others))
    }
}

/// Another process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherProcess {
    /// Its id.
    pub pid: u32,
    /// Its name, as the kernel has it.
    pub name: String,
    /// What it and its ended children used, as a share of one processor: above 1 if it has several.
    pub share: f64,
}

impl Processors {
    /// The processor of which others took most.
    pub fn worst(&self) -> Option<&CoreUse> {
        self.cores.iter().max_by(|a, b| a.taken().total_cmp(&b.taken()))
    }

    /// The share of the time for which others took a processor from tester or device.
    pub fn taken(&self) -> f64 {
        self.worst().map_or(0.0, CoreUse::taken)
    }

    /// In words: which processes took which share of which thread's processor.
    pub fn words(&self) -> String {
        let Some(worst) = self.worst() else { return "nothing is known of the processors".into() };
        let percent = |share: f64| {
            let digits = usize::from(share < 0.1);
            format!("{:.digits$} %", share * 100.0)
        };
        let mut words = format!("others used {} of processor {}", percent(worst.others), worst.core);
        if let Some(waited) = worst.waited {
            let _ = write!(words, ", for which {} waited {} of the time", worst.thread, percent(waited));
        }
        let _ = write!(words, ": {}", self.named());
        words
    }

    /// `stress (77) 98 %, cc1 (99) 12 %`, as shares of one processor.
    pub fn named(&self) -> String {
        if self.others.is_empty() {
            return "processes that cannot be seen from here (of another container, or that ended meanwhile)"
                .into();
        }
        let named = self.others.iter().take(NAMED);
        let named: Vec<String> =
            named.map(|o| format!("{} ({}) {:.0} %", o.name, o.pid, o.share * 100.0)).collect();
        named.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(core: usize, others: f64, waited: Option<f64>) -> CoreUse {
        CoreUse { core, others, waited, thread: format!("thread ({core})") }
    }

    #[test]
    fn taken_is_what_others_used_and_was_waited_for() {
        assert!((core(0, 0.6, Some(0.5)).taken() - 0.5).abs() < 1e-12);
        // Tester and device waited for each other.
        assert!((core(0, 0.01, Some(0.5)).taken() - 0.01).abs() < 1e-12);
        // Others used what was left over.
        assert!(core(0, 0.6, Some(0.0)).taken().abs() < 1e-12);
        assert!((core(0, 0.6, None).taken() - 0.6).abs() < 1e-12);
    }

    #[test]
    fn the_worst_processor_counts_and_who_used_most_is_named() {
        let others = [("spin", 7, 0.9), ("cc1", 8, 0.2)].map(|(name, pid, share)| OtherProcess {
            pid,
            name: name.into(),
            share,
        });
        let cores = vec![core(0, 0.9, Some(0.7)), core(1, 0.2, Some(0.01))];
        let processors = Processors { cores, others: others.into(), ..Processors::default() };
        assert!((processors.taken() - 0.7).abs() < 1e-12);
        assert_eq!(
            processors.words(),
            "others used 90 % of processor 0, for which thread (0) waited 70 % of the time: spin (7) 90 %, cc1 (8) 20 %"
        );
    }

    #[test]
    fn small_shares_are_told_so_that_they_can_be_compared_with_the_limit() {
        let processors = Processors { cores: vec![core(0, 0.5, Some(0.023))], ..Processors::default() };
        assert!(processors.words().contains("used 50 % of processor 0, for which thread (0) waited 2.3 %"));
    }

    #[test]
    fn what_cannot_be_seen_is_said_to_be_so() {
        let processors = Processors { cores: vec![core(0, 0.5, Some(0.5))], ..Processors::default() };
        assert!(processors.words().contains("cannot be seen"), "{}", processors.words());
        assert!(Processors::default().taken().abs() < 1e-12);
    }
}
