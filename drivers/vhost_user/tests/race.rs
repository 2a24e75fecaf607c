//! A guest that makes the eventfd which it is called by full and blocking just when the router is about to call it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration;

use crate::support::*;
use rustix::fs::OFlags;
use shoal_testkit::{PacketInjector, must_go_on, race_time};
use shoal_vhost_user::Role;

/// The freeze that this is the test of took 8 tries with a worker, 203 without.
const TRIES: u64 = 500;

/// Plays the race until it is told to stop, and counts how often.
fn play(guest: &mut Guest, stop: &AtomicBool, tries: &AtomicU64, rounds: &AtomicU64) {
    let call = guest.rings[0].call.try_clone().unwrap();
    while !stop.load(Relaxed) {
        rustix::fs::fcntl_setfl(&call, OFlags::NONBLOCK).unwrap();
        let _ = rustix::io::read(&call, &mut [0; 8]);
        drop(guest.receive(0));
        let (index, used) = (guest.rings[0].used() + 2, guest.rings[0].taken);
        // A moved index is the word that the router is about to call.
        for looks in 1_u64.. {
            if guest.memory.u16(index) != used || stop.load(Relaxed) {
                break;
            }
            if looks.is_multiple_of(100) {
                // The router may want this processor.
                std::thread::yield_now();
            }
        }
        // Some time later: all times in turn, up to two microseconds.
        for n in 0..tries.load(Relaxed) % 64 {
            std::hint::black_box(n);
        }
        let _ = rustix::io::write(&call, &(u64::MAX - 1).to_ne_bytes());
        rustix::fs::fcntl_setfl(&call, OFlags::empty()).unwrap();
        tries.fetch_add(1, Relaxed);
        // A router that goes on has not walked into it. One that waits is left there.
        let seen = rounds.load(Relaxed);
        while rounds.load(Relaxed) < seen + 2 && !stop.load(Relaxed) {
            std::thread::yield_now();
        }
    }
}

/// Forwards to a guest that plays the race, on the main thread or on a worker.
fn race(workers: usize) {
    let (rounds, tries) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let stop = Arc::new(AtomicBool::new(false));
    let (ready, is_ready) = mpsc::channel();
    let router = {
        let (rounds, stop) = (Arc::clone(&rounds), Arc::clone(&stop));
        std::thread::spawn(move || {
            let mut bed = Bed::new(Role::Server);
            for _ in 0..workers {
                bed.router.graph().add_worker(None).unwrap();
            }
            // Without the event index the guest is called for each frame.
            ready.send(bed.guest(MODERN & !EVENT_IDX, 1)).unwrap();
            let giver = PacketInjector::new(&bed.router, &bed.host, workers);
            let packet = bed.udp(0, false, 1, 18);
            while !stop.load(Relaxed) {
                giver.give(packet.clone());
                bed.router.run();
                rounds.fetch_add(1, Relaxed);
            }
            let info = info(&bed.router, bed.end);
            bed.router.graph().remove_queue(giver.queue).unwrap();
            (info.connected, info.rings[0].calls)
        })
    };
    let mut guest = is_ready.recv_timeout(PATIENCE * 3).unwrap();
    let peer = {
        let (stop, tries, rounds) = (Arc::clone(&stop), Arc::clone(&tries), Arc::clone(&rounds));
        std::thread::spawn(move || {
            play(&mut guest, &stop, &tries, &rounds);
            guest
        })
    };
    must_go_on("the router", &rounds, race_time(Duration::from_secs(20)), || tries.load(Relaxed) >= TRIES);
    stop.store(true, Relaxed);
    let (connected, calls) = router.join().unwrap();
    drop(peer.join().unwrap());
    let tries = tries.load(Relaxed);
    println!("{workers} workers: {tries} tries, {calls} calls, {} rounds", rounds.load(Relaxed));
    assert!(connected && calls > 0, "{connected} {calls} {tries}");
}

#[test]
fn the_main_thread_never_waits_for_a_guest_that_spoils_its_eventfd() {
    race(0);
}

#[test]
fn a_worker_never_waits_for_a_guest_that_spoils_its_eventfd() {
    race(1);
}
