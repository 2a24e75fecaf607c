//! Receive queues: how and where they run.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use shoal_graph::{Graph, MAX_THREADS};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Expected, FromArg, Output};

use crate::{InterfaceArg, Interfaces};

pub(super) const SET_MODE: Command = Command::new(
    "set interface rx-mode <interface> [queue <queue:u32>] {polling | interrupt | adaptive}",
    "Choose how queues are waited for",
    set_mode,
)
.examples(&["set interface rx-mode local0 polling", "set int rx-mode local0 queue 0 adaptive"])
.doc("`adaptive`, the default, polls while packets come and sleeps when they stay away.");

pub(super) const SET_PLACEMENT: Command = Command::new(
    "set interface rx-placement <interface> [queue <queue:u32>] {worker <worker:u32> | main | auto}",
    "Move a receive queue to another thread while packets flow",
    set_placement,
)
.examples(&["set interface rx-placement local0 main", "set int rx-placement local0 queue 1 worker 0"])
.doc("`auto`: the queue stays where it is, and is not held there any more.");

pub(super) const SET_TX: Command = Command::new(
    "set interface tx-queue <interface> queue <queue:u32> threads <threads:thread-list>",
    "Choose the threads that send by a transmit queue",
    set_tx,
)
.examples(&["set interface tx-queue tap0 queue 0 threads 0,2-3"])
.doc(
    "Other threads that did so send by the next queue. Threads are counted from the main thread, which is 0. `show \
     hardware-interfaces` lists the queues.",
);

pub(super) const SET_QUEUES: Command = Command::new(
    "set interface rx-queues <interface> <queues:u32>",
    "Change the number of receive queues while packets flow",
    set_queues,
)
.examples(&["set interface rx-queues tap0 2"])
.doc(
    "Where the device allows it, else the error says what it allows: TAPs, host interfaces and AF_XDP interfaces do. New \
     queues go to the threads with the fewest. What waits in a queue that goes is lost. A queue of an AF_XDP interface is \
     a pair, and frames of those it has none for go to the host.",
);

pub(super) const SHOW_PLACEMENT: Command =
    Command::new("show interface rx-placement", "Show which thread runs which receive queue", show_placement)
        .examples(&["show interface rx-placement", "sh int rx"])
        .doc("Queues of devices only: what a packet generator makes comes from no device.");

fn set_mode(control: &Control, args: &Args) -> Result<Output, CliError> {
    let interface: InterfaceArg = args.get("interface")?;
    let words = ["polling", "interrupt", "adaptive"];
    let mode = words.into_iter().find(|w| args.has(w)).unwrap_or("adaptive");
    let mode = mode.parse().map_err(CliError::failed)?;
    control.get::<Interfaces>()?.set_rx_mode(interface.0, args.opt("queue")?, mode)?;
    Ok(Output::none())
}

fn set_placement(control: &Control, args: &Args) -> Result<Output, CliError> {
    let interfaces = control.get::<Interfaces>()?;
    let interface: InterfaceArg = args.get("interface")?;
    if args.has("auto") {
        interfaces.forget_placement(interface.0, args.or("queue", 0)?)?;
        return Ok(Output::none());
    }
    let thread = match args.opt::<u32>("worker")? {
        Some(worker) => thread_of(interfaces.graph(), worker)?,
        None => 0,
    };
    interfaces.place_queue(interface.0, args.or("queue", 0)?, thread)?;
    Ok(Output::none())
}

fn set_tx(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (interface, ThreadList(threads)): (InterfaceArg, _) = (args.get("interface")?, args.get("threads")?);
    control.get::<Interfaces>()?.place_tx(interface.0, args.get("queue")?, &threads)?;
    Ok(Output::none())
}

fn set_queues(control: &Control, args: &Args) -> Result<Output, CliError> {
    let interface: InterfaceArg = args.get("interface")?;
    control.get::<Interfaces>()?.set_rx_queues(interface.0, args.get("queues")?)?;
    Ok(Output::none())
}

/// Numbers of threads: `0,2-3`.
pub(super) struct ThreadList(Vec<usize>);

