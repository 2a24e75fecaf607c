//! What stations say, into the table.

use std::rc::Rc;

use shoal_graph::process::Receiver;
use shoal_neighbor::{Role, State};

use crate::Neighbours;
use crate::message::{Learn, Unknown};

/// Enters what nodes pass on.
pub(crate) async fn learn(neighbours: Rc<Neighbours>, said: Receiver<Learn>) {
    while let Ok(fact) = said.recv().await {
        let key = (fact.interface, fact.address);
        let known = neighbours.get(key).is_some() || neighbours.is_asked(key);
        if known || fact.unknown == Unknown::Enter {
            // A refusal is counted and logged already, and the station is answered all the same.
            let _ = neighbours.learn(key, fact.mac, State::Reachable, Role::Host);
        }
    }
}
