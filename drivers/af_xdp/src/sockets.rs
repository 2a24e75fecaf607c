//! An interface's sockets without a router: for users of its frames as they are, the lab above all.
//!
//! All frames of the interface come here, whatever their addresses: there is no pinhole. Frames are sent by the first
//! queue.

use shoal_link::Link;

use crate::config::Queues;
use crate::filter::{Filter, Wanted};
use crate::pinhole::Pinhole;
use crate::queue_memory::{Rx, Tx};
use crate::queues::{self, Attached};
use crate::sys::queue::{Kick, TxRefused, XskRx, XskTx};
use crate::sys::{XdpMode, XskConfig, XskStats};
use shoal_wire::MacAddress;

use crate::Error;

/// What came of asking the kernel to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It does, now or when it can.
    Taken,
    /// The interface is down: what is in the ring is lost or waits.
    Down,
    /// The interface is gone.
    Gone,
}

/// All queues of an interface. Dropped, the host has its frames again.
pub struct XdpSockets {
    rx: Vec<XskRx>,
    tx: Vec<XskTx>,
    /// The queue to look at first, so that none starves.
    turn: usize,
    attached: Attached,
    _filter: Filter,
}

impl XdpSockets {
    /// Opens the interface in the network namespace of the calling thread, with one socket for each of its queues.
    ///
    /// # Errors
    ///
    /// It has a program already, its frames do not fit, or the kernel refuses.
    pub fn open(link: &Link, config: &XskConfig) -> Result<Self, Error> {
        let kernel_mac = MacAddress(link.mac.ok_or_else(|| Error::NoEthernet(link.name.clone()))?);
        let mut filter = Filter::new(config.multi_buffer)?;
        let (mut attached, halves, _) = queues::open(link, &filter, config, Queues::All, None, None)?;
        attached.stations.set_all(true)?;
        let pinhole = Pinhole::default();
        filter.apply(&Wanted { take: true, own_mac: None, kernel_mac, pinhole: &pinhole, addresses: &[] })?;
        // Without a pool all of them have memory of their own.
        let own = |halves| match halves {
            (Rx::Own(rx), Tx::Own(tx)) => Some((rx, tx)),
            _ => None,
        };
        let (rx, tx) = halves.into_iter().filter_map(own).unzip();
        Ok(XdpSockets { rx, tx, turn: 0, attached, _filter: filter })
    }

    /// Gives up to `most` frames to `take`, and their memory back to the kernel; returns how many they were.
    pub fn receive(&mut self, most: usize, take: &mut impl FnMut(&[u8])) -> usize {
        let (mut count, queues) = (0, self.rx.len().max(1));
        self.turn = (self.turn + 1) % queues;
        for i in 0..queues {
            let Some(rx) = self.rx.get_mut((self.turn + i) % queues) else { continue };
            while count < most {
                match rx.next() {
                    Some(Ok(frame)) => take(frame.bytes),
                    Some(Err(_)) => continue,
                    None => break,
                }
                count += 1;
            }
            rx.flush();
        }
        count
    }

    /// Has a frame of `length` bytes written where it is sent from; `false`, and `write` is not called, when all memory is
    /// with the kernel.
    ///
    /// # Errors
    ///
    /// It is longer than a chunk of memory.
    pub fn push(&mut self, length: usize, write: &mut impl FnMut(&mut [u8])) -> Result<bool, Error> {
        let too_long = || {
            let (what, rule) = ("length of a frame", "at most a chunk of packet memory, 4096");
            Error::Config { what, value: length as u64, rule }
        };
        let Some(tx) = self.tx.first_mut() else { return Ok(false) };
        if length > crate::sys::queue::CHUNK {
            return Err(too_long());
        }
        let pushed = tx.push_with(|memory| {
            write(memory.get_mut(..length)?);
            Some(length)
        });
        match pushed {
            Ok(()) => Ok(true),
            Err(TxRefused::Full) => Ok(false),
            Err(TxRefused::TooLong) => Err(too_long()),
        }
    }

    /// Lets the kernel see what was pushed, and wakes it if it sleeps.
    pub fn send(&mut self) -> Sent {
        match self.tx.first_mut().map(XskTx::send) {
            Some(Kick::Done | Kick::Later) => Sent::Taken,
            Some(Kick::Down) => Sent::Down,
            Some(Kick::Gone) | None => Sent::Gone,
        }
    }

    /// The kernel's counters, over all queues.
    ///
    /// # Errors
    ///
    /// It does not say.
    pub fn stats(&self) -> Result<XskStats, Error> {
        let mut sum = XskStats::default();
        for rx in &self.rx {
            sum.add(&rx.rings.stats()?);
        }
        Ok(sum)
    }

    /// How the program sees frames.
    pub fn mode(&self) -> XdpMode {
        self.attached.mode()
    }

    /// Whether the driver reads and writes packet memory itself.
    pub fn is_zero_copy(&self) -> bool {
        self.attached.is_zero_copy()
    }
}
