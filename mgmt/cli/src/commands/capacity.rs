//! `show capacity`: how much of everything is used, and how much more fits.

use std::fmt;

use serde::Serialize;
use shoal_graph::MAX_THREADS;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_module::{Capacity, Control, ModuleList};

use super::memory::size;
use super::memory_left::MemoryLeft;

pub(super) const SHOW: Command =
    Command::new("show capacity", "Show how much is used of everything, and how much more fits", show)
        .examples(&["show capacity"])
        .doc(
            "`Now` is what there is room for at this moment, where that is more than what is used; it grows up to \
             `Possible` by itself, which is `memory` where nothing else bounds it. `Bytes each` is what one more takes, \
             about. `More` is how many more fit into the memory that the machine has left and the process's cgroups \
             allow, each row for itself.",
        );

/// VPP's word for its hash tables, typed by programs that log the answer. Tables here have kinds of their own.
pub(super) const SHOW_BIHASH: Command =
    Command::new("show bihash", "Show how full tables are, as `show capacity`", show)
        .examples(&["show bihash"]);

/// Bytes of a node with its edges and names, beside its numbers.
const NODE: usize = 1024;
/// Bytes of a thread: its frames, its cache of buffers, its stack in use.
const THREAD: usize = 512 << 10;

#[derive(Serialize)]
struct Limit {
    resource: String,
    used: usize,
    now: Option<usize>,
    possible: Option<usize>,
    bytes_each: usize,
    more: Option<usize>,
}

#[derive(Serialize)]
struct Table {
    memory: MemoryLeft,
    limits: Vec<Limit>,
}

/// What the runtime itself has so much of.
pub(super) fn rows(control: &Control) -> Vec<Capacity> {
    let Ok(graph) = control.graph() else { return Vec::new() };
    let (c, pool, segment) = (graph.graph_counters(), graph.pool().stats(), graph.counters().segment());
    let threads = graph.threads().len();
    let number = size_of::<u64>() * threads;
    vec![
        Capacity::up_to("buffers", pool.used, pool.most, pool.size).with_room(pool.total),
        Capacity::up_to("nodes", graph.nodes().len(), c.calls.capacity(), NODE + 4 * number),
        Capacity::up_to("node counters", graph.error_counters().len(), c.errors.capacity(), number),
        Capacity::up_to("threads", threads, MAX_THREADS, THREAD),
        Capacity::up_to("stats segment bytes", segment.used(), segment.size(), 1),
    ]
}

fn table(control: &Control, memory: MemoryLeft) -> Result<Table, CliError> {
    let modules = control.get::<ModuleList>()?;
    let left = memory.bytes();
    let limit = |row: Capacity| Limit {
        more: row.more(left),
        used: row.used,
        now: row.now,
        possible: row.most,
        bytes_each: row.bytes_each,
        resource: row.resource,
    };
    let limits = modules.0.iter().flat_map(|module| (module.capacity)(control)).map(limit).collect();
    Ok(Table { memory, limits })
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(table(control, MemoryLeft::read())?))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = ["Used", "Now", "Possible", "Used %", "Bytes each", "More"];
        let [used, now, possible, percent, each, more] = heads;
        writeln!(f, "{:<24}{used:>14}{now:>14}{possible:>14}{percent:>8}{each:>12}{more:>14}", "Resource")?;
        for Limit { resource, used, now, possible, bytes_each, more } in &self.limits {
            let or = |n: &Option<usize>, word: &str| n.map_or_else(|| word.to_owned(), |n| n.to_string());
            let share = |most: usize| if most == 0 { 0.0 } else { *used as f64 / most as f64 * 100.0 };
            let percent = possible.map(|most| format!("{:.1}", share(most))).unwrap_or_default();
            let (now, possible, more) = (or(now, ""), or(possible, "memory"), or(more, "?"));
            writeln!(
                f,
                "{resource:<24}{used:>14}{now:>14}{possible:>14}{percent:>8}{bytes_each:>12}{more:>14}"
            )?;
        }
        let left = |what, bytes: Option<u64>| bytes.map(|n| format!("{} {what}", size(n)));
        let all = left("of the machine", self.memory.machine).into_iter();
        let all: Vec<String> = all.chain(left("within its cgroups", self.memory.cgroup)).collect();
        let all = if all.is_empty() { "unknown".to_owned() } else { all.join(", ") };
        writeln!(f, "memory left: {all}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;
    use super::*;

    #[test]
    fn figures_stand_under_each_other() {
        let limit = |resource: &str, now, possible, more| Limit {
            resource: resource.into(),
            used: 8_192,
            now,
            possible,
            bytes_each: 128,
            more,
        };
        let limits = vec![
            limit("buffers", Some(16_384), Some(262_144), Some(253_952)),
            limit("ip4 routes", None, None, Some(65_536)),
        ];
        let memory = MemoryLeft { machine: Some(8 << 20), cgroup: Some(16 << 20) };
        assert_eq!(
            Table { memory, limits }.to_string(),
            "Resource                          Used           Now      Possible  Used %  Bytes each          More\n\
             buffers                           8192         16384        262144     3.1         128        253952\n\
             ip4 routes                        8192                      memory                 128         65536\n\
             memory left: 8.00m of the machine, 16.00m within its cgroups\n"
        );
        let nothing = Table { memory: MemoryLeft::default(), limits: vec![] };
        assert!(nothing.to_string().ends_with("memory left: unknown\n"));
    }

    #[test]
    fn nothing_is_used_beyond_what_is_possible_and_every_row_says_what_one_takes() {
        let router = Router::new();
        let memory = MemoryLeft { machine: Some(1 << 30), cgroup: None };
        let all = table(&router.control, memory).unwrap().limits;
        assert!(all.iter().all(|r| r.possible.is_none_or(|most| r.used <= most) && r.bytes_each > 0));
        assert!(all.iter().all(|r| r.more.is_some_and(|n| n > 0)));
        assert_eq!(all.iter().find(|r| r.resource == "interfaces").map(|r| r.used), Some(1));
        let names: Vec<&str> = all.iter().map(|r| r.resource.as_str()).collect();
        assert!(names.contains(&"buffers") && names.contains(&"threads"), "{names:?}");
        assert!(router.run("show capacity").contains("memory left: "));
    }

    #[test]
    fn less_memory_means_less_of_what_it_bounds() {
        let router = Router::new();
        let more = |bytes| {
            let memory = MemoryLeft { machine: Some(bytes), cgroup: None };
            let all = table(&router.control, memory).unwrap().limits;
            all.into_iter().find(|r| r.resource == "threads").and_then(|r| r.more)
        };
        assert_eq!((more(1 << 30), more(1 << 20), more(0)), (Some(63), Some(2), Some(0)));
    }
}
