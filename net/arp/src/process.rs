//! The tasks of the main thread: what nodes tell is entered, what is due is done.

use std::rc::Rc;

use futures_lite::future;
use shoal_graph::process::{Processes, Receiver};

use crate::Neighbours;
use crate::message::{Learn, Waiting};

/// What stations say, into the table.
pub(crate) async fn learn(neighbours: Rc<Neighbours>, said: Receiver<Learn>) {
    while let Ok(learn) = said.recv().await {
        neighbours.learn(&learn);
    }
}

/// Packets without a neighbour, into the queues.
pub(crate) async fn hold(neighbours: Rc<Neighbours>, packets: Receiver<Waiting>) {
    while let Ok(waiting) = packets.recv().await {
        neighbours.wait(waiting);
    }
}

/// What the clock brings. It sleeps until something is due, so an idle router is not woken.
pub(crate) async fn age(neighbours: Rc<Neighbours>, processes: Rc<Processes>, bell: Receiver<()>) {
    loop {
        neighbours.tick();
        let rung = async {
            // An error means that nobody is left to ring.
            if bell.recv().await.is_err() {
                future::pending::<()>().await;
            }
        };
        match neighbours.deadline() {
            Some(due) => future::or(rung, processes.sleep(due.since(processes.clock().now()))).await,
            None => rung.await,
        }
    }
}
