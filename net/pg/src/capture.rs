//! Capture files: what an interface sent, in pcap.
//!
//! The file appears with the first packet and grows by one write per frame, so that a reader that follows it
//! never waits for a flush.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use shoal_buffer::Packet;
use shoal_wire::pcap::{LinkType, Writer};

/// Collects the records of one frame; `flush` writes them with one system call unless the disk is slow.
struct Target {
    path: PathBuf,
    file: Option<File>,
    pending: Vec<u8>,
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o664).open(&self.path)?,
            ),
        };
        let result = file.write_all(&self.pending);
        self.pending.clear();
        result
    }
}

/// A running capture.
pub(crate) struct Capture {
    path: PathBuf,
    link_type: LinkType,
    left: Option<u64>,
    writer: Option<Writer<Target>>,
    /// The bytes of one packet: memory used again.
    packet: Vec<u8>,
    written: u64,
}

impl Capture {
    pub(crate) fn new(path: PathBuf, link_type: LinkType, count: Option<u64>) -> Self {
        Capture { path, link_type, left: count, writer: None, packet: Vec::new(), written: 0 }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Packets captured.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Adds a packet to the frame in hand, unless the capture is full.
    pub(crate) fn add(&mut self, pkt: &Packet<'_>, at: SystemTime) -> io::Result<()> {
        if self.left == Some(0) {
            return Ok(());
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => {
                let target = Target { path: self.path.clone(), file: None, pending: Vec::new() };
                none.insert(Writer::new(target, self.link_type)?)
            }
        };
        self.packet.clear();
        pkt.segments().for_each(|s| self.packet.extend_from_slice(s));
        writer.write(at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO), &self.packet)?;
        self.left = self.left.map(|left| left - 1);
        self.written += 1;
        Ok(())
    }

    /// Writes the frame in hand.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), Writer::flush)
    }
}
