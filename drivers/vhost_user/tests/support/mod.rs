//! A router, and a guest made by hand: its hypervisor's words, its memory, and a virtio driver. The memory is read and
//! written through its file, so that there is nothing unsafe here.
#![allow(dead_code)]

use std::fs::File;
use std::io::{IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::EventfdFlags;
use rustix::fs::MemfdFlags;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use shoal_arp::table::{FibEntry, Origin};
use shoal_interface::{IfFlags, SwIfIndex};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_module::Module;
use shoal_testkit::{Port, Router};
use shoal_vhost_user::{CreateVhost, Detail, HEADER_BYTES, Header, Role, VhostInfo, Vhosts};
use shoal_wire::{MacAddress, Packet};

/// What a router needs to forward both families.
pub const MODULES: &[&Module] = &[
    &shoal_interface::MODULE,
    &shoal_adj::MODULE,
    &shoal_ethernet::MODULE,
    &shoal_fib::MODULE,
    &shoal_ip4::MODULE,
    &shoal_ip6::MODULE,
    &shoal_arp::MODULE,
    &shoal_icmp::MODULE,
    &shoal_ip6_nd::MODULE,
    &shoal_vhost_user::MODULE,
];

pub const PATIENCE: Duration = Duration::from_secs(20);
pub const HOST: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 1]);
pub const GUEST: MacAddress = MacAddress([2, 0xbb, 0, 0, 0, 2]);

/// Entries of each ring.
pub const SIZE: u16 = 64;
/// Bytes of a buffer.
pub const BUFFER: u64 = 4096;
/// Each of two regions.
pub const REGION: u64 = 16 << 20;
/// Where the guest sees the second one.
pub const HIGH: u64 = 1 << 32;
const USER: [u64; 2] = [0x7000_0000_0000, 0x7100_0000_0000];
/// Where buffers begin: the last of the first region and the first of the second are beside each other in the file.
const BUFFERS: u64 = 4 << 20;

pub const CSUM: u64 = 1;
pub const GUEST_CSUM: u64 = 1 << 1;
pub const GUEST_TSO4: u64 = 1 << 7;
pub const GUEST_TSO6: u64 = 1 << 8;
pub const HOST_TSO4: u64 = 1 << 11;
pub const HOST_TSO6: u64 = 1 << 12;
pub const MRG_RXBUF: u64 = 1 << 15;
pub const INDIRECT: u64 = 1 << 28;
pub const EVENT_IDX: u64 = 1 << 29;
pub const PROTOCOL: u64 = 1 << 30;
pub const VERSION_1: u64 = 1 << 32;
/// What a guest of today takes.
pub const MODERN: u64 = CSUM
    | GUEST_CSUM
    | GUEST_TSO4
    | GUEST_TSO6
    | HOST_TSO4
    | HOST_TSO6
    | MRG_RXBUF
    | INDIRECT
    | EVENT_IDX
    | PROTOCOL
    | VERSION_1;

pub const NEXT: u16 = 1;
pub const WRITE: u16 = 2;
pub const IN_TABLE: u16 = 4;

