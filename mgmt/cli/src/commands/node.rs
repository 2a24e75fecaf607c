//! `show node`: one node and its neighbours.

use std::fmt;

use serde::Serialize;
use shoal_graph::{Edge, NodeInfo, NodeKind};
use shoal_interface::cli::column::{centre, line, number};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Expected, Output, nearest};

use super::runtime;

pub(super) const SHOW: Command = Command::new(
    "show node {<node> | index <index:u32>} [verbose]",
    "Show a node with its next and previous nodes and its counters",
    show,
)
.examples(&["show node drop", "show node index 1", "show node drop verbose"])
.doc(
    "Vectors counts the packets that took each edge since `clear runtime`; those on a superpath take the edges of none \
     of its nodes. `verbose` adds calls, clocks and packets by thread.",
);

/// Names of all nodes.
pub(super) fn names(control: &Control, _: &str) -> Vec<String> {
    let Ok(graph) = control.graph() else { return Vec::new() };
    let mut names = Vec::new();
    graph.each_node(|_, name, _| names.push(name.to_owned()));
    names
}

/// Whether there is such a node; processes count, since `show runtime` lists them.
pub(super) fn check(control: &Control, text: &str) -> Result<(), Expected> {
    let processes = control.processes().map(|p| p.list()).unwrap_or_default();
    if control.graph().is_ok_and(|g| g.node(text).is_ok()) || processes.iter().any(|p| p.name == text) {
        return Ok(());
    }
    let mut names = names(control, text);
    names.extend(processes.into_iter().map(|p| p.name.to_owned()));
    let near = nearest(text, names.iter().map(String::as_str)).map(str::to_owned);
    Err(Expected::new("a node of the graph").nearest(near))
}

#[derive(Serialize)]
struct Next {
    edge: usize,
    index: u32,
    name: String,
    /// Packets that took this edge, on all threads.
    vectors: u64,
}

#[derive(Serialize)]
struct Previous {
    index: u32,
    name: String,
}

#[derive(Serialize)]
struct Counter {
    count: u64,
    reason: &'static str,
    severity: String,
}

#[derive(Serialize)]
struct OneThread {
    thread: usize,
    calls: u64,
    clocks: u64,
    vectors: u64,
}

#[derive(Serialize)]
struct Node {
    name: String,
    index: u32,
    kind: &'static str,
    state: &'static str,
    next: Vec<Next>,
    previous: Vec<Previous>,
    counters: Vec<Counter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<Vec<OneThread>>,
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let graph = control.graph()?;
    let nodes = graph.nodes();
    let info = find(&nodes, args)?;
    let number = |name: &str| nodes.iter().find(|n| n.name == name).map(|n| n.index.number());
    let ledgers = graph.ledgers();
    let vectors = |edge| ledgers.values().map(|l| l.packets(info.index, Edge(edge as u16))).sum();
    let next = |(edge, name): (usize, &String)| {
        Some(Next { edge, index: number(name)?, name: name.clone(), vectors: vectors(edge) })
    };
    let previous = |name: &String| Some(Previous { index: number(name)?, name: name.clone() });
    let c = graph.graph_counters();
    let at = info.index.number() as usize;
    let thread = |t: usize| OneThread {
        thread: t,
        calls: c.calls.get(t, at),
        clocks: c.clocks.get(t, at),
        vectors: c.vectors.get(t, at),
    };
    let threads = graph.threads();
    let main = threads.first().ok_or_else(|| CliError::failed("there is no thread"))?;
    Ok(Output::view(Node {
        name: info.name.clone(),
        index: info.index.number(),
        kind: kind(info.kind),
        state: runtime::state(info.index, info.kind, main, &graph.queues()),
        next: info.next.iter().enumerate().filter_map(next).collect(),
        previous: info.previous.iter().filter_map(previous).collect(),
        counters: counters(info, &c.errors),
        threads: args.has("verbose").then(|| threads.iter().map(|t| thread(t.index)).collect()),
    }))
}

