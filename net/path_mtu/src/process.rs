//! The tasks of the main thread.

use std::rc::Rc;

use futures_lite::future;
use shoal_graph::process::{Processes, Receiver};

use crate::PathMtus;
use crate::node::Fact;

/// What errors say is learnt, and forgotten in its time.
pub(crate) async fn learn(all: Rc<PathMtus>, processes: Rc<Processes>, said: Receiver<Fact>) {
    loop {
        all.tick();
        // An error means that there is no sender left.
        let heard = async { said.recv().await.map(Some).map_err(drop) };
        let next = match all.deadline() {
            Some(due) => {
                let wait = due.since(processes.clock().now());
                let due = async {
                    processes.sleep(wait).await;
                    Ok(None)
                };
                future::or(due, heard).await
            }
            None => heard.await,
        };
        match next {
            Ok(Some(fact)) => all.learn(fact),
            Ok(None) => {}
            Err(()) => return,
        }
    }
}
