//! Workers that have sessions, as both kinds of NAT44 show them to clients.

use std::sync::atomic::Ordering;

use shoal_graph::Graph;

/// A worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerInfo {
    /// Its number among workers, from 0 on.
    pub index: u32,
    /// The processor it is pinned to; all bits set: none.
    pub cpu: u32,
    /// Its name.
    pub name: String,
}

/// These threads but the main one; none if there is only one worker, which shares nothing out.
pub fn workers(graph: &Graph, threads: &[usize]) -> Vec<WorkerInfo> {
    let of_workers = || threads.iter().filter(|thread| **thread > 0);
    if of_workers().count() < 2 {
        return Vec::new();
    }
    let all = graph.threads();
    let info = |thread: &usize| {
        let found = all.iter().find(|info| info.index == *thread);
        WorkerInfo {
            index: *thread as u32 - 1,
            cpu: found.map_or(u32::MAX, |info| info.cpu.load(Ordering::Relaxed)),
            name: found.map_or_else(|| thread.to_string(), |info| info.name.clone()),
        }
    };
    of_workers().map(info).collect()
}