/// Runs a router until something is so; its clock goes on meanwhile.
pub fn run_until(router: &mut Router, mut done: impl FnMut(&mut Router) -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    loop {
        router.advance(Duration::from_millis(20));
        if done(router) {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        // What was sent on a socket is there when its thread has seen it.
        std::thread::sleep(Duration::from_micros(200));
    }
}

pub fn info(router: &Router, index: SwIfIndex) -> VhostInfo {
    router.get::<Vhosts>().list(Some(index), Detail::Brief).unwrap().remove(0)
}

pub fn is_up(router: &Router, index: SwIfIndex) -> bool {
    router.interfaces().data(index).unwrap().flags().has(IfFlags::LINK_UP)
}

/// A router between a host on `pg0` and a guest: 10.1.0.0/24 and 2001:db8:1::/64 here, 10.2 and 2001:db8:2 there.
pub struct Bed {
    pub router: Router,
    pub host: Port,
    pub end: SwIfIndex,
    pub path: PathBuf,
    _dir: tempfile::TempDir,
}

impl Bed {
    pub fn new(role: Role) -> Self {
        Self::with(&CreateVhost { role, ..CreateVhost::default() })
    }

    pub fn with(create: &CreateVhost) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vm.sock");
        let mut router = Router::new(MODULES);
        let host = router.pg(0);
        let create = CreateVhost { socket: path.display().to_string(), ..create.clone() };
        let end = router.get::<Vhosts>().create(&create).unwrap();
        router.interfaces().set_admin(end, true).unwrap();
        for (n, index) in [(1, host.index()), (2, end)] {
            router.get::<Ip4>().add_address(index, format!("10.{n}.0.1/24").parse().unwrap()).unwrap();
            router.get::<Ip6>().add_address(index, format!("2001:db8:{n}::1/64").parse().unwrap()).unwrap();
            let mac = if n == 1 { HOST } else { GUEST };
            let key = (index, format!("10.{n}.0.2").parse().unwrap());
            router.get::<shoal_arp::Neighbours>().set(key, mac, Origin::Static, FibEntry::Wanted).unwrap();
            let key = (index, format!("2001:db8:{n}::2").parse().unwrap());
            router.get::<shoal_ip6_nd::Neighbours>().set(key, mac, Origin::Static, FibEntry::Wanted).unwrap();
        }
        router.run();
        Bed { router, host, end, path, _dir: dir }
    }

    /// A guest that has completed its set-up.
    pub fn guest(&mut self, features: u64, pairs: usize) -> Guest {
        let mut guest = Guest::connect(&self.path, features, pairs);
        guest.say_all(&mut self.router);
        self.up();
        guest
    }

    pub fn up(&mut self) {
        let end = self.end;
        assert!(run_until(&mut self.router, |r| is_up(r, end)), "{}", info(&self.router, end).why);
        for _ in 0..100 {
            self.router.advance(Duration::from_millis(100));
        }
        drop(self.host.received());
    }

    /// UDP from the host (0) or the guest (1) to the other.
    pub fn udp(&self, from: usize, six: bool, number: u16, payload: usize) -> Vec<u8> {
        let (src, mac) = if from == 0 { (HOST, self.host.mac()) } else { (GUEST, self.mac()) };
        let (n, to) = (from as u8 + 1, 2 - from as u8);
        let packet = Packet::ethernet(src, mac);
        let packet = if six {
            let host = |n: u8| std::net::Ipv6Addr::new(0x2001, 0xdb8, n.into(), 0, 0, 0, 0, 2);
            packet.ip6(host(n), host(to))
        } else {
            packet.ip4([10, n, 0, 2], [10, to, 0, 2])
        };
        packet.udp(1000 + number, 2000).payload_len(payload).build()
    }

    pub fn mac(&self) -> MacAddress {
        self.router.interfaces().data(self.end).unwrap().mac()
    }

    /// Runs until the host has so many packets of ours.
    pub fn host_gets(&mut self, count: usize) -> Vec<Vec<u8>> {
        let (host, mut got) = (self.host.clone(), Vec::new());
        run_until(&mut self.router, |_| {
            got.extend(host.received().into_iter().filter(|p| is_ours(p)));
            got.len() >= count
        });
        got
    }
}

/// Whether a frame is UDP to port 2000, as tests send it, and not what routers say to hosts.
pub fn is_ours(frame: &[u8]) -> bool {
    let at = if frame.get(12..14) == Some(&[0x08, 0x00]) { 36 } else { 56 };
    frame.get(at..at + 2) == Some(&2000_u16.to_be_bytes())
}

pub fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub fn eventfd() -> OwnedFd {
    rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()
}

/// The other end of a connection, and what it says.
pub struct FrontEnd(pub UnixStream);

impl FrontEnd {
    pub fn connect(path: &Path) -> Self {
        let socket = UnixStream::connect(path).unwrap();
        socket.set_nonblocking(true).unwrap();
        FrontEnd(socket)
    }

    /// Waits for a router that connects.
    pub fn accept(listener: &UnixListener, router: &mut Router) -> Self {
        listener.set_nonblocking(true).unwrap();
        let mut taken = None;
        assert!(run_until(router, |_| {
            taken = listener.accept().ok();
            taken.is_some()
        }));
        let socket = taken.unwrap().0;
        socket.set_nonblocking(true).unwrap();
        FrontEnd(socket)
    }

