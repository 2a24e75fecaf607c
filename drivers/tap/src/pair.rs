//! One queue of a TAP, by either way: a system call for each frame, or two rings that vhost-net's thread serves.

use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_link::EventFd;
use shoal_shm::{Mapping, Populate};
use shoal_vnet::VnetHdr;

use crate::ring::{HEADER, RING_SIZE, Ring, slot_bytes};
use crate::rx_ring::RxRing;
use crate::sys::vhost::{self, Vhost};
use crate::tx_ring::TxRing;
use crate::vring::Vring;
use crate::{CreateTap, Error, Mode, SendError, Tap, TapQueue, VhostNet};

/// Entries of the rings, receive and transmit.
pub(crate) type RingSizes = [u16; 2];

/// Slots of a transmit ring for each entry that was asked for. A large packet takes many, where VPP's takes one entry, and
/// 256 of them would be full with seven.
const TX_SLOTS: u16 = 4;
/// Most entries of a ring (virtio 1.2, 2.7).
const MOST: u16 = 32_768;

/// How a TAP's frames cross.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FramePath {
    /// By vhost-net.
    Rings(RingSizes),
    /// By system calls, and why.
    Calls(String),
}

/// One queue.
pub(crate) struct Pair {
    queue: TapQueue,
    /// Until it is received from.
    rx: Option<RxRing>,
    tx: Option<Arc<Mutex<TxRing>>>,
}

/// What a receive queue reads.
pub(crate) enum Receiver {
    Calls(TapQueue),
    Ring(Box<RxRing>),
}

/// What a transmit queue writes. Several may share a ring.
pub(crate) enum Sender {
    Calls(TapQueue),
    Ring(Arc<Mutex<TxRing>>),
}

/// A transmit queue in use.
pub(crate) enum Sending<'a> {
    Calls(&'a mut TapQueue),
    Ring(MutexGuard<'a, TxRing>),
}

/// What became of the frames before, and whether more can be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Before {
    /// Entries that make no sense.
    pub(crate) malformed: usize,
    /// Nothing can be sent any more.
    pub(crate) broken: bool,
}

/// Decides how frames of a TAP to be cross.
///
/// # Errors
/// vhost-net is asked for, and cannot be.
pub(crate) fn decide(create: &CreateTap) -> Result<FramePath, Error> {
    let why = match (create.vhost, create.tap.mode) {
        (VhostNet::Off, _) => return Ok(FramePath::Calls("not asked for".into())),
        // Linux takes small frames of a ring in batches, for which they must be Ethernet frames.
        (_, Mode::Tun) => "it takes Ethernet frames, which a tun interface has not".to_owned(),
        (_, Mode::Tap) => match vhost::probe() {
            Ok(()) => {
                let size = |asked: Option<u32>| asked.map_or(RING_SIZE, |n| n as u16);
                return Ok(FramePath::Rings(create.ring_sizes.map(size)));
            }
            Err(error) => error.to_string(),
        },
    };
    if create.vhost == VhostNet::On { Err(Error::Vhost { why }) } else { Ok(FramePath::Calls(why)) }
}

/// The queues of a new TAP. If the operator does not insist on vhost-net, a failure of it leads to system calls.
pub(crate) fn open(
    tap: &Tap,
    queues: Vec<TapQueue>,
    way: FramePath,
    asked: VhostNet,
) -> Result<(FramePath, Vec<Pair>), Error> {
    let calls = |queue| Pair { queue, rx: None, tx: None };
    let sizes = match way {
        FramePath::Rings(sizes) => sizes,
        FramePath::Calls(_) => return Ok((way, queues.into_iter().map(calls).collect())),
    };
    let started = tap.set_header_len(HEADER).and_then(|()| {
        let clones = queues.iter().map(TapQueue::try_clone).collect::<Result<Vec<_>, _>>()?;
        clones.into_iter().map(|queue| Pair::start(queue, sizes)).collect::<Result<Vec<_>, _>>()
    });
    match started {
        Ok(pairs) => Ok((FramePath::Rings(sizes), pairs)),
        Err(error) if asked == VhostNet::On => Err(Error::Vhost { why: error.to_string() }),
        Err(error) => {
            tap.set_header_len(shoal_vnet::VNET_HDR_LEN)?;
            Ok((FramePath::Calls(error.to_string()), queues.into_iter().map(calls).collect()))
        }
    }
}

impl Pair {
    /// One more queue of a TAP, as the others.
    pub(crate) fn open(tap: &Tap, way: &FramePath) -> Result<Self, Error> {
        let queue = tap.add_queue()?;
        match way {
            FramePath::Calls(_) => Ok(Pair { queue, rx: None, tx: None }),
            FramePath::Rings(sizes) => Pair::start(queue, *sizes),
        }
    }

