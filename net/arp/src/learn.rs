//! What stations say, into the table.

use std::rc::Rc;

use shoal_graph::process::Receiver;
use shoal_neighbor::table::Proof;
use shoal_neighbor::{Answer, Answers, Role, State};

use crate::Neighbours;
use crate::counters::Kind;
use crate::message::{Fact, Learn};

/// Enters what nodes pass on.
pub(crate) async fn learn(neighbours: Rc<Neighbours>, answers: Rc<Answers>, facts: Receiver<Fact>) {
    let tell = |said: &Learn| {
        let Learn { interface, address, mac, .. } = *said;
        answers.tell(&Answer { interface, address: address.into(), mac });
    };
    while let Ok(fact) = facts.recv().await {
        match fact {
            Fact::Said(said) => {
                if said.kind == Kind::Reply {
                    tell(&said);
                }
                enter(&neighbours, &said);
            }
            Fact::Claimed(said) => tell(&said),
            Fact::Used(key) => neighbours.used(key),
        }
    }
}

fn enter(neighbours: &Neighbours, said: &Learn) {
    let key = (said.interface, said.address);
    let asked = neighbours.is_asked(key);
    if said.kind == Kind::Gratuitous && !asked && neighbours.get(key).is_none() {
        return;
    }
    let proof = if said.kind == Kind::Reply && asked { Proof::Answered } else { Proof::Said };
    // A refusal is counted and logged already, and the station is answered all the same.
    let _ = neighbours.learn(key, said.mac, (State::Reachable, proof), Role::Host);
}
