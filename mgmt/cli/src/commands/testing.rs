//! A router without features, its command line, and packets through a node that drops them.

use std::rc::Rc;
use std::time::Duration;

use shoal_buffer::Packet;
use shoal_graph::process::Processes;
use shoal_graph::{
    Clock, Cx, ErrorCounter, ErrorCounters, FrameCx, Graph, GraphConfig, NextNodes, NoNext, NodeIndex,
    PacketNode, RxQueue, Severity,
};
use shoal_interface as interface;
use shoal_module::{Control, Module, ModuleList, init_all};

use crate::Cli;

/// Why [`Judge`] drops.
#[derive(Clone, Copy, Debug)]
pub enum Error {
    Odd,
    Seen,
}

impl ErrorCounters for Error {
    const COUNTERS: &'static [ErrorCounter] = &[
        ErrorCounter { name: "odd", description: "first byte is odd", severity: Severity::Error, at: None },
        ErrorCounter { name: "seen", description: "packets seen", severity: Severity::Info, at: None },
    ];

    fn index(self) -> u32 {
        self as u32
    }
}

/// Drops every packet.
pub struct Judge;

impl PacketNode for Judge {
    const NAME: &'static str = "judge";
    type Next = NoNext;
    type Error = Error;
    type Trace = String;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<NoNext, Error> {
        cx.count(Error::Seen, 1);
        cx.trace(pkt, || format!("{} bytes\nfirst {}", pkt.len(), pkt.data().first().unwrap_or(&0)));
        Err(Error::Odd)
    }
}

#[derive(Clone, Copy)]
pub struct ToJudge;

impl NextNodes for ToJudge {
    const NAMES: &'static [&'static str] = &["judge"];

    fn edge(self) -> shoal_graph::Edge {
        shoal_graph::Edge(1)
    }
}

/// Makes packets until it has made `left`.
struct Source {
    left: usize,
    to: NodeIndex,
}

impl RxQueue for Source {
    fn poll(&mut self, cx: &mut FrameCx<'_>) -> usize {
        if self.left == 0 {
            return 0;
        }
        self.left -= 1;
        let mut buffer = cx.cache().alloc_data(&frame()).unwrap();
        if cx.wants_trace() {
            let mut pkt = cx.cache().packet(&mut buffer);
            cx.begin_trace(&mut pkt, "test packet");
        }
        cx.send_to(self.to, buffer);
        1
    }

    fn is_parked(&self) -> bool {
        self.left == 0
    }
}

/// An Ethernet frame with an empty UDP packet.
pub fn frame() -> Vec<u8> {
    let mut bytes = vec![3; 12];
    bytes.extend([0x08, 0x00, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend([0; 26]);
    bytes
}

pub struct Router {
    pub control: Rc<Control>,
    pub cli: Cli,
}

impl Router {
    pub fn new() -> Self {
        Self::with_clock(Clock::manual())
    }

    pub fn with_clock(clock: Clock) -> Self {
        static MODULES: [&Module; 2] = [&interface::MODULE, &super::MODULE];
        let config = GraphConfig { stats_bytes: 1 << 30, clock: clock.clone(), ..GraphConfig::default() };
        let control = Rc::new(Control::new());
        let graph = control.put_rc(Graph::new(config).unwrap());
        control.put(Processes::new(clock));
        control.put(ModuleList(MODULES.to_vec()));
        graph.add_packet(Judge).unwrap();
        let wire = graph.add_packet_named("ethernet-input", Judge);
        wire.unwrap();
        graph.add_input::<ToJudge, shoal_graph::NoError>("test-input").unwrap();
        init_all(&control, &MODULES).unwrap();
        let cli = Cli::new(
            MODULES.iter().flat_map(|m| m.commands),
            MODULES.iter().flat_map(|m| m.arg_types).chain(shoal_module::cli::WIRE),
        )
        .unwrap();
        Router { control, cli }
    }

    pub fn graph(&self) -> Rc<Graph> {
        self.control.graph().unwrap()
    }

    /// The text of a command that must succeed.
    pub fn run(&self, line: &str) -> String {
        let reply = self.cli.execute_now(&self.control, line);
        assert!(reply.is_ok(), "{line}: {}", reply.text());
        reply.text()
    }

    /// The text of a command that must fail.
    pub fn refused(&self, line: &str) -> String {
        let reply = self.cli.execute_now(&self.control, line);
        assert!(!reply.is_ok(), "{line}: {}", reply.text());
        reply.text()
    }

    /// The JSON of a command that must succeed.
    pub fn json(&self, line: &str) -> serde_json::Value {
        serde_json::from_str(&self.run(&format!("{line} --json"))).unwrap()
    }

    /// A queue that brings so many packets to a thread.
    pub fn source(&self, count: usize, thread: usize) -> shoal_graph::QueueId {
        self.source_to("judge", count, thread)
    }

    /// The same, to another node.
    fn source_to(&self, to: &str, count: usize, thread: usize) -> shoal_graph::QueueId {
        let graph = self.graph();
        let (node, to) = (graph.node("test-input").unwrap(), graph.node(to).unwrap());
        graph.add_queue("local0", 0, node, Some(thread), Box::new(Source { left: count, to })).unwrap()
    }

    /// Sends packets in on the main thread until all are dropped.
    pub fn packets(&self, count: usize) {
        self.packets_to("judge", count);
    }

    /// The same, to another node.
    pub fn packets_to(&self, to: &str, count: usize) {
        let graph = self.graph();
        let queue = self.source_to(to, count, 0);
        while graph.round().worked {}
        graph.remove_queue(queue).unwrap();
    }

    /// Lets time pass.
    pub fn pass(&self, seconds: u64) {
        self.graph().clock().advance(Duration::from_secs(seconds));
        self.control.processes().unwrap().run_until_idle();
    }
}
