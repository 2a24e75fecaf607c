//! `show runtime`, `clear runtime`: what nodes cost.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::Serialize;
use shoal_graph::clock::tsc_hz;
use shoal_graph::process::ProcessInfo;
use shoal_graph::thread::ThreadShared;
use shoal_graph::{DispatchLedger, Graph, NodeBrief, NodeIndex, NodeKind, QueueInfo, RxMode};
use shoal_interface::cli::column::{centre, left, line, number};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Listing, Output, Page};

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

pub(super) const CLEAR: Command = Command::new("clear runtime", "Reset the counts of `show runtime'", clear)
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

/// What is shown of a thread before its nodes.
#[derive(Serialize, Default)]
struct OneThread {
    thread: usize,
    name: String,
    lcore: Option<u32>,
    seconds: f64,
    vector_rate: f64,
    loops_per_second: f64,
    busy_percent: f64,
    packets_per_second: PerSecond,
}

#[derive(Serialize, Default)]
struct PerSecond {
    r#in: f64,
    out: f64,
    drop: f64,
    punt: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
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

/// What is to be listed still: thread by thread, nodes by name.
struct Runtime {
    graph: Rc<Graph>,
    rates: Rc<Rates>,
    threads: VecDeque<Arc<ThreadShared>>,
    queues: Vec<QueueInfo>,
    ledgers: BTreeMap<usize, DispatchLedger>,
    /// Tasks of the main thread, by name.
    tasks: VecDeque<ProcessInfo>,
    /// The only node that is wanted.
    picked: Option<String>,
    /// Whether those without calls are shown.
    idle: bool,
    unit: Unit,
    columns: Columns,
    /// Whether text names the threads.
    several: bool,
    begun: bool,
    at: Place,
}

/// How far it is.
enum Place {
    Start,
    /// Sums of the first thread: the next node that is looked at, and packets so far.
    Sums(usize, PerSecond),
    /// Nodes of the first thread behind this name.
    Nodes(Arc<str>),
}

/// Nodes that are looked at without a pause.
const STEPS: usize = 64;

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (graph, rates) = (control.graph()?, control.get::<Rates>()?);
    let mut tasks = control.processes().map(|p| p.list()).unwrap_or_default();
    tasks.sort_by_key(|task| task.name);
    let picked: Option<String> = args.opt("node")?;
    let threads: VecDeque<_> = graph.threads().into();
    let columns = match (args.has("summary"), args.has("max")) {
        (true, _) => Columns::Summary,
        (_, true) => Columns::Max,
        _ => Columns::All,
    };
    Ok(Output::listing(Runtime {
        queues: graph.queues(),
        ledgers: graph.ledgers(),
        tasks: tasks.into(),
        idle: args.has("verbose") || picked.is_some(),
        picked,
        unit: if args.has("time") { Unit::Nanoseconds } else { Unit::Clocks },
        columns,
        several: threads.len() > 1,
        begun: false,
        at: Place::Start,
        threads,
        graph,
        rates,
    }))
}

