//! Front ends and guests that write and say what cannot be: the router goes on, and no buffer is lost.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::*;
use shoal_testkit::Rng;
use shoal_vhost_user::{
    Features, Gate, Header, MOST_RINGS, PeerFd, Queue, Rings, Role, Session, Trust, Vhosts,
};

/// Why the connection was ended, after these messages of a front end that has completed its set-up.
fn ended(what: impl Fn(&mut Bed, &mut Guest)) -> String {
    let mut bed = Bed::new(Role::Server);
    let mut guest = bed.guest(MODERN, 1);
    what(&mut bed, &mut guest);
    let end = bed.end;
    assert!(run_until(&mut bed.router, |r| !info(r, end).connected), "it goes on");
    let why = info(&bed.router, end).why;
    // The next one is taken.
    drop(guest);
    drop(bed.guest(MODERN, 1));
    why
}

#[test]
fn words_that_cannot_be_end_the_connection_and_say_why() {
    let word = |request: u32, words: &'static [u64]| {
        ended(move |_, g| {
            g.front.say(request, words, &[]);
        })
    };
    assert!(word(2, &[1 << 63]).contains("features 0x8000000000000000 were not offered"));
    assert!(word(16, &[2]).contains("features 0x2 were not offered"));
    assert!(word(8, &[256 << 32 | 32]).contains("ring 32"));
    assert!(word(8, &[100 << 32 | 9]).contains("power of two"));
    assert!(word(8, &[65_536 << 32 | 9]).contains("power of two"));
    assert!(word(8, &[256 << 32]).contains("in use"));
    assert!(word(9, &[0, 1, 2, 3, 4]).contains("in use"));
    assert!(word(10, &[65_536 << 32 | 9]).contains("65535"));
    assert!(word(2, &[]).contains("of 0 bytes, must be 8"));
    assert!(word(12, &[1]).contains("0 descriptors, must be 1"));
    assert!(word(5, &[9]).contains("9 regions"));
    assert!(word(6, &[0, 0]).contains("message 6 was not offered"));
    assert!(word(u32::MAX, &[]).contains("was not offered"));
}

#[test]
fn descriptors_that_are_no_eventfds_and_memory_that_is_not_there_end_the_connection() {
    let file = || OwnedFd::from(std::fs::File::open("/dev/zero").unwrap());
    let kick = ended(|_, g| {
        g.front.say(12, &[1], &[&file()]);
    });
    assert!(kick.contains("no eventfd"), "{kick}");
    let call = ended(|_, g| {
        g.front.say(13, &[1], &[&file()]);
    });
    assert!(call.contains("no eventfd"), "{call}");
    let memory = ended(|_, g| {
        g.front.say(5, &[1, 0, 4096, 0, 0], &[&file()]);
    });
    assert!(memory.contains("trust-guests"), "{memory}");
    let short = ended(|_, g| {
        g.front.say(5, &[1, 0, REGION * 4, 0, 0], &[&g.memory.clone_fd()]);
    });
    assert!(short.contains("in a file of"), "{short}");
    // The rings are in none of the new regions.
    let moved = ended(|_, g| {
        g.front.say(5, &[1, 0, REGION, 0, 0], &[&g.memory.clone_fd()]);
    });
    assert!(moved.contains("not in the guest's memory"), "{moved}");
    let many = ended(|_, g| {
        let fd = g.memory.clone_fd();
        g.front.say(1, &[], &[&fd; 12]);
    });
    assert!(many.contains("descriptors"), "{many}");
    let header = ended(|_, g| {
        g.front.raw(&[0xff; 12], &[]);
    });
    assert!(header.contains("version"), "{header}");
}

