//! How many packets does a router forward between two memifs, and from which rate on does it lose some?
//!
//!   blast SOCKET MAC [ip4|ip6] [SECONDS]
//!
//! One thread is both peers: slave of memif 0, into which packets of 64 bytes go, and of memif 1, out of which they come.
//! It costs next to nothing itself, so that the router is measured and not its peer: all slots are written before, and
//! then given again and again; of what comes back every 64th packet is looked at. First as fast as it goes, then at 80
//! percent of that. `scripts/memif-rate.sh` starts the router for it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout, clippy::panic)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use futures_lite::future::block_on;
use rustix::event::{EventfdFlags, eventfd};
use shoal_memif::*;

/// Slots of the ring that packets go in by, and of the one that they come out of, as powers of two. What is in the first
/// when one of the two threads stands still has room in the second, so that a loss is the router's.
const IN: u8 = 11;
const OUT: u8 = 13;
const BUFFER: u32 = 2048;
const LENGTH: u32 = 64;
const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 9];
/// A look at every so many packets that come back.
const LOOK: u16 = 64;

/// One memif as its slave has it.
struct Peer {
    regions: Arc<Regions>,
    s2m: RingMemory,
    m2s: RingMemory,
    /// What is sent, and what has come, counted as the ring does.
    sent: u16,
    come: u16,
    /// Wakes the router.
    wake: OwnedFd,
    _link: Link,
}

fn size(log2: u8) -> u32 {
    1 << log2
}

/// Where the bytes of a slot begin: those of the way out of the router stand behind the others.
fn slot(of_out: bool, slot: u32) -> u32 {
    let first = (ring_bytes(IN) + ring_bytes(OUT)).next_multiple_of(4096) as u32;
    first + BUFFER * (u32::from(of_out) * size(IN) + slot)
}

impl Peer {
    fn connect(place: &Place, id: u32) -> Peer {
        let link = Link::connect(place).unwrap();
        let hear = || block_on(link.receive()).unwrap().0;
        let tell = |message: &Message, fd: Option<BorrowedFd<'_>>| {
            link.try_send(message, fd).unwrap();
            match hear() {
                Message::Ack => {}
                other => panic!("{message:?}: {other:?}"),
            }
        };
        assert!(matches!(hear(), Message::Hello(_)));
        tell(
            &Message::Init(Init { version: VERSION, id, mode: 0, secret: [0; 24], name: "blast".into() }),
            None,
        );
        let len = slot(true, size(OUT)) as usize;
        let (region, fd) = Region::create(len).unwrap();
        tell(&Message::AddRegion { index: 0, size: len as u64 }, Some(fd.as_fd()));
        let regions = Arc::new(Regions::new(vec![region]));
        let [(s2m, wake), (m2s, _)] = [true, false].map(|s2m| {
            let (offset, log2) = if s2m { (0, IN) } else { (ring_bytes(IN) as u32, OUT) };
            let ring = RingMemory::new(&regions, RingPlace { region: 0, offset, log2 }).unwrap();
            ring.format();
            ring.set_interrupts(false);
            let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
            let add = AddRing { s2m, index: 0, region: 0, offset, log2, private_header: 0 };
            tell(&Message::AddRing(add), Some(event.as_fd()));
            (ring, event)
        });
        link.try_send(&Message::Connect { name: format!("blast{id}") }, None).unwrap();
        assert!(matches!(hear(), Message::Connected { .. }));
        for n in 0..size(OUT) {
            m2s.set_desc(n as u16, Desc { flags: 0, region: 0, length: BUFFER, offset: slot(true, n) });
        }
        m2s.set_head(size(OUT) as u16);
        Peer { regions, s2m, m2s, sent: 0, come: 0, wake, _link: link }
    }

    /// Writes all packets that will be sent.
    fn prepare(&self, mac: [u8; 6], six: bool) {
        for n in 0..size(IN) {
            let packet = packet(mac, six, n as u16);
            let offset = slot(false, n);
            self.regions.copy_in(0, offset, &packet).unwrap();
            self.s2m.set_desc(n as u16, Desc { flags: 0, region: 0, length: LENGTH, offset });
        }
    }

    /// Gives up to `most` packets, as many as there is room for.
    fn send(&mut self, most: u64) -> u64 {
        let room = size(IN) - u32::from(self.sent.wrapping_sub(self.s2m.tail()));
        let n = most.min(u64::from(room).min(256));
        if n > 0 {
            self.sent = self.sent.wrapping_add(n as u16);
            self.s2m.set_head(self.sent);
            // The router says that it sleeps and then looks at the index: this is the other way round.
            fence(Ordering::SeqCst);
            if self.s2m.wants_interrupts() {
                rustix::io::write(&self.wake, &1u64.to_ne_bytes()).unwrap();
            }
        }
        n
    }

    /// Takes what has come, and gives the slots back. What has another length is the router's own (MLD, neighbours) and
    /// does not count.
    fn take(&mut self, check: impl Fn(&[u8])) -> u64 {
        let ready = self.m2s.tail().wrapping_sub(self.come);
        let mut own = 0;
        for i in 0..ready {
            let index = self.come.wrapping_add(i);
            let desc = self.m2s.desc(index);
            if desc.length != LENGTH {
                own += 1;
            } else if index.is_multiple_of(LOOK) {
                let mut bytes = [0; LENGTH as usize];
                self.regions.copy_out(0, desc.offset, &mut bytes).unwrap();
                check(&bytes);
            }
            self.m2s.set_desc(index, Desc { length: BUFFER, ..desc });
        }
        self.come = self.come.wrapping_add(ready);
        if ready > 0 {
            self.m2s.set_head(self.come.wrapping_add(size(OUT) as u16));
        }
        u64::from(ready - own)
    }
}

