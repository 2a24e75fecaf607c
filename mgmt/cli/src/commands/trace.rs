//! `trace add`, `show trace`, `clear trace`: what each node saw of a few packets.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use serde::Serialize;
use shoal_graph::thread::ThreadShared;
use shoal_graph::trace::PacketTrace;
use shoal_graph::{FilterUse, Graph, NodeIndex, NodeKind};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Listing, Output, Page};

use super::trace_time::TraceTime;
use crate::filter;

pub(super) const ADD: Command = Command::new(
    "trace add <node> <count:u32> [verbose] [filter [<filter:rest-or-quoted>]]",
    "Trace the next packets that enter at a node",
    add,
)
.doc(
    "`filter` takes a pcap expression, as tcpdump does: `trace add af-packet-input 10 filter icmp and host \
     10.0.0.1`; without one the function decides that `set trace filter function` chose. It sees packets as Ethernet frames and is asked before a packet counts. Asking again replaces what \
     was asked before. `verbose` is taken for VPP's sake; traces are complete without it.",
);

pub(super) const SHOW: Command = Command::new(
    "show trace [max <max:u32>] [json]",
    "Show traced packets",
    show,
)
.examples(&["show trace", "show trace max 100", "show trace json", "sh tr"])
.doc("Times are since the router started, unless `set trace timestamp-format` says otherwise. 50 packets of each thread are shown unless `max` says otherwise.");

pub(super) const FILTER: Command = Command::new(
    "trace filter {none | include <node> <count:u32> | exclude <node> <count:u32>}",
    "Show traced packets that passed a node, or did not, only",
    choose,
)
.doc("At most `count` of each thread are shown. What is traced stays the same; `none` shows all again.")
.examples(&["trace filter none"]);

pub(super) const CLEAR: Command = Command::new("clear trace", "Forget traced packets and end tracing", clear)
    .examples(&["clear trace", "cl tr"]);

/// Packets of each thread shown without `max`.
const MAX: u32 = 50;

fn add(control: &Control, args: &Args) -> Result<Output, CliError> {
    let graph = control.graph()?;
    let name: String = args.get("node")?;
    // As in VPP, a process may be named: packets that it makes enter elsewhere, and nothing of it is traced.
    if let Ok(processes) = control.processes()
        && processes.list().iter().any(|process| process.name == name)
    {
        return Ok(Output::none());
    }
    let node = graph.node(&name)?;
    if graph.node_at(node.number() as usize).is_some_and(|n| n.kind != NodeKind::Input) {
        let mut inputs: Vec<String> = Vec::new();
        graph.each_node(|_, name, kind| {
            if kind == NodeKind::Input {
                inputs.push(name.to_owned());
            }
        });
        let message = format!("packets do not enter at `{name}', but at: {}", inputs.join(", "));
        return Err(CliError::argument("node", message));
    }
    let compile = |text: &str| filter::compile(text).map_err(|e| CliError::argument("filter", e));
    let filter = match args.text("filter") {
        Some(text) => Some(compile(text)?),
        None => args.has("filter").then(|| graph.filters().filter(FilterUse::Trace)),
    };
    graph.trace_add(node, args.get("count")?, filter)?;
    Ok(Output::none())
}

/// Which traced packets are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Passing {
    /// All.
    #[default]
    Any,
    /// Those that passed a node, so many of each thread at most.
    By(NodeIndex, u32),
    /// Those that did not.
    NotBy(NodeIndex, u32),
}

/// What the last shown packets had in common.
#[derive(Default)]
pub(crate) struct Shown(Cell<Passing>);

impl Shown {
    pub(crate) fn of(control: &Control) -> Rc<Shown> {
        control.get::<Shown>().unwrap_or_else(|_| control.put(Shown::default()))
    }

    pub(crate) fn set(&self, passing: Passing) {
        self.0.set(passing);
    }

    /// Whether a packet is shown, of a thread of which so many are shown already.
    fn takes(&self, packet: &PacketTrace, already: usize) -> bool {
        let passed = |node| packet.records.iter().any(|record| record.node == node);
        match self.0.get() {
            Passing::Any => true,
            Passing::By(node, most) => already < most as usize && passed(node),
            Passing::NotBy(node, most) => already < most as usize && !passed(node),
        }
    }

