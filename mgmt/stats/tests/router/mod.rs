//! One router with a published segment.
#![allow(dead_code, clippy::unwrap_used, reason = "parts of a test each")]

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use shoal_graph::process::Processes;
use shoal_graph::{Clock, Graph, GraphConfig};
use shoal_module::Control;
use shoal_stats::Settings;

/// One router with a published segment.
pub struct Router {
    pub control: Rc<Control>,
    pub graph: Rc<Graph>,
    pub processes: Rc<Processes>,
    pub clock: Clock,
    pub socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Router {
    pub fn new(per_node_counters: bool) -> Self {
        Self::with_bytes(per_node_counters, GraphConfig::default().stats_bytes)
    }

    /// With a segment of so many bytes.
    pub fn with_bytes(per_node_counters: bool, stats_bytes: usize) -> Self {
        Self::with(per_node_counters, stats_bytes, Clock::manual())
    }

    /// With a clock that goes by itself.
    pub fn real() -> Self {
        Self::with(false, GraphConfig::default().stats_bytes, Clock::real())
    }

    fn with(per_node_counters: bool, stats_bytes: usize, clock: Clock) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("stats.sock");
        let config = GraphConfig { clock: clock.clone(), stats_bytes, ..GraphConfig::default() };
        let graph = Graph::new(config).unwrap();
        let control = Rc::new(Control::new());
        control.put_rc(Rc::clone(&graph));
        let processes = control.put(Processes::new(clock.clone()));
        control.put(Settings {
            socket: socket.clone(),
            gid: None,
            per_node_counters,
            update_interval: Duration::from_secs(10),
        });
        graph.build().unwrap();
        (shoal_stats::MODULE.start)(&control).unwrap();
        processes.run_until_idle();
        Router { control, graph, processes, clock, socket, _folder: folder }
    }

    pub fn pass(&self, time: Duration) {
        self.clock.advance(time);
        self.processes.run_until_idle();
    }
}