fn packet(mac: [u8; 6], six: bool, n: u16) -> Vec<u8> {
    let eth = shoal_wire::Packet::ethernet(SOURCE, mac);
    let far = |net: u16| std::net::Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, 2);
    let ip = if six { eth.ip6(far(0), far(1)) } else { eth.ip4([10, 0, 0, 2], [10, 0, 1, 2]) };
    let headers = if six { 62 } else { 42 };
    ip.udp(1024 + n % 64, 9).payload_len(LENGTH as usize - headers).build()
}

struct Seen {
    sent: u64,
    back: u64,
    time: Duration,
}

/// Sends for a while, at a rate or as fast as there is room.
fn run(from: &mut Peer, to: &mut Peer, six: bool, rate: Option<f64>, time: Duration) -> Seen {
    let check = |bytes: &[u8]| {
        // Another station, and one hop less.
        let hops = if six { bytes[21] } else { bytes[22] };
        assert!(
            bytes[6..12] != SOURCE && hops == 63,
            "a packet came back that was not forwarded: {bytes:02x?}"
        );
    };
    let (mut sent, mut back) = (0, 0);
    let begun = Instant::now();
    while begun.elapsed() < time {
        let due = rate.map_or(u64::MAX, |rate| (rate * begun.elapsed().as_secs_f64()) as u64);
        sent += from.send(due.saturating_sub(sent));
        back += to.take(check);
    }
    let time = begun.elapsed();
    let last = Instant::now();
    while back < sent && last.elapsed() < Duration::from_millis(200) {
        back += to.take(check);
    }
    Seen { sent, back, time }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [socket, mac, rest @ ..] = args.as_slice() else {
        panic!("blast SOCKET MAC [ip4|ip6] [SECONDS]");
    };
    let six = rest.first().is_some_and(|word| word == "ip6");
    let seconds = rest.get(1).map_or(5.0, |s| s.parse().unwrap());
    let bytes: Vec<u8> = mac.split(':').map(|b| u8::from_str_radix(b, 16).unwrap()).collect();
    let place = Place::of(socket, Path::new("/")).unwrap();
    let [mut from, mut to] = [0, 1].map(|id| Peer::connect(&place, id));
    from.prepare(bytes.try_into().unwrap(), six);
    // The router's worker hears of its peers by and by.
    run(&mut from, &mut to, six, Some(1000.0), Duration::from_millis(500));
    let time = Duration::from_secs_f64(seconds);
    let full = run(&mut from, &mut to, six, None, time);
    let most = full.back as f64 / full.time.as_secs_f64();
    let part = run(&mut from, &mut to, six, Some(most * 0.8), time);
    let family = if six { "ip6" } else { "ip4" };
    println!("{family}: {:.2} Mpps forwarded ({} of {} given)", most / 1e6, full.back, full.sent);
    let rate = part.sent as f64 / part.time.as_secs_f64() / 1e6;
    println!("{family}: at {rate:.2} Mpps, 80 percent: {} of {} lost", part.sent - part.back, part.sent);
}
