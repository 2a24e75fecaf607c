//! `show runtime`, `clear runtime`: what nodes cost.

use std::fmt;
use std::sync::atomic::Ordering;

use serde::Serialize;
use shoal_graph::clock::tsc_hz;
use shoal_graph::process::ProcessInfo;
use shoal_graph::thread::ThreadShared;
use shoal_graph::{Graph, Ledger, NodeIndex, NodeInfo, NodeKind, QueueInfo, RxMode};
use shoal_interface::cli::column::{centre, left, line, number};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::rates::{PERIOD, Rate, Rates};

pub(super) const SHOW: Command = Command::new(
    "show runtime [<node>] [time] [max] [verbose] [summary]",
    "Show calls, packets and clocks of nodes by thread",
    show,
)
.examples(&["show runtime", "sh run", "show runtime verbose", "show runtime judge time", "show runtime max"])
.doc(
    "One table per thread, nodes by name; those without calls only with `verbose`. `busy` is the part of the time \
     in which the thread had packets in hand. `time` shows nanoseconds per packet instead of clocks, `summary` only \
     the threads' lines, `max` the dearest call of each node since `clear runtime`: the clocks it took, for how many \
     packets, and both by packet beside the average. For a node with calls but no packets, Packet-Clocks is clocks per call; for a process, per \
     suspend.",
);

/// What VPP users type stays what it is beside `show running-config`: an equal word goes before longer ones.
pub(super) const SHOW_RUN: Command = Command::new(
    "show run [<node>] [time] [max] [verbose] [summary]",
    "Show calls, packets and clocks of nodes by thread: `show runtime' as it is typed",
    show,
)
.examples(&["show run", "show run time"]);

pub(super) const CLEAR: Command =
    Command::new("clear runtime", "Start the counts of `show runtime' anew", clear)
        .examples(&["clear runtime", "cl run"]);

#[derive(Serialize, Default)]
pub(super) struct Row {
    pub name: String,
    pub state: &'static str,
    pub calls: u64,
    pub vectors: u64,
    pub suspends: u64,
    pub clocks: u64,
    /// The most clocks one call took, and how many packets it was given.
    pub max_clocks: u64,
    pub vectors_at_max: u64,
}

#[derive(Serialize)]
struct OneThread {
    thread: usize,
    name: String,
    lcore: Option<u32>,
    seconds: f64,
    vector_rate: f64,
    loops_per_second: f64,
    busy_percent: f64,
    packets_per_second: PerSecond,
    nodes: Vec<Row>,
}

#[derive(Serialize, Default)]
struct PerSecond {
    r#in: f64,
    out: f64,
    drop: f64,
    punt: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
enum Unit {
    Clocks,
    Nanoseconds,
}

/// What is printed of each thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Columns {
    All,
    /// The dearest call of each node.
    Max,
    /// No nodes.
    Summary,
}

#[derive(Serialize)]
struct Runtime {
    threads: Vec<OneThread>,
    #[serde(skip)]
    unit: Unit,
    #[serde(skip)]
    columns: Columns,
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (graph, rates) = (control.graph()?, control.get::<Rates>()?);
    let processes = control.processes().map(|p| p.list()).unwrap_or_default();
    let picked: Option<String> = args.opt("node")?;
    let idle = args.has("verbose") || picked.is_some();
    let mut nodes = graph.nodes();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    let queues = graph.queues();
    let ledgers = graph.ledgers();
    let mut threads = Vec::new();
    for shared in graph.threads() {
        let mut thread = OneThread::new(&graph, &rates, &shared, &nodes);
        let ledger = ledgers.get(&shared.index);
        let rows = nodes.iter().map(|n| row(&graph, n, &shared, &queues, ledger));
        let tasks = processes.iter().filter(|_| shared.index == 0).map(process);
        thread.nodes = rows.chain(tasks).collect();
        thread.nodes.retain(|r| {
            (idle || r.calls > 0 || r.suspends > 0) && picked.as_ref().is_none_or(|name| *name == r.name)
        });
        thread.nodes.sort_by(|a, b| a.name.cmp(&b.name));
        threads.push(thread);
    }
    let unit = if args.has("time") { Unit::Nanoseconds } else { Unit::Clocks };
    let columns = match (args.has("summary"), args.has("max")) {
        (true, _) => Columns::Summary,
        (_, true) => Columns::Max,
        _ => Columns::All,
    };
    Ok(Output::view(Runtime { threads, unit, columns }))
}

