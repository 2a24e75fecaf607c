//! Windows: how long a scenario is measured, and which windows count.
//!
//! A window is cut into slices. A slice during which the kernel ran something else on our processor is left out, and
//! so is the next one, which fills the caches again: a busy machine costs time and not truth. Before and after each window the control loop runs; a window
//! between two runs of which one was slow is disturbed, and so is one in which the hypervisor took the processor
//! away.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

use crate::control_loop::Pace;
use crate::machine;
use crate::work::{Count, Work};

/// How much slower than at its best the control loop may be around a window.
const TOLERANCE: f64 = 1.05;
/// How many times its length a window may take when it is interrupted.
const LONGEST: u32 = 4;
/// What share of its slices a window may lose.
const MOST_LEFT_OUT: f64 = 0.9;

/// One window.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// What each node did in the slices that count.
    pub nodes: Vec<Count>,
    pub packets: u64,
    /// Slices that count, and those that were interrupted or came right after one that was.
    pub slices: usize,
    pub left_out: usize,
    /// The control loop, the slower of before and after.
    pub control: Pace,
    /// Time the hypervisor took away, in the kernel's ticks.
    pub steal: u64,
}

/// Why a window does not count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Disturbance {
    Control,
    Steal,
    Interrupted,
}

impl Disturbance {
    pub fn name(self) -> &'static str {
        match self {
            Disturbance::Control => "control loop slow",
            Disturbance::Steal => "stolen time",
            Disturbance::Interrupted => "interrupted",
        }
    }
}

impl Window {
    /// Clocks per packet of one node.
    pub fn clocks(&self, node: usize) -> f64 {
        self.nodes.get(node).map_or(0.0, |n| n.clocks as f64 / self.packets.max(1) as f64)
    }

    /// Clocks per packet of the path: all nodes but the first, which makes the packets.
    pub fn path(&self) -> f64 {
        (1..self.nodes.len()).map(|n| self.clocks(n)).sum()
    }

    /// What is wrong with it, when the control loop takes `best` at its best.
    pub fn disturbance(&self, best: Pace) -> Option<Disturbance> {
        let left_out = self.left_out as f64 / (self.slices + self.left_out).max(1) as f64;
        if self.packets == 0 || left_out > MOST_LEFT_OUT {
            Some(Disturbance::Interrupted)
        } else if self.steal > 0 {
            Some(Disturbance::Steal)
        } else if self.control.slower_than(best) > TOLERANCE {
            Some(Disturbance::Control)
        } else {
            None
        }
    }
}

/// The result of all windows together.
pub struct Measured {
    /// Those that count. If all were disturbed, all of them.
    pub windows: Vec<Window>,
    /// Why others do not count.
    pub dropped: Vec<Disturbance>,
    /// Whether no window was undisturbed.
    pub disturbed: bool,
    /// The control loop at its best.
    pub control: Pace,
}

/// Runs windows until `wanted` of them are undisturbed, but no more than three times as many.
pub fn measure(work: &mut dyn Work, cpu: usize, wanted: usize, long: Duration) -> Measured {
    let nodes = work.nodes().len();
    let mut all: Vec<Window> = Vec::new();
    let mut best = Pace::now();
    loop {
        let window = run(work, cpu, nodes, long);
        best = best.min(window.control);
        all.push(window);
        let good = all.iter().filter(|w| w.disturbance(best).is_none()).count();
        if good >= wanted || all.len() >= 3 * wanted {
            return sort_out(all, best);
        }
    }
}

fn sort_out(all: Vec<Window>, best: Pace) -> Measured {
    let dropped: Vec<Disturbance> = all.iter().filter_map(|w| w.disturbance(best)).collect();
    let disturbed = dropped.len() == all.len();
    let windows = all.into_iter().filter(|w| disturbed || w.disturbance(best).is_none()).collect();
    Measured { windows, dropped, disturbed, control: best }
}

fn run(work: &mut dyn Work, cpu: usize, nodes: usize, long: Duration) -> Window {
    let mut window = Window { nodes: vec![Count::default(); nodes], ..Window::default() };
    let mut counts = vec![Count::default(); nodes];
    let steal = machine::steal(Some(cpu));
    let before = Pace::now();
    let start = Instant::now();
    let mut switches = involuntary_switches();
    let (mut ran, mut cold) = (Duration::ZERO, true);
    while ran < long && start.elapsed() < long * LONGEST {
        let begin = Instant::now();
        let packets = work.slice(&mut counts);
        let took = begin.elapsed();
        let now = involuntary_switches();
        let interrupted = now != switches;
        if !interrupted && !cold {
            ran += took;
            window.nodes.iter_mut().zip(&counts).for_each(|(sum, more)| sum.add(*more));
            window.packets += packets;
            window.slices += 1;
        } else {
            window.left_out += 1;
        }
        (switches, cold) = (now, interrupted);
    }
    window.control = before.max(Pace::now());
    window.steal = machine::steal(Some(cpu)).saturating_sub(steal);
    window
}

/// How often the kernel took the processor away from this thread.
fn involuntary_switches() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.involuntary_context_switches())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEST: Pace = Pace { chain: 1.0, wide: 1.0 };

    fn window(clocks: u64, control: f64, steal: u64) -> Window {
        let control = Pace { chain: 1.0, wide: control };
        let count = |clocks| Count { calls: 1, vectors: 10, clocks };
        let nodes = vec![count(1000), count(clocks), count(20)];
        Window { nodes, packets: 10, slices: 1, left_out: 0, control, steal }
    }

    #[test]
    fn the_path_is_all_nodes_but_generation() {
        let window = window(30, 1.0, 0);
        assert_eq!((window.clocks(0), window.clocks(1), window.path()), (100.0, 3.0, 5.0));
    }

    #[test]
    fn disturbed_windows_are_dropped_and_named() {
        let measured = sort_out(vec![window(30, 1.0, 0), window(90, 1.2, 0), window(90, 1.0, 3)], BEST);
        assert_eq!(measured.windows.len(), 1);
        assert_eq!(measured.dropped, [Disturbance::Control, Disturbance::Steal]);
        assert!(!measured.disturbed);
    }

    #[test]
    fn when_all_windows_are_disturbed_all_count_and_it_is_said() {
        let measured = sort_out(vec![window(30, 1.2, 0), window(90, 1.3, 0)], BEST);
        assert_eq!((measured.windows.len(), measured.dropped.len(), measured.disturbed), (2, 2, true));
    }

    #[test]
    fn a_window_of_which_nearly_nothing_is_left_does_not_count() {
        let mut window = window(30, 1.0, 0);
        window.left_out = 19;
        assert_eq!(window.disturbance(BEST), Some(Disturbance::Interrupted));
    }

    /// Makes ten packets in each slice, at a clock each.
    struct Steady;

    impl Work for Steady {
        fn nodes(&self) -> Vec<String> {
            vec!["made".into(), "used".into()]
        }

        fn slice(&mut self, counts: &mut [Count]) -> u64 {
            counts.fill(Count { calls: 1, vectors: 10, clocks: 10 });
            10
        }

        fn exclude_generation(&mut self, _: std::sync::Arc<crate::meter::Meter>) -> crate::Result<()> {
            Ok(())
        }

        fn verify(&self) -> crate::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn measuring_ends_on_any_machine() {
        let measured = measure(&mut Steady, 0, 3, Duration::from_millis(2));
        assert!((1..=9).contains(&measured.windows.len()));
        let mut clocks = measured.windows.iter().filter(|w| w.packets > 0).map(Window::path);
        assert!(clocks.all(|c| (c - 1.0).abs() < 1e-9));
    }
}
