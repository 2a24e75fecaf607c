//! Starts publishing, and ends it.

use std::cell::{Cell, RefCell};
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use shoal_graph::Graph;
use shoal_graph::counter::Growth;
use shoal_graph::process::{Processes, Receiver, aside, channel};
use shoal_module::door::SocketFile;
use shoal_module::{Control, InitError};

use crate::collector::Collector;
use crate::publisher::{Laid, Plan, Publisher};
use crate::socket;

/// Names from which on a directory is laid out on a thread of its own: about a millisecond's work.
const LONG: usize = 2_000;
/// Refreshes take at most one part in so many of the main thread's time, so that a script which makes a thousand
/// interfaces does not rebuild a long directory a thousand times.
const REST: u32 = 20;
/// Time that refreshes may owe before they wait: a client looks for the name of what it has just made.
const CREDIT: Duration = Duration::from_millis(500);

/// How the segment is published; the daemon puts this on the shelf before modules start.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The socket's file.
    pub socket: PathBuf,
    /// The group that may connect, besides the owner.
    pub gid: Option<u32>,
    /// Publish the counters of every node too.
    pub per_node_counters: bool,
    /// Time between two rounds of the collector.
    pub update_interval: Duration,
}

/// The published segment.
pub struct Stats {
    publisher: RefCell<Publisher>,
    nodes: RefCell<Nodes>,
    socket: RefCell<Option<SocketFile>>,
    graph: Rc<Graph>,
    per_node: bool,
    /// The last directory found no room.
    failed: Cell<bool>,
}

impl Stats {
    /// Publishes what has changed, before it returns.
    pub fn refresh(&self) {
        if let Some(plan) = self.plan() {
            self.publish(plan.lay_out());
        }
    }

    /// Publishes what has changed. A long directory is laid out on a thread of its own: the main thread may have packets
    /// to forward.
    async fn renew(&self) {
        let Some(plan) = self.plan() else { return };
        // A manual clock does not move while others work.
        if plan.len() < LONG || !self.graph.clock().is_real() {
            self.graph.counters().set_growth(Growth::Awaited);
            return self.publish(plan.lay_out());
        }
        // That takes a while, and clients would wait for it.
        self.graph.counters().set_growth(Growth::WithNames);
        let laid = aside("statseg-layout", move || plan.lay_out()).await;
        self.publish(laid.flatten());
    }

    fn plan(&self) -> Option<Plan> {
        if self.per_node {
            self.nodes.borrow_mut().follow(&self.graph);
        }
        self.publisher.borrow_mut().plan()
    }

    fn publish(&self, laid: io::Result<Laid>) {
        self.failed.set(laid.is_err());
        match laid {
            Ok(laid) => self.publisher.borrow_mut().publish(laid, self.graph.clock().now()),
            Err(error) => {
                self.graph.counters().set_growth(Growth::AtOnce);
                tracing::error!("the stats segment shows an old directory: {error}");
            }
        }
    }

    /// Frees what was replaced some time ago. Where there was no room, there may be now.
    fn tidy(&self) {
        self.publisher.borrow_mut().forget(self.graph.clock().now());
        if self.failed.get() {
            self.refresh();
        }
    }

    /// Removes the socket's file: clients watch for that and reconnect.
    pub fn close(&self) {
        self.socket.borrow_mut().take();
    }

    /// How often the directory was replaced.
    pub fn epoch(&self) -> u64 {
        self.publisher.borrow().epoch()
    }
}

/// The names of nodes as published: with `per-node-counters on` only.
#[derive(Default)]
struct Nodes(Vec<String>);

impl Nodes {
    fn follow(&mut self, graph: &Graph) {
        let counters = graph.counters();
        let vector = counters.names("/sys/node/names");
        let mut names = Vec::new();
        graph.each_node(|node, name, _| {
            let at = node.number() as usize;
            names.resize(names.len().max(at + 1), String::new());
            if let Some(slot) = names.get_mut(at) {
                name.clone_into(slot);
            }
        });
        let of = |name: &str| format!("/nodes/{}/", name.replace('/', "_"));
        for at in 0..names.len().max(self.0.len()) {
            let name = |list: &[String]| list.get(at).cloned().unwrap_or_default();
            let (old, new) = (name(&self.0), name(&names));
            vector.set(at, &new);
            if old == new {
                continue;
            }
            if !old.is_empty() {
                counters.remove_prefix(&of(&old));
            }
            if !new.is_empty() {
                for column in ["clocks", "vectors", "calls", "suspends"] {
                    counters.symlink(&format!("{}{column}", of(&new)), &format!("/sys/node/{column}"), at);
                }
            }
        }
        self.0 = names;
    }
}

/// Publishes and serves, if the shelf has [`Settings`].
pub fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let Ok(settings) = control.get::<Settings>() else { return Ok(()) };
    let (graph, processes) = (control.graph()?, control.processes()?);
    let collector = Collector::new(&graph)?;
    if !socket::seal(graph.counters().segment()) {
        tracing::info!(
            "this kernel cannot keep clients from writing to the stats segment: it is older than 5.1"
        );
    }
    let (listener, file) =
        socket::open(&settings.socket, settings.gid).map_err(|e| InitError::Other(e.to_string()))?;
    let stats = control.put(Stats {
        publisher: RefCell::new(Publisher::new(graph.counters().clone(), settings.per_node_counters)),
        nodes: RefCell::default(),
        socket: RefCell::new(Some(file)),
        graph: Rc::clone(&graph),
        per_node: settings.per_node_counters,
        failed: Cell::new(false),
    });
    stats.refresh();
    let (changed, changes) = channel(1);
    // Full means that a change is announced already.
    graph.counters().observe(move || {
        let _ = changed.try_send(());
    });
    processes.spawn("statseg-publisher", publish(Rc::clone(&stats), changes, (*processes).clone()));
    processes.spawn(
        "statseg-collector-process",
        collect(stats, collector, settings.update_interval, (*processes).clone()),
    );
    processes.spawn("statseg-socket", socket::serve(listener, graph.counters().segment().clone()));
    Ok(())
}

/// How long the calling thread has had a processor.
fn processor_time() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(Duration::ZERO, Duration::from)
}

async fn publish(stats: Rc<Stats>, changes: Receiver<()>, processes: Processes) {
    let (mut owed, mut last) = (Duration::ZERO, Instant::now());
    while changes.recv().await.is_ok() {
        let (begun, used) = (Instant::now(), processor_time());
        stats.renew().await;
        // What it takes of the processor: on a machine with other work it may be done much later, and that is no reason to be later still.
        let took = processor_time().saturating_sub(used).min(begun.elapsed());
        owed = owed.saturating_sub(begun - last) + took * REST;
        last = begun;
        // A manual clock does not move by itself: a test wants to see its change at once.
        if let Some(wait) = owed.checked_sub(CREDIT).filter(|_| processes.clock().is_real()) {
            // Clients do not wait so long.
            stats.graph.counters().stop_waiting();
            processes.sleep(wait).await;
        }
    }
}

async fn collect(stats: Rc<Stats>, mut collector: Collector, interval: Duration, processes: Processes) {
    loop {
        collector.round(&stats.graph);
        stats.tidy();
        processes.sleep(interval).await;
    }
}
