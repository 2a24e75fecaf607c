//! The tasks of the main thread.

use std::rc::Rc;

use shoal_graph::process::{Processes, Receiver};

use crate::Nd;
use crate::fact::Fact;

/// What stations say.
pub(crate) async fn learn(nd: Rc<Nd>, said: Receiver<Fact>) {
    while let Ok(fact) = said.recv().await {
        nd.hear(&fact);
    }
}

/// What the clock brings: probes of our own addresses, advertisements, reports.
pub(crate) async fn times(nd: Rc<Nd>, processes: Rc<Processes>, bell: Receiver<()>) {
    loop {
        nd.tick();
        processes.rung_or_due(&bell, nd.deadline()).await;
    }
}