    pub fn raw(&self, bytes: &[u8], fds: &[&OwnedFd]) -> bool {
        let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(&fds));
        }
        rustix::net::sendmsg(&self.0, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL).is_ok()
    }

    pub fn say(&self, request: u32, words: &[u64], fds: &[&OwnedFd]) -> bool {
        self.say_so(request, words, fds, false)
    }

    pub fn say_so(&self, request: u32, words: &[u64], fds: &[&OwnedFd], need_reply: bool) -> bool {
        let header = Header { request, need_reply, size: words.len() * 8 };
        let mut bytes = header.encode().to_vec();
        bytes.extend(words.iter().flat_map(|w| w.to_le_bytes()));
        self.raw(&bytes, fds)
    }

    /// The answer's number; `None` when the connection is closed.
    pub fn answer(&mut self, router: &mut Router) -> Option<u64> {
        let mut bytes = Vec::new();
        let mut closed = false;
        let done = run_until(router, |_| {
            let mut some = [0; HEADER_BYTES + 8];
            match self.0.read(&mut some[bytes.len()..]) {
                Ok(0) => closed = true,
                Ok(n) => {
                    let read = some[bytes.len()..][..n].to_vec();
                    bytes.extend(read);
                }
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => closed = true,
            }
            closed || bytes.len() == HEADER_BYTES + 8
        });
        assert!(done, "neither an answer nor the end");
        (!closed).then(|| u64::from_le_bytes(bytes[HEADER_BYTES..].try_into().unwrap()))
    }

    pub fn ask(&mut self, router: &mut Router, request: u32, words: &[u64]) -> Option<u64> {
        self.say(request, words, &[]);
        self.answer(router)
    }
}

/// A guest's memory: two regions of one file.
pub struct Memory(pub File);

impl Memory {
    pub fn new() -> Self {
        let fd = rustix::fs::memfd_create("guest", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&fd, REGION * 2).unwrap();
        Memory(File::from(fd))
    }

    /// Where a byte of the file is, as the guest sees it.
    pub fn guest(at: u64) -> u64 {
        if at < REGION { at } else { at - REGION + HIGH }
    }

    /// The same, as the hypervisor sees it.
    pub fn user(at: u64) -> u64 {
        if at < REGION { at + USER[0] } else { at - REGION + USER[1] }
    }

    pub fn table() -> Vec<u64> {
        vec![2, 0, REGION, USER[0], 0, HIGH, REGION, USER[1], REGION]
    }

    pub fn write(&self, at: u64, bytes: &[u8]) {
        self.0.write_all_at(bytes, at).unwrap();
    }

    pub fn read(&self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.0.read_exact_at(&mut bytes, at).unwrap();
        bytes
    }

    pub fn u16(&self, at: u64) -> u16 {
        u16::from_le_bytes(self.read(at, 2).try_into().unwrap())
    }

    pub fn u32(&self, at: u64) -> u32 {
        u32::from_le_bytes(self.read(at, 4).try_into().unwrap())
    }

    pub fn clone_fd(&self) -> OwnedFd {
        self.0.try_clone().unwrap().into()
    }
}

/// One ring of the guest's driver.
pub struct Ring {
    pub number: usize,
    /// Given in all.
    pub given: u16,
    /// Taken back in all.
    pub taken: u16,
    pub kick: OwnedFd,
    pub call: OwnedFd,
}

impl Ring {
    fn new(number: usize) -> Self {
        Ring { number, given: 0, taken: 0, kick: eventfd(), call: eventfd() }
    }

    pub fn desc(&self) -> u64 {
        self.number as u64 * 0x1_0000
    }

    pub fn avail(&self) -> u64 {
        self.desc() + 0x8000
    }

    pub fn used(&self) -> u64 {
        self.desc() + 0xc000
    }

    /// The memory of a slot: a page.
    pub fn buffer(&self, slot: u16) -> u64 {
        // The middle of the file lies in the rings' buffers, so that both regions are used.
        REGION - 0x20_0000 + (self.number as u64 * u64::from(SIZE) + u64::from(slot)) * BUFFER * 4
    }