    /// The places of a thread's packets that are shown.
    pub(crate) fn places<'a>(&self, all: &'a [PacketTrace]) -> impl Iterator<Item = usize> + use<'a> {
        let passing = self.0.get();
        let passed = |packet: &PacketTrace, node| packet.records.iter().any(|record| record.node == node);
        let wanted = move |packet: &PacketTrace| match passing {
            Passing::Any => true,
            Passing::By(node, _) => passed(packet, node),
            Passing::NotBy(node, _) => !passed(packet, node),
        };
        let most = match passing {
            Passing::Any => usize::MAX,
            Passing::By(_, most) | Passing::NotBy(_, most) => most as usize,
        };
        let chosen = all.iter().enumerate().filter(move |(_, packet)| wanted(packet));
        chosen.map(|(at, _)| at).take(most)
    }
}

fn choose(control: &Control, args: &Args) -> Result<Output, CliError> {
    let passing = if args.has("none") {
        Passing::Any
    } else {
        let (node, count) = (control.graph()?.node(&args.get::<String>("node")?)?, args.get("count")?);
        if args.has("exclude") { Passing::NotBy(node, count) } else { Passing::By(node, count) }
    };
    Shown::of(control).set(passing);
    Ok(Output::none())
}

fn clear(control: &Control, _: &Args) -> Result<Output, CliError> {
    control.graph()?.trace_clear();
    Ok(Output::none())
}

#[derive(Serialize)]
struct Record {
    time: String,
    node: String,
    lines: Vec<String>,
}

#[derive(Serialize)]
struct OnePacket {
    packet: usize,
    nodes: Vec<Record>,
}

/// `show trace`, packet by packet: nothing of a trace is kept while the client reads.
struct TraceListing {
    graph: Rc<Graph>,
    shown: Rc<Shown>,
    time: TraceTime,
    max: usize,
    threads: VecDeque<Arc<ThreadShared>>,
    now: Option<Progress>,
    begun: bool,
}

/// How far a thread's packets are shown.
struct Progress {
    thread: usize,
    /// The place of the next packet.
    at: usize,
    /// Packets that are chosen, and those of them that were shown.
    chosen: usize,
    shown: usize,
}

/// Packets that are looked at in one step.
const STEP: usize = 16;

impl Listing for TraceListing {
    fn next(&mut self, page: &mut Page) -> ControlFlow<()> {
        if !std::mem::replace(&mut self.begun, true) {
            page.object();
            page.key("threads");
            page.array();
        }
        let Some(mut now) = self.now.take() else {
            let Some(thread) = self.threads.pop_front() else { return ControlFlow::Break(()) };
            let (index, name) = (thread.index, &thread.name);
            page.text(format_args!(
                "------------------- Start of thread {index} {name} -------------------\n"
            ));
            page.object();
            page.key("thread");
            page.value(&index);
            page.key("name");
            page.value(name);
            page.key("packets");
            page.array();
            self.now = Some(Progress { thread: index, at: 0, chosen: 0, shown: 0 });
            return ControlFlow::Continue(());
        };
        if self.step(&mut now, page) {
            self.now = Some(now);
            return ControlFlow::Continue(());
        }
        if now.chosen == 0 {
            page.text("No packets in trace buffer\n");
        }
        if now.shown < now.chosen {
            let max = self.max;
            page.text(format_args!("Limiting display to {max} packets. To display more specify max.\n"));
        }
        page.close();
        // Packets traced, shown or not.
        page.key("traced");
        page.value(&now.chosen);
        page.close();
        ControlFlow::Continue(())
    }
}

