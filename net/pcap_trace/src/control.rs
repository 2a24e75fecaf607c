//! The control plane: one capture at a time.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use shoal_graph::{DropWatch, ErrorCounter, FeatureSpec, FilterUse, Graph, PacketNode as _};
use shoal_interface::{DEVICE_INPUT_ARC, Event, Interfaces, OUTPUT_ARC, SwIfIndex};
use shoal_module::{Control, InitError};

use crate::node::capture::{PcapRx, PcapTx};
use crate::store::{Rule, Store};
use crate::{DispatchTrace, PcapTraceError};

/// Where files are.
pub(crate) const FOLDER: &str = "/tmp";
/// Most packets of a capture, and most bytes of each: what a router's memory bears.
pub(crate) const MOST_PACKETS: usize = 1_000_000;
const BYTES: (usize, usize) = (32, 9_000);

/// What is to be captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureSettings {
    /// Received packets.
    pub rx: bool,
    /// Packets on their way out.
    pub tx: bool,
    /// Dropped packets.
    pub drop: bool,
    /// Most packets.
    pub max: usize,
    /// Most bytes of each.
    pub max_bytes: usize,
    /// The only interface; `None` for all.
    pub interface: Option<SwIfIndex>,
    /// A name in /tmp; `None` is made of what is captured, as `rxtx.pcap`.
    pub file: Option<String>,
    /// Packets only that the pcap filter function wants.
    pub filter: bool,
    /// Dropped packets with this reason only, as `NODE.REASON`.
    pub reason: Option<String>,
}

impl Default for CaptureSettings {
    fn default() -> Self {
        CaptureSettings {
            rx: false,
            tx: false,
            drop: false,
            max: 1000,
            max_bytes: 512,
            interface: None,
            file: None,
            filter: false,
            reason: None,
        }
    }
}

struct Running {
    wish: CaptureSettings,
    path: PathBuf,
}

/// The capture that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// What is captured: `rx`, `tx`, `drop`.
    pub what: Vec<&'static str>,
    /// Packets so far.
    pub captured: usize,
    /// Most packets.
    pub max: usize,
    /// The file they will be in.
    pub file: PathBuf,
}

/// Captures of a router.
pub struct PcapTrace {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    store: Arc<Store>,
    folder: PathBuf,
    running: RefCell<Option<Running>>,
}

