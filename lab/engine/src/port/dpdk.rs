//! A port of DPDK's, by the router's DPDK plugin: one queue each way, frames copied on both sides (docs/decisions/0009).

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use shoal_plugin_host::{BareDevice, BareDriver, Link};

use super::dpdk_plugin::{DpdkError, driver};
use super::dpdk_words::{complete, device as name, is_virtual, ring, setting};
use super::namespace::run_in;
use super::{Drops, Flushed, PortError, Received, Transport};

/// Frames handed to the device by one call.
const BATCH: usize = 64;
/// Bytes of frames that wait to be taken: a batch of full ones, and several of the longest.
const WAITING: usize = 256 << 10;
/// Ethernet header and two tags.
const HEADERS: usize = 14 + 8;
/// MTUs that a NIC is asked for, the largest first: RFC 8219's 9,216 with two tags, without tags, and what most know.
const MTUS: [u32; 3] = [9216 - 14 + 8, 9216 - 18, 9000];
/// How long a link may take to come up: NICs negotiate for seconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(10);

/// A frame that waits.
#[derive(Clone, Copy)]
struct Waiting {
    start: usize,
    length: usize,
}

/// A device of DPDK's. It is closed when this is dropped.
pub struct DpdkPort {
    device: BareDevice,
    name: String,
    ring: u32,
    longest: usize,
    link: Link,
    /// Frames that were written and not yet taken, in order, and their bytes.
    queue: VecDeque<Waiting>,
    bytes: Box<[u8]>,
    end: usize,
    /// Frames that were taken and lost.
    lost: u64,
}

impl DpdkPort {
    /// Opens two devices by the words of the router's `dpdk attach`, each in the namespace that a file is, and waits for
    /// their links. DPDK is started if it does not run yet.
    ///
    /// # Errors
    ///
    /// There is no plugin, DPDK does not start, a device does not open, or has no link for ten seconds. Nothing is left
    /// open then.
    pub fn open([left, right]: [(Option<&Path>, &str); 2]) -> Result<[DpdkPort; 2], DpdkError> {
        let driver = driver([left.1, right.1])?;
        let mut ports = [DpdkPort::one(&driver, left)?, DpdkPort::one(&driver, right)?];
        // Both are up before any is waited for: they may be each other's other end.
        ports.iter_mut().try_for_each(DpdkPort::wait)?;
        Ok(ports)
    }

