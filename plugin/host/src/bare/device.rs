//! A device: frames out of it and into it, by its first queue each way.

use std::ops::Range;
use std::sync::Arc;

use shoal_buffer::{DATA_SIZE, FRAME_SIZE};
use shoal_vnet::Offload;

use super::BareError;
use super::driver::{Inner, main_thread};
use crate::Error;
use crate::sys::{Link, NewDevice, OpenDevice, RxHandle, Setting, Slots, TxHandle};

/// Bytes of a slot: those of the router's buffers, which drivers count in.
const SLOT: usize = DATA_SIZE;

/// What became of frames that were to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Taken by the device, from the first on. The others may be offered again.
    pub taken: usize,
    /// Of those, the ones it then refused for what they are: they are lost.
    pub refused: usize,
}

/// An open device. Dropping it closes it.
pub struct BareDevice {
    driver: Arc<Inner>,
    /// All of it until it is dropped.
    open: Option<Open>,
    number: u32,
    thread: usize,
    name: String,
    kind: String,
    mtu: u32,
    rx_queues: u32,
    rx: Slots,
    tx: Slots,
    /// The slots' bytes.
    memory: Box<[u8]>,
    /// Slots that were filled and not yet given out.
    waiting: Range<usize>,
    /// A frame of several slots.
    frame: Vec<u8>,
    is_wrong: bool,
    lost: u64,
}

/// A device and its first queue each way.
struct Open {
    device: OpenDevice,
    rx: RxHandle,
    tx: TxHandle,
}

impl BareDevice {
    pub(super) fn new(
        driver: Arc<Inner>,
        (opened, mut device): (&NewDevice, OpenDevice),
        thread: usize,
    ) -> BareDevice {
        let queues = device.next_rx().zip(device.next_tx());
        BareDevice {
            driver,
            open: queues.map(|(rx, tx)| Open { device, rx, tx }),
            number: opened.number,
            thread,
            name: opened.name.clone(),
            kind: opened.kind.clone(),
            mtu: opened.mtu,
            rx_queues: opened.rx_queues,
            rx: Slots::new(),
            tx: Slots::new(),
            memory: vec![0; SLOT * FRAME_SIZE].into(),
            waiting: 0..0,
            frame: Vec::new(),
            is_wrong: false,
            lost: 0,
        }
    }

    /// Its name, as an interface of the router would have it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is, in the plugin's words.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The largest packet without its Ethernet header, as it was opened or [set](Self::set_mtu) since.
    pub fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Receive queues. Only the first is read here.
    pub fn rx_queues(&self) -> u32 {
        self.rx_queues
    }

    /// It sends and receives from now on.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn up(&mut self) -> Result<(), BareError> {
        self.set(Setting::Admin(true))
    }

    /// It takes frames for all stations, not for its own only.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn promiscuous(&mut self) -> Result<(), BareError> {
        self.set(Setting::Promiscuous(true))
    }

    /// Sets the largest packet without its Ethernet header.
    ///
    /// # Errors
    /// What the plugin says; then it keeps what it has.
    pub fn set_mtu(&mut self, mtu: u32) -> Result<(), BareError> {
        self.set(Setting::Mtu(mtu))?;
        self.mtu = mtu;
        Ok(())
    }

    fn set(&mut self, setting: Setting) -> Result<(), BareError> {
        let process = main_thread();
        let said = self.open.as_ref().map_or(Ok(()), |open| open.device.set(process.thread(), setting));
        said.map_err(|why| Error::Plugin(self.driver.code.name.clone(), why).into())
    }

    /// Its link now; none if the plugin does not say.
    pub fn link(&self) -> Option<Link> {
        let process = main_thread();
        self.open.as_ref()?.device.link(process.thread())
    }

    /// Frames lost between the driver and here: those it had no slots for, and those with impossible numbers.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Gives up to `most` frames that have come to `take`, without FCS, and returns how many they were. The driver is asked
    /// for more at most once.
    #[inline]
    pub fn receive(&mut self, most: usize, take: &mut impl FnMut(&[u8])) -> usize {
        if self.waiting.is_empty() {
            self.fetch();
        }
        let mut count = 0;
        while count < most
            && let Some(at) = self.waiting.next()
        {
            count += usize::from(self.give(at, take));
        }
        if self.waiting.is_empty() && !self.frame.is_empty() {
            // The driver ended in the middle of a frame.
            self.frame.clear();
            self.is_wrong = false;
            self.lost += 1;
        }
        count
    }

    fn fetch(&mut self) {
        let Some(Open { rx, .. }) = &mut self.open else { return };
        let wanted = rx.poll(self.thread);
        if wanted > 0 {
            let (used, lost) = self.rx.receive_into((rx, self.thread), (&mut self.memory, SLOT), wanted);
            self.waiting = 0..used;
            self.lost += lost;
        }
    }

    /// Gives out the frame that slot `at` ends, if it ends one and all of it is what it can be.
    #[inline]
    fn give(&mut self, at: usize, take: &mut impl FnMut(&[u8])) -> bool {
        let Some(filled) = self.rx.filled(at) else { return false };
        let start = at * SLOT;
        let bytes = match filled.length {
            1..=SLOT => self.memory.get(start..start + filled.length).unwrap_or_default(),
            _ => &[],
        };
        if !filled.more && self.frame.is_empty() && !bytes.is_empty() {
            take(bytes);
            return true;
        }
        self.is_wrong |= bytes.is_empty();
        // One byte at least, so that a frame is known to have begun.
        self.frame.extend_from_slice(if bytes.is_empty() { &[0][..] } else { bytes });
        if filled.more {
            return false;
        }
        let good = !std::mem::take(&mut self.is_wrong);
        if good {
            take(&self.frame);
        } else {
            self.lost += 1;
        }
        self.frame.clear();
        good
    }

    /// Sends frames, none of which may be empty, without FCS; at most 256 are looked at.
    #[inline]
    pub fn send<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> Sent {
        let mut batch = self.tx.batch();
        for frame in frames {
            if !batch.push(std::iter::once(frame), &Offload::default()) {
                break;
            }
        }
        let Some(Open { tx, .. }) = self.open.as_mut().filter(|_| !batch.is_empty()) else {
            return Sent::default();
        };
        let (packets, left, refused) = batch.send(tx, self.thread);
        Sent { taken: packets - left, refused }
    }
}

impl Drop for BareDevice {
    fn drop(&mut self) {
        let mut process = main_thread();
        if let Some(Open { device, rx, tx }) = self.open.take() {
            drop((rx, tx));
            // They were all there were.
            let _ = device.close(process.thread());
        }
        self.driver.forget(self.number);
        process.leave(self.thread);
    }
}
