//! One bundle at a time: started, stopped, read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use shoal_graph::clock::Time;
use shoal_graph::{Graph, GraphError, ObservationId};

use crate::bundle::{BUNDLES, Bundle};
use crate::counters::{Counters, Kind, Values, between};
use crate::nodes::{Counting, NodeRow, Rows};

/// Why counting was not begun or ended as asked.
#[derive(Debug, thiserror::Error)]
pub enum PerfmonError {
    /// It counts already.
    #[error("perfmon is already running")]
    Runs,
    /// It does not count.
    #[error("perfmon is not running")]
    Idle,
    /// Nothing was counted yet.
    #[error("no bundle was counted: `perfmon start bundle NAME' first")]
    Nothing,
    /// The machine has no such counters.
    #[error("bundle `{bundle}': this machine does not count that: {error}; it does: {there}")]
    Counters {
        /// The bundle.
        bundle: &'static str,
        /// The system's answer.
        error: io::Error,
        /// Bundles that can be counted.
        there: String,
    },
    /// It cannot be counted so.
    #[error("bundle `{bundle}' is not counted by {kind}: {there}")]
    Kind {
        /// The bundle.
        bundle: &'static str,
        /// What was asked for.
        kind: &'static str,
        /// What is possible.
        there: String,
    },
    /// The graph refused.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// The bundle that is counted, or was counted last.
#[derive(Clone, Copy)]
pub struct Active {
    /// Which.
    pub bundle: &'static Bundle,
    /// How.
    pub kind: Kind,
    /// Whether it still counts.
    pub runs: bool,
    /// For how long it has.
    pub time: Duration,
}

/// What was counted.
pub struct Statistics {
    /// Which bundle, and how.
    pub active: Active,
    /// By thread: its name, and what was counted of it as a whole or of its nodes.
    pub threads: Vec<(String, ThreadStatistics)>,
}

/// What was counted of one thread.
pub enum ThreadStatistics {
    /// As a whole.
    Whole([u64; crate::counters::MOST]),
    /// Of its nodes that ran, by their names.
    Nodes(Vec<(String, NodeRow)>),
}

type AllRows = Arc<Mutex<BTreeMap<usize, Arc<Rows>>>>;

enum How {
    /// Of each thread that was there at the start: its number, its counters, what they read at the last reset.
    Threads(Vec<(usize, Counters, Values)>),
    /// Ended: what was counted of each thread.
    Ended(Vec<(usize, Values)>),
    /// Rows of each thread, and what fills them while it runs.
    Nodes(AllRows, Option<ObservationId>),
}

struct Run {
    bundle: &'static Bundle,
    how: How,
    since: Time,
    until: Option<Time>,
}

impl Run {
    fn kind(&self) -> Kind {
        match self.how {
            How::Nodes(..) => Kind::Node,
            How::Threads(_) | How::Ended(_) => Kind::Thread,
        }
    }
}

/// Performance counters of a router.
pub struct Perfmon {
    graph: Rc<Graph>,
    run: RefCell<Option<Run>>,
}

impl Perfmon {
    pub(crate) fn new(graph: Rc<Graph>) -> Self {
        Perfmon { graph, run: RefCell::default() }
    }

    /// Why a bundle cannot be counted on this machine, if it cannot.
    ///
    /// # Errors
    /// The system's answer.
    pub fn try_out(bundle: &'static Bundle) -> io::Result<()> {
        Counters::open(bundle, None).map(drop)
    }

    /// Begins to count; what was counted before is forgotten.
    ///
    /// # Errors
    /// It counts already, this machine has no such counters, the bundle is not counted so, or a thread does not move.
    pub fn start(&self, bundle: &'static Bundle, kind: Option<Kind>) -> Result<(), PerfmonError> {
        if self.run.borrow().as_ref().is_some_and(|run| run.until.is_none()) {
            return Err(PerfmonError::Runs);
        }
        let usual = bundle.kinds.first().copied().unwrap_or(Kind::Thread);
        let kind = kind.unwrap_or(usual);
        if !bundle.kinds.contains(&kind) {
            let there = names(bundle.kinds.iter().map(|kind| kind.name()));
            return Err(PerfmonError::Kind { bundle: bundle.name, kind: kind.name(), there });
        }
        let refused = |error| {
            let there =
                BUNDLES.iter().filter(|bundle| Self::try_out(bundle).is_ok()).map(|bundle| bundle.name);
            PerfmonError::Counters { bundle: bundle.name, error, there: names(there) }
        };
        Self::try_out(bundle).map_err(refused)?;
        let how = match kind {
            Kind::Thread => How::Threads(self.open(bundle).map_err(refused)?),
            Kind::Node => self.observe(bundle)?,
        };
        *self.run.borrow_mut() = Some(Run { bundle, how, since: self.now(), until: None });
        Ok(())
    }

