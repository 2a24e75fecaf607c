//! The router under test.

use std::fmt::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use shoal_buffer::{Pages, PoolConfig, SwIfIndex};
use shoal_graph::clock::Time;
use shoal_graph::counter::Kind;
use shoal_graph::process::Processes;
use shoal_graph::{Clock, Graph, GraphConfig};
use shoal_interface::Interfaces;
use shoal_module::{Control, Module, init_all, start_all};
use shoal_pg::{CreateInterface, Mode, Pg, Sink};
use shoal_wire::MacAddress;

/// Runs one CLI line; the answer is what the operator would read.
pub type CliFn = fn(&Rc<Control>, &str) -> Result<String, String>;

/// Rounds without rest after which a test has failed: something sends packets in a circle, or a stream has no end.
const MOST_ROUNDS: usize = 200_000;

/// How long workers may take to answer before a test has failed.
const ANSWER: Duration = Duration::from_secs(10);

/// What a router under test is made of.
#[derive(Clone, Debug)]
pub struct Config {
    /// Buffers of its pool, which does not grow.
    pub buffers: usize,
    /// Its clock; [`Clock::manual`] stands still until [`Router::advance`].
    pub clock: Clock,
    /// Runs the lines of [`Router::cli`].
    pub cli: Option<CliFn>,
}

impl Default for Config {
    fn default() -> Self {
        Config { buffers: 4096, clock: Clock::manual(), cli: None }
    }
}

/// A packet-generator interface and what it sent.
#[derive(Clone)]
pub struct Port {
    index: SwIfIndex,
    name: String,
    mac: MacAddress,
    sink: Arc<Sink>,
}