impl Listing for Runtime {
    fn next(&mut self, page: &mut Page) -> ControlFlow<()> {
        let Some(thread) = self.threads.front().cloned() else { return ControlFlow::Break(()) };
        match std::mem::replace(&mut self.at, Place::Start) {
            Place::Start => {
                if !std::mem::replace(&mut self.begun, true) {
                    page.object();
                    page.key("threads");
                    page.array();
                }
                self.at = Place::Sums(0, PerSecond::default());
            }
            Place::Sums(from, sums) => self.at = self.sum(&thread, from, sums, page),
            Place::Nodes(after) => {
                if let Some(last) = self.rows(&thread, after, page) {
                    self.at = Place::Nodes(last);
                } else {
                    page.close();
                    page.close();
                    self.threads.pop_front();
                    // They are those of the first thread only.
                    self.tasks.clear();
                    if !self.threads.is_empty() {
                        page.text("---------------\n");
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }
}

impl Runtime {
    /// Adds up some more nodes; after the last one comes the thread's heading.
    fn sum(&self, thread: &ThreadShared, from: usize, mut sums: PerSecond, page: &mut Page) -> Place {
        let vectors = &self.graph.graph_counters().vectors;
        let to = self.graph.node_places().min(from + STEPS);
        for node in (from..to).filter_map(|at| self.graph.node_at(at)) {
            let packets = vectors.get(thread.index, node.index.number() as usize) as f64;
            match &*node.name {
                "drop" => sums.drop += packets,
                "punt" => sums.punt += packets,
                name if name.ends_with("-tx") => sums.out += packets,
                _ => {}
            }
            if node.kind == NodeKind::Input {
                sums.r#in += packets;
            }
        }
        if to < self.graph.node_places() {
            return Place::Sums(to, sums);
        }
        let head = OneThread::new(&self.graph, &self.rates, thread, &sums);
        if self.several {
            page.text(head.heading());
        }
        page.text(head.rates());
        match self.columns {
            Columns::Summary => {}
            Columns::All => page.text(header(self.unit)),
            Columns::Max => page.text(max_header(self.unit)),
        }
        page.object();
        page.members(&head);
        page.key("nodes");
        page.array();
        Place::Nodes("".into())
    }

    /// Lists nodes and tasks behind this name, and tells the last one that was looked at; none if there are no more.
    fn rows(&mut self, thread: &ThreadShared, after: Arc<str>, page: &mut Page) -> Option<Arc<str>> {
        if self.columns == Columns::Summary && !page.is_json() {
            return None;
        }
        let mut last = after;
        for _ in 0..STEPS {
            let node = self.graph.node_after(&last);
            let task = self.tasks.front();
            let task_first = match (&node, task) {
                (None, None) => return None,
                (Some(node), Some(task)) => *task.name < *node.name,
                (node, _) => node.is_none(),
            };
            let row = if task_first {
                process(&self.tasks.pop_front()?)
            } else {
                let node = node?;
                last = Arc::clone(&node.name);
                if self.picked.as_ref().is_some_and(|name| **name != *node.name) {
                    continue;
                }
                row(&self.graph, &node, thread, &self.queues, self.ledgers.get(&thread.index))
            };
            let wanted = self.picked.as_ref().is_none_or(|name| *name == row.name);
            if wanted && (self.idle || row.calls > 0 || row.suspends > 0) {
                page.value(&row);
                match self.columns {
                    Columns::Max if row.max_clocks > 0 => page.text(row.dearest_call(self.unit)),
                    Columns::All => page.text(row.line(self.unit)),
                    // Of processes nothing is noted.
                    Columns::Max | Columns::Summary => {}
                }
            }
        }
        Some(last)
    }
}

fn row(
    graph: &Graph,
    node: &NodeBrief,
    thread: &ThreadShared,
    queues: &[QueueInfo],
    ledger: Option<&DispatchLedger>,
) -> Row {
    let (c, at) = (graph.graph_counters(), node.index.number() as usize);
    let slowest_call = ledger.map(|l| l.slowest_call(node.index)).unwrap_or_default();
    Row {
        name: node.name.to_string(),
        state: state(node.index, node.kind, thread, queues),
        calls: c.calls.get(thread.index, at),
        vectors: c.vectors.get(thread.index, at),
        suspends: c.suspends.get(thread.index, at),
        clocks: c.clocks.get(thread.index, at),
        max_clocks: slowest_call.clocks,
        vectors_at_max: slowest_call.vectors,
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
    /// `sums` are packets since the counts began.
    fn new(graph: &Graph, rates: &Rates, shared: &ThreadShared, sums: &PerSecond) -> Self {
        let seconds = graph.clock().now().since(rates.cleared()).as_secs_f64();
        let per_second = |packets: f64| if seconds > 0.0 { packets / seconds } else { 0.0 };
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
                r#in: per_second(sums.r#in),
                out: per_second(sums.out),
                drop: per_second(sums.drop),
                punt: per_second(sums.punt),
            },
        }
    }

    fn heading(&self) -> String {
        let cpu = self.lcore.map(|cpu| format!(" (lcore {cpu})")).unwrap_or_default();
        format!("Thread {} {}{cpu}\n", self.thread, self.name)
    }

    fn rates(&self) -> String {
        let PerSecond { r#in, out, drop, punt } = self.packets_per_second;
        format!(
            "Time {:.1}, {PERIOD} sec internal node vector rate {:.2} loops/sec {:.2}, busy {:.2}%\n  \
             vector rates in {in:.4e}, out {out:.4e}, drop {drop:.4e}, punt {punt:.4e}\n",
            self.seconds, self.vector_rate, self.loops_per_second, self.busy_percent
        )
    }
}

fn header(unit: Unit) -> String {
    line(&[
        centre("Name", 30),
        centre("State", 12),
        centre("Calls", 16),
        centre("Vectors", 16),
        centre("Suspends", 16),
        centre(if unit == Unit::Clocks { "Packet-Clocks" } else { "Packet-Nanosec" }, 16),
        centre("Vectors/Call", 16),
    ])
}

impl Row {
    fn line(&self, unit: Unit) -> String {
        let each = [self.vectors, self.calls, self.suspends].into_iter().find(|n| *n > 0);
        let clocks = each.map_or(0.0, |n| self.clocks as f64 / n as f64);
        let cost = unit.of(clocks);
        let ratio = if self.calls > 0 { self.vectors as f64 / self.calls as f64 } else { 0.0 };
        line(&[
            left(&self.name, 30),
            centre(self.state, 12),
            format!("{:>16}{:>16}{:>16}", self.calls, self.vectors, self.suspends),
            format!("{cost:>16.2e}{ratio:>16.2}"),
        ])
    }

    /// The dearest call beside the average one.
    fn dearest_call(&self, unit: Unit) -> String {
        let ratio = |a: f64, n: u64| if n > 0 { a / n as f64 } else { 0.0 };
        let most = unit.of(self.max_clocks as f64);
        line(&[
            left(&self.name, 30),
            number(format_args!("{most:.2e}"), 17),
            number(self.vectors_at_max, 16),
            format!("{:>16.2e}", ratio(most, self.vectors_at_max)),
            format!("{:>16.2e}", ratio(unit.of(self.clocks as f64), self.vectors)),
            format!("{:>16.2}", ratio(self.vectors as f64, self.calls)),
        ])
    }
}

fn max_header(unit: Unit) -> String {
    let [node, most, average] = match unit {
        Unit::Clocks => ["Max Node Clocks", "Max Clocks", "Avg Clocks"],
        Unit::Nanoseconds => ["Max Node Nanosec", "Max Nanosec", "Avg Nanosec"],
    };
    line(&[
        centre("Name", 30),
        centre(node, 17),
        centre("Vectors at Max", 16),
        centre(most, 16),
        centre(average, 16),
        centre("Avg Vectors/Call", 16),
    ])
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

    #[test]
    fn the_table_has_vpps_columns() {
        let head = OneThread {
            name: "vpp_main".into(),
            seconds: 12.34,
            loops_per_second: 1_234_567.89,
            busy_percent: 3.214,
            packets_per_second: PerSecond { r#in: 12.5, ..PerSecond::default() },
            ..OneThread::default()
        };
        let nodes = [
            row("ethernet-input", "active", [10, 2560, 0, 25600]),
            row("ping-process", "any wait", [0, 0, 4, 4000]),
        ];
        let unit = Unit::Clocks;
        assert_eq!(
            [head.rates(), header(unit), nodes[0].line(unit), nodes[1].line(unit)].concat(),
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
        let mut row = row("ip4-lookup", "active", [10, 2560, 0, 25600]);
        (row.max_clocks, row.vectors_at_max) = (5120, 64);
        assert_eq!(
            max_header(Unit::Clocks) + &row.dearest_call(Unit::Clocks),
            "             Name              Max Node Clocks  Vectors at Max    Max Clocks      Avg Clocks   \
             Avg Vectors/Call\n\
             ip4-lookup                          5.12e3            64                 8.00e1          1.00e1          \
             256.00\n",
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
        let of = |lcore| OneThread { thread: 1, name: "vpp_wk_0".into(), lcore, ..OneThread::default() };
        assert_eq!(of(None).heading(), "Thread 1 vpp_wk_0\n");
        assert_eq!(of(Some(3)).heading(), "Thread 1 vpp_wk_0 (lcore 3)\n");
        let router = Router::new();
        router.run("create worker");
        let text = router.run("show runtime summary");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[3]), ("Thread 0 vpp_main", "---------------"));
        assert!(lines[4].starts_with("Thread 1 vpp_wk_0"), "{text}");
        assert_eq!(lines.len(), 7, "no tables in a summary");
        let json = router.json("show runtime verbose");
        assert_eq!(json["threads"].as_array().map(Vec::len), Some(2));
        let names: Vec<_> =
            json["threads"][0]["nodes"].as_array().unwrap().iter().map(|n| n["name"].as_str()).collect();
        assert!(names.is_sorted() && names.len() > 3, "{names:?}");
        router.graph().stop_workers().unwrap();
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
