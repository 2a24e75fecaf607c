//! A router of interfaces only, for this crate's tests.

use std::rc::Rc;

use shoal_graph::process::Processes;
use shoal_graph::{Clock, Graph, GraphConfig, GraphError};
use shoal_module::{Control, init_all};

/// A router with this module and the nodes that `add` puts in.
pub fn router(add: impl FnOnce(&Graph) -> Result<(), GraphError>) -> Rc<Control> {
    let clock = Clock::manual();
    let config = GraphConfig { stats_bytes: 1 << 30, clock: clock.clone(), ..GraphConfig::default() };
    let control = Rc::new(Control::new());
    let graph = control.put_rc(Graph::new(config).unwrap());
    control.put(Processes::new(clock));
    add(&graph).unwrap();
    init_all(&control, &[&crate::MODULE]).unwrap();
    control
}
