//! The tasks of the main thread: packets are kept, what is due is done.

use std::rc::Rc;

use shoal_graph::process::{Processes, Receiver};

use crate::message::Waiting;
use crate::{Neighbours, Protocol};

/// Packets without a neighbour, into the queues.
pub async fn hold<P: Protocol>(neighbours: Rc<Neighbours<P>>, packets: Receiver<Waiting<P::Addr>>) {
    while let Ok(waiting) = packets.recv().await {
        neighbours.wait(waiting);
    }
}

/// What the clock brings. It sleeps until something is due, so an idle router is not woken.
pub async fn age<P: Protocol>(neighbours: Rc<Neighbours<P>>, processes: Rc<Processes>, bell: Receiver<()>) {
    loop {
        neighbours.tick();
        processes.rung_or_due(&bell, neighbours.deadline()).await;
    }
}