    /// Makes the rings, and has the kernel serve them.
    fn start(queue: TapQueue, sizes: RingSizes) -> Result<Self, Error> {
        let event = || EventFd::create().map_err(Error::os("eventfd"));
        let [rx_size, tx_size] = sizes;
        let tx_size = tx_size.saturating_mul(TX_SLOTS).min(MOST);
        let [rx_bytes, tx_bytes] = [rx_size, tx_size].map(|size| Vring::bytes(size, slot_bytes(size)));
        let memory =
            Mapping::anonymous(rx_bytes + tx_bytes, Populate::Later).map_err(Error::os("mmap(rings)"))?;
        let memory = Arc::new(memory);
        let ring = |at, size| -> Result<Ring, Error> {
            let vring = Vring::new(&memory, at, size, slot_bytes(size));
            let (what, rule) = ("ring size", "a power of two up to 32768");
            let value = size.into();
            Ok(Ring::new(vring.ok_or(Error::Config { what, value, rule })?, event()?))
        };
        let mut rx = RxRing::new(ring(0, rx_size)?, event()?);
        let mut tx = TxRing::new(ring(rx_bytes, tx_size)?);
        let (rx_ring, call) = rx.ring();
        let places = [
            vhost::Ring { place: rx_ring.vring.addresses(), kick: rx_ring.kick(), call: Some(call) },
            vhost::Ring { place: tx.ring().vring.addresses(), kick: tx.ring().kick(), call: None },
        ];
        let tap = queue.as_fd();
        let vhost = aside(|| Vhost::start(tap, &memory, &places))?;
        let vhost = Arc::new(vhost);
        rx.start(Some(Arc::clone(&vhost)));
        tx.start(vhost);
        Ok(Pair { queue, rx: Some(rx), tx: Some(Arc::new(Mutex::new(tx))) })
    }

    /// What to receive from. A pair is received from once.
    pub(crate) fn receiver(&mut self) -> Result<Receiver, Error> {
        match self.rx.take() {
            Some(rx) => Ok(Receiver::Ring(Box::new(rx))),
            None => Ok(Receiver::Calls(self.queue.try_clone()?)),
        }
    }

    /// What to send by.
    pub(crate) fn sender(&self) -> Result<Sender, Error> {
        match &self.tx {
            Some(tx) => Ok(Sender::Ring(Arc::clone(tx))),
            None => Ok(Sender::Calls(self.queue.try_clone()?)),
        }
    }
}

/// Runs `f` on a thread that may run on any processor: the thread of the kernel that it starts inherits that (Linux 6.4),
/// and is not to share the one processor that the main thread may be bound to.
fn aside<T: Send>(f: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("tap-vhost".into()).spawn_scoped(scope, || {
            let mut all = nix::sched::CpuSet::new();
            // Those that there are not, or that are not for this process, the kernel leaves out.
            for cpu in 0..nix::sched::CpuSet::count() {
                let _ = all.set(cpu);
            }
            let _ = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &all);
            f()
        });
        let failed = |why| Error::os("vhost thread")(why);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(failed(std::io::Error::other("it panicked"))),
            Err(e) => Err(failed(e)),
        }
    })
}

impl Sender {
    /// For the frames of one vector.
    #[inline(always)]
    pub(crate) fn lock(&mut self) -> Sending<'_> {
        match self {
            Sender::Calls(queue) => Sending::Calls(queue),
            Sender::Ring(ring) => Sending::Ring(ring.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

impl Sending<'_> {
    /// Takes back what was sent before.
    #[inline(always)]
    pub(crate) fn begin(&mut self) -> Before {
        match self {
            Sending::Calls(_) => Before::default(),
            Sending::Ring(ring) => {
                let malformed = ring.begin();
                Before { malformed, broken: ring.is_broken() }
            }
        }
    }

    /// Sends a frame, by a ring after [`Sending::finish`].
    #[inline(always)]
    pub(crate) fn send<'a>(
        &mut self,
        vnet: VnetHdr,
        segments: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), SendError> {
        match self {
            Sending::Calls(queue) => queue.send(vnet, segments),
            Sending::Ring(ring) => ring.send(vnet, segments),
        }
    }

    /// Shows the kernel what was sent; tells whether it had to be woken.
    #[inline(always)]
    pub(crate) fn finish(&mut self) -> bool {
        match self {
            Sending::Calls(_) => false,
            Sending::Ring(ring) => ring.finish(),
        }
    }
}
