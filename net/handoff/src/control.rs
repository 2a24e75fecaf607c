//! The control plane: which interfaces are spread over which workers. The only code that writes the table.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::rc::{Rc, Weak};

use shoal_graph::{FeatureSpec, FrameNode, Graph, RingInfo};
use shoal_infra::{TwinTable, TwinTableWriter};
use shoal_interface::{DEVICE_INPUT_ARC, Event, Interfaces, MAX_INTERFACES, SwIfIndex};
use shoal_module::{Control, InitError};

use crate::HandoffError;
use crate::flow::{Label, Rules};
use crate::node::worker_handoff::WorkerHandoff;
use crate::spread::Spread;
use shoal_wire::hash::Symmetry;

/// Who takes an interface's packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workers {
    /// These, counted from 0. One that is ended leaves its flows to the others, and has them back when it comes again.
    These(Vec<u32>),
    /// All there are, while they are more than the interface has receive queues.
    Auto,
}

/// The default for interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultPlacement {
    /// They are spread over all workers while those are more than all receive queues together: otherwise some would
    /// have nothing to do.
    Auto,
    /// Their packets stay where they come in.
    Off,
}

/// An interface whose packets are spread, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnInterface {
    /// The interface.
    pub interface: SwIfIndex,
    /// Which workers were asked to take its packets; `None` for an interface without a setting.
    pub asked: Option<Workers>,
    /// The workers that do, counted from 0. None: packets stay where they come in.
    pub workers: Vec<u32>,
    /// What a flow is.
    pub rules: Rules,
}

/// The setting of an interface.
#[derive(Clone)]
struct InterfaceSetting {
    /// `None`: to leave it alone.
    workers: Option<Workers>,
    rules: Rules,
}

/// What an interface does now.
struct Now {
    threads: Vec<usize>,
    rules: Rules,
    spread: Spread,
}

/// Which interfaces are spread over which workers.
pub struct Handoff {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    writer: RefCell<TwinTableWriter<Spread>>,
    said: RefCell<BTreeMap<SwIfIndex, InterfaceSetting>>,
    now: RefCell<BTreeMap<SwIfIndex, Now>>,
    unsaid: Cell<DefaultPlacement>,
    unsaid_at_start: DefaultPlacement,
    /// Interfaces with queues that are being deleted: others have fewer queues to share workers with then.
    going: RefCell<BTreeSet<SwIfIndex>>,
}

