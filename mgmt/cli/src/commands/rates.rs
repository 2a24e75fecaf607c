//! Rates over the last ten seconds, for `show runtime`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use shoal_graph::clock::Time;
use shoal_graph::{Graph, NodeIndex, NodeKind};
use shoal_module::{Control, InitError};

/// Seconds between two samples.
pub(super) const PERIOD: u64 = 10;

/// What one thread's loop has done so far.
#[derive(Clone, Copy, Default)]
struct Totals {
    vectors: u64,
    calls: u64,
    loops: u64,
}

/// What one thread's loop did per second or call.
#[derive(Clone, Copy, Default)]
pub(super) struct Rate {
    /// Packets per call of an internal node.
    pub vector_rate: f64,
    /// Rounds of the loop per second.
    pub loops_per_second: f64,
}

/// A sample of all threads' totals every ten seconds.
pub struct Rates {
    cleared: Cell<Time>,
    taken: Cell<Time>,
    totals: RefCell<BTreeMap<usize, Totals>>,
    latest: RefCell<BTreeMap<usize, Rate>>,
}

fn totals(graph: &Graph) -> BTreeMap<usize, Totals> {
    let mut internal: Vec<NodeIndex> = Vec::new();
    graph.each_node(|index, name, kind| {
        if matches!(kind, NodeKind::Internal | NodeKind::Superpath) && !name.ends_with("-tx") {
            internal.push(index);
        }
    });
    let c = graph.graph_counters();
    let of = |thread: usize, loops: u64| {
        let sum = |counter: &shoal_graph::counter::Simple| {
            internal.iter().map(|n| counter.get(thread, n.number() as usize)).sum()
        };
        Totals { vectors: sum(&c.vectors), calls: sum(&c.calls), loops }
    };
    graph.threads().iter().map(|t| (t.index, of(t.index, t.load().loops))).collect()
}

fn rate(new: Totals, old: Totals, seconds: f64) -> Rate {
    let ratio = |a: u64, b: f64| if b > 0.0 { a as f64 / b } else { 0.0 };
    Rate {
        vector_rate: ratio(
            new.vectors.saturating_sub(old.vectors),
            new.calls.saturating_sub(old.calls) as f64,
        ),
        loops_per_second: ratio(new.loops.saturating_sub(old.loops), seconds),
    }
}

impl Rates {
    /// Counts from now on.
    pub fn new(now: Time) -> Self {
        Rates {
            cleared: Cell::new(now),
            taken: Cell::new(now),
            totals: RefCell::default(),
            latest: RefCell::default(),
        }
    }

    /// When counters were last cleared.
    pub(super) fn cleared(&self) -> Time {
        self.cleared.get()
    }

    /// The counters start from zero now.
    pub(super) fn clear(&self, graph: &Graph) {
        let now = graph.clock().now();
        self.cleared.set(now);
        self.taken.set(now);
        // Rounds of the loop are never reset.
        *self.totals.borrow_mut() = totals(graph);
        self.latest.borrow_mut().clear();
    }

    fn sample(&self, graph: &Graph) {
        let now = graph.clock().now();
        let seconds = now.since(self.taken.get()).as_secs_f64();
        let new = totals(graph);
        let old = self.totals.borrow();
        let of = |(thread, new): (&usize, &Totals)| {
            (*thread, rate(*new, old.get(thread).copied().unwrap_or_default(), seconds))
        };
        *self.latest.borrow_mut() = new.iter().map(of).collect();
        drop(old);
        *self.totals.borrow_mut() = new;
        self.taken.set(now);
    }

    /// A thread's rate over the last full ten seconds; before there were any, since the last clear.
    pub(super) fn of(&self, graph: &Graph, thread: usize) -> Rate {
        if let Some(rate) = self.latest.borrow().get(&thread) {
            return *rate;
        }
        let seconds = graph.clock().now().since(self.taken.get()).as_secs_f64();
        let old = self.totals.borrow().get(&thread).copied().unwrap_or_default();
        totals(graph).get(&thread).map(|new| rate(*new, old, seconds)).unwrap_or_default()
    }
}

/// Starts taking samples.
pub(super) fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let (graph, rates, processes) = (control.graph()?, control.get::<Rates>()?, control.processes()?);
    let sleeper = processes.as_ref().clone();
    processes.spawn("runtime-rates", async move {
        loop {
            sleeper.sleep(Duration::from_secs(PERIOD)).await;
            rates.sample(&graph);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;
    use super::*;

    #[test]
    fn rates_are_those_of_the_last_period() {
        let router = Router::new();
        start(&router.control).unwrap();
        router.pass(0);
        router.packets(30);
        router.pass(PERIOD);
        let rates = router.control.get::<Rates>().unwrap();
        let rate = rates.of(&router.graph(), 0);
        assert!((rate.vector_rate - 1.0).abs() < 1e-9, "one packet a call");
        assert!(rate.loops_per_second >= 3.0);
        router.pass(PERIOD);
        assert!(rates.of(&router.graph(), 0).vector_rate.abs() < 1e-9, "nothing came since");
    }
}