fn find<'n>(nodes: &'n [NodeInfo], args: &Args) -> Result<&'n NodeInfo, CliError> {
    if let Some(index) = args.opt::<u32>("index")? {
        return nodes.iter().find(|n| n.index.number() == index).ok_or_else(|| {
            let most = nodes.iter().map(|n| n.index.number()).max().unwrap_or(0);
            CliError::argument("index", format!("no node with index {index}, the largest is {most}"))
        });
    }
    let name: String = args.get("node")?;
    let found = nodes.iter().find(|n| n.name == name);
    found.ok_or_else(|| CliError::argument("node", format!("`{name}' is a process, not a node")))
}

fn counters(info: &NodeInfo, errors: &shoal_graph::counter::Simple) -> Vec<Counter> {
    let of = |(i, counter): (usize, &shoal_graph::ErrorCounter)| Counter {
        count: errors.sum(info.error_base as usize + i),
        reason: counter.description,
        severity: counter.severity.to_string(),
    };
    info.errors.iter().enumerate().map(of).collect()
}

fn kind(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Input => "input",
        NodeKind::Internal => "internal",
        NodeKind::Superpath => "superpath",
        NodeKind::Process => "process",
        NodeKind::Timer => "timer",
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Node { name, kind, state, index, .. } = self;
        writeln!(f, "node {name}, type {kind}, state {state}, index {index}\n\n  next nodes:")?;
        if self.next.is_empty() {
            writeln!(f, "    none")?;
        } else {
            writeln!(f, "    next-index  node-index               Node               Vectors")?;
        }
        for Next { edge, index, name, vectors } in &self.next {
            let cells = [
                "    ".into(),
                number(edge, 10),
                "  ".into(),
                number(index, 10),
                "  ".into(),
                centre(name, 30),
                " ".into(),
                number(vectors, 12),
            ];
            f.write_str(&line(&cells))?;
        }
        writeln!(f, "\n  known previous nodes:")?;
        if self.previous.is_empty() {
            writeln!(f, "    none")?;
        }
        for three in self.previous.chunks(3) {
            let cells = three.iter().map(|p| format!("{:<35}", format!("{} ({})", p.name, p.index)));
            f.write_str(&line(&[vec!["    ".into()], cells.collect()].concat()))?;
        }
        if !self.counters.is_empty() {
            writeln!(f, "\n  counters:")?;
        }
        for Counter { count, reason, severity } in &self.counters {
            writeln!(f, "    {count:>10}  {severity:<5}  {reason}")?;
        }
        self.threads.iter().flatten().enumerate().try_for_each(|(at, t)| t.fmt_row(f, at == 0))
    }
}

impl OneThread {
    fn fmt_row(&self, f: &mut fmt::Formatter<'_>, first: bool) -> fmt::Result {
        if first {
            writeln!(f, "\n  Thread    Calls        Clocks      Vectors")?;
        }
        let cells = [
            number(self.thread, 8),
            number(self.calls, 13),
            number(self.clocks, 13),
            number(self.vectors, 13),
        ];
        f.write_str(&line(&cells))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;

    #[test]
    fn a_node_is_shown_with_neighbours_and_counters() {
        let router = Router::new();
        router.packets(2);
        let number = |name: &str| router.graph().node(name).unwrap().number();
        let (judge, input, error_drop) = (number("judge"), number("test-input"), number("error-drop"));
        assert_eq!((judge, input, error_drop), (2, 4, 0));
        assert_eq!(
            router.run("show node judge"),
            "node judge, type internal, state active, index 2\n\
             \n  next nodes:\n    next-index  node-index               Node               Vectors\n\
             \x20        0           0                error-drop                 2\n\
             \n  known previous nodes:\n    test-input (4)\n\
             \n  counters:\n             2  error  first byte is odd\n             2  info   packets seen\n"
        );
        assert_eq!(router.run("show node index 2"), router.run("show node judge"));
        assert!(router.run("show node judge verbose").contains("Thread"));
        let next = &router.json("show node test-input")["next"][1];
        assert_eq!((&next["name"], &next["vectors"]), (&"judge".into(), &2.into()));
        assert_eq!(router.json("show node error-drop")["next"][1]["vectors"], 2);
        router.run("clear runtime");
        assert_eq!(router.json("show node judge")["next"][0]["vectors"], 0);
    }

    #[test]
    fn an_unknown_node_is_refused_with_the_nearest() {
        let router = Router::new();
        assert!(router.refused("show node jugde").contains("judge"));
        assert!(router.refused("show node index 9999").contains("the largest is"));
    }
}
