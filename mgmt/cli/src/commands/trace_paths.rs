//! `show trace paths`, `show trace path`: traced packets by the nodes they passed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::{self, Write as _};

use serde::Serialize;
use shoal_graph::trace::PacketTrace;
use shoal_graph::{Graph, NodeIndex};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::trace::{Shown, packet_text};
use super::trace_time::TraceTime;

pub(super) const PATHS: Command = Command::new(
    "show trace paths",
    "Show which nodes traced packets passed, and how many took each way",
    paths,
)
.examples(&["show trace paths"])
.doc("The way that most packets took comes first. `show trace path` with its number shows its packets.");

pub(super) const PATH: Command =
    Command::new("show trace path <path:u32> [max <max:u32>]", "Show the traced packets of one way", path)
        .examples(&["show trace path 0", "show trace path 1 max 5"])
        .doc("`show trace paths` tells the numbers. 50 packets are shown unless `max` says otherwise.");

/// Packets shown without `max`.
const MAX: u32 = 50;

/// One way through the graph.
struct GraphPath {
    nodes: Vec<NodeIndex>,
    count: usize,
}

fn nodes_of(packet: &PacketTrace) -> impl Iterator<Item = NodeIndex> + '_ {
    packet.records.iter().map(|record| record.node)
}

/// Calls back with each packet that is shown: its thread, its place among the thread's packets, itself.
fn each_packet(control: &Control, graph: &Graph, mut f: impl FnMut(usize, usize, &PacketTrace)) {
    let shown = Shown::of(control);
    for thread in graph.threads() {
        graph.traces().with(thread.index, |all| {
            for at in shown.places(all) {
                if let Some(packet) = all.get(at) {
                    f(thread.index, at, packet);
                }
            }
        });
    }
}

/// All ways, the one of most packets first; of two with as many the one that was taken first.
fn ways(control: &Control, graph: &Graph) -> Vec<GraphPath> {
    let (mut ways, mut by_nodes) = (Vec::<GraphPath>::new(), HashMap::<Vec<NodeIndex>, usize>::new());
    each_packet(control, graph, |_, _, packet| match by_nodes.entry(nodes_of(packet).collect::<Vec<_>>()) {
        Entry::Occupied(way) => {
            if let Some(way) = ways.get_mut(*way.get()) {
                way.count += 1;
            }
        }
        Entry::Vacant(vacant) => {
            ways.push(GraphPath { nodes: vacant.key().clone(), count: 1 });
            vacant.insert(ways.len() - 1);
        }
    });
    ways.sort_by_key(|way| std::cmp::Reverse(way.count));
    ways
}

/// A way, for display.
#[derive(Serialize)]
struct Row {
    path: usize,
    count: usize,
    nodes: Vec<String>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Table(Vec<Row>);

fn paths(control: &Control, _: &Args) -> Result<Output, CliError> {
    let graph = control.graph()?;
    let row = |(path, way): (usize, GraphPath)| Row {
        path,
        count: way.count,
        nodes: way.nodes.into_iter().map(|node| graph.node_name(node)).collect(),
    };
    Ok(Output::view(Table(ways(control, &graph).into_iter().enumerate().map(row).collect())))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "No packets in trace buffer");
        }
        self.0.iter().try_for_each(|Row { path, count, nodes }| {
            writeln!(f, "Path {path}  Count: {count}\n  {}", nodes.join(" -> "))
        })
    }
}

fn path(control: &Control, args: &Args) -> Result<Output, CliError> {
    let graph = control.graph()?;
    let (wanted, max) = (args.get::<u32>("path")?, args.or("max", MAX)? as usize);
    let ways = ways(control, &graph);
    let Some(way) = ways.get(wanted as usize) else {
        let message = match ways.len() {
            0 => "no packets in trace buffer, so there are no paths".to_owned(),
            1 => format!("{wanted} is no path; there is one, 0"),
            n => format!("{wanted} is no path; there are 0 to {}", n - 1),
        };
        return Err(CliError::argument("path", message));
    };
    let (time, mut text, mut seen) = (TraceTime::of(control), String::new(), 0);
    each_packet(control, &graph, |_, at, packet| {
        if nodes_of(packet).eq(way.nodes.iter().copied()) {
            if seen < max {
                text += &packet_text(&graph, at, packet, time);
            }
            seen += 1;
        }
    });
    if seen > max {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "Limiting display to {max} packets. To display more specify max.");
    }
    Ok(Output::text(text))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;

    #[test]
    fn packets_are_counted_by_their_way() {
        let router = Router::new();
        assert_eq!(router.run("show trace paths"), "No packets in trace buffer\n");
        router.run("trace add test-input 5");
        router.packets(5);
        let text = router.run("show trace paths");
        let mut counts = Vec::new();
        for line in text.lines().filter(|line| line.starts_with("Path ")) {
            counts.push(line.rsplit(' ').next().unwrap().parse::<usize>().unwrap());
        }
        assert_eq!(counts.iter().sum::<usize>(), 5, "{text}");
        assert!(counts.is_sorted_by(|a, b| a >= b), "{text}");
        assert!(text.contains("test-input -> judge"), "{text}");
        assert!(router.run("show trace path 0 max 1").contains("judge"));
        assert!(router.run("show trace path 0 max 0").starts_with("Limiting display to 0 packets"));
        assert!(router.refused("show trace path 77").contains("is no path; there"));
        router.run("clear trace");
        assert!(router.refused("show trace path 0").contains("no packets in trace buffer"));
    }
}