impl FromArg for ThreadList {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        let number = |text: &str| text.parse().ok().filter(|n| *n < MAX_THREADS);
        let part = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(number(first)?..=number(last)?).filter(|range| !range.is_empty())
        };
        let parts: Option<Vec<_>> = text.split(',').map(part).collect();
        let parts = parts.ok_or_else(|| {
            Expected::new(format!("numbers of threads from 0 to {}, such as 0,2-3", MAX_THREADS - 1))
        })?;
        Ok(ThreadList(parts.into_iter().flatten().collect()))
    }
}

/// The thread of a worker: workers are counted from 0, threads from the main thread.
fn thread_of(graph: &Graph, worker: u32) -> Result<usize, CliError> {
    let threads: Vec<usize> = graph.threads().iter().map(|t| t.index).collect();
    let wanted = worker as usize + 1;
    if threads.contains(&wanted) {
        return Ok(wanted);
    }
    let workers: Vec<String> = threads.iter().filter(|t| **t > 0).map(|t| (t - 1).to_string()).collect();
    Err(CliError::argument(
        "worker",
        if workers.is_empty() {
            "there are no workers, only the main thread".into()
        } else {
            format!("no worker {worker}, there are: {}", workers.join(", "))
        },
    ))
}

#[derive(Serialize)]
struct OneQueue {
    interface: String,
    queue: u32,
    mode: String,
}

#[derive(Serialize)]
struct Node {
    node: String,
    queues: Vec<OneQueue>,
}

#[derive(Serialize)]
struct OneThread {
    thread: usize,
    name: String,
    nodes: Vec<Node>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Placement(Vec<OneThread>);

fn show_placement(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
    let mut placed: BTreeMap<usize, BTreeMap<String, Vec<OneQueue>>> = BTreeMap::new();
    for index in interfaces.indices() {
        for q in interfaces.queues(index)? {
            let queue = OneQueue { interface: q.interface, queue: q.queue, mode: q.mode.to_string() };
            placed.entry(q.thread).or_default().entry(graph.node_name(q.node)).or_default().push(queue);
        }
    }
    let threads = graph.threads();
    let name = |n| threads.iter().find(|t| t.index == n).map(|t| t.name.clone()).unwrap_or_default();
    let node = |(node, queues)| Node { node, queues };
    let thread = |(thread, nodes): (usize, BTreeMap<_, _>)| OneThread {
        thread,
        name: name(thread),
        nodes: nodes.into_iter().map(node).collect(),
    };
    Ok(Output::view(Placement(placed.into_iter().map(thread).collect())))
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for OneThread { thread, name, nodes } in &self.0 {
            writeln!(f, "Thread {thread} ({name}):")?;
            for Node { node, queues } in nodes {
                writeln!(f, "  node {node}:")?;
                for OneQueue { interface, queue, mode } in queues {
                    writeln!(f, "    {interface} queue {queue} ({mode})")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn placement_is_laid_out_as_vpps() {
        let queue = |queue| OneQueue { interface: "host-eth0".into(), queue, mode: "adaptive".into() };
        let nodes = vec![Node { node: "af-packet-input".into(), queues: vec![queue(0), queue(1)] }];
        let placement = Placement(vec![OneThread { thread: 1, name: "vpp_wk_0".into(), nodes }]);
        assert_eq!(
            placement.to_string(),
            "Thread 1 (vpp_wk_0):\n  node af-packet-input:\n    \
             host-eth0 queue 0 (adaptive)\n    host-eth0 queue 1 (adaptive)\n"
        );
    }

    #[test]
    fn a_worker_that_is_not_there_is_named_with_those_that_are() {
        let control = testing::router(|_| Ok(()));
        let graph = control.graph().unwrap();
        assert!(thread_of(&graph, 0).unwrap_err().message().contains("no workers"));
        graph.add_worker(None).unwrap();
        assert_eq!(thread_of(&graph, 0), Ok(1));
        assert_eq!(thread_of(&graph, 4).unwrap_err().message(), "no worker 4, there are: 0");
        graph.stop_workers().unwrap();
    }
}
