//! The dispatch trace: every packet at every node it is dispatched to, in a file that Wireshark's `vpp` dissector reads.

use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io::{self, BufWriter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shoal_buffer::Packet;
use shoal_graph::{Clock, Graph, NodeIndex, ObservationId, Observed, Observer};
use shoal_wire::pcap::{LinkType, Writer};

use crate::PcapTraceError;
use crate::control::{FOLDER, MOST_PACKETS, file_name, range};

/// Most bytes that are kept of a packet.
const MOST_BYTES: usize = 2_048;
/// The format's version.
const VERSION: [u8; 2] = [1, 0];
/// Texts of a record: the node, and what VPP calls metadata, opaque and opaque2.
const TEXTS: u8 = 4;

/// What a record says of the bytes it ends with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Hint {
    None = 0,
    Ethernet = 1,
    Ip4 = 2,
    Ip6 = 3,
}

impl Hint {
    fn of(node: &str, bytes: &[u8]) -> Hint {
        let version = bytes.first().map(|byte| byte >> 4);
        match version {
            _ if ["ethernet-input", "l2-", "bridge-"].iter().any(|start| node.starts_with(start)) => {
                Hint::Ethernet
            }
            Some(4) if node.starts_with("ip4-") => Hint::Ip4,
            Some(6) if node.starts_with("ip6-") => Hint::Ip6,
            _ => Hint::None,
        }
    }
}

struct Kept {
    at: Duration,
    record: Vec<u8>,
    original_len: usize,
}

/// Records of all threads, in the order in which packets were dispatched.
struct Records {
    max: usize,
    kept: Mutex<Vec<Kept>>,
}

impl Records {
    fn lock(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One thread's eyes.
struct CaptureThread {
    records: Arc<Records>,
    clock: Clock,
}

impl Observer for CaptureThread {
    fn before(&mut self, _: NodeIndex, name: &str, packets: Option<Observed<'_>>) {
        let Some(packets) = packets else { return };
        let mut kept = self.records.lock();
        if kept.len() >= self.records.max {
            return;
        }
        let at = self.clock.wall(self.clock.now()).duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        packets.each(|packet| {
            if kept.len() < self.records.max {
                let (record, original_len) = record(name, packet);
                kept.push(Kept { at, record, original_len });
            }
        });
    }

    fn after(&mut self, _: NodeIndex, _: &str, _: usize) {}
}

/// A packet as it comes to a node, and how long the record would be with all of its bytes.
fn record(node: &str, packet: &Packet<'_>) -> (Vec<u8>, usize) {
    let mut bytes = vec![0; packet.len().min(MOST_BYTES)];
    packet.copy_to(&mut bytes);
    let mut record = Vec::with_capacity(256 + bytes.len());
    record.extend(VERSION);
    record.extend([TEXTS, Hint::of(node, &bytes) as u8]);
    record.extend(packet.number().to_be_bytes());
    let meta = packet.meta();
    let metadata = format!(
        "current data {}, length {}, segments {}, flags 0x{:x}",
        packet.current(),
        packet.len(),
        packet.segments().count().max(1),
        packet.flags().0
    );
    let opaque = format!(
        "rx sw_if_index {}, tx sw_if_index {}, adjacency {}, error {}, fib {}",
        meta.rx.0.cast_signed(),
        meta.tx.0.cast_signed(),
        meta.adj.cast_signed(),
        meta.error,
        meta.fib().map_or_else(|| "-".to_owned(), |fib| fib.0.to_string())
    );
    let opaque2 = format!(
        "l3 {}, l4 {}, flow hash 0x{:08x}, gso size {}, arc {}, feature {}",
        meta.l3, meta.l4, meta.flow_hash, meta.gso_size, meta.arc, meta.feature
    );
    for text in [node, &metadata, &opaque, &opaque2] {
        record.extend(text.bytes());
        record.push(0);
    }
    let left_out = packet.len() - bytes.len();
    record.extend(bytes);
    let original_len = record.len() + left_out;
    (record, original_len)
}

struct Running {
    observation: ObservationId,
    records: Arc<Records>,
    path: PathBuf,
}

/// The dispatch trace that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchStatus {
    /// Records so far.
    pub captured: usize,
    /// Most records.
    pub max: usize,
    /// The file they will be in.
    pub file: PathBuf,
}

/// Dispatch traces of a router; one at a time.
pub struct DispatchTrace {
    graph: Rc<Graph>,
    running: RefCell<Option<Running>>,
}

impl DispatchTrace {
    /// Most records, and the file's name, unless others are given.
    pub const MAX: usize = 1000;
    /// The file's name in /tmp.
    pub const FILE: &'static str = "dispatch.pcap";

    pub(crate) fn new(graph: Rc<Graph>) -> Self {
        DispatchTrace { graph, running: RefCell::default() }
    }

    /// Begins to keep packets, `max` at most, each once for every node it comes to.
    ///
    /// # Errors
    /// It runs already, a number or name is not possible, or a thread does not move.
    pub fn start(&self, max: usize, file: &str) -> Result<(), PcapTraceError> {
        if self.running.borrow().is_some() {
            return Err(PcapTraceError::Runs);
        }
        range("max", max, 1, MOST_PACKETS)?;
        let path = Path::new(FOLDER).join(file_name(file)?);
        let records = Arc::new(Records { max, kept: Mutex::default() });
        let (shared, clock) = (Arc::clone(&records), self.graph.clock().clone());
        let observation = self.graph.observe_nodes(Arc::new(move |_| {
            Box::new(CaptureThread { records: Arc::clone(&shared), clock: clock.clone() })
        }))?;
        *self.running.borrow_mut() = Some(Running { observation, records, path });
        Ok(())
    }

    /// Ends it and writes the file: how many records are in it, and where.
    ///
    /// # Errors
    /// It does not run, there is nothing to write, or the file cannot be written.
    pub fn stop(&self) -> Result<(usize, PathBuf), PcapTraceError> {
        let Some(Running { observation, records, path }) = self.running.borrow_mut().take() else {
            return Err(PcapTraceError::Idle);
        };
        self.graph.end_observation(observation);
        let kept = std::mem::take(&mut *records.lock());
        if kept.is_empty() {
            return Err(PcapTraceError::Nothing);
        }
        write(&path, &kept).map_err(|error| PcapTraceError::File { path: path.clone(), error })?;
        Ok((kept.len(), path))
    }

    /// What runs.
    pub fn status(&self) -> Option<DispatchStatus> {
        let running = self.running.borrow();
        let Running { records, path, .. } = running.as_ref()?;
        Some(DispatchStatus { captured: records.lock().len(), max: records.max, file: path.clone() })
    }
}

fn write(path: &Path, kept: &[Kept]) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o664).open(path)?;
    let mut writer = Writer::new(BufWriter::new(file), LinkType::VPP_DISPATCH)?;
    kept.iter().try_for_each(|kept| writer.write_part(kept.at, &kept.record, kept.original_len))?;
    writer.flush()
}
