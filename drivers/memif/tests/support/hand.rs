//! A peer made by hand, and the router it talks to.

use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use futures_lite::future::{block_on, poll_once};
use rustix::event::{EventfdFlags, eventfd};
use shoal_interface::SwIfIndex;
use shoal_memif::*;
use shoal_testkit::{Port, Router};

use super::*;

/// A router with one memif and a host at `pg0` whose packets go there, and a peer made by hand.
pub struct Bed {
    pub router: Router,
    pub host: Port,
    pub end: SwIfIndex,
    pub link: Option<Link>,
    pub listener: Option<std::rc::Rc<Listener>>,
    pub place: Place,
}

pub const LOG2: u8 = 4;
pub const SIZE: u16 = 1 << LOG2;
/// Where buffers begin in a region of the peer by hand, and how long they are.
pub const BUFFERS: u32 = 4096;
pub const BUFFER: u32 = 512;
pub const REGION: usize = BUFFERS as usize + 2 * SIZE as usize * BUFFER as usize;

pub fn bed(test: &str, role: Role) -> Bed {
    let mut router = Router::new(MODULES);
    let host = router.pg(0);
    let name = socket_name(test);
    let place = Place::of(&name, std::path::Path::new("/")).unwrap();
    let listener = (role == Role::Slave).then(|| std::rc::Rc::new(shoal_memif::listen(&place).unwrap()));
    let create = CreateMemif { socket: 1, role, ring_size: SIZE.into(), ..CreateMemif::default() };
    let end = make(&mut router, &name, &create);
    address(&router, host.index(), &["10.1.0.1/24", "2001:db8:1::1/64"]);
    address(&router, end, &["10.9.0.1/24"]);
    let neighbours = router.get::<shoal_arp::Neighbours>();
    let (origin, wanted) = (shoal_arp::table::Origin::Static, shoal_arp::table::FibEntry::Wanted);
    neighbours.set((end, [10, 9, 0, 2].into()), HOST, origin, wanted).unwrap();
    route(&router, "10.2.0.0/24", "10.9.0.2", end);
    Bed { router, host, end, link: None, listener, place }
}

fn is_passing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ResourceBusy)
}

impl Bed {
    pub fn connect(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        self.link = loop {
            match Link::connect(&self.place) {
                Ok(link) => break Some(link),
                // The kernel's queue of those that wait is full, or what other tests left behind is still being closed.
                // A router that had no descriptor left tries again after a time, which must pass for it, too.
                Err(e) if is_passing(&e) && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(1));
                    self.router.advance(Duration::from_millis(10));
                }
                Err(e) => panic!("cannot connect: {e}"),
            }
        };
    }

    /// The router's next word.
    pub fn hear(&mut self) -> Result<(Message, Option<PeerFd>), LinkError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.router.run();
            let link = self.link.as_ref().unwrap();
            if let Some(word) = block_on(poll_once(link.receive())) {
                return word;
            }
            assert!(Instant::now() < deadline, "the router says nothing");
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    pub fn say(&self, message: &Message, fd: Option<BorrowedFd<'_>>) {
        self.link.as_ref().unwrap().try_send(message, fd).unwrap();
    }

    /// Says something and waits for it to be taken.
    pub fn tell(&mut self, message: &Message, fd: Option<BorrowedFd<'_>>) {
        self.say(message, fd);
        let (answer, _) = self.hear().unwrap();
        assert_eq!(answer, Message::Ack, "to {message:?}");
    }

    /// Why the router has ended it.
    pub fn end_text(&mut self) -> String {
        loop {
            match self.hear() {
                Ok((Message::Disconnect { text, .. }, _)) => return text,
                Ok((Message::Hello(_) | Message::Ack | Message::Connected { .. }, _)) => {}
                other => panic!("not ended in words: {other:?}"),
            }
        }
    }

    pub fn init() -> Message {
        Message::Init(Init { version: VERSION, id: 0, mode: 0, secret: [0; 24], name: "hand".into() })
    }

    /// A slave's words up to the last; gives its memory, the rings from slave to master and back.
    pub fn become_slave(&mut self) -> Slave {
        self.connect();
        assert!(matches!(self.hear().unwrap().0, Message::Hello(_)));
        self.tell(&Bed::init(), None);
        let (region, fd) = Region::create(REGION).unwrap();
        self.tell(&Message::AddRegion { index: 0, size: REGION as u64 }, Some(fd.as_fd()));
        let regions = Arc::new(Regions::new(vec![region]));
        let mut m2s_event = None;
        let rings = [true, false].map(|s2m| {
            let offset = if s2m { 0 } else { 2048 };
            let ring = RingMemory::new(&regions, RingPlace { region: 0, offset, log2: LOG2 }).unwrap();
            ring.format();
            let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
            let add = AddRing { s2m, index: 0, region: 0, offset, log2: LOG2, private_header: 0 };
            self.tell(&Message::AddRing(add), Some(event.as_fd()));
            m2s_event = Some(event);
            ring
        });
        self.say(&Message::Connect { name: "hand0".into() }, None);
        assert_eq!(self.hear().unwrap().0, Message::Connected { name: "memif1/0".into() });
        let end = self.end;
        assert!(run_until(&mut [&mut self.router], |routers| is_up(routers[0], end)));
        let [s2m, m2s] = rings;
        Slave { regions, s2m, m2s, m2s_event }
    }

    /// Waits until the router has found its peer out.
    pub fn sent_away(&mut self) -> String {
        let text = self.end_text();
        let end = self.end;
        self.link = None;
        assert!(run_until(&mut [&mut self.router], |routers| !is_up(routers[0], end)));
        text
    }

    pub fn packet(&self, payload: usize) -> Vec<u8> {
        shoal_wire::Packet::ethernet(HOST, self.host.mac())
            .ip4([10, 1, 0, 2], [10, 2, 0, 2])
            .udp(1, 2)
            .payload_len(payload)
            .build()
    }
}

/// Other modules' tasks keep a router of a test alive: what listens is to be closed.
impl Drop for Bed {
    fn drop(&mut self) {
        let _ = self.router.get::<Memifs>().delete(self.end);
        self.router.run();
    }
}

pub struct Slave {
    pub regions: Arc<Regions>,
    pub s2m: RingMemory,
    pub m2s: RingMemory,
    /// What the router wakes the slave by, as the slave has it.
    pub m2s_event: Option<OwnedFd>,
}
