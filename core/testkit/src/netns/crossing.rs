//! A router on a thread of its own inside a namespace, for tests of drivers: interfaces, the driver, and nodes called
//! `ethernet-input` and `ip4-input` that carry every packet across from one interface to the other.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use shoal_buffer::{Packet, Pages, PoolConfig};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::process::{Processes, Wake};
use shoal_graph::thread::ThreadShared;
use shoal_graph::{Clock, Cx, Graph, GraphConfig, PacketNode};
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_module::{Control, InitError, Module, init_all, start_all};

use super::Namespace;

#[derive(NextNodes, Clone, Copy, Debug)]
enum Next {
    #[node("interface-output")]
    Output,
}

#[derive(ErrorCounters, Clone, Copy, Debug)]
enum Error {
    /// no other port
    NoOther,
}

#[derive(TraceLine)]
#[line("across: {rx} -> {tx}")]
struct Trace {
    rx: u32,
    tx: u32,
}

/// The two ports' indices.
#[derive(Clone, Default)]
struct Ports(Arc<[AtomicU32; 2]>);

struct Across(Ports);

impl PacketNode for Across {
    const NAME: &'static str = "ethernet-input";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let [a, b] = [0, 1].map(|i| self.0.0[i].load(Ordering::Relaxed));
        let rx = pkt.rx().0;
        let tx = if rx == a {
            b
        } else if rx == b {
            a
        } else {
            return Err(Error::NoOther);
        };
        pkt.meta_mut().tx = SwIfIndex(tx);
        cx.trace(pkt, || Trace { rx, tx });
        Ok(Next::Output)
    }
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let ports = control.put(Ports::default());
    control.graph()?.add_packet(Across(Ports::clone(&ports)))?;
    control.graph()?.add_packet_named("ip4-input", Across(Ports::clone(&ports)))?;
    Ok(())
}

static ACROSS: Module = Module { name: "across", description: "test", init, ..Module::NONE };

/// What a job on the router's main thread may use.
pub struct Inside {
    /// The control planes.
    pub control: Rc<Control>,
    /// The graph.
    pub graph: Rc<Graph>,
    /// The interfaces.
    pub interfaces: Rc<Interfaces>,
}

impl Inside {
    fn new(driver: &'static Module, buffers: usize) -> Self {
        let control = Rc::new(Control::new());
        let clock = Clock::real();
        let buffers = PoolConfig { name: "test".into(), buffers, most: buffers, pages: Pages::Small };
        let graph = Graph::new(GraphConfig { buffers, stats_bytes: 1 << 30, clock: clock.clone() }).unwrap();
        control.put_rc(Rc::clone(&graph));
        control.put(Processes::new(clock));
        let modules = [&shoal_interface::MODULE, &ACROSS, driver];
        init_all(&control, &modules).unwrap();
        start_all(&control, &modules).unwrap();
        let interfaces = control.get::<Interfaces>().unwrap();
        Inside { control, graph, interfaces }
    }

    /// The two interfaces between which packets cross.
    pub fn join(&self, ends: [SwIfIndex; 2]) {
        let Ok(ports) = self.control.get::<Ports>() else { return };
        ports.0.iter().zip(ends).for_each(|(port, end)| port.store(end.0, Ordering::Relaxed));
    }

    /// Packets received and sent, tx errors, misses of an interface.
    pub fn counts(&self, index: SwIfIndex) -> (u64, u64, u64, u64) {
        let (c, at) = (self.graph.graph_counters(), index.0 as usize);
        (c.rx.sum(at).0, c.tx.sum(at).0, c.tx_error.sum(at), c.rx_miss.sum(at))
    }

    /// Every error counter that is not zero.
    pub fn errors(&self) -> Vec<(String, &'static str, u64)> {
        let all = self.graph.error_counters();
        let count = |at| self.graph.graph_counters().errors.sum(at);
        all.into_iter()
            .enumerate()
            .map(|(at, (node, counter))| (node, counter.description, count(at)))
            .filter(|(_, _, n)| *n > 0)
            .collect()
    }
}

type Job = Box<dyn FnOnce(&Inside) + Send>;

/// The router. It ends with [`Crossing::end`]; a test that has failed leaves it to the process.
pub struct Crossing {
    jobs: mpsc::Sender<Job>,
    main: Arc<ThreadShared>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Crossing {
    /// Starts it with 8,192 buffers.
    pub fn start(ns: &Namespace, driver: &'static Module) -> Self {
        Self::with_buffers(ns, driver, 8192)
    }

    /// Starts it with so many buffers.
    pub fn with_buffers(ns: &Namespace, driver: &'static Module, buffers: usize) -> Self {
        let (jobs, inbox) = mpsc::channel::<Job>();
        let (face, faces) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let halt = Arc::clone(&stop);
        let thread = ns.spawn(move || {
            let inside = Inside::new(driver, buffers);
            face.send(Arc::clone(&inside.graph.threads()[0])).unwrap();
            let processes = inside.control.processes().unwrap();
            let next = std::cell::RefCell::new(None::<Job>);
            while !halt.load(Ordering::Relaxed) {
                inside.graph.run(&processes, || {
                    if let Ok(job) = inbox.try_recv() {
                        *next.borrow_mut() = Some(job);
                        return true;
                    }
                    halt.load(Ordering::Relaxed)
                });
                if let Some(job) = next.take() {
                    job(&inside);
                }
            }
            // What is still on its way ends now.
            for index in inside.interfaces.indices() {
                if index != SwIfIndex(0) {
                    inside.interfaces.delete(index).unwrap();
                }
            }
            inside.graph.stop_workers().unwrap();
            while inside.graph.round().worked {}
            assert_eq!(inside.graph.pool().stats().used, 0, "buffers balanced");
        });
        Crossing {
            jobs,
            main: faces.recv_timeout(Duration::from_secs(10)).unwrap(),
            stop,
            thread: Some(thread),
        }
    }

    /// Runs something on the router's main thread and waits for its answer.
    pub fn on<R: Send + 'static>(&self, job: impl FnOnce(&Inside) -> R + Send + 'static) -> R {
        let (answer, wait) = mpsc::channel();
        self.jobs
            .send(Box::new(move |inside| {
                let _ = answer.send(job(inside));
            }))
            .unwrap();
        Wake::wake(&*self.main);
        wait.recv_timeout(Duration::from_secs(20)).unwrap()
    }

    /// Ends it; fails when buffers are missing.
    pub fn end(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        Wake::wake(&*self.main);
        self.thread.take().unwrap().join().unwrap();
    }
}