impl Handoff {
    pub(crate) fn new(control: &Rc<Control>, unsaid: DefaultPlacement) -> Result<Rc<Self>, InitError> {
        let graph = control.graph()?;
        let interfaces = control.get::<Interfaces>()?;
        let (spreads, writer) = TwinTable::with_capacity(MAX_INTERFACES)?;
        // Secret, so that no sender can choose packets that all go to one worker.
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
            interfaces,
            writer: RefCell::new(writer),
            said: RefCell::default(),
            now: RefCell::default(),
            unsaid: Cell::new(unsaid),
            unsaid_at_start: unsaid,
            going: RefCell::default(),
        });
        handoff.follow();
        Ok(handoff)
    }

    /// Follows interfaces, queues and workers that come and go.
    fn follow(self: &Rc<Self>) {
        let weak = Rc::downgrade(self);
        self.interfaces.subscribe(move |_, event| {
            let Some(handoff) = weak.upgrade() else { return };
            match event {
                Event::Deleting(index) => {
                    if handoff.queues_of(index) > 0 {
                        handoff.going.borrow_mut().insert(index);
                    }
                    handoff.said.borrow_mut().remove(&index);
                    handoff.try_settle(index, &[]);
                }
                Event::Queues(_) => handoff.settle_all(),
                Event::Deleted(index) if handoff.going.borrow_mut().remove(&index) => handoff.settle_all(),
                _ => {}
            }
        });
        let weak: Weak<Self> = Rc::downgrade(self);
        self.graph.observe_workers(move || {
            if let Some(handoff) = weak.upgrade() {
                handoff.settle_all();
            }
        });
    }

    /// Spreads the packets that come in by an interface over workers. The previous setting is replaced; packets on
    /// their way stay where they are.
    ///
    /// # Errors
    /// There is no such interface or worker, no worker was named, or the rules contradict each other; nothing is
    /// changed then.
    pub fn enable(&self, interface: SwIfIndex, workers: Workers, rules: Rules) -> Result<(), HandoffError> {
        self.interfaces.name(interface)?;
        if let Workers::These(list) = &workers {
            let there = self.workers();
            if list.is_empty() {
                return Err(HandoffError::Empty);
            }
            for wanted in list {
                if !there.contains(wanted) {
                    return Err(no_worker(*wanted, &there));
                }
            }
        }
        if rules.symmetry == Symmetry::Symmetric && rules.label == Label::Counts {
            return Err(HandoffError::SymmetricLabel);
        }
        self.say(interface, InterfaceSetting { workers: Some(workers), rules })
    }

    /// Leaves an interface's packets on the threads of its queues again.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn disable(&self, interface: SwIfIndex) -> Result<(), HandoffError> {
        self.interfaces.name(interface)?;
        self.say(interface, InterfaceSetting { workers: None, rules: Rules::default() })
    }

    /// Removes the setting of an interface.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn forget(&self, interface: SwIfIndex) -> Result<(), HandoffError> {
        self.interfaces.name(interface)?;
        self.said.borrow_mut().remove(&interface);
        self.settle(interface, &self.threads_for(interface))
    }

    fn say(&self, interface: SwIfIndex, said: InterfaceSetting) -> Result<(), HandoffError> {
        let before = self.said.borrow_mut().insert(interface, said);
        let settled = self.settle(interface, &self.threads_for(interface));
        if settled.is_err() {
            let mut all = self.said.borrow_mut();
            match before {
                Some(before) => drop(all.insert(interface, before)),
                None => drop(all.remove(&interface)),
            }
        }
        settled
    }

    /// Sets the default for interfaces without a setting.
    pub fn set_unsaid(&self, unsaid: DefaultPlacement) {
        self.unsaid.set(unsaid);
        self.settle_all();
    }

    /// The default for interfaces without a setting.
    pub fn unsaid(&self) -> DefaultPlacement {
        self.unsaid.get()
    }

    /// The default from the start-up file.
    pub(crate) fn unsaid_at_start(&self) -> DefaultPlacement {
        self.unsaid_at_start
    }

    /// The settings of interfaces: the workers that take their packets, `None` for no spreading, and what a flow is.
    pub fn said(&self) -> Vec<(SwIfIndex, Option<Workers>, Rules)> {
        self.said.borrow().iter().map(|(index, said)| (*index, said.workers.clone(), said.rules)).collect()
    }

    fn queues_of(&self, interface: SwIfIndex) -> usize {
        self.interfaces.queues(interface).map_or(0, |queues| queues.len())
    }

    /// The threads that should take an interface's packets now.
    fn threads_for(&self, interface: SwIfIndex) -> Vec<usize> {
        let there: Vec<usize> = self.workers().into_iter().map(|w| w as usize + 1).collect();
        let queues = |interface| self.queues_of(interface);
        let said = self.said.borrow().get(&interface).cloned();
        match (said, self.unsaid.get()) {
            (Some(InterfaceSetting { workers: Some(Workers::These(list)), .. }), _) => {
                there.into_iter().filter(|t| list.iter().any(|w| *w as usize + 1 == *t)).collect()
            }
            (Some(InterfaceSetting { workers: Some(Workers::Auto), .. }), _)
                if queues(interface) < there.len() =>
            {
                there
            }
            (None, DefaultPlacement::Auto) if queues(interface) > 0 => {
                let all: usize = self.interfaces.indices().into_iter().map(queues).sum();
                if all < there.len() { there } else { Vec::new() }
            }
            _ => Vec::new(),
        }
    }

    fn settle_all(&self) {
        let mut all: BTreeSet<SwIfIndex> = self.said.borrow().keys().copied().collect();
        all.extend(self.now.borrow().keys());
        if self.unsaid.get() == DefaultPlacement::Auto {
            all.extend(self.interfaces.indices());
        }
        for interface in all.into_iter().filter(|i| self.interfaces.name(*i).is_ok()) {
            self.try_settle(interface, &self.threads_for(interface));
        }
    }

    fn try_settle(&self, interface: SwIfIndex, threads: &[usize]) {
        if let Err(e) = self.settle(interface, threads) {
            tracing::warn!(sw_if_index = interface.0, "worker handoff stays as it was: {e}");
        }
    }

    /// Publishes who takes an interface's packets from now on, if that is a change.
    fn settle(&self, interface: SwIfIndex, threads: &[usize]) -> Result<(), HandoffError> {
        let rules = self.said.borrow().get(&interface).map_or(Rules::default(), |said| said.rules);
        let before = match self.now.borrow().get(&interface) {
            Some(now) if now.threads == threads && now.rules == rules => return Ok(()),
            None if threads.is_empty() => return Ok(()),
            Some(now) => now.spread,
            None => Spread::NONE,
        };
        let enable =
            |on| self.interfaces.enable_feature(DEVICE_INPUT_ARC, WorkerHandoff::NAME, interface, on);
        if threads.is_empty() {
            enable(false)?;
            self.store(interface, Spread::NONE)?;
            self.now.borrow_mut().remove(&interface);
            return Ok(());
        }
        let spread = before.over(threads, rules);
        self.store(interface, spread)?;
        enable(true)?;
        let (threads, text) = (threads.to_vec(), workers_text(threads));
        self.now.borrow_mut().insert(interface, Now { threads, rules, spread });
        let name = self.interfaces.name(interface).unwrap_or_default();
        self.graph.events().write(0, format!("packets of {name} are spread over workers {text}"));
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

    /// The interfaces whose packets are spread or were asked to be, by index.
    pub fn interfaces(&self) -> Vec<OnInterface> {
        let (said, now) = (self.said.borrow(), self.now.borrow());
        let asked = |i: &SwIfIndex| said.get(i).and_then(|said| said.workers.clone());
        let all: BTreeSet<SwIfIndex> =
            said.keys().filter(|i| asked(i).is_some()).chain(now.keys()).copied().collect();
        let of = |interface: SwIfIndex| OnInterface {
            interface,
            asked: asked(&interface),
            workers: now.get(&interface).map_or(Vec::new(), |now| numbers(&now.threads)),
            rules: said.get(&interface).map_or(Rules::default(), |said| said.rules),
        };
        all.into_iter().map(of).collect()
    }

    /// The rings between all threads; none of one that does not move.
    pub fn rings(&self) -> Vec<RingInfo> {
        self.graph.handoff_rings()
    }
}

/// The numbers of workers, by their threads.
fn numbers(threads: &[usize]) -> Vec<u32> {
    threads.iter().filter_map(|t| t.checked_sub(1)).map(|w| w as u32).collect()
}

fn workers_text(threads: &[usize]) -> String {
    numbers(threads).iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn no_worker(wanted: u32, there: &[u32]) -> HandoffError {
    let Some(nearest) = there.iter().copied().min_by_key(|w| w.abs_diff(wanted)) else {
        return HandoffError::NoWorkers;
    };
    let list: Vec<String> = there.iter().map(u32::to_string).collect();
    HandoffError::NoWorker { wanted, there: list.join(", "), nearest }
}
