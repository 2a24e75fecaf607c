//! Workers that have sessions, as both kinds of NAT44 show them to clients.

use std::sync::atomic::Ordering;

use shoal_graph::Graph;
use shoal_message::Retval;

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

/// Whether workers may be those of a mask, a bit each: all of them, since sessions are shared out among all.
///
/// # Errors
/// There are fewer than two, the mask names none or one that is not there, or it leaves some out.
pub fn check_mask(workers: usize, mask: u64) -> Result<(), Retval> {
    let all = 1_u64.checked_shl(workers as u32).map_or(u64::MAX, |bit| bit - 1);
    match mask {
        _ if workers < 2 => Err(Retval::FEATURE_DISABLED),
        mask if mask & !all != 0 || mask == 0 => Err(Retval::INVALID_WORKER),
        mask if mask == all => Ok(()),
        _ => Err(Retval::UNSUPPORTED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_all_workers_or_none_is_taken() {
        for mask in [0, 1, 3, u64::MAX] {
            assert_eq!(check_mask(0, mask), Err(Retval::FEATURE_DISABLED));
            assert_eq!(check_mask(1, mask), Err(Retval::FEATURE_DISABLED));
        }
        let of_two = [0, 1, 2, 3, 4, 7, 1 << 63, u64::MAX].map(|mask| check_mask(2, mask));
        let (none, part) = (Err(Retval::INVALID_WORKER), Err(Retval::UNSUPPORTED));
        assert_eq!(of_two, [none, part, part, Ok(()), none, none, none, none]);
        assert_eq!(check_mask(64, u64::MAX), Ok(()));
        assert_eq!(check_mask(64, u64::MAX - 1), Err(Retval::UNSUPPORTED));
    }
}
