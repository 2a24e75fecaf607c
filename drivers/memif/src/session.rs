//! The messages on the control channel, by either end.
//!
//! ```text
//!  slave                     master
//!    | <------- hello ---------- |
//!    | -------- init ----------> |   id, mode, secret
//!    | <------- ack ------------ |
//!    | -------- add region ----> |   and its file; each is acknowledged
//!    | -------- add ring ------> |   and its eventfd; each is acknowledged
//!    | -------- connect -------> |
//!    | <------- connected ------ |
//!    | <------ disconnect -----> |   any time, with a text
//! ```

use std::os::fd::{AsFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::or;
use shoal_graph::process::{Processes, Receiver};

use crate::config::{CreateMemif, MOST_QUEUES};
use crate::consumer::{Consumer, Slots};
use crate::control::Memifs;
use crate::memif::{Memif, Socket};
use crate::producer::Producer;
use crate::proto::{AddRing, Hello, Init, Message, VERSION};
use crate::region::{Region, Regions};
use crate::ring::{RingMemory, RingPlace, ring_bytes};
use crate::socket::{Link, LinkError};
use shoal_link::{Doorbell, EventError, EventFd, Listener, PeerFd};

/// How long a peer may take for its next message until the handshake is complete.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a slave waits before it tries again.
const RETRY: Duration = Duration::from_secs(1);
/// The last region that is taken from a slave.
const MAX_REGION: u16 = 255;
/// The last ring of a direction.
const MAX_RING: u16 = MOST_QUEUES as u16 - 1;
/// Most descriptors of a ring, as a power of two.
const MAX_LOG2: u8 = 14;

/// Who this end is, for its peers.
pub(crate) fn our_name() -> String {
    format!("Shoal {}", env!("CARGO_PKG_VERSION"))
}

/// Why a connection is over.
#[derive(Debug)]
pub(crate) enum End {
    /// The peer closed with this reason.
    Peer(String),
    /// This end does not want it any more; the peer gets the reason.
    Us(String),
    /// The channel is closed.
    Link(LinkError),
}

impl From<LinkError> for End {
    fn from(error: LinkError) -> Self {
        match error {
            // A peer that talks rubbish is still told so.
            LinkError::Malformed(_) | LinkError::TooManyFds => End::Us(error.to_string()),
            error => End::Link(error),
        }
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Peer(text) if text.is_empty() => f.write_str("the peer has disconnected"),
            End::Peer(text) => write!(f, "the peer has disconnected: {text}"),
            End::Us(text) => f.write_str(text),
            End::Link(error) => error.fmt(f),
        }
    }
}

fn us(text: impl Into<String>) -> End {
    End::Us(text.into())
}

fn no_event(error: EventError) -> End {
    us(error.to_string())
}

fn doorbell(event: EventFd) -> Result<Doorbell, End> {
    Doorbell::new(event).map_err(no_event)
}

/// A ring of a connection, for `show memif`.
pub(crate) struct Ring {
    pub(crate) s2m: bool,
    pub(crate) index: u16,
    pub(crate) place: RingPlace,
    pub(crate) memory: RingMemory,
    pub(crate) event: i32,
}

/// What a handshake has brought.
pub(crate) struct Negotiated {
    pub(crate) regions: Arc<Regions>,
    pub(crate) rx: Vec<Consumer>,
    pub(crate) tx: Vec<Producer>,
    pub(crate) rings: Vec<Ring>,
    pub(crate) remote_interface: String,
}

/// Waits; for ever when the router has ended, whose tasks end with it.
async fn sleep(processes: &Weak<Processes>, wait: Duration) {
    match processes.upgrade().map(|processes| processes.sleep(wait)) {
        Some(sleep) => sleep.await,
        None => std::future::pending().await,
    }
}

/// One end of a connection while words are changed.
struct Handshake<'a> {
    link: &'a Link,
    stop: &'a Receiver<String>,
    /// Weak, as in all tasks: the tasks are the processes', which would keep themselves otherwise.
    processes: &'a Weak<Processes>,
}