#[test]
fn rings_that_cannot_be_end_the_connection() {
    let index = ended(|_, g| {
        let at = g.rings[1].avail() + 2;
        g.memory.write(at, &(g.rings[1].given + SIZE + 1).to_le_bytes());
        g.rings[1].kick();
    });
    assert!(index.contains("ring index or a chain"), "{index}");
    ended(|_, g| {
        g.rings[1].give(&g.memory, SIZE);
        g.rings[1].kick();
    });
    // Buffers for packets to the guest that are none: endless, outside, for reading, empty.
    for (addr, len, flags, next) in [
        (Memory::guest(REGION), 0, WRITE | NEXT, 0),
        (u64::MAX - 4, 2048, WRITE, 0),
        (REGION - 100, 2048, WRITE, 0),
        (0, 2048, 0, 0),
        (0, 0, WRITE, 0),
        (0, 16, IN_TABLE | NEXT, 0),
        (0, 17, IN_TABLE, 0),
        (HIGH, 1000, WRITE | NEXT, 999),
    ] {
        ended(|bed, g| {
            for slot in 0..SIZE {
                let next = if next == 0 { slot } else { next };
                g.rings[0].set_desc(&g.memory, slot, addr, len, flags, next);
            }
            let host = bed.host.clone();
            let burst: Vec<_> = (0..70).map(|n| bed.udp(0, n % 2 == 1, n, 1800)).collect();
            bed.router.send_all(&host, &burst);
        });
    }
}

#[test]
fn chains_that_make_no_sense_are_counted_and_given_back() {
    let mut bed = Bed::new(Role::Server);
    let mut guest = bed.guest(MODERN, 1);
    let end = bed.end;
    let chains: &[(u64, u32, u16, u16)] = &[
        // Without end: it is its own next one.
        (0, 64, NEXT, 0),
        (0, 0, NEXT, 0),
        (0, 64, NEXT, SIZE),
        (0, 64, NEXT, u16::MAX),
        (0, 64, WRITE, 0),
        (0, 0, 0, 0),
        (0, 12, 0, 0),
        (0, 70_000, 0, 0),
        (0, u32::MAX, 0, 0),
        (REGION - 8, 64, 0, 0),
        (HIGH + REGION, 64, 0, 0),
        (u64::MAX, 64, 0, 0),
        (0, 0, IN_TABLE, 0),
        (0, 15, IN_TABLE, 0),
        (0, u32::MAX, IN_TABLE, 0),
        (0, 0xffff_fff0, IN_TABLE, 0),
        (REGION - 8, 16, IN_TABLE, 0),
        (u64::MAX - 8, 16, IN_TABLE, 0),
        (0, 16, IN_TABLE | NEXT, 0),
    ];
    for (n, (addr, len, flags, next)) in chains.iter().enumerate() {
        guest.rings[1].set_desc(&guest.memory, 0, *addr, *len, *flags, *next);
        let Guest { rings, memory, .. } = &mut guest;
        rings[1].give(memory, 0);
        rings[1].kick();
        let given = rings[1].given;
        assert!(run_until(&mut bed.router, |_| memory.u16(rings[1].used() + 2) == given), "{n}");
        assert_eq!(info(&bed.router, end).rings[1].bad, n as u64 + 1, "{n}: {:?}", bed.router.errors());
    }
    // A table that leads to another, and one whose entries go in a circle.
    for flags in [IN_TABLE, NEXT] {
        guest.memory.write(0x3_0000, &desc(0x3_0000, 16, flags, 0));
        guest.rings[1].set_desc(&guest.memory, 0, 0x3_0000, 16, IN_TABLE, 0);
        let Guest { rings, memory, .. } = &mut guest;
        rings[1].give(memory, 0);
        rings[1].kick();
    }
    let all = chains.len() as u64 + 2;
    assert!(run_until(&mut bed.router, |r| info(r, end).rings[1].bad == all));
    let packet = bed.udp(1, true, 1, 18);
    guest.send(1, &packet, Layout::Whole);
    assert_eq!(bed.host_gets(1).len(), 1);
    assert!(is_up(&bed.router, end));
}

