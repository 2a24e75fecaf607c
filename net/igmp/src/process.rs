//! The tasks of the main thread.

use std::rc::Rc;

use shoal_graph::process::{Processes, Receiver};

use crate::Igmp;
use crate::node::Fact;

/// What others on the link say.
pub(crate) async fn listen(igmp: Rc<Igmp>, said: Receiver<Fact>) {
    while let Ok(fact) = said.recv().await {
        igmp.hear(fact);
    }
}

/// What the clock brings: reports.
pub(crate) async fn times(igmp: Rc<Igmp>, processes: Rc<Processes>, bell: Receiver<()>) {
    loop {
        igmp.tick();
        processes.rung_or_due(&bell, igmp.deadline()).await;
    }
}