impl Handshake<'_> {
    /// The next word of the peer, unless this end is to stop.
    async fn next(&self, patience: Option<Duration>) -> Result<(Message, Option<PeerFd>), End> {
        let word = async { self.link.receive().await.map_err(End::from) };
        let stopped =
            async { Err(us(self.stop.recv().await.unwrap_or_else(|_| "interface deleted".into()))) };
        let late = async {
            match patience {
                Some(patience) => sleep(self.processes, patience).await,
                None => std::future::pending().await,
            }
            Err(us("no message came for 10 seconds"))
        };
        match or(or(stopped, word), late).await? {
            (Message::Disconnect { text, .. }, _) => Err(End::Peer(text)),
            word => Ok(word),
        }
    }

    async fn say(&self, message: &Message, fd: Option<impl AsFd>) -> Result<(), End> {
        Ok(self.link.send(message, fd.as_ref().map(AsFd::as_fd)).await?)
    }

    async fn say_only(&self, message: &Message) -> Result<(), End> {
        self.say(message, None::<OwnedFd>).await
    }

    /// Says something and waits until it was taken.
    async fn tell(&self, message: &Message, fd: Option<impl AsFd>) -> Result<(), End> {
        self.say(message, fd).await?;
        match self.next(Some(PATIENCE)).await? {
            (Message::Ack, _) => Ok(()),
            (other, _) => Err(unexpected(&other, "ack")),
        }
    }

    /// Waits for the end.
    async fn last(&self) -> End {
        match self.next(None).await {
            Ok((other, _)) => unexpected(&other, "disconnect"),
            Err(end) => end,
        }
    }
}

fn unexpected(message: &Message, wanted: &str) -> End {
    us(format!("unexpected {}, not {wanted}", message.kind()))
}

/// A slave's part, from the peer's hello on; `attached` is called when packets may flow.
async fn slave(
    talk: &Handshake<'_>,
    config: &CreateMemif,
    attached: impl FnOnce(String, Negotiated) -> Result<(), String>,
) -> End {
    match slave_connects(talk, config).await {
        Ok((remote, made)) => match attached(remote, made) {
            Ok(()) => talk.last().await,
            Err(why) => End::Us(why),
        },
        Err(end) => end,
    }
}

async fn slave_connects(talk: &Handshake<'_>, config: &CreateMemif) -> Result<(String, Negotiated), End> {
    let hello = match talk.next(Some(PATIENCE)).await? {
        (Message::Hello(hello), _) => hello,
        (other, _) => return Err(unexpected(&other, "hello")),
    };
    let (first, last) = hello.versions;
    if !(first..=last).contains(&VERSION) {
        return Err(us(format!("protocol version 2.0 is needed, not {first:#06x} to {last:#06x}")));
    }
    let mode = Message::mode_number(config.mode);
    let init = Init { version: VERSION, id: config.id, mode, secret: config.secret(), name: our_name() };
    talk.tell(&Message::Init(init), None::<OwnedFd>).await?;
    // The master takes fewer or shorter rings at times; it says so first.
    let tx = config.tx_queues.min(u32::from(hello.max_s2m_ring) + 1) as u16;
    let rx = config.rx_queues.min(u32::from(hello.max_m2s_ring) + 1) as u16;
    let log2 = config.log2().min(hello.max_log2);
    let plan = Plan { tx, rx, log2, size: config.buffer_size.into(), stride: config.stride() };
    let (region, file) = Region::create(plan.bytes()).map_err(|e| us(format!("region: {e}")))?;
    talk.tell(&Message::AddRegion { index: 0, size: region.len() as u64 }, Some(file)).await?;
    let regions = Arc::new(Regions::new(vec![region]));
    let mut made = Negotiated {
        regions: Arc::clone(&regions),
        rx: Vec::new(),
        tx: Vec::new(),
        rings: Vec::new(),
        remote_interface: String::new(),
    };
    for number in 0..tx + rx {
        let (s2m, index) = if number < tx { (true, number) } else { (false, number - tx) };
        let place = plan.ring(number);
        let memory = || RingMemory::new(&regions, place).map_err(|e| us(e.to_string()));
        let event = EventFd::create().map_err(|e| us(format!("eventfd: {e}")))?;
        let theirs = event.try_clone().map_err(|e| us(format!("dup: {e}")))?;
        let RingPlace { region, offset, log2 } = place;
        made.rings.push(Ring { s2m, index, place, memory: memory()?, event: event.raw() });
        if s2m {
            made.tx.push(Producer::slave(memory()?, plan.slots(number), doorbell(event)?));
        } else {
            made.rx.push(Consumer::slave(memory()?, plan.slots(number), event));
        }
        let ring = AddRing { s2m, index, region, offset, log2, private_header: 0 };
        talk.tell(&Message::AddRing(ring), Some(theirs)).await?;
    }
    talk.say_only(&Message::Connect { name: config.name() }).await?;
    match talk.next(Some(PATIENCE)).await? {
        (Message::Connected { name }, _) => made.remote_interface = name,
        (other, _) => return Err(unexpected(&other, "connected")),
    }
    for consumer in &made.rx {
        consumer.give_again();
    }
    Ok((hello.name, made))
}