/// Scribbles over rings and buffers while packets flow.
#[test]
fn a_guest_that_scribbles_over_all_of_its_memory_harms_no_other() {
    let seed = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0x5eed_u64);
    println!("SEED={seed}");
    let mut bed = Bed::new(Role::Server);
    bed.router.graph().add_worker(None).unwrap();
    let rounds = if std::env::var_os("SHOAL_LONG").is_some() { 400 } else { 25 };
    let host = bed.host.clone();
    for round in 0..rounds {
        let mut guest = bed.guest(if round % 3 == 0 { MODERN & !MRG_RXBUF } else { MODERN }, 2);
        let stop = Arc::new(AtomicBool::new(false));
        let scribbler = {
            let (memory, stop) = (Memory(guest.memory.0.try_clone().unwrap()), Arc::clone(&stop));
            let mut rng = Rng::new(seed + round);
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let ring = rng.below(4) as u64 * 0x1_0000;
                    let at = match rng.below(4) {
                        // A descriptor, an index, an entry, a packet.
                        0 => ring + rng.below(SIZE.into()) as u64 * 16,
                        1 => ring + 0x8000 + rng.below(8) as u64 * 2,
                        2 => ring + 0xc000 + rng.below(600) as u64,
                        _ => REGION - 0x20_0000 + rng.below(0x20_0000) as u64,
                    };
                    let mut bytes = [0; 16];
                    bytes.fill_with(|| rng.below(256) as u8);
                    // Small numbers are nearer to what could be.
                    if rng.below(2) == 0 {
                        bytes[2..8].fill(0);
                        bytes[10..12].fill(0);
                        bytes[12] &= 7;
                        bytes[13] = 0;
                    }
                    let n = [2, 8, 16][rng.below(3)];
                    memory.write(at, &bytes[..n]);
                }
            })
        };
        for n in 0..30 {
            let burst: Vec<_> = (0..20).map(|i| bed.udp(0, i % 2 == 1, i, 1000)).collect();
            bed.router.send_all(&host, &burst);
            for ring in [1, 3] {
                let packet = bed.udp(1, n % 2 == 1, n, 500);
                guest.put(
                    ring,
                    [0; 12],
                    &packet,
                    if n % 3 == 0 { Layout::Table(100) } else { Layout::Pieces(300) },
                );
                guest.rings[ring].kick();
            }
            bed.router.run();
            drop(host.received());
        }
        stop.store(true, Ordering::Relaxed);
        scribbler.join().unwrap();
        drop(guest);
        let end = bed.end;
        assert!(run_until(&mut bed.router, |r| !info(r, end).connected));
    }
    bed.router.get::<Vhosts>().delete(bed.end).unwrap();
}

/// Rings that go nowhere.
struct DetachedRings(std::cell::RefCell<Vec<Option<Queue>>>);

impl Rings for DetachedRings {
    fn start(&self, ring: u32, queue: Queue, _: Gate) -> Result<(), String> {
        let old = self.0.borrow_mut()[ring as usize].replace(queue);
        assert!(old.is_none(), "ring {ring} is started twice");
        Ok(())
    }

    fn stop(&self, ring: u32) {
        assert!(self.0.borrow_mut()[ring as usize].take().is_some(), "ring {ring} is not started");
    }
}

#[test]
fn random_words_in_any_order_start_and_stop_rings_in_pairs() {
    let seed = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(7_u64);
    println!("SEED={seed}");
    let mut rng = Rng::new(seed);
    let memory = Memory::new();
    let mut started = 0;
    for _ in 0..300 {
        let nowhere = DetachedRings(std::cell::RefCell::new((0..MOST_RINGS).map(|_| None).collect()));
        let mut session = Session::new(Features::offered(u64::MAX), Trust::NoGuest);
        for _ in 0..200 {
            let request = [1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 40][rng.below(17)];
            let ring = rng.below(4) as u64;
            let at = |part: u64| Memory::user(ring * 0x1_0000 + part);
            let words = match request {
                2 => vec![[MODERN, VERSION_1, 0][rng.below(3)]],
                5 => Memory::table(),
                8 => vec![u64::from(SIZE) << 32 | ring],
                9 => vec![ring, at(0), at(0xc000), at(0x8000), 0],
                16 => vec![9],
                18 => vec![(rng.below(2) as u64) << 32 | ring],
                10..=14 => vec![ring],
                _ => vec![],
            };
            let fds = match request {
                5 => vec![memory.clone_fd(), memory.clone_fd()],
                12..=14 => vec![eventfd()],
                _ => vec![],
            };
            let body: Vec<u8> = words.iter().flat_map(|w: &u64| w.to_le_bytes()).collect();
            let header = Header { request, need_reply: rng.below(2) == 0, size: body.len() };
            let heard = session.hear(header, &body, fds.into_iter().map(PeerFd::from).collect(), &nowhere);
            started += nowhere.0.borrow().iter().flatten().count();
            let running = session.rings().iter().filter(|r| r.running.is_some()).count();
            assert_eq!(running, nowhere.0.borrow().iter().flatten().count());
            if heard.is_err() && rng.below(4) == 0 {
                break;
            }
        }
        session.stop_all(&nowhere);
        assert!(nowhere.0.borrow().iter().all(Option::is_none));
    }
    assert!(started > 1000, "rings ran {started} times");
}