fn row(
    graph: &Graph,
    node: &NodeInfo,
    thread: &ThreadShared,
    queues: &[QueueInfo],
    ledger: Option<&Ledger>,
) -> Row {
    let (c, at) = (graph.graph_counters(), node.index.number() as usize);
    let dearest = ledger.map(|l| l.dearest(node.index)).unwrap_or_default();
    Row {
        name: node.name.clone(),
        state: state(node.index, node.kind, thread, queues),
        calls: c.calls.get(thread.index, at),
        vectors: c.vectors.get(thread.index, at),
        suspends: c.suspends.get(thread.index, at),
        clocks: c.clocks.get(thread.index, at),
        max_clocks: dearest.clocks,
        vectors_at_max: dearest.vectors,
    }
}

fn process(info: &ProcessInfo) -> Row {
    // A task may wait for anything at once; VPP's word for that is `any wait`.
    let state = if info.ended { "done" } else { "any wait" };
    let (suspends, clocks) = (info.suspends, info.clocks);
    Row { name: info.name.into(), state, suspends, clocks, ..Row::default() }
}

/// What a thread does with a node, in VPP's words.
pub(super) fn state(
    node: NodeIndex,
    kind: NodeKind,
    thread: &ThreadShared,
    queues: &[QueueInfo],
) -> &'static str {
    if kind != NodeKind::Input {
        return "active";
    }
    let mut modes =
        queues.iter().filter(|q| q.node == node && q.thread == thread.index).map(|q| q.mode).peekable();
    if modes.peek().is_none() {
        return "disabled";
    }
    let waits = |mode| match mode {
        RxMode::Polling => false,
        RxMode::Interrupt => true,
        RxMode::Adaptive => thread.is_asleep(),
    };
    if modes.all(waits) { "interrupt wait" } else { "polling" }
}

impl OneThread {
    fn new(graph: &Graph, rates: &Rates, shared: &ThreadShared, nodes: &[NodeInfo]) -> Self {
        let seconds = graph.clock().now().since(rates.cleared()).as_secs_f64();
        let vectors = &graph.graph_counters().vectors;
        let per_second = |picked: &dyn Fn(&NodeInfo) -> bool| {
            let of = |n: &NodeInfo| vectors.get(shared.index, n.index.number() as usize);
            let sum: u64 = nodes.iter().filter(|n| picked(n)).map(of).sum();
            if seconds > 0.0 { sum as f64 / seconds } else { 0.0 }
        };
        let Rate { vector_rate, loops_per_second } = rates.of(graph, shared.index);
        let cpu = shared.cpu.load(Ordering::Relaxed);
        OneThread {
            thread: shared.index,
            name: shared.name.clone(),
            lcore: (cpu != u32::MAX).then_some(cpu),
            seconds,
            vector_rate,
            loops_per_second,
            busy_percent: shared.busy_percent(),
            packets_per_second: PerSecond {
                r#in: per_second(&|n| n.kind == NodeKind::Input),
                out: per_second(&|n| n.name.ends_with("-tx")),
                drop: per_second(&|n| n.name == "drop"),
                punt: per_second(&|n| n.name == "punt"),
            },
            nodes: Vec::new(),
        }
    }
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, thread) in self.threads.iter().enumerate() {
            if at > 0 {
                writeln!(f, "---------------")?;
            }
            if self.threads.len() > 1 {
                write!(f, "Thread {} {}", thread.thread, thread.name)?;
                match thread.lcore {
                    Some(cpu) => writeln!(f, " (lcore {cpu})")?,
                    None => writeln!(f)?,
                }
            }
            thread.fmt_rates(f)?;
            match self.columns {
                Columns::Summary => {}
                Columns::All => {
                    header(f, self.unit)?;
                    thread.nodes.iter().try_for_each(|row| row.fmt_as(f, self.unit))?;
                }
                Columns::Max => {
                    max_header(f, self.unit)?;
                    // Of processes nothing is noted.
                    let mut ran = thread.nodes.iter().filter(|row| row.max_clocks > 0);
                    ran.try_for_each(|row| row.fmt_max(f, self.unit))?;
                }
            }
        }
        Ok(())
    }
}

impl OneThread {
    fn fmt_rates(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Time {:.1}, {PERIOD} sec internal node vector rate {:.2} loops/sec {:.2}, busy {:.2}%",
            self.seconds, self.vector_rate, self.loops_per_second, self.busy_percent
        )?;
        let PerSecond { r#in, out, drop, punt } = self.packets_per_second;
        writeln!(f, "  vector rates in {in:.4e}, out {out:.4e}, drop {drop:.4e}, punt {punt:.4e}")
    }
}

