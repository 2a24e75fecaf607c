//! What a capture has seen so far.

use std::fs::OpenOptions;
use std::io::{self, BufWriter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use shoal_buffer::{Packet, SwIfIndex};
use shoal_graph::trace::Filter;
use shoal_wire::pcap::{LinkType, Writer};

/// What is kept of packets, and how many.
pub(crate) struct Rule {
    /// Most packets.
    pub(crate) max: usize,
    /// Most bytes of each.
    pub(crate) max_bytes: usize,
    /// The only interface whose packets are kept.
    pub(crate) only: Option<SwIfIndex>,
    /// Which packets are wanted.
    pub(crate) filter: Option<Filter>,
}

struct Kept {
    at: Duration,
    bytes: Vec<u8>,
    original_len: usize,
}

#[derive(Default)]
struct State {
    rule: Option<Rule>,
    packets: Vec<Kept>,
}

/// Packets of the capture that runs, shared by all threads.
#[derive(Default)]
pub struct Store {
    on: AtomicBool,
    state: Mutex<State>,
}

impl Store {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self, rule: Rule) {
        *self.lock() = State { rule: Some(rule), packets: Vec::new() };
        self.on.store(true, Ordering::Relaxed);
    }

    /// Ends the capture and tells how many packets it has.
    pub(crate) fn end(&self) -> usize {
        self.on.store(false, Ordering::Relaxed);
        let mut state = self.lock();
        state.rule = None;
        state.packets.len()
    }

    /// Packets kept, and most that may be.
    pub(crate) fn count(&self) -> (usize, usize) {
        let state = self.lock();
        (state.packets.len(), state.rule.as_ref().map_or(0, |rule| rule.max))
    }

    /// Keeps a packet of an interface if it is wanted.
    #[cold]
    pub(crate) fn take(&self, pkt: &Packet<'_>, interface: SwIfIndex, at: SystemTime) {
        if !self.on.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.lock();
        let State { rule: Some(rule), packets } = &mut *state else { return };
        if packets.len() >= rule.max
            || rule.only.is_some_and(|only| only != interface)
            || rule.filter.as_ref().is_some_and(|wants| !wants(pkt.data()))
        {
            return;
        }
        let original_len = pkt.len();
        let mut bytes = vec![0; original_len.min(rule.max_bytes)];
        pkt.copy_to(&mut bytes);
        let at = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        packets.push(Kept { at, bytes, original_len });
    }

    /// Writes what was kept into a file and forgets it.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let packets = std::mem::take(&mut self.lock().packets);
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o664).open(path)?;
        let mut writer = Writer::new(BufWriter::new(file), LinkType::ETHERNET)?;
        packets.iter().try_for_each(|kept| writer.write_part(kept.at, &kept.bytes, kept.original_len))?;
        writer.flush()
    }
}
