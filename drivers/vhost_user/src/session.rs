//! What one front end says, and what follows from it: features, memory, rings. It knows no sockets and no interfaces,
//! so that tests can send it any message.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_link::{Doorbell, EventError, EventFd, PeerFd};

use crate::call::Call;
use crate::features::{Features, PROTOCOL_FEATURES, PROTOCOL_REPLY_ACK};
use crate::memory::{GuestMemory, MemoryError, Trust};
use crate::proto::{Answer, Header, Malformed, Message};
use crate::queue::{Progress, Queue};
use crate::vring::{Vring, VringError, VringPlace};

/// Most pairs of rings, each pair one queue each way.
pub const MOST_PAIRS: usize = 16;
/// Rings of them.
pub const MOST_RINGS: usize = MOST_PAIRS * 2;

/// Why a connection is ended.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A message that is none.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The guest's memory cannot be used.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A ring cannot be used.
    #[error("ring {0}: {1}")]
    Ring(u32, VringError),
    /// A descriptor that wakes no thread.
    #[error("ring {0}: {1}")]
    Event(u32, EventError),
    /// A ring that was not offered.
    #[error("ring {0}, must be 0 to 31")]
    NoRing(u32),
    /// A ring's index that none has.
    #[error("ring {0}: base {1}, must be up to 65535")]
    Base(u32, u32),
    /// It was changed while packets went through it.
    #[error("ring {0} was changed while it is in use")]
    Busy(u32),
    /// Features that were not offered.
    #[error("features {0:#x} were not offered")]
    Features(u64),
    /// The data plane does not take it.
    #[error("{0}")]
    Refused(String),
}

/// Whether packets go through a ring that runs, or are taken and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// They go.
    Open,
    /// They do not.
    Shut,
}

/// Where rings go that a session starts.
pub trait Rings {
    /// Takes a ring into use.
    ///
    /// # Errors
    /// There is no place for it.
    fn start(&self, ring: u32, queue: Queue, gate: Gate) -> Result<(), String>;

    /// Takes it out of use: no thread touches its memory afterwards.
    fn stop(&self, ring: u32);
}

/// What is known of a ring.
#[derive(Default)]
pub struct Ring {
    /// Its entries; 0 until they are announced.
    pub size: u32,
    /// Its place.
    pub place: Option<VringPlace>,
    base: u16,
    /// Wakes this end, while the ring is started and there is such a descriptor. Kept to rebuild the ring.
    kick: Option<OwnedFd>,
    started: bool,
    /// Wakes the guest.
    pub call: Call,
    enabled: bool,
    /// In use.
    pub running: Option<Arc<Progress>>,
    /// To read the guest's side of it, for display.
    pub shown: Option<Vring>,
}

impl Ring {
    /// Number of the descriptor that wakes this end; -1 if there is none.
    pub fn kick_number(&self) -> i32 {
        self.kick.as_ref().map_or(-1, std::os::fd::AsRawFd::as_raw_fd)
    }
}

/// One front end's connection.
pub struct Session {
    trust: Trust,
    offered: Features,
    /// What the front end has chosen; none until it has.
    features: Option<Features>,
    protocol: Features,
    memory: Option<Arc<GuestMemory>>,
    rings: Vec<Ring>,
}

impl Session {
    /// A front end is offered these features.
    pub fn new(offered: Features, trust: Trust) -> Self {
        let rings = (0..MOST_RINGS).map(|_| Ring::default()).collect();
        Session { trust, offered, features: None, protocol: Features(0), memory: None, rings }
    }

    /// What the front end has chosen.
    pub fn features(&self) -> Features {
        self.features.unwrap_or_default()
    }

    /// What it has chosen of the protocol.
    pub fn protocol(&self) -> Features {
        self.protocol
    }

    /// The guest's memory.
    pub fn memory(&self) -> Option<&GuestMemory> {
        self.memory.as_deref()
    }