    fn open(&self, bundle: &'static Bundle) -> io::Result<Vec<(usize, Counters, Values)>> {
        let open = |thread: &Arc<shoal_graph::thread::ThreadShared>| {
            let counters = match thread.lwp.load(Ordering::Relaxed) {
                0 => Counters::open(bundle, None),
                lwp => Counters::open(bundle, Some(lwp)),
            };
            Ok((thread.index, counters?, Values::default()))
        };
        self.graph.threads().iter().map(open).collect()
    }

    fn observe(&self, bundle: &'static Bundle) -> Result<How, PerfmonError> {
        let all = AllRows::default();
        let rows = Arc::clone(&all);
        let observation = self.graph.observe_nodes(Arc::new(move |thread| {
            let mut all = rows.lock().unwrap_or_else(PoisonError::into_inner);
            let rows = Arc::clone(all.entry(thread).or_default());
            Box::new(Counting::new(Counters::open(bundle, None).ok(), rows))
        }))?;
        Ok(How::Nodes(all, Some(observation)))
    }

    /// Ends counting; what was counted stays.
    ///
    /// # Errors
    /// It does not count.
    pub fn stop(&self) -> Result<(), PerfmonError> {
        let now = self.now();
        let mut run = self.run.borrow_mut();
        let run = run.as_mut().filter(|run| run.until.is_none()).ok_or(PerfmonError::Idle)?;
        run.until = Some(now);
        let ended = match &mut run.how {
            How::Threads(threads) => Some(threads.iter_mut().map(whole).collect()),
            How::Nodes(_, observation) => {
                if let Some(observation) = observation.take() {
                    self.graph.end_observation(observation);
                }
                None
            }
            How::Ended(_) => None,
        };
        if let Some(ended) = ended {
            run.how = How::Ended(ended);
        }
        Ok(())
    }

    /// Ends counting and forgets what was counted.
    pub fn reset(&self) {
        // It may have ended before.
        let _: Result<(), PerfmonError> = self.stop();
        *self.run.borrow_mut() = None;
    }

    /// Forgets what was counted so far, and goes on.
    pub fn clear(&self) {
        let now = self.now();
        if let Some(run) = self.run.borrow_mut().as_mut() {
            run.since = now;
            run.until = run.until.map(|_| now);
            match &mut run.how {
                How::Threads(all) => all.iter_mut().for_each(|(_, counters, first)| *first = counters.read()),
                How::Ended(all) => all.clear(),
                How::Nodes(all, _) => {
                    all.lock().unwrap_or_else(PoisonError::into_inner).values().for_each(|rows| rows.clear());
                }
            }
        }
    }

    /// What is counted, or was counted last.
    pub fn active(&self) -> Option<Active> {
        let now = self.now();
        let run = self.run.borrow();
        let run = run.as_ref()?;
        let time = run.until.unwrap_or(now).since(run.since);
        Some(Active { bundle: run.bundle, kind: run.kind(), runs: run.until.is_none(), time })
    }

    /// What was counted.
    ///
    /// # Errors
    /// Nothing was.
    pub fn statistics(&self) -> Result<Statistics, PerfmonError> {
        let active = self.active().ok_or(PerfmonError::Nothing)?;
        let names: BTreeMap<usize, String> =
            self.graph.threads().iter().map(|thread| (thread.index, thread.name.clone())).collect();
        let name = |index: usize| {
            let name = names.get(&index).cloned();
            name.unwrap_or_else(|| format!("thread {index}"))
        };
        let mut run = self.run.borrow_mut();
        let threads = match run.as_mut().map(|run| &mut run.how) {
            None => Vec::new(),
            Some(How::Threads(all)) => all
                .iter_mut()
                .map(whole)
                .collect::<Vec<_>>()
                .into_iter()
                .map(|(index, values)| (name(index), ThreadStatistics::Whole(values)))
                .collect(),
            Some(How::Ended(all)) => {
                all.iter().map(|(index, values)| (name(*index), ThreadStatistics::Whole(*values))).collect()
            }
            Some(How::Nodes(all, _)) => {
                let all = all.lock().unwrap_or_else(PoisonError::into_inner);
                all.iter()
                    .map(|(index, rows)| (name(*index), ThreadStatistics::Nodes(self.named(&rows.get()))))
                    .collect()
            }
        };
        Ok(Statistics { active, threads })
    }

    fn named(&self, rows: &[NodeRow]) -> Vec<(String, NodeRow)> {
        let ran = rows.iter().enumerate().filter(|(_, row)| row.calls > 0);
        ran.filter_map(|(at, row)| Some((self.graph.node_at(at)?.name.to_string(), *row))).collect()
    }

    fn now(&self) -> Time {
        self.graph.clock().now()
    }
}

fn whole((index, counters, first): &mut (usize, Counters, Values)) -> (usize, Values) {
    (*index, between(*first, counters.read()))
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}
