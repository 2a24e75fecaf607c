//! A small router on a thread of its own inside a namespace: interfaces, this driver, and a node called
//! `ethernet-input` that carries every frame across from one port to the other.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use shoal_af_packet::{CreateHostInterface, HostInterfaces, RingVersion};
use shoal_buffer::{Packet, Pages, PoolConfig};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::process::{Processes, Wake};
use shoal_graph::thread::ThreadShared;
use shoal_graph::{Clock, Cx, Graph, GraphConfig, PacketNode};
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_module::{Control, InitError, Module, init_all, start_all};

use super::Netns;

#[derive(NextNodes, Clone, Copy, Debug)]
pub enum Next {
    #[node("interface-output")]
    Output,
}

#[derive(ErrorCounters, Clone, Copy, Debug)]
pub enum Error {
    /// no other port
    NoOther,
}

#[derive(TraceLine)]
#[line("across: {rx} -> {tx}")]
pub struct Trace {
    rx: u32,
    tx: u32,
}

/// The two ports' indices.
#[derive(Clone, Default)]
pub struct Ports(Arc<[AtomicU32; 2]>);

pub struct Across(Ports);

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
    Ok(())
}

static ACROSS: Module = Module { name: "across", description: "test", init, ..Module::NONE };

pub struct Inside {
    pub control: Rc<Control>,
    pub graph: Rc<Graph>,
    pub interfaces: Rc<Interfaces>,
}

impl Inside {
    fn new(buffers: usize) -> Self {
        let control = Rc::new(Control::new());
        let clock = Clock::real();
        let buffers = PoolConfig { name: "test".into(), buffers, most: buffers, pages: Pages::Small };
        let graph = Graph::new(GraphConfig { buffers, stats_bytes: 1 << 30, clock: clock.clone() }).unwrap();
        control.put_rc(Rc::clone(&graph));
        control.put(Processes::new(clock));
        let modules = [&shoal_interface::MODULE, &ACROSS, &shoal_af_packet::MODULE];
        init_all(&control, &modules).unwrap();
        start_all(&control, &modules).unwrap();
        let interfaces = control.get::<Interfaces>().unwrap();
        Inside { control, graph, interfaces }
    }

    pub fn hosts(&self) -> Rc<HostInterfaces> {
        self.control.get().unwrap()
    }

    /// Two host interfaces, up, connected with each other.
    pub fn connect(&self, names: [&str; 2], queues: u32) -> [SwIfIndex; 2] {
        self.connect_as(names, queues, RingVersion::default())
    }

    /// The same with rings of a version.
    pub fn connect_as(&self, names: [&str; 2], queues: u32, version: RingVersion) -> [SwIfIndex; 2] {
        self.connect_like(
            names,
            &CreateHostInterface { rx_queues: Some(queues), version, ..Default::default() },
        )
    }

    /// The same, both made like this.
    pub fn connect_like(&self, names: [&str; 2], like: &CreateHostInterface) -> [SwIfIndex; 2] {
        let ports = self.control.get::<Ports>().unwrap();
        let mut made = [SwIfIndex(0); 2];
        for (i, name) in names.into_iter().enumerate() {
            let create = CreateHostInterface { name: name.into(), ..like.clone() };
            made[i] = self.hosts().create(&create).unwrap();
            ports.0[i].store(made[i].0, Ordering::Relaxed);
            self.interfaces.set_admin(made[i], true).unwrap();
        }
        made
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

pub struct Router {
    jobs: mpsc::Sender<Job>,
    main: Arc<ThreadShared>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Router {
    pub fn start(ns: &Netns) -> Self {
        Self::with_buffers(ns, 8192)
    }

    pub fn with_buffers(ns: &Netns, buffers: usize) -> Self {
        let (jobs, inbox) = mpsc::channel::<Job>();
        let (face, faces) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let halt = Arc::clone(&stop);
        let thread = ns.spawn(move || {
            let inside = Inside::new(buffers);
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
            inside.graph.stop_workers();
            while inside.graph.round().worked {}
            assert_eq!(inside.graph.pool().stats().used, 0, "buffers balanced");
        });
        Router {
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
