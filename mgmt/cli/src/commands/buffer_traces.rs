//! `set buffer traces`, `show buffer traces`: which nodes take buffers, give them back, and keep them.

use std::fmt;

use serde::Serialize;
use shoal_graph::{BufferMoves, GraphError, Monitoring};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::buffers::Pool;

pub(super) const SET: Command = Command::new(
    "set buffer traces [on | off]",
    "Count buffers by node, or no longer",
    set,
)
.examples(&["set buffer traces on", "set buffer traces off"])
.doc(
    "While it is on, packets pass every node by itself, which is slower. It is for finding a node that keeps \
             buffers, and ends with the router.",
);

pub(super) const SHOW: Command =
    Command::new("show buffer traces [verbose | status]", "Show which nodes keep buffers", show)
        .examples(&["show buffer traces", "show buffer traces verbose", "show buffer traces status"])
        .doc(
            "Buffers that each node took from the pool, gave back, was sent and sent on; the last column is what is left. \
             `verbose` adds nodes that keep none. Counts of all threads are summed.",
        );

pub(super) const CLEAR: Command =
    Command::new("clear buffer traces", "Forget what was counted of buffers by node", clear)
        .examples(&["clear buffer traces"]);

fn failed(error: GraphError) -> CliError {
    CliError::failed(error.to_string())
}

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let switch = if args.has("off") { Monitoring::Off } else { Monitoring::On };
    control.graph()?.monitor_buffers(switch).map_err(failed)?;
    Ok(Output::none())
}

fn clear(control: &Control, _: &Args) -> Result<Output, CliError> {
    control.graph()?.clear_buffer_moves().map_err(failed)?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Status {
    on: bool,
}

#[derive(Serialize)]
struct Row {
    node: String,
    allocated: u64,
    freed: u64,
    #[serde(rename = "in")]
    received: u64,
    #[serde(rename = "out")]
    sent: u64,
    buffered: i64,
}

#[derive(Serialize)]
struct Table {
    pool: Pool,
    nodes: Vec<Row>,
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let graph = control.graph()?;
    if args.has("status") {
        return Ok(Output::view(Status { on: graph.monitoring() == Monitoring::On }));
    }
    let verbose = args.has("verbose");
    let row = |(number, moves): (usize, BufferMoves)| {
        let idle = moves == BufferMoves::default() || moves.kept() == 0 && !verbose;
        let node = (!idle).then(|| graph.node_at(number)).flatten()?;
        Some(Row {
            node: node.name.to_string(),
            allocated: moves.allocated,
            freed: moves.freed,
            received: moves.received,
            sent: moves.sent,
            buffered: moves.kept(),
        })
    };
    let nodes = graph.buffer_moves().into_iter().enumerate().filter_map(row).collect();
    Ok(Output::view(Table { pool: Pool::new(graph.pool().stats(), false), nodes }))
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "buffers tracing is {}", if self.on { "on" } else { "off" })
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.pool)?;
        let [node, allocated, freed] = ["Node", "Allocated", "Freed"];
        writeln!(f, "{node:>30}{allocated:>20}{freed:>20}{:>20}{:>20}{:>20}", "In", "Out", "Buffered")?;
        self.nodes.iter().try_for_each(|Row { node, allocated, freed, received, sent, buffered }| {
            writeln!(f, "{node:>30}{allocated:>20}{freed:>20}{received:>20}{sent:>20}{buffered:>20}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;

    /// What is printed of a node: taken, given back, come, gone, kept.
    fn row(text: &str, node: &str) -> Option<Vec<i64>> {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(node))?;
        Some(line.split_whitespace().skip(1).map(|word| word.parse().unwrap()).collect())
    }

    #[test]
    fn buffers_are_counted_by_node_while_it_is_on() {
        let router = Router::new();
        router.packets(3);
        assert_eq!(row(&router.run("show buffer traces verbose"), "judge"), None);
        assert_eq!(router.run("show buffer traces status"), "buffers tracing is off\n");
        router.run("set buffer traces on");
        assert_eq!(router.run("show buffer traces status"), "buffers tracing is on\n");
        router.packets(7);
        let all = router.run("show buffer traces verbose");
        assert_eq!(row(&all, "test-input"), Some(vec![7, 0, 0, 7, 0]), "{all}");
        assert_eq!(row(&all, "judge"), Some(vec![0, 0, 7, 7, 0]), "{all}");
        assert_eq!(row(&all, "error-drop"), Some(vec![0, 0, 7, 7, 0]), "{all}");
        assert_eq!(row(&all, "drop"), Some(vec![0, 7, 7, 0, 0]), "{all}");
        let kept = router.run("show buffer traces");
        assert_eq!((row(&kept, "judge"), row(&kept, "drop")), (None, None), "{kept}");
        router.run("clear buffer traces");
        assert_eq!(row(&router.run("show buffer traces verbose"), "judge"), None);
        router.run("set buffer traces off");
        router.packets(7);
        assert_eq!(row(&router.run("show buffer traces verbose"), "judge"), None);
    }
}
