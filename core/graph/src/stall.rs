//! Which threads move and which are stuck.
//!
//! A thread moves when it finishes a round of its loop, and with it passes its quiescent point; one that sleeps until
//! it is woken is well, too. [`ThreadList`] is the list of threads as any thread may read it, [`StallMonitor`] compares two looks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::thread::ThreadShared;

/// A thread that has not moved for so long is stuck.
pub const STUCK_AFTER: Duration = Duration::from_secs(1);

/// The threads there are. Its lock is held for as long as it takes to copy or change a short list, so that a thread
/// that watches others never waits for one that is stuck.
#[derive(Default)]
pub struct ThreadList(Mutex<Vec<Arc<ThreadShared>>>);

impl ThreadList {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<ThreadShared>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them: the main thread first, workers as they came.
    pub fn threads(&self) -> Vec<Arc<ThreadShared>> {
        self.lock().clone()
    }

    pub(crate) fn enter(&self, thread: Arc<ThreadShared>) {
        self.lock().push(thread);
    }

    pub(crate) fn leave(&self, index: usize) {
        self.lock().retain(|thread| thread.index != index);
    }
}

/// What has changed between two looks at a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has not moved for so long: told once.
    Stuck(Duration),
    /// It moves again, after so long.
    Moves(Duration),
}

/// What was seen of one thread.
struct ThreadSample {
    /// Which one: another may have its number later.
    thread: Arc<ThreadShared>,
    loops: u64,
    moved: Instant,
    stuck: bool,
}

/// Looks at threads again and again.
#[derive(Default)]
pub struct StallMonitor {
    seen: BTreeMap<usize, ThreadSample>,
}

impl StallMonitor {
    /// Looks at all threads, and tells what has changed since the last look. Marks those that are stuck, so that
    /// writers of tables do not wait for them.
    pub fn look(&mut self, now: Instant, threads: &[Arc<ThreadShared>]) -> Vec<(Arc<ThreadShared>, Change)> {
        self.seen.retain(|_, seen| threads.iter().any(|t| Arc::ptr_eq(t, &seen.thread)));
        threads.iter().filter_map(|t| self.look_at(now, t).map(|change| (Arc::clone(t), change))).collect()
    }

    fn look_at(&mut self, now: Instant, thread: &Arc<ThreadShared>) -> Option<Change> {
        let loops = thread.load().loops;
        let seen = self.seen.entry(thread.index).or_insert_with(|| ThreadSample {
            thread: Arc::clone(thread),
            loops,
            moved: now,
            stuck: false,
        });
        let still = now.saturating_duration_since(seen.moved);
        if loops != seen.loops || thread.is_asleep() {
            (seen.loops, seen.moved) = (loops, now);
            return std::mem::take(&mut seen.stuck).then_some(Change::Moves(still));
        }
        if seen.stuck || still < STUCK_AFTER {
            return None;
        }
        seen.stuck = true;
        thread.mark_stuck(loops, still);
        Some(Change::Stuck(still))
    }

    /// Whether a thread was stuck at the last look.
    pub fn is_any_stuck(&self) -> bool {
        self.seen.values().any(|seen| seen.stuck)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::Load;

    fn thread(index: usize) -> Arc<ThreadShared> {
        ThreadShared::new(index, format!("t{index}")).unwrap()
    }

    fn round(thread: &ThreadShared) {
        thread.work().add(Load { loops: 1, ..Load::default() });
    }

    #[test]
    fn a_stall_is_told_once_and_its_end_with_its_length() {
        let (threads, mut pulse, begun) = ([thread(0), thread(1)], StallMonitor::default(), Instant::now());
        let at = |pulse: &mut StallMonitor, ms: u64| {
            round(&threads[0]);
            let changes = pulse.look(begun + Duration::from_millis(ms), &threads);
            changes.into_iter().map(|(t, change)| (t.index, change)).collect::<Vec<_>>()
        };
        assert_eq!(at(&mut pulse, 0), []);
        assert_eq!(at(&mut pulse, 900), []);
        assert!(!pulse.is_any_stuck());
        assert_eq!(at(&mut pulse, 1100), [(1, Change::Stuck(Duration::from_millis(1100)))]);
        assert_eq!(at(&mut pulse, 5000), [], "told once");
        assert!(pulse.is_any_stuck() && threads[1].stuck_for().is_some());
        assert!(threads[0].stuck_for().is_none());
        round(&threads[1]);
        assert!(threads[1].stuck_for().is_none(), "known at once, before the next look");
        assert_eq!(at(&mut pulse, 6000), [(1, Change::Moves(Duration::from_secs(6)))]);
        assert!(!pulse.is_any_stuck());
        assert_eq!(at(&mut pulse, 7500).len(), 1, "a second stall is told, too");
    }

    #[test]
    fn a_thread_that_sleeps_is_not_stuck_and_one_that_came_in_the_place_of_another_begins_afresh() {
        let (mut pulse, begun) = (StallMonitor::default(), Instant::now());
        let at = |s: u64| begun + Duration::from_secs(s);
        let sleeper = thread(1);
        sleeper.set_asleep(true);
        let threads = [sleeper];
        assert!(pulse.look(at(0), &threads).is_empty() && pulse.look(at(100), &threads).is_empty());
        threads[0].set_asleep(false);
        assert!(pulse.look(at(100), &threads).is_empty(), "its time begins when it wakes");
        assert_eq!(pulse.look(at(102), &threads).len(), 1);
        let other = [thread(1)];
        assert!(pulse.look(at(103), &other).is_empty() && !pulse.is_any_stuck());
    }
}