/// How a slave lays out its one region: all rings, then all buffers.
#[derive(Clone, Copy)]
struct Plan {
    tx: u16,
    rx: u16,
    log2: u8,
    size: u32,
    stride: u32,
}

impl Plan {
    fn rings(&self) -> u32 {
        (ring_bytes(self.log2) as u32).next_multiple_of(64)
    }

    fn count(&self) -> u32 {
        u32::from(self.tx + self.rx)
    }

    fn buffers(&self) -> u32 {
        (self.count() * self.rings()).next_multiple_of(4096)
    }

    /// At most 4 GiB: the numbers were checked when the interface was made.
    fn bytes(&self) -> usize {
        self.buffers() as usize + self.count() as usize * ((self.stride as usize) << self.log2)
    }

    fn ring(&self, number: u16) -> RingPlace {
        RingPlace { region: 0, offset: u32::from(number) * self.rings(), log2: self.log2 }
    }

    fn slots(&self, number: u16) -> Slots {
        let first = self.buffers() + u32::from(number) * (self.stride << self.log2);
        Slots { region: 0, first, stride: self.stride, size: self.size }
    }
}

/// A master's part, after the slave's init was found good.
async fn master_connects(talk: &Handshake<'_>, our_interface: &str) -> Result<Negotiated, End> {
    talk.say_only(&Message::Ack).await?;
    let mut regions = Vec::new();
    // The announced rings: their memory is looked at when all regions are there.
    let mut rings: Vec<(AddRing, EventFd)> = Vec::new();
    let remote_interface = loop {
        match talk.next(Some(PATIENCE)).await? {
            (Message::AddRegion { index, size }, fd) => {
                let next = regions.len();
                if usize::from(index) != next || index > MAX_REGION {
                    return Err(us(format!("region {index}, must be {next} and at most {MAX_REGION}")));
                }
                let fd = fd.ok_or_else(|| us("region without a descriptor"))?;
                regions.push(Region::open(&fd, size).map_err(|e| us(e.to_string()))?);
            }
            (Message::AddRing(ring), fd) => {
                let next = rings.iter().filter(|(r, _)| r.s2m == ring.s2m).count();
                if usize::from(ring.index) != next || ring.index > MAX_RING {
                    return Err(us(format!("ring {}, must be {next} and at most {MAX_RING}", ring.index)));
                }
                if ring.private_header != 0 {
                    return Err(us("ring with private headers, which are not offered"));
                }
                let fd = fd.ok_or_else(|| us("ring without an interrupt's descriptor"))?;
                rings.push((ring, EventFd::of_peer(fd).map_err(no_event)?));
            }
            (Message::Connect { name }, _) => break name,
            (other, _) => return Err(unexpected(&other, "add region, add ring or connect")),
        }
        talk.say_only(&Message::Ack).await?;
    };
    let regions = Arc::new(Regions::new(regions));
    let mut made =
        Negotiated { regions, rx: Vec::new(), tx: Vec::new(), rings: Vec::new(), remote_interface };
    for (ring, event) in rings {
        let AddRing { s2m, index, region, offset, log2, .. } = ring;
        let place = RingPlace { region, offset, log2 };
        let memory = || RingMemory::new(&made.regions, place).map_err(|e| us(e.to_string()));
        let (used, shown) = (memory()?, memory()?);
        if !shown.is_formatted() {
            return Err(us("ring without its cookie"));
        }
        made.rings.push(Ring { s2m, index, place, memory: shown, event: event.raw() });
        if s2m {
            made.rx.push(Consumer::master(used, event));
        } else {
            made.tx.push(Producer::master(used, doorbell(event)?));
        }
    }
    talk.say_only(&Message::Connected { name: our_interface.to_owned() }).await?;
    Ok(made)
}

/// Tells the peer why, if this end is the one that ends it.
fn goodbye(link: &Link, end: &End) {
    if let End::Us(text) = end {
        // A peer that does not read will see the connection closed.
        let _ = link.try_send(&Message::disconnect(text), None);
    }
}