    /// All rings.
    pub fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// Whether packets can flow, both ways.
    pub fn is_ready(&self) -> bool {
        let open = |odd: usize| {
            let pairs = self.rings.iter().enumerate().filter(move |(i, _)| i % 2 == odd);
            pairs.into_iter().any(|(_, r)| r.running.is_some() && self.gate(r) == Gate::Open)
        };
        open(0) && open(1)
    }

    fn gate(&self, ring: &Ring) -> Gate {
        // Without the protocol's features there is no word to enable a ring, so all are.
        let open = ring.enabled || !self.features().has(PROTOCOL_FEATURES);
        if open { Gate::Open } else { Gate::Shut }
    }

    fn ring(&mut self, number: u32) -> Result<&mut Ring, Fault> {
        self.rings.get_mut(number as usize).ok_or(Fault::NoRing(number))
    }

    /// One that no packets go through.
    fn idle(&mut self, number: u32) -> Result<&mut Ring, Fault> {
        let ring = self.ring(number)?;
        if ring.running.is_some() { Err(Fault::Busy(number)) } else { Ok(ring) }
    }

    /// Takes a message; gives the answer, if it wants one.
    ///
    /// # Errors
    /// The connection is to be ended: nothing that follows can be believed.
    pub fn hear(
        &mut self,
        header: Header,
        body: &[u8],
        fds: Vec<PeerFd>,
        rings: &dyn Rings,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let message = Message::decode(header.request, body, fds.len())?;
        let answer = self.obey(message, fds, rings)?;
        let wanted = header.need_reply && self.protocol.has(PROTOCOL_REPLY_ACK);
        let answer = answer.or(wanted.then_some(Answer::Number(0)));
        Ok(answer.map(|answer| answer.encode(header.request)))
    }

    fn obey(
        &mut self,
        message: Message,
        mut fds: Vec<PeerFd>,
        rings: &dyn Rings,
    ) -> Result<Option<Answer>, Fault> {
        match message {
            Message::GetFeatures => return Ok(Some(Answer::Number(self.offered.0))),
            Message::GetProtocolFeatures => {
                return Ok(Some(Answer::Number(Features::offered_protocol().0)));
            }
            Message::GetQueueNum => return Ok(Some(Answer::Number(MOST_PAIRS as u64))),
            Message::SetFeatures(chosen) => self.set_features(Features(chosen), rings)?,
            Message::SetProtocolFeatures(chosen) => {
                if chosen & !Features::offered_protocol().0 != 0 {
                    return Err(Fault::Features(chosen));
                }
                self.protocol = Features(chosen);
            }
            // The guest begins; nothing depends on who does.
            Message::SetOwner => {}
            Message::ResetOwner => self.stop_all(rings),
            Message::SetMemTable(said) => {
                let memory = Arc::new(GuestMemory::open(&said, &fds, self.trust)?);
                self.halt_all(rings);
                self.memory = Some(memory);
                self.resume_all(rings)?;
            }
            Message::SetVringNum(number, size) => {
                if !size.is_power_of_two() || size > 32_768 {
                    return Err(Fault::Ring(number, VringError::Size(size)));
                }
                self.idle(number)?.size = size;
            }
            Message::SetVringAddr(number, place) => {
                // The same once more is how some front ends ask for what is not offered: to log what is written.
                if self.ring(number)?.place != Some(place) {
                    self.idle(number)?.place = Some(place);
                    self.resume(number, rings)?;
                }
            }
            Message::SetVringBase(number, base) => {
                self.idle(number)?.base = u16::try_from(base).map_err(|_| Fault::Base(number, base))?;
            }
            Message::GetVringBase(number) => {
                self.ring(number)?;
                self.halt(number, rings);
                let ring = self.ring(number)?;
                (ring.started, ring.kick) = (false, None);
                return Ok(Some(Answer::Vring(number, ring.base.into())));
            }
            Message::SetVringKick(number) => {
                self.ring(number)?;
                let kick = fds.pop().map(|fd| check(number, fd)).transpose()?;
                self.halt(number, rings);
                let ring = self.ring(number)?;
                (ring.started, ring.kick) = (true, kick);
                self.resume(number, rings)?;
            }
            Message::SetVringCall(number) => {
                let ring = self.ring(number)?;
                let doorbell = fds.pop().map(|fd| Doorbell::new(EventFd::of_peer(fd)?)).transpose();
                ring.call.set(doorbell.map_err(|e| Fault::Event(number, e))?);
            }
            // Nothing is ever sent by it: an error ends the connection.
            Message::SetVringErr(number) => drop(self.ring(number)?),
            Message::SetVringEnable(number, enabled) => {
                let ring = self.ring(number)?;
                if std::mem::replace(&mut ring.enabled, enabled) != enabled {
                    self.halt(number, rings);
                    self.resume(number, rings)?;
                }
            }
        }
        Ok(None)
    }

