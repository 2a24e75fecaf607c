//! The control plane: which interfaces are spread over which workers. The only code that writes the table.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use shoal_graph::{FeatureSpec, FrameNode, Graph, RingInfo};
use shoal_infra::{TwinTable, TwinTableWriter};
use shoal_interface::{DEVICE_INPUT_ARC, Event, Interfaces, SwIfIndex};
use shoal_module::{Control, InitError};
use shoal_wire::hash::Symmetry;

use crate::HandoffError;
use crate::node::worker_handoff::WorkerHandoff;
use crate::spread::Spread;

/// Most interfaces, as many as there can be.
const MAX_INTERFACES: usize = 1 << 16;

/// An interface whose packets are spread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnInterface {
    /// The interface.
    pub interface: SwIfIndex,
    /// The workers, counted from 0.
    pub workers: Vec<u32>,
    /// Whether both directions of a flow go to one worker.
    pub symmetry: Symmetry,
}

/// Which interfaces are spread over which workers.
pub struct Handoff {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    writer: RefCell<TwinTableWriter<Spread>>,
    all: RefCell<BTreeMap<SwIfIndex, Spread>>,
}

impl Handoff {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let graph = control.graph()?;
        let interfaces = control.get::<Interfaces>()?;
        let (spreads, writer) = TwinTable::with_capacity(MAX_INTERFACES)?;
        // Not known outside, so that nobody can choose packets that all go to one worker.
        let seed = RandomState::new().hash_one(0);
        graph.add_frame(WorkerHandoff { interfaces: interfaces.table(), spreads, seed })?;
        graph.add_feature(FeatureSpec {
            arc: DEVICE_INPUT_ARC,
            node: WorkerHandoff::NAME,
            before: &[],
            after: &[],
        });
        let handoff = Rc::new(Handoff {
            graph,
            interfaces: Rc::clone(&interfaces),
            writer: RefCell::new(writer),
            all: RefCell::default(),
        });
        let weak = Rc::downgrade(&handoff);
        interfaces.subscribe(move |_, event| {
            if let (Event::Deleting(index), Some(handoff)) = (event, weak.upgrade())
                && handoff.all.borrow().contains_key(&index)
                && let Err(e) = handoff.disable(index)
            {
                tracing::warn!(sw_if_index = index.0, "worker handoff stays: {e}");
            }
        });
        Ok(handoff)
    }

    /// Spreads the packets that come in by an interface over workers, counted from 0. What was said before is
    /// replaced; packets on their way stay where they are.
    ///
    /// # Errors
    /// There is no such interface or worker, or no worker was named; nothing is changed then.
    pub fn enable(
        &self,
        interface: SwIfIndex,
        workers: &[u32],
        symmetry: Symmetry,
    ) -> Result<(), HandoffError> {
        self.interfaces.name(interface)?;
        let there = self.workers();
        if workers.is_empty() {
            return Err(HandoffError::Empty);
        }
        for wanted in workers {
            if !there.contains(wanted) {
                return Err(no_worker(*wanted, &there));
            }
        }
        let spread = Spread::new(workers.iter().map(|w| *w as usize + 1), symmetry);
        self.store(interface, spread)?;
        self.interfaces.enable_feature(DEVICE_INPUT_ARC, WorkerHandoff::NAME, interface, true)?;
        self.all.borrow_mut().insert(interface, spread);
        Ok(())
    }

    /// Leaves an interface's packets on the threads of its queues again.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn disable(&self, interface: SwIfIndex) -> Result<(), HandoffError> {
        self.interfaces.name(interface)?;
        self.interfaces.enable_feature(DEVICE_INPUT_ARC, WorkerHandoff::NAME, interface, false)?;
        self.store(interface, Spread::new([], Symmetry::Directed))?;
        self.all.borrow_mut().remove(&interface);
        Ok(())
    }

    fn store(&self, interface: SwIfIndex, spread: Spread) -> Result<(), HandoffError> {
        let stored = self.writer.borrow_mut().store(interface.0 as usize, spread);
        stored.map_err(|e| HandoffError::Table(e.to_string()))
    }

    /// The workers there are, counted from 0.
    pub fn workers(&self) -> Vec<u32> {
        self.graph.threads().iter().filter_map(|t| t.index.checked_sub(1)).map(|w| w as u32).collect()
    }

    /// The interfaces whose packets are spread, by index. A worker that was ended since is still named; packets
    /// for it stay on the thread they came in on.
    pub fn interfaces(&self) -> Vec<OnInterface> {
        let of = |(interface, spread): (&SwIfIndex, &Spread)| OnInterface {
            interface: *interface,
            workers: spread
                .threads()
                .into_iter()
                .filter_map(|t| t.checked_sub(1))
                .map(|w| w as u32)
                .collect(),
            symmetry: spread.symmetry(),
        };
        self.all.borrow().iter().map(of).collect()
    }

    /// The rings between all threads.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn rings(&self) -> Result<Vec<RingInfo>, shoal_graph::GraphError> {
        self.graph.handoff_rings()
    }
}

fn no_worker(wanted: u32, there: &[u32]) -> HandoffError {
    let Some(nearest) = there.iter().copied().min_by_key(|w| w.abs_diff(wanted)) else {
        return HandoffError::NoWorkers;
    };
    let list: Vec<String> = there.iter().map(u32::to_string).collect();
    HandoffError::NoWorker { wanted, there: list.join(", "), nearest }
}