/// The process task of one slave: connects, again and again.
pub(crate) async fn slave_task(
    memifs: Weak<Memifs>,
    memif: Weak<Memif>,
    wake: Receiver<()>,
    processes: Weak<Processes>,
) {
    loop {
        let Some(slave_if) = memif.upgrade() else { return };
        if !slave_if.is_wanted() {
            drop(slave_if);
            if wake.recv().await.is_err() {
                return;
            }
            continue;
        }
        match Link::connect(slave_if.place()) {
            Err(e) => slave_if.note(format!("{}: {e}", slave_if.place())),
            Ok(link) => {
                let stop = slave_if.begin(link.number());
                let config = slave_if.config.clone();
                drop(slave_if);
                let talk = Handshake { link: &link, stop: &stop, processes: &processes };
                let attached = |remote: String, made: Negotiated| match (memifs.upgrade(), memif.upgrade()) {
                    (Some(memifs), Some(memif)) => memifs.attach(&memif, remote, made),
                    _ => Err("interface deleted".to_owned()),
                };
                let end = slave(&talk, &config, attached).await;
                goodbye(&link, &end);
                if let (Some(memifs), Some(memif)) = (memifs.upgrade(), memif.upgrade()) {
                    memifs.detach(&memif, &end.to_string());
                }
            }
        }
        let rested = async {
            sleep(&processes, RETRY).await;
            true
        };
        let woken = async { wake.recv().await.is_ok() };
        if !or(woken, rested).await {
            return;
        }
    }
}

/// The process task of one socket that masters listen on.
pub(crate) async fn listen_task(
    memifs: Weak<Memifs>,
    socket: Weak<Socket>,
    listener: Weak<Listener>,
    closed: Receiver<()>,
    processes: Weak<Processes>,
) {
    loop {
        let peer = async { Some(Listener::accept(&listener).await?.and_then(Link::of)) };
        let next = or(async { closed.recv().await.ok().and(None) }, peer).await;
        match (next, socket.upgrade()) {
            (Some(Ok(link)), Some(socket)) => {
                let Some(seat) = memifs.upgrade().and_then(|memifs| memifs.seat(&socket)) else {
                    socket.refuse("too many at once");
                    continue;
                };
                let task = master_task(memifs.clone(), Rc::downgrade(&socket), link, processes.clone());
                let Some(processes) = processes.upgrade() else { return };
                processes.spawn_unlisted(async move {
                    task.await;
                    drop(seat);
                });
            }
            (Some(Err(error)), Some(socket)) => {
                // Out of file descriptors, most likely: trying at once again would spin.
                tracing::warn!(%error, "{}: cannot take a peer", socket.place);
                sleep(&processes, RETRY).await;
            }
            _ => return,
        }
    }
}

/// One connection of a master.
async fn master_task(memifs: Weak<Memifs>, socket: Weak<Socket>, link: Link, processes: Weak<Processes>) {
    let hello = Hello {
        name: our_name(),
        versions: (VERSION, VERSION),
        max_region: MAX_REGION,
        max_m2s_ring: MAX_RING,
        max_s2m_ring: MAX_RING,
        max_log2: MAX_LOG2,
    };
    // Its owner is not known yet, so it cannot be stopped.
    let (_never, stop) = shoal_graph::process::channel(1);
    let talk = Handshake { link: &link, stop: &stop, processes: &processes };
    let said = async {
        talk.say_only(&Message::Hello(hello)).await?;
        match talk.next(Some(PATIENCE)).await? {
            (Message::Init(init), _) => Ok(init),
            (other, _) => Err(unexpected(&other, "init")),
        }
    };
    let found = match (said.await, memifs.upgrade(), socket.upgrade()) {
        (Ok(init), Some(memifs), Some(socket)) => {
            memifs.welcome(&socket, &init).map(|memif| (memif, init)).map_err(End::Us)
        }
        (Ok(_), _, _) => Err(us("socket deleted")),
        (Err(end), _, _) => Err(end),
    };
    let (memif, init) = match found {
        Ok(found) => found,
        Err(end) => {
            if let Some(socket) = socket.upgrade() {
                socket.refuse(&end.to_string());
            }
            return goodbye(&link, &end);
        }
    };
    let (stop, name) = (memif.begin(link.number()), memif.config.name());
    let memif = Rc::downgrade(&memif);
    let talk = Handshake { link: &link, stop: &stop, processes: &processes };
    let end = match master_connects(&talk, &name).await {
        Ok(made) => {
            let attached = match (memifs.upgrade(), memif.upgrade()) {
                (Some(memifs), Some(memif)) => memifs.attach(&memif, init.name, made),
                _ => Err("interface deleted".to_owned()),
            };
            match attached {
                Ok(()) => talk.last().await,
                Err(why) => End::Us(why),
            }
        }
        Err(end) => end,
    };
    goodbye(&link, &end);
    if let (Some(memifs), Some(memif)) = (memifs.upgrade(), memif.upgrade()) {
        memifs.detach(&memif, &end.to_string());
    }
}
