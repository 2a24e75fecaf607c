//! A peer that makes the eventfd which it is woken by full and blocking just when the router is about to wake it.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::support::hand::*;
use crate::support::*;
use rustix::fs::OFlags;
use shoal_memif::{Desc, Message, Role};
use shoal_testkit::{PacketInjector, must_go_on, race_time};

/// The freeze that this is the test of took 8 tries with a worker, 203 without.
const TRIES: u64 = 500;

/// Plays the race until it is told to stop, and counts how often.
fn play(slave: &Slave, event: &OwnedFd, stop: &AtomicBool, tries: &AtomicU64, rounds: &AtomicU64) {
    while !stop.load(Relaxed) {
        rustix::fs::fcntl_setfl(event, OFlags::NONBLOCK).unwrap();
        let _ = rustix::io::read(event, &mut [0; 8]);
        let tail = slave.m2s.tail();
        slave.m2s.set_head(tail.wrapping_add(SIZE));
        // A moved tail is the word that the router is about to wake this end.
        for spins in 1_u64.. {
            if slave.m2s.tail() != tail || stop.load(Relaxed) {
                break;
            }
            if spins.is_multiple_of(2000) {
                // The router may want this processor.
                std::thread::yield_now();
            }
        }
        // Some time later: all times in turn, up to two microseconds.
        for n in 0..tries.load(Relaxed) % 64 {
            std::hint::black_box(n);
        }
        let _ = rustix::io::write(event, &(u64::MAX - 1).to_ne_bytes());
        rustix::fs::fcntl_setfl(event, OFlags::empty()).unwrap();
        tries.fetch_add(1, Relaxed);
        // A router that goes on has not walked into it. One that waits is left there.
        let seen = rounds.load(Relaxed);
        while rounds.load(Relaxed) < seen + 2 && !stop.load(Relaxed) {
            std::thread::yield_now();
        }
    }
}

/// Forwards to a peer that plays the race, on the main thread or on a worker.
fn race(test: &'static str, workers: usize) {
    let (rounds, tries) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let stop = Arc::new(AtomicBool::new(false));
    let (ready, is_ready) = mpsc::channel();
    let router = {
        let (rounds, stop) = (Arc::clone(&rounds), Arc::clone(&stop));
        std::thread::spawn(move || {
            let mut bed = bed(test, Role::Master);
            for _ in 0..workers {
                bed.router.graph().add_worker(None).unwrap();
            }
            let slave = bed.become_slave();
            for slot in 0..SIZE {
                let offset = BUFFERS + BUFFER * u32::from(SIZE + slot);
                slave.m2s.set_desc(slot, Desc { flags: 0, region: 0, length: BUFFER, offset });
            }
            ready.send(slave).unwrap();
            let giver = PacketInjector::new(&bed.router, &bed.host, workers);
            let packet = bed.packet(18);
            while !stop.load(Relaxed) {
                giver.give(packet.clone());
                bed.router.run();
                rounds.fetch_add(1, Relaxed);
            }
            let info = info(&bed.router, bed.end);
            bed.router.graph().remove_queue(giver.queue).unwrap();
            (info.connected, info.kicks)
        })
    };
    let mut slave = is_ready.recv_timeout(PATIENCE * 3).unwrap();
    let event = slave.m2s_event.take().unwrap();
    let peer = {
        let (stop, tries, rounds) = (Arc::clone(&stop), Arc::clone(&tries), Arc::clone(&rounds));
        std::thread::spawn(move || play(&slave, &event, &stop, &tries, &rounds))
    };
    must_go_on("the router", &rounds, race_time(Duration::from_secs(20)), || tries.load(Relaxed) >= TRIES);
    stop.store(true, Relaxed);
    let (connected, kicks) = router.join().unwrap();
    peer.join().unwrap();
    let tries = tries.load(Relaxed);
    println!("{workers} workers: {tries} tries, {kicks} times woken, {} rounds", rounds.load(Relaxed));
    assert!(connected && kicks > 0, "{connected} {kicks} {tries}");
}

#[test]
fn the_main_thread_never_waits_for_a_peer_that_spoils_its_eventfd() {
    race("race0", 0);
}

#[test]
fn a_worker_never_waits_for_a_peer_that_spoils_its_eventfd() {
    race("race1", 1);
}

#[test]
fn a_peer_whose_eventfd_is_full_and_blocking_all_the_time_gets_its_packets() {
    let mut bed = bed("full", Role::Master);
    let slave = bed.become_slave();
    let event = slave.m2s_event.as_ref().unwrap();
    rustix::io::write(event, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    for slot in 0..SIZE {
        let offset = BUFFERS + BUFFER * u32::from(SIZE + slot);
        slave.m2s.set_desc(slot, Desc { flags: 0, region: 0, length: BUFFER, offset });
    }
    slave.m2s.set_head(SIZE);
    for n in 0..SIZE {
        let (host, packet) = (bed.host.clone(), bed.packet(18));
        let before = slave.m2s.tail();
        bed.router.send(&host, packet);
        assert_eq!(slave.m2s.tail(), before.wrapping_add(1), "{n}");
    }
}

/// A socket whose last close takes a minute.
fn lingering() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let far = listener.accept().unwrap().0;
    near.set_nonblocking(true).unwrap();
    while near.write(&[0; 8192]).is_ok() {}
    near.set_nonblocking(false).unwrap();
    rustix::net::sockopt::set_socket_linger(&near, Some(Duration::from_mins(1))).unwrap();
    (near.into(), far)
}

#[test]
fn a_peer_that_sends_a_socket_that_lingers_stops_no_thread() {
    let mut bed = bed("linger", Role::Master);
    let begun = Instant::now();
    let mut kept = Vec::new();
    // Taken and refused; and never looked at, because the word before it ends the connection.
    for words in [1, 3] {
        bed.connect();
        assert!(matches!(bed.hear().unwrap().0, Message::Hello(_)));
        for _ in 0..words {
            let (near, far) = lingering();
            bed.say(&Message::AddRegion { index: 0, size: 4096 }, Some(near.as_fd()));
            kept.push(far);
        }
        bed.end_text();
        bed.link = None;
        bed.router.run();
    }
    bed.become_slave();
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
}
