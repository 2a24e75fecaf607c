//! A port on an interface of the kernel's by AF_PACKET.
//!
//! Frames are handed over one by one as they come (TPACKET_V2), so that the moment at which the engine finds one is the
//! moment at which it could; blocks (V3) would be handed over a millisecond late at low rates. Frames are sent by
//! `sendmmsg`, a batch at a time, which says how many the kernel took. The others are kept and offered again.

use std::path::Path;

use shoal_af_packet::{Promiscuous, RxConfig, RxRing, TxConfig, TxQueue};
use shoal_vnet::VnetHdr;

use super::interface::{InterfaceError, find};
use super::namespace::run_in;
use super::{Drops, Flushed, PortError, Received, Transport};

/// Frames handed to the kernel by one call.
const BATCH: usize = 64;
/// Ethernet header and two tags.
const HEADERS: usize = 14 + 8;

/// An interface's packet sockets.
pub struct PacketPort {
    rx: RxRing,
    tx: TxQueue,
    name: String,
    slots: u32,
    longest: usize,
    /// Frames that were written and not yet taken, one after the other, each `longest` bytes apart.
    pool: Box<[u8]>,
    lengths: Vec<usize>,
    drops: Drops,
}

impl PacketPort {
    /// Opens the interface `name` of the namespace that the file at `namespace` is.
    ///
    /// # Errors
    ///
    /// There is none, it is down, or the system refuses.
    pub fn open(namespace: Option<&Path>, name: &str) -> Result<PacketPort, InterfaceError> {
        let (link, rx, tx) = run_in(namespace, || {
            let link = find(name)?;
            let config = RxConfig { promiscuous: Promiscuous::On, ..RxConfig::slots(link.mtu) };
            let rx = RxRing::open(link.index, &config)?;
            let tx = TxQueue::open(link.index, &TxConfig { batch: BATCH, ..TxConfig::default() })?;
            Ok((link, (rx, config.blocks as u32), tx))
        })?;
        let longest = link.mtu as usize + HEADERS;
        Ok(PacketPort {
            rx: rx.0,
            tx,
            name: format!("af-packet {name}"),
            slots: rx.1,
            longest,
            pool: vec![0; longest * BATCH].into(),
            lengths: Vec::with_capacity(BATCH),
            drops: Drops::default(),
        })
    }
}

impl Transport for PacketPort {
    fn kind(&self) -> &'static str {
        "af-packet"
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn ring(&self) -> u32 {
        self.slots
    }

    fn most_frame(&self) -> usize {
        self.longest
    }

    fn receive(&mut self, most: usize, take: &mut impl FnMut(Received<'_>)) -> Result<usize, PortError> {
        for count in 0..most {
            let Some(frame) = self.rx.next() else { return Ok(count) };
            take(Received { bytes: frame.bytes, stamp: None });
        }
        Ok(most)
    }

    fn send(
        &mut self,
        length: usize,
        most: usize,
        write: &mut impl FnMut(&mut [u8]),
    ) -> Result<usize, PortError> {
        if length > self.longest {
            return Err(PortError::TooLong { length, most: self.longest });
        }
        // What is offered again goes first, so that frames keep their order.
        let room = BATCH - self.lengths.len();
        let count = most.min(room);
        for _ in 0..count {
            let at = self.lengths.len() * self.longest;
            if let Some(frame) = self.pool.get_mut(at..at + length) {
                write(frame);
            }
            self.lengths.push(length);
        }
        Ok(count)
    }

    fn flush(&mut self) -> Result<Flushed, PortError> {
        if self.lengths.is_empty() {
            return Ok(Flushed::default());
        }
        let mut batch = self.tx.batch();
        for (slot, length) in self.pool.chunks_exact(self.longest).zip(&self.lengths) {
            let frame = slot.get(..*length).unwrap_or_default();
            let _ = batch.push(VnetHdr::default(), [frame]);
        }
        let report = batch.send();
        if report.too_big > 0 || report.invalid > 0 {
            let length = self.lengths.iter().copied().max().unwrap_or_default();
            return Err(PortError::TooLong { length, most: self.longest });
        }
        // An interface that is down or gone takes frames as an unplugged cable does.
        let lost = report.down + report.gone + report.other;
        self.drops.sending += lost as u64;
        let accepted = report.sent + lost;
        let left = self.lengths.len().saturating_sub(accepted);
        if left > 0 {
            let from = accepted * self.longest;
            self.pool.copy_within(from..from + left * self.longest, 0);
        }
        self.lengths.drain(..accepted.min(self.lengths.len()));
        Ok(Flushed { accepted, refused: u64::from(left > 0) })
    }

    fn drops(&mut self) -> Result<Drops, PortError> {
        let stats = self.rx.stats().map_err(|e| PortError::Other(e.to_string()))?;
        self.drops.receiving = stats.drops + stats.malformed;
        Ok(self.drops)
    }

    fn tend(&mut self) {
        let _ = self.rx.take_fault();
    }

    fn is_attached(&self) -> bool {
        !self.rx.is_gone()
    }
}