impl TraceListing {
    /// Looks at some packets; false behind the last one.
    fn step(&self, now: &mut Progress, page: &mut Page) -> bool {
        self.graph.traces().with(now.thread, |all| {
            for packet in all.iter().skip(now.at).take(STEP) {
                now.at += 1;
                if !self.shown.takes(packet, now.chosen) {
                    continue;
                }
                now.chosen += 1;
                if now.shown < self.max {
                    now.shown += 1;
                    let nodes = records(&self.graph, packet, self.time);
                    page.row(&OnePacket { packet: now.at, nodes });
                }
            }
            now.at < all.len()
        })
    }
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let graph = control.graph()?;
    let listing = TraceListing {
        max: args.or("max", MAX)? as usize,
        shown: Shown::of(control),
        time: TraceTime::of(control),
        threads: graph.threads().into(),
        graph,
        now: None,
        begun: false,
    };
    Ok(if args.has("json") { Output::pretty(listing) } else { Output::listing(listing) })
}

fn records(graph: &Graph, packet: &PacketTrace, time: TraceTime) -> Vec<Record> {
    let record = |r: &shoal_graph::trace::Record| Record {
        time: time.text(graph.clock(), r.time),
        node: graph.node_name(r.node),
        lines: r.to_string().lines().map(str::to_owned).collect(),
    };
    packet.records.iter().map(record).collect()
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.time, self.node)?;
        self.lines.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

/// A packet's trace as text.
pub(crate) fn packet_text(graph: &Graph, at: usize, packet: &PacketTrace, time: TraceTime) -> String {
    let lines = records(graph, packet, time).iter().map(Record::to_string).collect::<String>();
    format!("Packet {}\n\n{lines}\n", at + 1)
}

impl fmt::Display for OnePacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Packet {}\n", self.packet)?;
        self.nodes.iter().try_for_each(|record| record.fmt(f))?;
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;

    #[test]
    fn an_empty_trace_says_so() {
        assert_eq!(
            Router::new().run("show trace"),
            "------------------- Start of thread 0 vpp_main -------------------\nNo packets in trace buffer\n"
        );
    }

    #[test]
    fn each_node_of_a_packets_way_is_shown_in_vpps_layout() {
        let router = Router::new();
        router.pass(3725);
        router.run("trace add test-input 1");
        router.packets(2);
        assert_eq!(
            router.run("show trace"),
            "------------------- Start of thread 0 vpp_main -------------------\n\
             Packet 1\n\n\
             01:02:05:000000: test-input\n  test packet\n\
             01:02:05:000000: judge\n  60 bytes\n  first 3\n\
             01:02:05:000000: error-drop\n  rx: sw_if_index 0\n\
             01:02:05:000000: drop\n  judge: first byte is odd\n\n"
        );
        router.run("cl tr");
        assert!(router.run("show trace").contains("No packets in trace buffer"));
    }

    #[test]
    fn more_packets_than_wanted_are_limited() {
        let router = Router::new();
        router.run("trace add test-input 60");
        router.packets(60);
        let text = router.run("show trace");
        assert!(text.contains("Packet 50\n") && !text.contains("Packet 51\n"));
        assert!(text.ends_with("Limiting display to 50 packets. To display more specify max.\n"));
        let all = router.run("show trace max 100");
        assert!(all.contains("Packet 60\n") && !all.contains("Limiting"));
    }

    #[test]
    fn a_filter_chooses_packets_and_a_wrong_one_is_explained() {
        let router = Router::new();
        router.run("trace add test-input 5 filter tcp");
        router.packets(3);
        assert!(router.run("show trace").contains("No packets"));
        router.run("trace add test-input 5 verbose filter udp and host 10.0.0.1");
        router.packets(3);
        assert!(router.run("show trace").contains("Packet 3\n"));
        assert!(router.refused("trace add test-input 5 filter tpc").contains("syntax error"));
        let wrong = router.refused("trace add judge 5");
        assert!(wrong.contains("packets do not enter at `judge', but at: test-input"), "{wrong}");
    }

    #[test]
    fn json_is_the_same_on_the_line_and_as_a_word() {
        let router = Router::new();
        router.run("trace add test-input 1");
        router.packets(1);
        let word: serde_json::Value = serde_json::from_str(&router.run("show trace json")).unwrap();
        assert_eq!(word, router.json("show trace"));
        assert_eq!(word["threads"][0]["packets"][0]["nodes"][1]["node"], "judge");
    }
}
