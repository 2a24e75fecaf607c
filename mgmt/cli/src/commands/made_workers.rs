//! Workers that came and went by command: what a configuration is written from.

use std::cell::RefCell;
use std::collections::BTreeSet;

use shoal_module::{Control, Phase, Running};

/// Which workers were made and ended by command since the start, on the shelf.
#[derive(Default)]
pub(super) struct MadeWorkers(RefCell<WorkerChanges>);

#[derive(Default)]
struct WorkerChanges {
    /// Numbers of those that were made and are there, and their processors.
    made: Vec<(usize, Option<usize>)>,
    /// Numbers of those of the start-up file that were ended.
    ended: BTreeSet<usize>,
}

impl MadeWorkers {
    /// One was made, on a processor of its own or anywhere.
    pub fn made(&self, worker: usize, cpu: Option<usize>) {
        self.0.borrow_mut().made.push((worker, cpu));
    }

    /// One was ended.
    pub fn ended(&self, worker: usize) {
        let mut said = self.0.borrow_mut();
        let before = said.made.len();
        said.made.retain(|(made, _)| *made != worker);
        if said.made.len() == before {
            said.ended.insert(worker);
        }
    }

    /// The newest of those that were made on this processor, or anywhere.
    pub fn newest(&self, cpu: Option<usize>) -> Option<usize> {
        self.0.borrow().made.iter().rev().find(|(_, of)| *of == cpu).map(|(worker, _)| *worker)
    }

    fn lines(&self) -> Vec<String> {
        let said = self.0.borrow();
        let create = |cpu: Option<usize>| match cpu {
            Some(cpu) => format!("create worker cpu {cpu}"),
            None => "create worker".to_owned(),
        };
        // A new one takes the lowest number that is free: those in another's place come first, while no other is.
        let (instead, more): (Vec<_>, Vec<_>) =
            said.made.iter().partition(|(worker, _)| said.ended.contains(worker));
        let replaced = |worker: usize| instead.iter().any(|(made, _)| *made == worker);
        let instead =
            instead.iter().flat_map(|(worker, cpu)| [format!("delete worker {worker}"), create(*cpu)]);
        let ended = said.ended.iter().filter(|worker| !replaced(**worker));
        let ended = ended.map(|worker| format!("delete worker {worker}"));
        instead.chain(more.iter().map(|(_, cpu)| create(*cpu))).chain(ended).collect()
    }
}

pub(super) fn running(control: &Control, running: &mut Running) {
    let Ok(workers) = control.get::<MadeWorkers>() else { return };
    workers.lines().into_iter().for_each(|line| running.line(Phase::System, line));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_came_and_went_are_said_in_an_order_that_gives_them_their_numbers() {
        let workers = MadeWorkers::default();
        assert!(workers.lines().is_empty());
        // Two of the start-up file, 0 and 1.
        workers.made(2, Some(1));
        workers.made(3, None);
        workers.ended(2);
        assert_eq!(workers.lines(), ["create worker"]);
        workers.ended(0);
        assert_eq!(workers.lines(), ["create worker", "delete worker 0"]);
        workers.made(0, Some(3));
        assert_eq!(workers.lines(), ["delete worker 0", "create worker cpu 3", "create worker"]);
        workers.ended(1);
        assert_eq!(
            workers.lines(),
            ["delete worker 0", "create worker cpu 3", "create worker", "delete worker 1"]
        );
    }
}
