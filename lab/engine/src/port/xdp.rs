//! A port on an interface of the kernel's by AF_XDP.

use std::path::Path;

use shoal_af_xdp::{Sent, XdpSockets, XskConfig};

use super::interface::{InterfaceError, find};
use super::namespace::run_in;
use super::{Drops, Flushed, PortError, Received, Transport};

/// Frames of each ring.
const RING: u32 = 4096;
/// Longest frame that is received in one chunk of memory.
const LONGEST: usize = 4096 - 256;

/// An interface's AF_XDP sockets.
pub struct XdpPort {
    sockets: XdpSockets,
    name: String,
    longest: usize,
    accepted: usize,
    refused: u64,
    down: bool,
    gone: bool,
    /// Frames taken while the interface was down.
    lost: u64,
}

impl XdpPort {
    /// Opens the interface `name` of the namespace that the file at `namespace` is. As long as this is kept, the kernel's
    /// own stack sees none of its frames.
    ///
    /// # Errors
    ///
    /// There is none, it is down or has a program already, or the system refuses.
    pub fn open(namespace: Option<&Path>, name: &str) -> Result<XdpPort, InterfaceError> {
        let config = XskConfig { rx_size: RING, tx_size: RING, ..XskConfig::default() };
        let (link, sockets) = run_in(namespace, || {
            let link = find(name)?;
            let sockets = XdpSockets::open(&link, &config)?;
            Ok((link, sockets))
        })?;
        Ok(XdpPort {
            sockets,
            name: format!("af-xdp {name}"),
            longest: (link.mtu as usize + 14).min(LONGEST),
            accepted: 0,
            refused: 0,
            down: false,
            gone: false,
            lost: 0,
        })
    }
}

impl Transport for XdpPort {
    fn kind(&self) -> &'static str {
        "af-xdp"
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn ring(&self) -> u32 {
        RING
    }

    fn most_frame(&self) -> usize {
        self.longest
    }

    fn receive(&mut self, most: usize, take: &mut impl FnMut(Received<'_>)) -> Result<usize, PortError> {
        Ok(self.sockets.receive(most, &mut |bytes| take(Received { bytes, stamp: None })))
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
        for sent in 0..most {
            if !self.sockets.push(length, write).map_err(|e| PortError::Other(e.to_string()))? {
                self.refused += 1;
                return Ok(sent);
            }
            self.accepted += 1;
        }
        Ok(most)
    }

    fn flush(&mut self) -> Result<Flushed, PortError> {
        let accepted = std::mem::take(&mut self.accepted);
        if accepted > 0 || self.down {
            let sent = self.sockets.send();
            self.gone = sent == Sent::Gone;
            self.down = sent != Sent::Taken;
            self.lost += if self.down { accepted as u64 } else { 0 };
        }
        Ok(Flushed { accepted, refused: std::mem::take(&mut self.refused) })
    }

    fn drops(&mut self) -> Result<Drops, PortError> {
        let stats = self.sockets.stats().map_err(|e| PortError::Other(e.to_string()))?;
        Ok(Drops { receiving: stats.missed(), sending: stats.tx_invalid_descs + self.lost, full: 0 })
    }

    fn is_attached(&self) -> bool {
        !self.gone
    }
}
