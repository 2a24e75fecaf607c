//! Every interleaving of the lock-free pieces.
//! `RUSTFLAGS="--cfg loom" cargo test -p shoal-infra --release --test loom`
#![cfg(loom)]
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use shoal_infra::qsbr::{Published, Reader, reclaim, synchronize};
use shoal_infra::spsc::ring;
use shoal_infra::twin_cell;

fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

#[test]
fn loom_spsc_moves_each_value_once_in_order() {
    model(|| {
        let (mut producer, mut consumer) = ring::<Box<u32>>(2);
        let sender = thread::spawn(move || {
            for mut n in (0..3).map(Box::new) {
                while let Err(back) = producer.push(n) {
                    n = back;
                    thread::yield_now();
                }
            }
        });
        let mut expected = 0;
        while expected < 2 {
            match consumer.pop() {
                Some(n) => {
                    assert_eq!(*n, expected);
                    expected += 1;
                }
                None => thread::yield_now(),
            }
        }
        sender.join().unwrap();
        // The third value is dropped with the ring.
    });
}

struct Canary {
    freed: Arc<AtomicBool>,
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.freed.store(true, Ordering::Relaxed);
    }
}

fn canary() -> (Canary, Arc<AtomicBool>) {
    let freed = Arc::new(AtomicBool::new(false));
    let canary = Canary { freed: Arc::clone(&freed) };
    (canary, freed)
}

#[test]
fn loom_a_loaded_value_is_not_freed_before_the_quiescent_point() {
    model(|| {
        let (first, freed) = canary();
        let published = Arc::new(Published::new(first));
        let shared = Arc::clone(&published);
        let worker = thread::spawn(move || {
            let mut reader = Reader::register();
            for _ in 0..2 {
                let seen = shared.load(reader.guard());
                thread::yield_now();
                assert!(!seen.freed.load(Ordering::Relaxed));
                reader.quiescent();
            }
        });
        published.replace(canary().0);
        reclaim();
        reclaim();
        worker.join().unwrap();
        drop(published);
        while !freed.load(Ordering::Relaxed) {
            reclaim();
        }
        reclaim();
    });
}

#[test]
fn loom_a_reader_that_comes_online_is_waited_for() {
    model(|| {
        let (first, _freed) = canary();
        let published = Arc::new(Published::new(first));
        let shared = Arc::clone(&published);
        let worker = thread::spawn(move || {
            let mut reader = Reader::register();
            reader.offline();
            reader.online();
            let seen = shared.load(reader.guard());
            thread::yield_now();
            assert!(!seen.freed.load(Ordering::Relaxed));
            reader.offline();
        });
        published.replace(canary().0);
        synchronize().unwrap();
        reclaim();
        worker.join().unwrap();
        drop(published);
        reclaim();
    });
}

#[test]
fn loom_a_twin_copy_is_not_overwritten_while_it_is_read() {
    model(|| {
        let (cell, mut writer) = twin_cell(0_u32);
        let worker = thread::spawn(move || {
            let mut reader = Reader::register();
            let seen = cell.load(reader.guard());
            let first = *seen;
            thread::yield_now();
            assert_eq!(first, *seen);
            reader.quiescent();
            let later = *cell.load(reader.guard());
            assert!(later >= first);
        });
        writer.store(1).unwrap();
        writer.store(2).unwrap();
        worker.join().unwrap();
    });
}