    fn set_features(&mut self, chosen: Features, rings: &dyn Rings) -> Result<(), Fault> {
        if chosen.0 & !self.offered.0 != 0 {
            return Err(Fault::Features(chosen.0 & !self.offered.0));
        }
        if self.features != Some(chosen) {
            self.halt_all(rings);
            self.features = Some(chosen);
            self.resume_all(rings)?;
        }
        Ok(())
    }

    /// Takes a ring out of use, and notes how far it has come.
    fn halt(&mut self, number: u32, rings: &dyn Rings) {
        let Some(ring) = self.rings.get_mut(number as usize) else { return };
        if let Some(progress) = ring.running.take() {
            rings.stop(number);
            ring.shown = None;
            ring.base = progress.next.load(Ordering::Relaxed);
        }
    }

    fn halt_all(&mut self, rings: &dyn Rings) {
        (0..MOST_RINGS as u32).for_each(|number| self.halt(number, rings));
    }

    /// The front end is gone, or restarts.
    pub fn stop_all(&mut self, rings: &dyn Rings) {
        self.halt_all(rings);
        for ring in &mut self.rings {
            (ring.started, ring.enabled, ring.kick) = (false, false, None);
        }
    }

    /// Takes a ring into use if all is known of it.
    fn resume(&mut self, number: u32, rings: &dyn Rings) -> Result<(), Fault> {
        let (Some(features), Some(memory)) = (self.features, self.memory.clone()) else { return Ok(()) };
        let Some(ring) = self.rings.get(number as usize) else { return Ok(()) };
        let gate = self.gate(ring);
        let (Some(place), true, None) = (ring.place, ring.started, &ring.running) else { return Ok(()) };
        if ring.size == 0 {
            return Ok(());
        }
        let vring = || Vring::new(&memory, place, ring.size).map_err(|e| Fault::Ring(number, e));
        let (used, shown) = (vring()?, vring()?);
        let clone = |fd: &OwnedFd| fd.try_clone().map_err(|e| Fault::Refused(format!("ring {number}: {e}")));
        let kick = ring.kick.as_ref().map(clone).transpose()?;
        let kick = kick.map(EventFd::of_peer).transpose().map_err(|e| Fault::Event(number, e))?;
        let progress = Arc::new(Progress::default());
        let queue = Queue::new(used, features, ring.base, ring.call.clone(), kick, Arc::clone(&progress));
        rings.start(number, queue, gate).map_err(Fault::Refused)?;
        if let Some(ring) = self.rings.get_mut(number as usize) {
            (ring.running, ring.shown) = (Some(progress), Some(shown));
        }
        Ok(())
    }

    fn resume_all(&mut self, rings: &dyn Rings) -> Result<(), Fault> {
        (0..MOST_RINGS as u32).try_for_each(|number| self.resume(number, rings))
    }
}

/// An eventfd, as a descriptor.
fn check(number: u32, fd: PeerFd) -> Result<OwnedFd, Fault> {
    EventFd::of_peer(fd).map(EventFd::into_fd).map_err(|e| Fault::Event(number, e))
}