impl Port {
    /// The interface.
    pub fn index(&self) -> SwIfIndex {
        self.index
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its MAC address when the port was made: `02:fe:00:00:00:<number>`.
    pub fn mac(&self) -> MacAddress {
        self.mac
    }

    /// Takes what it sent since the last call, oldest first.
    pub fn received(&self) -> Vec<Vec<u8>> {
        self.sink.take()
    }

    /// Takes the one packet it sent since the last call; anything else fails the test.
    pub fn received_one(&self) -> Vec<u8> {
        let mut all = self.received();
        match (all.pop(), all.len()) {
            (Some(packet), 0) => packet,
            (last, n) => panic!("{} sent {} packets, not 1", self.name, n + usize::from(last.is_some())),
        }
    }
}

/// The router under test: modules, control plane, graph and tasks of one process.
///
/// When it goes out of scope it runs until idle and fails the test if buffers are still in use, so every test is a
/// test for leaks. A feature that rightly keeps packets (waiting for ARP) is to be told to let go first, or the
/// test says so with [`Router::may_hold`].
pub struct Router {
    control: Rc<Control>,
    graph: Rc<Graph>,
    processes: Rc<Processes>,
    interfaces: Rc<Interfaces>,
    pg: Rc<Pg>,
    cli: Option<CliFn>,
    held: usize,
}

impl Router {
    /// A router of these modules, plus `interface` in front and `pg` behind unless they are in the list, and superpaths.
    pub fn new(modules: &[&'static Module]) -> Self {
        Self::with(Config::default(), modules)
    }

    /// As [`Router::new`], with a CLI.
    pub fn with_cli(modules: &[&'static Module], cli: CliFn) -> Self {
        Self::with(Config { cli: Some(cli), ..Config::default() }, modules)
    }

    /// A router made to measure.
    pub fn with(config: Config, modules: &[&'static Module]) -> Self {
        let buffers = PoolConfig {
            name: "default-numa-0".into(),
            buffers: config.buffers,
            most: config.buffers,
            pages: Pages::Small,
        };
        let graph = GraphConfig { buffers, stats_bytes: 1 << 30, clock: config.clock.clone() };
        let graph = Graph::new(graph).expect("the graph gets its memory");
        let control = Rc::new(Control::new());
        control.put_rc(Rc::clone(&graph));
        let processes = control.put(Processes::new(config.clock));
        let modules = complete(modules);
        if let Err(e) = init_all(&control, &modules).and_then(|()| start_all(&control, &modules)) {
            panic!("the router does not start: {e}");
        }
        let interfaces = control.get::<Interfaces>().expect("interface is in the list");
        let pg = control.get::<Pg>().expect("pg is in the list");
        let mut router = Router { control, graph, processes, interfaces, pg, cli: config.cli, held: 0 };
        router.run();
        router
    }

    /// The control plane.
    pub fn control(&self) -> &Rc<Control> {
        &self.control
    }

    /// The control object of a feature.
    pub fn get<T: 'static>(&self) -> Rc<T> {
        self.control.get::<T>().unwrap_or_else(|e| panic!("{e}"))
    }

    /// The graph.
    pub fn graph(&self) -> &Rc<Graph> {
        &self.graph
    }

    /// All interfaces.
    pub fn interfaces(&self) -> &Rc<Interfaces> {
        &self.interfaces
    }

    /// The packet generator.
    pub fn generator(&self) -> &Rc<Pg> {
        &self.pg
    }

    /// The clock's time.
    pub fn now(&self) -> Time {
        self.graph.clock().now()
    }

    /// Creates the Ethernet interface `pg<n>`, admin up.
    pub fn pg(&mut self, n: u32) -> Port {
        self.pg_with(&CreateInterface { id: n, ..CreateInterface::default() })
    }

    /// Creates a packet-generator interface of any kind, admin up, with the MAC `02:fe:00:00:00:<n>` unless it says
    /// another.
    pub fn pg_with(&mut self, create: &CreateInterface) -> Port {
        let mut create = create.clone();
        if create.mode == Mode::Ethernet && create.mac.is_none() {
            create.mac = Some(MacAddress([0x02, 0xfe, 0, 0, 0, create.id as u8]));
        }
        let index = self.pg.create_interface(&create).unwrap_or_else(|e| panic!("pg{}: {e}", create.id));
        self.interfaces.set_admin(index, true).unwrap_or_else(|e| panic!("pg{}: {e}", create.id));
        let sink = self.pg.attach_sink(index).unwrap_or_else(|e| panic!("pg{}: {e}", create.id));
        let info = self.interfaces.info(index).unwrap_or_else(|e| panic!("pg{}: {e}", create.id));
        self.run();
        Port { index, name: info.name, mac: info.mac, sink }
    }

    /// Lets an interface receive a packet, and runs until idle.
    pub fn send(&mut self, port: &Port, bytes: impl AsRef<[u8]>) {
        self.send_all(port, [bytes]);
    }

    /// Lets an interface receive packets in one burst, and runs until idle.
    pub fn send_all<B: AsRef<[u8]>>(&mut self, port: &Port, packets: impl IntoIterator<Item = B>) {
        for packet in packets {
            let injected = self.pg.inject(port.index, packet.as_ref().to_vec());
            injected.unwrap_or_else(|e| panic!("{}: {e}", port.name));
        }
        self.run();
    }

    /// Puts a packet straight into a node, as received by `rx`; it is handled by the next [`Router::run`].
    pub fn inject(&mut self, node: &str, rx: SwIfIndex, bytes: &[u8]) {
        let index = self.graph.node(node).unwrap_or_else(|e| panic!("{e}"));
        let mut main = self.graph.main();
        let mut buffer = main.cache().alloc_data(bytes).expect("the pool is not empty");
        main.cache().packet(&mut buffer).meta_mut().rx = rx;
        main.inject(index, buffer);
    }

    /// Runs rounds of the graph and the tasks until nothing has work, at the time it is. Workers are waited for.
    pub fn run(&mut self) {
        for _ in 0..MOST_ROUNDS {
            let mut worked = self.processes.run_until_idle();
            worked |= self.graph.round().worked;
            if !worked && !self.workers_work() {
                // Not `Graph::housekeeping`: it gives lost tokens back, which would hide a leak.
                shoal_infra::qsbr::reclaim();
                return;
            }
        }
        panic!("the router does not come to rest in {MOST_ROUNDS} rounds");
    }

    /// Whether workers did anything since the last look.
    fn workers_work(&self) -> bool {
        if self.graph.threads().len() < 2 {
            return false;
        }
        let counters = self.graph.graph_counters();
        let vectors = || (0..counters.vectors.len()).map(|n| counters.vectors.sum(n)).sum::<u64>();
        let before = vectors();
        // After the first visit rounds under way are over and have shipped to other threads, after the third what
        // was shipped is handled, too.
        for _ in 0..3 {
            self.graph.barrier(ANSWER).expect("workers answer");
        }
        // The visit itself counts as work of the main thread's next round, not as packets.
        vectors() != before
    }

    /// Moves the clock on, stopping wherever a task, a stream or what a feature keeps is due, and runs.
    pub fn advance(&mut self, by: Duration) {
        let target = self.now().after(by);
        self.run();
        while self.now() < target {
            let timer = self.graph.next_timer().unwrap_or_else(|e| panic!("{e}"));
            let due = self.processes.deadline().into_iter().chain(self.pg.deadline()).chain(timer);
            // Of a timer is known only that it is not due before; looking again tells more.
            // A deadline that has passed belongs to a sleeper that was dropped: step over it.
            let next = due.filter(|due| *due > self.now()).min().map_or(target, |due| due.min(target));
            self.graph.clock().advance(next.since(self.now()));
            self.run();
        }
    }

    /// Runs a CLI line with the executor given at the start.
    ///
    /// # Errors
    /// What the operator would read.
    pub fn cli(&mut self, line: &str) -> Result<String, String> {
        let Some(cli) = self.cli else { panic!("this router was made without a CLI: use Router::with_cli") };
        let answer = cli(&self.control, line);
        self.run();
        answer
    }

    /// Sum over all threads of a node's counter, by the counter's name or text.
    pub fn error(&self, node: &str, what: &str) -> u64 {
        if let Some(count) = self.graph.error_count(node, what) {
            return count;
        }
        let all = self.graph.error_counters();
        let there: Vec<_> = all.iter().filter(|(n, _)| n == node).map(|(_, c)| c.description).collect();
        panic!("{node} has no counter `{what}', it has: {}", there.join(", "))
    }

    /// All node counters that are not zero, as `node: text`, by name. A test that expects no drops compares it
    /// with nothing.
    pub fn errors(&self) -> Vec<(String, u64)> {
        let counters = self.graph.error_counters();
        let errors = &self.graph.graph_counters().errors;
        let line = |(at, (node, c)): (usize, &(String, &shoal_graph::ErrorCounter))| {
            (format!("{node}: {}", c.description), errors.sum(at))
        };
        let mut all: Vec<_> = counters.iter().enumerate().map(line).filter(|(_, n)| *n > 0).collect();
        all.sort();
        all
    }

    /// A counter of the stats segment, such as `/if/drops`: the sum over everything.
    pub fn counter(&self, name: &str) -> u64 {
        self.graph.counters().value(name).unwrap_or_else(|| panic!("no counter `{name}'"))
    }

    /// An interface's counter, such as `/if/rx`: packets, of all threads.
    pub fn if_counter(&self, name: &str, interface: SwIfIndex) -> u64 {
        let at = interface.0 as usize;
        match self.graph.counters().find(name) {
            Some(Kind::Simple(c)) => c.sum(at),
            Some(Kind::Combined(c)) => c.sum(at).0,
            _ => panic!("no counter of interfaces `{name}'"),
        }
    }

    /// Asks for traces of the next packets that enter at a node; `pg-input` for all that tests send.
    pub fn trace_add(&mut self, node: &str, count: u32) {
        let index = self.graph.node(node).unwrap_or_else(|e| panic!("{e}"));
        self.graph.trace_add(index, count, None).unwrap_or_else(|e| panic!("{e}"));
    }

    /// What was traced: for each packet a line per node, `node: its trace`, and an empty line.
    pub fn trace(&self) -> String {
        let mut text = String::new();
        for thread in 0..shoal_graph::MAX_THREADS {
            self.graph.traces().with(thread, |packets| {
                for packet in packets {
                    for record in &packet.records {
                        let _ = writeln!(text, "{}: {record}", self.graph.node_name(record.node));
                    }
                    text.push('\n');
                }
            });
        }
        text
    }

    /// Names of the nodes the traced packets passed, packet by packet.
    pub fn trace_paths(&self) -> Vec<Vec<String>> {
        let mut paths = Vec::new();
        for thread in 0..shoal_graph::MAX_THREADS {
            self.graph.traces().with(thread, |packets| {
                paths.extend(packets.iter().map(|packet| {
                    let mut names: Vec<_> =
                        packet.records.iter().map(|r| self.graph.node_name(r.node)).collect();
                    names.dedup();
                    names
                }));
            });
        }
        paths
    }

    /// Buffers that are in packets now.
    pub fn buffers_in_use(&self) -> usize {
        self.graph.pool().stats().used
    }

    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Says that up to `buffers` packets may rightly be held when the test is over.
    pub fn may_hold(&mut self, buffers: usize) {
        self.held = buffers;
    }
}

/// The modules with the two that the test kit itself needs.
fn complete(modules: &[&'static Module]) -> Vec<&'static Module> {
    let mut all = Vec::new();
    if !modules.iter().any(|m| m.name == shoal_interface::MODULE.name) {
        all.push(&shoal_interface::MODULE);
    }
    all.extend_from_slice(modules);
    if !modules.iter().any(|m| m.name == shoal_pg::MODULE.name) {
        all.push(&shoal_pg::MODULE);
    }
    // The same superpaths as the daemon's, of what is in the list.
    all.push(&shoal_superpaths::MODULE);
    all
}

impl Drop for Router {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.run();
        self.graph.stop_workers().expect("workers end");
        self.run();
        let forgotten = self.graph.error_count("error-drop", "forgotten").unwrap_or(0);
        assert_eq!(forgotten, 0, "packets were left in a frame by a node, or dropped without a reason");
        let used = self.buffers_in_use();
        assert!(used <= self.held, "{used} buffers are still in use, {} may be", self.held);
    }
}