impl PcapTrace {
    pub(crate) fn install(control: &Rc<Control>) -> Result<(), InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        control.put(DispatchTrace::new(Rc::clone(&graph)));
        let store = Arc::new(Store::default());
        let clock = graph.clock().clone();
        graph.add_packet(PcapRx { store: Arc::clone(&store), clock: clock.clone() })?;
        graph.add_packet(PcapTx { store: Arc::clone(&store), clock })?;
        // What other features change is captured as it came and as it goes.
        graph.add_feature(FeatureSpec { arc: DEVICE_INPUT_ARC, node: PcapRx::NAME, before: &[], after: &[] });
        graph.add_feature(FeatureSpec {
            arc: OUTPUT_ARC,
            node: PcapTx::NAME,
            before: &[],
            after: &["interface-down"],
        });
        let trace = Rc::new(PcapTrace {
            graph,
            interfaces: Rc::clone(&interfaces),
            store,
            folder: FOLDER.into(),
            running: RefCell::default(),
        });
        let weak = Rc::downgrade(&trace);
        interfaces.subscribe(move |_, event| {
            if let (Event::Created(index), Some(trace)) = (event, weak.upgrade()) {
                trace.join(index);
            }
        });
        control.put_rc(trace);
        Ok(())
    }

    /// Captures a new interface, too, when all are captured.
    fn join(&self, index: SwIfIndex) {
        let running = self.running.borrow();
        if let Some(running) = running.as_ref().filter(|running| running.wish.interface.is_none())
            && let Err(error) = self.switch(&running.wish, index, true)
        {
            tracing::warn!(sw_if_index = index.0, "not captured: {error}");
        }
    }

    fn switch(&self, wish: &CaptureSettings, index: SwIfIndex, on: bool) -> Result<(), PcapTraceError> {
        for (wanted, arc, node) in
            [(wish.rx, DEVICE_INPUT_ARC, PcapRx::NAME), (wish.tx, OUTPUT_ARC, PcapTx::NAME)]
        {
            if wanted {
                self.interfaces.enable_feature(arc, node, index, on)?;
            }
        }
        Ok(())
    }

    fn switch_all(&self, wish: &CaptureSettings, on: bool) -> Result<(), PcapTraceError> {
        let indices = wish.interface.map_or_else(|| self.interfaces.indices(), |only| vec![only]);
        indices.into_iter().try_for_each(|index| self.switch(wish, index, on))
    }

    /// Begins a capture.
    ///
    /// # Errors
    /// One runs, or what is asked for cannot be.
    pub fn start(&self, wish: CaptureSettings) -> Result<(), PcapTraceError> {
        if self.running.borrow().is_some() {
            return Err(PcapTraceError::Runs);
        }
        if !(wish.rx || wish.tx || wish.drop) {
            return Err(PcapTraceError::NoSide);
        }
        range("max", wish.max, 1, MOST_PACKETS)?;
        range("max-bytes-per-pkt", wish.max_bytes, BYTES.0, BYTES.1)?;
        if let Some(index) = wish.interface {
            self.interfaces.name(index)?;
        }
        let path = path(&self.folder, &wish)?;
        let reason = wish.reason.as_deref().map(|reason| self.reason(reason)).transpose()?;
        let filter = wish.filter.then(|| self.graph.filters().filter(FilterUse::Pcap));
        if let Err(error) = self.switch_all(&wish, true) {
            let _ = self.switch_all(&wish, false);
            return Err(error);
        }
        let (max, max_bytes, only) = (wish.max, wish.max_bytes, wish.interface);
        self.store.begin(Rule { max, max_bytes, only, filter });
        if wish.drop {
            self.graph.drop_tap().set(Some(self.watch(reason)));
        }
        *self.running.borrow_mut() = Some(Running { wish, path });
        Ok(())
    }

    /// What looks at dropped packets, with this reason or any.
    fn watch(&self, reason: Option<u16>) -> DropWatch {
        let (store, clock) = (Arc::clone(&self.store), self.graph.clock().clone());
        Arc::new(move |pkt, error| {
            if reason.is_some_and(|reason| reason != error) {
                return;
            }
            // Nodes have moved the front past headers that are still there.
            let front = pkt.current();
            if front > 0 {
                let _ = pkt.rewind_to(0);
            }
            store.take(pkt, pkt.rx(), clock.wall(clock.now()));
            if front > 0 {
                let _ = pkt.rewind_to(front);
            }
        })
    }

    fn reason(&self, text: &str) -> Result<u16, PcapTraceError> {
        let none = || PcapTraceError::NoReason(text.to_owned());
        let (node, name) = text.split_once('.').ok_or_else(none)?;
        let all = self.graph.error_counters();
        let fits = |(at, counter): &(String, &'static ErrorCounter)| {
            at == node && (counter.name == name || counter.description == name)
        };
        let number = all.iter().position(fits).ok_or_else(none)?;
        u16::try_from(number).map_err(|_| none())
    }

    /// Ends the capture and writes its file; how many packets are in it, and where.
    ///
    /// # Errors
    /// None runs, or it has no packets, or the file cannot be written.
    pub fn stop(&self) -> Result<(usize, PathBuf), PcapTraceError> {
        let Some(Running { wish, path }) = self.running.borrow_mut().take() else {
            return Err(PcapTraceError::Idle);
        };
        self.graph.drop_tap().set(None);
        let count = self.store.end();
        if let Err(error) = self.switch_all(&wish, false) {
            // The interface may have gone, and its features with it.
            tracing::debug!("capture ended: {error}");
        }
        if count == 0 {
            return Err(PcapTraceError::Nothing);
        }
        self.store.write(&path).map_err(|error| PcapTraceError::File { path: path.clone(), error })?;
        Ok((count, path))
    }

    /// The capture that runs.
    pub fn status(&self) -> Option<Status> {
        let running = self.running.borrow();
        let Running { wish, path } = running.as_ref()?;
        let (captured, max) = self.store.count();
        Some(Status { what: sides(wish), captured, max, file: path.clone() })
    }
}

fn sides(wish: &CaptureSettings) -> Vec<&'static str> {
    let all = [(wish.rx, "rx"), (wish.tx, "tx"), (wish.drop, "drop")];
    all.into_iter().filter(|(on, _)| *on).map(|(_, name)| name).collect()
}

pub(crate) fn range(
    what: &'static str,
    value: usize,
    least: usize,
    most: usize,
) -> Result<(), PcapTraceError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(PcapTraceError::Range { what, value, least, most })
}

fn path(folder: &Path, wish: &CaptureSettings) -> Result<PathBuf, PcapTraceError> {
    let name = wish.file.clone().filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| format!("{}.pcap", sides(wish).concat()));
    Ok(folder.join(file_name(&name)?))
}

/// VPP's rule: a plain name, always in one folder, so that no client writes elsewhere.
pub(crate) fn file_name(name: &str) -> Result<&str, PcapTraceError> {
    let name = name.strip_prefix("/tmp/").unwrap_or(name);
    if name.is_empty() || name.contains('/') || name.contains("..") || name.contains('\0') {
        return Err(PcapTraceError::FileName(name.to_owned()));
    }
    Ok(name)
}
