//! Settings against each other and against the machine; threads onto cores.

use crate::machine::{Machine, show_cores};
use crate::report::{Problem, quoted};
use crate::startup::Cpu;
use shoal_module::config::{At, Setting, Settings, Value};

/// The cores of main thread and workers, as VPP gives them out: `skip-cores` first ones are left alone, the
/// main thread takes the first free core if there are workers, workers take the next ones.
///
/// More workers than free cores is no mistake, as a worker with nothing to do sleeps: those run where the
/// kernel puts them. More workers than cores is one.
pub(crate) fn cpu(s: &Settings, machine: &Machine, problems: &mut Vec<Problem>) -> Cpu {
    let mut wrong = |at: At, message: String| problems.push(Problem::new(at, message));
    let cores = if s.flag("relative") { &machine.allowed } else { &machine.cores };
    // With `relative` a number is a place in the list of allowed cores, else the core itself.
    let relative = s.flag("relative");
    let core = |n: u32| {
        if relative { cores.get(n as usize).copied() } else { cores.iter().copied().find(|&c| c == n) }
    };
    let absent = |key: &str, n: u32| {
        let s = if cores.len() == 1 { "" } else { "s" };
        match core(n) {
            Some(_) => None,
            None if cores != &machine.cores => {
                Some(format!("{key} names core {n}, but this process may use only {} core{s}", cores.len()))
            }
            None => Some(format!("{key} names core {n}, but this machine has core{s} {}", show_cores(cores))),
        }
    };

    let skip = s.u64("skip-cores").unwrap_or(0) as usize;
    if let Some(setting) = s.last("skip-cores")
        && skip >= cores.len()
    {
        let s = if cores.len() == 1 { "" } else { "s" };
        wrong(setting.at, format!("skip-cores {skip} leaves none of {} core{s}", cores.len()));
    }
    let mut free: Vec<u32> = cores.iter().copied().skip(skip).collect();

    let count = s.last("workers").and_then(|w| s.u64("workers").map(|n| (n as usize, w.at)));
    let list = s.last("corelist-workers").and_then(|l| s.cpu_list("corelist-workers").map(|c| (c, l.at)));
    let any_worker = list.is_some() || count.is_some_and(|(n, _)| n > 0);

    let mut main_core = None;
    match s.last("main-core") {
        Some(Setting { value: Value::Text(word), at, .. }) if word != "auto" => match word.parse::<u32>() {
            Ok(n) => match absent("main-core", n) {
                Some(message) => wrong(*at, message),
                None => main_core = core(n),
            },
            Err(_) => wrong(*at, format!("main-core needs a core number or auto, not {}", quoted(word))),
        },
        Some(_) => main_core = free.first().copied(),
        // With a single free core, main thread and workers share it as the kernel likes.
        None if any_worker && free.len() > 1 && list.is_none() => main_core = free.first().copied(),
        None => {}
    }
    free.retain(|c| Some(*c) != main_core);

    let mut workers = Vec::new();
    if let Some((numbers, at)) = list {
        if let Some(message) = numbers.iter().find_map(|&n| absent("corelist-workers", n)) {
            wrong(at, message);
        }
        workers = numbers.iter().map(|&n| core(n)).collect();
        if let Some(main) = main_core
            && workers.contains(&Some(main))
        {
            wrong(at, format!("core {main} is the main thread's (main-core), a worker cannot have it too"));
        }
        if let Some((n, at)) = count
            && n != workers.len()
        {
            let listed = workers.len();
            wrong(
                at,
                format!("workers {n} does not fit corelist-workers, which has {listed}; give one of them"),
            );
        }
    } else if let Some((n, at)) = count {
        if n > cores.len() {
            let s = if cores.len() == 1 { "" } else { "s" };
            wrong(at, format!("workers must be at most {}, as there are {0} core{s}, not {n}", cores.len()));
        }
        workers = (0..n).map(|i| free.get(i).copied()).collect();
    }

    let policy = s.text("scheduler-policy").map(str::to_owned);
    if let Some(priority) = s.last("scheduler-priority")
        && !matches!(policy.as_deref(), Some("fifo" | "rr"))
    {
        wrong(priority.at, "scheduler-priority needs scheduler-policy fifo or rr".into());
    }
    Cpu {
        main_core,
        workers,
        thread_prefix: s.text("thread-prefix").unwrap_or_default().into(),
        scheduler_policy: policy,
        scheduler_priority: s.u64("scheduler-priority").map(|p| p as u8),
    }
}

/// NUMA nodes that have a number of buffers of their own must be there.
pub(crate) fn buffers(s: &Settings, machine: &Machine, problems: &mut Vec<Problem>) {
    for setting in s.all("numa") {
        let Value::Named(node, _) = &setting.value else { continue };
        if !node.parse().is_ok_and(|n: u32| machine.numa_nodes.contains(&n)) {
            let s = if machine.numa_nodes.len() == 1 { "" } else { "s" };
            let nodes = show_cores(&machine.numa_nodes);
            let message = format!("numa {} is not on this machine, which has node{s} {nodes}", quoted(node));
            problems.push(Problem::new(setting.at, message));
        }
    }
}

/// A plugin is enabled or disabled, not both.
pub(crate) fn plugins(s: &Settings, problems: &mut Vec<Problem>) {
    for setting in s.all("plugin") {
        let Value::Named(name, inner) = &setting.value else { continue };
        if inner.flag("enable") && inner.flag("disable") {
            let message = format!("plugin {} is both enabled and disabled", quoted(name));
            problems.push(Problem::new(setting.at, message));
        }
    }
}