fn header(f: &mut fmt::Formatter<'_>, unit: Unit) -> fmt::Result {
    f.write_str(&line(&[
        centre("Name", 30),
        centre("State", 12),
        centre("Calls", 16),
        centre("Vectors", 16),
        centre("Suspends", 16),
        centre(if unit == Unit::Clocks { "Packet-Clocks" } else { "Packet-Nanosec" }, 16),
        centre("Vectors/Call", 16),
    ]))
}

impl Row {
    fn fmt_as(&self, f: &mut fmt::Formatter<'_>, unit: Unit) -> fmt::Result {
        let each = [self.vectors, self.calls, self.suspends].into_iter().find(|n| *n > 0);
        let clocks = each.map_or(0.0, |n| self.clocks as f64 / n as f64);
        let cost = unit.of(clocks);
        let ratio = if self.calls > 0 { self.vectors as f64 / self.calls as f64 } else { 0.0 };
        f.write_str(&line(&[
            left(&self.name, 30),
            centre(self.state, 12),
            format!("{:>16}{:>16}{:>16}", self.calls, self.vectors, self.suspends),
            format!("{cost:>16.2e}{ratio:>16.2}"),
        ]))
    }

    /// The dearest call beside the average one.
    fn fmt_max(&self, f: &mut fmt::Formatter<'_>, unit: Unit) -> fmt::Result {
        let ratio = |a: f64, n: u64| if n > 0 { a / n as f64 } else { 0.0 };
        let most = unit.of(self.max_clocks as f64);
        f.write_str(&line(&[
            left(&self.name, 30),
            number(format_args!("{most:.2e}"), 17),
            number(self.vectors_at_max, 16),
            format!("{:>16.2e}", ratio(most, self.vectors_at_max)),
            format!("{:>16.2e}", ratio(unit.of(self.clocks as f64), self.vectors)),
            format!("{:>16.2}", ratio(self.vectors as f64, self.calls)),
        ]))
    }
}

fn max_header(f: &mut fmt::Formatter<'_>, unit: Unit) -> fmt::Result {
    let [node, most, average] = match unit {
        Unit::Clocks => ["Max Node Clocks", "Max Clocks", "Avg Clocks"],
        Unit::Nanoseconds => ["Max Node Nanosec", "Max Nanosec", "Avg Nanosec"],
    };
    f.write_str(&line(&[
        centre("Name", 30),
        centre(node, 17),
        centre("Vectors at Max", 16),
        centre(most, 16),
        centre(average, 16),
        centre("Avg Vectors/Call", 16),
    ]))
}

impl Unit {
    fn of(self, clocks: f64) -> f64 {
        match self {
            Unit::Clocks => clocks,
            Unit::Nanoseconds => clocks / tsc_hz() * 1e9,
        }
    }
}