    pub fn set_desc(&self, memory: &Memory, slot: u16, addr: u64, len: u32, flags: u16, next: u16) {
        memory.write(self.desc() + u64::from(slot) * 16, &desc(addr, len, flags, next));
    }

    /// Gives a chain.
    pub fn give(&mut self, memory: &Memory, head: u16) {
        memory.write(self.avail() + 4 + u64::from(self.given % SIZE) * 2, &head.to_le_bytes());
        self.given = self.given.wrapping_add(1);
        memory.write(self.avail() + 2, &self.given.to_le_bytes());
    }

    pub fn kick(&self) {
        rustix::io::write(&self.kick, &1_u64.to_ne_bytes()).unwrap();
    }

    /// A chain that was given back: its head and length.
    pub fn take(&mut self, memory: &Memory) -> Option<(u32, u32)> {
        if memory.u16(self.used() + 2) == self.taken {
            return None;
        }
        let at = self.used() + 4 + u64::from(self.taken % SIZE) * 8;
        self.taken = self.taken.wrapping_add(1);
        Some((memory.u32(at), memory.u32(at + 4)))
    }

    /// How often the guest was called since this was asked last.
    pub fn calls(&self) -> u64 {
        let mut count = [0; 8];
        match rustix::io::read(&self.call, &mut count) {
            Ok(_) => u64::from_ne_bytes(count),
            Err(_) => 0,
        }
    }
}

pub fn desc(addr: u64, len: u32, flags: u16, next: u16) -> [u8; 16] {
    let rest = u64::from(len) | u64::from(flags) << 32 | u64::from(next) << 48;
    (u128::from(addr) | u128::from(rest) << 64).to_le_bytes()
}

/// How a guest lays its packets out.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    /// All in one descriptor.
    Whole,
    /// In pieces of so many bytes.
    Pieces(usize),
    /// The same, in a table.
    Table(usize),
}

/// A guest and its hypervisor.
pub struct Guest {
    pub front: FrontEnd,
    pub memory: Memory,
    pub rings: Vec<Ring>,
    pub features: u64,
    next_slot: Vec<u16>,
}

impl Guest {
    pub fn connect(path: &Path, features: u64, pairs: usize) -> Self {
        Self::over(FrontEnd::connect(path), features, pairs)
    }

    pub fn over(front: FrontEnd, features: u64, pairs: usize) -> Self {
        let rings = (0..pairs * 2).map(Ring::new).collect();
        Guest { front, memory: Memory::new(), rings, features, next_slot: vec![0; pairs * 2] }
    }

    pub fn header(&self) -> usize {
        if self.features & (VERSION_1 | MRG_RXBUF) == 0 { 10 } else { 12 }
    }

    /// All that QEMU says, in its order.
    pub fn say_all(&mut self, router: &mut Router) {
        let offered = self.front.ask(router, 1, &[]).unwrap();
        assert_eq!(self.features & !offered, 0, "{offered:#x}");
        if self.features & PROTOCOL != 0 {
            let protocol = self.front.ask(router, 15, &[]).unwrap();
            assert_eq!(protocol, 0b1001);
            self.front.say(16, &[protocol], &[]);
            assert_eq!(self.front.ask(router, 17, &[]), Some(16));
        }
        self.front.say(3, &[], &[]);
        for ring in &self.rings {
            self.front.say(13, &[ring.number as u64], &[&ring.call]);
        }
        self.front.say(2, &[self.features], &[]);
        self.say_memory();
        for number in 0..self.rings.len() {
            self.start(number, 0);
        }
        // An answer comes when all before it is done.
        assert!(self.front.ask(router, 1, &[]).is_some());
        (0..self.rings.len()).step_by(2).for_each(|ring| self.post(ring));
    }

    pub fn say_memory(&self) {
        let fd = self.memory.clone_fd();
        self.front.say(5, &Memory::table(), &[&fd, &fd]);
    }

    pub fn start(&self, number: usize, base: u16) {
        let (ring, n) = (&self.rings[number], number as u64);
        self.front.say(8, &[u64::from(SIZE) << 32 | n], &[]);
        self.front.say(10, &[u64::from(base) << 32 | n], &[]);
        let [desc, used, avail] = [ring.desc(), ring.used(), ring.avail()].map(Memory::user);
        self.front.say(9, &[n, desc, used, avail, 0], &[]);
        self.front.say(12, &[n], &[&ring.kick]);
        self.front.say(13, &[n], &[&ring.call]);
        if self.features & PROTOCOL != 0 {
            self.front.say(18, &[1 << 32 | n], &[]);
        }
    }