    /// Two devices of DPDK's that are joined by a memif in this process, for packets of up to `mtu` bytes.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn pair(mtu: u16) -> Result<[DpdkPort; 2], DpdkError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // An abstract name: nothing is left behind, whatever happens.
        let socket = format!("shoal-lab-{}-{number}-{:08x}", std::process::id(), fastrand::u32(..));
        // One buffer a frame: net_memif of DPDK 22.11 may overwrite a chain that was not read (plugin/dpdk/README.md).
        let buffer = if usize::from(mtu) + HEADERS <= 2048 { 2048 } else { 9728 };
        let words = |end: char, role: &str| {
            format!(
                "net_memif_lab{number}{end},role={role},id=0,rsize=11,bsize={buffer},socket={socket} mtu {mtu}"
            )
        };
        DpdkPort::open([(None, &words('a', "server")), (None, &words('b', "client"))])
    }

    fn one(driver: &BareDriver, (namespace, words): (Option<&Path>, &str)) -> Result<DpdkPort, DpdkError> {
        // Devices made of an interface look for it where the calling thread is, also when they are set up.
        let device = run_in(namespace, || Ok(set_up(driver, words)))??;
        let longest = device.mtu() as usize + HEADERS;
        Ok(DpdkPort {
            link: device.link().unwrap_or_default(),
            device,
            name: format!("dpdk {}", name(words)),
            ring: ring(words),
            longest,
            queue: VecDeque::with_capacity(BATCH),
            bytes: vec![0; WAITING.max(longest)].into(),
            end: 0,
            lost: 0,
        })
    }

    fn wait(&mut self) -> Result<(), DpdkError> {
        let end = Instant::now() + PATIENCE;
        while !self.look().unwrap_or_default().up {
            if Instant::now() >= end {
                return Err(DpdkError::Down { name: self.name.clone(), seconds: PATIENCE.as_secs() });
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Asks for the link.
    fn look(&mut self) -> Option<Link> {
        self.link = self.device.link()?;
        Some(self.link)
    }

    /// Where `length` bytes can be written, if there is room.
    #[inline]
    fn room(&mut self, length: usize) -> Option<usize> {
        if self.end + length > self.bytes.len() {
            let front = self.queue.front().map_or(self.end, |first| first.start);
            self.bytes.copy_within(front..self.end, 0);
            self.queue.iter_mut().for_each(|waiting| waiting.start -= front);
            self.end -= front;
        }
        (self.end + length <= self.bytes.len()).then_some(self.end)
    }
}

/// Opens a device with one queue each way, as large an MTU as it has, for all stations, and up.
fn set_up(driver: &BareDriver, words: &str) -> Result<BareDevice, DpdkError> {
    let mut device = driver.attach(&complete(words))?;
    if device.rx_queues() != 1 {
        return Err(DpdkError::Queues { device: name(words).to_owned(), queues: device.rx_queues() });
    }
    // Devices of DPDK's own making take any MTU and mean nothing by it.
    if !is_virtual(words) && setting(words, "mtu").is_none() {
        let _ = MTUS.into_iter().find(|mtu| device.set_mtu(*mtu).is_ok());
    }
    device.up()?;
    // Those of them that know no such thing give all frames.
    if let Err(error) = device.promiscuous()
        && !is_virtual(words)
    {
        return Err(error.into());
    }
    Ok(device)
}

impl Transport for DpdkPort {
    fn kind(&self) -> &'static str {
        "dpdk"
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn ring(&self) -> u32 {
        self.ring
    }

    fn most_frame(&self) -> usize {
        self.longest
    }

    #[inline]
    fn receive(&mut self, most: usize, take: &mut impl FnMut(Received<'_>)) -> Result<usize, PortError> {
        if self.link.gone {
            return Err(PortError::Unplugged);
        }
        Ok(self.device.receive(most, &mut |bytes| take(Received { bytes, stamp: None })))
    }

    #[inline]
    fn send(
        &mut self,
        length: usize,
        most: usize,
        write: &mut impl FnMut(&mut [u8]),
    ) -> Result<usize, PortError> {
        if length > self.longest {
            return Err(PortError::TooLong { length, most: self.longest });
        }
        let count = most.min(BATCH - self.queue.len());
        for written in 0..count {
            let Some(start) = self.room(length) else { return Ok(written) };
            if let Some(frame) = self.bytes.get_mut(start..start + length) {
                write(frame);
            }
            self.queue.push_back(Waiting { start, length });
            self.end = start + length;
        }
        Ok(count)
    }

    #[inline]
    fn flush(&mut self) -> Result<Flushed, PortError> {
        if self.queue.is_empty() {
            return Ok(Flushed::default());
        }
        let accepted = if self.link.up {
            let bytes = &self.bytes;
            let frames =
                self.queue.iter().map(|w| bytes.get(w.start..w.start + w.length).unwrap_or_default());
            let sent = self.device.send(frames);
            self.lost += sent.refused as u64;
            sent.taken
        } else {
            // As a cable does that somebody has pulled.
            self.lost += self.queue.len() as u64;
            self.queue.len()
        };
        self.queue.drain(..accepted);
        let left = self.queue.len();
        if left == 0 {
            self.end = 0;
        }
        Ok(Flushed { accepted, refused: u64::from(left > 0) })
    }

    fn drops(&mut self) -> Result<Drops, PortError> {
        let no_answer = || PortError::Other("its driver says nothing of its link".to_owned());
        let missed = self.look().ok_or_else(no_answer)?.missed;
        Ok(Drops { receiving: missed + self.device.lost(), sending: self.lost, full: 0 })
    }

    fn tend(&mut self) {
        self.look();
    }

    fn is_attached(&self) -> bool {
        self.link.up && !self.link.gone
    }
}