fn clear(control: &Control, _: &Args) -> Result<Output, CliError> {
    let graph = control.graph()?;
    let c = graph.graph_counters();
    let counters = [c.calls.clone(), c.vectors.clone(), c.clocks.clone(), c.suspends.clone()];
    graph.on_every_thread(move |worker| {
        for counter in &counters {
            counter.clear_thread(worker.thread());
        }
        worker.clear_ledger();
    })?;
    graph.threads().iter().for_each(|t| t.clear_busy());
    if let Ok(processes) = control.processes() {
        processes.clear();
    }
    control.get::<Rates>()?.clear(&graph);
    graph.mark_cleared();
    Ok(Output::none())
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;
    use super::*;

    fn row(name: &str, state: &'static str, numbers: [u64; 4]) -> Row {
        let [calls, vectors, suspends, clocks] = numbers;
        Row { name: name.into(), state, calls, vectors, suspends, clocks, ..Row::default() }
    }

    fn thread(thread: usize, name: &str, lcore: Option<u32>, nodes: Vec<Row>) -> OneThread {
        OneThread {
            thread,
            name: name.into(),
            lcore,
            seconds: 12.34,
            vector_rate: 0.0,
            loops_per_second: 1_234_567.89,
            busy_percent: 3.214,
            packets_per_second: PerSecond { r#in: 12.5, ..PerSecond::default() },
            nodes,
        }
    }

    #[test]
    fn the_table_has_vpps_columns() {
        let nodes = vec![
            row("ethernet-input", "active", [10, 2560, 0, 25600]),
            row("ping-process", "any wait", [0, 0, 4, 4000]),
        ];
        let runtime = Runtime {
            threads: vec![thread(0, "vpp_main", None, nodes)],
            unit: Unit::Clocks,
            columns: Columns::All,
        };
        assert_eq!(
            runtime.to_string(),
            "Time 12.3, 10 sec internal node vector rate 0.00 loops/sec 1234567.89, busy 3.21%\n  \
             vector rates in 1.2500e1, out 0.0000e0, drop 0.0000e0, punt 0.0000e0\n\
             \x20            Name                 State         Calls          Vectors        Suspends      \
             Packet-Clocks   Vectors/Call\n\
             ethernet-input                   active                 10            2560               0          \
             1.00e1          256.00\n\
             ping-process                    any wait                 0               0               4          \
             1.00e3            0.00\n"
        );
    }

    #[test]
    fn the_dearest_calls_stand_beside_the_average() {
        let most = |mut row: Row| {
            (row.max_clocks, row.vectors_at_max) = (5120, 64);
            row
        };
        let nodes = vec![most(row("ip4-lookup", "active", [10, 2560, 0, 25600]))];
        let threads = vec![thread(0, "vpp_main", None, nodes)];
        let text = Runtime { threads, unit: Unit::Clocks, columns: Columns::Max }.to_string();
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "             Name              Max Node Clocks  Vectors at Max    Max Clocks      Avg Clocks   \
                 Avg Vectors/Call",
                "ip4-lookup                          5.12e3            64                 8.00e1          1.00e1          \
                 256.00",
            ]
        );
    }

    #[test]
    fn the_dearest_call_is_kept_until_cleared() {
        let router = Router::new();
        router.packets(3);
        let judge = |router: &Router| {
            let json = router.json("show runtime judge max");
            let row = &json["threads"][0]["nodes"][0];
            (row["max_clocks"].as_u64().unwrap(), row["vectors_at_max"].as_u64().unwrap())
        };
        assert!(judge(&router).0 > 0 && judge(&router).1 == 1, "packets come one by one");
        let text = router.run("show runtime max");
        assert!(text.contains("Max Node Clocks") && text.contains("judge"), "{text}");
        assert!(router.run("show runtime max time").contains("Max Node Nanosec"));
        assert_eq!(router.run("show runtime max summary").lines().count(), 2, "a summary names no nodes");
        router.run("clear runtime");
        assert_eq!(judge(&router), (0, 0));
    }

    #[test]
    fn several_threads_have_headings() {
        let threads = vec![thread(0, "vpp_main", None, vec![]), thread(1, "vpp_wk_0", Some(3), vec![])];
        let text = Runtime { threads, unit: Unit::Clocks, columns: Columns::Summary }.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Thread 0 vpp_main");
        assert_eq!(lines[3], "---------------");
        assert_eq!(lines[4], "Thread 1 vpp_wk_0 (lcore 3)");
        assert_eq!(lines.len(), 7, "no tables in a summary");
    }

    #[test]
    fn nodes_with_calls_are_shown_and_cleared() {
        let router = Router::new();
        assert!(!router.run("show runtime").contains("judge"));
        router.packets(5);
        let json = router.json("show runtime");
        let nodes = json["threads"][0]["nodes"].as_array().unwrap();
        let judge = nodes.iter().find(|n| n["name"] == "judge").unwrap();
        assert_eq!((&judge["calls"], &judge["vectors"]), (&5.into(), &5.into()));
        assert!(router.run("show runtime judge").lines().count() == 4);
        router.run("clear runtime");
        assert!(!router.run("sh run").contains("judge"));
        assert!(router.run("show runtime verbose").contains("judge"));
        assert!(router.run("show runtime verbose").contains("disabled"), "an input without queues");
    }

    #[test]
    fn a_polled_input_is_polling_and_one_with_interrupts_waits() {
        let router = Router::new();
        let (graph, node) = (router.graph(), NodeIndex::from_number(9));
        let queue = |mode| QueueInfo {
            id: shoal_graph::QueueId(1),
            interface: "a0".into(),
            queue: 0,
            node,
            thread: 0,
            mode,
            count: std::sync::Arc::default(),
        };
        let main = graph.threads().remove(0);
        let of = |mode| state(node, NodeKind::Input, &main, &[queue(mode)]);
        assert_eq!(of(RxMode::Polling), "polling");
        assert_eq!(of(RxMode::Interrupt), "interrupt wait");
        assert_eq!(state(node, NodeKind::Input, &main, &[]), "disabled");
        assert_eq!(state(node, NodeKind::Internal, &main, &[]), "active");
    }
}
