//! The words between master and slave of a memif, until there are rings.
//!
//! The driver's own control plane lives inside a router; the engine has two ports and speaks for each alone, one ring to
//! send by and one to receive by. Rings, regions, messages and sockets are the driver's.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_lite::future::{block_on, poll_once};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use shoal_memif::{
    AddRing, Consumer, Doorbell, EventError, EventFd, Hello, Init, Link, LinkError, Message, PeerFd, Place,
    Producer, Region, RegionError, Regions, RingMemory, RingPlace, RingPlaceError, Slots, VERSION,
    ring_bytes,
};
use thiserror::Error;

/// Descriptors of a ring, as a power of two: 2,048 frames last 2 ms at a million a second, the longest stall that is usual
/// on a virtual machine.
const LOG2: u8 = 11;
/// Frames that a ring of the engine's holds.
pub const RING_FRAMES: u32 = 1 << LOG2;
/// Bytes of a slot. Longer frames take several, as the protocol has it; slots for the longest would put each small frame
/// on pages of its own.
const SLOT: u32 = 2048;
/// Longest frame, without FCS: RFC 8219's 9,216 with two tags.
pub(super) const LONGEST: usize = 9216 + 8;
/// How long a peer may take for one answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// Regions and rings that the engine's master takes.
const MOST: usize = 16;

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum MemifError {
    /// There is no listener, or the system refuses.
    #[error("{place}: {source}")]
    Socket {
        /// The socket.
        place: String,
        /// Why.
        source: io::Error,
    },
    /// The name is none of a socket.
    #[error(transparent)]
    Place(#[from] shoal_memif::Error),
    /// The connection ended, or what came is no message.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The peer says no.
    #[error("the peer refuses: {0}")]
    Refused(String),
    /// Something else was to come.
    #[error("the peer says {got}, where {wanted} was due")]
    Unexpected {
        /// What came.
        got: String,
        /// What should have.
        wanted: &'static str,
    },
    /// Nothing came.
    #[error("the peer has not answered for {} s, where {wanted} was due", PATIENCE.as_secs())]
    Silent {
        /// What should have come.
        wanted: &'static str,
    },
    /// It speaks another version.
    #[error("the peer speaks versions {0:#06x} to {1:#06x}; 0x0200 is needed")]
    Version(u16, u16),
    /// It wants another interface than there is.
    #[error("the peer wants interface {asked}; there is {there}")]
    Id {
        /// What it asked for.
        asked: u32,
        /// What there is.
        there: u32,
    },
    /// Memory of the peer's that cannot be used.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// A ring that cannot be at its announced place.
    #[error(transparent)]
    Ring(#[from] RingPlaceError),
    /// A ring for each direction is needed.
    #[error("the peer brings {s2m} rings to the master and {m2s} from it; one of each is needed")]
    Rings {
        /// From slave to master.
        s2m: usize,
        /// From master to slave.
        m2s: usize,
    },
}

/// A connection that frames can flow over.
pub struct MemifEnd {
    pub(super) rx: Consumer,
    pub(super) tx: Producer,
    pub(super) regions: Arc<Regions>,
    pub(super) ring: u32,
    link: Link,
}

impl MemifEnd {
    /// Whether the peer is still there.
    pub(super) fn is_alive(&self) -> bool {
        match block_on(poll_once(self.link.receive())) {
            Some(Ok((Message::Disconnect { .. }, _)) | Err(_)) => false,
            None | Some(Ok(_)) => true,
        }
    }

    /// Connects as a slave to the master that listens at `place`.
    ///
    /// # Errors
    ///
    /// It is not there, refuses, or does not answer in time.
    pub fn slave(place: &Place, id: u32) -> Result<MemifEnd, MemifError> {
        let socket = |source| MemifError::Socket { place: place.to_string(), source };
        let link = Link::connect(place).map_err(socket)?;
        match hear(&link, "hello")?.0 {
            Message::Hello(Hello { versions: (first, last), .. }) if !(first..=last).contains(&VERSION) => {
                return Err(MemifError::Version(first, last));
            }
            Message::Hello(_) => {}
            other => return Err(unexpected(&other, "hello")),
        }
        let init = Init { version: VERSION, id, mode: 0, secret: [0; 24], name: "shoal-lab".into() };
        tell(&link, &Message::Init(init), None)?;
        let rings = (2 * ring_bytes(LOG2) as u32).next_multiple_of(4096);
        let first = [rings, rings + SLOT * RING_FRAMES];
        let (region, file) = Region::create((rings + 2 * SLOT * RING_FRAMES) as usize).map_err(socket)?;
        tell(&link, &Message::AddRegion { index: 0, size: region.len() as u64 }, Some(file))?;
        let regions = Arc::new(Regions::new(vec![region]));
        let ring = |s2m: bool, first: u32| -> Result<(RingMemory, Slots, EventFd), MemifError> {
            let offset = if s2m { 0 } else { ring_bytes(LOG2) as u32 };
            let memory = RingMemory::new(&regions, RingPlace { region: 0, offset, log2: LOG2 })?;
            let event = EventFd::create().map_err(socket)?;
            let theirs = event.try_clone().map_err(socket)?.into_fd();
            memory.format();
            let add = AddRing { s2m, index: 0, region: 0, offset, log2: LOG2, private_header: 0 };
            tell(&link, &Message::AddRing(add), Some(theirs))?;
            Ok((memory, Slots { region: 0, first, stride: SLOT, size: SLOT }, event))
        };
        let [out, into] = first;
        let (s2m, m2s) = (ring(true, out)?, ring(false, into)?);
        let tx = Producer::slave(s2m.0, s2m.1, doorbell(s2m.2)?);
        let rx = Consumer::slave(m2s.0, m2s.1, m2s.2);
        say(&link, &Message::Connect { name: format!("shoal-lab/{id}") }, None)?;
        match hear(&link, "connected")?.0 {
            Message::Connected { .. } => {}
            other => return Err(unexpected(&other, "connected")),
        }
        rx.give_again();
        Ok(MemifEnd { rx, tx, regions, ring: RING_FRAMES, link })
    }

    /// Serves, as a master, the slave at the other end of `socket` that wants interface `id`.
    ///
    /// # Errors
    ///
    /// It goes away, wants something else, or does not answer in time.
    pub fn master(socket: OwnedFd, id: u32) -> Result<MemifEnd, MemifError> {
        let failed = |source| MemifError::Socket { place: "a slave's socket".into(), source };
        let link = Link::of(socket).map_err(failed)?;
        let hello = Hello {
            name: "shoal-lab".into(),
            versions: (VERSION, VERSION),
            max_region: MOST as u16 - 1,
            max_m2s_ring: 0,
            max_s2m_ring: 0,
            max_log2: 14,
        };
        say(&link, &Message::Hello(hello), None)?;
        match hear(&link, "init")?.0 {
            Message::Init(init) if init.id == id => say(&link, &Message::Ack, None)?,
            Message::Init(init) => return Err(MemifError::Id { asked: init.id, there: id }),
            other => return Err(unexpected(&other, "init")),
        }
        let (mut regions, mut rings) = (Vec::new(), Vec::new());
        loop {
            match hear(&link, "add region, add ring or connect")? {
                (Message::AddRegion { size, .. }, Some(file)) if regions.len() < MOST => {
                    regions.push(Region::open(&file, size)?);
                }
                (Message::AddRing(ring), Some(event)) if rings.len() < MOST => rings.push((ring, event)),
                (Message::Connect { .. }, _) => break,
                (other, _) => return Err(unexpected(&other, "add region, add ring or connect")),
            }
            say(&link, &Message::Ack, None)?;
        }
        let regions = Arc::new(Regions::new(regions));
        let (mut s2m, mut m2s) = (Vec::new(), Vec::new());
        for (AddRing { s2m: up, region, offset, log2, .. }, event) in rings {
            let memory = RingMemory::new(&regions, RingPlace { region, offset, log2 })?;
            let event = EventFd::of_peer(event).map_err(no_event)?;
            if up { &mut s2m } else { &mut m2s }.push((memory, event));
        }
        let counts = MemifError::Rings { s2m: s2m.len(), m2s: m2s.len() };
        let (Some(up), Some(down)) = (s2m.pop(), m2s.pop()) else { return Err(counts) };
        if !s2m.is_empty() || !m2s.is_empty() {
            return Err(counts);
        }
        let ring = u32::from(up.0.size());
        let (rx, tx) = (Consumer::master(up.0, up.1), Producer::master(down.0, doorbell(down.1)?));
        say(&link, &Message::Connected { name: format!("shoal-lab/{id}") }, None)?;
        Ok(MemifEnd { rx, tx, regions, ring, link })
    }
}

fn no_event(error: EventError) -> MemifError {
    MemifError::Socket { place: "an interrupt".into(), source: io::Error::other(error) }
}

fn doorbell(event: EventFd) -> Result<Doorbell, MemifError> {
    Doorbell::new(event).map_err(no_event)
}

fn unexpected(got: &Message, wanted: &'static str) -> MemifError {
    match got {
        Message::Disconnect { text, .. } => MemifError::Refused(text.clone()),
        other => MemifError::Unexpected { got: format!("{other:?}"), wanted },
    }
}

fn say(link: &Link, message: &Message, fd: Option<OwnedFd>) -> Result<(), MemifError> {
    let sent = link.try_send(message, fd.as_ref().map(AsFd::as_fd));
    sent.map_err(|e| MemifError::Link(LinkError::Io(e)))
}

/// The next message, if it comes in time.
fn hear(link: &Link, wanted: &'static str) -> Result<(Message, Option<PeerFd>), MemifError> {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(heard) = block_on(poll_once(link.receive())) {
            return Ok(heard?);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(MemifError::Silent { wanted });
        }
        let left = Timespec::try_from(left).unwrap_or_default();
        let _ = poll(&mut [PollFd::new(link, PollFlags::IN)], Some(&left));
    }
}

/// Says something that the peer has to acknowledge.
fn tell(link: &Link, message: &Message, fd: Option<OwnedFd>) -> Result<(), MemifError> {
    say(link, message, fd)?;
    match hear(link, "ack")?.0 {
        Message::Ack => Ok(()),
        other => Err(unexpected(&other, "ack")),
    }
}