    /// Fills a receive ring with buffers: a page each, or 17 pages of big ones where packets cannot go over several.
    pub fn post(&mut self, ring: usize) {
        let r = &mut self.rings[ring];
        for slot in 0..SIZE {
            let len = if self.features & MRG_RXBUF != 0 { 2048 } else { BUFFER as u32 * 4 };
            r.set_desc(&self.memory, slot, Memory::guest(r.buffer(slot)), len, WRITE, 0);
            r.give(&self.memory, slot);
        }
    }

    /// Puts a packet into a transmit ring, without a kick.
    pub fn put(&mut self, ring: usize, header: [u8; 12], frame: &[u8], layout: Layout) {
        let mut bytes = header[..self.header()].to_vec();
        bytes.extend(frame);
        let first = self.next_slot[ring];
        let (r, memory) = (&mut self.rings[ring], &self.memory);
        let pieces: Vec<_> = match layout {
            Layout::Whole => vec![bytes.len()],
            Layout::Pieces(n) | Layout::Table(n) => bytes.chunks(n).map(<[u8]>::len).collect(),
        };
        let buffer = r.buffer(first);
        memory.write(buffer, &bytes);
        let (mut at, count) = (buffer, pieces.len());
        let mut table = Vec::new();
        for (i, len) in pieces.into_iter().enumerate() {
            let last = i + 1 == count;
            let slot = (first + i as u16) % SIZE;
            let next = if matches!(layout, Layout::Table(_)) { i as u16 + 1 } else { (slot + 1) % SIZE };
            let one =
                desc(Memory::guest(at), len as u32, if last { 0 } else { NEXT }, if last { 0 } else { next });
            match layout {
                Layout::Table(_) => table.extend(one),
                _ => memory.write(r.desc() + u64::from(slot) * 16, &one),
            }
            at += len as u64;
        }
        let used = if table.is_empty() {
            count as u16
        } else {
            // Behind the packet, which takes less than three of a slot's four pages.
            let place = buffer + BUFFER * 3;
            assert!(table.len() as u64 <= BUFFER, "a table of {} bytes", table.len());
            memory.write(place, &table);
            r.set_desc(memory, first, Memory::guest(place), table.len() as u32, IN_TABLE, 0);
            1
        };
        self.next_slot[ring] = (first + used) % SIZE;
        r.give(memory, first);
    }

    /// Sends a packet that owes nothing.
    pub fn send(&mut self, ring: usize, frame: &[u8], layout: Layout) {
        self.put(ring, [0; 12], frame, layout);
        self.rings[ring].kick();
    }

    /// Takes all packets out of a receive ring and gives the buffers back: headers and frames.
    pub fn receive(&mut self, ring: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let header = self.header();
        let mut all = Vec::new();
        loop {
            let (r, memory) = (&mut self.rings[ring], &self.memory);
            let Some((head, len)) = r.take(memory) else { return all };
            let mut bytes = memory.read(r.buffer(head as u16), len as usize);
            let merged = if header == 12 { u16::from_le_bytes([bytes[10], bytes[11]]) } else { 1 };
            r.give(memory, head as u16);
            for _ in 1..merged {
                let (head, len) = r.take(memory).expect("all parts of a packet");
                bytes.extend(memory.read(r.buffer(head as u16), len as usize));
                r.give(memory, head as u16);
            }
            all.push((bytes[..header].to_vec(), bytes[header..].to_vec()));
        }
    }

    /// The next packets of ours, by any ring.
    pub fn gets(&mut self, router: &mut Router, count: usize) -> Vec<Vec<u8>> {
        let mut got = Vec::new();
        run_until(router, |_| {
            for ring in (0..self.rings.len()).step_by(2) {
                got.extend(self.receive(ring).into_iter().map(|(_, frame)| frame).filter(|f| is_ours(f)));
            }
            got.len() >= count
        });
        got
    }
}
